//! `liars_are_cut_off`: who gives a follower operations that are not proven is disconnected.

use almanac_bft::sync::message::{Answer, Question};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
    time::Duration,
};

/// How long a follower waits for an answer, as `sync/ask.rs` has it.
const PATIENCE: Duration = Duration::from_secs(2);

/// What one copy of the state has asked for, and who lied to it.
#[derive(Default)]
pub struct Answers(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// Questions for operations that wait for their answers, and when each was asked.
    open: BTreeMap<u64, Duration>,
    /// Who changed the answer to which question.
    changed: BTreeSet<(usize, u64)>,
    liars: BTreeSet<usize>,
}

impl Answers {
    /// Notes a question.
    pub fn asked(&self, question: &[u8], now: Duration) {
        if let Ok((number, Question::Operations(_))) = Question::decode(question) {
            self.0.lock().unwrap().open.insert(number, now);
        }
    }

    /// Notes that a liar changes what was a true answer.
    pub fn changed(&self, from: usize, answer: &[u8]) {
        if let Ok((number, Answer::Operations(_))) = Answer::decode(answer) {
            self.0.lock().unwrap().changed.insert((from, number));
        }
    }

    /// Notes that an answer arrives, and returns whether it is a changed one that is waited for.
    pub fn arrived(&self, from: usize, answer: &[u8], now: Duration) -> bool {
        let Some(number) = answer.get(1..9).and_then(|bytes| bytes.try_into().ok()) else { return false };
        let number = u64::from_be_bytes(number);
        let mut known = self.0.lock().unwrap();
        let is_awaited = known.open.remove(&number).is_some_and(|asked| now < asked + PATIENCE);
        let is_lie = is_awaited && known.changed.contains(&(from, number));
        if is_lie {
            known.liars.insert(from);
        }
        is_lie
    }

    /// Whose changed answers arrived.
    pub fn liars(&self) -> BTreeSet<usize> {
        self.0.lock().unwrap().liars.clone()
    }
}
