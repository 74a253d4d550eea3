//! The record of a schedule: two mutable slots of the ledger account, and an immutable body.
//!
//! ```text
//!   ledger slot (id, 0)   head     status, lane, due time, priority, runs, how the last one ended
//!   ledger slot (id, 1)   escrow   the money it holds
//!   ledger slot (id, 2)   tally    for the schedule service: how far signatures are
//!   Body(id)              body     who, what, on which terms
//! ```
//!
//! Slots are in the EVM's journal, so a revert also undoes changes of a record. A schedule without a head does
//! not exist. The calendar is fully determined by the heads.

mod body;
mod head;
mod trigger;

pub use body::{Body, Call};
pub use head::{Head, LastRun, Status};
pub use trigger::Trigger;

pub use crate::doors::{Door, Terms};

use crate::{
    calendar::{Entry, Priority, Queue},
    capacity::NotBooked,
};
use alloy_primitives::{Address, B256, Bytes, U256};
use almanac_primitives::{
    GasPrice, Lane, RunTransaction, ScheduleId, ScheduleRef, StateKey, StateRead, StateReadError,
    TimestampMs, Wei, addresses::LEDGER, codec::DecodeError, state::decode_slot,
};

/// A schedule read from the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its id.
    pub id: ScheduleId,
    /// The mutable part.
    pub head: Head,
    /// The money it holds.
    pub escrow: Wei,
    /// The immutable part.
    pub body: Body,
}

/// Why a record is invalid: a fault that affects one schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The head does not decode.
    #[error("the head of schedule {id}: {error}")]
    Head {
        /// Which schedule.
        id: ScheduleId,
        /// What is wrong.
        error: DecodeError,
    },
    /// The body does not decode.
    #[error("the body of schedule {id}: {error}")]
    Body {
        /// Which schedule.
        id: ScheduleId,
        /// What is wrong.
        error: DecodeError,
    },
    /// There is a head but no body.
    #[error("schedule {id} has no body")]
    NoBody {
        /// Which schedule.
        id: ScheduleId,
    },
    /// The calendar has an entry whose schedule does not wait at that time in that lane.
    #[error("the calendar has {entry}, the records do not")]
    NotDue {
        /// What the calendar has.
        entry: Entry,
    },
    /// The ledger's balance does not cover a payment: the escrow is larger than what was paid in.
    #[error("the ledger owes {amount} and does not have it")]
    Unpaid {
        /// The payment.
        amount: Wei,
    },
    /// The parts of a settlement do not add up to the whole.
    #[error("the parts of {amount} that schedule {id} leaves do not add up to it")]
    Unsettled {
        /// Which schedule.
        id: ScheduleId,
        /// The amount to settle.
        amount: Wei,
    },
    /// A schedule holds room that is not booked.
    #[error("schedule {id}: {error}")]
    NotBooked {
        /// Which schedule.
        id: ScheduleId,
        /// What is wrong.
        error: NotBooked,
    },
    /// A schedule still exists but has changed since the start of the block selected it.
    #[error("schedule {id} has changed since the start of the block")]
    Changed {
        /// Which schedule.
        id: ScheduleId,
    },
}

/// Why a record cannot be read from a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The store failed.
    #[error(transparent)]
    Read(#[from] StateReadError),
    /// The stored values are invalid.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// Slot of the ledger that holds the head of a schedule.
pub fn head_slot(id: ScheduleId) -> U256 {
    slot(id, HEAD_FIELD)
}

/// Slot of the ledger that holds the escrow of a schedule.
pub fn escrow_slot(id: ScheduleId) -> U256 {
    slot(id, ESCROW_FIELD)
}

/// Slot of the ledger that leads from the hash by which a door finds a schedule to its id. The hash is the slot, but for
/// its first bit, which no other slot of the ledger has.
pub fn name_slot(name: B256) -> U256 {
    U256::from_be_bytes(name.0) | NAME_BIT
}

/// What such a slot holds for a schedule: never zero, which is no name.
pub fn name_word(id: ScheduleId) -> U256 {
    U256::from_limbs([id.0, 1, 0, 0])
}

/// The schedule that such a slot leads to.
pub fn named_by(word: U256) -> Option<ScheduleId> {
    let [id, is_set, ..] = word.into_limbs();
    (is_set == 1).then_some(ScheduleId(id))
}

/// Slot of the ledger that holds the epoch of a door's owner. Its last limb is neither zero nor has the first bit.
pub fn epoch_slot(door: Door, owner: Address) -> U256 {
    let [low, middle, high, _] = U256::from_be_slice(owner.as_slice()).into_limbs();
    U256::from_limbs([low, middle, high, door as u64])
}

/// The schedule whose head is in this slot of the ledger, if it is a head slot.
pub fn schedule_of_head_slot(slot: U256) -> Option<ScheduleId> {
    let [field, id, kind, rest] = slot.into_limbs();
    (field == HEAD_FIELD && kind == RECORD_KIND && rest == 0).then_some(ScheduleId(id))
}

const HEAD_FIELD: u64 = 0;
const ESCROW_FIELD: u64 = 1;
pub(crate) const TALLY_FIELD: u64 = 2;

pub(crate) const NAME_BIT: U256 = U256::from_limbs([0, 0, 0, 1 << 63]);

/// What the slots of identities have instead of it.
pub(crate) const IDENTITY_BIT: U256 = U256::from_limbs([0, 0, 0, 1 << 62]);

/// Distinguishes slots of signatures from other slots of the ledger.
pub(crate) const SIGNER_KIND: u64 = 7;

/// Distinguishes slots of records from other slots of the ledger.
const RECORD_KIND: u64 = 1;

pub(crate) fn slot(id: ScheduleId, field: u64) -> U256 {
    U256::from_limbs([field, id.0, RECORD_KIND, 0])
}

impl Record {
    /// The state keys of a record: head, escrow and body.
    pub fn keys(id: ScheduleId) -> [StateKey; 3] {
        [StateKey::Slot(LEDGER, head_slot(id)), StateKey::Slot(LEDGER, escrow_slot(id)), StateKey::Body(id)]
    }

    /// The record of a schedule in a state, or `None` if it does not exist.
    pub fn read(state: &dyn StateRead, id: ScheduleId) -> Result<Option<Self>, RecordError> {
        let [head, escrow, body] = Self::keys(id);
        let read_slot = |key| match state.read(key)? {
            Some(stored) => {
                decode_slot(&stored).map_err(|error| RecordError::from(Broken::Head { id, error }))
            }
            None => Ok(U256::ZERO),
        };
        let head: U256 = read_slot(head)?;
        if head.is_zero() {
            return Ok(None);
        }
        let escrow = read_slot(escrow)?;
        let body = state.read(body)?;
        Ok(Some(Self::decode(id, head, escrow, body.as_ref())?))
    }

    /// Decodes a record from its stored parts.
    pub(crate) fn decode(
        id: ScheduleId,
        head: U256,
        escrow: U256,
        body: Option<&Bytes>,
    ) -> Result<Self, Broken> {
        let head = Head::from_word(head).map_err(|error| Broken::Head { id, error })?;
        let body = body.ok_or(Broken::NoBody { id })?;
        let body = Body::decode(body).map_err(|error| Broken::Body { id, error })?;
        Ok(Self { id, head, escrow: Wei(escrow), body })
    }

    /// Its calendar entry, if it waits for a time.
    pub fn entry(&self) -> Option<Entry> {
        self.head.entry(self.id)
    }

    /// The transaction of its next run at a gas price.
    pub fn run(&self, gas_price: GasPrice) -> RunTransaction {
        let Call { from, to, value, input } = self.body.call();
        RunTransaction {
            schedule_ref: ScheduleRef { schedule: self.id, number: self.head.runs.into() },
            lane: self.head.lane,
            from: *from,
            to: *to,
            value: *value,
            input: input.clone(),
            gas_limit: self.body.gas_limit,
            gas_price,
        }
    }

    /// What its next run costs at a base fee.
    pub fn charge(&self, base_fee: GasPrice) -> Wei {
        self.body.terms.charge(self, base_fee)
    }

    /// The head with the values that it caches from escrow and body.
    pub fn full_head(&self) -> Head {
        self.body.terms.full_head(self)
    }

    /// Whether it may run more than once.
    pub fn is_series(&self) -> bool {
        self.body.terms.is_series()
    }

    /// When the run after the one for `due` is due; `None` if that one is the last.
    pub fn next_due(&self, due: TimestampMs) -> Option<TimestampMs> {
        let interval = self.body.terms.interval().filter(|_| self.runs_left().is_none_or(|left| left > 1))?;
        due.checked_add(interval)
    }

    /// How many runs are left by count, or `None` if only the escrow limits them.
    pub fn runs_left(&self) -> Option<u64> {
        self.body.terms.runs_max().map(|max| max.saturating_sub(self.head.runs.into()))
    }

    /// How many runs the escrow pays for at a base fee, limited by the runs left.
    pub fn runway(&self, base_fee: GasPrice) -> u64 {
        let charge = self.charge(base_fee).0;
        let paid = if charge.is_zero() { u64::MAX } else { (self.escrow.0 / charge).saturating_to() };
        self.runs_left().map_or(paid, |left| left.min(paid))
    }
}

impl Head {
    /// The calendar entry of a schedule with this head, if it waits for a time.
    pub fn entry(&self, id: ScheduleId) -> Option<Entry> {
        // ARC21-11: by time, then id. Money does not buy a place in the cron lane.
        let priority = Priority(if self.lane == Lane::Cron { 0 } else { self.priority });
        let due = self.due.filter(|_| self.status == Status::Pending)?;
        Some(Entry { queue: Queue::of_lane(self.lane), at: due.0, priority, schedule: id })
    }

    /// All calendar entries of a schedule with this head.
    pub fn entries(&self, id: ScheduleId) -> impl Iterator<Item = Entry> + use<> {
        let at = |queue, at, priority| Some(Entry { queue, at, priority: Priority(priority), schedule: id });
        let due = self.due.map_or(0, |due| due.0);
        let entries = match self.status {
            Status::Pending => [self.entry(id), None],
            // The highest price first, then the oldest.
            Status::Waiting => [
                at(Queue::Waiting, u64::MAX - self.priority, u64::MAX - due),
                at(Queue::Expiring, self.until, 0),
            ],
            Status::Running | Status::Processed | Status::Quarantined => [None, None],
            Status::Succeeded | Status::Failed | Status::Cancelled | Status::Expired | Status::Shutdown => {
                [at(Queue::Kept, self.until, 0), None]
            }
        };
        entries.into_iter().flatten()
    }
}
