//! A call that changes nothing: what `eth_call` and gas estimates ask for, on the machine that executes blocks.

use crate::{
    environment::{BlockInput, Environment},
    error::{BlockError, StateFault},
    footprint::Footprint,
    machine::{EvmContext, Machine, MachineError, Strictness},
    output,
    place::Place,
    prologue,
    state::BlockState,
    validate::TransactionError,
};
use alloy_eips::{eip2930::AccessList, eip7702::SignedAuthorization};
use alloy_primitives::{Address, Bytes, Log, TxKind, U256};
use almanac_primitives::{Gas, GasPrice, Outcome, StateDiff, StateRead, Wei};
use revm::{
    Inspector,
    context::TxEnv,
    context_interface::{
        either::Either,
        result::{ExecutionResult, InvalidTransaction},
    },
    inspector::NoOpInspector,
};

/// A call to be tried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Who calls; anyone may be impersonated, since nothing takes effect.
    pub from: Address,
    /// The contract, or `None` to try out a creation.
    pub to: Option<Address>,
    /// Value that goes along. The caller must have it.
    pub value: U256,
    /// Calldata or init code.
    pub input: Bytes,
    /// Gas that the call may use, intrinsic gas included.
    pub gas_limit: Gas,
    /// Price per gas. Above zero, the caller must have the money.
    pub gas_price: GasPrice,
    /// EIP-2930: what the call is charged for up front.
    pub access_list: AccessList,
    /// EIP-7702: delegations that take effect first.
    pub authorizations: Vec<SignedAuthorization>,
    /// The caller's sequence number; only a call that must be valid in a block is refused for a wrong one.
    pub nonce: Option<u64>,
    /// Where it would be: schedules are named after that. `None` is the first user transaction of the block that it
    /// is tried in, if no run is due.
    pub place: Option<Place>,
}

/// What the call gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    /// How it ended.
    pub outcome: Outcome,
    /// What it returned, or all of what it reverted with.
    pub output: Bytes,
    /// Gas it used.
    pub gas_used: Gas,
    /// What it logged.
    pub logs: Vec<Log>,
}

/// Why a call cannot even be tried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// The EVM refuses it before the first step.
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
    /// One that transactions are held to, in the phrases that clients know from sending them.
    #[error(transparent)]
    Rule(TransactionError),
    /// Another, in the EVM's own words.
    #[error("{0}")]
    Evm(InvalidTransaction),
}

/// Tries a call in the block that would come next on `input.parent`.
pub fn simulate(state: &dyn StateRead, input: &BlockInput, call: Call) -> Result<CallResult, SimulateError> {
    simulate_in(state, &Environment::derive(input, state)?, call)
}

/// Tries a call in any environment.
pub fn simulate_in(
    state: &dyn StateRead,
    environment: &Environment,
    call: Call,
) -> Result<CallResult, SimulateError> {
    run(state, environment, call, NoOpInspector, false, Strictness::Simulation).map(|tried| tried.result)
}

/// Tries a call while an inspector looks on.
pub fn simulate_with<'a, I: Inspector<EvmContext<'a>>>(
    state: &'a dyn StateRead,
    environment: &Environment,
    call: Call,
    inspector: I,
) -> Result<CallResult, SimulateError> {
    run(state, environment, call, inspector, true, Strictness::Simulation).map(|tried| tried.result)
}

/// Tries a call while an inspector looks on, and tells what it touched.
pub fn simulate_watched<'a, I: Inspector<EvmContext<'a>>>(
    state: &'a dyn StateRead,
    environment: &Environment,
    call: Call,
    inspector: I,
) -> Result<(CallResult, Footprint), SimulateError> {
    let tried = run(state, environment, call, inspector, true, Strictness::Simulation)?;
    Ok((tried.result, *tried.footprint.expect("a watched call leaves a footprint")))
}

/// Tries a call while an inspector looks on, and answers with what it would change too, for a next one to be tried
/// on. A strict call must be one that a block could hold: its sequence number, price and money are checked.
pub fn simulate_step<'a, I: Inspector<EvmContext<'a>>>(
    state: &'a dyn StateRead,
    environment: &Environment,
    call: Call,
    is_strict: bool,
    inspector: I,
) -> Result<(CallResult, StateDiff), SimulateError> {
    let strictness = if is_strict { Strictness::Block } else { Strictness::Simulation };
    let tried = run(state, environment, call, inspector, true, strictness)?;
    Ok((tried.result, tried.after.into_diff()?.0))
}

/// A call that was tried.
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
    let (from, cap, gas) = (call.from, call.gas_price, call.gas_limit);
    let mut machine = Machine::new(BlockState::new(state), environment, strictness, inspector);
    prologue::write(&mut machine, environment, false)?;
    if let Some(place) = call.place {
        machine.set_place(place);
    }
    let tx = call.into_tx_env(environment.chain_id);
    let executed = machine.transact(tx, is_watched).map_err(|error| match error {
        MachineError::Refused(reason) => match reason {
            // The EVM names no numbers here.
            InvalidTransaction::GasPriceLessThanBasefee => {
                TransactionError::FeeCapBelowBaseFee { cap, base_fee: environment.base_fee }.into()
            }
            InvalidTransaction::CallerGasLimitMoreThanBlock => {
                let max = environment.gas_limit.0;
                TransactionError::GasLimitAboveBlock { given: gas.0, max }.into()
            }
            other => SimulateError::Refused { reason: in_our_words(other, from) },
        },
        MachineError::State(fault) => BlockError::State(fault).into(),
        MachineError::Fault(fault) => BlockError::from(fault).into(),
    })?;
    machine.state().commit(executed.changes)?;
    let gas_used = Gas(executed.result.tx_gas_used());
    let output = match &executed.result {
        ExecutionResult::Success { output, .. } => output.data().clone(),
        ExecutionResult::Revert { output, .. } => output.clone(),
        ExecutionResult::Halt { .. } => Bytes::new(),
    };
    let (outcome, logs) = output::outcome(executed.result);
    let result = CallResult { outcome, output, gas_used, logs };
    Ok(Tried { result, footprint: executed.footprint, after: machine.into_state() })
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

/// The EVM's refusals as the rules of transactions, where they are the same.
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
