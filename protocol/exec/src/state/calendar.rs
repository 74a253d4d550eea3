//! The calendar and the bodies follow the heads of schedules that a block changed.

use super::{BlockState, CachedSlot};
use crate::error::StateFault;
use alloy_primitives::U256;
use almanac_primitives::{
    ScheduleId, StateChange, StateKey,
    addresses::{LEDGER, PARAMETERS},
    params::Parameter,
};
use almanac_schedule::{
    Calendar,
    calendar::{ApplyError, CalendarError, Change, Entry},
    record::{Door, Head, schedule_of_head_slot},
};

/// What kept the calendar from following the records: a fault of our own.
#[derive(Debug)]
pub(crate) enum CalendarDamage {
    /// Changes contradicted it. It was written without those.
    Mended(ApplyError),
    /// It cannot be written, and stays as it was.
    Unwritable(ApplyError),
}

impl BlockState<'_> {
    /// What becomes of the calendar and of bodies, now that it is known which heads changed, and to what.
    pub(super) fn schedule_changes(
        &mut self,
    ) -> Result<(Vec<StateChange>, Option<CalendarDamage>), StateFault> {
        let mut moves: Vec<_> = self.stray_entries.drain(..).map(Change::Remove).collect();
        let mut changes = Vec::new();
        for name in self.changed_slots.iter().filter(|name| name.address == LEDGER) {
            let Some(id) = schedule_of_head_slot(name.slot) else { continue };
            let cached = &self.slots[name];
            moves.extend(entry_moves(id, cached.original, cached.value));
            changes.extend(self.body_change(id, cached)?);
        }
        if moves.is_empty() {
            return Ok((changes, None));
        }
        let (nodes, damage) = self.move_entries(&moves)?;
        changes.extend(nodes);
        Ok((changes, damage))
    }

    /// Lets the calendar follow the records. A fault of our own must not stop a block in which somebody gets their
    /// money back: what the calendar contradicts is left out; one that cannot be written stays as it is, and
    /// every lane is paused.
    fn move_entries(
        &mut self,
        moves: &[Change],
    ) -> Result<(Vec<StateChange>, Option<CalendarDamage>), StateFault> {
        let calendar = Calendar::new(self.parent);
        let contradicted = match calendar.apply(moves) {
            Ok(nodes) => return Ok((nodes, None)),
            Err(error) => error,
        };
        let possible = calendar.possible(moves).map_err(ApplyError::from);
        match possible.and_then(|possible| calendar.apply(&possible)) {
            Ok(nodes) => Ok((nodes, Some(CalendarDamage::Mended(contradicted)))),
            Err(ApplyError::Calendar(CalendarError::Read(error))) => Err(error.into()),
            Err(damage) => {
                // Every lane: what is due in any of them cannot be told any more.
                for paused in Door::ALL.into_iter().filter_map(|door| door.switches().paused) {
                    self.write_slot(PARAMETERS, U256::from(paused.slot), Parameter::slot_value(1))?;
                }
                Ok((Vec::new(), Some(CalendarDamage::Unwritable(damage))))
            }
        }
    }

    /// A body is there as long as its head is.
    fn body_change(&self, id: ScheduleId, head: &CachedSlot) -> Result<Option<StateChange>, StateFault> {
        if head.original.is_zero() == head.value.is_zero() {
            return Ok(None);
        }
        let key = StateKey::Body(id);
        let new = if head.value.is_zero() { None } else { self.new_bodies.get(&id).cloned() };
        Ok(Some(StateChange { key, old: self.parent.read(key)?, new }))
    }
}

/// How entries of the calendar move with the head of their schedule. A head that cannot be read has none.
fn entry_moves(id: ScheduleId, old: U256, new: U256) -> Vec<Change> {
    let entries = |word| -> Vec<Entry> {
        Head::from_word(word).map(|head| head.entries(id).collect()).unwrap_or_default()
    };
    let (old, new) = (entries(old), entries(new));
    let gone = old.iter().filter(|entry| !new.contains(entry)).copied().map(Change::Remove);
    let come = new.iter().filter(|entry| !old.contains(entry)).copied().map(Change::Insert);
    gone.chain(come).collect()
}
