//! A simulated call: its block, its state and its gas price.

use super::{
    Eth, ahead,
    fees::upcoming,
    overlay::{Overlay, check_count},
    request::CallRequest,
};
use crate::{
    answer::{Answer, Room},
    error,
    revert::Called,
    view::View,
};
use alloy_eips::BlockId;
use alloy_primitives::{TxKind, U256};
use alloy_rpc_types_eth::{BlockOverrides, TransactionRequest, state::StateOverride};
use almanac_exec::{
    Call, CallResult, Environment, EvmContext, NativeParts, Place, SimulateError,
    environment::{read_held_until, read_parameters},
    native_transaction, simulate_step, simulate_with,
};
use almanac_index::{HistoricalState, IndexedBlock};
use almanac_primitives::{Gas, GasPrice, StateDiff, TimestampMs};
use almanac_trace::Timer;
use jsonrpsee::core::RpcResult;
use revm::{Inspector, inspector::NoOpInspector};
use std::{sync::Arc, time::Duration};

/// How to ask a call for less.
const LESS: &str = "let the call return less";

/// What a request wants to be different.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) state: Option<StateOverride>,
    pub(crate) block: Option<Box<BlockOverrides>>,
}

/// The state and the block that calls are tried in, and the time that is left for all of them.
pub(crate) struct Attempt {
    /// The block that the request named.
    pub(crate) base: Arc<IndexedBlock>,
    pub(crate) state: Overlay<HistoricalState>,
    pub(crate) environment: Environment,
    /// Where the transaction of a call would be, if it were sent now: ids of schedules follow from it.
    place: Place,
    timer: Timer,
}

/// Why a call gave no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    /// It was stopped.
    #[error(
        "execution aborted: the request took longer than {max_ms} ms; give less gas, ask for less at once, or \
         start the node with a larger --call-time"
    )]
    TooLong { max_ms: u128 },
    /// It was not even tried.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}

impl Attempt {
    /// The block that `id` names ("pending": the next one), with what a request wants to be different.
    /// All that is done with it may take `time_max` from now.
    pub(crate) fn new(
        view: &View,
        id: Option<BlockId>,
        overrides: Overrides,
        time_max: Duration,
    ) -> RpcResult<Self> {
        let timer = Timer::start(time_max);
        let (block, state) = view.state(id)?;
        let parameters = read_parameters(&state).map_err(error::internal)?;
        let is_pending = id.is_some_and(|id| id.is_pending());
        let header = if is_pending {
            upcoming(&block, &state, &parameters, (view.next_time)())?
        } else {
            block.block.header.clone()
        };
        let held_until = read_held_until(&state).map_err(error::internal)?;
        let environment = Environment::of_header(&header, view.chain, parameters, held_until);
        // Contracts see the block that was named, as on other nodes; but the first block that can still take a
        // transaction after it is the next one.
        let next = block.block.header.number.saturating_add(1);
        let ahead = if is_pending {
            ahead::count(view, &state, &environment.parameters, environment.timestamp, environment.base_fee)?
        } else {
            0
        };
        let place = Place::nth_of(next, ahead);
        let mut attempt = Self { base: block, state: Overlay::new(state), environment, place, timer };
        if let Some(state) = overrides.state {
            check_count([&state])?;
            attempt.state.override_state(state)?;
        }
        if let Some(block) = overrides.block {
            attempt.override_block(&block)?;
        }
        Ok(attempt)
    }

    /// Tries a call.
    pub(super) fn run(&mut self, call: Call) -> Result<CallResult, AttemptError> {
        self.watch(call, NoOpInspector)
    }

    /// Tries a call while an inspector looks on.
    pub(super) fn watch<I>(&mut self, call: Call, inspector: I) -> Result<CallResult, AttemptError>
    where
        I: for<'a> Inspector<EvmContext<'a>>,
    {
        self.in_time(|attempt| {
            let inspector = (&mut attempt.timer, inspector);
            simulate_with(&attempt.state, &attempt.environment, call, inspector)
        })
    }

    /// Tries a call and answers with what it would change too.
    pub(crate) fn step<I>(
        &mut self,
        call: Call,
        is_strict: bool,
        inspector: I,
    ) -> Result<(CallResult, StateDiff), AttemptError>
    where
        I: for<'a> Inspector<EvmContext<'a>>,
    {
        self.in_time(|attempt| {
            let inspector = (&mut attempt.timer, inspector);
            simulate_step(&attempt.state, &attempt.environment, call, is_strict, inspector)
        })
    }

    /// A call that is stopped fails in some way of the EVM's; what counts then is that its time was over.
    fn in_time<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, SimulateError>,
    ) -> Result<T, AttemptError> {
        self.timer.look();
        let result = if self.timer.is_over() { None } else { Some(work(self)) };
        match result {
            Some(result) if !self.timer.is_over() => Ok(result?),
            _ => Err(AttemptError::TooLong { max_ms: self.timer.time_max().as_millis() }),
        }
    }

    /// Where the n-th call of this block would be, from 0.
    pub(super) fn place_of(&self, nth: u32) -> Place {
        if self.environment.number == self.place.block {
            return Place { index: self.place.index.saturating_add(nth), ..self.place };
        }
        Place::nth_of(self.environment.number, nth)
    }

    /// A request as a call.
    pub(crate) fn call(&self, request: impl Into<CallRequest>) -> RpcResult<Call> {
        let request = request.into();
        match request.native_parts()? {
            Some(parts) => self.native_call(&request, parts),
            None => self.ethereum_call(request.ethereum),
        }
    }

    fn native_call(&self, request: &CallRequest, parts: NativeParts) -> RpcResult<Call> {
        let call = Call {
            from: request.ethereum.from.unwrap_or_default(),
            gas_limit: self.gas_limit(&request.ethereum),
            nonce: request.nonce(),
            place: Some(self.place),
            native: Some(parts),
            ..Call::default()
        };
        let shown = native_transaction(&self.state, &call, self.environment.chain.id);
        let shown = shown.map_err(|error| error::simulate(&error))?.expect("it is a native one");
        request.check_shape(&shown)?;
        Ok(Call { to: shown.to(), value: shown.value(), input: shown.input().clone(), ..call })
    }

    /// Nobody can make a node work longer than a block may.
    fn gas_limit(&self, request: &TransactionRequest) -> Gas {
        let gas_max = self.environment.gas_limit;
        request.gas.map_or(gas_max, |gas| Gas(gas).min(gas_max))
    }

    fn ethereum_call(&self, request: TransactionRequest) -> RpcResult<Call> {
        let gas_price = self.price(&request)?;
        let gas_limit = self.gas_limit(&request);
        let value = request.value.unwrap_or_default();
        Ok(Call {
            from: request.from.unwrap_or_default(),
            to: request.to.and_then(TxKind::into_to),
            value,
            input: request.input.into_input().unwrap_or_default(),
            gas_limit,
            gas_price,
            access_list: request.access_list.unwrap_or_default(),
            authorizations: request.authorization_list.unwrap_or_default(),
            nonce: request.nonce,
            place: Some(self.place),
            native: None,
        })
    }

    /// What the request pays per gas in this block; nothing where it does not say.
    fn price(&self, request: &TransactionRequest) -> RpcResult<GasPrice> {
        if request.gas_price.is_some() && request.max_fee_per_gas.is_some() {
            return Err(error::invalid("both gasPrice and maxFeePerGas are given: give one of them"));
        }
        let Some(cap) = request.gas_price.or(request.max_fee_per_gas) else { return Ok(GasPrice(0)) };
        let tip = request.gas_price.or(request.max_priority_fee_per_gas).unwrap_or_default();
        Ok(GasPrice(cap.min(self.environment.base_fee.0.saturating_add(tip))))
    }

    /// Makes the block another one.
    pub(super) fn override_block(&mut self, overrides: &BlockOverrides) -> RpcResult<()> {
        if overrides.random.is_some() || overrides.block_hash.is_some() {
            return Err(error::invalid(
                "random and blockHash follow from the parent and cannot be overridden",
            ));
        }
        let environment = &mut self.environment;
        if let Some(number) = overrides.number {
            environment.number = small("number", number)?;
            self.place = Place::first_of(environment.number);
        }
        if let Some(seconds) = overrides.time {
            let milliseconds = seconds.checked_mul(1_000);
            environment.timestamp = TimestampMs(
                milliseconds.ok_or_else(|| error::invalid(format!("time {seconds} is too far")))?,
            );
        }
        if let Some(gas_limit) = overrides.gas_limit {
            environment.gas_limit = Gas(gas_limit.min(environment.parameters.block_gas_max().0));
        }
        if let Some(base_fee) = overrides.base_fee {
            environment.base_fee = GasPrice(small("baseFeePerGas", base_fee)?.into());
        }
        environment.fee_recipient = overrides.coinbase.unwrap_or(environment.fee_recipient);
        Ok(())
    }
}

/// What an error names of a call: of a native transaction, each of its calls.
pub(super) fn called(call: &Call) -> Vec<Called> {
    match &call.native {
        Some(native) => {
            native.calls.iter().map(|call| Called { to: call.to, input: call.input.clone() }).collect()
        }
        None => vec![Called { to: call.to, input: call.input.clone() }],
    }
}

fn small(what: &str, given: U256) -> RpcResult<u64> {
    u64::try_from(given).map_err(|_| error::invalid(format!("{what} {given} is above 2^64 - 1")))
}

impl Eth {
    /// Works on an attempt and writes the answer, off the threads that serve connections.
    pub(super) async fn try_answer<T: serde::Serialize + Send + 'static>(
        &self,
        id: Option<BlockId>,
        overrides: Overrides,
        work: impl FnOnce(Attempt) -> RpcResult<T> + Send + 'static,
    ) -> RpcResult<Answer<T>> {
        self.try_out(id, overrides, move |attempt| Room::new(LESS).write(&work(attempt)?)).await
    }

    /// Works on an attempt, off the threads that serve connections.
    pub(super) async fn try_out<T: Send + 'static>(
        &self,
        id: Option<BlockId>,
        overrides: Overrides,
        work: impl FnOnce(Attempt) -> RpcResult<T> + Send + 'static,
    ) -> RpcResult<T> {
        let (view, time_max) = (self.view.clone(), self.call_time_max);
        // Time in the queue is not its own.
        self.heavy.run(move || work(Attempt::new(&view, id, overrides, time_max)?)).await
    }
}
