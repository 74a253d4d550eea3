//! What a hostile peer sends: messages that look right, and cost those who take them more than they are worth.

use super::{
    flood::Source,
    line::{Enemy, Message},
};
use crate::support::{ALICE_KEY, BOB, to_bob};
use alloy_consensus::{SignableTransaction as _, TxLegacy, crypto::secp256k1::sign_message};
use alloy_eips::Encodable2718 as _;
use alloy_primitives::{B256, Bytes, U256};
use almanac_bft::{
    BlockDigest, message_bytes_max,
    sync::{self, message::Question},
};
use almanac_primitives::{
    Block, Header, UserTransaction,
    params::{BLOCK_BODY_BYTES_MAX, TRANSACTION_BYTES_MAX},
    testing,
};
use almanac_state::qmdb::sync::SyncRequest;
use commonware_codec::{Encode as _, varint::UInt};
use commonware_consensus::{
    simplex::{
        self,
        scheme::ed25519::Scheme,
        types::{Notarize, Nullify, Proposal, Vote},
    },
    types::{Epoch, Round, View},
};
use commonware_storage::mmr::Location;
use std::{num::NonZeroU64, ops::Range, sync::Arc};

pub(crate) const VOTES: u64 = 0;
pub(crate) const CERTIFICATES: u64 = 1;
pub(crate) const RESOLVER: u64 = 2;
pub(crate) const BACKFILL: u64 = 3;
pub(crate) const BLOCKS: u64 = 4;
pub(crate) const TRANSACTIONS: u64 = 5;
pub(crate) const STATE: u64 = sync::CHANNEL;

/// The largest message of the channel for the state.
pub(crate) const STATE_MAX: usize = sync::message::MESSAGE_BYTES_MAX;

/// The largest message of the channel for transactions.
pub(crate) const TRANSACTIONS_MAX: usize = (64 << 10) + TRANSACTION_BYTES_MAX + 5 * 1_025;

/// The largest message about votes.
pub(crate) fn votes_max(enemy: &Enemy) -> usize {
    simplex::max_payload_size::<Scheme, BlockDigest>(enemy.validators_count())
}

/// The largest message at all, with a block.
pub(crate) fn blocks_max(enemy: &Enemy) -> usize {
    message_bytes_max(enemy.validators_count()) as usize
}

fn source(make: impl Fn(u64) -> Message + Send + Sync + 'static) -> Source {
    Arc::new(make)
}

/// Votes of its own, well signed, for views that are over and for views that nobody will ever see. Not for those
/// in which the key's rightful owner has voted or will.
pub(crate) fn votes(enemy: &Enemy, past: Range<u64>) -> Source {
    let scheme = enemy.scheme();
    let never = 1 << 40..(1 << 40) + 256;
    let vote = |view| {
        let vote = Nullify::sign::<BlockDigest>(&scheme, Round::new(Epoch::zero(), View::new(view))).unwrap();
        Vote::<_, BlockDigest>::Nullify(vote).encode().to_vec()
    };
    let votes: Vec<Vec<u8>> = past.chain(never).map(vote).collect();
    source(move |number| Message { channel: VOTES, bytes: cycle(&votes, number).clone() })
}

/// Two votes in each of these views, for two blocks that do not exist.
pub(crate) fn conflicting_votes(enemy: &Enemy, views: Range<u64>) -> Source {
    let scheme = enemy.scheme();
    let vote = |view: u64, block: u8| {
        let round = Round::new(Epoch::zero(), View::new(view));
        let proposal = Proposal::new(round, View::new(view - 1), BlockDigest::from(B256::repeat_byte(block)));
        let vote = Notarize::sign(&scheme, proposal).unwrap();
        Vote::<_, BlockDigest>::Notarize(vote).encode().to_vec()
    };
    let votes: Vec<Vec<u8>> = views.flat_map(|view| [vote(view, 1), vote(view, 2)]).collect();
    source(move |number| Message { channel: VOTES, bytes: cycle(&votes, number).clone() })
}

/// The certificates of blocks that are final, over and over.
pub(crate) fn certificates(certificates: &[Bytes]) -> Source {
    const FINALIZATION: u8 = 2;
    let certificates: Vec<Vec<u8>> =
        certificates.iter().map(|bytes| [&[FINALIZATION], &bytes[..]].concat()).collect();
    source(move |number| Message { channel: CERTIFICATES, bytes: cycle(&certificates, number).clone() })
}

/// Questions for the certificates of all views.
pub(crate) fn views() -> Source {
    source(|number| question(RESOLVER, number, &(number % 1_000).to_be_bytes()))
}

/// Questions for these blocks.
pub(crate) fn heights(heights: Vec<u64>) -> Source {
    const FINALIZED: u8 = 1;
    source(move |number| {
        let height = UInt(*cycle(&heights, number)).encode();
        question(BACKFILL, number, &[&[FINALIZED], &height[..]].concat())
    })
}

fn question(channel: u64, number: u64, key: &[u8]) -> Message {
    const QUESTION: u8 = 0;
    Message { channel, bytes: [&number.to_be_bytes()[..], &[QUESTION], key].concat() }
}

/// Questions, the largest answers that nobody asked for, and neither.
pub(crate) fn missing(channel: u64, bytes_max: usize, questions: Source) -> Vec<Source> {
    vec![questions, answers(channel, bytes_max), garbage(channel, bytes_max)]
}

/// The largest answers, to questions that nobody asked.
fn answers(channel: u64, bytes_max: usize) -> Source {
    const ANSWER: u8 = 1;
    let head = [&u64::MAX.to_be_bytes()[..], &[ANSWER]].concat();
    let length = bytes_max - head.len() - 5;
    let bytes = [head, length.encode().to_vec(), vec![0xaa; length]].concat();
    source(move |_| Message { channel, bytes: bytes.clone() })
}

/// Blocks of the largest size, each another one, of transactions as small as they can be.
pub(crate) fn blocks() -> Source {
    // Reading so many costs an unoptimised build what the most that a block may have cost an optimised one.
    let count = 1_000;
    let transactions = (0..count).map(|value| {
        UserTransaction::decode(&worthless(value, BLOCK_BODY_BYTES_MAX / count as usize - 128)).unwrap()
    });
    let header = Header { number: 1 << 40, ..Header::default() };
    let block = Block { header: header.clone(), transactions: transactions.collect() }.encode();
    let body = block[header.encode().len()..].to_vec();
    source(move |number| {
        let header = Header { number: header.number + number, ..header.clone() }.encode();
        Message { channel: BLOCKS, bytes: [header, body.clone()].concat().encode().to_vec() }
    })
}

/// Lists of transactions whose signature is somebody's who has nothing: each costs a recovery.
pub(crate) fn transactions() -> Source {
    const LIST: u64 = 1_024;
    let list: Vec<Vec<u8>> = (0..LIST).map(|value| worthless(value, 0)).collect();
    let place = list[0].windows(8).position(|bytes| bytes == value(0).to_be_bytes()).unwrap();
    source(move |number| {
        let mut list = list.clone();
        for (index, transaction) in list.iter_mut().enumerate() {
            let value = value(number * LIST + index as u64);
            transaction[place..place + 8].copy_from_slice(&value.to_be_bytes());
        }
        Message { channel: TRANSACTIONS, bytes: list.encode().to_vec() }
    })
}

/// Lists of one transaction that is final already, of the largest ones, of too many, and no lists.
pub(crate) fn other_transactions() -> Vec<Source> {
    let known = to_bob(0).encoded().to_vec();
    let large = vec![worthless(0, 60_000), worthless(1, TRANSACTION_BYTES_MAX - 256)];
    let lists = [vec![known.clone(); 1_024], large, vec![known[..64].to_vec(); 1_025]];
    let list = |list: Vec<Vec<u8>>| {
        let bytes = list.encode().to_vec();
        source(move |_| Message { channel: TRANSACTIONS, bytes: bytes.clone() })
    };
    lists.into_iter().map(list).chain([garbage(TRANSACTIONS, TRANSACTIONS_MAX)]).collect()
}

/// Questions for the state, of all kinds.
pub(crate) fn questions(tip: &Header) -> Source {
    let (size, start) = (Location::new(tip.commitment.ops_end), Location::new(tip.commitment.ops_start));
    let (operations, height) =
        (SyncRequest::Operations { size, start, max_ops: NonZeroU64::MAX }, tip.number);
    source(move |number| {
        let question = match number % 4 {
            0 => Question::Tip,
            1 => Question::Operations(operations),
            2 => Question::Keys { after: None, limit: u32::MAX },
            _ => Question::Changed { height: number % height, skip: 0, limit: u32::MAX },
        };
        Message { channel: STATE, bytes: question.encode(number) }
    })
}

/// Bytes without a meaning.
pub(crate) fn garbage(channel: u64, length: usize) -> Source {
    let bytes = vec![0xff; length];
    source(move |_| Message { channel, bytes: bytes.clone() })
}

/// One of each in turn.
pub(crate) fn all(sources: Vec<Source>) -> Source {
    source(move |number| {
        let count = sources.len() as u64;
        cycle(&sources, number)(number / count)
    })
}

fn cycle<T>(list: &[T], number: u64) -> &T {
    &list[usize::try_from(number).unwrap() % list.len()]
}

/// A number of eight bytes whatever it is.
fn value(number: u64) -> u64 {
    1 << 63 | number
}

/// A transaction with the signature of another one.
fn worthless(number: u64, input: usize) -> Vec<u8> {
    let bob = BOB.parse().unwrap();
    let signature = sign_message(ALICE_KEY.parse().unwrap(), B256::repeat_byte(7)).unwrap();
    let input = Bytes::from(vec![0; input]);
    let transaction = TxLegacy {
        value: U256::from(value(number)),
        gas_limit: 8_000_000,
        input,
        ..testing::legacy(0, bob, 1)
    };
    transaction.into_signed(signature).encoded_2718()
}
