//! The scheduled transactions of AIP-125 from a test: orders, blocks at a time, what ran and what was said.

use super::{
    Person, Produced, TestChain, contracts::COUNTER, cron::paid_call, genesis, person, runs::paying,
};
use alloy_primitives::{Address, B256, Bytes, Log, U256};
use alloy_sol_types::{SolCall, SolEvent, SolInterface};
use almanac_exec::BlockInput;
use almanac_primitives::{
    ConsensusContext, Genesis, Outcome, Receipt, ScheduleId, TimestampMs, UserTransaction,
    addresses::{PARAMETERS, SCHEDULED_TRANSACTIONS},
    params::Parameter,
};
use almanac_schedule::Record;

alloy_sol_types::sol!(
    #![sol(all_derives = true)]
    "../../contracts/IScheduledTransactions.sol"
);
use super::callbacks::IParameters;
#[allow(unused_imports, reason = "each test file uses a part of it")]
pub use IScheduledTransactions::{
    AllCancelledEvent, CancelledTxnCode, IScheduledTransactionsErrors as MarketError, ScheduleMapKey,
    ScheduledTransaction, Service, ShutdownEvent, Status, TransactionCancelledEvent,
    TransactionExecutedEvent, TransactionFailedEvent, TransactionScheduledEvent,
};

/// Who schedules, unless a test says otherwise.
pub fn sender() -> Person {
    person(0)
}

/// Who governs.
pub fn governor() -> Person {
    person(8)
}

/// One gwei.
pub const GWEI: u64 = 1_000_000_000;

/// A chain with scheduled transactions.
pub struct Market {
    pub chain: TestChain,
    /// Consecutive views without a block before each of the next blocks.
    pub failed_views: u64,
}

/// A call of the counter by its sender for 100,000 gas, at most 5 gwei each.
pub fn txn(at_ms: u64) -> ScheduledTransaction {
    ScheduledTransaction {
        senderAddr: sender().address,
        scheduledTimeMs: at_ms,
        maxGasAmount: 100_000,
        maxGasUnitPrice: 5 * GWEI,
        passSigner: true,
        to: COUNTER,
        value: U256::ZERO,
        data: Bytes::new(),
        expiryBlocks: 0,
    }
}

/// What a scheduled transaction needs.
pub fn deposit(txn: &ScheduledTransaction) -> U256 {
    U256::from(txn.maxGasAmount) * U256::from(txn.maxGasUnitPrice) + txn.value
}

impl Market {
    pub fn new() -> Self {
        Self::with_parameters(&[])
    }

    pub fn with_parameters(parameters: &[(&str, u64)]) -> Self {
        Self::from_genesis(genesis(), parameters)
    }

    pub fn from_genesis(genesis: Genesis, parameters: &[(&str, u64)]) -> Self {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let genesis = Genesis { parameters, governance: governor().address, ..genesis };
        Self { chain: TestChain::from_genesis(&genesis), failed_views: 0 }
    }

    /// The head's time.
    pub fn now(&self) -> u64 {
        self.chain.head.timestamp.0
    }

    /// The time of the next block, if it comes a second after the last.
    pub fn next(&self) -> u64 {
        self.chain.input().timestamp.0
    }

    pub fn insert(&mut self, txn: &ScheduledTransaction) -> Result<ScheduleMapKey, MarketError> {
        self.insert_with(sender(), txn, deposit(txn))
    }

    /// Inserts, and answers with the key that the log says.
    pub fn insert_with(
        &mut self,
        from: Person,
        txn: &ScheduledTransaction,
        value: U256,
    ) -> Result<ScheduleMapKey, MarketError> {
        let call = IScheduledTransactions::insertCall { txn: txn.clone() };
        let receipt = self.send(from, value, call);
        refused(&receipt)?;
        Ok(only::<TransactionScheduledEvent>(&receipt.logs).key)
    }

    /// Inserts many in one block, all from one sender, and answers with their keys in order.
    pub fn insert_all(&mut self, from: Person, txns: &[ScheduledTransaction]) -> Vec<ScheduleMapKey> {
        let mut keys = Vec::new();
        // As many as fit the gas of a block.
        for part in txns.chunks(90) {
            let nonce = self.chain.nonce(from.address);
            let calls = part.iter().zip(nonce..).map(|(txn, nonce)| self.insertion(from, nonce, txn));
            let produced = self.produce_in(1, calls.collect());
            assert!(produced.refused.is_empty(), "{:?}", produced.refused);
            let said = produced.logs();
            keys.extend(events::<TransactionScheduledEvent>(&said).into_iter().map(|said| said.key));
        }
        assert_eq!(keys.len(), txns.len());
        keys
    }

    /// A transaction that inserts.
    pub fn insertion(&self, from: Person, nonce: u64, txn: &ScheduledTransaction) -> UserTransaction {
        let call = IScheduledTransactions::insertCall { txn: txn.clone() }.abi_encode();
        let mut tx =
            super::eip1559(nonce, alloy_primitives::TxKind::Call(SCHEDULED_TRANSACTIONS), 0, call, 330_000);
        tx.value = deposit(txn);
        super::sign(tx, from.secret)
    }

    pub fn cancel(&mut self, from: Person, key: &ScheduleMapKey) -> Result<U256, MarketError> {
        let receipt = self.send(from, U256::ZERO, IScheduledTransactions::cancelCall { key: key.clone() });
        refused(&receipt)?;
        Ok(only::<TransactionCancelledEvent>(&receipt.logs).refunded)
    }

    pub fn cancel_all(&mut self, from: Person) -> Receipt {
        let receipt = self.send(from, U256::ZERO, IScheduledTransactions::cancelAllCall {});
        assert_eq!(receipt.outcome, Outcome::Success);
        receipt
    }

    pub fn claim(&mut self, from: Person, key: &ScheduleMapKey) -> Result<Receipt, MarketError> {
        let receipt = self.send(from, U256::ZERO, IScheduledTransactions::claimCall { key: key.clone() });
        refused(&receipt)?;
        Ok(receipt)
    }

    pub fn get(&self, key: &ScheduleMapKey) -> IScheduledTransactions::getReturn {
        self.read(IScheduledTransactions::getCall { key: key.clone() })
    }

    pub fn status(&self, key: &ScheduleMapKey) -> Status {
        self.get(key)._1
    }

    pub fn service(&self) -> Service {
        self.read(IScheduledTransactions::serviceCall {})
    }

    /// The id behind a key.
    pub fn id(&self, key: &ScheduleMapKey) -> ScheduleId {
        ScheduleId(self.get(key).id.to())
    }

    pub fn record(&self, key: &ScheduleMapKey) -> Record {
        Record::read(&self.chain.state, self.id(key)).unwrap().unwrap()
    }

    /// What a view answers.
    #[expect(clippy::needless_pass_by_value, reason = "a call is written where it is sent")]
    pub fn read<C: SolCall>(&self, call: C) -> C::Return {
        let result = self.chain.call(person(9).address, SCHEDULED_TRANSACTIONS, call.abi_encode());
        assert_eq!(result.outcome, Outcome::Success);
        C::abi_decode_returns(&result.output).unwrap()
    }

    #[expect(clippy::needless_pass_by_value, reason = "a call is written where it is sent")]
    pub fn send(&mut self, from: Person, value: U256, call: impl SolCall) -> Receipt {
        self.chain.send(from, SCHEDULED_TRANSACTIONS, value, call.abi_encode())
    }

    /// Sets a parameter; it is in force in the block after. The transaction comes a millisecond after the last block.
    pub fn govern(&mut self, parameter: Parameter, value: u64) -> Produced {
        let call = IParameters::setCall { name: parameter.name_word(), value: U256::from(value) };
        let nonce = self.chain.nonce(governor().address);
        let produced =
            self.produce_in(1, vec![paid_call(governor(), nonce, PARAMETERS, U256::ZERO, call.abi_encode())]);
        assert_eq!(produced.receipt(0).outcome, Outcome::Success);
        produced
    }

    /// An empty block at a time; answers with what ran, in order.
    pub fn at(&mut self, ms: u64) -> Vec<ScheduleId> {
        ran(&self.block(ms, vec![]))
    }

    /// A block at a time.
    pub fn block(&mut self, ms: u64, transactions: Vec<UserTransaction>) -> Produced {
        let input = self.chain.input_at(TimestampMs(ms));
        let view = input.parent.consensus.view + 1 + self.failed_views;
        let input = BlockInput { consensus: ConsensusContext { view, ..after(&input) }, ..input };
        self.chain.produce_with(&input, transactions)
    }

    /// A block so many milliseconds after the last.
    pub fn produce_in(&mut self, ms: u64, transactions: Vec<UserTransaction>) -> Produced {
        self.block(self.now() + ms, transactions)
    }

    /// An empty block 100 ms after the last; answers with what ran.
    pub fn step(&mut self) -> Vec<ScheduleId> {
        self.at(self.now() + 100)
    }

    /// A transfer that pays exactly so much per gas.
    pub fn paying(&self, n: u64, price: u128) -> UserTransaction {
        paying(person(n), self.chain.nonce(person(n).address), price, person(7).address, 21_000)
    }

    /// A transaction that uses up so much gas and pays so much for each.
    pub fn filling(&self, n: u64, price: u128, gas: u64) -> UserTransaction {
        let failer = super::contracts::FAILER;
        paying(person(n), self.chain.nonce(person(n).address), price, failer, gas)
    }

    /// The base fee of the next block.
    pub fn base_fee(&self) -> u128 {
        self.chain.next_base_fee().0
    }

    /// Raises the base fee with full blocks, a millisecond apart, until it is above a price.
    pub fn congest(&mut self, above: u128) {
        for _ in 0..200 {
            if self.base_fee() > above {
                return;
            }
            let filling = self.filling(6, self.base_fee() * 2, 30_000_000);
            let produced = self.produce_in(1, vec![filling]);
            assert!(produced.refused.is_empty(), "{:?}", produced.refused);
        }
        panic!("the base fee does not rise");
    }

    /// Every event of one kind that the door emitted in the last block.
    pub fn said<E: SolEvent>(&self) -> Vec<E> {
        let receipts = &self.chain.outputs.last().unwrap().receipts;
        receipts.iter().flat_map(|receipt| events::<E>(&receipt.logs)).collect()
    }

    /// The receipt of a run in the last block.
    pub fn run(&self, id: ScheduleId) -> &Receipt {
        let receipts = &self.chain.outputs.last().unwrap().receipts;
        let is_its = |receipt: &&Receipt| receipt.schedule_ref.is_some_and(|run| run.schedule == id);
        receipts.iter().find(is_its).expect("it ran in the last block")
    }
}

fn after(input: &BlockInput) -> ConsensusContext {
    ConsensusContext { parent_view: input.parent.consensus.view, ..input.parent.consensus }
}

/// Which schedules ran, in order.
pub fn ran(produced: &Produced) -> Vec<ScheduleId> {
    produced.ran().into_iter().map(|id| ScheduleId(id.to())).collect()
}

/// The door's error, where a call reverted.
pub fn refused(receipt: &Receipt) -> Result<(), MarketError> {
    match &receipt.outcome {
        Outcome::Success => Ok(()),
        Outcome::Reverted(reason) => Err(MarketError::abi_decode(reason).expect("an error of the door")),
        Outcome::Halted(halt) => panic!("stopped: {halt:?}"),
    }
}

/// All events of one kind that the door emitted.
pub fn events<E: SolEvent>(logs: &[Log]) -> Vec<E> {
    let ours = logs.iter().filter(|log| log.address == SCHEDULED_TRANSACTIONS);
    ours.filter_map(|log| E::decode_raw_log(log.topics().iter().copied(), &log.data.data).ok()).collect()
}

/// The only event of one kind.
pub fn only<E: SolEvent>(logs: &[Log]) -> E {
    let mut found = events::<E>(logs);
    assert_eq!(found.len(), 1, "{} events of this kind", found.len());
    found.remove(0)
}

/// A key that names nothing.
pub fn no_key() -> ScheduleMapKey {
    ScheduleMapKey { time: 1, gasPriority: 2, txnId: B256::repeat_byte(3) }
}

/// An address that nobody has.
pub fn stranger(n: u8) -> Address {
    Address::repeat_byte(0xd0 + n)
}
