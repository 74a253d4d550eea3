//! Finds the lowest gas limit with which a call succeeds.

use super::attempt::AttemptError;
use almanac_exec::{Call, CallResult, SimulateError};
use almanac_primitives::Gas;

/// Stop when the answer is this close to the least: as other nodes do, a few tries less for a percent more.
const TOLERANCE_DIVISOR: u64 = 64;

/// Searches by halving between what the call used and `call.gas_limit`. `Err` holds a call that fails even with
/// all of that.
pub(crate) fn estimate(
    call: &Call,
    mut run: impl FnMut(Call) -> Result<CallResult, AttemptError>,
) -> Result<Result<Gas, CallResult>, AttemptError> {
    let mut attempt = |gas: u64| run(Call { gas_limit: Gas(gas), ..call.clone() });
    let full = attempt(call.gas_limit.0)?;
    if !full.outcome.is_success() {
        return Ok(Err(full));
    }
    // What it used may not suffice as a limit: refunds come after, and inner calls get 63 parts of 64.
    let (mut too_little, mut enough) = (full.gas_used.0.saturating_sub(1), call.gas_limit.0);
    if succeeds(attempt(full.gas_used.0))? {
        enough = full.gas_used.0;
    }
    while enough - too_little > 1 + enough / TOLERANCE_DIVISOR {
        // Most calls need little more than they used, so look near the bottom first.
        let middle = (too_little + (enough - too_little) / 2).min(too_little.saturating_mul(2));
        if succeeds(attempt(middle))? {
            enough = middle;
        } else {
            too_little = middle;
        }
    }
    Ok(Ok(Gas(enough)))
}

/// A limit below the intrinsic gas is refused rather than failed; here both mean: more.
fn succeeds(result: Result<CallResult, AttemptError>) -> Result<bool, AttemptError> {
    match result {
        Ok(result) => Ok(result.outcome.is_success()),
        Err(AttemptError::Simulate(SimulateError::Refused { .. })) => Ok(false),
        Err(error) => Err(error),
    }
}
