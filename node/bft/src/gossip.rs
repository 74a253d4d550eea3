//! Gossips transactions: what a client submits to one validator reaches the pools of all.
//!
//! All validators are connected, so a node sends only transactions that it got from clients, to everyone. It sends
//! them again from time to time until they are final: messages get lost, and a validator that has a transaction may
//! never get a block through.
//!
//! Only ready transactions are sent. A parked transaction cannot pay for anything, so it takes room only on the node
//! that received it, and is sent once it is ready. What peers may count is sent as fast as they bear it (`rationed.rs`).

use crate::{
    credit::{Allowance, Credits},
    fair::Share,
};
use alloy_primitives::TxHash;
use almanac_consensus::{Admission, Arrival, Clock, SubmitError, Submitted};
use almanac_mempool::PoolError;
use almanac_primitives::{DurationMs, TimestampMs, params::TRANSACTION_BYTES_MAX};
use commonware_codec::{Buf, Decode as _, Encode as _, RangeCfg};
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::Quota;
use commonware_utils::{NZU32, NZUsize};
use std::fmt::Display;
use tokio::sync::broadcast::{self, error::RecvError};

mod own;

use own::OwnTransactions;

/// Bytes of transactions at which a message is full.
const MESSAGE_BYTES: usize = 64 << 10;

/// Most transactions in a message.
const MESSAGE_TRANSACTIONS_MAX: usize = 1_024;

/// Largest message: one that was almost full, plus one transaction of the largest size, and their lengths.
pub(crate) const MESSAGE_BYTES_MAX: usize =
    MESSAGE_BYTES + TRANSACTION_BYTES_MAX + 5 * (MESSAGE_TRANSACTIONS_MAX + 1);

/// Messages that a peer may send: those with new transactions, and some repetitions.
pub(crate) const QUOTA: Quota = Quota::per_second(NZU32!(64));

const _: () =
    assert!(1_000 / SEND_INTERVAL.0 + 1_000 / RESEND_INTERVAL.0 <= 60, "honest peers stay below the quota");

/// Signature recoveries per peer, at 40 µs each, that do not add to the pool: of rejected transactions, and of
/// those that only replace others. Honest peers cause few rejections: a transaction that they accepted a moment
/// ago is rejected only if the chain or the pool has moved on.
const FRUITLESS: Allowance = Allowance { per_second: FRUITLESS_PER_SECOND, burst: FRUITLESS_AT_ONCE };

/// How many of them per second.
pub const FRUITLESS_PER_SECOND: u64 = 2_000;

/// How many of them at once.
pub const FRUITLESS_AT_ONCE: u64 = 4_096;

/// Queue of a peer's messages: what an honest peer sends in a second at most.
pub(crate) const SHARE: Share = Share { messages: NZUsize!(64), bytes: 2 << 20 };

/// Shortest time between two messages with new transactions, so that many transactions share a message and stay
/// within the quota.
const SEND_INTERVAL: DurationMs = DurationMs(20);

/// Time between two messages with transactions that are not final yet.
const RESEND_INTERVAL: DurationMs = DurationMs(1_000);

/// Exchanges transactions between the pool and the peers.
pub struct Gossip<C> {
    admission: Admission,
    clock: C,
    arrivals: broadcast::Receiver<Arrival>,
    own: OwnTransactions,
}

impl<C: Clock> Gossip<C> {
    /// Receives every transaction that is admitted from now on.
    pub fn new(admission: Admission, clock: C) -> Self {
        let arrivals = admission.pool().listen();
        Self { admission, clock, arrivals, own: OwnTransactions::default() }
    }

    /// Runs until the network ends.
    pub async fn run<S: Sender, R: Receiver>(mut self, mut sender: S, mut receiver: R) {
        let mut credits = Credits::new(FRUITLESS);
        let mut send_at = self.clock.now();
        let mut resend_at = after(send_at, RESEND_INTERVAL);
        loop {
            let now = self.clock.now();
            (send_at, resend_at) =
                (within(send_at, now, SEND_INTERVAL), within(resend_at, now, RESEND_INTERVAL));
            // A fixed order, so that a simulation can be replayed. Timers first, so that a peer that sends
            // without pause cannot block outgoing messages.
            let message = tokio::select! {
                biased;
                () = self.clock.sleep_until(send_at), if self.own.has_fresh() => {
                    let now = self.clock.now();
                    send_at = after(now, SEND_INTERVAL);
                    self.own.fresh(self.admission.pool(), now)
                }
                () = self.clock.sleep_until(resend_at) => {
                    let now = self.clock.now();
                    resend_at = after(now, RESEND_INTERVAL);
                    self.own.pending(self.admission.pool(), now)
                }
                // Before the peers: while they send without pause, what clients submitted would be missed, and never
                // passed on.
                arrival = self.arrivals.recv() => match arrival {
                    Ok(arrival) => {
                        self.own.heard(arrival);
                        continue;
                    }
                    Err(RecvError::Lagged(missed)) => {
                        tracing::warn!("{missed} transactions came too fast to be passed on");
                        continue;
                    }
                    Err(RecvError::Closed) => return,
                },
                received = receiver.recv() => match received {
                    Ok((peer, bytes)) => {
                        let now = self.clock.now();
                        if credits.is_good(&peer, now) {
                            let Taken { hashes, recoveries } = take(&self.admission, &peer, bytes);
                            self.own.foreign.extend(hashes);
                            credits.charge(peer, recoveries, now);
                        }
                        continue;
                    }
                    Err(_) => return,
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

/// Limits a time to one interval from now, so that setting the clock back delays nothing for longer.
fn within(at: TimestampMs, now: TimestampMs, interval: DurationMs) -> TimestampMs {
    at.min(after(now, interval))
}

/// The result of a message.
#[derive(Default)]
struct Taken {
    hashes: Vec<TxHash>,
    /// Useless signature recoveries. Does not count transactions that the pool had already.
    recoveries: usize,
}

/// Offers a peer's transactions to the pool.
fn take<P: Display>(admission: &Admission, peer: &P, message: impl Buf) -> Taken {
    let bytes = (RangeCfg::new(0..=TRANSACTION_BYTES_MAX), ());
    let list = (RangeCfg::new(1..=MESSAGE_TRANSACTIONS_MAX), bytes);
    let Ok(transactions) = Vec::<Vec<u8>>::decode_cfg(message, &list) else {
        tracing::debug!("{peer} sent a malformed list of transactions");
        return Taken { recoveries: MESSAGE_TRANSACTIONS_MAX, ..Taken::default() };
    };
    let mut taken = Taken::default();
    for transaction in &transactions {
        let Submitted { outcome, effort } = admission.submit_counted(transaction);
        match outcome {
            Ok(hash) => {
                taken.hashes.push(hash);
                taken.recoveries += effort.fruitless();
            }
            Err(SubmitError::Pool(PoolError::AlreadyKnown { .. })) => {}
            // Its sender has moved on in the meantime, which is normal in small numbers.
            Err(error) => {
                tracing::debug!("a transaction from {peer} is not taken: {error}");
                taken.recoveries += effort.recoveries.max(1);
            }
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::Ended;
    use alloy_primitives::Address;
    use almanac_consensus::{ManualClock, SharedPool, TipState};
    use almanac_mempool::{Pool, PoolConfig};
    use almanac_primitives::{
        GasPrice, NativeTransaction, StateKey, StateRead, StateReadError, UserTransaction,
        testing::{
            CHAIN, authorize, eip7702, genesis,
            native::{native, native_call, sign_native_on},
            person, sign, transfer,
        },
    };
    use commonware_actor::{Feedback, Unreliable};
    use commonware_cryptography::{
        Signer as _,
        ed25519::{PrivateKey, PublicKey},
    };
    use commonware_p2p::{CheckedSender, LimitedSender};
    use commonware_runtime::{IoBuf, IoBufs};
    use std::{
        collections::BTreeMap,
        num::NonZeroUsize,
        sync::{Arc, Mutex},
        time::SystemTime,
    };

    pub(super) const BASE_FEE: GasPrice = GasPrice(1_000_000_000);

    /// Always the genesis state.
    #[derive(Clone)]
    struct AtGenesis(Arc<BTreeMap<StateKey, alloy_primitives::Bytes>>);

    impl StateRead for AtGenesis {
        fn read(&self, key: StateKey) -> Result<Option<alloy_primitives::Bytes>, StateReadError> {
            Ok(self.0.get(&key).cloned())
        }
    }

    impl TipState for AtGenesis {
        fn tip_state(&self) -> Box<dyn StateRead + Send> {
            Box::new(self.clone())
        }
    }

    pub(super) fn admission(config: PoolConfig) -> Admission {
        let state = AtGenesis(Arc::new(genesis().state().unwrap()));
        Admission::new(CHAIN, SharedPool::new(Pool::new(config, BASE_FEE)), Arc::new(state))
    }

    fn message_of(transactions: &[UserTransaction]) -> impl Buf {
        transactions.iter().map(|tx| tx.encoded().to_vec()).collect::<Vec<_>>().encode()
    }

    pub(super) fn list_from(from: u64, nonce: u64, authorizations: usize) -> UserTransaction {
        let list = vec![authorize(person(5), 0, Address::repeat_byte(7)); authorizations];
        let gas_limit = 200_000 + 25_000 * u64::try_from(authorizations).unwrap();
        sign(eip7702(nonce, Address::ZERO, list, gas_limit), person(from).secret)
    }

    pub(super) const NOW: TimestampMs = TimestampMs(10_000_000);

    /// Regression: when the clock was set back by an hour, nothing was sent for that hour.
    #[test]
    fn a_clock_that_is_set_back_puts_nothing_off() {
        let (hour, at) = (3_600_000, TimestampMs(10_000_000));
        assert_eq!(within(at, TimestampMs(at.0 - 400), RESEND_INTERVAL), at, "as it was");
        assert_eq!(within(at, at, RESEND_INTERVAL), at, "over");
        let back = TimestampMs(at.0 - hour);
        assert_eq!(within(at, back, RESEND_INTERVAL), after(back, RESEND_INTERVAL));
    }

    #[test]
    fn a_peer_pays_for_signatures_that_were_recovered_to_no_avail() {
        let admission = admission(PoolConfig::default().with_count_max(2));
        let cost =
            |transactions: &[UserTransaction]| take(&admission, &"peer", message_of(transactions)).recoveries;
        let [alices, bobs] = [0, 1].map(|from| transfer(person(from), 0, person(2).address, 1));
        assert_eq!(cost(&[alices.clone(), bobs]), 0, "the pool holds more");
        assert_eq!(cost(std::slice::from_ref(&alices)), 0, "sent again: known by its hash");
        assert_eq!(cost(&[transfer(person(99), 0, person(2).address, 1)]), 1, "refused");
        assert_eq!(cost(&[list_from(99, 0, 100)]), 1, "refused before the list is looked at");
        let mut dear =
            eip7702(0, Address::ZERO, vec![authorize(person(5), 0, Address::ZERO); 100], 5_000_000);
        (dear.max_fee_per_gas, dear.max_priority_fee_per_gas) = (40_000_000_000, 5_000_000_000);
        assert_eq!(cost(&[sign(dear, person(3).secret)]), 101, "it took the place of another");
    }

    /// Regression: a stranger who gave each of two validators one of two transactions that conflict used up what each may
    /// cost the other, 64 signatures at a time.
    #[test]
    fn conflicting_native_transactions_are_refused_before_their_signatures_are_recovered() {
        let admission = admission(PoolConfig::default());
        let paid = |value| {
            let calls = vec![native_call(person(2).address, value, Vec::new())];
            let fee_payer = Some(person(1).address);
            let transaction = NativeTransaction { fee_payer, ..native(person(0).address, 0, calls) };
            sign_native_on(&CHAIN, transaction, &[person(0).into()], &[person(1).into()])
        };
        let cost = |transaction| take(&admission, &"peer", message_of(&[transaction])).recoveries;
        assert_eq!(paid(1).signature_count(), 2);
        assert_eq!(cost(paid(1)), 0, "the pool holds more");
        assert_eq!(cost(paid(2)), 1, "refused, and no signature is looked at");
    }

    /// A peer that sends without pause, and a clock that meanwhile goes on, for a second.
    #[derive(Debug)]
    struct Flood {
        clock: ManualClock,
        from: PublicKey,
        until: TimestampMs,
    }

    impl Receiver for Flood {
        type Error = Ended;
        type PublicKey = PublicKey;

        async fn recv(&mut self) -> Result<(PublicKey, IoBuf), Ended> {
            self.clock.advance(DurationMs(1));
            let message = Vec::<Vec<u8>>::new().encode();
            if self.clock.now() < self.until { Ok((self.from.clone(), message.into())) } else { Err(Ended) }
        }

        fn capacity(&self) -> NonZeroUsize {
            NZUsize!(1)
        }
    }

    /// What was sent to all.
    #[derive(Clone, Debug, Default)]
    struct SentToAll(Arc<Mutex<Vec<Vec<u8>>>>);

    impl LimitedSender for SentToAll {
        type PublicKey = PublicKey;
        type Checked<'a> = Self;

        fn check(&mut self, _: Recipients<PublicKey>) -> Result<Self, SystemTime> {
            Ok(self.clone())
        }
    }

    impl CheckedSender for SentToAll {
        type PublicKey = PublicKey;

        fn recipients(&self) -> Vec<PublicKey> {
            Vec::new()
        }

        fn send(self, message: impl Into<IoBufs> + Send, _: bool) -> Unreliable<Feedback> {
            self.0.lock().unwrap().push(message.into().coalesce().as_ref().to_vec());
            Unreliable::new(Feedback::Ok)
        }
    }

    /// Regression: while peers sent faster than their messages could be checked, a node did not look at what its own clients
    /// had submitted, and missed what there was too much of in the end: it was never passed on.
    #[test]
    fn peers_that_send_without_pause_do_not_hold_up_what_clients_submit() {
        let clock = ManualClock::new(NOW);
        let admission = admission(PoolConfig::default());
        let gossip = Gossip::new(admission.clone(), clock.clone());
        let transaction = transfer(person(0), 0, person(1).address, 1);
        admission.submit(transaction.encoded()).unwrap();
        let sent = SentToAll::default();
        let until = after(NOW, DurationMs(1_000));
        let flood = Flood { clock, from: PrivateKey::from_seed(1).public_key(), until };
        futures::executor::block_on(gossip.run(sent.clone(), flood));
        let expected = vec![transaction.encoded().to_vec()].encode();
        assert_eq!(sent.0.lock().unwrap().first().map(Vec::as_slice), Some(&*expected));
    }
}
