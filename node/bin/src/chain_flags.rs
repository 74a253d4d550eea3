//! Flags of `dev` that describe a new chain and its accounts, with the names that users of anvil type.

use crate::{
    accounts::{CHAIN_ID, DevAccounts},
    fork::Begun,
    helpers,
};
use almanac_primitives::{Genesis, TimestampMs, params::BLOCK_GAS_MAX};
use anyhow::{Context as _, ensure};
use clap::Args;
use std::{net::IpAddr, path::PathBuf};

/// Where the flags stand in the help.
const HEADING: &str = "Chain and accounts";

/// Most accounts: each is a line of the banner.
const ACCOUNTS_MAX: u32 = 1_000;

/// What a developer's chain starts with.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct ChainFlags {
    /// Number of accounts.
    #[arg(long, short = 'a', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=ACCOUNTS_MAX as i64))]
    pub(crate) accounts: u32,

    /// Coins that each account of a new chain starts with.
    #[arg(long, value_name = "COINS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    pub(crate) balance: u64,

    /// Phrase that the accounts come from [default: test test … junk].
    #[arg(long, short = 'm', value_name = "PHRASE")]
    pub(crate) mnemonic: Option<String>,

    /// Gas limit of the blocks of a new chain, 10000000 to 120000000.
    #[arg(long, value_name = "GAS")]
    pub(crate) gas_limit: Option<u64>,

    /// Base fee of the first block after the start, in wei.
    #[arg(long, visible_alias = "block-base-fee-per-gas", value_name = "WEI")]
    pub(crate) base_fee: Option<u64>,

    /// Time of block 0 of a new chain, in Unix seconds; the clock goes on from there.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timestamp: Option<u64>,

    /// Make blocks on request only (evm_mine).
    #[arg(long = "no-mining", visible_alias = "no-mine", conflicts_with = "block_time")]
    pub(crate) is_manual: bool,

    /// Let every account be impersonated, as anvil_autoImpersonateAccount does.
    #[arg(long = "auto-impersonate")]
    pub(crate) is_impersonating: bool,

    /// Load accounts from this file at the start, if it exists, and write them to it at the end.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["load_state", "dump_state"])]
    pub(crate) state: Option<PathBuf>,

    /// Load accounts from this file at the start.
    #[arg(long, value_name = "FILE")]
    pub(crate) load_state: Option<PathBuf>,

    /// Write accounts to this file at the end.
    #[arg(long, value_name = "FILE")]
    pub(crate) dump_state: Option<PathBuf>,

    /// Write the facts of the banner to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) config_out: Option<PathBuf>,

    /// Address to listen on. Any other than 127.0.0.1 lets other machines use the accounts.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
}

impl ChainFlags {
    /// The accounts that the node signs for.
    pub(crate) fn accounts(&self) -> anyhow::Result<DevAccounts> {
        DevAccounts::new(self.mnemonic.as_deref(), self.accounts, self.balance).context("--mnemonic")
    }

    /// The genesis of a new chain.
    pub(crate) fn genesis(
        &self,
        chain_id: Option<u64>,
        now: TimestampMs,
        accounts: &DevAccounts,
        begun: Option<&Begun>,
    ) -> anyhow::Result<Genesis> {
        let mut genesis = accounts.genesis(chain_id.unwrap_or(CHAIN_ID), self.start(now)?);
        helpers::add(&mut genesis);
        if let Some(begun) = begun {
            genesis.chain_id = chain_id.unwrap_or(begun.block.fork.chain_id);
            begun.prepare(&mut genesis)?;
        }
        if let Some(gas) = self.gas_limit {
            genesis.parameters.insert(BLOCK_GAS_MAX.name.to_owned(), gas);
        }
        genesis.check()?;
        Ok(genesis)
    }

    /// The time of block 0.
    pub(crate) fn start(&self, now: TimestampMs) -> anyhow::Result<TimestampMs> {
        let Some(seconds) = self.timestamp else { return Ok(now) };
        let start = TimestampMs::from_seconds(seconds);
        let start = start.filter(|start| *start <= almanac_consensus::solo::TIME_MAX);
        ensure!(start.is_some(), "--timestamp {seconds} is too far in the future");
        Ok(start.unwrap_or(now))
    }

    /// The file with accounts to load, if there is one.
    pub(crate) fn loaded(&self) -> Option<&PathBuf> {
        self.load_state.as_ref().or(self.state.as_ref().filter(|file| file.exists()))
    }

    /// The file to write accounts to.
    pub(crate) fn dumped(&self) -> Option<&PathBuf> {
        self.dump_state.as_ref().or(self.state.as_ref())
    }
}
