//! What a key has signed lately, as a real node notes it in a file beside the key: it outlives the process, and is not
//! among the files that an older copy of the directory replaces.

use crate::sim::{disk::Unsynced, marks::Mark, network::Network};
use almanac_bft::{OwnVote, Standing, Voice, VoteBook, VotesOnDisk, sync::Floor};
use commonware_runtime::deterministic::Context;
use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

/// As in a real node: how long after the last sync the note is believed without asking others, the time between two
/// syncs, and the votes that are kept.
const LEASE: Duration = Duration::from_secs(10);
const RENEW_EVERY: Duration = Duration::from_secs(3);
const VOTES_KEPT: usize = 64;

#[derive(Default)]
pub struct Book {
    noted: Mutex<Noted>,
    copied: Mutex<Option<Noted>>,
}

#[derive(Clone, Default)]
struct Noted {
    votes: VecDeque<OwnVote>,
    /// Those at the last sync, which is what a loss of power leaves.
    synced: VecDeque<OwnVote>,
    /// When that was, since the machine was switched on.
    renewed: Option<Duration>,
    belief: Belief,
    has_begun_again: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Belief {
    #[default]
    Checked,
    /// An operator said that nothing is missing.
    ByHand,
    Distrusted,
}

impl Book {
    /// The machine was switched off, unless what it had not synced is still there.
    pub fn restart(&self, unsynced: Unsynced) {
        let mut noted = self.noted.lock().unwrap();
        if unsynced != Unsynced::Kept {
            noted.renewed = None;
        }
        if unsynced == Unsynced::Lost {
            noted.votes = noted.synced.clone();
        }
    }

    pub fn copy(&self) {
        *self.copied.lock().unwrap() = Some(self.noted.lock().unwrap().clone());
    }

    pub fn put_copy_back(&self) {
        let copied = self.copied.lock().unwrap().take().expect("a copy was made");
        *self.noted.lock().unwrap() = Noted { renewed: None, ..copied };
    }

    /// Whatever is missing, nobody is told.
    pub fn believe_by_hand(&self) {
        self.noted.lock().unwrap().belief = Belief::ByHand;
    }

    /// The silence is over. All votes from here on are in the files.
    pub fn begin_again(&self, now: Duration) {
        *self.noted.lock().unwrap() = Noted { renewed: Some(now), has_begun_again: true, ..Noted::default() };
    }

    pub fn is_silent(&self) -> bool {
        self.noted.lock().unwrap().belief == Belief::Distrusted
    }

    pub fn has_begun_again(&self) -> bool {
        self.noted.lock().unwrap().has_begun_again
    }

    /// Compares the note with the votes on disk.
    pub fn standing(&self, votes: VotesOnDisk, now: Duration) -> Standing {
        let noted = self.noted.lock().unwrap();
        match noted.belief {
            Belief::ByHand => return Standing::Sure,
            Belief::Distrusted => return Standing::Lost,
            Belief::Checked => {}
        }
        if noted.votes.iter().any(|vote| !votes.accounts_for(vote)) {
            return Standing::Lost;
        }
        match noted.renewed {
            Some(renewed) if now <= renewed + LEASE => Standing::Sure,
            _ => Standing::Ask(votes),
        }
    }
}

/// Keeps the book of a validator, by the clock of its machine.
pub struct Keeper {
    pub network: Network,
    pub index: usize,
    pub book: Arc<Book>,
    pub clock: Arc<Context>,
}

impl VoteBook for Keeper {
    fn sent(&self, vote: OwnVote) -> io::Result<()> {
        let now = crate::sim::node::now(&self.clock);
        let mut noted = self.book.noted.lock().unwrap();
        if noted.votes.len() == VOTES_KEPT {
            noted.votes.pop_front();
        }
        noted.votes.push_back(vote);
        if noted.renewed.is_none_or(|renewed| now >= renewed + RENEW_EVERY) {
            noted.renewed = Some(now);
            noted.synced = noted.votes.clone();
        }
        Ok(())
    }

    fn begin_after(&self, floor: &Floor) -> io::Result<()> {
        self.network.marks.add(Mark::VotesAfter);
        self.network.set_voice(self.index, Voice::Votes { after: Some(Box::new(floor.clone())) });
        Ok(())
    }

    fn distrust(&self) -> io::Result<()> {
        self.book.noted.lock().unwrap().belief = Belief::Distrusted;
        Ok(())
    }
}
