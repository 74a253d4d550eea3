//! Simulates a call under a tracer.

use crate::{
    error::TraceError,
    limits::{Limiter, Limits},
    tracer::{Seen, Tracer},
};
use alloy_rpc_types_eth::TransactionInfo;
use almanac_exec::{Call, Environment, simulate_watched};
use almanac_primitives::StateRead;

/// The trace of a simulated call.
pub fn trace_call<T: Tracer>(
    state: &dyn StateRead,
    environment: &Environment,
    call: Call,
    tracer: &T,
    limits: Limits,
) -> Result<T::Trace, TraceError> {
    let mut inspector = (Limiter::new(limits, tracer.keeps()), tracer.inspector());
    let result = simulate_watched(state, environment, call, &mut inspector);
    let (mut limiter, inspector) = inspector;
    limiter.add(tracer.counted(&inspector));
    if let Some(passed) = limiter.error() {
        return Err(passed);
    }
    let (_, footprint) = result?;
    let info = TransactionInfo {
        block_number: Some(environment.number),
        base_fee: u64::try_from(environment.base_fee.0).ok(),
        ..TransactionInfo::default()
    };
    tracer.trace(inspector, &Seen { info, footprint })
}
