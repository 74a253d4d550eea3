//! Fixed-width big-endian encoding, shared by everything that is hashed, stored or sent.
//!
//! Every integer has one width, every list a `u32` count with a bound, every format a version byte, and a
//! reader must consume its input to the end: one value has exactly one encoding.

use alloy_primitives::{Address, B256, Bytes, U256};

/// Why bytes are not an encoding of what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The input ended inside a field.
    #[error("{what} needs {needed} bytes and {left} are left")]
    TooShort {
        /// The field being read.
        what: &'static str,
        /// Bytes that the field takes.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// Bytes follow the last field.
    #[error("{what} is followed by {extra} extra bytes")]
    TrailingBytes {
        /// The value being read.
        what: &'static str,
        /// How many bytes follow.
        extra: usize,
    },
    /// A format version that this build does not know.
    #[error("{what} has version {given}, this build reads version {known}")]
    UnknownVersion {
        /// The value being read.
        what: &'static str,
        /// The version found.
        given: u8,
        /// The version understood.
        known: u8,
    },
    /// A list or byte string above its bound.
    #[error("{what} has length {given}, at most {max} is allowed")]
    TooLong {
        /// The field being read.
        what: &'static str,
        /// The length found.
        given: usize,
        /// The largest allowed.
        max: usize,
    },
    /// A value outside the field's range.
    #[error("{what} has the unknown value {given}")]
    UnknownValue {
        /// The field being read.
        what: &'static str,
        /// The value found.
        given: u64,
    },
    /// A transaction inside the value cannot be read.
    #[error("transaction {index}: {error}")]
    Transaction {
        /// Its position.
        index: usize,
        /// What is wrong with it.
        error: crate::transaction::TransactionDecodeError,
    },
}

/// Appends fields to a buffer.
#[derive(Clone, Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// A buffer that begins with a format version.
    pub fn versioned(version: u8, bytes_expected: usize) -> Self {
        let mut writer = Self(Vec::with_capacity(bytes_expected));
        writer.u8(version);
        writer
    }

    /// Writes one byte.
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    /// Writes four bytes.
    pub fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    /// Writes eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    /// Writes sixteen bytes.
    pub fn u128(&mut self, value: u128) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    /// Writes thirty-two bytes.
    pub fn u256(&mut self, value: U256) {
        self.0.extend_from_slice(&value.to_be_bytes::<32>());
    }

    /// Writes twenty bytes.
    pub fn address(&mut self, value: Address) {
        self.0.extend_from_slice(value.as_slice());
    }

    /// Writes thirty-two bytes.
    pub fn b256(&mut self, value: B256) {
        self.0.extend_from_slice(value.as_slice());
    }

    /// Writes bytes whose length the format fixes.
    pub fn raw(&mut self, value: &[u8]) {
        self.0.extend_from_slice(value);
    }

    /// Writes the count of a list.
    pub fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).expect("lists are bounded far below 2^32"));
    }

    /// Writes a length and the bytes.
    pub fn bytes(&mut self, value: &[u8]) {
        self.count(value.len());
        self.raw(value);
    }

    /// The finished encoding.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Takes fields from the front of a slice.
#[derive(Clone, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the start of `input`.
    pub fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Checks the version byte at the front.
    pub fn versioned(input: &'a [u8], what: &'static str, known: u8) -> Result<Self, DecodeError> {
        let mut reader = Self(input);
        let given = reader.u8(what)?;
        if given != known {
            return Err(DecodeError::UnknownVersion { what, given, known });
        }
        Ok(reader)
    }

    /// Takes `length` bytes as they are.
    pub fn raw(&mut self, what: &'static str, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(DecodeError::TooShort {
            what,
            needed: length,
            left: self.0.len(),
        })?;
        self.0 = rest;
        Ok(taken)
    }

    /// All that is left.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        Ok(self.raw(what, N)?.try_into().expect("raw returns the length asked for"))
    }

    /// Reads one byte.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(what)?[0])
    }

    /// Reads four bytes.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array(what)?))
    }

    /// Reads eight bytes.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array(what)?))
    }

    /// Reads sixteen bytes.
    pub fn u128(&mut self, what: &'static str) -> Result<u128, DecodeError> {
        Ok(u128::from_be_bytes(self.array(what)?))
    }

    /// Reads thirty-two bytes as a number.
    pub fn u256(&mut self, what: &'static str) -> Result<U256, DecodeError> {
        Ok(U256::from_be_bytes(self.array::<32>(what)?))
    }

    /// Reads twenty bytes.
    pub fn address(&mut self, what: &'static str) -> Result<Address, DecodeError> {
        Ok(Address::from(self.array::<20>(what)?))
    }

    /// Reads thirty-two bytes.
    pub fn b256(&mut self, what: &'static str) -> Result<B256, DecodeError> {
        Ok(B256::from(self.array::<32>(what)?))
    }

    /// Reads the count of a list, which may not exceed `max`.
    pub fn count(&mut self, what: &'static str, max: usize) -> Result<usize, DecodeError> {
        let given = usize::try_from(self.u32(what)?).unwrap_or(usize::MAX);
        if given > max {
            return Err(DecodeError::TooLong { what, given, max });
        }
        Ok(given)
    }

    /// Reads a length, which may not exceed `max`, and that many bytes.
    pub fn bytes(&mut self, what: &'static str, max: usize) -> Result<Bytes, DecodeError> {
        let length = self.count(what, max)?;
        Ok(Bytes::copy_from_slice(self.raw(what, length)?))
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that nothing is left.
    pub fn finish(self, what: &'static str) -> Result<(), DecodeError> {
        match self.0.len() {
            0 => Ok(()),
            extra => Err(DecodeError::TrailingBytes { what, extra }),
        }
    }
}
