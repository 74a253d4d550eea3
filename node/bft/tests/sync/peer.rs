//! A peer that is asked for the state, and what can be wrong with its answers.

use crate::chain::Chain;
use almanac_bft::sync::message::{Answer, Question};
use almanac_primitives::{Header, StateKey};
use almanac_state::qmdb::sync::{SyncRequest, SyncResponse};
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_storage::mmr::Location;
use std::sync::Arc;

/// Names in one answer: few, so that there are many pages.
const PAGE: usize = 300;

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
}

/// Answers until the network ends.
pub async fn run<S: Sender, R: Receiver<PublicKey = S::PublicKey>>(
    chain: Arc<Chain>,
    habit: Habit,
    (mut sender, mut receiver): (S, R),
) {
    while let Ok((peer, bytes)) = receiver.recv().await {
        let (number, question) = Question::decode(bytes.as_ref()).expect("an honest node asks");
        let encoded = match habit {
            Habit::Silent => continue,
            Habit::Garbage => [&[1][..], &number.to_be_bytes(), &[77]].concat(),
            Habit::WrongNumbers => answer(&chain, habit, question).await.encode(number + 1_000_000),
            _ => answer(&chain, habit, question).await.encode(number),
        };
        sender.send(Recipients::One(peer), encoded, false);
    }
}

async fn answer(chain: &Chain, habit: Habit, question: Question) -> Answer {
    if habit == Habit::Refuses {
        return Answer::Refused("busy".to_owned());
    }
    match question {
        Question::Tip if habit == Habit::OtherKind => Answer::Keys(Vec::new()),
        Question::Tip => tip(chain, habit),
        Question::Operations(request) => operations(chain, habit, request).await,
        Question::Keys { after } => Answer::Keys(names(chain, habit, after)),
        Question::Changed { height, skip } => {
            let changed = chain.changed.get(usize::try_from(height).unwrap());
            let gives_any = !matches!(habit, Habit::NoNames | Habit::SomeNames);
            match changed.filter(|_| gives_any) {
                Some(keys) => Answer::Keys(keys.iter().copied().skip(skip as usize).take(PAGE).collect()),
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
fn names(chain: &Chain, habit: Habit, after: Option<StateKey>) -> Vec<StateKey> {
    let all = chain.states.last().unwrap().keys().copied();
    let mut page: Vec<_> = all.filter(|key| after.is_none_or(|after| *key > after)).take(PAGE).collect();
    match habit {
        Habit::NoNames => page.clear(),
        Habit::SomeNames if after.is_some() => page.clear(),
        Habit::NamesInDisorder => page.reverse(),
        _ => {}
    }
    page
}
