//! A developer's edits, as calls of the developer door.

use crate::doors::IDeveloper;
use alloy_primitives::{Address, Bytes, U256, hex};
use alloy_sol_types::{SolCall, SolInterface};
use almanac_primitives::{Gas, Halt, Outcome, params::PARAMETERS};

/// One change of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Sets the balance.
    Balance {
        /// The account.
        account: Address,
        /// Its new balance.
        balance: U256,
    },
    /// Sets the code.
    Code {
        /// The account.
        account: Address,
        /// Its new code; empty removes it.
        code: Bytes,
    },
    /// Sets the nonce.
    Nonce {
        /// The account.
        account: Address,
        /// Its new nonce.
        nonce: u64,
    },
    /// Sets one slot of its storage.
    Storage {
        /// The account.
        account: Address,
        /// The slot.
        slot: U256,
        /// Its new value.
        value: U256,
    },
    /// Sets the base fee of the next block.
    NextBaseFee {
        /// In wei per gas.
        base_fee: U256,
    },
}

/// Gas that every edit may use in addition to that for its calldata: setting a parameter reads all of them.
const EDIT_GAS_MAX: u64 = 60_000 + COLD_READ_GAS * PARAMETERS.len() as u64;

/// Gas for reading a slot for the first time (EIP-2929).
const COLD_READ_GAS: u64 = 2_100;

/// Most gas that a byte of calldata can cost: as calldata, under the floor of EIP-7623, and as stored code.
const EDIT_BYTE_GAS_MAX: u64 = 40 + 16 + 200;

impl Edit {
    /// The calldata of the edit.
    pub fn calldata(self) -> Bytes {
        let encoded = match self {
            Self::Balance { account, balance } => {
                IDeveloper::setBalanceCall { account, balance }.abi_encode()
            }
            Self::Code { account, code } => IDeveloper::setCodeCall { account, code }.abi_encode(),
            Self::Nonce { account, nonce } => IDeveloper::setNonceCall { account, nonce }.abi_encode(),
            Self::Storage { account, slot, value } => {
                IDeveloper::setStorageAtCall { account, slot, value }.abi_encode()
            }
            Self::NextBaseFee { base_fee } => {
                IDeveloper::setNextBaseFeeCall { baseFee: base_fee }.abi_encode()
            }
        };
        encoded.into()
    }
}

/// A gas limit that is enough for an edit with this calldata.
pub fn edit_gas(calldata: &[u8]) -> Gas {
    Gas(EDIT_GAS_MAX.saturating_add(EDIT_BYTE_GAS_MAX.saturating_mul(calldata.len() as u64)))
}

/// Why the door rejected an edit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The account belongs to the chain or is the developer account.
    #[error("{account} belongs to the chain itself and cannot be edited")]
    NotEditable {
        /// Which account.
        account: Address,
    },
    /// The developer account cannot pay for the new balance.
    #[error(
        "the balance needs {needed} wei more, but the developer's treasury has only {available} wei to give"
    )]
    TreasuryTooSmall {
        /// How much is to be added.
        needed: U256,
        /// What the treasury has.
        available: U256,
    },
    /// A nonce must not decrease.
    #[error("nonce {given} is below the account's current nonce {current}: a nonce only grows")]
    NonceTooLow {
        /// The requested nonce.
        given: u64,
        /// The account's nonce.
        current: u64,
    },
    /// Code above the limit of EIP-170.
    #[error("code of {given} bytes is above the limit of {max} bytes")]
    CodeTooLarge {
        /// Its size.
        given: U256,
        /// The largest allowed.
        max: U256,
    },
    /// The base fee is outside the allowed range.
    #[error("a base fee of {given} wei per gas is not in {min}..={max}")]
    BaseFeeOutOfBounds {
        /// The requested base fee.
        given: U256,
        /// The floor, which is a parameter.
        min: U256,
        /// The maximum.
        max: U256,
    },
    /// The edit halted.
    #[error("the edit was stopped: {0:?}")]
    Halted(Halt),
    /// Any other revert. Edits built here never cause one.
    #[error("the edit reverted with {}", hex::encode_prefixed(.0))]
    Other(Bytes),
}

impl EditError {
    /// Why an edit failed, if it did.
    pub fn of_outcome(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Success => None,
            Outcome::Reverted(data) => Some(Self::of_revert(data)),
            Outcome::Halted(halt) => Some(Self::Halted(*halt)),
        }
    }

    fn of_revert(data: &Bytes) -> Self {
        use IDeveloper::IDeveloperErrors as Named;
        match Named::abi_decode(data) {
            Ok(Named::NotEditable(error)) => Self::NotEditable { account: error.account },
            Ok(Named::TreasuryTooSmall(error)) => {
                Self::TreasuryTooSmall { needed: error.needed, available: error.available }
            }
            Ok(Named::NonceTooLow(error)) => Self::NonceTooLow { given: error.given, current: error.current },
            Ok(Named::BaseFeeOutOfBounds(error)) => {
                Self::BaseFeeOutOfBounds { given: error.given, min: error.min, max: error.max }
            }
            Ok(Named::CodeTooLarge(error)) => Self::CodeTooLarge { given: error.given, max: error.max },
            Ok(Named::NotDeveloper(_)) | Err(_) => Self::Other(data.clone()),
        }
    }
}
