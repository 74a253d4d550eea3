//! Coverage: what went wrong in fact, counted where it happened and not where it was planned.

use crate::sim::liar::Lie;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A message was dropped.
    Loss,
    /// A message arrived a second time.
    Duplicate,
    /// A message arrived after later ones.
    Delay,
    /// A message was stopped by a cut that goes both ways.
    Partition,
    /// A message was stopped by a cut that goes one way.
    OneWayCut,
    /// A validator with a wrong clock proposed.
    Skew,
    /// A validator was killed.
    Crash,
    /// All validators were down at once.
    ClusterCrash,
    /// After a crash, a part of a write was on disk.
    TornWrite,
    /// After a crash, nothing of a write was on disk.
    LostWrite,
    /// A write or a sync failed.
    FailedWrite,
    /// A process ended in the middle of a write or a sync.
    Halt,
    /// A validator stopped because its disk had failed.
    Stopped,
    /// A restart executed a block again that the archive had and the state lacked.
    Replay,
    /// A write or a sync took long.
    SlowDisk,
    /// A sync took some time.
    SlowSync,
    /// The state after a block took long to be made.
    SlowSeal,
    /// It could not be made at that moment.
    FailedSeal,
    /// A read gave what was not written.
    Misread,
    /// A task would have run while its process stood still.
    Pause,
    /// A clock was set, or set back.
    ClockJump,
    /// A clock had run too fast or too slow for long enough to matter.
    ClockDrift,
    /// A validator started on an older copy of its files.
    Restored,
    /// A validator had to ask the others whether it may vote.
    Asked,
    /// It may, after the view of a final block that its files lack.
    VotesAfter,
    /// It may not, and is silent.
    Silent,
    /// One that was silent signed again.
    VotedAgain,
    /// A proposer left out transactions for want of time.
    Overload,
    /// A follower copied the state.
    Copied,
    /// A peer lied to a follower that copied the state.
    BadAnswer,
    /// It was given operations that are not proven.
    Unproven,
    /// A peer answered with operations in another order.
    OtherOperations,
    /// A peer left out names, or named values that are not there.
    OtherNames,
    /// A validator was killed behind block 1,024, where files and views of old are removed.
    LateCrash,
    /// A proposer lied.
    Told(Lie),
    /// A signature was refused since its round had passed.
    SpentSignature,
    /// Two votes that conflict were reported.
    Evidence,
    /// A validator proposed two blocks in one view.
    Equivocation,
    /// A half of a twin was kept from a peer.
    TwinSplit,
}

/// How often each fault happened. Cloning shares it.
#[derive(Clone, Default)]
pub struct Marks(Arc<Mutex<BTreeMap<Mark, u64>>>);

impl Marks {
    pub fn add(&self, mark: Mark) {
        *self.0.lock().unwrap().entry(mark).or_default() += 1;
    }

    pub fn count(&self, mark: Mark) -> u64 {
        self.0.lock().unwrap().get(&mark).copied().unwrap_or_default()
    }

    /// Adds all that another run counted.
    pub fn merge(&self, other: &Self) {
        for (mark, count) in other.0.lock().unwrap().iter() {
            *self.0.lock().unwrap().entry(*mark).or_default() += count;
        }
    }

    /// How often each happened.
    pub fn counts(&self) -> BTreeMap<Mark, u64> {
        self.0.lock().unwrap().clone()
    }

    /// Prints the counts, and fails where one of the faults that a test is about never happened.
    pub fn require(&self, expected: &[Mark]) {
        println!("faults: {:?}", self.0.lock().unwrap());
        let missing: Vec<_> = expected.iter().filter(|mark| self.count(**mark) == 0).collect();
        assert!(missing.is_empty(), "these faults never happened: {missing:?}");
    }
}
