//! How something ended, as Hedera's response codes say it.

use almanac_primitives::{Halt, Outcome};

/// A code of Hedera's `ResponseCodeEnum` that a receipt may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ReceiptStatus {
    /// Its money did not cover it.
    InsufficientPayerBalance = 10,
    /// It returned.
    Success = 22,
    /// The gas was used up.
    InsufficientGas = 30,
    /// It reverted.
    ContractRevertExecuted = 33,
    /// The machine stopped it for another reason.
    ContractExecutionException = 34,
}

impl ReceiptStatus {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::InsufficientPayerBalance,
        Self::Success,
        Self::InsufficientGas,
        Self::ContractRevertExecuted,
        Self::ContractExecutionException,
    ];

    /// The code of an outcome.
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Success => Self::Success,
            Outcome::Reverted(_) => Self::ContractRevertExecuted,
            Outcome::Halted(Halt::OutOfGas) => Self::InsufficientGas,
            Outcome::Halted(Halt::InsufficientBalance) => Self::InsufficientPayerBalance,
            Outcome::Halted(_) => Self::ContractExecutionException,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::InsufficientPayerBalance => "INSUFFICIENT_PAYER_BALANCE",
            Self::Success => "SUCCESS",
            Self::InsufficientGas => "INSUFFICIENT_GAS",
            Self::ContractRevertExecuted => "CONTRACT_REVERT_EXECUTED",
            Self::ContractExecutionException => "CONTRACT_EXECUTION_EXCEPTION",
        }
    }
}
