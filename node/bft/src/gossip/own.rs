//! The transactions that clients submitted to this node: what of them is sent next, and what is sent once more.

use super::{MESSAGE_BYTES, MESSAGE_TRANSACTIONS_MAX, after};
use crate::{
    held_back::{HeldBack, place_of},
    rationed::Rationed,
    turns::Turns,
};
use alloy_primitives::TxHash;
use almanac_consensus::{Arrival, SharedPool};
use almanac_exec::{TransactionError, check_expiration};
use almanac_mempool::Pool;
use almanac_primitives::{DurationMs, RecoveredTransaction, TimestampMs, UserTransaction};
use std::collections::{BTreeSet, VecDeque};

/// Signatures of a transaction from which on it is sent as [`Rationed`] ones, whatever it did to the pool here: another may
/// have arrived at the peers by then, which it displaces there. Fewer only where two nodes are given thousands a second.
const SEVERAL_SIGNATURES: usize = 2;

/// Signatures at which a message is full. One with what is sent once more, which is not rationed, has no more than these.
const MESSAGE_SIGNATURES: usize = 512;

/// Longest time that a message may take to a peer, the difference of the clocks included.
const TRAVEL_TIME_MAX: DurationMs = DurationMs(2_000);

/// The transactions that clients submitted to this node.
#[derive(Default)]
pub(super) struct OwnTransactions {
    /// Not sent yet. Their senders take turns, by bytes: a message has room for so many.
    fresh: Turns,
    /// Not sent yet, and peers may count what they cost. They wait until `fresh` is empty, which they would overtake.
    rationed: Rationed,
    /// Not sent yet, and cannot be now.
    held_back: HeldBack,
    /// Sent, least recently first; dropped when they leave the pool.
    sent: VecDeque<TxHash>,
    /// Received from a peer; the pool's notification of them is still pending.
    pub(super) foreign: BTreeSet<TxHash>,
}

impl OwnTransactions {
    pub(super) fn heard(&mut self, Arrival { hash, sender, sequence, bytes, effort }: Arrival) {
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
    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty() || !self.rationed.is_empty()
    }

    /// A message of unsent transactions. What does not fit goes into the next one.
    pub(super) fn fresh(&mut self, pool: &SharedPool, now: TimestampMs) -> Vec<Vec<u8>> {
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
    pub(super) fn pending(&mut self, pool: &SharedPool, now: TimestampMs) -> Vec<Vec<u8>> {
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
    use crate::{
        credit::Credits,
        gossip::{
            FRUITLESS, FRUITLESS_AT_ONCE, SEND_INTERVAL, take,
            tests::{BASE_FEE, NOW, admission, list_from},
        },
    };
    use alloy_primitives::{Address, TxKind, U256};
    use almanac_consensus::{Admission, Effort, Submitted};
    use almanac_mempool::{PoolConfig, SenderState};
    use almanac_primitives::{
        NativeTransaction, Wei,
        testing::{
            CHAIN, authorize, eip1559, eip7702,
            native::{native, native_call, orderless, sign_native, sign_native_on},
            person, recovered, sign, transfer,
        },
    };
    use commonware_codec::Encode as _;
    use tokio::sync::broadcast;

    fn arrived(transaction: &UserTransaction) -> Arrival {
        let (hash, sender, bytes) = (transaction.hash(), person(0).address, transaction.encoded().len());
        Arrival { hash, sender, sequence: Some(transaction.nonce()), bytes, effort: Effort::default() }
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
