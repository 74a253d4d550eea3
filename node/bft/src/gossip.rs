//! Gossips transactions: what a client submits to one validator reaches the pools of all.
//!
//! All validators are connected, so a node sends only transactions that it got from clients, to everyone. It sends
//! them again from time to time until they are final: messages get lost, and a validator that has a transaction may
//! never get a block through.
//!
//! Only ready transactions are sent. A parked transaction cannot pay for anything, so it takes room only on the node
//! that received it, and is sent once it is ready. What peers may count is sent as fast as they bear it ([`Rationed`]).

use crate::{
    credit::{Allowance, Credits},
    fair::Share,
    held_back::{HeldBack, place_of},
    rationed::Rationed,
    turns::Turns,
};
use alloy_primitives::TxHash;
use almanac_consensus::{Admission, Arrival, Clock, SharedPool, SubmitError, Submitted};
use almanac_exec::{TransactionError, check_expiration};
use almanac_mempool::{Pool, PoolError};
use almanac_primitives::{
    DurationMs, RecoveredTransaction, TimestampMs, UserTransaction, params::TRANSACTION_BYTES_MAX,
};
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

/// Signatures of a transaction from which on it is sent as [`Rationed`] ones, whatever it did to the pool here: another may
/// have arrived at the peers by then, which it displaces there. Fewer only where two nodes are given thousands a second.
const SEVERAL_SIGNATURES: usize = 2;

/// Signatures at which a message is full. One with what is sent once more, which is not rationed, has no more than these.
const MESSAGE_SIGNATURES: usize = 512;

/// Queue of a peer's messages: what an honest peer sends in a second at most.
pub(crate) const SHARE: Share = Share { messages: NZUsize!(64), bytes: 2 << 20 };

/// Longest time that a message may take to a peer, the difference of the clocks included.
const TRAVEL_TIME_MAX: DurationMs = DurationMs(2_000);

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

/// The transactions that clients submitted to this node.
#[derive(Default)]
struct OwnTransactions {
    /// Not sent yet. Their senders take turns, by bytes: a message has room for so many.
    fresh: Turns,
    /// Not sent yet, and peers may count what they cost. They wait until `fresh` is empty, which they would overtake.
    rationed: Rationed,
    /// Not sent yet, and cannot be now.
    held_back: HeldBack,
    /// Sent, least recently first; dropped when they leave the pool.
    sent: VecDeque<TxHash>,
    /// Received from a peer; the pool's notification of them is still pending.
    foreign: BTreeSet<TxHash>,
}

impl OwnTransactions {
    fn heard(&mut self, Arrival { hash, sender, sequence, bytes, effort }: Arrival) {
        if self.foreign.remove(&hash) {
            return;
        }
        let place = sequence.map(|nonce| (sender, nonce));
        let follows = self.held_back.is_overtaken_by(place);
        if follows || effort.has_displaced || effort.recoveries >= SEVERAL_SIGNATURES {
            self.rationed.add(hash, sender, effort.recoveries);
            self.held_back.hold(place, hash);
        } else {
            self.fresh.add(hash, sender, bytes);
        }
    }

    /// Whether there is something to send, now or soon.
    fn has_fresh(&self) -> bool {
        !self.fresh.is_empty() || !self.rationed.is_empty()
    }

    /// A message of unsent transactions. What does not fit goes into the next one.
    fn fresh(&mut self, pool: &SharedPool, now: TimestampMs) -> Vec<Vec<u8>> {
        let (pool, mut message) = (pool.lock(), Message::default());
        let mut add = |hash, message: &mut Message| {
            let known = pool.get(hash).filter(|known| is_next(&mut self.held_back, &pool, known, now))?;
            self.sent.push_back(hash);
            Some(message.add(known.transaction()))
        };
        while message.has_room()
            && let Some(hash) = self.fresh.next()
        {
            add(hash, &mut message);
        }
        // Charged when they are sent: what waits behind others would leave all at once.
        while message.has_room()
            && let Some(hash) = self.rationed.next(now)
        {
            let cost = add(hash, &mut message).unwrap_or(0);
            self.rationed.charge(cost, now);
        }
        message.transactions
    }

    /// A message of transactions that were sent and are not final yet. Parked transactions that became ready
    /// are sent as [`Rationed`] ones: the peers may have others in their places. So is a list that exceeds a message:
    /// peers that have dropped it count all of it again.
    fn pending(&mut self, pool: &SharedPool, now: TimestampMs) -> Vec<Vec<u8>> {
        let (pool, held_back) = (pool.lock(), &mut self.held_back);
        // A missed notification would otherwise keep its entry forever.
        self.foreign.retain(|hash| pool.contains(*hash));
        self.fresh.retain(|hash| pool.contains(hash));
        self.rationed.retain(|hash| pool.contains(hash));
        held_back.retain(|hash| pool.contains(hash));
        for known in held_back.take_ready(&pool) {
            self.rationed.add(known.hash(), known.sender(), known.transaction().recovery_count());
        }
        let (mut message, mut again) = (Message::default(), Vec::new());
        while message.has_room()
            && let Some(hash) = self.sent.pop_front()
        {
            let Some(known) = pool.get(hash) else { continue };
            let cost = known.transaction().recovery_count();
            if !pool.is_ready(hash) {
                held_back.park(known);
            } else if expires_soon(known.transaction(), now) {
                continue;
            } else if cost > MESSAGE_SIGNATURES {
                self.rationed.add(hash, known.sender(), cost);
            } else if message.signatures + cost > MESSAGE_SIGNATURES {
                self.sent.push_front(hash);
                break;
            } else {
                message.add(known.transaction());
                again.push(hash);
            }
        }
        self.sent.extend(again);
        message.transactions
    }
}

/// A message that is being put together.
#[derive(Default)]
struct Message {
    transactions: Vec<Vec<u8>>,
    bytes: usize,
    signatures: usize,
}

impl Message {
    fn has_room(&self) -> bool {
        self.bytes < MESSAGE_BYTES
            && self.signatures < MESSAGE_SIGNATURES
            && self.transactions.len() < MESSAGE_TRANSACTIONS_MAX
    }

    /// Adds a transaction. Returns how many recoveries of signatures it costs a peer.
    fn add(&mut self, transaction: &UserTransaction) -> usize {
        let cost = transaction.recovery_count();
        self.bytes += transaction.encoded().len();
        self.signatures += cost;
        self.transactions.push(transaction.encoded().to_vec());
        cost
    }
}

/// Whether a transaction that has not been sent can be sent now. If not, those of its sender behind it wait too.
fn is_next(held_back: &mut HeldBack, pool: &Pool, known: &RecoveredTransaction, now: TimestampMs) -> bool {
    if !pool.is_ready(known.hash()) || held_back.is_overtaken_by(place_of(known)) {
        held_back.park(known);
        false
    } else if expires_soon(known.transaction(), now) {
        held_back.hold(place_of(known), known.hash());
        false
    } else {
        held_back.release(known);
        true
    }
}

/// Whether a peer may refuse it as expired when it gets there. The pool keeps such transactions until a block is final.
fn expires_soon(transaction: &UserTransaction, now: TimestampMs) -> bool {
    let then = after(now, TRAVEL_TIME_MAX);
    matches!(check_expiration(transaction, then), Err(TransactionError::TransactionExpired { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::Ended;
    use alloy_primitives::{Address, TxKind, U256};
    use almanac_consensus::{Effort, ManualClock, TipState};
    use almanac_mempool::{PoolConfig, SenderState};
    use almanac_primitives::{
        GasPrice, NativeTransaction, StateKey, StateRead, StateReadError, Wei,
        testing::{
            CHAIN, authorize, eip1559, eip7702, genesis,
            native::{native, native_call, orderless, sign_native, sign_native_on},
            person, recovered, sign, transfer,
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

    fn list_from(from: u64, nonce: u64, authorizations: usize) -> UserTransaction {
        let list = vec![authorize(person(5), 0, Address::repeat_byte(7)); authorizations];
        let gas_limit = 200_000 + 25_000 * u64::try_from(authorizations).unwrap();
        sign(eip7702(nonce, Address::ZERO, list, gas_limit), person(from).secret)
    }

    const NOW: TimestampMs = TimestampMs(10_000_000);

    fn arrived(transaction: &UserTransaction) -> Arrival {
        let (hash, sender, bytes) = (transaction.hash(), person(0).address, transaction.encoded().len());
        Arrival { hash, sender, sequence: Some(transaction.nonce()), bytes, effort: Effort::default() }
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
        assert!(own.fresh(&pool, NOW).is_empty() && own.pending(&pool, NOW).is_empty());
        assert!(!own.has_fresh(), "nothing to wake up for");

        pool.lock().insert(recovered(first.clone()), rich).unwrap();
        own.heard(arrived(&first));
        assert_eq!(own.fresh(&pool, NOW), [first.encoded().to_vec()]);
        assert_eq!(own.pending(&pool, NOW), [first.encoded().to_vec()], "once more, and the other is ready");
        assert_eq!(own.fresh(&pool, NOW), [second.encoded().to_vec()]);
        assert_eq!(own.pending(&pool, NOW).len(), 2);

        pool.lock().remove(first.hash());
        assert!(own.pending(&pool, NOW).is_empty(), "the other waits again");
        pool.lock().remove(second.hash());
        own.pending(&pool, NOW);
        assert!(own.held_back.is_empty() && own.sent.is_empty(), "nothing is remembered of what is gone");
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

    /// A node that passes on what clients give it, and a peer that counts what that costs.
    struct Passing {
        admission: Admission,
        arrivals: broadcast::Receiver<Arrival>,
        own: OwnTransactions,
        peer: Admission,
        credits: Credits<&'static str>,
        now: TimestampMs,
    }

    impl Passing {
        fn start() -> Self {
            let [admission, peer] = [(); 2].map(|()| admission(PoolConfig::default()));
            let (arrivals, own) = (admission.pool().listen(), OwnTransactions::default());
            Self { admission, arrivals, own, peer, credits: Credits::new(FRUITLESS), now: NOW }
        }

        /// What admitting it has cost without making the pool grow.
        fn offer(&mut self, transaction: &UserTransaction) -> usize {
            let Submitted { outcome, effort } = self.admission.submit_counted(transaction.encoded());
            outcome.unwrap();
            self.own.heard(self.arrivals.try_recv().unwrap());
            effort.fruitless()
        }

        /// Lets one interval pass and sends what there is. Returns how many transactions.
        fn send(&mut self) -> usize {
            self.now = after(self.now, SEND_INTERVAL);
            let message = self.own.fresh(self.admission.pool(), self.now);
            if !message.is_empty() {
                let cost = take(&self.peer, &"node", message.encode()).recoveries;
                self.credits.charge("node", cost, self.now);
            }
            assert!(self.credits.is_good(&"node", self.now), "it costs its peers no more than they allow");
            message.len()
        }
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

    /// A transaction of many authorizations that offers so much.
    fn long_list(nonce: u64, price: u128) -> UserTransaction {
        list_of(300, nonce, price)
    }

    fn list_of(authorizations: usize, nonce: u64, price: u128) -> UserTransaction {
        let list = vec![authorize(person(5), 0, Address::ZERO); authorizations];
        let mut list = eip7702(nonce, Address::ZERO, list, 8_000_000);
        (list.max_fee_per_gas, list.max_priority_fee_per_gas) = (price, price / 2);
        sign(list, person(0).secret)
    }

    const PRICE: u128 = 2_000_000_000;
    const HIGHER_PRICE: u128 = 3_000_000_000;

    /// Regression: a stranger who replaced one transaction again and again used up what its node may cost the others, who
    /// then dropped all that the node passed on.
    #[test]
    fn a_transaction_that_is_replaced_often_does_not_use_up_the_credit_of_its_node() {
        let (mut node, mut offered, mut price) = (Passing::start(), 0, PRICE);
        for _ in 0..24 {
            offered += node.offer(&long_list(0, price));
            price += price / 8;
            node.send();
        }
        let burst = usize::try_from(FRUITLESS_AT_ONCE).unwrap();
        assert!(offered > burst + burst / 2, "{offered} would have been too many");
        node.now = after(node.now, DurationMs(2_000));
        assert_eq!(node.send(), 1, "the last one is passed on later");
    }

    /// Regression: so did one who gave a node many that had to wait, and its peers others in their places. When they could
    /// run, they displaced nothing in the pool of their node, and all of them at its peers.
    #[test]
    fn transactions_that_waited_do_not_use_up_the_credit_of_their_node() {
        let mut node = Passing::start();
        let nonces = 1..25;
        for nonce in nonces.clone() {
            node.offer(&long_list(nonce, HIGHER_PRICE));
        }
        assert_eq!(node.send(), 0, "they have to wait");
        let peer = node.peer.clone();
        for nonce in 0..nonces.end {
            peer.submit_counted(long_list(nonce, PRICE).encoded()).outcome.unwrap();
        }
        node.offer(&long_list(0, PRICE));
        let mut sent = node.send();
        assert!(node.own.pending(node.admission.pool(), node.now).len() <= 1, "what was sent already");
        for _ in 0..500 {
            sent += node.send();
        }
        assert_eq!(sent, 25, "all of them in the end");
    }

    /// Regression: and so did two versions of the same, each given to another node a moment before it heard of the other.
    #[test]
    fn lists_that_displace_others_elsewhere_do_not_use_up_the_credit_of_their_node() {
        for (authorizations, count) in [(300, 24), (62, 100)] {
            let mut node = Passing::start();
            for nonce in 0..count {
                let [here, there] = [HIGHER_PRICE, PRICE].map(|price| list_of(authorizations, nonce, price));
                node.peer.submit_counted(there.encoded()).outcome.unwrap();
                assert_eq!(node.offer(&here), 0, "it displaces nothing here");
            }
            let sent: usize = (0..500).map(|_| node.send()).sum();
            assert_eq!(sent as u64, count);
        }
    }

    /// The largest plain ones of three accounts, a hundred each: seconds of messages.
    fn fill_messages(node: &mut Passing) {
        let zeros = vec![0; MESSAGE_BYTES];
        for nonce in 0..100 {
            for from in [1, 2, 3] {
                let tx = eip1559(nonce, TxKind::Call(person(4).address), 1, zeros.clone(), 1_000_000);
                assert_eq!(node.offer(&sign(tx, person(from).secret)), 0);
            }
        }
    }

    /// Regression: what one account had sent a lot of delayed everybody's transactions by a minute and more.
    #[test]
    fn large_ones_do_not_hold_up_those_of_others() {
        let mut node = Passing::start();
        fill_messages(&mut node);
        node.offer(&transfer(person(0), 0, person(4).address, 1));
        assert_eq!(node.send(), 2, "the plain one, and one that fills the message");
        assert_eq!(node.send(), 1);
    }

    /// Regression: lists were counted as sent while they waited behind large ones, and left all at once.
    #[test]
    fn lists_behind_large_ones_do_not_use_up_the_credit_of_their_node() {
        let mut node = Passing::start();
        for nonce in 0..24 {
            node.peer.submit_counted(long_list(nonce, PRICE).encoded()).outcome.unwrap();
        }
        fill_messages(&mut node);
        for nonce in 0..24 {
            assert_eq!(node.offer(&long_list(nonce, HIGHER_PRICE)), 0, "it displaces nothing here");
        }
        let sent: usize = (0..800).map(|_| node.send()).sum();
        assert_eq!(sent, 324);
    }

    /// Regression: a list of 2,000 was sent once more each second beside all that is rationed.
    #[test]
    fn what_is_sent_once_more_has_no_more_signatures_than_a_message() {
        let mut node = Passing::start();
        let lists = [(0, 300), (1, 300), (2, 600)].map(|(from, count)| list_from(from, 0, count));
        lists.iter().for_each(|list| assert_eq!(node.offer(list), 0));
        let sent: usize = (0..4).map(|_| node.send()).sum();
        assert_eq!(sent, 3);
        let mut again = Vec::new();
        for _ in 0..3 {
            again.extend(node.own.pending(node.admission.pool(), node.now));
        }
        let [first, second, longest] = lists.map(|list| list.encoded().to_vec());
        assert_eq!(again, [first.clone(), second, first], "one in each message");
        assert_eq!(node.own.fresh(node.admission.pool(), node.now), [longest], "as a rationed one");
    }

    /// Regression: what had expired while it waited to be sent was sent, and each cost its node a signature at every peer.
    #[test]
    fn what_expires_is_not_sent() {
        let mut node = Passing::start();
        let second = NOW.0 / 1_000 + 10;
        let expiring = |nonce: u64| {
            let call = native_call(person(1).address, 1, vec![]);
            sign_native(orderless(person(0).address, nonce, second, vec![call]), &[person(0).into()])
        };
        let at_the_limit = TimestampMs(second * 1_000 - TRAVEL_TIME_MAX.0);
        for (nonce, now, sent) in [(1, TimestampMs(at_the_limit.0 - 1), 1), (2, at_the_limit, 0)] {
            node.offer(&expiring(nonce));
            node.now = TimestampMs(now.0 - SEND_INTERVAL.0);
            assert_eq!(node.send(), sent);
        }
    }

    /// Passes on lists of 2,408 signatures in 160 ms: 200 more than may be passed on at once are used.
    fn use_up(node: &mut Passing) {
        (0..8).for_each(|nonce| assert_eq!(node.offer(&long_list(nonce, PRICE)), 0));
        let sent: usize = (0..8).map(|_| node.send()).sum();
        assert_eq!(sent, 8);
    }

    /// Regression: plain transactions behind a list of their sender came to the peers before it, where thousands of them had
    /// to wait, took the places of others, and were charged to their node.
    #[test]
    fn what_follows_a_list_does_not_overtake_it() {
        let mut node = Passing::start();
        use_up(&mut node);
        node.offer(&list_from(1, 0, 300));
        (1..99).for_each(|nonce| {
            node.offer(&transfer(person(1), nonce, person(2).address, 1));
        });
        let mut sent = 0;
        for _ in 0..100 {
            sent += node.send();
            assert_eq!(node.peer.pool().lock().parked_count(), 0, "after {sent}");
        }
        assert_eq!(sent, 99);
        node.offer(&transfer(person(1), 99, person(2).address, 1));
        assert!(node.own.rationed.is_empty(), "and no longer than it waits");
    }

    /// Regression: behind one that was never sent since it was about to expire, and one that had to wait for its turn, plain
    /// ones reached the peers, which refused them, and counted each.
    #[test]
    fn nothing_overtakes_what_expires_or_waits() {
        let plain = |nonce| transfer(person(0), nonce, person(2).address, 1);
        let second = (NOW.0 + TRAVEL_TIME_MAX.0) / 1_000;
        let call = native_call(person(2).address, 1, vec![]);
        let first = NativeTransaction { expiration: second, ..native(person(0).address, 0, vec![call]) };
        let mut node = Passing::start();
        node.offer(&sign_native(first, &[person(0).into()]));
        (1..99).for_each(|nonce| assert_eq!(node.offer(&plain(nonce)), 0));
        for _ in 0..100 {
            assert_eq!(node.send(), 0, "the first expires on its way");
            assert!(node.own.pending(node.admission.pool(), node.now).is_empty());
        }

        let mut node = Passing::start();
        node.offer(&plain(1));
        assert_eq!(node.send(), 0);
        node.offer(&plain(0));
        (2..99).for_each(|nonce| assert_eq!(node.offer(&plain(nonce)), 0));
        assert_eq!(node.send(), 1, "all the others are behind the one that waits");
        node.own.pending(node.admission.pool(), node.now);
        let mut sent = 1;
        for _ in 0..100 {
            sent += node.send();
            assert_eq!(node.peer.pool().lock().parked_count(), 0, "after {sent}");
        }
        assert_eq!(sent, 99);
    }

    /// Out of order, most would find an earlier one waiting, and wait for another second.
    #[test]
    fn what_waited_is_sent_in_its_order() {
        let mut node = Passing::start();
        (1..61)
            .for_each(|nonce| assert_eq!(node.offer(&transfer(person(0), nonce, person(2).address, 1)), 0));
        assert_eq!(node.send(), 0);
        node.offer(&transfer(person(0), 0, person(2).address, 1));
        node.own.pending(node.admission.pool(), node.now);
        let sent: usize = (0..3).map(|_| node.send()).sum();
        assert_eq!((sent, node.peer.pool().lock().parked_count()), (61, 0));
    }

    /// Orderless ones wait for no other.
    #[test]
    fn orderless_ones_overtake_what_is_held_back() {
        let mut node = Passing::start();
        use_up(&mut node);
        node.offer(&list_from(1, 0, 300));
        let call = native_call(person(2).address, 1, vec![]);
        let any = orderless(person(1).address, 7, NOW.0 / 1_000 + 50, vec![call]);
        node.offer(&sign_native(any, &[person(1).into()]));
        assert_eq!(node.send(), 1);
        assert!(!node.own.rationed.is_empty(), "the list waits");
    }

    /// Regression: what had expired was not sent, and still used up what may be passed on.
    #[test]
    fn what_expires_takes_nothing_from_what_is_sent() {
        let mut node = Passing::start();
        use_up(&mut node);
        // Room for 100 more.
        node.now = after(node.now, DurationMs(300));
        let second = (NOW.0 + TRAVEL_TIME_MAX.0) / 1_000;
        for nonce in 0..200 {
            let call = native_call(person(2).address, 1, vec![]);
            let paid = orderless(person(0).address, nonce, second, vec![call]);
            let paid = NativeTransaction { fee_payer: Some(person(1).address), ..paid };
            node.offer(&sign_native_on(&CHAIN, paid, &[person(0).into()], &[person(1).into()]));
        }
        node.offer(&list_from(3, 0, 300));
        assert_eq!(node.send(), 1, "the list, and nothing that has expired");
    }

    /// Regression: what pushes out what waits costs nobody anything, and what waits is not sent: an account that counted its
    /// nonces down used up what its node may pass on.
    #[test]
    fn what_waits_takes_nothing_from_what_is_sent() {
        let mut node = Passing::start();
        for nonce in (1..=4_800).rev() {
            node.offer(&transfer(person(2), nonce, person(1).address, 1));
            if nonce % 60 == 0 {
                assert_eq!(node.send(), 0);
                assert!(node.own.rationed.is_empty() && !node.own.held_back.is_empty());
            }
        }
        let [first, second] = [PRICE, HIGHER_PRICE].map(|price| {
            let mut tx = eip1559(0, TxKind::Call(person(1).address), 1, vec![], 21_000);
            (tx.max_fee_per_gas, tx.max_priority_fee_per_gas) = (price, price);
            sign(tx, person(0).secret)
        });
        assert_eq!(node.offer(&first), 0);
        assert_eq!(node.offer(&second), 1, "it displaces the first");
        assert!(!node.own.rationed.is_empty());
        assert_eq!(node.send(), 1, "and is sent at once");
    }
}
