//! What never changes in a record: who, what, how often, and on which terms.

use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    DurationMs, Gas, Wei,
    codec::{DecodeError, Reader, Writer},
    params::{RUN_INPUT_BYTES_MAX, SECOND_MS},
};
use std::num::NonZeroU64;

const VERSION: u8 = 1;

/// The part of a record that is fixed at creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The interface that it came through, whose events it gives.
    pub door: Door,
    /// Who may cancel it.
    pub owner: Address,
    /// Who gets its refunds.
    pub refund_to: Address,
    /// `msg.sender` and `tx.origin` of its runs.
    pub from: Address,
    /// The contract that is called.
    pub to: Address,
    /// Value that goes with each call.
    pub value: Wei,
    /// Gas that a run may use, intrinsic gas included.
    pub gas_limit: Gas,
    /// Milliseconds from one due time to the next; `None` is a single run.
    pub interval_ms: Option<NonZeroU64>,
    /// How many runs of a series; `None` is as many as the escrow pays for. A single run is one, whatever is here.
    pub runs_max: Option<NonZeroU64>,
    /// What becomes of times that were missed.
    pub catch_up: CatchUp,
    /// What a run costs.
    pub charge: Charge,
    /// Calldata.
    pub input: Bytes,
}

/// The interface that a schedule came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Door {
    /// ARC-21 cron registry.
    Cron = 1,
}

/// What becomes of the times that a series missed while the chain stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CatchUp {
    /// A run for each, one per block.
    All = 0,
    /// One run, for the latest.
    Latest = 1,
    /// None; it waits for the next time to come.
    Skip = 2,
}

/// What a run costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Charge {
    /// The whole gas limit at the base fee.
    GasLimit = 0,
    /// The gas used at the base fee, and at least half of the limit; the rest returns to the escrow.
    GasUsed = 1,
}

impl CatchUp {
    /// The policy with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::All, Self::Latest, Self::Skip].into_iter().find(|policy| *policy as u8 == number)
    }
}

impl Body {
    /// From one due time to the next, if there is more than one.
    pub fn interval(&self) -> Option<DurationMs> {
        self.interval_ms.map(|ms| DurationMs(ms.get()))
    }

    /// The most that an escrow can pay per gas of one run: it covers a run at this base fee and at none above.
    pub(crate) fn price(&self, escrow: Wei) -> u64 {
        escrow.0.checked_div(U256::from(self.gas_limit.0)).map_or(u64::MAX, |price| price.saturating_to())
    }

    /// The interval in seconds of a series that skips what it has missed, else zero. A head that says zero, or a
    /// little more than the interval, costs a read of the record and nothing else.
    pub(crate) fn skip_seconds(&self) -> u32 {
        let interval = self.interval_ms.filter(|_| self.catch_up == CatchUp::Skip);
        interval.map_or(0, |ms| u32::try_from(ms.get().div_ceil(SECOND_MS)).unwrap_or_default())
    }

    /// Stored form.
    pub fn encode(&self) -> Bytes {
        let mut out = Writer::versioned(VERSION, 160 + self.input.len());
        out.u8(self.door as u8);
        out.u8(self.catch_up as u8);
        out.u8(self.charge as u8);
        out.address(self.owner);
        out.address(self.refund_to);
        out.address(self.from);
        out.address(self.to);
        out.u256(self.value.0);
        out.u64(self.gas_limit.0);
        out.u64(self.interval_ms.map_or(0, NonZeroU64::get));
        out.u64(self.runs_max.map_or(0, NonZeroU64::get));
        out.bytes(&self.input);
        out.finish().into()
    }

    /// Reads the stored form.
    pub fn decode(encoded: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::versioned(encoded, "schedule body", VERSION)?;
        let unknown = |what, given: u8| DecodeError::UnknownValue { what, given: given.into() };
        let (door, catch_up, charge) = (input.u8("door")?, input.u8("catch-up policy")?, input.u8("charge")?);
        let body = Self {
            door: match door {
                1 => Door::Cron,
                given => return Err(unknown("door", given)),
            },
            catch_up: CatchUp::from_number(catch_up).ok_or_else(|| unknown("catch-up policy", catch_up))?,
            charge: match charge {
                0 => Charge::GasLimit,
                1 => Charge::GasUsed,
                given => return Err(unknown("charge", given)),
            },
            owner: input.address("owner")?,
            refund_to: input.address("refund recipient")?,
            from: input.address("sender")?,
            to: input.address("target")?,
            value: Wei(input.u256("value")?),
            gas_limit: Gas(input.u64("gas limit")?),
            interval_ms: NonZeroU64::new(input.u64("interval")?),
            runs_max: NonZeroU64::new(input.u64("number of runs")?),
            input: input.bytes("calldata", RUN_INPUT_BYTES_MAX)?,
        };
        input.finish("schedule body")?;
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body() -> Body {
        Body {
            door: Door::Cron,
            owner: Address::repeat_byte(1),
            refund_to: Address::repeat_byte(2),
            from: Address::repeat_byte(3),
            to: Address::repeat_byte(4),
            value: Wei::ZERO,
            gas_limit: Gas(100_000),
            interval_ms: NonZeroU64::new(60_000),
            runs_max: NonZeroU64::new(3),
            catch_up: CatchUp::Latest,
            charge: Charge::GasUsed,
            input: Bytes::from_static(b"four and more"),
        }
    }

    #[test]
    fn both_sides_of_the_calldata_bound() {
        let with = |length| Body { input: vec![7; length].into(), ..body() };
        let largest = with(RUN_INPUT_BYTES_MAX);
        assert_eq!(Body::decode(&largest.encode()), Ok(largest));
        assert!(Body::decode(&with(RUN_INPUT_BYTES_MAX + 1).encode()).is_err());
    }

    #[test]
    fn every_repeat_survives() {
        for interval in [None, NonZeroU64::new(1), NonZeroU64::new(u64::MAX)] {
            for runs_max in [None, NonZeroU64::new(1), NonZeroU64::new(u64::MAX)] {
                let body = Body { interval_ms: interval, runs_max, ..body() };
                assert_eq!(Body::decode(&body.encode()), Ok(body));
            }
        }
    }

    proptest! {
        /// Flipped bytes of a real body: what still reads must be written back as it was.
        #[test]
        fn one_body_has_one_encoding(at in 0usize..170, value: u8, cut in 0usize..200) {
            let mut bytes = body().encode().to_vec();
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            bytes.truncate(cut);
            if let Ok(body) = Body::decode(&bytes) {
                prop_assert_eq!(body.encode(), Bytes::from(bytes));
            }
        }
    }
}
