//! What a client does for the plan, by what its validator's blocks say: it may be started again at any time.

use crate::sim::{
    client::account,
    machine::Machine,
    opened::Store,
    run::milliseconds,
    signed::{Group, History, NEEDED, PLAN, creator, party, relay, treasury},
};
use almanac_bft::Replica;
use almanac_primitives::{
    ScheduleId, UserTransaction,
    addresses::ACCOUNTS,
    testing::{
        Person, call,
        native::{Key, rotation_on},
        signed::*,
    },
};
use almanac_state::BlockJournal;
use std::{collections::BTreeMap, sync::Arc, time::UNIX_EPOCH};

/// When each schedule of the plan is made, in simulated time: while things go wrong.
const BEGIN_MS: [u64; PLAN.len()] = [300, 1_500, 2_500, 3_500];

/// The second schedule is deleted so long after its time: signatures come before.
const DELETE_AFTER_MS: u64 = 600;

/// Seconds until the one that nobody signs expires: the furthest that a clock is ahead, and a block. Where it gets into the
/// chain too late, it is made again with twice the time.
const SHORT_SECONDS: u64 = 3;

/// Transactions of the creator before that one, if none is refused.
const BEFORE_SHORT: u64 = 3;

/// What a transaction is for; the place in the plan is beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Purpose {
    Rotate,
    Create,
    Delete,
    /// Brings a signature of the round before.
    Spent,
    Sign,
}

/// A client's part.
pub struct Party {
    client: usize,
    group: Arc<Group>,
    history: History,
    treasury: Sender,
    creator: Sender,
    relay: Sender,
}

impl Party {
    pub fn new(client: usize, group: Arc<Group>) -> Self {
        let [treasury, creator, relay] = [treasury(), creator(), relay(client)].map(Sender::new);
        Self { client, group, history: History::default(), treasury, creator, relay }
    }

    /// The transactions to submit now. `None` where the chain moves on while it is read.
    pub async fn next(
        &mut self,
        context: &Machine,
        replica: &Replica<Store>,
        archive: &BlockJournal<Machine>,
    ) -> Option<Vec<UserTransaction>> {
        // Before the blocks are read: those that the state has are all there, so what was sent shows.
        for sender in [&mut self.treasury, &mut self.creator, &mut self.relay] {
            sender.nonce = account(replica, sender.who.address).await?.nonce;
        }
        while self.history.blocks < archive.height().await.ok()? {
            let archived = archive.get(self.history.blocks + 1).await.ok()??;
            // What must not happen shows in the check at the end.
            let _ = self.history.add(&archived);
        }
        // By a clock that is right: that of the machine may be an hour ahead.
        let now_ms = milliseconds(context.true_time().duration_since(UNIX_EPOCH).unwrap()).0;
        if self.client == self.group.maker {
            self.make(now_ms);
        }
        if self.group.members.contains(&self.client) {
            self.sign();
        }
        let senders = [&self.treasury, &self.creator, &self.relay];
        Some(senders.into_iter().flat_map(Sender::under_way).collect())
    }

    /// Makes what is next in the plan, and deletes the second one.
    fn make(&mut self, now_ms: u64) {
        let Self { group, history, .. } = self;
        if self.treasury.nonce == 0 {
            let (account, key) = (treasury().address, group.key());
            let proofs: Vec<_> = group.members[..NEEDED].iter().map(|client| party(*client).into()).collect();
            let input = rotation_on(&group.chain, account, &key, 1, &proofs);
            self.treasury
                .want((0, Purpose::Rotate), |from, nonce| call(from, nonce, ACCOUNTS, input, PLENTY_GAS));
            return;
        }
        let place = history.ended();
        let Some(begin) = BEGIN_MS.get(place).filter(|begin| now_ms >= **begin) else { return };
        match history.pending() {
            None => {
                let wish = match place {
                    2 => {
                        let refused = self.creator.nonce.saturating_sub(BEFORE_SHORT);
                        group.short(now_ms / 1_000 + (SHORT_SECONDS << refused.min(6)))
                    }
                    _ => group.wish(0),
                };
                let input = wish.create(vec![]);
                self.creator.want((place, Purpose::Create), |from, nonce| to_service(from, nonce, input));
            }
            Some(seen) if place == 1 && now_ms >= begin + DELETE_AFTER_MS => {
                // Its admin key calls, and so signs.
                let input = deleting(ScheduleId(seen.id), vec![]);
                self.creator.want((place, Purpose::Delete), |from, nonce| to_service(from, nonce, input));
            }
            Some(_) => {}
        }
    }

    /// Signs what is to be executed, and tries with the signature of the round before wherever there was one.
    fn sign(&mut self) {
        let (place, Some(seen)) = (self.history.ended(), self.history.pending()) else { return };
        let bring = |round| {
            let entry = self.group.signature(self.client, round);
            let input = signing(ScheduleId(seen.id), vec![entry]);
            move |from, nonce| to_service(from, nonce, input)
        };
        let spent = (place, Purpose::Spent);
        if seen.round > 0 && !self.relay.sent.contains_key(&spent) {
            self.relay.want(spent, bring(seen.round - 1));
        }
        let is_signed = seen.signed.contains_key(&Key::from(party(self.client)).encoded());
        if matches!(place, 0 | 3) && !is_signed {
            self.relay.want((place, Purpose::Sign), bring(seen.round));
        }
    }
}

/// The transactions of one account, each sent until its nonce is used.
struct Sender {
    who: Person,
    /// The next that the state takes.
    nonce: u64,
    sent: BTreeMap<(usize, Purpose), (u64, UserTransaction)>,
}

impl Sender {
    fn new(who: Person) -> Self {
        Self { who, nonce: 0, sent: BTreeMap::new() }
    }

    /// Sends what is wanted, again if it came to nothing.
    fn want(&mut self, what: (usize, Purpose), make: impl FnOnce(Person, u64) -> UserTransaction) {
        if self.sent.get(&what).is_some_and(|(nonce, _)| *nonce >= self.nonce) {
            return;
        }
        let last = self.sent.values().map(|(nonce, _)| nonce + 1).max();
        let nonce = last.unwrap_or_default().max(self.nonce);
        self.sent.insert(what, (nonce, make(self.who, nonce)));
    }

    fn under_way(&self) -> impl Iterator<Item = UserTransaction> {
        let ahead = self.sent.values().filter(|(nonce, _)| *nonce >= self.nonce);
        ahead.map(|(_, transaction)| transaction.clone())
    }
}
