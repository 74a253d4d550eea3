//! The check whether a schedule is ready, by the number of leaves of a key.

use super::{Brought, Duration, GAS, TARGET, TimestampMs, count, genesis, ids};
use crate::{Chain, median, orders::Kind};
use alloy_primitives::Address;
use almanac_primitives::{
    RecoveredTransaction, ScheduleId,
    addresses::{ACCOUNTS, SCHEDULE_SERVICE},
    testing::{
        Person, call,
        native::{Key, rotation_on, threshold},
        person,
        signed::*,
    },
};
use commonware_runtime::tokio;

const LEAVES: [u8; 6] = [1, 2, 4, 8, 16, 32];
/// Schedules of a block: as many signatures as fit half of its gas, and enough for a clock that ticks every 4 ms.
fn schedules(leaves: u8) -> u32 {
    (1_600 / u32::from(leaves)).min(200)
}

const ROUNDS: u32 = 9;
/// The first key of the trees; the n-th is so much further.
const FIRST: u64 = 1_000;
/// Asks for nothing and signs nothing.
const STRANGER: u64 = 1;
/// Pays, and never signs: so nothing runs.
const PAYER: u64 = 9;

/// The account whose key has so many leaves.
fn account(leaves: u8) -> Person {
    person(500 + u64::from(leaves))
}

fn signers(leaves: u8) -> impl Iterator<Item = u64> {
    (0..u64::from(leaves)).map(|n| FIRST + n)
}

pub(super) async fn measure(context: tokio::Context) {
    let genesis = genesis(LEAVES.into_iter().map(|leaves| account(leaves).address));
    let mut chain = Chain::open_with(&context, "readiness", Kind::Signed, &genesis).await;
    for leaves in LEAVES {
        chain.rotate(leaves).await;
    }
    let mut taken: Vec<[Vec<Duration>; 3]> = LEAVES.map(|_| Default::default()).to_vec();
    for round in 0..ROUNDS {
        for (leaves, taken) in LEAVES.into_iter().zip(&mut taken) {
            let [all, bare, check] = chain.sign_and_check(leaves, round).await;
            taken[0].push(all);
            taken[1].push(bare);
            taken[2].push(check);
        }
    }
    let mut first = None;
    for (leaves, taken) in LEAVES.into_iter().zip(taken) {
        let [chain, bare, check] =
            taken.map(median).map(|taken| taken.as_secs_f64() * 1e6 / f64::from(schedules(leaves)));
        let least = *first.get_or_insert(check);
        println!(
            "{leaves} leaves: all signatures in one transaction {chain:.0} us, verified in a bare loop {bare:.0} us: \
             {:.2} of its rate; the check alone, with all of them recorded: {check:.0} us, {:.1} us more than with one",
            bare / chain,
            check - least,
        );
    }
}

impl Chain {
    /// Gives an account a key of which every leaf has to sign.
    async fn rotate(&mut self, leaves: u8) {
        let (who, keys) =
            (account(leaves), signers(leaves).map(|n| Key::from(person(n))).collect::<Vec<_>>());
        let children: Vec<_> = keys.iter().map(Key::encoded).collect();
        let key = if leaves == 1 { children[0].clone() } else { threshold(leaves, &children) };
        let input = rotation_on(&self.name(), who.address, &key, 1, &keys);
        let transaction = call(who, 0, ACCOUNTS, input, 5_000_000);
        let recovered = RecoveredTransaction::recover(transaction, &self.name()).unwrap();
        self.all_in(TimestampMs(self.now_ms() + 1), vec![recovered]).await;
    }

    /// Processor time of signing with all leaves, of verifying the same in a loop, and of the check that a call without
    /// anything new starts.
    async fn sign_and_check(&mut self, leaves: u8, round: u32) -> [Duration; 3] {
        let wishes: Vec<_> = (0..schedules(leaves))
            .map(|n| wish(account(leaves).address, round * schedules(leaves) + n))
            .collect();
        let created = wishes.iter().map(|wish| wish.create(vec![])).collect();
        let (_, output) = self.serve(created, &[]).await;
        let ids = ids(&output);
        let name = self.name();
        let brought: Vec<_> = wishes.iter().map(|wish| Brought::new(&name, wish, signers(leaves))).collect();
        let inputs = ids.iter().zip(&brought).map(|(id, brought)| signing(*id, brought.entries.clone()));
        let (signed, output) = self.serve(inputs.collect(), &brought).await;
        assert_eq!(count::<ScheduleSigned>(&output), brought.len() * usize::from(leaves));
        let check = self.check(&ids).await;
        [signed.chain, signed.bare, check]
    }

    /// Processor time of a block in which a stranger signs without anything new, which is refused after the check.
    async fn check(&mut self, ids: &[ScheduleId]) -> Duration {
        let name = self.name();
        let transactions = ids.iter().map(|id| {
            let nonce = self.next_nonce(1);
            let sent = call(person(STRANGER), nonce, SCHEDULE_SERVICE, signing(*id, vec![]), GAS);
            RecoveredTransaction::recover(sent, &name).unwrap()
        });
        let transactions: Vec<_> = transactions.collect();
        let output = self.commit(TimestampMs(self.now_ms() + super::STEP_MS), transactions).await;
        let refused = output.receipts.iter().filter(|receipt| code(receipt) == 205).count();
        assert_eq!(refused, ids.len(), "nothing is new");
        self.processor
    }
}

/// One call of an account, for which somebody else pays.
fn wish(from: Address, nonce: u32) -> Wish {
    let mut wish = Wish::new(vec![service_call(from, TARGET)]);
    wish.body.nonce = nonce;
    Wish { payer: Some(person(PAYER).address), ..wish }
}
