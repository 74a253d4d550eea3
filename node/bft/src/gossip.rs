//! Passes transactions on: what a client submits to one validator reaches the pools of all.
//!
//! Validators are all connected, so only what came from a client is sent, to everyone. It is sent again now and
//! then until it is final: messages get lost, and whoever took the transaction may never get a block through.

use crate::{
    credit::{Allowance, Credits},
    fair::Share,
};
use alloy_primitives::TxHash;
use almanac_consensus::{Admission, Clock, SharedPool, SubmitError};
use almanac_mempool::PoolError;
use almanac_primitives::{DurationMs, TimestampMs, params::TRANSACTION_BYTES_MAX};
use commonware_codec::{Buf, Decode as _, Encode as _, RangeCfg};
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::Quota;
use commonware_utils::{NZU32, NZUsize};
use std::{
    collections::{BTreeSet, VecDeque},
    fmt::Display,
};
use tokio::sync::broadcast::{self, error::RecvError};

/// Bytes of transactions at which a message is full.
const MESSAGE_BYTES: usize = 64 << 10;

/// Most transactions in a message.
const MESSAGE_TRANSACTIONS_MAX: usize = 1_024;

/// Largest message: one that was not full yet, one more transaction of the largest size, and their lengths.
pub(crate) const MESSAGE_BYTES_MAX: usize =
    MESSAGE_BYTES + TRANSACTION_BYTES_MAX + 5 * (MESSAGE_TRANSACTIONS_MAX + 1);

/// Messages that a peer may send: those with new transactions, and some that are sent again.
pub(crate) const QUOTA: Quota = Quota::per_second(NZU32!(64));

const _: () =
    assert!(1_000 / SEND_INTERVAL.0 + 1_000 / RESEND_INTERVAL.0 <= 60, "honest peers stay below the quota");

/// Transactions of a peer that may be refused. Each costs up to a recovery, 40 µs. Honest peers have few: what they
/// took themselves a moment ago is refused only where the chain or the pool has moved on.
const REFUSED: Allowance = Allowance { per_second: 2_000, burst: 4_096 };

/// What is kept of a peer's messages while others are worked on: a second of what an honest one sends at most.
pub(crate) const SHARE: Share = Share { messages: NZUsize!(64), bytes: 2 << 20 };

/// Shortest time between two messages with new transactions: a crowd shares messages, and stays below what a peer
/// may send.
const SEND_INTERVAL: DurationMs = DurationMs(20);

/// Time between two messages with transactions that are not final yet.
const RESEND_INTERVAL: DurationMs = DurationMs(1_000);

/// Passes transactions on between one pool and the peers.
pub struct Gossip<C> {
    admission: Admission,
    clock: C,
    arrivals: broadcast::Receiver<TxHash>,
    own: OwnTransactions,
}

impl<C: Clock> Gossip<C> {
    /// Hears of every transaction that is admitted from now on.
    pub fn new(admission: Admission, clock: C) -> Self {
        let arrivals = admission.pool().listen();
        Self { admission, clock, arrivals, own: OwnTransactions::default() }
    }

    /// Passes transactions on until the network ends.
    pub async fn run<S: Sender, R: Receiver>(mut self, mut sender: S, mut receiver: R) {
        let mut credits = Credits::new(REFUSED);
        let mut send_at = self.clock.now();
        let mut resend_at = after(send_at, RESEND_INTERVAL);
        loop {
            // In a fixed order, so that a simulation can be replayed; timers first, so that a peer that sends
            // without a pause keeps nothing from going out.
            let message = tokio::select! {
                biased;
                () = self.clock.sleep_until(send_at), if !self.own.fresh.is_empty() => {
                    send_at = after(self.clock.now(), SEND_INTERVAL);
                    self.own.fresh(self.admission.pool())
                }
                () = self.clock.sleep_until(resend_at) => {
                    resend_at = after(self.clock.now(), RESEND_INTERVAL);
                    self.own.pending(self.admission.pool())
                }
                received = receiver.recv() => match received {
                    Ok((peer, bytes)) => {
                        let now = self.clock.now();
                        if credits.is_good(&peer, now) {
                            let Taken { hashes, refused } = take(&self.admission, &peer, bytes);
                            self.own.foreign.extend(hashes);
                            credits.charge(peer, refused, now);
                        }
                        continue;
                    }
                    Err(_) => return,
                },
                arrival = self.arrivals.recv() => match arrival {
                    Ok(hash) => {
                        self.own.heard(hash);
                        continue;
                    }
                    // So many came at once that some were not heard of; they are included in turn.
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return,
                },
            };
            if !message.is_empty() {
                sender.send(Recipients::All, message.encode(), false);
            }
        }
    }
}

fn after(now: TimestampMs, interval: DurationMs) -> TimestampMs {
    TimestampMs(now.0.saturating_add(interval.0))
}

/// What became of a message.
#[derive(Default)]
struct Taken {
    hashes: Vec<TxHash>,
    /// How many came to nothing and cost something: not those that were there already.
    refused: usize,
}

/// Offers a peer's transactions to the pool.
fn take<P: Display>(admission: &Admission, peer: &P, message: impl Buf) -> Taken {
    let bytes = (RangeCfg::new(0..=TRANSACTION_BYTES_MAX), ());
    let list = (RangeCfg::new(1..=MESSAGE_TRANSACTIONS_MAX), bytes);
    let Ok(transactions) = Vec::<Vec<u8>>::decode_cfg(message, &list) else {
        tracing::debug!("{peer} sent something that is no list of transactions");
        return Taken { refused: MESSAGE_TRANSACTIONS_MAX, ..Taken::default() };
    };
    let mut taken = Taken::default();
    for transaction in &transactions {
        match admission.submit(transaction) {
            Ok(hash) => taken.hashes.push(hash),
            Err(SubmitError::Pool(PoolError::AlreadyKnown { .. })) => {}
            // Its sender has moved on meanwhile: that is everyday, in small numbers.
            Err(error) => {
                tracing::debug!("a transaction from {peer} is not taken: {error}");
                taken.refused += 1;
            }
        }
    }
    taken
}

/// The transactions that clients gave to this node.
#[derive(Default)]
struct OwnTransactions {
    /// Not sent yet.
    fresh: VecDeque<TxHash>,
    /// Sent, the longest ago first; dropped when they leave the pool.
    sent: VecDeque<TxHash>,
    /// Came from a peer, and their arrival was not announced yet.
    foreign: BTreeSet<TxHash>,
}

impl OwnTransactions {
    fn heard(&mut self, hash: TxHash) {
        if !self.foreign.remove(&hash) {
            self.fresh.push_back(hash);
        }
    }

    /// A message of what was not sent yet. What does not fit goes with the next one.
    fn fresh(&mut self, pool: &SharedPool) -> Vec<Vec<u8>> {
        fill(&mut self.fresh, pool, &mut self.sent)
    }

    /// A message of what was sent and is not final yet.
    fn pending(&mut self, pool: &SharedPool) -> Vec<Vec<u8>> {
        // An arrival that was missed would otherwise keep its place for ever.
        self.foreign.retain(|hash| pool.lock().contains(*hash));
        let mut sent = std::mem::take(&mut self.sent);
        let message = fill(&mut sent, pool, &mut self.sent);
        sent.append(&mut self.sent);
        self.sent = sent;
        message
    }
}

/// Takes transactions from the front of `hashes` until a message is full, and puts the hashes at the back of
/// `sent`. Those that the pool no longer has are forgotten.
fn fill(hashes: &mut VecDeque<TxHash>, pool: &SharedPool, sent: &mut VecDeque<TxHash>) -> Vec<Vec<u8>> {
    let (mut message, mut bytes) = (Vec::new(), 0);
    let pool = pool.lock();
    while bytes < MESSAGE_BYTES && message.len() < MESSAGE_TRANSACTIONS_MAX {
        let Some(hash) = hashes.pop_front() else { break };
        if let Some(known) = pool.get(hash) {
            let encoded = known.transaction().encoded();
            bytes += encoded.len();
            message.push(encoded.to_vec());
            sent.push_back(hash);
        }
    }
    message
}
