//! RLP of a native transaction. Lists are bounded before anything is allocated for them.

use super::{CALLS_MAX, Kind, NATIVE_TYPE, NativeCall, NativeError, NativeTransaction, Signer};
use crate::keys::SIGNATURES_MAX;
use alloy_primitives::{Address, Bytes};
use alloy_rlp::{BufMut, Decodable, Encodable, Error, Header};

/// Why bytes are not a native transaction.
#[derive(Debug)]
pub(crate) enum NativeDecodeError {
    Rlp(Error),
    Bounds(NativeError),
}

impl From<Error> for NativeDecodeError {
    fn from(error: Error) -> Self {
        Self::Rlp(error)
    }
}

impl From<NativeError> for NativeDecodeError {
    fn from(error: NativeError) -> Self {
        Self::Bounds(error)
    }
}

impl NativeTransaction {
    /// Appends the EIP-2718 encoding.
    pub(crate) fn encode_2718(&self, out: &mut Vec<u8>) {
        out.push(NATIVE_TYPE);
        Header { list: true, payload_length: self.fields_length() }.encode(out);
        self.chain_id.encode(out);
        self.sender.encode(out);
        (self.kind as u8).encode(out);
        self.nonce.encode(out);
        self.expiration.encode(out);
        self.max_priority_fee_per_gas.encode(out);
        self.max_fee_per_gas.encode(out);
        self.gas_limit.encode(out);
        self.calls.encode(out);
        encode_address(self.fee_payer, out);
        self.signatures.encode(out);
        self.fee_payer_signatures.encode(out);
    }

    fn fields_length(&self) -> usize {
        self.chain_id.length()
            + self.sender.length()
            + (self.kind as u8).length()
            + self.nonce.length()
            + self.expiration.length()
            + self.max_priority_fee_per_gas.length()
            + self.max_fee_per_gas.length()
            + self.gas_limit.length()
            + self.calls.length()
            + address_length(self.fee_payer)
            + self.signatures.length()
            + self.fee_payer_signatures.length()
    }

    /// Reads what follows the type byte, to the end.
    pub(crate) fn decode_fields(mut rest: &[u8]) -> Result<Self, NativeDecodeError> {
        let mut input = Header::decode_bytes(&mut rest, true)?;
        if !rest.is_empty() {
            return Err(Error::UnexpectedLength.into());
        }
        let input = &mut input;
        let transaction = Self {
            chain_id: u64::decode(input)?,
            sender: Address::decode(input)?,
            kind: decode_kind(input)?,
            nonce: u64::decode(input)?,
            expiration: u64::decode(input)?,
            max_priority_fee_per_gas: u128::decode(input)?,
            max_fee_per_gas: u128::decode(input)?,
            gas_limit: u64::decode(input)?,
            calls: decode_list(input, CALLS_MAX, |given| NativeError::TooManyCalls { given })?,
            fee_payer: decode_address(input)?,
            signatures: decode_signatures(input, Signer::Sender)?,
            fee_payer_signatures: decode_signatures(input, Signer::FeePayer)?,
        };
        if !input.is_empty() {
            return Err(Error::UnexpectedLength.into());
        }
        transaction.check_bounds()?;
        Ok(transaction)
    }
}

impl Encodable for NativeCall {
    fn encode(&self, out: &mut dyn BufMut) {
        let payload_length = address_length(self.to) + self.value.length() + self.input.length();
        Header { list: true, payload_length }.encode(out);
        encode_address(self.to, out);
        self.value.encode(out);
        self.input.encode(out);
    }

    fn length(&self) -> usize {
        let payload_length = address_length(self.to) + self.value.length() + self.input.length();
        Header { list: true, payload_length }.length_with_payload()
    }
}

impl Decodable for NativeCall {
    fn decode(input: &mut &[u8]) -> alloy_rlp::Result<Self> {
        let mut fields = Header::decode_bytes(input, true)?;
        let call = Self {
            to: decode_address(&mut fields)?,
            value: Decodable::decode(&mut fields)?,
            input: Decodable::decode(&mut fields)?,
        };
        if fields.is_empty() { Ok(call) } else { Err(Error::UnexpectedLength) }
    }
}

fn encode_address(address: Option<Address>, out: &mut dyn BufMut) {
    address.as_ref().map_or(&[][..], |address| address.as_slice()).encode(out);
}

fn address_length(address: Option<Address>) -> usize {
    address.as_ref().map_or(&[][..], |address| address.as_slice()).length()
}

/// An address, or nothing.
fn decode_address(input: &mut &[u8]) -> alloy_rlp::Result<Option<Address>> {
    match Header::decode_bytes(input, false)? {
        [] => Ok(None),
        bytes => Address::try_from(bytes).map(Some).map_err(|_| Error::UnexpectedLength),
    }
}

fn decode_kind(input: &mut &[u8]) -> Result<Kind, NativeDecodeError> {
    match u8::decode(input)? {
        0 => Ok(Kind::Sequence),
        1 => Ok(Kind::Orderless),
        given => Err(NativeError::UnknownKind { given }.into()),
    }
}

fn decode_signatures(input: &mut &[u8], signer: Signer) -> Result<Vec<Bytes>, NativeDecodeError> {
    let max = SIGNATURES_MAX;
    decode_list(input, max, |given| NativeError::SignatureCount { signer, given, min: 0, max })
}

/// A list of at most `max` items.
fn decode_list<T: Decodable>(
    input: &mut &[u8],
    max: usize,
    too_many: impl Fn(usize) -> NativeError,
) -> Result<Vec<T>, NativeDecodeError> {
    let mut items = Header::decode_bytes(input, true)?;
    let mut list = Vec::new();
    while !items.is_empty() {
        if list.len() == max {
            return Err(too_many(max + 1).into());
        }
        list.push(T::decode(&mut items)?);
    }
    Ok(list)
}
