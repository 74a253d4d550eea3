//! Transactions that wait for signatures: made through one validator, signed through others, by a plan that has every end.
//!
//! A treasury's key is 2 of 3 parties, each with a client of its own. The same schedule is executed, made again and
//! deleted, and made a third time and executed; between, another one expires. Signatures of the round before are offered
//! whenever it is there again.

mod history;
mod party;

use crate::sim::{
    faults::{Faults, good},
    jobs::calls_of,
    liar::Lie,
    marks::{Mark, Marks},
    network::Network,
    opened::Store,
    run::run,
    seconds,
};
use alloy_primitives::{Bytes, U256};
use alloy_sol_types::{SolCall as _, SolValue as _};
use almanac_bft::Replica;
use almanac_primitives::{
    Chain, Receipt, UserTransaction,
    addresses::SCHEDULE_SERVICE,
    testing::{
        Person,
        contracts::COUNTER,
        native::{Key, threshold},
        person,
        signed::*,
    },
};
use almanac_state::ArchivedBlock;
use history::{Ended, History, Seen};
pub use party::Party;

/// Keys of the treasury that have to sign.
const NEEDED: usize = 2;

/// What becomes of the schedules, in order, and the round of each.
const PLAN: [(Ended, u32); 4] =
    [(Ended::Executed, 0), (Ended::Deleted, 1), (Ended::Expired, 0), (Ended::Executed, 2)];

/// Executions of the plan.
pub const EXECUTIONS: U256 = U256::from_limbs([2, 0, 0, 0]);

/// The answer to a signature of the round before.
const ROUND_PASSED: i64 = 10_001;

/// Whose account the scheduled call comes from.
pub fn treasury() -> Person {
    person(3_000)
}

/// Who makes and deletes the schedules: nobody whose signature is asked for.
pub fn creator() -> Person {
    person(3_001)
}

/// Who signs for a client.
fn party(client: usize) -> Person {
    person(4_000 + client as u64)
}

/// Who brings the signatures of a client's party to the chain.
pub fn relay(client: usize) -> Person {
    person(5_000 + client as u64)
}

/// Who takes part.
pub struct Group {
    chain: Chain,
    /// The client that makes the schedules.
    maker: usize,
    /// The clients that sign, the maker's among them.
    members: [usize; 3],
}

impl Group {
    /// Three of a network's clients. The maker's validator does not lie: one that does hardly gets anything in.
    pub fn of(network: &Network) -> Self {
        let clients: Vec<_> = network.participants().collect();
        let honest: Vec<_> =
            (0..clients.len()).filter(|at| network.lies[clients[*at]] == Lie::None).collect();
        let first = honest[usize::try_from(network.weather.seed).unwrap() % honest.len()];
        let members = [0, 1, 2].map(|next| clients[(first + next) % clients.len()]);
        Self { chain: network.chain(), maker: members[0], members }
    }

    /// The key of the treasury.
    fn key(&self) -> Bytes {
        let leaves = self.members.map(|client| Key::from(party(client)).encoded());
        threshold(u8::try_from(NEEDED).unwrap(), &leaves)
    }

    /// The schedule that is made three times, in a round.
    fn wish(&self, round: u32) -> Wish {
        let wish = Wish::new(vec![service_call(treasury().address, COUNTER)]);
        Wish { admin_key: Key::from(creator()).encoded(), round, ..wish }
    }

    /// The one that nobody signs.
    fn short(&self, execution_time: u64) -> Wish {
        let mut wish = self.wish(0);
        (wish.body.nonce, wish.body.executionTime) = (1, execution_time);
        wish
    }

    /// The signature of a client's party.
    fn signature(&self, client: usize, round: u32) -> SignatureEntry {
        self.wish(round).signed_on(&self.chain, party(client))
    }
}

/// How often the treasury's call was made. `None` where the chain moves on while it is read.
pub async fn executed(replica: &Replica<Store>) -> Option<U256> {
    calls_of(replica, treasury().address).await
}

/// Whether a receipt is that of a run that waited for signatures.
pub fn is_run(receipt: &Receipt) -> bool {
    receipt.schedule_ref.is_some() && receipt.logs.iter().any(|log| log.address == SCHEDULE_SERVICE)
}

/// `executed_once_when_signed`: each schedule has one end, that of the plan; what was executed ran directly after the
/// signature that completed it, and every signature of it was made for its round by a party.
pub fn check(chain: &[ArchivedBlock], group: &Group, marks: &Marks) -> Result<(), String> {
    let mut history = History::default();
    for archived in chain {
        history.add(archived)?;
    }
    let found: Vec<_> =
        history.seen.iter().filter_map(|seen| Some((seen.ended.as_ref()?.how, seen.round))).collect();
    if found != PLAN || history.seen.len() != PLAN.len() {
        return Err(format!("{} schedules, which ended {found:?}", history.seen.len()));
    }
    for seen in &history.seen {
        check_signatures(chain, group, seen)?;
        check_expiry(chain, seen)?;
    }
    let receipts = chain.iter().flat_map(|archived| &archived.receipts);
    receipts.filter(|receipt| code(receipt) == ROUND_PASSED).for_each(|_| marks.add(Mark::SpentSignature));
    Ok(())
}

fn check_signatures(chain: &[ArchivedBlock], group: &Group, seen: &Seen) -> Result<(), String> {
    let expected: Vec<_> = group.members.iter().map(|client| group.signature(*client, seen.round)).collect();
    for (key, brought_by) in &seen.signed {
        let call = signScheduleCall::abi_decode(sent(chain, seen, brought_by)?.input());
        let given = call.map_err(|error| error.to_string())?.sigMap;
        if !given.iter().any(|entry| entry.key == *key && expected.contains(entry)) {
            return Err(format!("schedule {} counts {key} by {given:?} in round {}", seen.id, seen.round));
        }
    }
    let is_executed = seen.ended.as_ref().is_some_and(|ended| ended.how == Ended::Executed);
    if is_executed && seen.signed.len() < NEEDED {
        return Err(format!("schedule {} was executed with {:?}", seen.id, seen.signed));
    }
    Ok(())
}

fn check_expiry(chain: &[ArchivedBlock], seen: &Seen) -> Result<(), String> {
    let Some(ended) = seen.ended.as_ref().filter(|ended| ended.how == Ended::Expired) else { return Ok(()) };
    let call = createScheduleCall::abi_decode(sent(chain, seen, &seen.created_by)?.input());
    let body = Body::abi_decode(&call.map_err(|error| error.to_string())?.transactionBody);
    let due = body.map_err(|error| error.to_string())?.executionTime;
    if ended.at.seconds() < due {
        return Err(format!("schedule {} expires at {due} s and ended at {}", seen.id, ended.at));
    }
    Ok(())
}

/// The transaction of a hash.
fn sent<'c>(
    chain: &'c [ArchivedBlock],
    seen: &Seen,
    hash: &alloy_primitives::TxHash,
) -> Result<&'c UserTransaction, String> {
    let mut all = chain.iter().flat_map(|archived| &archived.block.transactions);
    all.find(|one| one.hash() == *hash)
        .ok_or_else(|| format!("no transaction {hash} of schedule {}", seen.id))
}

/// HEDERA-07, -11, -17: through a restart of all validators at once, and on a node that copies the state.
#[test]
fn hedera_07_what_is_made_through_one_and_signed_through_others_executes_once_everywhere() {
    let network = Network { has_signed: true, ..Network::new(4).with_follower() };
    let faults = Faults::default().crash(&network, &[0, 1, 2, 3], seconds(2)..seconds(3));
    let outcome = run(&network, 41, good(), faults, 30);
    assert_eq!((outcome.crashes, outcome.marks.count(Mark::Copied)), (4, 1));
    assert!(outcome.marks.count(Mark::SpentSignature) >= 3, "signatures of the round before are refused");
}
