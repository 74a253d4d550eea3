//! Dumps all accounts, and loads them into another chain.

use super::Dev;
use crate::{answer::Answer, error, view::View};
use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, U256};
use almanac_exec::Edit;
use almanac_primitives::{
    Account, StateKey, StateRead as _,
    addresses::{DEVELOPER, is_system},
    state::decode_slot,
};
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[rpc(server)]
pub(crate) trait StateApi {
    /// All accounts but the chain's own: JSON, as bytes.
    #[method(name = "anvil_dumpState", aliases = ["hardhat_dumpState"])]
    async fn dump(&self) -> RpcResult<Answer<Bytes>>;

    /// Gives accounts what a dump says of them. Others stay as they are.
    #[method(name = "anvil_loadState", aliases = ["hardhat_loadState"])]
    async fn load(&self, dump: Bytes) -> RpcResult<bool>;
}

/// A dump, in the shape that other developer's chains use for their accounts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Dump {
    accounts: BTreeMap<Address, DumpedAccount>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct DumpedAccount {
    nonce: u64,
    balance: U256,
    #[serde(default)]
    code: Bytes,
    #[serde(default)]
    storage: BTreeMap<U256, U256>,
}

#[jsonrpsee::core::async_trait]
impl StateApiServer for Dev {
    async fn dump(&self) -> RpcResult<Answer<Bytes>> {
        let view = self.view.clone();
        let dump = move || {
            let dump = Dump { accounts: accounts(&view)? };
            let json = serde_json::to_vec(&dump).map_err(error::internal)?;
            Ok(Bytes::from(json))
        };
        self.heavy.answer("read accounts one by one", dump).await
    }

    async fn load(&self, dump: Bytes) -> RpcResult<bool> {
        let view = self.view.clone();
        let compare = move || {
            let dump: Dump = serde_json::from_slice(&dump)
                .map_err(|error| error::invalid(format!("invalid dump of accounts: {error}")))?;
            let present = accounts(&view)?;
            let wanted = dump.accounts.into_iter().filter(|(account, _)| !is_foreign(*account));
            let edits = wanted.flat_map(|(account, wanted)| edits(account, wanted, present.get(&account)));
            Ok(edits.collect::<Vec<_>>())
        };
        let edits = self.heavy.run(compare).await?;
        if !edits.is_empty() {
            self.edit(edits).await?;
        }
        Ok(true)
    }
}

/// Accounts that no dump holds: every chain has its own.
fn is_foreign(account: Address) -> bool {
    is_system(account) || account == DEVELOPER
}

fn accounts(view: &View) -> RpcResult<BTreeMap<Address, DumpedAccount>> {
    let mut accounts: BTreeMap<Address, DumpedAccount> = BTreeMap::new();
    let state = view.index.tip_state();
    for (key, value) in view.index.tip_accounts().map_err(error::internal)? {
        match key {
            StateKey::Account(address) if !is_foreign(address) => {
                let Account { nonce, balance, code_hash, .. } =
                    Account::decode(&value).map_err(error::internal)?;
                let dumped = accounts.entry(address).or_default();
                (dumped.nonce, dumped.balance) = (nonce, balance);
                if code_hash != KECCAK256_EMPTY {
                    let code = state.read(StateKey::Code(code_hash)).map_err(error::internal)?;
                    dumped.code = code.unwrap_or_default();
                }
            }
            StateKey::Slot(address, slot) if !is_foreign(address) => {
                let value = decode_slot(&value).map_err(error::internal)?;
                accounts.entry(address).or_default().storage.insert(slot, value);
            }
            _ => {}
        }
    }
    Ok(accounts)
}

/// What makes an account as it is wanted. The nonce comes last: code and storage can raise it.
fn edits(account: Address, wanted: DumpedAccount, present: Option<&DumpedAccount>) -> Vec<Edit> {
    let nobody = DumpedAccount::default();
    let present = present.unwrap_or(&nobody);
    let mut edits = Vec::new();
    if wanted.balance != present.balance {
        edits.push(Edit::Balance { account, balance: wanted.balance });
    }
    if wanted.code != present.code {
        edits.push(Edit::Code { account, code: wanted.code });
    }
    for (slot, value) in wanted.storage {
        if present.storage.get(&slot).copied().unwrap_or_default() != value {
            edits.push(Edit::Storage { account, slot, value });
        }
    }
    if wanted.nonce != present.nonce {
        edits.push(Edit::Nonce { account, nonce: wanted.nonce });
    }
    edits
}
