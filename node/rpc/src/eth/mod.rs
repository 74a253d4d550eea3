//! Ethereum's own methods: reading the chain and sending transactions.

mod accounts;
mod ahead;
pub(crate) mod attempt;
mod blocks;
mod calls;
mod estimate;
pub(crate) mod fees;
mod fill;
mod logs;
mod lookup;
pub(crate) mod overlay;
pub(crate) mod request;
mod sending;
mod signing;
mod simulate;
pub(crate) mod subscribe;
mod tools;

use crate::{
    filters::Filters,
    heads::Heads,
    heavy::{Heavy, HeavyLimits},
    impersonation::Impersonation,
    view::View,
    wallet::Wallet,
};
use alloy_primitives::Address;
use almanac_consensus::Admission;
use jsonrpsee::RpcModule;
use std::{sync::Arc, time::Duration};

/// Answers Ethereum's methods.
#[derive(Clone)]
pub(crate) struct Eth {
    view: View,
    admission: Admission,
    heads: Arc<Heads>,
    wallet: Arc<Wallet>,
    filters: Arc<Filters>,
    /// Calls and searches wait here; a flood of them leaves traces and blocks alone.
    heavy: Heavy,
    /// Blocks, transactions and receipts wait here, for each other only.
    reads: Heavy,
    /// Transactions that are sent wait here, for each other only.
    sending: Heavy,
    /// Only on a developer's chain.
    impersonation: Option<Arc<Impersonation>>,
    client_version: Arc<str>,
    call_time_max: Duration,
}

/// Who answers, as `web3_clientVersion` says it.
pub const CLIENT_VERSION: &str = concat!("almanac/v", env!("CARGO_PKG_VERSION"));

impl Eth {
    /// Answers from `view`, hands transactions to `admission`, hears of blocks from `heads`, and signs for the
    /// accounts of `wallet`. The EVM works for `call_time_max` at most on a request that only tries calls out.
    pub(crate) fn new(
        view: View,
        admission: Admission,
        heads: Arc<Heads>,
        wallet: Arc<Wallet>,
        client_version: &str,
        call_time_max: Duration,
    ) -> Self {
        let filters = Arc::new(Filters::default());
        Self {
            view,
            admission,
            heads,
            wallet,
            filters,
            heavy: Heavy::new(HeavyLimits::QUESTIONS),
            reads: Heavy::new(HeavyLimits::READS),
            sending: Heavy::new(HeavyLimits::SENDING),
            impersonation: None,
            client_version: client_version.into(),
            call_time_max,
        }
    }

    /// Sends for the accounts of `impersonation` too, as on a developer's chain.
    pub(crate) fn impersonating(self, impersonation: Arc<Impersonation>) -> Self {
        Self { impersonation: Some(impersonation), ..self }
    }

    /// Whether transactions may be made in the name of an account that the node has no key for.
    fn is_impersonated(&self, account: Address) -> bool {
        let impersonation = self.impersonation.as_ref().filter(|_| !self.wallet.has(account));
        impersonation.is_some_and(|impersonation| impersonation.covers(account))
    }

    /// All of its methods. Those that sign are there only where there are keys, or names to send in.
    pub(crate) fn into_module(self) -> RpcModule<()> {
        let mut all = RpcModule::new(());
        if self.impersonation.is_some() || !self.wallet.addresses().is_empty() {
            let signing = signing::SigningApiServer::into_rpc(self.clone());
            all.merge(signing).expect("there is no other method yet");
        }
        let parts: [jsonrpsee::Methods; 9] = [
            blocks::BlocksApiServer::into_rpc(self.clone()).into(),
            accounts::AccountsApiServer::into_rpc(self.clone()).into(),
            calls::CallsApiServer::into_rpc(self.clone()).into(),
            fees::FeesApiServer::into_rpc(self.clone()).into(),
            logs::LogsApiServer::into_rpc(self.clone()).into(),
            lookup::LookupApiServer::into_rpc(self.clone()).into(),
            sending::SendingApiServer::into_rpc(self.clone()).into(),
            subscribe::SubscribeApiServer::into_rpc(self.clone()).into(),
            tools::ToolsApiServer::into_rpc(self).into(),
        ];
        for part in parts {
            all.merge(part).expect("no two parts have a method of the same name");
        }
        all
    }
}
