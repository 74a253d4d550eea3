//! Ethereum's own methods: everything that a client needs to read the chain and to send to it.

mod accounts;
pub(crate) mod attempt;
mod blocks;
mod calls;
mod estimate;
mod fees;
mod fill;
mod logs;
mod overlay;
mod sending;
mod simulate;
mod subscribe;
mod tools;

use crate::{filters::Filters, heads::Heads, impersonation::Impersonation, view::View, wallet::Wallet};
use alloy_primitives::Address;
use almanac_consensus::{Admission, Controls};
use almanac_primitives::TimestampMs;
use jsonrpsee::RpcModule;
use std::sync::Arc;

/// Answers Ethereum's methods.
#[derive(Clone)]
pub struct Eth {
    view: View,
    admission: Admission,
    heads: Arc<Heads>,
    wallet: Arc<Wallet>,
    filters: Arc<Filters>,
    developer: Option<Developer>,
    client_version: Arc<str>,
}

/// What a developer has to do with Ethereum's methods.
#[derive(Clone)]
struct Developer {
    controls: Controls,
    impersonation: Arc<Impersonation>,
}

/// Who answers, as `web3_clientVersion` says it.
pub const CLIENT_VERSION: &str = concat!("almanac/v", env!("CARGO_PKG_VERSION"));

impl Eth {
    /// Answers from `view`, hands transactions to `admission`, hears of blocks from `heads`, and signs for the
    /// accounts of `wallet`.
    pub fn new(
        view: View,
        admission: Admission,
        heads: Arc<Heads>,
        wallet: Arc<Wallet>,
        client_version: &str,
    ) -> Self {
        let filters = Arc::new(Filters::default());
        Self {
            view,
            admission,
            heads,
            wallet,
            filters,
            developer: None,
            client_version: client_version.into(),
        }
    }

    /// Tries calls at the time that `controls` says, and sends for the accounts of `impersonation`.
    pub fn with_developer(mut self, controls: Controls, impersonation: Arc<Impersonation>) -> Self {
        self.developer = Some(Developer { controls, impersonation });
        self
    }

    /// Whether transactions may be made in the name of an account that the node has no key for.
    fn is_impersonated(&self, account: Address) -> bool {
        let developer = self.developer.as_ref().filter(|_| !self.wallet.has(account));
        developer.is_some_and(|developer| developer.impersonation.covers(account))
    }

    /// All of its methods.
    pub fn into_module(self) -> RpcModule<()> {
        let mut all = RpcModule::new(());
        let parts: [jsonrpsee::Methods; 8] = [
            blocks::BlocksApiServer::into_rpc(self.clone()).into(),
            accounts::AccountsApiServer::into_rpc(self.clone()).into(),
            calls::CallsApiServer::into_rpc(self.clone()).into(),
            fees::FeesApiServer::into_rpc(self.clone()).into(),
            logs::LogsApiServer::into_rpc(self.clone()).into(),
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
