//! Tracks how far one peer has listed its keys, and how useful they were.
//!
//! A peer lists the keys of its values in order, from where the previous peer stopped to the end, then from the
//! beginning to there; then the keys that each block after the floor changed. So honest peers continue where
//! another one stopped, and each alone lists everything.
//!
//! Two bounds limit what a peer can cost:
//!
//! - Time. A turn ends when the peer has taken [`TURN`] longer than its new keys are worth; then the next peer
//!   is asked. A peer whose turns yield nothing is not asked again.
//! - Keys that the copied state lacks. An honest peer lists those that were created or removed between the
//!   floor and its own block. Each is at least one operation of the log, and certified headers bound their
//!   number. A peer that lists many more is not asked again. It is not disconnected: its index may be ahead of
//!   the newest certificate that it can show.

use super::message::Question;
use almanac_primitives::StateKey;
use std::{num::NonZeroU32, time::Duration};

/// Most blocks above the floor whose changed keys are requested.
const CHANGED_BLOCKS_MAX: u64 = 100_000;

/// Time that a peer may take in one turn in addition to what its new keys are worth.
const TURN: Duration = Duration::from_secs(10);

/// What a new key is worth: a peer that sends ten thousand per second keeps its turn.
const NAME_TIME: Duration = Duration::from_micros(100);

/// Consecutive timeouts that end a peer's turn.
const SILENCES_MAX: u32 = 3;

/// Turns without any new key after which a peer is not asked again. Honest peers may have some, if others have
/// listed most keys before: 60 are ten minutes.
const USELESS_TURNS_MAX: u32 = 60;

/// The same for turns without a single answer.
const SILENT_TURNS_MAX: u32 = 5;

/// Foreign keys allowed beyond those that certified headers explain, since blocks of the index may be newer.
const UNEXPLAINED_MAX: u64 = 1 << 16;

/// How far one peer has listed its keys.
#[derive(Debug)]
pub(super) struct Walk {
    floor: u64,
    limit: u32,
    place: Place,
    /// Keys that the copied state does not have.
    foreign: u64,
    /// Upper bound on the operations between the floor and certified blocks of this peer.
    operations_apart: u64,
    turn: Turn,
    useless_turns: u32,
    silent_turns: u32,
}

/// A peer's position in its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In its current keys. They are listed from after `begin` to the end, then up to `begin`.
    Names { begin: Option<StateKey>, after: Option<StateKey>, is_past_end: bool },
    /// In the keys that a block changed.
    Changes { height: u64, skip: u32, after: Option<StateKey> },
    /// It has no more keys.
    End,
}

/// What happened in a peer's current turn.
#[derive(Debug, Default)]
struct Turn {
    wasted: Duration,
    names: u64,
    answers: u64,
    silences: u32,
}

/// The yield of a page of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Yield {
    /// Keys that had not been found before.
    pub(super) new: u64,
    /// Keys that the copied state does not have.
    pub(super) foreign: u64,
}

impl Walk {
    /// A walk for the state after block `floor`. Lists current keys from after `begin` first.
    pub(super) fn new(floor: u64, begin: Option<StateKey>, limit: NonZeroU32) -> Self {
        Self {
            floor,
            limit: limit.get(),
            place: Place::Names { begin, after: begin, is_past_end: false },
            foreign: 0,
            operations_apart: 0,
            turn: Turn::default(),
            useless_turns: 0,
            silent_turns: 0,
        }
    }

    /// The next question, or `None` if the peer has no more keys.
    pub(super) fn question(&self) -> Option<Question> {
        let limit = self.limit;
        match self.place {
            Place::Names { after, .. } => Some(Question::Keys { after, limit }),
            Place::Changes { height, skip, .. } => Some(Question::Changed { height, skip, limit }),
            Place::End => None,
        }
    }

    /// Checks a page of keys: ascending, and all after the last one, so that a peer cannot list the same keys
    /// twice.
    pub(super) fn check(&self, page: &[StateKey]) -> Result<(), String> {
        let (Place::Names { after, .. } | Place::Changes { after, .. }) = self.place else {
            return Err("names after the last one".to_owned());
        };
        if page.len() > self.limit() {
            return Err(format!("{} names where {} were asked for", page.len(), self.limit));
        }
        if !after.iter().chain(page).is_sorted_by(|a, b| a < b) {
            return Err("names out of order".to_owned());
        }
        Ok(())
    }

    fn limit(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }

    /// Continues after a page that passed [`Self::check`].
    pub(super) fn advance(&mut self, page: &[StateKey]) {
        let is_last = page.len() < self.limit();
        let last = page.last().copied();
        self.place = match self.place {
            Place::Names { begin, is_past_end, .. } => {
                let is_round = is_past_end && begin <= last;
                match (is_last || is_round, is_past_end || begin.is_none()) {
                    (false, _) => Place::Names { begin, after: last, is_past_end },
                    (true, false) => Place::Names { begin, after: None, is_past_end: true },
                    (true, true) => self.changes_of(self.floor.saturating_add(1)),
                }
            }
            // Every block changes something, so an empty list means that the peer has no later block.
            Place::Changes { skip: 0, .. } if page.is_empty() => Place::End,
            Place::Changes { height, skip, .. } => {
                let skip = u32::try_from(page.len()).ok().and_then(|given| skip.checked_add(given));
                match skip.filter(|_| !is_last) {
                    Some(skip) => Place::Changes { height, skip, after: last },
                    None => self.changes_of(height.saturating_add(1)),
                }
            }
            Place::End => Place::End,
        };
    }

    fn changes_of(&self, height: u64) -> Place {
        if height > self.floor.saturating_add(CHANGED_BLOCKS_MAX) {
            return Place::End;
        }
        Place::Changes { height, skip: 0, after: None }
    }

    /// The peer refused this question: skip to the next kind.
    pub(super) fn refused(&mut self) {
        self.place = match self.place {
            Place::Names { .. } => self.changes_of(self.floor.saturating_add(1)),
            Place::Changes { .. } | Place::End => Place::End,
        };
    }

    /// Stops asking the peer.
    pub(super) fn end(&mut self) {
        self.place = Place::End;
    }

    /// Whether there is nothing left to ask.
    pub(super) fn has_ended(&self) -> bool {
        self.place == Place::End
    }

    /// Where the next peer should begin in the current keys.
    pub(super) fn position(&self) -> Option<StateKey> {
        match self.place {
            Place::Names { after, .. } => after,
            Place::Changes { .. } | Place::End => None,
        }
    }

    /// Counts a page and its time.
    pub(super) fn count(&mut self, given: Yield, spent: Duration) {
        self.foreign = self.foreign.saturating_add(given.foreign);
        let worth = NAME_TIME.saturating_mul(u32::try_from(given.new).unwrap_or(u32::MAX));
        self.turn.wasted = self.turn.wasted.saturating_add(spent).saturating_sub(worth);
        self.turn.names = self.turn.names.saturating_add(given.new);
        self.turn.answers += 1;
        self.turn.silences = 0;
    }

    /// Counts a timeout.
    pub(super) fn count_silence(&mut self, spent: Duration) {
        self.turn.wasted = self.turn.wasted.saturating_add(spent);
        self.turn.silences += 1;
    }

    /// Counts a pause that the peer asked for.
    pub(super) fn count_rest(&mut self, spent: Duration) {
        self.turn.wasted = self.turn.wasted.saturating_add(spent);
    }

    /// Whether it is another peer's turn.
    pub(super) fn is_turn_over(&self) -> bool {
        self.has_ended() || self.turn.wasted >= TURN || self.turn.silences >= SILENCES_MAX
    }

    /// Ends a turn. Drops a peer whose turns yield nothing.
    pub(super) fn end_turn(&mut self) {
        let turn = std::mem::take(&mut self.turn);
        self.useless_turns = if turn.names == 0 { self.useless_turns + 1 } else { 0 };
        self.silent_turns = if turn.answers == 0 { self.silent_turns + 1 } else { 0 };
        if self.useless_turns >= USELESS_TURNS_MAX || self.silent_turns >= SILENT_TURNS_MAX {
            self.end();
        }
    }

    /// Records how many operations a certified block of this peer is away from the floor.
    pub(super) fn know_apart(&mut self, operations: u64) {
        self.operations_apart = self.operations_apart.max(operations);
    }

    /// The number of foreign keys, if there are more than certified blocks explain: some may have been removed
    /// before the floor, others created after it.
    pub(super) fn unexplained(&self) -> Option<u64> {
        let most = self.operations_apart.saturating_mul(2).saturating_add(UNEXPLAINED_MAX);
        (self.foreign > most).then_some(self.foreign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use commonware_utils::NZU32;

    const LIMIT: u32 = 3;

    fn walk(begin: Option<u64>) -> Walk {
        Walk::new(10, begin.map(name), NZU32!(LIMIT))
    }

    fn name(n: u64) -> StateKey {
        StateKey::Calendar(n)
    }

    fn names(range: impl IntoIterator<Item = u64>) -> Vec<StateKey> {
        range.into_iter().map(name).collect()
    }

    /// Everything requested from a peer with these keys and these changes of the blocks after the floor.
    fn listed(walk: &mut Walk, now: &[u64], changed: &[Vec<u64>]) -> (Vec<Vec<StateKey>>, u64) {
        let (mut pages, mut changes) = (Vec::new(), 0);
        while let Some(question) = walk.question() {
            let limit = LIMIT as usize;
            let page = match question {
                Question::Keys { after, .. } => {
                    let rest = names(now.iter().copied()).into_iter();
                    rest.filter(|name| after.is_none_or(|after| *name > after)).take(limit).collect()
                }
                Question::Changed { height, skip, .. } => {
                    changes += 1;
                    let block = usize::try_from(height - 11).unwrap();
                    let all = changed.get(block).cloned().unwrap_or_default();
                    names(all.into_iter().skip(skip as usize).take(limit))
                }
                other => panic!("{other:?}"),
            };
            walk.check(&page).unwrap();
            walk.advance(&page);
            pages.push(page);
        }
        (pages, changes)
    }

    #[test]
    fn all_names_are_listed_wherever_it_begins() {
        let now: Vec<u64> = (0..11).map(|n| n * 10).collect();
        for begin in [None, Some(0), Some(45), Some(50), Some(100), Some(1_000)] {
            let (pages, _) = listed(&mut walk(begin), &now, &[]);
            let mut found: Vec<StateKey> = pages.iter().flatten().copied().collect();
            found.sort();
            found.dedup();
            assert_eq!(found, names(now.iter().copied()), "from {begin:?}");
            assert!(pages.len() <= 8, "from {begin:?}: {} pages", pages.len());
        }
        assert_eq!(listed(&mut walk(Some(5)), &[], &[]).0.concat(), []);
    }

    #[test]
    fn every_block_after_the_floor_is_asked_for_until_one_changed_nothing() {
        let changed = [vec![1], vec![1, 2, 3], vec![1, 2, 3, 4, 5, 6, 7]];
        let (pages, changes) = listed(&mut walk(None), &[5], &changed);
        assert_eq!(pages.concat().len(), 1 + 1 + 3 + 7);
        // A full page is followed by another question; the block after the last one ends the walk.
        assert_eq!(changes, 1 + 2 + 3 + 1);
    }

    #[test]
    fn pages_out_of_order_or_too_long_are_wrong() {
        let mut walk = walk(None);
        assert!(walk.check(&names([2, 1])).is_err());
        assert!(walk.check(&names([1, 1])).is_err());
        assert!(walk.check(&names([1, 2, 3])).is_ok());
        assert!(walk.check(&names([1, 2, 3, 4])).is_err());
        walk.advance(&names([1, 2, 3]));
        assert!(walk.check(&names([3])).is_err(), "it was listed before");
        assert!(walk.check(&names([4])).is_ok());
        walk.end();
        assert!(walk.check(&names([5])).is_err() && walk.question().is_none());
    }

    #[test]
    fn both_sides_of_a_turn() {
        let ms = Duration::from_millis;
        let useless = Yield::default();
        let mut slow = walk(None);
        slow.count(useless, TURN - ms(1));
        assert!(!slow.is_turn_over());
        slow.count(useless, ms(1));
        assert!(slow.is_turn_over());
        slow.end_turn();
        assert!(!slow.is_turn_over(), "the next turn is as long");

        // New keys keep the turn: exactly ten thousand per second, forever.
        let mut good = walk(None);
        for _ in 0..100_000 {
            good.count(Yield { new: 4_000, foreign: 0 }, ms(400));
        }
        assert!(!good.is_turn_over());
        // One key per second does not.
        let mut drip = walk(None);
        for _ in 0..11 {
            drip.count(Yield { new: 1, foreign: 0 }, ms(1_000));
        }
        assert!(drip.is_turn_over());

        let mut silent = walk(None);
        for _ in 1..SILENCES_MAX {
            silent.count_silence(ms(2));
        }
        assert!(!silent.is_turn_over());
        silent.count(useless, ms(1));
        silent.count_silence(ms(2));
        assert!(!silent.is_turn_over(), "not in a row");
    }

    #[test]
    fn who_is_of_no_use_turn_after_turn_is_asked_no_more() {
        let end_turns = |mut act: Box<dyn FnMut(&mut Walk)>, turns: u32| {
            let mut walk = walk(None);
            for _ in 0..turns {
                act(&mut walk);
                walk.end_turn();
            }
            walk.has_ended()
        };
        let silent = || Box::new(|walk: &mut Walk| walk.count_silence(TURN));
        assert!(!end_turns(silent(), SILENT_TURNS_MAX - 1));
        assert!(end_turns(silent(), SILENT_TURNS_MAX));
        let useless = || Box::new(|walk: &mut Walk| walk.count(Yield::default(), TURN));
        assert!(!end_turns(useless(), USELESS_TURNS_MAX - 1));
        assert!(end_turns(useless(), USELESS_TURNS_MAX));
        let drip = |walk: &mut Walk| walk.count(Yield { new: 1, foreign: 0 }, TURN);
        assert!(!end_turns(Box::new(drip), 10 * USELESS_TURNS_MAX), "it is of some use, in its turn");
    }

    #[test]
    fn both_sides_of_the_names_that_certified_blocks_explain() {
        let foreign = |foreign| Yield { new: 0, foreign };
        let mut walk = walk(None);
        walk.count(foreign(UNEXPLAINED_MAX), Duration::ZERO);
        assert_eq!(walk.unexplained(), None);
        walk.count(foreign(1), Duration::ZERO);
        assert_eq!(walk.unexplained(), Some(UNEXPLAINED_MAX + 1));
        walk.know_apart(100);
        walk.know_apart(10);
        assert_eq!(walk.unexplained(), None);
        walk.count(foreign(199), Duration::ZERO);
        assert_eq!(walk.unexplained(), None, "100 removed and 100 made");
        walk.count(foreign(1), Duration::ZERO);
        assert!(walk.unexplained().is_some());
    }
}
