//! Transactions that wait for signatures, through whole blocks with root and durable commit: `make bench-signatures`.
//!
//! Processor time of all threads is compared, which other processes disturb less than the clock. What is compared takes
//! turns.

mod expiry;
mod readiness;

use crate::{
    chain::{Chain, genesis as rich},
    median,
    orders::{Kind, TARGET},
    processor_time,
};
use alloy_primitives::{Address, U256};
use alloy_sol_types::SolEvent;
use almanac_exec::BlockOutput;
use almanac_primitives::{
    Chain as ChainName, Genesis, RecoveredTransaction, ScheduleId, TimestampMs, UserTransaction, Wei,
    addresses::SCHEDULE_SERVICE,
    genesis::Allocation,
    keys::{Leaf, recover_leaf},
    params::{SIGNED_CALLER_PERCENT, SIGNED_CREATES_PER_SECOND, SIGNED_SIGNS_PER_SECOND},
    testing::{call, person, signed::*},
};
use commonware_runtime::{Runner as _, tokio};
use std::{hint::black_box, path::Path, sync::Arc, time::Duration};

/// Transactions of a block: less than half of what a second's throttle takes, so that the price in gas does not rise.
const COUNT: u32 = 200;
/// Blocks of each kind.
const ROUNDS: u32 = 9;
/// Time between two blocks: the throttle is full again.
const STEP_MS: u64 = 1_000;
/// More than a creation or 32 signatures take.
const GAS: u64 = 2_000_000;

/// Measures in a directory of its own.
pub(crate) fn measure(directory: &Path) {
    let start =
        |name: &str| tokio::Runner::new(tokio::Config::new().with_storage_directory(directory.join(name)));
    start("rates").start(rates);
    start("readiness").start(readiness::measure);
    start("expiry").start(expiry::measure);
}

/// The largest rates that governance may set, for one caller.
fn genesis(accounts: impl Iterator<Item = Address>) -> Genesis {
    let mut genesis = rich(Kind::Signed);
    for parameter in [SIGNED_CREATES_PER_SECOND, SIGNED_SIGNS_PER_SECOND, SIGNED_CALLER_PERCENT] {
        genesis.parameters.insert(parameter.name.to_owned(), parameter.max);
    }
    let funded = Allocation { balance: Wei(U256::ONE << 120), ..Default::default() };
    genesis.allocations.extend(accounts.map(|account| (account, funded.clone())));
    genesis
}

/// Creations and signatures, a transaction with one signature each, against verifying the same signatures.
async fn rates(context: tokio::Context) {
    let mut chain = Chain::open_with(&context, "rates", Kind::Signed, &genesis(std::iter::empty())).await;
    let mut taken: [Vec<Duration>; 4] = Default::default();
    for round in 0..ROUNDS {
        let wishes: Vec<_> = (0..COUNT).map(|n| wish(&[2, 3, 4], round * COUNT + n)).collect();
        let name = chain.name();
        let bring = |wish: &Wish, signer| Brought::new(&name, wish, [signer]);
        let brought: Vec<_> = wishes.iter().map(|wish| bring(wish, 2)).collect();
        let inputs = brought.iter().map(|brought| brought.wish.create(brought.entries.clone())).collect();
        let (created, output) = chain.serve(inputs, &brought).await;
        let ids = ids(&output);
        let brought: Vec<_> = wishes.iter().map(|wish| bring(wish, 3)).collect();
        let signed = ids.iter().zip(&brought).map(|(id, brought)| signing(*id, brought.entries.clone()));
        let (signed, output) = chain.serve(signed.collect(), &brought).await;
        assert_eq!(count::<ScheduleSigned>(&output), brought.len());
        for (taken, new) in taken.iter_mut().zip([created.chain, created.bare, signed.chain, signed.bare]) {
            taken.push(new);
        }
    }
    let [created, created_bare, signed, signed_bare] = taken.map(median);
    for (what, chain, bare) in [("created", created, created_bare), ("signed", signed, signed_bare)] {
        let rate = f64::from(COUNT) / chain.as_secs_f64();
        println!(
            "{what}, a transaction with one signature each: {rate:.0}/s; {:.2} of a loop that only verifies both \
             signatures",
            bare.as_secs_f64() / chain.as_secs_f64()
        );
    }
}

/// Processor time of a block, and of a loop that verifies the same signatures and does nothing else.
struct Taken {
    chain: Duration,
    bare: Duration,
}

/// Signatures that a transaction brings.
struct Brought {
    wish: Wish,
    entries: Vec<SignatureEntry>,
}

impl Brought {
    fn new(chain: &ChainName, wish: &Wish, signers: impl IntoIterator<Item = u64>) -> Self {
        let entries = signers.into_iter().map(|signer| wish.signed_on(chain, person(signer))).collect();
        Self { wish: wish.clone(), entries }
    }

    /// Checks them as a program would that has nothing else to do.
    fn verify(&self, chain: &ChainName) {
        for entry in &self.entries {
            let digest = self.wish.signing_hash(chain);
            let leaf = Leaf::decode(&entry.key).expect("a leaf");
            assert_eq!(black_box(recover_leaf(digest, &entry.signature)), Ok(leaf));
        }
    }
}

impl Chain {
    /// A block with these calls of the service, by one caller, from signed transactions to durable.
    async fn serve(&mut self, inputs: Vec<Vec<u8>>, brought: &[Brought]) -> (Taken, Arc<BlockOutput>) {
        let name = self.name();
        let to_service = |input| call(person(0), self.next_nonce(0), SCHEDULE_SERVICE, input, GAS);
        let signed: Vec<UserTransaction> = inputs.into_iter().map(to_service).collect();
        let recover = |one: &UserTransaction| RecoveredTransaction::recover(one.clone(), &name).unwrap();
        let begin = processor_time();
        let candidates: Vec<_> = signed.iter().map(recover).collect();
        let recovered = processor_time() - begin;
        brought.iter().for_each(|brought| brought.verify(&name));
        let verified = processor_time() - begin;
        let at = TimestampMs(self.now_ms() + STEP_MS);
        let output = self.commit(at, candidates).await;
        (Taken { chain: recovered + self.processor, bare: verified }, output)
    }
}

/// A schedule that waits for these people.
fn wish(from: &[u64], nonce: u32) -> Wish {
    let calls = from.iter().map(|from| service_call(person(*from).address, TARGET));
    let mut wish = Wish::new(calls.collect());
    wish.body.nonce = nonce;
    wish
}

/// What a block created.
fn ids(output: &BlockOutput) -> Vec<ScheduleId> {
    let logs = output.receipts.iter().flat_map(|receipt| &receipt.logs);
    let created = logs.filter_map(|log| ScheduleCreated::decode_log(log).ok());
    created.map(|log| ScheduleId(log.id)).collect()
}

/// Logs of a kind.
fn count<E: SolEvent>(output: &BlockOutput) -> usize {
    let logs = output.receipts.iter().flat_map(|receipt| &receipt.logs);
    logs.filter(|log| E::decode_log(log).is_ok()).count()
}
