//! Finds the lowest gas limit with which a call succeeds.

use super::attempt::{Attempt, AttemptError};
use almanac_exec::{Call, CallResult, SimulateError};
use almanac_primitives::{Gas, TimestampMs};

/// Stop when the answer is this close to the least: as other nodes do, a few tries less for a percent more.
const TOLERANCE_DIVISOR: u64 = 64;

/// How much later than the next block a transaction is expected to be in one.
const LATER_MS: u64 = 1_000;

/// The gas that a call needs in the next block and in one a second later. What a call costs may depend on the clock
/// (a time that is stored again, a due time in another slot), and a transaction is rarely in the block that its
/// estimate saw. What fails later says nothing: that block may be past a deadline.
pub(super) fn estimate_soon(
    call: &Call,
    attempt: &mut Attempt,
) -> Result<Result<Gas, CallResult>, AttemptError> {
    let now = match estimate(call, attempt)? {
        Ok(now) => now,
        failed => return Ok(failed),
    };
    let TimestampMs(timestamp) = attempt.environment.timestamp;
    attempt.environment.timestamp = TimestampMs(timestamp.saturating_add(LATER_MS));
    if succeeds(attempt.run(Call { gas_limit: now, ..call.clone() }))? {
        return Ok(Ok(now));
    }
    let later = estimate(call, attempt)?;
    Ok(Ok(later.map_or(now, |later| later.max(now))))
}

/// Searches by halving between what the call used and `call.gas_limit`. `Err` holds a call that fails even with
/// all of that.
pub(super) fn estimate(call: &Call, tried: &mut Attempt) -> Result<Result<Gas, CallResult>, AttemptError> {
    let mut attempt = |gas: u64| tried.run(Call { gas_limit: Gas(gas), ..call.clone() });
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
