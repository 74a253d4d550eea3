//! The chain's own transaction type: one call or an atomic batch, a sequence number or a nonce with an expiration, an
//! optional fee payer, and keys of either curve or trees of them. `specs/native-transaction.md` has every byte.
//!
//! ```text
//! 0x72 │ rlp([chainId, sender, kind, nonce, expiration, maxPriorityFeePerGas, maxFeePerGas, gasLimit,
//!              [[to, value, input] …], feePayer, [signature …], [feePayerSignature …]])
//! ```

mod rlp;
mod typed_data;

pub(crate) use rlp::NativeDecodeError;

use crate::{
    chain::Chain,
    keys::{Leaf, ProofError, SIGNATURES_MAX, SignatureFault, check_form, prove},
    units::GasPrice,
};
use alloy_primitives::{Address, Bytes, TxHash, U256, keccak256};

/// EIP-2718 type of a native transaction.
pub const NATIVE_TYPE: u8 = 0x72;

/// Most calls of one transaction.
pub const CALLS_MAX: usize = 64;

/// What keeps a transaction from running twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The account's sequence number, as in Ethereum.
    Sequence = 0,
    /// Any nonce, once until it expires (orderless).
    Orderless = 1,
}

/// A native transaction with its signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeTransaction {
    /// The chain it is for.
    pub chain_id: u64,
    /// In whose name it acts.
    pub sender: Address,
    /// What keeps it from running twice.
    pub kind: Kind,
    /// The sender's sequence number, or any number if it is orderless.
    pub nonce: u64,
    /// The second from which on it is refused; 0 is never, which an orderless one may not say.
    pub expiration: u64,
    /// The most it pays per gas beyond the base fee.
    pub max_priority_fee_per_gas: u128,
    /// The most it pays per gas.
    pub max_fee_per_gas: u128,
    /// Gas that it may use.
    pub gas_limit: u64,
    /// What it does, in order; all or nothing.
    pub calls: Vec<NativeCall>,
    /// Who pays for the gas, if not the sender.
    pub fee_payer: Option<Address>,
    /// Of the sender's key.
    pub signatures: Vec<Bytes>,
    /// Of the fee payer's key.
    pub fee_payer_signatures: Vec<Bytes>,
}

/// One call of a native transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeCall {
    /// The account it calls; `None` creates a contract.
    pub to: Option<Address>,
    /// Moves with it, out of the sender's balance.
    pub value: U256,
    /// Calldata or init code.
    pub input: Bytes,
}

/// Which bound a native transaction breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NativeError {
    /// A kind that stands for nothing.
    #[error("kind {given} is unknown; 0 is a sequence number, 1 an orderless nonce")]
    UnknownKind {
        /// The kind.
        given: u8,
    },
    /// It does nothing, or too much.
    #[error("TooManyCalls: {given} calls; 1 to {CALLS_MAX} are allowed")]
    TooManyCalls {
        /// How many.
        given: usize,
    },
    /// A contract creation among other calls.
    #[error("CreationNotAlone: call {index} creates a contract, which must be the only call")]
    CreationNotAlone {
        /// Its position.
        index: usize,
    },
    /// The values of its calls do not fit 256 bits together.
    #[error("the values of its calls overflow 256 bits")]
    ValueOverflow,
    /// No signatures, or more than a key has leaves.
    #[error("{given} signatures of the {signer}; {min} to {max} are allowed")]
    SignatureCount {
        /// Whose.
        signer: Signer,
        /// How many.
        given: usize,
        /// At least.
        min: usize,
        /// At most.
        max: usize,
    },
    /// A signature that cannot be one.
    #[error("signature {index} of the {signer} is malformed: {fault}")]
    SignatureMalformed {
        /// Whose.
        signer: Signer,
        /// Its position.
        index: usize,
        /// What is wrong with it.
        fault: SignatureFault,
    },
    /// The sender pays anyway.
    #[error("FeePayerIsSender: {sender} pays for its own transactions without being named as the fee payer")]
    FeePayerIsSender {
        /// The sender.
        sender: Address,
    },
}

/// The two parties that sign a native transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signer {
    /// In whose name it acts.
    Sender,
    /// Who pays for its gas.
    FeePayer,
}

impl std::fmt::Display for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sender => "sender",
            Self::FeePayer => "fee payer",
        })
    }
}

/// A native transaction's signatures prove nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("transaction {hash}, {signer}: {error}")]
pub struct AuthenticatorError {
    /// The transaction.
    pub hash: TxHash,
    /// Whose signatures.
    pub signer: Signer,
    /// What is wrong with them.
    pub error: ProofError,
}

/// The keys that a native transaction's signatures prove. Whether they are those of its accounts is a question of
/// state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proven {
    /// Of the sender's signatures, ascending.
    pub sender: Vec<Leaf>,
    /// Of the fee payer's, ascending; none without a fee payer.
    pub fee_payer: Vec<Leaf>,
}

impl NativeTransaction {
    /// Checks every bound that needs neither state nor curve arithmetic.
    pub fn check_bounds(&self) -> Result<(), NativeError> {
        let count = self.calls.len();
        if count == 0 || count > CALLS_MAX {
            return Err(NativeError::TooManyCalls { given: count });
        }
        if let Some(index) = self.calls.iter().position(|call| call.to.is_none())
            && count > 1
        {
            return Err(NativeError::CreationNotAlone { index });
        }
        self.checked_value().ok_or(NativeError::ValueOverflow)?;
        if self.fee_payer == Some(self.sender) {
            return Err(NativeError::FeePayerIsSender { sender: self.sender });
        }
        check_signatures(Signer::Sender, &self.signatures, true)?;
        check_signatures(Signer::FeePayer, &self.fee_payer_signatures, self.fee_payer.is_some())
    }

    /// Turns its signatures into the keys that made them, for this chain: the expensive part, which needs no state.
    pub fn prove(&self, chain: &Chain, hash: TxHash) -> Result<Proven, AuthenticatorError> {
        let failed = |signer| move |error| AuthenticatorError { hash, signer, error };
        let sender = prove(self.signing_hash(chain), &self.signatures).map_err(failed(Signer::Sender))?;
        let fee_payer = match self.fee_payer {
            Some(_) => prove(self.fee_payer_signing_hash(chain), &self.fee_payer_signatures)
                .map_err(failed(Signer::FeePayer))?,
            None => Vec::new(),
        };
        Ok(Proven { sender, fee_payer })
    }

    /// All signatures that must be recovered.
    pub fn signature_count(&self) -> usize {
        self.signatures.len() + self.fee_payer_signatures.len()
    }

    /// What its calls move together.
    pub fn value(&self) -> U256 {
        self.checked_value().unwrap_or(U256::MAX)
    }

    fn checked_value(&self) -> Option<U256> {
        self.calls.iter().try_fold(U256::ZERO, |sum, call| sum.checked_add(call.value))
    }

    /// Whether it creates a contract.
    pub fn is_create(&self) -> bool {
        self.calls.first().is_some_and(|call| call.to.is_none())
    }

    /// The one call, unless it is a batch.
    pub fn only_call(&self) -> Option<&NativeCall> {
        match &self.calls[..] {
            [call] => Some(call),
            _ => None,
        }
    }

    /// The most it pays per gas.
    pub fn fee_cap(&self) -> GasPrice {
        GasPrice(self.max_fee_per_gas)
    }

    /// The salt of a contract that an orderless transaction creates: unlike a sequence number, it never comes again,
    /// since it has the transaction's hash in it.
    pub fn creation_salt(hash: TxHash) -> U256 {
        let mut bytes = [0u8; 14 + 32];
        bytes[..14].copy_from_slice(b"almanac create");
        bytes[14..].copy_from_slice(hash.as_slice());
        keccak256(bytes).into()
    }
}

fn check_signatures(signer: Signer, signatures: &[Bytes], is_signing: bool) -> Result<(), NativeError> {
    let given = signatures.len();
    let (min, max) = if is_signing { (1, SIGNATURES_MAX) } else { (0, 0) };
    if given < min || given > max {
        return Err(NativeError::SignatureCount { signer, given, min, max });
    }
    for (index, signature) in signatures.iter().enumerate() {
        check_form(signature).map_err(|fault| NativeError::SignatureMalformed { signer, index, fault })?;
    }
    Ok(())
}
