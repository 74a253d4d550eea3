//! The lists that the calendar is made of.

use crate::doors::Door;
use almanac_primitives::{Lane, params::Parameters};

/// A list of schedules in an order of its own. One for each lane and door, so a door that is held back does not block
/// another; and one for each other thing that happens to schedules at some point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Queue {
    /// Runs with booked capacity, by time, then class.
    Reserved = 0,
    /// Jobs of the cron registry, by time.
    Cron = 1,
    /// Runs that compete by price, by time, then price.
    Market = 2,
    /// Runs that take what is left, by time.
    Spare = 3,
    /// Schedules whose time has come and whose price has not, the highest price first.
    Waiting = 4,
    /// The same schedules, by when they expire.
    Expiring = 5,
    /// Ends that can still be read, by the block that sweeps them away.
    Kept = 6,
}

impl Queue {
    /// All of them, in the order of their bytes.
    pub const ALL: [Self; 7] =
        [Self::Reserved, Self::Cron, Self::Market, Self::Spare, Self::Waiting, Self::Expiring, Self::Kept];

    /// The queues whose entries are due at a time, in the order in which a block serves them.
    pub const TIMED: [Self; 4] = [Self::Reserved, Self::Cron, Self::Market, Self::Spare];

    /// The queue with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|queue| *queue as u8 == number)
    }

    /// The queue in which runs of a lane wait for their time.
    pub fn of_lane(lane: Lane) -> Self {
        match lane {
            Lane::Reserved => Self::Reserved,
            Lane::Cron => Self::Cron,
            Lane::Market => Self::Market,
            Lane::Spare => Self::Spare,
        }
    }

    /// The lane whose runs wait here for their time.
    pub fn lane(self) -> Option<Lane> {
        match self {
            Self::Reserved => Some(Lane::Reserved),
            Self::Cron => Some(Lane::Cron),
            Self::Market => Some(Lane::Market),
            Self::Spare => Some(Lane::Spare),
            Self::Waiting | Self::Expiring | Self::Kept => None,
        }
    }

    /// The door whose schedules wait here, where there is such a door.
    pub fn door(self) -> Option<Door> {
        Door::ALL.into_iter().find(|door| door.profile().queues.contains(&self))
    }

    /// Whether governance, or a fault, holds back what waits here.
    pub fn is_held(self, parameters: &Parameters) -> bool {
        self.door().is_some_and(|door| door.switches().is_held(parameters))
    }

    pub(super) fn place(self) -> usize {
        usize::from(self as u8)
    }
}
