//! Gossips transactions: what a client submits to one validator reaches the pools of all.
//!
//! All validators are connected, so a node sends only transactions that it got from clients, to everyone. It sends
//! them again from time to time until they are final: messages get lost, and a validator that has a transaction may
//! never get a block through.
//!
//! Only ready transactions are sent. A parked transaction cannot pay for anything, so it takes room only on the node
//! that received it, and is sent once it is ready. Those that displaced others are sent as fast as peers bear it
//! ([`Displacing`]).

use crate::{
    credit::{Allowance, Credits},
    displacing::Displacing,
    fair::Share,
};
use alloy_primitives::TxHash;
use almanac_consensus::{Admission, Arrival, Clock, SharedPool, SubmitError, Submitted};
use almanac_mempool::{Pool, PoolError};
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
                    resend_at = after(self.clock.now(), RESEND_INTERVAL);
                    self.own.pending(self.admission.pool())
                }
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
                arrival = self.arrivals.recv() => match arrival {
                    Ok(arrival) => {
                        self.own.heard(arrival);
                        continue;
                    }
                    // Some admissions were missed because too many came at once. Skip them: blocks include them
                    // in turn.
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

/// The transactions that clients submitted to this node.
#[derive(Default)]
struct OwnTransactions {
    /// Not sent yet.
    fresh: VecDeque<TxHash>,
    /// Not sent yet, and peers will count what they cost.
    displacing: Displacing,
    /// Not sent yet, and cannot run now.
    parked: BTreeSet<TxHash>,
    /// Sent, least recently first; dropped when they leave the pool.
    sent: VecDeque<TxHash>,
    /// Received from a peer; the pool's notification of them is still pending.
    foreign: BTreeSet<TxHash>,
}

impl OwnTransactions {
    fn heard(&mut self, Arrival { hash, effort }: Arrival) {
        if self.foreign.remove(&hash) {
            return;
        }
        match effort.fruitless() {
            0 => self.fresh.push_back(hash),
            cost => self.displacing.add(hash, cost),
        }
    }

    /// Whether there is something to send, now or soon.
    fn has_fresh(&self) -> bool {
        !self.fresh.is_empty() || !self.displacing.is_empty()
    }

    /// A message of unsent transactions. What does not fit goes into the next one.
    fn fresh(&mut self, pool: &SharedPool, now: TimestampMs) -> Vec<Vec<u8>> {
        let pool = pool.lock();
        self.fresh.extend(self.displacing.take(now, |hash| pool.contains(hash)));
        fill(&mut self.fresh, &pool, &mut self.sent, |hash| {
            self.parked.insert(hash);
        })
    }

    /// A message of transactions that were sent and are not final yet. Parked transactions that became ready
    /// are fresh again.
    fn pending(&mut self, pool: &SharedPool) -> Vec<Vec<u8>> {
        let pool = pool.lock();
        // A missed notification would otherwise keep its entry forever.
        self.foreign.retain(|hash| pool.contains(*hash));
        self.parked.retain(|hash| pool.contains(*hash));
        self.displacing.retain(|hash| pool.contains(hash));
        self.fresh.extend(self.parked.extract_if(.., |hash| pool.is_ready(*hash)));
        let mut sent = std::mem::take(&mut self.sent);
        let message = fill(&mut sent, &pool, &mut self.sent, |hash| {
            self.parked.insert(hash);
        });
        sent.append(&mut self.sent);
        self.sent = sent;
        message
    }
}

/// Takes transactions from the front of `hashes` until a message is full, and moves the hashes to the back of
/// `sent`. Drops those that the pool no longer has, and passes those that cannot run now to `park`.
fn fill(
    hashes: &mut VecDeque<TxHash>,
    pool: &Pool,
    sent: &mut VecDeque<TxHash>,
    mut park: impl FnMut(TxHash),
) -> Vec<Vec<u8>> {
    let (mut message, mut bytes) = (Vec::new(), 0);
    while bytes < MESSAGE_BYTES && message.len() < MESSAGE_TRANSACTIONS_MAX {
        let Some(hash) = hashes.pop_front() else { break };
        let Some(known) = pool.get(hash) else { continue };
        if pool.is_ready(hash) {
            let encoded = known.transaction().encoded();
            bytes += encoded.len();
            message.push(encoded.to_vec());
            sent.push_back(hash);
        } else {
            park(hash);
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Address, U256};
    use almanac_consensus::{Effort, TipState};
    use almanac_mempool::{PoolConfig, SenderState};
    use almanac_primitives::{
        GasPrice, NativeTransaction, StateKey, StateRead, StateReadError, UserTransaction, Wei,
        testing::{
            CHAIN, authorize, eip7702, genesis,
            native::{native, native_call, sign_native_on},
            person, recovered, sign, transfer,
        },
    };
    use std::{collections::BTreeMap, sync::Arc};

    const BASE_FEE: GasPrice = GasPrice(1_000_000_000);

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

    fn admission(config: PoolConfig) -> Admission {
        let state = AtGenesis(Arc::new(genesis().state().unwrap()));
        Admission::new(CHAIN, SharedPool::new(Pool::new(config, BASE_FEE)), Arc::new(state))
    }

    fn message_of(transactions: &[UserTransaction]) -> impl Buf {
        transactions.iter().map(|tx| tx.encoded().to_vec()).collect::<Vec<_>>().encode()
    }

    fn list(nonce: u64, from: u64, authorizations: usize) -> UserTransaction {
        let list = vec![authorize(person(5), 0, Address::repeat_byte(7)); authorizations];
        sign(eip7702(nonce, Address::ZERO, list, 5_000_000), person(from).secret)
    }

    const NOW: TimestampMs = TimestampMs(10_000_000);

    fn arrived(transaction: &UserTransaction) -> Arrival {
        Arrival { hash: transaction.hash(), effort: Effort::default() }
    }

    /// Regression: when the clock was set back by an hour, nothing was sent for that hour.
    #[test]
    fn a_clock_that_is_set_back_puts_nothing_off() {
        let (hour, at) = (3_600_000, TimestampMs(10_000_000));
        assert_eq!(within(at, TimestampMs(at.0 - 400), RESEND_INTERVAL), at, "as it was");
        assert_eq!(within(at, at, RESEND_INTERVAL), at, "over");
        let back = TimestampMs(at.0 - hour);
        assert_eq!(within(at, back, RESEND_INTERVAL), after(back, RESEND_INTERVAL));
    }

    /// Regression: parked transactions filled the pools of all validators.
    #[test]
    fn what_cannot_run_is_not_passed_on_until_it_can() {
        let pool = SharedPool::new(Pool::new(PoolConfig::default(), BASE_FEE));
        let rich = SenderState { balance: Wei(U256::MAX), ..SenderState::default() };
        let [first, second] = [0, 1].map(|nonce| transfer(person(0), nonce, person(1).address, 1));
        let mut own = OwnTransactions::default();
        pool.lock().insert(recovered(second.clone()), rich).unwrap();
        own.heard(arrived(&second));
        assert!(own.fresh(&pool, NOW).is_empty() && own.pending(&pool).is_empty());
        assert!(!own.has_fresh(), "nothing to wake up for");

        pool.lock().insert(recovered(first.clone()), rich).unwrap();
        own.heard(arrived(&first));
        assert_eq!(own.fresh(&pool, NOW), [first.encoded().to_vec()]);
        assert_eq!(own.pending(&pool), [first.encoded().to_vec()], "once more, and the other is ready");
        assert_eq!(own.fresh(&pool, NOW), [second.encoded().to_vec()]);
        assert_eq!(own.pending(&pool).len(), 2);

        pool.lock().remove(first.hash());
        assert!(own.pending(&pool).is_empty(), "the other waits again");
        pool.lock().remove(second.hash());
        own.pending(&pool);
        assert!(own.parked.is_empty() && own.sent.is_empty(), "nothing is remembered of what is gone");
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
        assert_eq!(cost(&[list(0, 99, 100)]), 1, "refused before the list is looked at");
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

    /// Regression: a stranger who replaced one transaction again and again used up what its node may cost the others, who
    /// then dropped all that the node passed on.
    #[test]
    fn a_transaction_that_is_replaced_often_does_not_use_up_the_credit_of_its_node() {
        let (own_admission, peers) = (admission(PoolConfig::default()), admission(PoolConfig::default()));
        let (mut own, mut arrivals) = (OwnTransactions::default(), own_admission.pool().listen());
        let (mut credits, mut offered, mut now) = (Credits::new(FRUITLESS), 0, NOW);
        let mut price = 2_000_000_000;
        for _ in 0..24 {
            let mut list =
                eip7702(0, Address::ZERO, vec![authorize(person(5), 0, Address::ZERO); 300], 8_000_000);
            (list.max_fee_per_gas, list.max_priority_fee_per_gas) = (price, price / 2);
            price += price / 8;
            let Submitted { outcome, effort } =
                own_admission.submit_counted(sign(list, person(0).secret).encoded());
            outcome.unwrap();
            offered += effort.fruitless();
            own.heard(arrivals.try_recv().unwrap());
            now = after(now, SEND_INTERVAL);
            let message = own.fresh(own_admission.pool(), now);
            if !message.is_empty() {
                credits.charge("node", take(&peers, &"node", message.encode()).recoveries, now);
            }
            assert!(credits.is_good(&"node", now), "it costs its peers no more than they allow");
        }
        let burst = usize::try_from(FRUITLESS_AT_ONCE).unwrap();
        assert!(offered > burst + burst / 2, "{offered} would have been too many");
        now = after(now, DurationMs(2_000));
        assert_eq!(own.fresh(own_admission.pool(), now).len(), 1, "the last one is passed on later");
    }
}
