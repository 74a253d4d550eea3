//! What the logs of blocks say of schedules that wait for signatures.

use alloy_primitives::{Bytes, Log, TxHash};
use alloy_sol_types::SolEventInterface as _;
use almanac_primitives::{
    Receipt, TimestampMs, addresses::SCHEDULE_SERVICE,
    testing::signed::IScheduleService::IScheduleServiceEvents as Event,
};
use almanac_state::ArchivedBlock;
use std::collections::BTreeMap;

/// How a schedule ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Executed,
    Deleted,
    Expired,
}

/// The end of a schedule.
pub struct End {
    pub how: Ended,
    /// The time of its block.
    pub at: TimestampMs,
}

/// One schedule.
pub struct Seen {
    pub id: u64,
    pub round: u32,
    /// The transaction that made it.
    pub created_by: TxHash,
    /// The keys that signed, and the transactions that brought them.
    pub signed: BTreeMap<Bytes, TxHash>,
    /// Block and position of the receipt that triggered it.
    triggered: Option<(u64, usize)>,
    pub ended: Option<End>,
}

/// All schedules, in the order of their creation.
#[derive(Default)]
pub struct History {
    /// Blocks that it has looked at.
    pub blocks: u64,
    pub seen: Vec<Seen>,
}

impl History {
    /// Takes the next block in. An error is something that must not happen.
    pub fn add(&mut self, archived: &ArchivedBlock) -> Result<(), String> {
        let header = &archived.block.header;
        self.blocks += 1;
        for (position, receipt) in archived.receipts.iter().enumerate() {
            for log in receipt.logs.iter().filter(|log| log.address == SCHEDULE_SERVICE) {
                self.take(log, receipt, (header.number, position), header.timestamp)
                    .map_err(|error| format!("block {}: {error}", header.number))?;
            }
        }
        Ok(())
    }

    /// The one that can be signed.
    pub fn pending(&self) -> Option<&Seen> {
        self.seen.last().filter(|seen| seen.is_pending())
    }

    /// How many have ended.
    pub fn ended(&self) -> usize {
        self.seen.iter().filter(|seen| seen.ended.is_some()).count()
    }

    fn take(
        &mut self,
        log: &Log,
        receipt: &Receipt,
        place: (u64, usize),
        at: TimestampMs,
    ) -> Result<(), String> {
        match Event::decode_log(log).map_err(|error| error.to_string())?.data {
            Event::ScheduleCreated(made) => {
                if self.find(made.id).is_ok() || self.pending().is_some() {
                    return Err(format!("schedule {} was made beside another", made.id));
                }
                let (id, round, created_by) = (made.id, made.round, receipt.transaction_hash);
                let signed = BTreeMap::new();
                self.seen.push(Seen { id, round, created_by, signed, triggered: None, ended: None });
            }
            Event::ScheduleSigned(one) => {
                self.find_pending(one.id)?.signed.insert(one.key, receipt.transaction_hash);
            }
            // Whoever makes it again finds the one that waits.
            Event::ScheduleFound(one) => drop(self.find_pending(one.id)?),
            Event::ScheduleTriggered(one) => self.find_pending(one.id)?.triggered = Some(place),
            Event::ScheduleExecuted(one) => {
                let seen = self.find(one.id)?;
                let is_next = seen.triggered.is_some_and(|(block, at)| (block, at + 1) == place);
                let is_its = receipt.schedule_ref.is_some_and(|run| run.schedule.0 == one.id);
                if !is_next || !is_its || seen.ended.is_some() || one.code != 22 {
                    return Err(format!("{one:?} at {place:?}, triggered at {:?}", seen.triggered));
                }
                seen.ended = Some(End { how: Ended::Executed, at });
            }
            Event::ScheduleDeleted(one) => {
                self.find_pending(one.id)?.ended = Some(End { how: Ended::Deleted, at });
            }
            Event::ScheduleExpired(one) => {
                self.find_pending(one.id)?.ended = Some(End { how: Ended::Expired, at });
            }
        }
        Ok(())
    }

    fn find(&mut self, id: u64) -> Result<&mut Seen, String> {
        self.seen.iter_mut().find(|seen| seen.id == id).ok_or_else(|| format!("no schedule {id}"))
    }

    fn find_pending(&mut self, id: u64) -> Result<&mut Seen, String> {
        let seen = self.find(id)?;
        if seen.is_pending() { Ok(seen) } else { Err(format!("schedule {id} goes on after its end")) }
    }
}

impl Seen {
    fn is_pending(&self) -> bool {
        self.ended.is_none() && self.triggered.is_none()
    }
}
