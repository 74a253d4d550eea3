//! Jobs on forks: each fork has its own calendar, and what one of them schedules is nothing to the others.

use alloy_primitives::{Bytes, TxKind, U256};
use alloy_sol_types::SolCall as _;
use almanac_consensus::{Application, Deadline, MadeBlock, Proposal, Tip};
use almanac_primitives::{
    ConsensusContext, TimestampMs, UserTransaction,
    addresses::CRON_REGISTRY,
    testing::{contracts::COUNTER, *},
};
use almanac_schedule::CalendarAgenda;
use almanac_state::{QmdbBatch, QmdbConfig, QmdbStore};
use commonware_runtime::{
    Runner as _,
    deterministic::{Context, Runner},
};
use std::sync::Arc;

alloy_sol_types::sol!("../../contracts/ICronRegistry.sol");

/// When the jobs are due, in seconds after the genesis.
const DUE_SECONDS: u64 = 5;

/// A job that runs once.
fn job(owner: Person) -> UserTransaction {
    let order = ICronRegistry::scheduleCalldataCall {
        target: COUNTER,
        data: Bytes::from_static(&[1, 2, 3, 4]),
        nextRunAt: U256::from(START.seconds() + DUE_SECONDS),
        intervalSec: U256::ZERO,
        maxRuns: U256::from(1),
        gasLimit: U256::from(100_000),
    };
    let mut tx = eip1559(0, TxKind::Call(CRON_REGISTRY), 0, order.abi_encode(), 500_000);
    tx.value = U256::from(10u64.pow(15));
    sign(tx, owner.secret)
}

type Chain = Application<QmdbStore<Context>>;
type State = QmdbBatch<Context>;

async fn block(
    chain: &Chain,
    parent: &Tip<State>,
    seconds: u64,
    jobs: Vec<UserTransaction>,
) -> MadeBlock<State> {
    let proposal = Proposal {
        timestamp: TimestampMs(START.0 + seconds * 1_000),
        fee_recipient: FEE_RECIPIENT,
        consensus: ConsensusContext::default(),
        candidates: jobs.into_iter().map(recovered).collect(),
        more: almanac_consensus::More::NONE,
        deadline: Deadline::NEVER,
    };
    let made = chain.propose(parent, proposal).await.unwrap();
    assert!(made.refused.is_empty());
    made
}

fn runs(made: &MadeBlock<State>) -> usize {
    made.output.receipts.iter().filter(|receipt| receipt.schedule_ref.is_some()).count()
}

#[test]
fn what_a_fork_schedules_runs_on_that_fork_whichever_is_abandoned() {
    Runner::default().start(async |context| {
        let genesis = genesis();
        let config = QmdbConfig::new("node");
        let store = QmdbStore::open(context, &config, &genesis.state().unwrap()).await.unwrap();
        let (chain, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
        // Three forks: one job, two jobs, none. Nothing is final yet.
        let one = block(&chain, &tip, 1, vec![job(person(0))]).await;
        let two = block(&chain, &tip, 1, vec![job(person(0)), job(person(1))]).await;
        let none = block(&chain, &tip, 1, vec![]).await;
        for (fork, expected) in [(&one, 1), (&two, 2), (&none, 0)] {
            let early = block(&chain, &fork.tip, DUE_SECONDS - 1, vec![]).await;
            assert_eq!(runs(&early), 0);
            let due = block(&chain, &early.tip, DUE_SECONDS, vec![]).await;
            assert_eq!(runs(&due), expected);
            let after = block(&chain, &due.tip, DUE_SECONDS + 1, vec![]).await;
            assert_eq!(runs(&after), 0, "each runs once");
        }
        // The fork with two becomes final, after the others were executed past their runs.
        chain.commit(&two).await.unwrap();
        let due = block(&chain, &two.tip, DUE_SECONDS, vec![]).await;
        assert_eq!(runs(&due), 2);
        chain.commit(&due).await.unwrap();
        assert_eq!(runs(&block(&chain, &due.tip, DUE_SECONDS + 1, vec![]).await), 0);
    });
}
