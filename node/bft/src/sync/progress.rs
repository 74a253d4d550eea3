//! Progress of a copy, for display.

use std::sync::{Mutex, MutexGuard};

/// The phases of a copy, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Searching for a final block.
    #[default]
    Certificate,
    /// Fetching the operations of the state.
    State,
    /// Building the state from them, comparing its root, and counting its values.
    Check,
    /// Fetching the keys of the values.
    Names,
    /// The copy is complete: the chain is opened, and waits for its first block.
    Opening,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [Self::Certificate, Self::State, Self::Check, Self::Names, Self::Opening];

    /// Its display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Certificate => "header and certificate",
            Self::State => "state",
            Self::Check => "check of the state",
            Self::Names => "names of values",
            Self::Opening => "opening",
        }
    }

    /// Its unit of progress, if it has one.
    pub fn unit(self) -> Option<&'static str> {
        match self {
            Self::State => Some("operations"),
            Self::Names => Some("values"),
            Self::Certificate | Self::Check | Self::Opening => None,
        }
    }
}

/// The progress at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// The current phase.
    pub phase: Phase,
    /// Units done.
    pub done: u64,
    /// Units in total; 0 if the phase counts nothing.
    pub total: u64,
    /// Bytes that peers sent for this phase.
    pub bytes: u64,
}

/// The progress of a copy, shared with observers.
#[derive(Default)]
pub struct Progress {
    stage: Mutex<Stage>,
    /// The phase that the listener heard of last.
    told: Mutex<Option<Phase>>,
    listener: Option<Listener>,
}

type Listener = Box<dyn Fn(&Stage) + Send + Sync>;

impl Progress {
    /// Calls `listener` whenever another phase begins, however short it is.
    pub fn told_to(listener: impl Fn(&Stage) + Send + Sync + 'static) -> Self {
        Self { listener: Some(Box::new(listener)), ..Self::default() }
    }

    /// Begins a phase.
    pub fn begin(&self, phase: Phase, total: u64) {
        let stage = Stage { phase, total, ..Stage::default() };
        *self.stage() = stage;
        let before = self.told.lock().expect("nothing panics while it holds this").replace(phase);
        if let Some(listener) = self.listener.as_ref().filter(|_| before != Some(phase)) {
            listener(&stage);
        }
    }

    /// Adds progress. Returns whether the phase is complete.
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
        self.stage.lock().expect("nothing panics while it holds this")
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
        // A repeated answer of a peer is not progress.
        assert!(progress.add(5, 500));
        assert_eq!(progress.now(), Stage { phase: Phase::State, done: 10, total: 10, bytes: 1_500 });
        progress.begin(Phase::Names, 3);
        assert_eq!(progress.now(), Stage { phase: Phase::Names, done: 0, total: 3, bytes: 0 });
    }

    #[test]
    fn each_phase_is_told_once_when_it_begins() {
        let told = std::sync::Arc::new(Mutex::new(Vec::new()));
        let heard = told.clone();
        let progress = Progress::told_to(move |stage| heard.lock().unwrap().push(*stage));
        progress.begin(Phase::Certificate, 0);
        progress.begin(Phase::State, 10);
        progress.add(10, 1_000);
        // Answers that come late end the phase again.
        progress.begin(Phase::Check, 0);
        progress.begin(Phase::Check, 0);
        // Another attempt.
        progress.begin(Phase::Certificate, 0);
        let phases =
            [(Phase::Certificate, 0), (Phase::State, 10), (Phase::Check, 0), (Phase::Certificate, 0)];
        assert_eq!(
            *told.lock().unwrap(),
            phases.map(|(phase, total)| Stage { phase, total, ..Stage::default() })
        );
    }

    #[test]
    fn phases_are_in_order_and_have_names_of_their_own() {
        assert!(Phase::ALL.is_sorted());
        let names: std::collections::BTreeSet<_> = Phase::ALL.map(Phase::name).into();
        assert_eq!(names.len(), Phase::ALL.len());
    }
}
