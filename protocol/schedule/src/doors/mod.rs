//! The list of doors, the interfaces that create schedules. Each door has a module with its terms and its
//! rules.
//!
//! A new door adds a module, a variant to each of the two enums, and an arm to each of the two functions that
//! match on them. Nothing else in this crate depends on the number of doors.

pub mod callback;
pub mod cron;
pub mod market;
mod rules;
pub mod signed;

pub use rules::{Fact, Rules};

use crate::calendar::Queue;
use almanac_primitives::{
    codec::{DecodeError, Reader},
    params::{Parameter, Parameters},
};
use callback::CallbackTerms;
use cron::CronTerms;
use market::BidTerms;
use signed::SignedTerms;
use std::ops::Deref;

/// The interface through which a schedule was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Door {
    /// ARC-21 cron registry.
    Cron = 1,
    /// FLIP-330 callbacks.
    Callback = 2,
    /// AIP-125 scheduled transactions.
    Market = 3,
    /// Hedera's schedule service.
    Signed = 4,
}

/// The door-specific terms of a schedule, fixed at creation. One variant per door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terms {
    /// ARC-21.
    Cron(CronTerms),
    /// FLIP-330.
    Callback(CallbackTerms),
    /// AIP-125.
    Market(BidTerms),
    /// Hedera.
    Signed(SignedTerms),
}

impl Door {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cron, Self::Callback, Self::Market, Self::Signed];

    /// The static properties of the door.
    pub fn profile(self) -> &'static Profile {
        match self {
            Self::Cron => &cron::PROFILE,
            Self::Callback => &callback::PROFILE,
            Self::Market => &market::PROFILE,
            Self::Signed => &signed::PROFILE,
        }
    }

    /// The door with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|door| *door as u8 == number)
    }

    /// Its display name.
    pub fn name(self) -> &'static str {
        self.profile().name
    }

    /// The parameters with which governance switches it.
    pub fn switches(self) -> &'static Switches {
        &self.profile().switches
    }
}

impl Terms {
    /// The ARC-21 terms, if these are ARC-21 terms.
    pub fn cron(&self) -> Option<&CronTerms> {
        match self {
            Self::Cron(terms) => Some(terms),
            Self::Callback(_) | Self::Market(_) | Self::Signed(_) => None,
        }
    }

    /// Those of FLIP-330, if they are.
    pub fn callback(&self) -> Option<&CallbackTerms> {
        match self {
            Self::Callback(terms) => Some(terms),
            Self::Cron(_) | Self::Market(_) | Self::Signed(_) => None,
        }
    }

    /// Those of AIP-125, if they are.
    pub fn market(&self) -> Option<&BidTerms> {
        match self {
            Self::Market(terms) => Some(terms),
            Self::Cron(_) | Self::Callback(_) | Self::Signed(_) => None,
        }
    }

    /// Those of the schedule service, if they are.
    pub fn signed(&self) -> Option<&SignedTerms> {
        match self {
            Self::Signed(terms) => Some(terms),
            Self::Cron(_) | Self::Callback(_) | Self::Market(_) => None,
        }
    }
}

/// Dereferences to the rules of the terms' door.
impl Deref for Terms {
    type Target = dyn Rules;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Cron(terms) => terms,
            Self::Callback(terms) => terms,
            Self::Market(terms) => terms,
            Self::Signed(terms) => terms,
        }
    }
}

/// The static properties of a door.
#[derive(Debug)]
pub struct Profile {
    /// Its display name.
    pub name: &'static str,
    /// The parameters with which governance switches it.
    pub switches: Switches,
    /// The calendar queues in which its schedules wait. Doors never share one, so a paused door does not block
    /// another.
    pub queues: &'static [Queue],
    /// Decodes the terms of one of its schedules.
    pub(crate) decode: fn(&mut Reader<'_>) -> Result<Terms, DecodeError>,
}

/// Parameters that disable a door or pause its runs. `None` if it has no such switch.
#[derive(Clone, Copy, Debug)]
pub struct Switches {
    /// At 0 the door accepts no orders and runs nothing.
    pub enabled: Option<Parameter>,
    /// At 1 the same, temporarily. A fault of the chain's own sets it too.
    pub paused: Option<Parameter>,
}

impl Switches {
    /// Whether the door's runs are disabled or paused.
    pub fn is_held(&self, parameters: &Parameters) -> bool {
        self.enabled.is_some_and(|enabled| parameters.get(enabled) == 0)
            || self.paused.is_some_and(|paused| parameters.get(paused) == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_doors_share_a_number_a_name_or_a_queue() {
        let numbers: BTreeSet<_> = Door::ALL.iter().map(|door| *door as u8).collect();
        let names: BTreeSet<_> = Door::ALL.iter().map(|door| door.name()).collect();
        assert_eq!((numbers.len(), names.len()), (Door::ALL.len(), Door::ALL.len()));
        let queues: Vec<_> = Door::ALL.iter().flat_map(|door| door.profile().queues).collect();
        assert_eq!(queues.iter().collect::<BTreeSet<_>>().len(), queues.len());
        assert!(!numbers.contains(&0), "zero is no door, where one may be missing");
    }
}
