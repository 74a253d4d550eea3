//! Simulates calls without effect, for `eth_call` and gas estimates, on the machine that executes blocks.

use crate::{
    environment::{BlockInput, Environment},
    error::{BlockError, StateFault},
    footprint::Footprint,
    machine::{EvmContext, Machine, MachineError, Strictness},
    native::simulated::{self, NativeParts},
    output,
    place::Place,
    prologue,
    state::BlockState,
    validate::TransactionError,
};
use alloy_eips::{eip2930::AccessList, eip7702::SignedAuthorization};
use alloy_primitives::{Address, Bytes, Log, TxKind, U256};
use almanac_primitives::{
    Gas, GasPrice, Outcome, StateDiff, StateRead, Wei, transaction::TransactionDecodeError,
};
use revm::{
    Inspector,
    context::TxEnv,
    context_interface::{
        either::Either,
        result::{ExecutionResult, InvalidTransaction},
    },
    inspector::NoOpInspector,
};

/// A call to simulate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The caller. Any address may be impersonated, since nothing takes effect.
    pub from: Address,
    /// The contract, or `None` to simulate a creation.
    pub to: Option<Address>,
    /// Value of the call. The caller must have it.
    pub value: U256,
    /// Calldata or init code.
    pub input: Bytes,
    /// Gas that the call may use, intrinsic gas included.
    pub gas_limit: Gas,
    /// Price per gas. Above zero, the caller must have the money.
    pub gas_price: GasPrice,
    /// EIP-2930 access list, charged up front.
    pub access_list: AccessList,
    /// EIP-7702 delegations, which take effect first.
    pub authorizations: Vec<SignedAuthorization>,
    /// The caller's nonce. Checked only if the call must be valid in a block.
    pub nonce: Option<u64>,
    /// Its block and receipt index, from which schedule ids derive. `None` is the first user transaction of the
    /// block it is simulated in, if no run is due.
    pub place: Option<Place>,
    /// What makes it a native transaction. Its calls and caps then stand for `to`, `value`, `input` and `gas_price`.
    pub native: Option<NativeParts>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    /// How it ended.
    pub outcome: Outcome,
    /// The returned data, or the full revert data.
    pub output: Bytes,
    /// Gas it used.
    pub gas_used: Gas,
    /// What it logged.
    pub logs: Vec<Log>,
    /// Which call of a native transaction failed and undid the others.
    pub failed_call: Option<u8>,
}

/// Why a call cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// The EVM rejects it before the first step.
    #[error("{reason}")]
    Refused {
        /// Why.
        reason: Refusal,
    },
    /// The block it would be in cannot exist.
    #[error(transparent)]
    Block(#[from] BlockError),
}

/// Which rule a call breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A rule of transactions, with the message that clients know from sending them.
    #[error(transparent)]
    Rule(TransactionError),
    /// A bound of native transactions.
    #[error(transparent)]
    Form(TransactionDecodeError),
    /// Another rule, with the EVM's own message.
    #[error("{0}")]
    Evm(InvalidTransaction),
}

/// Simulates a call in the next block after `input.parent`.
pub fn simulate(state: &dyn StateRead, input: &BlockInput, call: Call) -> Result<CallResult, SimulateError> {
    simulate_in(state, &Environment::derive(input, state)?, call)
}

/// Simulates a call in any environment.
pub fn simulate_in(
    state: &dyn StateRead,
    environment: &Environment,
    call: Call,
) -> Result<CallResult, SimulateError> {
    run(state, environment, call, NoOpInspector, false, Strictness::Simulation).map(|tried| tried.result)
}

/// Simulates a call with an inspector attached.
pub fn simulate_with<'a, I: Inspector<EvmContext<'a>>>(
    state: &'a dyn StateRead,
    environment: &Environment,
    call: Call,
    inspector: I,
) -> Result<CallResult, SimulateError> {
    run(state, environment, call, inspector, true, Strictness::Simulation).map(|tried| tried.result)
}

/// Simulates a call with an inspector attached, and returns the state it touched.
pub fn simulate_watched<'a, I: Inspector<EvmContext<'a>>>(
    state: &'a dyn StateRead,
    environment: &Environment,
    call: Call,
    inspector: I,
) -> Result<(CallResult, Footprint), SimulateError> {
    let tried = run(state, environment, call, inspector, true, Strictness::Simulation)?;
    Ok((tried.result, *tried.footprint.expect("a watched call leaves a footprint")))
}

/// Simulates a call with an inspector attached, and returns its changes, on which the next call can be
/// simulated. A strict call must be valid in a block: its nonce, price and balance are checked.
pub fn simulate_step<'a, I: Inspector<EvmContext<'a>>>(
    state: &'a dyn StateRead,
    environment: &Environment,
    call: Call,
    is_strict: bool,
    inspector: I,
) -> Result<(CallResult, StateDiff), SimulateError> {
    let strictness = if is_strict { Strictness::Block } else { Strictness::Simulation };
    let tried = run(state, environment, call, inspector, true, strictness)?;
    Ok((tried.result, tried.after.into_diff(environment.timestamp)?.0))
}

/// A simulated call.
struct Tried<'a> {
    result: CallResult,
    footprint: Option<Box<Footprint>>,
    after: BlockState<'a>,
}

fn run<'a, I: Inspector<EvmContext<'a>>>(
    state: &'a dyn StateRead,
    environment: &Environment,
    call: Call,
    inspector: I,
    is_watched: bool,
    strictness: Strictness,
) -> Result<Tried<'a>, SimulateError> {
    let mut machine = Machine::new(BlockState::new(state), environment, strictness, inspector);
    prologue::write(&mut machine, environment, false)?;
    if let Some(place) = call.place {
        machine.set_place(place);
    }
    let executed = match &call.native {
        Some(parts) => {
            simulated::transact(&mut machine, environment, (&call, parts), strictness, is_watched)?
        }
        None => {
            let asked = Asked { from: call.from, cap: call.gas_price, gas_limit: call.gas_limit };
            let mut tx = call.into_tx_env(environment.chain.id);
            machine.void_authorizations(&mut tx)?;
            machine.transact(tx, is_watched).map_err(|error| refused(error, environment, asked))?
        }
    };
    machine.state().commit(executed.changes)?;
    let gas_used = Gas(executed.result.tx_gas_used());
    let output = match &executed.result {
        ExecutionResult::Success { output, .. } => output.data().clone(),
        ExecutionResult::Revert { output, .. } => output.clone(),
        ExecutionResult::Halt { .. } => Bytes::new(),
    };
    let (outcome, logs) = output::outcome(executed.result);
    let result = CallResult { outcome, output, gas_used, logs, failed_call: executed.failed_call };
    Ok(Tried { result, footprint: executed.footprint, after: machine.into_state() })
}

/// What an error names of a call.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) from: Address,
    pub(crate) cap: GasPrice,
    pub(crate) gas_limit: Gas,
}

/// Why the machine did not run a call.
pub(crate) fn refused(error: MachineError, environment: &Environment, asked: Asked) -> SimulateError {
    match error {
        MachineError::Refused(reason) => match reason {
            // The EVM's error has no numbers.
            InvalidTransaction::GasPriceLessThanBasefee => {
                TransactionError::FeeCapBelowBaseFee { cap: asked.cap, base_fee: environment.base_fee }.into()
            }
            InvalidTransaction::CallerGasLimitMoreThanBlock => {
                let max = environment.gas_limit.0;
                TransactionError::GasLimitAboveBlock { given: asked.gas_limit.0, max }.into()
            }
            other => SimulateError::Refused { reason: in_our_words(other, asked.from) },
        },
        MachineError::State(fault) => BlockError::State(fault).into(),
        MachineError::Fault(fault) => BlockError::from(fault).into(),
    }
}

impl Call {
    fn into_tx_env(self, chain_id: u64) -> TxEnv {
        let is_delegating = !self.authorizations.is_empty();
        TxEnv {
            tx_type: if is_delegating { 4 } else { u8::from(!self.access_list.is_empty()) },
            caller: self.from,
            kind: self.to.map_or(TxKind::Create, TxKind::Call),
            value: self.value,
            data: self.input,
            gas_limit: self.gas_limit.0,
            gas_price: self.gas_price.0,
            gas_priority_fee: is_delegating.then_some(self.gas_price.0),
            nonce: self.nonce.unwrap_or_default(),
            access_list: self.access_list,
            authorization_list: self.authorizations.into_iter().map(Either::Left).collect(),
            chain_id: Some(chain_id),
            ..TxEnv::default()
        }
    }
}

impl From<TransactionError> for SimulateError {
    fn from(rule: TransactionError) -> Self {
        Self::Refused { reason: Refusal::Rule(rule) }
    }
}

impl From<TransactionDecodeError> for SimulateError {
    fn from(bound: TransactionDecodeError) -> Self {
        Self::Refused { reason: Refusal::Form(bound) }
    }
}

/// Maps the EVM's errors to our transaction rules where they are the same.
fn in_our_words(reason: InvalidTransaction, sender: Address) -> Refusal {
    Refusal::Rule(match reason {
        InvalidTransaction::LackOfFundForMaxFee { fee, balance } => {
            TransactionError::InsufficientFunds { sender, needed: Wei(*fee), balance: Wei(*balance) }
        }
        InvalidTransaction::CallGasCostMoreThanGasLimit { initial_gas: needed, gas_limit }
        | InvalidTransaction::GasFloorMoreThanGasLimit { gas_floor: needed, gas_limit } => {
            TransactionError::IntrinsicGasTooLow { given: gas_limit, needed }
        }
        InvalidTransaction::NonceTooLow { tx, state } => {
            TransactionError::NonceTooLow { given: tx, account: state }
        }
        InvalidTransaction::NonceTooHigh { tx, state } => {
            TransactionError::NonceTooHigh { given: tx, account: state }
        }
        other => return Refusal::Evm(other),
    })
}

impl From<StateFault> for SimulateError {
    fn from(fault: StateFault) -> Self {
        Self::Block(fault.into())
    }
}
