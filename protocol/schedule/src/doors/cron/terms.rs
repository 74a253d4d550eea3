//! The terms of an ARC-21 job, in addition to its call and its gas.

use almanac_primitives::codec::{DecodeError, Reader};
use std::num::NonZeroU64;

/// The terms of a job: how often it runs and what a run costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CronTerms {
    /// Milliseconds from one due time to the next; `None` means a single run.
    pub interval_ms: Option<NonZeroU64>,
    /// Number of runs of a series; `None` means as many as the escrow pays for. Ignored for a single run.
    pub runs_max: Option<NonZeroU64>,
    /// What happens to missed due times.
    pub catch_up: CatchUp,
    /// What a run costs.
    pub charge: Charge,
}

/// What happens to due times that a series missed while the chain was halted or congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CatchUp {
    /// Runs once for each, one per block.
    All = 0,
    /// Runs once, for the latest.
    Latest = 1,
    /// Runs for none of them and waits for the next due time.
    Skip = 2,
}

/// What a run costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Charge {
    /// The whole gas limit at the base fee.
    GasLimit = 0,
    /// The gas used at the base fee, but at least half of the gas limit; the rest returns to the escrow.
    GasUsed = 1,
}

impl CatchUp {
    /// The policy with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::All, Self::Latest, Self::Skip].into_iter().find(|policy| *policy as u8 == number)
    }
}

impl CronTerms {
    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let unknown = |what, given: u8| DecodeError::UnknownValue { what, given: given.into() };
        let (catch_up, charge) = (input.u8("catch-up policy")?, input.u8("charge")?);
        Ok(Self {
            catch_up: CatchUp::from_number(catch_up).ok_or_else(|| unknown("catch-up policy", catch_up))?,
            charge: match charge {
                0 => Charge::GasLimit,
                1 => Charge::GasUsed,
                given => return Err(unknown("charge", given)),
            },
            interval_ms: NonZeroU64::new(input.u64("interval")?),
            runs_max: NonZeroU64::new(input.u64("number of runs")?),
        })
    }
}
