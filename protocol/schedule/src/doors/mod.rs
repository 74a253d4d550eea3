//! The doors that schedules come through: each with its terms and its rules, and here the list of them.
//!
//! A new door adds a module, a line to each of the two enums and to the two functions that tell them apart. Nothing else
//! in this crate knows how many there are.

pub mod cron;
mod rules;

pub use rules::{Fact, Rules};

use crate::calendar::Queue;
use almanac_primitives::{
    codec::{DecodeError, Reader},
    params::{Parameter, Parameters},
};
use cron::CronTerms;
use std::ops::Deref;

/// The interface that a schedule came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Door {
    /// ARC-21 cron registry.
    Cron = 1,
}

/// What a schedule is bound to by its door, fixed at creation. One variant per door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terms {
    /// ARC-21.
    Cron(CronTerms),
}

impl Door {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Cron];

    /// What is known of it before any schedule is.
    pub fn profile(self) -> &'static Profile {
        match self {
            Self::Cron => &cron::PROFILE,
        }
    }

    /// The door with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|door| *door as u8 == number)
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        self.profile().name
    }

    /// What governance switches it with.
    pub fn switches(self) -> &'static Switches {
        &self.profile().switches
    }
}

impl Terms {
    /// Those of ARC-21, if they are.
    pub fn cron(&self) -> Option<&CronTerms> {
        match self {
            Self::Cron(terms) => Some(terms),
        }
    }
}

/// The rules of the door that the terms are of.
impl Deref for Terms {
    type Target = dyn Rules;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Cron(terms) => terms,
        }
    }
}

/// What is known of a door before any of its schedules is.
#[derive(Debug)]
pub struct Profile {
    /// Its name for people.
    pub name: &'static str,
    /// What governance switches it with.
    pub switches: Switches,
    /// The queues of the calendar in which its schedules wait. No two doors share one, so a door that is held back does
    /// not block another.
    pub queues: &'static [Queue],
    /// Reads the terms of one of its schedules.
    pub(crate) decode: fn(&mut Reader<'_>) -> Result<Terms, DecodeError>,
}

/// Parameters that switch a door off, or hold its runs back. `None` where it has no such switch.
#[derive(Clone, Copy, Debug)]
pub struct Switches {
    /// At 0 the door takes no orders and nothing of it runs.
    pub enabled: Option<Parameter>,
    /// At 1 the same, for a while: a fault of the chain's own sets it, too.
    pub paused: Option<Parameter>,
}

impl Switches {
    /// Whether what waits behind the door is held back.
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
