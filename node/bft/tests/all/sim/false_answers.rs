//! What a liar answers to a node that copies the state: a true answer with one thing wrong in it.

use crate::sim::{
    draw::Draw,
    marks::{Mark, Marks},
};
use alloy_primitives::{Address, U256};
use almanac_bft::sync::message::Answer;
use almanac_primitives::StateKey;
use almanac_state::qmdb::sync::SyncResponse;

/// What a liar lies about to one follower. About all else it is honest: who is cut off early tells no later lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Topic {
    Tip,
    Operations,
    Names,
}

/// Makes a lie of nearly all answers that are about a liar's topic, and most lies well formed: copies ask few questions.
pub fn falsified(draw: &mut Draw, liar: u64, marks: &Marks, answer: &[u8]) -> Option<Vec<u8>> {
    let topic = Draw(liar).one_of(&[Topic::Tip, Topic::Operations, Topic::Operations, Topic::Names]);
    let (number, told) = Answer::decode(answer).ok()?;
    if topic_of(&told) != Some(topic) || !draw.chance(950) {
        return None;
    }
    let lie = if draw.chance(850) { well_formed(draw, told) } else { None };
    let lie = lie.map(|(mark, lie)| (mark, lie.encode(number))).filter(|(_, lie)| lie != answer);
    marks.add(Mark::BadAnswer);
    let Some((mark, lie)) = lie else { return Some(flipped(draw, answer)) };
    marks.add(mark);
    Some(lie)
}

fn topic_of(answer: &Answer) -> Option<Topic> {
    match answer {
        Answer::Tip { .. } => Some(Topic::Tip),
        Answer::Operations(_) => Some(Topic::Operations),
        Answer::Keys(_) => Some(Topic::Names),
        Answer::Refused(_) | Answer::Busy { .. } => None,
    }
}

fn well_formed(draw: &mut Draw, answer: Answer) -> Option<(Mark, Answer)> {
    match answer {
        Answer::Operations(response) => {
            Some((Mark::OtherOperations, Answer::Operations(reordered(*response).into())))
        }
        Answer::Keys(names) => Some((Mark::OtherNames, Answer::Keys(other_names(draw, names)))),
        _ => None,
    }
}

/// Operations in another order, or the beginning of a log with less before it, and the proof of the true answer.
fn reordered(mut response: SyncResponse) -> SyncResponse {
    match &mut response {
        SyncResponse::Operations { operations, .. } => operations.reverse(),
        SyncResponse::Boundary { pinned_nodes, .. } => drop(pinned_nodes.pop()),
    }
    response
}

/// Some of the names are left out. Half of the time others that no value has are in their place, so that the page is as
/// long as it was.
fn other_names(draw: &mut Draw, names: Vec<StateKey>) -> Vec<StateKey> {
    let length = names.len();
    let mut kept: Vec<_> = names.into_iter().filter(|_| draw.chance(500)).collect();
    if draw.chance(500) {
        let foreign = (kept.len()..length).map(|n| StateKey::Slot(Address::repeat_byte(0xff), U256::from(n)));
        kept.extend(foreign);
    }
    kept
}

/// One bit is another, behind kind and number, so that it passes for an answer.
fn flipped(draw: &mut Draw, answer: &[u8]) -> Vec<u8> {
    let mut bytes = answer.to_vec();
    let place = 9 + draw.index(bytes.len().saturating_sub(9).max(1));
    if let Some(byte) = bytes.get_mut(place) {
        *byte ^= 1;
    }
    bytes
}
