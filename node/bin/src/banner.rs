//! The banner of a developer chain.

use crate::{accounts::DevAccounts, waiting::Waiting};
use serde_json::json;
use std::{fmt::Write as _, net::SocketAddr, path::Path};

/// Facts for the banner.
pub(crate) struct Banner<'a> {
    pub(crate) rpc: SocketAddr,
    /// Where gRPC is served, if it is.
    pub(crate) grpc: Option<SocketAddr>,
    /// Where /health and /metrics are.
    pub(crate) metrics: SocketAddr,
    pub(crate) chain_id: u64,
    pub(crate) height: u64,
    pub(crate) blocks: String,
    pub(crate) waiting: Waiting,
    pub(crate) datadir: Option<&'a Path>,
    /// What a fork stands on.
    pub(crate) fork: Option<String>,
    pub(crate) accounts: &'a DevAccounts,
    /// Whether tools that accept only known clients will refuse this one.
    pub(crate) is_own_name: bool,
    /// Pages of every origin may call.
    pub(crate) is_open: bool,
}

impl Banner<'_> {
    /// The same facts for a program: one JSON object on one line.
    pub(crate) fn json(&self) -> String {
        let accounts: Vec<_> = self
            .accounts
            .accounts
            .iter()
            .map(|account| json!({ "address": account.address, "privateKey": account.secret }))
            .collect();
        let facts = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "http": format!("http://{}", self.rpc),
            "ws": format!("ws://{}", self.rpc),
            "grpc": self.grpc,
            "metrics": format!("http://{}/metrics", self.metrics),
            "chainId": self.chain_id,
            "height": self.height,
            "schedulesWaiting": self.waiting.schedules,
            "nextDueMs": self.waiting.next.map(|next| next.0),
            "mnemonic": self.accounts.mnemonic,
            "accounts": accounts,
            "datadir": self.datadir,
            "fork": self.fork,
            "allowsEveryOrigin": self.is_open,
        });
        facts.to_string()
    }

    /// The text, one fact a line.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        let mut line = |text: String| writeln!(out, "{text}").expect("a String takes any text");
        line(format!("Almanac {} — an EVM chain with a calendar", env!("CARGO_PKG_VERSION")));
        line(String::new());
        let DevAccounts { mnemonic, accounts, coins } = self.accounts;
        line(format!("Accounts ({coins} coins each; the keys are public, use them nowhere else)"));
        for (n, account) in accounts.iter().enumerate() {
            line(format!("  ({n}) {}  key {}", account.address, account.secret));
        }
        line(format!("  mnemonic  {mnemonic}"));
        line(String::new());
        line(format!("  rpc       http://{}", self.rpc));
        line(format!("            ws://{}", self.rpc));
        if let Some(grpc) = self.grpc {
            line(format!("  grpc      {grpc}"));
        }
        line(format!("  explorer  http://{}", self.rpc));
        line(format!("  health    http://{}/health    metrics http://{0}/metrics", self.metrics));
        line(format!("  chain id  {}", self.chain_id));
        if let Some(fork) = &self.fork {
            line(format!("  fork of   {fork}"));
        }
        line(format!("  height    {}", self.height));
        line(format!("  blocks    {}", self.blocks));
        line(format!("  schedules {}", self.waiting));
        line(match self.datadir {
            Some(directory) => format!("  kept in   {}", directory.display()),
            None => "  kept in   memory; --datadir DIR keeps the chain on disk".to_owned(),
        });
        if self.is_own_name {
            line("  Hardhat   needs --client-version anvil/v1.0.0 for its network helpers".to_owned());
        }
        if !self.rpc.ip().is_loopback() {
            line("  WARNING   --host: other machines can use this chain and its accounts".to_owned());
        }
        if self.is_open {
            line(
                "  WARNING   --allow-origin *: every web page you open can use this chain and its accounts"
                    .to_owned(),
            );
        }
        line(String::new());
        line("Ctrl-C stops it.".to_owned());
        out
    }
}
