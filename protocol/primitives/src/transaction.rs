//! Signed transactions: Ethereum's legacy, 2930, 1559 and 7702 kinds, and the chain's own ([`crate::native`]).
//! Developer chains also have impersonated ones:
//!
//! ```text
//! 0x7d │ sender, 20 bytes │ one of Ethereum's kinds, with a fixed placeholder for the signature
//! ```

use crate::{
    chain::Chain,
    native::{
        AuthenticatorError, Kind, NATIVE_TYPE, NativeDecodeError, NativeError, NativeTransaction, Proven,
    },
    params::TRANSACTION_BYTES_MAX,
    units::GasPrice,
};
use alloy_consensus::{
    EthereumTxEnvelope, EthereumTypedTransaction, Transaction as _, TxEip4844, transaction::SignerRecoverable,
};
use alloy_eips::{
    eip2718::{Decodable2718, Encodable2718},
    eip2930::AccessList,
    eip7702::SignedAuthorization,
};
use alloy_primitives::{Address, B256, Bytes, Signature, TxHash, U256, keccak256};
use std::sync::Arc;

/// The signed envelope as alloy knows it.
pub type Envelope = EthereumTxEnvelope<TxEip4844>;

/// A transaction that nobody has signed.
pub type Unsigned = EthereumTypedTransaction<TxEip4844>;

/// EIP-2718 type of a transaction in the name of a sender who has not signed it.
pub const IMPERSONATED_TYPE: u8 = 0x7d;

/// Stands where an impersonated sender would have signed. It is one value, so that one transaction has one hash.
pub const PLACEHOLDER_SIGNATURE: Signature = Signature::new(U256::ONE, U256::ONE, false);

const BLOB_TYPE: u8 = 3;

/// A decoded, canonical transaction, signed or in an impersonated sender's name. Cloning shares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserTransaction(Arc<Inner>);

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    content: Content,
    encoded: Bytes,
    hash: TxHash,
}

/// What the bytes are.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    /// One of Ethereum's kinds, signed or in an impersonated sender's name.
    Ethereum { envelope: Envelope, impersonated: Option<Address> },
    /// The chain's own kind.
    Native(NativeTransaction),
}

/// What keeps a transaction from running twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReplayProtector {
    /// The account's sequence number.
    Sequence(u64),
    /// Any nonce, with the second from which on it is refused.
    Nonce {
        /// The nonce.
        nonce: u64,
        /// The second.
        expiration: u64,
    },
}

/// Why bytes are not a transaction that this chain takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionDecodeError {
    /// Nothing was sent.
    #[error("the transaction is empty")]
    Empty,
    /// Larger than a transaction may be.
    #[error("transaction of {given} bytes is above the limit of {max} bytes")]
    TooLarge {
        /// Its size.
        given: usize,
        /// The largest allowed.
        max: usize,
    },
    /// EIP-4844 blob transactions have no place here.
    #[error("blob transactions (type 3) are not supported: there is no blob space; send calldata instead")]
    BlobUnsupported,
    /// A type byte that stands for nothing.
    #[error(
        "transaction type {given} is unknown; known: legacy, 1 (EIP-2930), 2 (EIP-1559), 4 (EIP-7702), 114 (native)"
    )]
    UnknownType {
        /// The type byte.
        given: u8,
    },
    /// Not valid RLP for its type.
    #[error("transaction cannot be decoded: {reason}")]
    Malformed {
        /// What the decoder said.
        reason: String,
    },
    /// Decodes, but to something whose proper encoding is different.
    #[error("transaction is not in its canonical encoding")]
    NotCanonical,
    /// An impersonated transaction with a signature of its own.
    #[error("an impersonated transaction carries the placeholder (r = s = 1) for a signature, nothing else")]
    NotPlaceholder,
    /// A native transaction outside its bounds.
    #[error("native transaction: {0}")]
    Native(#[from] NativeError),
}

impl UserTransaction {
    /// Reads the EIP-2718 encoding, refusing any that is not the one canonical form.
    pub fn decode(encoded: &[u8]) -> Result<Self, TransactionDecodeError> {
        let first = *encoded.first().ok_or(TransactionDecodeError::Empty)?;
        if encoded.len() > TRANSACTION_BYTES_MAX {
            return Err(TransactionDecodeError::TooLarge {
                given: encoded.len(),
                max: TRANSACTION_BYTES_MAX,
            });
        }
        let transaction = match first {
            IMPERSONATED_TYPE => Self::decode_impersonated(&encoded[1..])?,
            NATIVE_TYPE => Self::of_native(decode_native(&encoded[1..])?),
            _ => Self::new(decode_envelope(encoded)?, None),
        };
        // One transaction, one encoding: otherwise the same payment would have several hashes.
        if transaction.encoded()[..] != *encoded {
            return Err(TransactionDecodeError::NotCanonical);
        }
        Ok(transaction)
    }

    fn decode_impersonated(rest: &[u8]) -> Result<Self, TransactionDecodeError> {
        let (sender, encoded) = rest.split_at_checked(20).ok_or_else(|| {
            TransactionDecodeError::Malformed { reason: "it ends within the sender".to_owned() }
        })?;
        let envelope = decode_envelope(encoded)?;
        if *envelope.signature() != PLACEHOLDER_SIGNATURE {
            return Err(TransactionDecodeError::NotPlaceholder);
        }
        Ok(Self::new(envelope, Some(Address::from_slice(sender))))
    }

    /// A transaction in the name of `sender`, who has not signed it. Only a developer's chain takes it.
    pub fn impersonate(sender: Address, transaction: Unsigned) -> Result<Self, TransactionDecodeError> {
        let envelope = Envelope::new_unhashed(transaction, PLACEHOLDER_SIGNATURE);
        // By way of the decoder, which knows every rule.
        Self::decode(Self::new(envelope, Some(sender)).encoded())
    }

    /// A native transaction, within its bounds.
    pub fn native_signed(transaction: NativeTransaction) -> Result<Self, TransactionDecodeError> {
        // By way of the decoder, which knows every rule.
        Self::decode(Self::of_native(transaction).encoded())
    }

    fn of_native(transaction: NativeTransaction) -> Self {
        let mut encoded = Vec::new();
        transaction.encode_2718(&mut encoded);
        let hash = keccak256(&encoded);
        Self(Arc::new(Inner { content: Content::Native(transaction), encoded: encoded.into(), hash }))
    }

    fn new(envelope: Envelope, impersonated: Option<Address>) -> Self {
        let mut encoded = Vec::with_capacity(envelope.encode_2718_len() + 21);
        if let Some(sender) = impersonated {
            encoded.push(IMPERSONATED_TYPE);
            encoded.extend_from_slice(sender.as_slice());
        }
        envelope.encode_2718(&mut encoded);
        let hash = keccak256(&encoded);
        // Whoever looks at the envelope alone finds the same hash, also where more than the envelope is hashed.
        let signature = *envelope.signature();
        let envelope = Envelope::new_unchecked(envelope.into_typed_transaction(), signature, hash);
        let content = Content::Ethereum { envelope, impersonated };
        Self(Arc::new(Inner { content, encoded: encoded.into(), hash }))
    }

    /// The canonical EIP-2718 encoding.
    pub fn encoded(&self) -> &Bytes {
        &self.0.encoded
    }

    /// Its name: keccak-256 of the encoding.
    pub fn hash(&self) -> TxHash {
        self.0.hash
    }

    /// One of Ethereum's kinds as alloy knows it. Of an impersonated one, what stands for the signature means nothing.
    pub fn envelope(&self) -> Option<&Envelope> {
        match &self.0.content {
            Content::Ethereum { envelope, .. } => Some(envelope),
            Content::Native(_) => None,
        }
    }

    /// The chain's own kind.
    pub fn native(&self) -> Option<&NativeTransaction> {
        match &self.0.content {
            Content::Ethereum { .. } => None,
            Content::Native(native) => Some(native),
        }
    }

    /// In whose name it was made, where that is not for a signature to say.
    pub fn impersonated(&self) -> Option<Address> {
        match &self.0.content {
            Content::Ethereum { impersonated, .. } => *impersonated,
            Content::Native(_) => None,
        }
    }

    /// Its EIP-2718 type; of an impersonated one, that of the kind inside.
    pub fn transaction_type(&self) -> u8 {
        match &self.0.content {
            Content::Ethereum { envelope, .. } => envelope.tx_type().into(),
            Content::Native(_) => NATIVE_TYPE,
        }
    }

    /// The chain it is for; `None` is any.
    pub fn chain_id(&self) -> Option<u64> {
        match &self.0.content {
            Content::Ethereum { envelope, .. } => envelope.chain_id(),
            Content::Native(native) => Some(native.chain_id),
        }
    }

    /// The sender's sequence number; of an orderless one, its nonce.
    pub fn nonce(&self) -> u64 {
        match &self.0.content {
            Content::Ethereum { envelope, .. } => envelope.nonce(),
            Content::Native(native) => native.nonce,
        }
    }

    /// What keeps it from running twice.
    pub fn replay_protector(&self) -> ReplayProtector {
        match &self.0.content {
            Content::Native(native) if native.kind == Kind::Orderless => {
                ReplayProtector::Nonce { nonce: native.nonce, expiration: native.expiration }
            }
            _ => ReplayProtector::Sequence(self.nonce()),
        }
    }

    /// Whether it has a nonce of its own instead of the account's next number.
    pub fn is_orderless(&self) -> bool {
        matches!(self.replay_protector(), ReplayProtector::Nonce { .. })
    }

    /// The second from which on it is refused; `None` is never.
    pub fn expiration(&self) -> Option<u64> {
        self.native().map(|native| native.expiration).filter(|second| *second > 0 || self.is_orderless())
    }

    /// Gas that it may use.
    pub fn gas_limit(&self) -> u64 {
        match &self.0.content {
            Content::Ethereum { envelope, .. } => envelope.gas_limit(),
            Content::Native(native) => native.gas_limit,
        }
    }

    /// The account it calls: the sender itself for a batch, `None` if it creates a contract.
    pub fn to(&self) -> Option<Address> {
        match &self.0.content {
            Content::Ethereum { envelope, .. } => envelope.to(),
            Content::Native(native) => native.only_call().map_or(Some(native.sender), |call| call.to),
        }
    }

    /// Whether it creates a contract at its top level.
    pub fn is_create(&self) -> bool {
        self.to().is_none()
    }

    /// What it moves out of the sender's balance, fees apart.
    pub fn value(&self) -> U256 {
        match &self.0.content {
            Content::Ethereum { envelope, .. } => envelope.value(),
            Content::Native(native) => native.value(),
        }
    }

    /// Calldata or init code; empty for a batch.
    pub fn input(&self) -> &Bytes {
        static EMPTY: Bytes = Bytes::new();
        match &self.0.content {
            Content::Ethereum { envelope, .. } => envelope.input(),
            Content::Native(native) => native.only_call().map_or(&EMPTY, |call| &call.input),
        }
    }

    /// Who pays for the gas, if not the sender.
    pub fn fee_payer(&self) -> Option<Address> {
        self.native().and_then(|native| native.fee_payer)
    }

    /// Signatures to recover before its sender is known, authorisations apart.
    pub fn signature_count(&self) -> usize {
        match &self.0.content {
            Content::Ethereum { impersonated, .. } => usize::from(impersonated.is_none()),
            Content::Native(native) => native.signature_count(),
        }
    }

    /// Signatures to recover until it is ready to run, authorisations among them. Naming none costs as much as one.
    pub fn recovery_count(&self) -> usize {
        self.signature_count().max(1) + self.authorization_count()
    }

    fn authorization_count(&self) -> usize {
        self.authorization_list().map_or(0, <[_]>::len)
    }

    /// Accounts and slots that it pays for ahead (EIP-2930).
    pub fn access_list(&self) -> Option<&AccessList> {
        self.envelope().and_then(|envelope| envelope.access_list())
    }

    /// Delegations that it brings (EIP-7702); `None` in other kinds.
    pub fn authorization_list(&self) -> Option<&[SignedAuthorization]> {
        self.envelope().and_then(|envelope| envelope.authorization_list())
    }

    /// The most it pays per gas.
    pub fn fee_cap(&self) -> GasPrice {
        match &self.0.content {
            Content::Ethereum { envelope, .. } => GasPrice(envelope.max_fee_per_gas()),
            Content::Native(native) => native.fee_cap(),
        }
    }

    /// The most it pays per gas beyond the base fee; `None` in kinds with a single price.
    pub fn tip_cap(&self) -> Option<GasPrice> {
        match &self.0.content {
            Content::Ethereum { envelope, .. } => envelope.max_priority_fee_per_gas().map(GasPrice),
            Content::Native(native) => Some(GasPrice(native.max_priority_fee_per_gas)),
        }
    }

    /// What it pays per gas beyond `base_fee`, or `None` where its cap is below that.
    pub fn tip_at(&self, base_fee: GasPrice) -> Option<GasPrice> {
        let room = self.fee_cap().0.checked_sub(base_fee.0)?;
        Some(GasPrice(self.tip_cap().map_or(room, |tip| tip.0.min(room))))
    }

    /// What it pays per gas in a block with this base fee.
    pub fn price_at(&self, base_fee: GasPrice) -> Option<GasPrice> {
        self.tip_at(base_fee).map(|tip| GasPrice(base_fee.0.saturating_add(tip.0)))
    }
}

/// Reads one of Ethereum's kinds.
fn decode_envelope(encoded: &[u8]) -> Result<Envelope, TransactionDecodeError> {
    match *encoded.first().ok_or(TransactionDecodeError::Empty)? {
        BLOB_TYPE => return Err(TransactionDecodeError::BlobUnsupported),
        1 | 2 | 4 | 0xc0..=0xff => {}
        given => return Err(TransactionDecodeError::UnknownType { given }),
    }
    Envelope::decode_2718_exact(encoded)
        .map_err(|error| TransactionDecodeError::Malformed { reason: error.to_string() })
}

fn decode_native(rest: &[u8]) -> Result<NativeTransaction, TransactionDecodeError> {
    NativeTransaction::decode_fields(rest).map_err(|error| match error {
        NativeDecodeError::Bounds(error) => error.into(),
        NativeDecodeError::Rlp(error) => TransactionDecodeError::Malformed { reason: error.to_string() },
    })
}

/// A transaction whose own signature has been turned into an address, and the signatures of its authorisations not
/// yet. Recovering those takes long, and can wait until it is known that the sender can pay for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTransaction {
    transaction: UserTransaction,
    sender: Address,
    proven: Option<Arc<Proven>>,
}

impl SignedTransaction {
    /// Recovers the sender, or the keys that signed a native transaction, at the price of a signature each. Whether
    /// the chain takes impersonated ones, and whose keys those are, is not asked here.
    pub fn recover(transaction: UserTransaction, chain: &Chain) -> Result<Self, RecoverError> {
        let hash = transaction.hash();
        let (sender, proven) = match &transaction.0.content {
            Content::Ethereum { impersonated: Some(sender), .. } => (*sender, None),
            Content::Ethereum { envelope, impersonated: None } => {
                (envelope.recover_signer().map_err(|_| SignatureError { hash })?, None)
            }
            Content::Native(native) => (native.sender, Some(Arc::new(native.prove(chain, hash)?))),
        };
        Ok(Self { transaction, sender, proven })
    }

    /// The signed transaction.
    pub fn transaction(&self) -> &UserTransaction {
        &self.transaction
    }

    /// Who signed it, or in whose name it was made.
    pub fn sender(&self) -> Address {
        self.sender
    }

    /// The keys that signed a native transaction.
    pub fn proven(&self) -> Option<&Proven> {
        self.proven.as_deref()
    }

    /// How many signatures [`recover_authorities`](Self::recover_authorities) recovers.
    pub fn authorizations(&self) -> usize {
        self.transaction.authorization_count()
    }

    /// Recovers every authority of EIP-7702, at the price of a signature each.
    pub fn recover_authorities(self) -> RecoveredTransaction {
        let Self { transaction, sender, proven } = self;
        // An authorisation with a bad signature is skipped in execution, it does not void the transaction.
        let authorities = transaction
            .authorization_list()
            .unwrap_or_default()
            .iter()
            .map(|signed| signed.recover_authority().ok())
            .collect();
        RecoveredTransaction { transaction, sender, proven, authorities }
    }
}

/// A transaction whose signatures have been checked and turned into addresses or keys. Cloning shares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredTransaction {
    transaction: UserTransaction,
    sender: Address,
    proven: Option<Arc<Proven>>,
    authorities: Arc<[Option<Address>]>,
}

/// The signature is not one, or not in its low-s form (EIP-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("transaction {hash} has no valid signature: it must be a low-s secp256k1 signature (EIP-2)")]
pub struct SignatureError {
    /// The transaction.
    pub hash: B256,
}

/// Why a transaction's signatures tell nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// One of Ethereum's kinds.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// A native one.
    #[error(transparent)]
    Authenticator(#[from] AuthenticatorError),
}

impl RecoveredTransaction {
    /// Recovers the sender and, for EIP-7702, every authority. This is the expensive part of taking a
    /// transaction in; it needs no state and can run on any core. Whether the chain takes impersonated ones, and
    /// whose keys signed a native one, is not asked here.
    pub fn recover(transaction: UserTransaction, chain: &Chain) -> Result<Self, RecoverError> {
        Ok(SignedTransaction::recover(transaction, chain)?.recover_authorities())
    }

    /// The signed transaction.
    pub fn transaction(&self) -> &UserTransaction {
        &self.transaction
    }

    /// Who signed it, or in whose name it was made. A native one names its sender; that its keys are the sender's is
    /// checked against the state.
    pub fn sender(&self) -> Address {
        self.sender
    }

    /// The keys that signed a native transaction.
    pub fn proven(&self) -> Option<&Proven> {
        self.proven.as_deref()
    }

    /// The signers of its EIP-7702 authorisations, in order; `None` where a signature is invalid.
    pub fn authorities(&self) -> &[Option<Address>] {
        &self.authorities
    }

    /// Its hash.
    pub fn hash(&self) -> TxHash {
        self.transaction.hash()
    }
}
