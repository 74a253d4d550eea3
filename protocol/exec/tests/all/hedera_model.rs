//! Random histories of the schedule service against a dull model of it: a schedule executes exactly when the keys of its
//! accounts are satisfied, exactly once, never with a spent or foreign signature (HEDERA-04 … -08, -11, -17).

use crate::{
    keys::rotating,
    support::{contracts::COUNTER, native::*, signed::*, *},
};
use alloy_primitives::Address;
use almanac_primitives::{
    Genesis, NativeTransaction, ScheduleId, TimestampMs, UserTransaction, addresses::ACCOUNTS,
};
use proptest::{collection::vec, prelude::*, sample::select};
use std::collections::BTreeMap;

/// A key that signs: the n-th person's, and from 100 the Ed25519 key of the n-th less 100.
type Signer = u64;

const LIFE_MS: u64 = 1_800_000;
const ADMIN: u64 = 9;

#[derive(Clone, Debug)]
enum Step {
    Create { wish: usize, by: u64, entries: Vec<(Signer, i8)> },
    Sign { schedule: usize, by: u64, entries: Vec<(Signer, i8)> },
    Delete { schedule: usize, by: u64 },
    Wait { ms: u64 },
    Rotate { who: u64, to: usize },
}

fn any_step() -> impl Strategy<Value = Step> {
    let by = || select(vec![0u64, 1, 2, 5, 6, 7, 8, ADMIN]);
    // Mostly signatures of the current round, some of the last one or of one to come.
    let round = select(vec![0i8, 0, 0, 0, 0, -1, 1]);
    let entries = || vec((select(vec![1u64, 2, 5, 6, 7, 8, 106]), round.clone()), 0..4);
    prop_oneof![
        4 => (0..4usize, by(), entries()).prop_map(|(wish, by, entries)| Step::Create { wish, by, entries }),
        6 => (any::<usize>(), by(), entries())
            .prop_map(|(schedule, by, entries)| Step::Sign { schedule, by, entries }),
        1 => (any::<usize>(), by()).prop_map(|(schedule, by)| Step::Delete { schedule, by }),
        1 => select(vec![1u64, 1_000, LIFE_MS - 1_000, LIFE_MS]).prop_map(|ms| Step::Wait { ms }),
        2 => (select(vec![5u64, 6]), 0..3usize).prop_map(|(who, to)| Step::Rotate { who, to }),
    ]
}

/// What each wish calls, and who pays.
fn wish(n: usize) -> (Vec<u64>, Option<u64>) {
    [(vec![1, 2], None), (vec![5], None), (vec![5, 1], Some(2)), (vec![1, 7], None)][n].clone()
}

/// The key of an account: how many of which signers.
type Tree = (usize, Vec<Signer>);

/// The keys that rotations choose from; `None` is the account's own.
fn choices(who: u64) -> [Option<Tree>; 3] {
    match who {
        5 => [None, Some((1, vec![6, 7])), Some((2, vec![6, 7, 8]))],
        _ => [None, Some((1, vec![106])), None],
    }
}

#[derive(Clone, Debug)]
struct Account {
    key: Option<Tree>,
    rotation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Signed {
    By(Signer),
    Call { who: u64, rotation: u64 },
}

#[derive(Clone, Debug)]
struct Schedule {
    id: ScheduleId,
    wish: usize,
    creator: u64,
    round: u32,
    signed: Vec<Signed>,
    expires: u64,
    ended: Option<i64>,
}

/// The dull model.
#[derive(Default)]
struct Model {
    accounts: BTreeMap<u64, Account>,
    rounds: BTreeMap<usize, u32>,
    schedules: Vec<Schedule>,
    executed: BTreeMap<u64, u64>,
}

impl Model {
    fn account(&self, who: u64) -> Account {
        self.accounts.get(&who).cloned().unwrap_or(Account { key: None, rotation: 0 })
    }

    fn round(&self, wish: usize) -> u32 {
        self.rounds.get(&wish).copied().unwrap_or(0)
    }

    fn parties(&self, schedule: &Schedule) -> Vec<u64> {
        let (mut parties, payer) = wish(schedule.wish);
        parties.extend(payer.filter(|payer| *payer != schedule.creator));
        parties
    }

    fn is_in_force(&self, signer: Signer) -> bool {
        signer >= 100 || self.account(signer).key.is_none()
    }

    fn leaves(&self, who: u64) -> Vec<Signer> {
        self.account(who).key.map_or(vec![who], |(_, leaves)| leaves)
    }

    fn has(&self, schedule: &Schedule, signer: Signer) -> bool {
        schedule.signed.iter().any(|signed| match *signed {
            Signed::By(by) => by == signer && self.is_in_force(by),
            Signed::Call { who, rotation } => who == signer && self.account(who).rotation == rotation,
        })
    }

    fn is_satisfied(&self, schedule: &Schedule, who: u64) -> bool {
        let called = schedule.signed.iter().any(|signed| {
            matches!(*signed, Signed::Call { who: caller, rotation }
                if caller == who && self.account(who).rotation == rotation)
        });
        let by_key = match self.account(who).key {
            None => self.has(schedule, who),
            Some((needed, leaves)) => {
                leaves.iter().filter(|leaf| self.has(schedule, **leaf)).count() >= needed
            }
        };
        called || by_key
    }

    /// Signs, and says with which code, and whether it executes.
    fn sign(&mut self, at: usize, by: u64, entries: &[(Signer, i8)], is_creation: bool) -> (i64, bool) {
        let mut schedule = self.schedules[at].clone();
        let parties = self.parties(&schedule);
        let required: Vec<Signer> = parties.iter().flat_map(|who| self.leaves(*who)).collect();
        let mut is_new = false;
        let mut add = |schedule: &mut Schedule, signed: Signed| {
            if schedule.signed.contains(&signed) {
                return;
            }
            is_new = true;
            if let Signed::Call { who, .. } = signed {
                schedule
                    .signed
                    .retain(|old| !matches!(*old, Signed::Call { who: caller, .. } if caller == who));
            }
            schedule.signed.push(signed);
        };
        for (signer, round) in entries {
            if !required.contains(signer) {
                return (208, false);
            }
            if !self.is_in_force(*signer) {
                return (7, false);
            }
            let given = i64::from(self.round(schedule.wish)) + i64::from(*round);
            match given - i64::from(schedule.round) {
                0 => {}
                -1 => return (10_001, false),
                _ => return (7, false),
            }
        }
        for (signer, _) in entries {
            add(&mut schedule, Signed::By(*signer));
        }
        if parties.contains(&by) || required.contains(&by) {
            add(&mut schedule, Signed::Call { who: by, rotation: self.account(by).rotation });
        }
        let is_ready = parties.iter().all(|who| self.is_satisfied(&schedule, *who));
        if !is_new && !is_ready && !is_creation {
            return (205, false);
        }
        if is_ready {
            schedule.ended = Some(213);
            *self.rounds.entry(schedule.wish).or_default() += 1;
            for from in wish(schedule.wish).0 {
                *self.executed.entry(from).or_default() += 1;
            }
        }
        self.schedules[at] = schedule;
        (22, is_ready)
    }

    fn expire(&mut self, now: u64) {
        for schedule in self.schedules.iter_mut().filter(|schedule| schedule.expires <= now) {
            schedule.ended.get_or_insert(314);
        }
    }
}

fn key_of(signer: Signer) -> Key {
    if signer >= 100 { ed_person(signer - 100).into() } else { person(signer).into() }
}

fn encoded(who: u64, tree: Option<&Tree>) -> alloy_primitives::Bytes {
    match tree {
        None => key_of(who).encoded(),
        Some((_, leaves)) if leaves.len() == 1 => key_of(leaves[0]).encoded(),
        Some((needed, leaves)) => {
            let children: Vec<_> = leaves.iter().map(|leaf| key_of(*leaf).encoded()).collect();
            threshold(u8::try_from(*needed).unwrap(), &children)
        }
    }
}

/// Signers that satisfy a key, and none too many.
fn satisfying(who: u64, tree: Option<&Tree>) -> Vec<Key> {
    match tree {
        None => vec![key_of(who)],
        Some((needed, leaves)) => leaves[..*needed].iter().map(|leaf| key_of(*leaf)).collect(),
    }
}

fn asked(n: usize, round: u32) -> Wish {
    let (calls, payer) = wish(n);
    let calls = calls.into_iter().map(|from| service_call(person(from).address, COUNTER)).collect();
    let mut wish = Wish::new(calls);
    wish.body.nonce = u32::try_from(n).unwrap();
    wish.admin_key = Key::from(person(ADMIN)).encoded();
    wish.payer = payer.map(|payer| person(payer).address);
    Wish { round, ..wish }
}

struct History {
    chain: TestChain,
    model: Model,
}

impl History {
    fn new() -> Self {
        let genesis = Genesis { parameters: [("signed_caller_percent".to_owned(), 100)].into(), ..genesis() };
        Self { chain: TestChain::from_genesis(&genesis), model: Model::default() }
    }

    fn entries(&self, n: usize, entries: &[(Signer, i8)]) -> Vec<SignatureEntry> {
        let signed = entries.iter().map(|(signer, round)| {
            let round = i64::from(self.model.round(n)) + i64::from(*round);
            asked(n, u32::try_from(round.max(0)).unwrap()).signed(key_of(*signer))
        });
        signed.collect()
    }

    /// Who sends: those with another key by now cannot send an ordinary transaction.
    fn sender(&self, by: u64) -> u64 {
        if self.model.account(by).key.is_some() { 0 } else { by }
    }

    fn send(&mut self, by: u64, input: Vec<u8>) -> Produced {
        let nonce = self.chain.nonce(person(by).address);
        self.send_all(vec![to_service(person(by), nonce, input)])
    }

    fn send_all(&mut self, transactions: Vec<UserTransaction>) -> Produced {
        let now = self.chain.input().timestamp;
        self.model.expire(now.0);
        let produced = self.chain.produce(transactions);
        assert!(produced.refused.is_empty(), "{:?}", produced.refused);
        produced
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Create { wish, by, entries } => {
                self.create(*wish, self.sender(*by), &normal(entries, self.model.round(*wish)));
            }
            Step::Sign { schedule, by, entries } => {
                if self.model.schedules.is_empty() {
                    return;
                }
                let at = schedule % self.model.schedules.len();
                let entries = normal(entries, self.model.round(self.model.schedules[at].wish));
                self.sign(at, self.sender(*by), &entries);
            }
            Step::Delete { schedule, by } if !self.model.schedules.is_empty() => {
                self.delete(schedule % self.model.schedules.len(), self.sender(*by));
            }
            Step::Delete { .. } => {}
            Step::Wait { ms } => {
                let input = self.chain.input_at(TimestampMs(self.chain.head.timestamp.0 + ms));
                self.model.expire(input.timestamp.0);
                self.chain.produce_with(&input, vec![]);
            }
            Step::Rotate { who, to } => self.rotate(*who, *to),
        }
        self.compare();
    }

    fn create(&mut self, n: usize, by: u64, entries: &[(Signer, i8)]) {
        let signed = self.entries(n, entries);
        let produced = self.send(by, asked(n, 0).create(signed));
        let receipt = produced.receipt(0);
        let live = self.model.schedules.iter().position(|known| known.wish == n && known.ended.is_none());
        let (expected, executes) = match live {
            Some(at) => self.model.sign(at, by, entries, true),
            None => {
                let expires = self.chain.head.timestamp.0 + LIFE_MS;
                let round = self.model.round(n);
                let id = ScheduleId(0);
                self.model.schedules.push(Schedule {
                    id,
                    wish: n,
                    creator: by,
                    round,
                    signed: vec![],
                    expires,
                    ended: None,
                });
                let at = self.model.schedules.len() - 1;
                let answered = self.model.sign(at, by, entries, true);
                if answered.0 == 22 {
                    self.model.schedules[at].id = created(receipt);
                } else {
                    self.model.schedules.pop();
                }
                answered
            }
        };
        assert_eq!((code(receipt), run_codes(&produced).len()), (expected, usize::from(executes)));
    }

    fn sign(&mut self, at: usize, by: u64, entries: &[(Signer, i8)]) {
        let Schedule { id, wish, .. } = self.model.schedules[at];
        let signed = self.entries(wish, entries);
        let produced = self.send(by, signing(id, signed));
        let (expected, executes) = match self.model.schedules[at].ended {
            Some(ended) => (ended, false),
            None => self.model.sign(at, by, entries, false),
        };
        assert_eq!(
            (code(produced.receipt(0)), run_codes(&produced).len()),
            (expected, usize::from(executes))
        );
    }

    fn delete(&mut self, at: usize, by: u64) {
        let id = self.model.schedules[at].id;
        let produced = self.send(by, deleting(id, vec![]));
        let schedule = &mut self.model.schedules[at];
        let expected = match schedule.ended {
            Some(ended) => ended,
            None if by != ADMIN => 7,
            None => {
                schedule.ended = Some(212);
                *self.model.rounds.entry(schedule.wish).or_default() += 1;
                22
            }
        };
        assert_eq!(code(produced.receipt(0)), expected);
    }

    fn rotate(&mut self, who: u64, to: usize) {
        let Account { key, rotation } = self.model.account(who);
        let next = choices(who)[to].clone();
        let nonce = self.chain.nonce(person(who).address);
        let ordinary = rotating(
            person(who),
            nonce,
            &encoded(who, next.as_ref()),
            rotation + 1,
            &satisfying(who, next.as_ref()),
        );
        let transaction = match &key {
            None => ordinary,
            Some(_) => {
                let calls = vec![native_call(ACCOUNTS, 0, ordinary.input().clone())];
                let native =
                    NativeTransaction { gas_limit: 2_000_000, ..native(person(who).address, nonce, calls) };
                sign_native(native, &satisfying(who, key.as_ref()))
            }
        };
        let produced = self.send_all(vec![transaction]);
        assert!(produced.receipt(0).outcome.is_success());
        self.model.accounts.insert(who, Account { key: next, rotation: rotation + 1 });
    }

    /// The chain says what the model says.
    fn compare(&self) {
        for who in [1, 2, 5, 7] {
            let address: Address = person(who).address;
            let counted: u64 = runs::count_of(&self.chain.state, address).to();
            assert_eq!(counted, self.model.executed.get(&who).copied().unwrap_or(0), "calls of {who}");
        }
        for n in 0..4 {
            assert_eq!(self.chain.round_of(&asked(n, 0)), self.model.round(n), "round of wish {n}");
        }
        for schedule in self.model.schedules.iter().filter(|schedule| schedule.ended.is_none()) {
            // Asked in the block after this one, in which it may have expired.
            let (_, info) = self.chain.info(schedule.id);
            assert_eq!(info.signers.len(), schedule.signed.len(), "signatures of {}", schedule.id);
        }
    }
}

/// There is no round before the first.
fn normal(entries: &[(Signer, i8)], round: u32) -> Vec<(Signer, i8)> {
    entries.iter().map(|(signer, by)| (*signer, if round == 0 { (*by).max(0) } else { *by })).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn hedera_07_random_histories_execute_exactly_when_satisfied(steps in vec(any_step(), 1..40)) {
        let mut history = History::new();
        for step in &steps {
            history.step(step);
        }
        history.chain.replay();
    }
}
