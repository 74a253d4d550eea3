//! The result of executing a block: receipts, gas and changes, and the header derived from them.

use crate::environment::Environment;
use alloy_primitives::{Address, B256, Bloom, Log, TxHash};
use almanac_primitives::{
    Block, Gas, Halt, Header, Outcome, PrologueTransaction, Receipt, RecoveredTransaction, RunTransaction,
    StateCommitment, StateDiff, UserTransaction, Wei, block::transactions_root, params::PROTOCOL_VERSION,
};
use almanac_schedule::life::LifeEvent;
use revm::context_interface::result::{ExecutionResult, HaltReason};

/// A transaction that ran in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executed {
    /// The prologue.
    Prologue(PrologueTransaction),
    /// A run of a schedule.
    Run(RunTransaction),
    /// A signed transaction.
    User(RecoveredTransaction),
}

impl Executed {
    /// Its hash.
    pub fn hash(&self) -> TxHash {
        match self {
            Self::Prologue(prologue) => prologue.hash(),
            Self::Run(run) => run.hash(),
            Self::User(user) => user.hash(),
        }
    }

    /// The sender; the zero address for the prologue.
    pub fn from(&self) -> Address {
        match self {
            Self::Prologue(_) => Address::ZERO,
            Self::Run(run) => run.from,
            Self::User(user) => user.sender(),
        }
    }

    /// The run, if it is one.
    pub fn run(&self) -> Option<&RunTransaction> {
        match self {
            Self::Run(run) => Some(run),
            Self::Prologue(_) | Self::User(_) => None,
        }
    }

    /// The contract it calls, or `None` for a creation.
    pub fn to(&self) -> Option<Address> {
        match self {
            Self::Prologue(_) => Some(Address::ZERO),
            Self::Run(run) => Some(run.to),
            Self::User(user) => user.transaction().to(),
        }
    }
}

/// The result of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockOutput {
    /// The environment of the block.
    pub environment: Environment,
    /// Everything that ran, in order.
    pub transactions: Vec<Executed>,
    /// The receipt of each.
    pub receipts: Vec<Receipt>,
    /// Root over the receipts.
    pub receipts_root: B256,
    /// Bloom filter over all logs.
    pub logs_bloom: Bloom,
    /// Shared gas used.
    pub gas_used: Gas,
    /// Gas used by the lanes with separate capacity.
    pub reserved_gas_used: Gas,
    /// Money burned: base fees, and the balances of destroyed contracts.
    pub burned: Wei,
    /// Schedule events, in order.
    pub events: Vec<LifeEvent>,
    /// Every changed value, with its old value.
    pub diff: StateDiff,
}

impl BlockOutput {
    /// The user transactions, in final order: the body.
    pub fn block_body(&self) -> impl Iterator<Item = &UserTransaction> {
        self.transactions.iter().filter_map(|executed| match executed {
            Executed::User(user) => Some(user.transaction()),
            Executed::Prologue(_) | Executed::Run(_) => None,
        })
    }

    /// The header of this result, given the store's commitment to the state after it.
    pub fn header(&self, commitment: StateCommitment) -> Header {
        let environment = &self.environment;
        Header {
            parent_hash: environment.parent_hash,
            number: environment.number,
            timestamp: environment.timestamp,
            protocol_version: PROTOCOL_VERSION,
            consensus: environment.consensus,
            fee_recipient: environment.fee_recipient,
            gas_limit: environment.gas_limit,
            gas_used: self.gas_used,
            reserved_gas_used: self.reserved_gas_used,
            base_fee: environment.base_fee,
            transactions_root: transactions_root(self.block_body()),
            receipts_root: self.receipts_root,
            logs_bloom: self.logs_bloom,
            commitment,
        }
    }

    /// The block of this result.
    pub fn block(&self, commitment: StateCommitment) -> Block {
        Block { header: self.header(commitment), transactions: self.block_body().cloned().collect() }
    }
}

/// A header that differs from what executing its block gives.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header field {field} is {given}, executing the block gives {computed}")]
pub struct HeaderMismatch {
    /// The first field that differs.
    pub field: &'static str,
    /// Its value in the header.
    pub given: String,
    /// Its computed value.
    pub computed: String,
}

/// Compares a header with the one that executing its block gives. Names the first difference.
pub fn check_header(given: &Header, computed: &Header) -> Result<(), HeaderMismatch> {
    macro_rules! compare {
        ($($field:ident).+) => {
            if given.$($field).+ != computed.$($field).+ {
                return Err(HeaderMismatch {
                    field: stringify!($($field).+),
                    given: format!("{:?}", given.$($field).+),
                    computed: format!("{:?}", computed.$($field).+),
                });
            }
        };
    }
    compare!(parent_hash);
    compare!(number);
    compare!(timestamp);
    compare!(protocol_version);
    compare!(consensus);
    compare!(fee_recipient);
    compare!(gas_limit);
    compare!(base_fee);
    compare!(transactions_root);
    compare!(gas_used);
    compare!(reserved_gas_used);
    compare!(receipts_root);
    compare!(logs_bloom);
    compare!(commitment);
    assert_eq!(given, computed, "every field of a header is compared");
    Ok(())
}

/// The outcome of a call as a receipt holds it, and its logs.
pub(crate) fn outcome(result: ExecutionResult) -> (Outcome, Vec<Log>) {
    match result {
        ExecutionResult::Success { logs, .. } => (Outcome::Success, logs),
        // A failed call has no logs.
        ExecutionResult::Revert { output, .. } => (Outcome::reverted(&output), Vec::new()),
        ExecutionResult::Halt { reason, .. } => (Outcome::Halted(halt(&reason)), Vec::new()),
    }
}

pub(crate) fn halt(reason: &HaltReason) -> Halt {
    match reason {
        HaltReason::OutOfGas(_) => Halt::OutOfGas,
        HaltReason::OpcodeNotFound | HaltReason::InvalidFEOpcode | HaltReason::NotActivated => {
            Halt::InvalidOpcode
        }
        HaltReason::InvalidJump => Halt::InvalidJump,
        HaltReason::StackUnderflow | HaltReason::StackOverflow => Halt::Stack,
        HaltReason::PrecompileError | HaltReason::PrecompileErrorWithContext(_) => Halt::Precompile,
        HaltReason::CreateCollision
        | HaltReason::CreateContractSizeLimit
        | HaltReason::CreateContractStartingWithEF
        | HaltReason::CreateInitCodeSizeLimit
        | HaltReason::NonceOverflow => Halt::Create,
        HaltReason::StateChangeDuringStaticCall | HaltReason::CallNotAllowedInsideStatic => Halt::StaticCall,
        HaltReason::OutOfFunds | HaltReason::OverflowPayment => Halt::InsufficientBalance,
        HaltReason::OutOfOffset | HaltReason::CallTooDeep => Halt::Other,
    }
}
