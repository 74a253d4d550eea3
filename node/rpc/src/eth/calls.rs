//! Calls that change nothing: `eth_call`, estimates, and series of calls.

use super::{
    Eth,
    attempt::{Attempt, AttemptError, Overrides, called},
    estimate::{estimate, estimate_soon},
    request::CallRequest,
    simulate::{SimulatedBlock, simulate_blocks},
};
use crate::{answer::Answer, error};
use alloy_eips::{BlockId, eip2930::AccessListResult};
use alloy_primitives::{Bytes, U64, U256};
use alloy_rpc_types_eth::{BlockOverrides, simulate::SimulatePayload, state::StateOverride};
use almanac_exec::{Call, CallResult};
use almanac_trace::ConsoleInspector;
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use revm_inspectors::access_list::AccessListInspector;

#[rpc(server)]
pub(crate) trait CallsApi {
    /// Tries a call out.
    #[method(name = "eth_call")]
    async fn call(
        &self,
        request: CallRequest,
        block: Option<BlockId>,
        state_overrides: Option<StateOverride>,
        block_overrides: Option<Box<BlockOverrides>>,
    ) -> RpcResult<Answer<Bytes>>;

    /// The gas that a call needs.
    #[method(name = "eth_estimateGas")]
    async fn estimate_gas(
        &self,
        request: CallRequest,
        block: Option<BlockId>,
        state_overrides: Option<StateOverride>,
        block_overrides: Option<Box<BlockOverrides>>,
    ) -> RpcResult<U64>;

    /// The accounts and slots that a call touches.
    #[method(name = "eth_createAccessList")]
    async fn create_access_list(
        &self,
        request: CallRequest,
        block: Option<BlockId>,
        state_overrides: Option<StateOverride>,
    ) -> RpcResult<Answer<AccessListResult>>;

    /// Tries blocks of calls, each on what the ones before would have changed.
    #[method(name = "eth_simulateV1")]
    async fn simulate_v1(
        &self,
        payload: SimulatePayload<CallRequest>,
        block: Option<BlockId>,
    ) -> RpcResult<Answer<Vec<Answer<SimulatedBlock>>>>;
}

/// Tries a call, and prints what contracts say in it.
fn print(attempt: &mut Attempt, call: Call) -> Result<CallResult, AttemptError> {
    let mut console = ConsoleInspector::default();
    let result = attempt.watch(call, &mut console);
    console.into_lines().iter().for_each(|line| tracing::info!("eth_call · console.log · {line}"));
    result
}

#[jsonrpsee::core::async_trait]
impl CallsApiServer for Eth {
    async fn call(
        &self,
        request: CallRequest,
        block: Option<BlockId>,
        state: Option<StateOverride>,
        block_overrides: Option<Box<BlockOverrides>>,
    ) -> RpcResult<Answer<Bytes>> {
        let is_printed = self.impersonation.is_some();
        self.try_answer(block, Overrides { state, block: block_overrides }, move |mut attempt| {
            let call = attempt.call(request)?;
            let called = called(&call);
            let result = if is_printed { print(&mut attempt, call) } else { attempt.run(call) };
            let result = result.map_err(|error| error::attempt(&error))?;
            if result.outcome.is_success() {
                Ok(result.output)
            } else {
                Err(error::failed_call(&called, &result))
            }
        })
        .await
    }

    async fn estimate_gas(
        &self,
        request: CallRequest,
        block: Option<BlockId>,
        state: Option<StateOverride>,
        block_overrides: Option<Box<BlockOverrides>>,
    ) -> RpcResult<U64> {
        let block = block.unwrap_or(BlockId::pending());
        let is_soon = block.is_pending() && block_overrides.is_none();
        self.try_out(Some(block), Overrides { state, block: block_overrides }, move |mut attempt| {
            let call = attempt.call(request)?;
            let estimate = if is_soon { estimate_soon } else { estimate };
            match estimate(&call, &mut attempt).map_err(|error| error::attempt(&error))? {
                Ok(gas) => Ok(U64::from(gas.0)),
                Err(failed) => Err(error::failed_call(&called(&call), &failed)),
            }
        })
        .await
    }

    async fn create_access_list(
        &self,
        request: CallRequest,
        block: Option<BlockId>,
        state: Option<StateOverride>,
    ) -> RpcResult<Answer<AccessListResult>> {
        let block = block.unwrap_or(BlockId::pending());
        self.try_answer(Some(block), Overrides { state, block: None }, |mut attempt| {
            let call = attempt.call(request)?;
            if call.native.is_some() {
                return Err(error::invalid("a native transaction has no access list"));
            }
            let mut inspector = AccessListInspector::new(call.access_list.clone());
            attempt.watch(call.clone(), &mut inspector).map_err(|error| error::attempt(&error))?;
            let access_list = inspector.into_access_list();
            // What the list costs and saves shows only with it.
            let called = called(&call);
            let with_list = Call { access_list: access_list.clone(), ..call };
            let result = attempt.run(with_list).map_err(|error| error::attempt(&error))?;
            let error = (!result.outcome.is_success())
                .then(|| error::failed_call(&called, &result).message().to_owned());
            Ok(AccessListResult { access_list, gas_used: U256::from(result.gas_used.0), error })
        })
        .await
    }

    async fn simulate_v1(
        &self,
        payload: SimulatePayload<CallRequest>,
        block: Option<BlockId>,
    ) -> RpcResult<Answer<Vec<Answer<SimulatedBlock>>>> {
        self.try_answer(block, Overrides::default(), |attempt| simulate_blocks(attempt, payload)).await
    }
}
