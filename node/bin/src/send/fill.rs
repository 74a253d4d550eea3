//! Fills in what the flags leave open: from the node, or offline from the clock.

use super::{SendCommand, draft::Draft, named_calls};
use crate::{http::Endpoint, secret_file};
use alloy_primitives::{Address, U64, U256, hex};
use almanac_primitives::{Chain, DurationMs, NativeCall, NativeTransaction, keys::SecretKey, native::Kind};
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// Longest time for one answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long an orderless transaction is valid: the chain allows a minute, and its clock may differ from this one.
const EXPIRES_IN: DurationMs = DurationMs(40_000);
/// The furthest that the chain allows.
const EXPIRES_IN_MAX: DurationMs = DurationMs(60_000);
/// Beyond what its calls take one by one: nonce, fee payer, further signatures, and a key record with all its leaves.
const GAS_EXTRA: u64 = 30_000;
/// Offline nobody advises.
const PRIORITY_FEE: u128 = 1_000_000_000;

/// The transaction that the flags describe, without signatures.
pub(super) fn draft(command: &SendCommand, key: &SecretKey) -> anyhow::Result<Draft> {
    let source = match (command.is_offline, command.chain_id, command.genesis) {
        (true, Some(id), Some(genesis)) => Source::Offline(Chain { id, genesis }),
        _ => Source::Node(&command.rpc),
    };
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
    let transaction = NativeTransaction {
        chain_id: chain.id,
        sender,
        kind,
        nonce,
        expiration: expiration(command, kind, &source)?,
        max_priority_fee_per_gas: priority_fee,
        max_fee_per_gas: command.max_fee.map_or_else(|| source.max_fee(priority_fee), Ok)?,
        gas_limit: command.gas_limit.map_or_else(|| source.gas(sender, &calls), Ok)?,
        calls,
        fee_payer: command.fee_payer,
        signatures: Vec::new(),
        fee_payer_signatures: Vec::new(),
    };
    Ok(Draft { chain, transaction })
}

fn expiration(command: &SendCommand, kind: Kind, source: &Source<'_>) -> anyhow::Result<u64> {
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
        (None, Kind::Sequence) => return Ok(0),
    };
    Ok(source.now()?.saturating_add(after.0.div_ceil(1_000)))
}

/// Who knows the chain.
enum Source<'a> {
    Node(&'a Endpoint),
    Offline(Chain),
}

impl Source<'_> {
    fn chain(&self) -> anyhow::Result<Chain> {
        let node = match self {
            Self::Node(node) => node,
            Self::Offline(chain) => return Ok(*chain),
        };
        let id = quantity(&ask(node, "eth_chainId", &json!([]))?)?;
        let block = ask(node, "eth_getBlockByNumber", &json!(["0x0", false]))?;
        let genesis = block["hash"].as_str().and_then(|hash| hash.parse().ok());
        Ok(Chain { id, genesis: genesis.context("the node does not know block 0")? })
    }

    /// The chain's second, which need not be this machine's.
    fn now(&self) -> anyhow::Result<u64> {
        match self {
            Self::Node(node) => {
                let block = ask(node, "eth_getBlockByNumber", &json!(["pending", false]))?;
                quantity(&block["timestamp"])
            }
            Self::Offline(_) => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                Ok(now.context("this machine's clock is before 1970")?.as_secs())
            }
        }
    }

    fn next_number(&self, sender: Address) -> anyhow::Result<u64> {
        match self {
            Self::Node(node) => quantity(&ask(node, "eth_getTransactionCount", &json!([sender, "pending"]))?),
            Self::Offline(_) => anyhow::bail!("offline nobody knows the next number: give --sequence N"),
        }
    }

    fn priority_fee(&self) -> anyhow::Result<u128> {
        match self {
            Self::Node(node) => price(&ask(node, "eth_maxPriorityFeePerGas", &json!([]))?),
            Self::Offline(_) => Ok(PRIORITY_FEE),
        }
    }

    /// Twice the price of now: the base fee may rise until it is in a block.
    fn max_fee(&self, priority_fee: u128) -> anyhow::Result<u128> {
        match self {
            Self::Node(node) => {
                let now = price(&ask(node, "eth_gasPrice", &json!([]))?)?;
                Ok(now.saturating_mul(2).max(priority_fee))
            }
            Self::Offline(_) => anyhow::bail!("offline nobody knows the price: give --max-fee"),
        }
    }

    /// What the calls take one by one, and some more. A batch takes less: it begins once.
    fn gas(&self, sender: Address, calls: &[NativeCall]) -> anyhow::Result<u64> {
        let Self::Node(node) = self else {
            anyhow::bail!("offline nobody tries the calls: give --gas-limit")
        };
        let mut sum = GAS_EXTRA;
        for (index, NativeCall { to, value, input }) in calls.iter().enumerate() {
            let call =
                json!({ "from": sender, "to": to, "value": value, "data": hex::encode_prefixed(input) });
            let gas = ask(node, "eth_estimateGas", &json!([call])).with_context(|| {
                format!("call {index} fails on its own; if the calls before it help, give --gas-limit")
            })?;
            sum = sum.saturating_add(quantity(&gas)?);
        }
        Ok(sum)
    }
}

fn ask(node: &Endpoint, method: &str, params: &Value) -> anyhow::Result<Value> {
    Ok(node.call(method, params, PATIENCE)?)
}

/// A number of 64 bits in an answer.
pub(super) fn quantity(answer: &Value) -> anyhow::Result<u64> {
    let number: U64 = serde_json::from_value(answer.clone())
        .with_context(|| format!("the node answers {answer} instead of a number"))?;
    Ok(number.to())
}

fn price(answer: &Value) -> anyhow::Result<u128> {
    let number: U256 = serde_json::from_value(answer.clone())
        .with_context(|| format!("the node answers {answer} instead of a price"))?;
    u128::try_from(number).with_context(|| format!("the node's price {number} is above 128 bits"))
}
