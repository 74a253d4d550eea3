//! Fills in what the flags leave open: from the node, or offline from the clock.

use super::{SendCommand, draft::Draft, named_calls};
use crate::{
    client::node::{NodeArgs, quantity, wei},
    secret_file,
};
use alloy_primitives::{Address, U64, hex};
use almanac_primitives::{Chain, DurationMs, NativeCall, NativeTransaction, keys::SecretKey, native::Kind};
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use std::time::SystemTime;

/// How long an orderless transaction is valid: the chain allows a minute, and its clock may differ from this one.
pub(super) const EXPIRES_IN: DurationMs = DurationMs(40_000);
/// The furthest that the chain allows.
const EXPIRES_IN_MAX: DurationMs = DurationMs(60_000);
/// Offline nobody advises.
const PRIORITY_FEE: u128 = 1_000_000_000;

/// The transaction that the flags describe, without signatures.
pub(super) fn draft(command: &SendCommand, key: &SecretKey) -> anyhow::Result<Draft> {
    let source = Source::of(command);
    let chain = source.chain()?;
    let sender = command.from.unwrap_or_else(|| key.leaf().account());
    let calls = named_calls(command)?;
    let (kind, nonce) = match command.sequence {
        Some(number) => (Kind::Sequence, number.map_or_else(|| source.next_number(sender), Ok)?),
        None => {
            let random = || Ok(u64::from_be_bytes(secret_file::random()?));
            (Kind::Orderless, command.nonce.map_or_else(random, Ok::<_, anyhow::Error>)?)
        }
    };
    let priority_fee = command.priority_fee.map_or_else(|| source.priority_fee(), Ok)?;
    let mut transaction = NativeTransaction {
        chain_id: chain.id,
        sender,
        kind,
        nonce,
        expiration: expiration(command, kind, &source)?,
        max_priority_fee_per_gas: priority_fee,
        max_fee_per_gas: command.max_fee.map_or_else(|| source.max_fee(priority_fee), Ok)?,
        gas_limit: 0,
        calls,
        fee_payer: command.fee_payer,
        signatures: Vec::new(),
        fee_payer_signatures: Vec::new(),
    };
    transaction.gas_limit = command.gas_limit.map_or_else(|| source.gas(&transaction), Ok)?;
    Ok(Draft { chain, transaction })
}

/// Counts its time from now on.
pub(super) fn expire_from_now(command: &SendCommand, draft: &mut Draft) -> anyhow::Result<()> {
    draft.transaction.expiration = expiration(command, draft.transaction.kind, &Source::of(command))?;
    Ok(())
}

/// Seconds for which it is valid; `None` if it does not expire.
pub(super) fn valid_for(command: &SendCommand, kind: Kind) -> anyhow::Result<Option<u64>> {
    let after = match (command.expires_in, kind) {
        (Some(after), Kind::Orderless) => {
            ensure!(
                after <= EXPIRES_IN_MAX,
                "--expires-in {} s is too far: an orderless transaction expires within {} s",
                after.0 / 1_000,
                EXPIRES_IN_MAX.0 / 1_000
            );
            after
        }
        (Some(after), Kind::Sequence) => after,
        (None, Kind::Orderless) => EXPIRES_IN,
        (None, Kind::Sequence) => return Ok(None),
    };
    Ok(Some(after.0.div_ceil(1_000)))
}

fn expiration(command: &SendCommand, kind: Kind, source: &Source<'_>) -> anyhow::Result<u64> {
    match valid_for(command, kind)? {
        Some(seconds) => Ok(source.now()?.saturating_add(seconds)),
        None => Ok(0),
    }
}

/// Who knows the chain.
pub(super) enum Source<'a> {
    Node(&'a NodeArgs),
    Offline(Chain),
}

impl<'a> Source<'a> {
    fn of(command: &'a SendCommand) -> Self {
        match (command.is_offline, command.chain_id, command.genesis) {
            (true, Some(id), Some(genesis)) => Self::Offline(Chain { id, genesis }),
            _ => Self::Node(&command.sending.node),
        }
    }
}

impl Source<'_> {
    pub(super) fn chain(&self) -> anyhow::Result<Chain> {
        match self {
            Self::Node(node) => node.chain(),
            Self::Offline(chain) => Ok(*chain),
        }
    }

    /// The chain's second, which need not be this machine's.
    pub(super) fn now(&self) -> anyhow::Result<u64> {
        match self {
            Self::Node(node) => Ok(node.now()?.seconds()),
            Self::Offline(_) => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                Ok(now.context("this machine's clock is before 1970")?.as_secs())
            }
        }
    }

    pub(super) fn next_number(&self, sender: Address) -> anyhow::Result<u64> {
        match self {
            Self::Node(node) => quantity(&node.ask("eth_getTransactionCount", &json!([sender, "pending"]))?),
            Self::Offline(_) => anyhow::bail!("offline nobody knows the next number: give --sequence N"),
        }
    }

    pub(super) fn priority_fee(&self) -> anyhow::Result<u128> {
        match self {
            Self::Node(node) => price(&node.ask("eth_maxPriorityFeePerGas", &json!([]))?),
            Self::Offline(_) => Ok(PRIORITY_FEE),
        }
    }

    /// Twice the price of now: the base fee may rise until it is in a block.
    pub(super) fn max_fee(&self, priority_fee: u128) -> anyhow::Result<u128> {
        match self {
            Self::Node(node) => {
                let now = price(&node.ask("eth_gasPrice", &json!([]))?)?;
                Ok(now.saturating_mul(2).max(priority_fee))
            }
            Self::Offline(_) => anyhow::bail!("offline nobody knows the price: give --max-fee"),
        }
    }

    /// What it takes with all the signatures that its keys can bring, as the node finds by trying.
    pub(super) fn gas(&self, transaction: &NativeTransaction) -> anyhow::Result<u64> {
        let Self::Node(node) = self else {
            anyhow::bail!("offline nobody tries the calls: give --gas-limit")
        };
        let gas = node.ask("eth_estimateGas", &json!([tried(transaction)]));
        quantity(&gas.context("it would fail; to send it anyway, give --gas-limit")?)
    }
}

/// What the node is to try. Without prices, since whoever cannot pay hears that when it is sent, with the numbers.
fn tried(transaction: &NativeTransaction) -> Value {
    let calls = transaction.calls.iter().map(|NativeCall { to, value, input }| {
        json!({ "to": to, "value": value, "input": hex::encode_prefixed(input) })
    });
    let (nonce, expiration) = (U64::from(transaction.nonce), U64::from(transaction.expiration));
    json!({
        "from": transaction.sender,
        "calls": calls.collect::<Vec<_>>(),
        "replayProtector": match transaction.kind {
            Kind::Sequence => json!({ "sequenceNumber": nonce }),
            Kind::Orderless => json!({ "nonce": nonce, "expiration": expiration }),
        },
        "feePayer": transaction.fee_payer,
    })
}

fn price(answer: &Value) -> anyhow::Result<u128> {
    let number = wei(answer)?;
    u128::try_from(number).with_context(|| format!("the node's price {number} is above 128 bits"))
}
