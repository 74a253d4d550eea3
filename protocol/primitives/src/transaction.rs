//! Signed transactions: Ethereum's legacy, 2930, 1559 and 7702 kinds. Developer chains also have impersonated ones:
//!
//! ```text
//! 0x7d │ sender, 20 bytes │ one of Ethereum's kinds, with a fixed placeholder for the signature
//! ```

use crate::{params::TRANSACTION_BYTES_MAX, units::GasPrice};
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
    #[error("transaction type {given} is unknown; known: legacy, 1 (EIP-2930), 2 (EIP-1559), 4 (EIP-7702)")]
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
        let Content::Ethereum { envelope, .. } = &self.0.content;
        Some(envelope)
    }

    /// In whose name it was made, where that is not for a signature to say.
    pub fn impersonated(&self) -> Option<Address> {
        let Content::Ethereum { impersonated, .. } = &self.0.content;
        *impersonated
    }

    /// Its EIP-2718 type; of an impersonated one, that of the kind inside.
    pub fn transaction_type(&self) -> u8 {
        let Content::Ethereum { envelope, .. } = &self.0.content;
        envelope.tx_type().into()
    }

    /// The chain it is for; `None` is any.
    pub fn chain_id(&self) -> Option<u64> {
        let Content::Ethereum { envelope, .. } = &self.0.content;
        envelope.chain_id()
    }

    /// The sender's sequence number.
    pub fn nonce(&self) -> u64 {
        let Content::Ethereum { envelope, .. } = &self.0.content;
        envelope.nonce()
    }

    /// Gas that it may use.
    pub fn gas_limit(&self) -> u64 {
        let Content::Ethereum { envelope, .. } = &self.0.content;
        envelope.gas_limit()
    }

    /// The account it calls; `None` if it creates a contract.
    pub fn to(&self) -> Option<Address> {
        let Content::Ethereum { envelope, .. } = &self.0.content;
        envelope.to()
    }

    /// Whether it creates a contract at its top level.
    pub fn is_create(&self) -> bool {
        self.to().is_none()
    }

    /// What it moves out of the sender's balance, fees apart.
    pub fn value(&self) -> U256 {
        let Content::Ethereum { envelope, .. } = &self.0.content;
        envelope.value()
    }

    /// Calldata or init code.
    pub fn input(&self) -> &Bytes {
        let Content::Ethereum { envelope, .. } = &self.0.content;
        envelope.input()
    }

    /// Accounts and slots that it pays for ahead (EIP-2930).
    pub fn access_list(&self) -> Option<&AccessList> {
        let Content::Ethereum { envelope, .. } = &self.0.content;
        envelope.access_list()
    }

    /// Delegations that it brings (EIP-7702); `None` in other kinds.
    pub fn authorization_list(&self) -> Option<&[SignedAuthorization]> {
        let Content::Ethereum { envelope, .. } = &self.0.content;
        envelope.authorization_list()
    }

    /// The most it pays per gas.
    pub fn fee_cap(&self) -> GasPrice {
        let Content::Ethereum { envelope, .. } = &self.0.content;
        GasPrice(envelope.max_fee_per_gas())
    }

    /// The most it pays per gas beyond the base fee; `None` in kinds with a single price.
    pub fn tip_cap(&self) -> Option<GasPrice> {
        let Content::Ethereum { envelope, .. } = &self.0.content;
        envelope.max_priority_fee_per_gas().map(GasPrice)
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

/// A transaction whose own signature has been turned into an address, and the signatures of its authorisations not
/// yet. Recovering those takes long, and can wait until it is known that the sender can pay for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTransaction {
    transaction: UserTransaction,
    sender: Address,
}

impl SignedTransaction {
    /// Recovers the sender, at the price of one signature. Whether the chain takes impersonated ones is not asked here.
    pub fn recover(transaction: UserTransaction) -> Result<Self, SignatureError> {
        let Content::Ethereum { envelope, impersonated } = &transaction.0.content;
        let sender = match impersonated {
            Some(sender) => *sender,
            None => envelope.recover_signer().map_err(|_| SignatureError { hash: transaction.hash() })?,
        };
        Ok(Self { transaction, sender })
    }

    /// The signed transaction.
    pub fn transaction(&self) -> &UserTransaction {
        &self.transaction
    }

    /// Who signed it, or in whose name it was made.
    pub fn sender(&self) -> Address {
        self.sender
    }

    /// How many signatures [`recover_authorities`](Self::recover_authorities) recovers.
    pub fn authorizations(&self) -> usize {
        self.transaction.authorization_list().map_or(0, <[_]>::len)
    }

    /// Recovers every authority of EIP-7702, at the price of a signature each.
    pub fn recover_authorities(self) -> RecoveredTransaction {
        let Self { transaction, sender } = self;
        // An authorisation with a bad signature is skipped in execution, it does not void the transaction.
        let authorities = transaction
            .authorization_list()
            .unwrap_or_default()
            .iter()
            .map(|signed| signed.recover_authority().ok())
            .collect();
        RecoveredTransaction { transaction, sender, authorities }
    }
}

/// A transaction whose signatures have been checked and turned into addresses. Cloning shares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredTransaction {
    transaction: UserTransaction,
    sender: Address,
    authorities: Arc<[Option<Address>]>,
}

/// The signature is not one, or not in its low-s form (EIP-2).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("transaction {hash} has no valid signature: it must be a low-s secp256k1 signature (EIP-2)")]
pub struct SignatureError {
    /// The transaction.
    pub hash: B256,
}

impl RecoveredTransaction {
    /// Recovers the sender and, for EIP-7702, every authority. This is the expensive part of taking a
    /// transaction in; it needs no state and can run on any core. Whether the chain takes impersonated ones is
    /// not asked here.
    pub fn recover(transaction: UserTransaction) -> Result<Self, SignatureError> {
        Ok(SignedTransaction::recover(transaction)?.recover_authorities())
    }

    /// The signed transaction.
    pub fn transaction(&self) -> &UserTransaction {
        &self.transaction
    }

    /// Who signed it, or in whose name it was made.
    pub fn sender(&self) -> Address {
        self.sender
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
