//! The yardstick: revm's own loop over its own in-memory database, and nothing else.

use crate::workload::{WarmState, Workload};
use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, B256, U256};
use almanac_exec::{Environment, StateFault};
use almanac_primitives::{Account, RecoveredTransaction, StateKey, StateRead, state::decode_slot};
use revm::{
    Context, DatabaseRef, ExecuteCommitEvm, MainBuilder, MainContext,
    context::{BlockEnv, TxEnv},
    context_interface::block::BlobExcessGasAndPrice,
    database::{CacheDB, EmptyDB},
    primitives::hardfork::SpecId,
    state::{AccountInfo, Bytecode},
};

/// A block that is ready for revm.
#[derive(Clone)]
pub(crate) struct Bare<D> {
    db: CacheDB<D>,
    block: BlockEnv,
    chain_id: u64,
    transactions: Vec<TxEnv>,
}

impl Bare<EmptyDB> {
    /// The workload's block over a database that has every account and slot decoded before it starts.
    pub(crate) fn loaded(workload: &Workload) -> Self {
        let mut db = CacheDB::new(EmptyDB::default());
        let source = Source(workload.state.clone());
        for key in workload.genesis.keys() {
            match *key {
                StateKey::Account(address) => {
                    let mut info = source.account(address).expect("it is in the genesis");
                    info.code = Some(source.code(info.code_hash));
                    db.insert_account_info(address, info);
                }
                StateKey::Slot(address, slot) => {
                    let value = source.slot(address, slot);
                    db.insert_account_storage(address, slot, value).expect("nothing below to fail");
                }
                _ => {}
            }
        }
        Self::over(workload, db)
    }
}

impl Bare<Source> {
    /// The workload's block over a database that reads what it needs from the state that we read from.
    pub(crate) fn reading(workload: &Workload) -> Self {
        Self::over(workload, CacheDB::new(Source(workload.state.clone())))
    }
}

impl<D: DatabaseRef> Bare<D> {
    fn over(workload: &Workload, db: CacheDB<D>) -> Self {
        let environment = Environment::derive(&workload.input, &workload.state).expect("a sound input");
        let block = BlockEnv {
            number: U256::from(environment.number),
            beneficiary: environment.fee_recipient,
            timestamp: U256::from(environment.timestamp.seconds()),
            gas_limit: environment.gas_limit.0,
            basefee: u64::try_from(environment.base_fee.0).expect("BASE_FEE_MAX has 64 bits"),
            prevrandao: Some(environment.prev_randao()),
            blob_excess_gas_and_price: Some(BlobExcessGasAndPrice { excess_blob_gas: 0, blob_gasprice: 1 }),
            ..BlockEnv::default()
        };
        let transactions = workload.recovered.iter().map(tx_env).collect();
        Self { db, block, chain_id: environment.chain.id, transactions }
    }

    /// Executes all transactions and answers with the gas they used.
    pub(crate) fn run(&mut self) -> u64 {
        let chain_id = self.chain_id;
        let mut evm = Context::mainnet()
            .with_db(&mut self.db)
            .with_block(self.block.clone())
            .modify_cfg_chained(|cfg| {
                cfg.set_spec_and_mainnet_gas_params(SpecId::OSAKA);
                cfg.chain_id = chain_id;
                cfg.tx_gas_limit_cap = Some(u64::MAX);
            })
            .build_mainnet();
        let mut gas_used = 0;
        for tx in self.transactions.drain(..) {
            let result = evm.transact_commit(tx).unwrap_or_else(|_| panic!("the workload is valid"));
            assert!(result.is_success(), "the workload never fails: {result:?}");
            gas_used += result.tx_gas_used();
        }
        gas_used
    }
}

/// The workload's state as revm reads it.
#[derive(Clone)]
pub(crate) struct Source(WarmState);

impl Source {
    fn account(&self, address: Address) -> Option<AccountInfo> {
        let stored = self.0.read(StateKey::Account(address)).expect("memory answers")?;
        let Account { nonce, balance, code_hash, .. } = Account::decode(&stored).expect("a sound account");
        Some(AccountInfo { nonce, balance, code_hash, code: None, ..AccountInfo::default() })
    }

    fn code(&self, hash: B256) -> Bytecode {
        let stored = self.0.read(StateKey::Code(hash)).expect("memory answers");
        stored.map_or_else(Bytecode::default, Bytecode::new_raw)
    }

    fn slot(&self, address: Address, slot: U256) -> U256 {
        let stored = self.0.read(StateKey::Slot(address, slot)).expect("memory answers");
        stored.map_or(U256::ZERO, |stored| decode_slot(&stored).expect("a sound slot"))
    }
}

impl DatabaseRef for Source {
    type Error = StateFault;

    fn basic_ref(&self, address: Address) -> Result<Option<AccountInfo>, StateFault> {
        Ok(self.account(address))
    }

    fn code_by_hash_ref(&self, hash: B256) -> Result<Bytecode, StateFault> {
        Ok(self.code(hash))
    }

    fn storage_ref(&self, address: Address, slot: U256) -> Result<U256, StateFault> {
        Ok(self.slot(address, slot))
    }

    fn block_hash_ref(&self, number: u64) -> Result<B256, StateFault> {
        unreachable!("no workload asks for the hash of block {number}")
    }
}

fn tx_env(recovered: &RecoveredTransaction) -> TxEnv {
    let tx = recovered.transaction().envelope().unwrap();
    TxEnv {
        tx_type: tx.tx_type().into(),
        caller: recovered.sender(),
        gas_limit: tx.gas_limit(),
        gas_price: tx.max_fee_per_gas(),
        kind: tx.kind(),
        value: tx.value(),
        data: tx.input().clone(),
        nonce: tx.nonce(),
        chain_id: tx.chain_id(),
        gas_priority_fee: tx.max_priority_fee_per_gas(),
        ..TxEnv::default()
    }
}
