//! A peer that is asked for the state, and what can be wrong with its answers.

use crate::sync::chain::Chain;
use alloy_primitives::{Address, U256};
use almanac_bft::sync::message::{Answer, Question};
use almanac_primitives::{Header, StateKey};
use almanac_state::qmdb::sync::{SyncRequest, SyncResponse};
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::Clock;
use commonware_storage::mmr::Location;
use commonware_utils::NZU32;
use std::{num::NonZeroU32, sync::Arc, time::Duration};

/// Names that are asked for at a time: few, so that there are many pages.
pub const PAGE: NonZeroU32 = NZU32!(300);

/// How long a slow peer takes for an answer: just less than the asker's patience.
const SLOW: Duration = Duration::from_millis(1_900);

/// How long a late peer is silent.
const LATE: Duration = Duration::from_secs(5);

/// How a peer answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    Honest,
    /// Shows an older block as its newest.
    BehindBy(u64),
    Silent,
    Refuses,
    /// Bytes that are no answer.
    Garbage,
    /// An answer to another kind of question.
    OtherKind,
    /// Answers to questions that nobody asked.
    WrongNumbers,
    /// Operations with one of them changed for another.
    WrongProof,
    /// Nodes of the beginning with one left out.
    WrongBoundary,
    /// Operations of another place, with their proof.
    OtherOperations,
    /// The right signatures, on another chain.
    ForeignCertificate,
    /// A certificate of another block.
    CertificateOfAnother,
    CutCertificate,
    NoNames,
    SomeNames,
    NamesInDisorder,
    /// More names than were asked for.
    LongPages,
    /// Names that no value has, in order, without an end, for every list.
    EndlessNames,
    /// The same, but one name of each page is right, and each page takes long.
    DripNames,
    /// Honest, but answers nothing for the first seconds.
    Late,
    /// Honest, but takes long for each answer.
    Slow,
    /// Honest, but asks for a pause before every other answer.
    BusyOften,
    AlwaysBusy,
}

/// Answers until the network ends.
pub async fn run<S: Sender, R: Receiver<PublicKey = S::PublicKey>>(
    clock: impl Clock,
    chain: Arc<Chain>,
    habit: Habit,
    (mut sender, mut receiver): (S, R),
) {
    let begin = clock.current();
    let mut count = 0;
    while let Ok((peer, bytes)) = receiver.recv().await {
        let (number, question) = Question::decode(bytes.as_ref()).expect("an honest node asks");
        count += 1;
        let encoded = match habit {
            Habit::Silent => continue,
            Habit::Late if clock.current() < begin + LATE => continue,
            Habit::Garbage => [&[1][..], &number.to_be_bytes(), &[77]].concat(),
            Habit::WrongNumbers => answer(&chain, habit, question).await.encode(number + 1_000_000),
            Habit::BusyOften if count % 2 == 1 => Answer::Busy { wait_ms: 200 }.encode(number),
            _ => answer(&chain, habit, question).await.encode(number),
        };
        let is_slow =
            habit == Habit::Slow || habit == Habit::DripNames && matches!(question, Question::Keys { .. });
        if is_slow {
            clock.sleep(SLOW).await;
        }
        sender.send(Recipients::One(peer), encoded, false);
    }
}

async fn answer(chain: &Chain, habit: Habit, question: Question) -> Answer {
    match habit {
        Habit::Refuses => return Answer::Refused("busy".to_owned()),
        Habit::AlwaysBusy => return Answer::Busy { wait_ms: 1_000 },
        _ => {}
    }
    match question {
        Question::Tip if habit == Habit::OtherKind => Answer::Keys(Vec::new()),
        Question::Tip => tip(chain, habit),
        Question::Operations(request) => operations(chain, habit, request).await,
        Question::Keys { after, limit } if habit == Habit::EndlessNames => {
            Answer::Keys(foreign(after, limit))
        }
        Question::Keys { after, limit } if habit == Habit::DripNames => {
            Answer::Keys(drip(chain, after, limit))
        }
        Question::Keys { after, limit } => Answer::Keys(names(chain, habit, after, limit)),
        Question::Changed { skip, limit, .. } if habit == Habit::EndlessNames => {
            Answer::Keys((0..limit).map(|n| nowhere(u64::from(skip + n))).collect())
        }
        Question::Changed { height, skip, limit } => {
            let changed = chain.changed.get(usize::try_from(height).unwrap());
            let gives_any = !matches!(habit, Habit::NoNames | Habit::SomeNames);
            match changed.filter(|_| gives_any) {
                Some(keys) => {
                    Answer::Keys(keys.iter().copied().skip(skip as usize).take(limit as usize).collect())
                }
                None => Answer::Refused("not there yet".to_owned()),
            }
        }
    }
}

fn tip(chain: &Chain, habit: Habit) -> Answer {
    let behind = match habit {
        Habit::BehindBy(blocks) => usize::try_from(blocks).unwrap(),
        _ => 0,
    };
    let newest = chain.headers.len() - 1;
    let header: Header = chain.headers[newest - behind].clone();
    let certificate = match habit {
        Habit::ForeignCertificate => chain.foreign_certificate(&header),
        Habit::CertificateOfAnother => chain.certificate(&chain.headers[newest - 1]),
        Habit::CutCertificate => chain.certificate(&header)[..100].to_vec().into(),
        _ => chain.certificate(&header),
    };
    Answer::Tip { header: header.into(), certificate }
}

async fn operations(chain: &Chain, habit: Habit, request: SyncRequest) -> Answer {
    let moved = match request {
        SyncRequest::Operations { size, start, max_ops } if habit == Habit::OtherOperations => {
            let start = Location::new((*start).saturating_sub(1));
            SyncRequest::Operations { size, start, max_ops }
        }
        request => request,
    };
    let mut response = match chain.store.serve(moved).await {
        Ok(response) => response,
        Err(error) => return Answer::Refused(error.to_string()),
    };
    match &mut response {
        SyncResponse::Operations { operations, .. } if habit == Habit::WrongProof => {
            let last = operations.len() - 1;
            operations.swap(0, last);
        }
        SyncResponse::Boundary { pinned_nodes, .. } if habit == Habit::WrongBoundary => {
            pinned_nodes.pop();
        }
        _ => {}
    }
    Answer::Operations(response.into())
}

/// Those that are there at the newest block.
fn names(chain: &Chain, habit: Habit, after: Option<StateKey>, limit: u32) -> Vec<StateKey> {
    let all = chain.states.last().unwrap().keys().copied();
    let limit = limit as usize + usize::from(habit == Habit::LongPages);
    let mut page: Vec<_> = all.filter(|key| after.is_none_or(|after| *key > after)).take(limit).collect();
    match habit {
        Habit::NoNames => page.clear(),
        Habit::SomeNames if after.is_some() => page.clear(),
        Habit::NamesInDisorder => page.reverse(),
        _ => {}
    }
    page
}

/// A name that no value has, behind all others.
fn nowhere(n: u64) -> StateKey {
    StateKey::Slot(Address::repeat_byte(0xff), U256::from(n))
}

/// As many names that no value has as are asked for.
fn foreign(after: Option<StateKey>, limit: u32) -> Vec<StateKey> {
    let first = match after {
        Some(StateKey::Slot(address, n)) if address == Address::repeat_byte(0xff) => n.to::<u64>() + 1,
        _ => 0,
    };
    (first..first + u64::from(limit)).map(nowhere).collect()
}

/// The next name, and behind it names that no value has.
fn drip(chain: &Chain, after: Option<StateKey>, limit: u32) -> Vec<StateKey> {
    let mut all = chain.states.last().unwrap().keys().copied();
    let next = all.find(|key| matches!(key, StateKey::Slot(..)) && after.is_none_or(|after| *key > after));
    let Some(StateKey::Slot(address, n)) = next else { return foreign(after, limit) };
    // A slot's number tells its address, so the next one of this address is 500 away.
    (0..u64::from(limit)).map(|more| StateKey::Slot(address, n + U256::from(more))).collect()
}
