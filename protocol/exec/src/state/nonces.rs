//! The history of orderless nonces during a block. It is outside the EVM's journal: a transaction that failed and was
//! charged keeps its entry, one that was refused never gets there.

use super::BlockState;
use crate::error::StateFault;
use alloy_primitives::Bytes;
use almanac_primitives::{
    StateChange, StateKey, TimestampMs,
    nonces::{NonceSweep, Pair, decode_log, decode_number, encode_log, encode_number},
    params::{NONCE_KEPT_SECONDS, NONCE_LOG_PART_ENTRIES_MAX, NONCE_SWEEP_SKIPS_MAX},
    state::Meta,
};
use std::collections::BTreeMap;

const SWEEP: StateKey = StateKey::Meta(Meta::NonceSweep);

/// What a block does to the history.
#[derive(Default)]
pub(crate) struct Nonces {
    /// Pairs that the block uses, with their expirations.
    used: BTreeMap<Pair, u64>,
    /// The same by expiration, in the block's order.
    log: BTreeMap<u64, Vec<Pair>>,
    /// Values that the block collects.
    collected: Vec<StateKey>,
    /// How far it collected, if it did.
    sweep: Option<NonceSweep>,
}

impl BlockState<'_> {
    /// When a sender's transaction with this nonce expires or expired, while that is remembered.
    pub(crate) fn nonce_expiration(&self, pair: Pair) -> Result<Option<u64>, StateFault> {
        match self.nonces.used.get(&pair) {
            Some(expiration) => Ok(Some(*expiration)),
            None => self.read_number(StateKey::Nonce(pair.0, pair.1)),
        }
    }

    /// Remembers an orderless transaction that enters the block.
    pub(crate) fn use_nonce(&mut self, pair: Pair, expiration: u64) {
        self.nonces.used.insert(pair, expiration);
        self.nonces.log.entry(expiration).or_default().push(pair);
    }

    /// How many orderless transactions the block has.
    pub(crate) fn nonces_used(&self) -> u64 {
        self.nonces.used.len() as u64
    }

    /// Collects at most `entries_max` entries that can refuse nothing any more, the oldest first. A log that cannot be
    /// read, a fault of our own, ends the collection and stops no block.
    pub(crate) fn sweep_nonces(&mut self, now: TimestampMs, entries_max: u64) -> Result<(), StateFault> {
        match self.try_sweep(now, entries_max) {
            Err(StateFault::Corrupt { .. }) => Ok(()),
            result => result,
        }
    }

    fn try_sweep(&mut self, now: TimestampMs, entries_max: u64) -> Result<(), StateFault> {
        let Some(mut sweep) = self.read_sweep()? else { return Ok(()) };
        // Whatever expired before this can be taken again by any transaction that is not expired itself.
        let Some(last) = now.seconds().checked_sub(NONCE_KEPT_SECONDS) else { return Ok(()) };
        let (mut entries_left, mut skips_left) = (entries_max, NONCE_SWEEP_SKIPS_MAX);
        while sweep.second <= last && sweep.seconds_left > 0 && entries_left > 0 && skips_left > 0 {
            match self.read_number(StateKey::NonceLog(sweep.second, 0))? {
                Some(parts) if sweep.part <= parts => {
                    let seen = self.collect_part(&mut sweep, entries_left)?;
                    entries_left = entries_left.saturating_sub(seen);
                }
                Some(_) => {
                    self.nonces.collected.push(StateKey::NonceLog(sweep.second, 0));
                    sweep.seconds_left -= 1;
                    next_second(&mut sweep);
                }
                None => {
                    skips_left -= 1;
                    next_second(&mut sweep);
                }
            }
        }
        self.nonces.sweep = Some(sweep);
        Ok(())
    }

    /// Collects from one part of a second's log. Returns how many entries it looked at.
    fn collect_part(&mut self, sweep: &mut NonceSweep, entries_left: u64) -> Result<u64, StateFault> {
        let key = StateKey::NonceLog(sweep.second, sweep.part);
        let stored = self.parent.read(key)?.unwrap_or_default();
        let entries = decode_log(&stored).map_err(|error| StateFault::Corrupt { key, error })?;
        let from = usize::try_from(sweep.offset).unwrap_or(usize::MAX).min(entries.len());
        let until =
            from.saturating_add(usize::try_from(entries_left).unwrap_or(usize::MAX)).min(entries.len());
        let looked_at = &entries[from..until];
        let keys: Vec<_> = looked_at.iter().map(|(sender, nonce)| StateKey::Nonce(*sender, *nonce)).collect();
        self.parent.announce(&keys);
        for (pair, key) in looked_at.iter().zip(keys) {
            // A pair that was taken again expires later, and is in that second's log.
            let is_taken_again = self.nonces.used.contains_key(pair);
            if !is_taken_again && self.read_number(key)? == Some(sweep.second) {
                self.nonces.collected.push(key);
            }
        }
        if until == entries.len() {
            self.nonces.collected.push(key);
            (sweep.part, sweep.offset) = (sweep.part.saturating_add(1), 0);
        } else {
            sweep.offset = u32::try_from(until).unwrap_or(u32::MAX);
        }
        // An empty part would be looked at for nothing, for ever.
        Ok((looked_at.len() as u64).max(1))
    }

    /// What becomes of the history.
    pub(super) fn nonce_changes(&mut self, now: TimestampMs) -> Result<Vec<StateChange>, StateFault> {
        let Nonces { used, log, collected, sweep } = std::mem::take(&mut self.nonces);
        let is_untouched = used.is_empty() && sweep.is_none();
        if is_untouched {
            return Ok(Vec::new());
        }
        let stored = self.parent.read(SWEEP)?;
        let mut sweep = match sweep {
            Some(sweep) => Some(sweep),
            None => self.read_sweep()?,
        };
        let mut changes = Vec::new();
        for ((sender, nonce), expiration) in used {
            let key = StateKey::Nonce(sender, nonce);
            changes.push(self.change_to(key, Some(encode_number(expiration)))?);
        }
        for (second, entries) in log {
            let parts = self.read_number(StateKey::NonceLog(second, 0))?.unwrap_or(0);
            let chunks = entries.chunks(NONCE_LOG_PART_ENTRIES_MAX);
            let parts_now = parts + chunks.len() as u64;
            changes.push(self.change_to(StateKey::NonceLog(second, 0), Some(encode_number(parts_now)))?);
            for (part, chunk) in (parts + 1..).zip(chunks) {
                changes.push(self.change_to(StateKey::NonceLog(second, part), Some(encode_log(chunk)))?);
            }
            if parts == 0 {
                // Nothing that is taken now expires before now, so collecting starts here at the earliest.
                let start = NonceSweep { second: now.seconds(), part: 1, offset: 0, seconds_left: 0 };
                let live = sweep.filter(|sweep| sweep.seconds_left > 0).unwrap_or(start);
                sweep = Some(NonceSweep { seconds_left: live.seconds_left.saturating_add(1), ..live });
            }
        }
        for key in collected {
            changes.push(self.change_to(key, None)?);
        }
        let new = sweep.filter(|sweep| sweep.seconds_left > 0).map(|sweep| sweep.encode());
        changes.push(StateChange { key: SWEEP, old: stored, new });
        Ok(changes)
    }

    fn change_to(&self, key: StateKey, new: Option<Bytes>) -> Result<StateChange, StateFault> {
        Ok(StateChange { key, old: self.parent.read(key)?, new })
    }

    fn read_sweep(&self) -> Result<Option<NonceSweep>, StateFault> {
        let stored = self.parent.read(SWEEP)?;
        stored
            .map(|stored| NonceSweep::decode(&stored))
            .transpose()
            .map_err(|error| StateFault::Corrupt { key: SWEEP, error })
    }

    fn read_number(&self, key: StateKey) -> Result<Option<u64>, StateFault> {
        let stored = self.parent.read(key)?;
        stored
            .map(|stored| decode_number(&stored))
            .transpose()
            .map_err(|error| StateFault::Corrupt { key, error })
    }
}

fn next_second(sweep: &mut NonceSweep) {
    *sweep = NonceSweep { second: sweep.second.saturating_add(1), part: 1, offset: 0, ..*sweep };
}
