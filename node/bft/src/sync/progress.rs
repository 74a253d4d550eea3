//! Progress of a copy, for observers.

use std::sync::{Mutex, MutexGuard};

/// What a copy is doing, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It looks for a final block.
    #[default]
    Certificate,
    /// It fetches the operations of the state.
    State,
    /// It makes the state of them, compares its root, and counts its values.
    Check,
    /// It fetches the names of the values.
    Names,
    /// The copy is whole: the chain is opened, and waits for its first block.
    Opening,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [Self::Certificate, Self::State, Self::Check, Self::Names, Self::Opening];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Certificate => "header and certificate",
            Self::State => "state",
            Self::Check => "check of the state",
            Self::Names => "names of values",
            Self::Opening => "opening",
        }
    }

    /// What it counts, if anything.
    pub fn unit(self) -> Option<&'static str> {
        match self {
            Self::State => Some("operations"),
            Self::Names => Some("values"),
            Self::Certificate | Self::Check | Self::Opening => None,
        }
    }
}

/// How far a copy is at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// What it is doing.
    pub phase: Phase,
    /// How much of it is done, in the phase's unit.
    pub done: u64,
    /// How much there is to do; 0 where the phase counts nothing.
    pub total: u64,
    /// Bytes that peers sent for this phase.
    pub bytes: u64,
}

/// How far a copy is, as it goes on.
#[derive(Debug, Default)]
pub struct Progress(Mutex<Stage>);

impl Progress {
    /// Begins a phase.
    pub fn begin(&self, phase: Phase, total: u64) {
        *self.stage() = Stage { phase, total, ..Stage::default() };
    }

    /// Counts what was done of the phase, and answers whether that was the rest.
    pub fn add(&self, done: u64, bytes: u64) -> bool {
        let mut stage = self.stage();
        stage.done = stage.done.saturating_add(done).min(stage.total);
        stage.bytes = stage.bytes.saturating_add(bytes);
        stage.done == stage.total
    }

    /// How far it is now.
    pub fn now(&self) -> Stage {
        *self.stage()
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().expect("nothing panics while it holds this")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_ends_with_its_last_piece_and_never_goes_beyond() {
        let progress = Progress::default();
        assert_eq!(progress.now(), Stage::default());
        progress.begin(Phase::State, 10);
        assert!(!progress.add(9, 900));
        assert_eq!(progress.now(), Stage { phase: Phase::State, done: 9, total: 10, bytes: 900 });
        assert!(progress.add(1, 100));
        // A peer's answer that came twice is no progress.
        assert!(progress.add(5, 500));
        assert_eq!(progress.now(), Stage { phase: Phase::State, done: 10, total: 10, bytes: 1_500 });
        progress.begin(Phase::Names, 3);
        assert_eq!(progress.now(), Stage { phase: Phase::Names, done: 0, total: 3, bytes: 0 });
    }

    #[test]
    fn phases_are_in_order_and_have_names_of_their_own() {
        assert!(Phase::ALL.is_sorted());
        let names: std::collections::BTreeSet<_> = Phase::ALL.map(Phase::name).into();
        assert_eq!(names.len(), Phase::ALL.len());
    }
}
