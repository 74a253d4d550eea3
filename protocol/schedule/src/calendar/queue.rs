//! The queues of the calendar.

use crate::doors::Door;
use almanac_primitives::{Lane, params::Parameters};

/// An ordered list of schedules. Each lane and door has its own, so a paused door does not block another.
/// Further queues hold schedules that wait for a price, expire, or are swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Queue {
    /// Runs with booked capacity, by time, then class.
    Reserved = 0,
    /// Jobs of the cron registry, by time.
    Cron = 1,
    /// Runs that compete by price, by time, then price.
    Market = 2,
    /// Runs that use leftover gas, by time.
    Spare = 3,
    /// Schedules that are due but wait for a better price, the highest price first.
    Waiting = 4,
    /// The same schedules, by when they expire.
    Expiring = 5,
    /// Ended schedules that are still readable, by the block that removes them.
    Kept = 6,
    /// Schedules that wait for signatures, by when they expire.
    Signing = 7,
}

impl Queue {
    /// All of them, in the order of their bytes.
    pub const ALL: [Self; 8] = [
        Self::Reserved,
        Self::Cron,
        Self::Market,
        Self::Spare,
        Self::Waiting,
        Self::Expiring,
        Self::Kept,
        Self::Signing,
    ];

    /// The queues ordered by due time, in the order in which a block serves them.
    pub const TIMED: [Self; 4] = [Self::Reserved, Self::Cron, Self::Market, Self::Spare];

    /// The queue with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|queue| *queue as u8 == number)
    }

    /// The queue in which a lane's schedules wait until they are due, or, where signatures trigger them, expire.
    pub fn of_lane(lane: Lane) -> Self {
        match lane {
            Lane::Reserved => Self::Reserved,
            Lane::Cron => Self::Cron,
            Lane::Market => Self::Market,
            Lane::Spare => Self::Spare,
            Lane::Signed => Self::Signing,
        }
    }

    /// The lane whose schedules wait in this queue until they are due or expire.
    pub fn lane(self) -> Option<Lane> {
        match self {
            Self::Reserved => Some(Lane::Reserved),
            Self::Cron => Some(Lane::Cron),
            Self::Market => Some(Lane::Market),
            Self::Spare => Some(Lane::Spare),
            Self::Signing => Some(Lane::Signed),
            Self::Waiting | Self::Expiring | Self::Kept => None,
        }
    }

    /// The door whose schedules wait in this queue, if there is one.
    pub fn door(self) -> Option<Door> {
        Door::ALL.into_iter().find(|door| door.profile().queues.contains(&self))
    }

    /// Whether governance or a fault has paused this queue.
    pub fn is_held(self, parameters: &Parameters) -> bool {
        self.door().is_some_and(|door| door.switches().is_held(parameters))
    }

    pub(super) fn place(self) -> usize {
        usize::from(self as u8)
    }
}
