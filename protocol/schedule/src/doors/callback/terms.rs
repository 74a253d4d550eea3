//! What a callback is bound to, beside its call: priority, effort, and what its fee was made of.

use crate::capacity::Class;
use alloy_primitives::U256;
use almanac_primitives::{
    GasPrice, Lane, Wei,
    codec::{DecodeError, Reader, Writer},
    params::EFFORT_GAS,
};

/// The terms of a callback, fixed when it is booked: later parameters do not change them (FLIP330-21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackTerms {
    /// How it gets into a block.
    pub priority: Priority,
    /// Units of work that it may use, of 2,100 gas each.
    pub effort: u64,
    /// What the base part of its fee pays per gas.
    pub price: u64,
    /// Hundredths of a percent of the fee that return when its owner cancels it.
    pub refund_bps: u64,
}

/// How urgent a callback is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Priority {
    /// Runs in its second, or is not taken.
    High = 0,
    /// Runs in its second or in the next one with room.
    Medium = 1,
    /// Runs when a block has room.
    Low = 2,
}

impl Priority {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::High, Self::Medium, Self::Low];

    /// The priority with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|priority| *priority as u8 == number)
    }

    /// What it books; `None` for Low, which books nothing (FLIP330-08).
    pub fn class(self) -> Option<Class> {
        match self {
            Self::High => Some(Class::High),
            Self::Medium => Some(Class::Medium),
            Self::Low => None,
        }
    }

    /// The lane of its run.
    pub fn lane(self) -> Lane {
        match self {
            Self::High | Self::Medium => Lane::Reserved,
            Self::Low => Lane::Spare,
        }
    }

    /// Its place among callbacks of one second: the higher rank runs first (FLIP330-12).
    pub fn rank(self) -> u64 {
        match self {
            Self::High => 2,
            Self::Medium => 1,
            Self::Low => 0,
        }
    }

    /// The priority with this rank.
    pub fn of_rank(rank: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|priority| priority.rank() == rank)
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

impl CallbackTerms {
    /// The part of the fee that pays for gas, without the premium for priority.
    pub fn base_part(&self) -> Wei {
        // 14 bits of effort, 12 of gas, 64 of price.
        Wei(U256::from(self.effort) * U256::from(EFFORT_GAS) * U256::from(self.price))
    }

    /// What the base part pays per gas.
    pub(super) fn gas_price(&self) -> GasPrice {
        GasPrice(self.price.into())
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.u8(self.priority as u8);
        out.u64(self.effort);
        out.u64(self.price);
        out.u64(self.refund_bps);
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let priority = input.u8("priority")?;
        let unknown = DecodeError::UnknownValue { what: "priority", given: priority.into() };
        Ok(Self {
            priority: Priority::from_number(priority).ok_or(unknown)?,
            effort: input.u64("effort")?,
            price: input.u64("price")?,
            refund_bps: input.u64("refund")?,
        })
    }
}
