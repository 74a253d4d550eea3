//! Finds the first second with room for a Medium run.

use super::{
    Bookings, Class, Shares,
    hints::Hints,
    stretch::{RANK_MAX, Stretch},
};
use crate::ledger::Ledger;
use std::ops::ControlFlow;

/// How far a search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Seconds that it covers, the first included.
    pub seconds: u64,
    /// Slots that it reads. Hints are exact as long as High's own part does not change: a search then needs
    /// [`search_reads_exact`](super::search_reads_exact) at most. After a change it may look in vain.
    pub reads: u64,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextFree {
    /// This second has room, and none before it.
    At(u64),
    /// No second within reach has room.
    Nowhere,
    /// All reads are used up. No second before this one has room.
    Unsearched {
        /// The first second that was not looked at.
        from: u64,
    },
}

/// The first second from `from` on in which Medium can book the effort.
pub fn next_free<L: Ledger>(
    ledger: &mut L,
    shares: Shares,
    from: u64,
    effort: u64,
    reach: Reach,
) -> Result<NextFree, L::Error> {
    let Some(taken_max) = u64::from(shares.most(Class::Medium)).checked_sub(effort) else {
        return Ok(NextFree::Nowhere);
    };
    let (end, reads_left) = (from.saturating_add(reach.seconds), reach.reads);
    let mut search = Search { ledger, shares, taken_max, at: from, end, reads_left };
    Ok(match search.run()? {
        ControlFlow::Break(found) => found,
        ControlFlow::Continue(()) => NextFree::Nowhere,
    })
}

struct Search<'a, L> {
    ledger: &'a mut L,
    shares: Shares,
    /// Most that may be taken where the run is to fit.
    taken_max: u64,
    /// No second before this one has room.
    at: u64,
    /// The search ends before this second.
    end: u64,
    reads_left: u64,
}

type Step<E> = Result<ControlFlow<NextFree>, E>;

impl<L: Ledger> Search<'_, L> {
    fn run(&mut self) -> Step<L::Error> {
        // Most of the time there is room where it is asked for: look there before reading any hint.
        let mut rank = 0;
        while self.at < self.end {
            if let found @ ControlFlow::Break(_) = self.visit(Stretch::of(rank, self.at))? {
                return Ok(found);
            }
            rank = RANK_MAX;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Looks through a stretch, and moves to its end if there is no room.
    fn visit(&mut self, stretch: Stretch) -> Step<L::Error> {
        let Some(reads_left) = self.reads_left.checked_sub(1) else {
            return Ok(ControlFlow::Break(NextFree::Unsearched { from: self.at }));
        };
        self.reads_left = reads_left;
        let word = self.ledger.load(stretch.slot())?;
        if stretch.rank > 0 {
            return self.visit_parts(stretch, &Hints::from_word(word, self.shares.high()));
        }
        let bookings = Bookings::from_word(word);
        let mut seconds = self.at..self.end.min(stretch.seconds().end);
        let free = seconds.find(|second| {
            let taken = self.shares.taken(bookings.at(*second), Class::Medium);
            u64::from(taken) <= self.taken_max
        });
        self.at = stretch.seconds().end;
        Ok(free.map_or(ControlFlow::Continue(()), |second| ControlFlow::Break(NextFree::At(second))))
    }

    fn visit_parts(&mut self, stretch: Stretch, hints: &Hints) -> Step<L::Error> {
        for part in stretch.parts() {
            let seconds = part.seconds();
            if seconds.end <= self.at || seconds.start >= self.end {
                continue;
            }
            if u64::from(hints.of(part.place())) <= self.taken_max {
                let found = self.visit(part)?;
                if found.is_break() {
                    return Ok(found);
                }
            }
            self.at = seconds.end;
        }
        Ok(ControlFlow::Continue(()))
    }
}
