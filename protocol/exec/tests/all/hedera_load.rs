//! The schedule service with much to do: many schedules that expire, and floods of creations and signatures (HEDERA-17,
//! -18). `make bench-signatures` measures the time that 180,000 take.

use crate::support::{contracts::COUNTER, signed::*, *};
use alloy_sol_types::SolEvent as _;
use almanac_exec::{BlockBody, execute};
use almanac_primitives::{
    Genesis, ScheduleId, TimestampMs, UserTransaction,
    addresses::SCHEDULE_SERVICE,
    params::{SIGNED_CREATES_PER_SECOND, SIGNED_EXPIRIES_MAX, SIGNED_SIGNS_PER_SECOND},
};

/// Schedules that a block expires at most, in these tests.
const EXPIRIES: u64 = SIGNED_EXPIRIES_MAX.min;
/// More than a creation takes, or a signature.
const GAS: u64 = 900_000;

fn chain_with(parameters: &[(&str, u64)]) -> TestChain {
    let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    TestChain::from_genesis(&Genesis { parameters, ..genesis() })
}

/// Waits for the seventh and the eighth person.
fn waiting(nonce: u64) -> Wish {
    let mut wish = Wish::new([7, 8].map(|from| service_call(person(from).address, COUNTER)).to_vec());
    wish.body.nonce = u32::try_from(nonce).unwrap();
    wish
}

/// Calls of a person, one after the other.
fn calls(chain: &TestChain, n: u64, inputs: impl IntoIterator<Item = Vec<u8>>) -> Vec<UserTransaction> {
    let nonce = chain.nonce(person(n).address);
    let sent = (nonce..).zip(inputs);
    sent.map(|(nonce, input)| call(person(n), nonce, SCHEDULE_SERVICE, input, GAS)).collect()
}

fn expired(output: &almanac_exec::BlockOutput) -> Vec<u64> {
    let logs = output.receipts.iter().flat_map(|receipt| &receipt.logs);
    logs.filter_map(|log| ScheduleExpired::decode_log(log).ok()).map(|log| log.id).collect()
}

/// Reads and writes of each block in which `pending` schedules expire that are all due at once.
fn work_of_expiry(pending: u64) -> Vec<[usize; 2]> {
    let mut chain = chain_with(&[
        ("signed_expiries_max", EXPIRIES),
        ("signed_caller_percent", 100),
        ("signed_creates_per_second", SIGNED_CREATES_PER_SECOND.max),
    ]);
    let mut ids = Vec::new();
    for first in (0..pending).step_by(20) {
        let inputs = (first..first + 20).map(|nonce| waiting(nonce).create(vec![]));
        let (input, sent) = (chain.input(), calls(&chain, 0, inputs));
        let produced = chain.produce_once(&input, sent);
        ids.extend((0..20).map(|n| created(produced.receipt(n)).0));
    }
    let (mut work, mut ended) = (Vec::new(), Vec::new());
    let mut at = chain.head.timestamp.0 + 1_800_000;
    while ended.len() < ids.len() {
        let input = chain.input_at(TimestampMs(at));
        let counting = Counting { state: &chain.state, reads: Default::default() };
        let output = execute(&counting, &*chain.agenda, &input, &mut BlockBody::new(vec![])).unwrap();
        work.push([counting.reads.into_inner(), output.diff.changes().len()]);
        let here = expired(&output);
        assert_eq!(here.len() as u64, EXPIRIES, "as many as a block may end");
        ended.extend(here);
        chain.produce_once(&input, vec![]);
        at += 1;
    }
    assert_eq!(ended, ids, "in the order of their creation, each once");
    let input = chain.input_at(TimestampMs(at));
    assert!(expired(&chain.produce_once(&input, vec![]).output).is_empty(), "and then none is left");
    work
}

/// HEDERA-17: all that are due end within the bound of each block, and a block does the same for its part whether few or
/// many are left.
#[test]
fn hedera_17_all_expire_within_the_bound_of_each_block() {
    let (few, many) = (work_of_expiry(20), work_of_expiry(300));
    assert_eq!((few.len(), many.len()), (2, 30), "blocks");
    for at in [0, 1] {
        let most = |work: &[[usize; 2]]| work.iter().map(|work| work[at]).max().unwrap();
        // Deeper trees have longer ways down, and a node of the calendar may go with each ten.
        assert!(most(&many) <= most(&few) + 12, "reads, then writes: {few:?} {many:?}");
    }
}

/// What the flood does and what the others try, in one block that comes a tenth of a second after the last.
fn block(chain: &mut TestChain, flood: Vec<UserTransaction>, others: Vec<UserTransaction>) -> Vec<i64> {
    let input = chain.input_at(TimestampMs(chain.head.timestamp.0 + 100));
    let (first, count) = (flood.len(), others.len());
    let produced = chain.produce_with(&input, [flood, others].concat());
    assert!(produced.refused.is_empty(), "{:?}", produced.refused);
    (first..first + count).map(|n| code(produced.receipt(n))).collect()
}

const RATE: u64 = 25;

/// Five persons have schedules to sign, as many as a second takes.
fn flooded_chain() -> (TestChain, Vec<ScheduleId>) {
    let mut chain =
        chain_with(&[(SIGNED_CREATES_PER_SECOND.name, RATE), (SIGNED_SIGNS_PER_SECOND.name, RATE)]);
    let mut ids = Vec::new();
    for n in 0..5 {
        let produced = chain.produce(calls(&chain, n, (0..5).map(|nth| waiting(n * 5 + nth).create(vec![]))));
        ids.extend((0..5).map(|nth| created(produced.receipt(nth))));
    }
    (chain, ids)
}

/// HEDERA-18: one that floods creations and signatures in every block keeps nobody from either, in the same block.
#[test]
fn hedera_18_a_flood_of_creations_and_signatures_lets_others_through_at_once() {
    let (mut chain, ids) = flooded_chain();
    for round in 0..4 {
        let creations = (0..6).map(|nth| waiting(1_000 + round * 10 + nth).create(vec![]));
        let signatures =
            ids.iter().enumerate().map(|(nth, id)| signing(*id, vec![waiting(nth as u64).signed(person(7))]));
        let flood =
            calls(&chain, 5, creations.chain(signatures.skip(usize::try_from(round).unwrap() * 5).take(6)));
        let wish = waiting(2_000 + round);
        let create = wish.create(vec![wish.signed(person(7))]);
        let id = ids[20 + usize::try_from(round).unwrap()];
        let sign = signing(id, vec![waiting(20 + round).signed(person(8))]);
        let others = [calls(&chain, 6, [create]), calls(&chain, 9, [sign])].concat();
        assert_eq!(block(&mut chain, flood, others), [22, 22], "block {round}");
    }
}

/// HEDERA-18: five that together take all that a second has cannot take what comes in meanwhile: their shares are used up,
/// so others wait for one block.
#[test]
fn hedera_18_a_flood_by_five_lets_others_through_in_the_next_block() {
    let (mut chain, ids) = flooded_chain();
    // To the start of a second.
    let input = chain.input_at(TimestampMs((chain.head.timestamp.seconds() + 5) * 1_000 - 100));
    chain.produce_with(&input, vec![]);
    let mut answers = Vec::new();
    for round in 0..2 {
        let flood = (0..5u64).flat_map(|n| {
            let creations = (0..5).map(move |nth| waiting(1_000 * (round + 1) + n * 5 + nth).create(vec![]));
            let own = (0..5).map(|nth| n * 5 + nth);
            let signatures = own
                .map(|nth| signing(ids[usize::try_from(nth).unwrap()], vec![waiting(nth).signed(person(7))]));
            calls(&chain, n, creations.chain(signatures).collect::<Vec<_>>())
        });
        let flood: Vec<_> = flood.collect();
        let wish = waiting(5_000);
        let others = [
            calls(&chain, 6, [wish.create(vec![])]),
            calls(&chain, 9, [signing(ids[0], vec![waiting(0).signed(person(8))])]),
        ];
        answers.push(block(&mut chain, flood, others.concat()));
    }
    assert_eq!(answers[0], [12, 12], "the second's worth is gone");
    assert_eq!(answers[1], [22, 22], "what came in since is for those who had none");
}
