//! The cron registry from a test: jobs, blocks at a time, what ran.

use super::{Person, Produced, TestChain, contracts::COUNTER, eip1559, person, sign};
use alloy_primitives::{Address, Bytes, Log, TxKind, U256};
use alloy_sol_types::{SolCall, SolEvent, SolInterface};
use almanac_primitives::{
    GasPrice, Outcome, Receipt, ScheduleId, TimestampMs, UserTransaction, addresses::CRON_REGISTRY,
    run::RUN_TYPE,
};

alloy_sol_types::sol!(
    #![sol(all_derives = true)]
    "../../contracts/ICronRegistry.sol"
);
alloy_sol_types::sol!("../../contracts/ILedger.sol");
#[allow(unused_imports, reason = "each test file uses a part of it")]
pub use ICronRegistry::{
    ICronRegistryErrors as CronError, JobCancelled, JobExecuted, JobExhausted, JobScheduled, JobToppedUp,
};
#[allow(unused_imports, reason = "each test file uses a part of it")]
pub use ILedger::ScheduleRefunded;

pub const MINUTE: u64 = 60;
pub const HOUR: u64 = 60 * MINUTE;

/// Gas of a run of the counter, with room.
pub const RUN_GAS: u64 = 100_000;

/// What is asked of the registry.
#[derive(Clone, Debug)]
pub struct JobOrder {
    pub target: Address,
    pub data: Bytes,
    pub next_run_at: U256,
    pub interval: U256,
    pub max_runs: U256,
    pub gas_limit: U256,
    pub refund_to: Option<Address>,
    pub options: U256,
    pub value: U256,
}

/// An order that passes: the counter, once, an hour from `chain`'s next block, with money for ten runs.
pub fn order(chain: &TestChain) -> JobOrder {
    JobOrder {
        target: COUNTER,
        data: Bytes::from_static(&[1, 2, 3, 4]),
        next_run_at: U256::from(chain.next_seconds() + HOUR),
        interval: U256::ZERO,
        max_runs: U256::ZERO,
        gas_limit: U256::from(RUN_GAS),
        refund_to: None,
        options: U256::ZERO,
        value: U256::from(10 * RUN_GAS) * U256::from(chain.next_base_fee().0),
    }
}

impl JobOrder {
    pub fn every(mut self, seconds: u64) -> Self {
        self.interval = U256::from(seconds);
        self
    }

    pub fn runs(mut self, runs: u64) -> Self {
        self.max_runs = U256::from(runs);
        self
    }

    pub fn at(mut self, seconds: u64) -> Self {
        self.next_run_at = U256::from(seconds);
        self
    }

    pub fn calling(mut self, target: Address, data: impl Into<Bytes>) -> Self {
        (self.target, self.data) = (target, data.into());
        self
    }

    pub fn gas(mut self, gas: u64) -> Self {
        self.gas_limit = U256::from(gas);
        self
    }

    pub fn with_value(mut self, value: impl TryInto<U256, Error: std::fmt::Debug>) -> Self {
        self.value = value.try_into().unwrap();
        self
    }

    pub fn with_options(mut self, options: u64) -> Self {
        self.options = U256::from(options);
        self
    }

    pub fn refunding(mut self, to: Address) -> Self {
        self.refund_to = Some(to);
        self
    }

    /// Calldata for the registry.
    pub fn calldata(&self) -> Bytes {
        let Self { target, data, next_run_at, interval, max_runs, gas_limit, .. } = self.clone();
        match self.refund_to {
            None if self.options.is_zero() => ICronRegistry::scheduleCalldataCall {
                target,
                data,
                nextRunAt: next_run_at,
                intervalSec: interval,
                maxRuns: max_runs,
                gasLimit: gas_limit,
            }
            .abi_encode(),
            refund_to => ICronRegistry::scheduleWithCall {
                target,
                data,
                nextRunAt: next_run_at,
                intervalSec: interval,
                maxRuns: max_runs,
                gasLimit: gas_limit,
                refundTo: refund_to.unwrap_or(person(0).address),
                options: self.options,
            }
            .abi_encode(),
        }
        .into()
    }
}

/// A call with value and much gas.
pub fn paid_call(
    from: Person,
    nonce: u64,
    to: Address,
    value: U256,
    input: impl Into<Bytes>,
) -> UserTransaction {
    let mut tx = eip1559(nonce, TxKind::Call(to), 0, input, 10_000_000);
    tx.value = value;
    sign(tx, from.secret)
}

pub fn cancel_data(id: U256) -> Bytes {
    ICronRegistry::cancelCall { id }.abi_encode().into()
}

pub fn top_up_data(id: U256) -> Bytes {
    ICronRegistry::topUpCall { id }.abi_encode().into()
}

impl TestChain {
    /// The whole seconds of the next block, if it comes a second after the last.
    pub fn next_seconds(&self) -> u64 {
        self.input().timestamp.seconds()
    }

    /// The base fee of the next block.
    pub fn next_base_fee(&self) -> GasPrice {
        let environment = almanac_exec::Environment::derive(&self.input(), &self.state).unwrap();
        environment.base_fee
    }

    /// One transaction in a block of its own.
    pub fn send(&mut self, from: Person, to: Address, value: U256, input: impl Into<Bytes>) -> Receipt {
        let tx = paid_call(from, self.nonce(from.address), to, value, input);
        let produced = self.produce(vec![tx]);
        assert!(produced.refused.is_empty(), "{:?}", produced.refused);
        produced.receipt(0).clone()
    }

    /// Asks the registry, and answers with the job's id or the error.
    pub fn schedule(&mut self, from: Person, order: &JobOrder) -> Result<U256, CronError> {
        let receipt = self.send(from, CRON_REGISTRY, order.value, order.calldata());
        scheduled(&receipt)
    }

    pub fn cancel(&mut self, from: Person, id: U256) -> Result<U256, CronError> {
        let receipt = self.send(from, CRON_REGISTRY, U256::ZERO, cancel_data(id));
        refused(&receipt)?;
        Ok(only::<JobCancelled>(&receipt.logs).refunded)
    }

    pub fn top_up(&mut self, from: Person, id: U256, value: U256) -> Result<U256, CronError> {
        let receipt = self.send(from, CRON_REGISTRY, value, top_up_data(id));
        refused(&receipt)?;
        Ok(only::<JobToppedUp>(&receipt.logs).totalEscrow)
    }

    pub fn job(&self, id: U256) -> ICronRegistry::Job {
        let result =
            self.call(person(9).address, CRON_REGISTRY, ICronRegistry::getJobCall { id }.abi_encode());
        assert!(result.outcome.is_success());
        ICronRegistry::getJobCall::abi_decode_returns(&result.output).unwrap()
    }

    /// An empty block at a Unix second.
    pub fn at(&mut self, seconds: u64) -> Produced {
        self.produce_with(&self.input_at(TimestampMs(seconds * 1_000)), vec![])
    }
}

pub fn id_of(id: U256) -> ScheduleId {
    ScheduleId(id.to())
}

/// The id of the job that a receipt tells of.
pub fn scheduled(receipt: &Receipt) -> Result<U256, CronError> {
    refused(receipt)?;
    Ok(only::<JobScheduled>(&receipt.logs).id)
}

/// The registry's error, where a call reverted.
pub fn refused(receipt: &Receipt) -> Result<(), CronError> {
    match &receipt.outcome {
        Outcome::Success => Ok(()),
        Outcome::Reverted(reason) => Err(CronError::abi_decode(reason).expect("an error of the registry")),
        Outcome::Halted(halt) => panic!("stopped: {halt:?}"),
    }
}

/// All events of one kind that the registry emitted.
pub fn events<E: SolEvent>(logs: &[Log]) -> Vec<E> {
    let ours = logs.iter().filter(|log| log.address == CRON_REGISTRY);
    ours.filter_map(|log| E::decode_raw_log(log.topics().iter().copied(), &log.data.data).ok()).collect()
}

/// The only event of one kind.
pub fn only<E: SolEvent>(logs: &[Log]) -> E {
    let mut found = events::<E>(logs);
    assert_eq!(found.len(), 1, "{} events of this kind", found.len());
    found.remove(0)
}

impl Produced {
    /// Receipts of the runs, in order.
    pub fn runs(&self) -> Vec<&Receipt> {
        self.output.receipts.iter().filter(|receipt| receipt.transaction_type == RUN_TYPE).collect()
    }

    /// Ids of the jobs that ran, in order.
    pub fn ran(&self) -> Vec<U256> {
        self.runs().iter().map(|run| U256::from(run.schedule_ref.unwrap().schedule.0)).collect()
    }

    /// Every log of the block.
    pub fn logs(&self) -> Vec<Log> {
        self.output.receipts.iter().flat_map(|receipt| receipt.logs.clone()).collect()
    }
}
