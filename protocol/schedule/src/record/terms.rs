//! What a schedule is bound to by the door that it came through, and what makes it run.

use crate::cron::{self, CronTerms};
use almanac_primitives::{
    DurationMs,
    codec::{DecodeError, Reader, Writer},
    params::{CRON_ENABLED, CRON_PAUSED, Parameter, Parameters},
};

/// The interface that a schedule came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Door {
    /// ARC-21 cron registry.
    Cron = 1,
}

impl Door {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Cron];

    /// The door with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|door| *door as u8 == number)
    }

    /// What governance switches it with.
    pub fn switches(self) -> Switches {
        match self {
            Self::Cron => Switches { enabled: Some(CRON_ENABLED), paused: Some(CRON_PAUSED) },
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cron => "cron",
        }
    }
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

/// The terms of a door, fixed at creation. One variant per door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terms {
    /// ARC-21.
    Cron(CronTerms),
}

impl Terms {
    /// The door that these terms are of.
    pub fn door(&self) -> Door {
        match self {
            Self::Cron(_) => Door::Cron,
        }
    }

    /// From one due time to the next, if there is more than one.
    pub fn interval(&self) -> Option<DurationMs> {
        match self {
            Self::Cron(terms) => terms.interval(),
        }
    }

    /// Whether a schedule with these terms may run more than once.
    pub fn is_series(&self) -> bool {
        self.interval().is_some()
    }

    /// How many calls a schedule with these terms makes at most.
    pub(super) fn calls_max(&self) -> usize {
        match self {
            Self::Cron(_) => cron::CALLS,
        }
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        match self {
            Self::Cron(terms) => terms.encode(out),
        }
    }

    pub(super) fn decode(door: Door, input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match door {
            Door::Cron => CronTerms::decode(input).map(Self::Cron),
        }
    }
}

/// What makes a schedule run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Trigger {
    /// A time that has come.
    Time = 1,
    /// The last signature that was missing.
    Signatures = 2,
    /// A time that has come, if all have signed by then.
    SignaturesByTime = 3,
}

impl Trigger {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Time, Self::Signatures, Self::SignaturesByTime];

    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|trigger| *trigger as u8 == number)
    }
}
