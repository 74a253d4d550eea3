//! The state before a transaction, limited to what the transaction touched.

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use almanac_exec::{Footprint, StateFault};
use almanac_primitives::StateKey;
use revm::{
    DatabaseRef,
    state::{AccountInfo, Bytecode},
};

/// Reads the state before a transaction.
pub(crate) struct Before<'f>(pub(crate) &'f Footprint);

impl DatabaseRef for Before<'_> {
    type Error = StateFault;

    fn basic_ref(&self, address: Address) -> Result<Option<AccountInfo>, StateFault> {
        let untouched = StateFault::Missing { key: StateKey::Account(address) };
        self.0.before.get(&address).cloned().ok_or(untouched)
    }

    fn code_by_hash_ref(&self, hash: B256) -> Result<Bytecode, StateFault> {
        if hash == KECCAK256_EMPTY {
            return Ok(Bytecode::default());
        }
        let found = self.0.before.values().flatten().find(|info| info.code_hash == hash);
        found.and_then(|info| info.code.clone()).ok_or(StateFault::Missing { key: StateKey::Code(hash) })
    }

    fn storage_ref(&self, address: Address, slot: U256) -> Result<U256, StateFault> {
        let found = self.0.after.get(&address).and_then(|account| account.storage.get(&slot));
        let untouched = StateFault::Missing { key: StateKey::Slot(address, slot) };
        found.map(|slot| slot.original_value()).ok_or(untouched)
    }

    /// No tracer needs this: BLOCKHASH reads a slot here.
    fn block_hash_ref(&self, number: u64) -> Result<B256, StateFault> {
        use almanac_primitives::{addresses::BLOCK_HASH_HISTORY, params::BLOCK_HASH_HISTORY_LEN};
        self.storage_ref(BLOCK_HASH_HISTORY, U256::from(number % BLOCK_HASH_HISTORY_LEN)).map(Into::into)
    }
}
