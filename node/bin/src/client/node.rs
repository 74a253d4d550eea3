//! Questions to a running node, and how to read its answers.

use crate::http::{CallError, Endpoint};
use alloy_primitives::{Address, B256, Bytes, U64, U256, hex};
use almanac_primitives::{
    Chain, TimestampMs,
    params::{PARAMETERS, Parameters},
};
use almanac_trace::printable;
use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::{Value, json};
use std::time::Duration;

/// Longest time for one answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Which node.
#[derive(Clone, Debug, Args)]
pub(crate) struct NodeArgs {
    /// URL of a running node, http://HOST:PORT.
    #[arg(long, alias = "rpc-url", value_name = "URL", default_value = "http://127.0.0.1:8545", value_parser = Endpoint::parse)]
    pub(crate) rpc: Endpoint,
}

impl NodeArgs {
    /// The result of a call; an error says what the node refused, or that there is none.
    pub(crate) fn ask(&self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.try_ask(method, params).map_err(|error| match error {
            CallError::Failed(error) => error.context(format!(
                "NoNode: {} does not answer as a node: start one with `almanac dev`, or name another with --rpc",
                self.rpc.host()
            )),
            refused @ CallError::Refused { .. } => refused.into(),
        })
    }

    /// The same, where a refusal is an answer.
    pub(crate) fn try_ask(&self, method: &str, params: &Value) -> Result<Value, CallError> {
        self.rpc.call(method, params, PATIENCE)
    }

    /// A page that is no JSON-RPC.
    pub(crate) fn page(&self, path: &str) -> anyhow::Result<String> {
        self.rpc.page(path, PATIENCE)
    }

    /// The chain's own time, which need not be this machine's: that of the block that would come now.
    pub(crate) fn now(&self) -> anyhow::Result<TimestampMs> {
        let block = self.ask("eth_getBlockByNumber", &json!(["pending", false]))?;
        Ok(TimestampMs(quantity(&block["timestampMs"])?))
    }

    /// Base fee of the next block.
    pub(crate) fn base_fee(&self) -> anyhow::Result<U256> {
        wei(&self.ask("eth_getBlockByNumber", &json!(["pending", false]))?["baseFeePerGas"])
    }

    /// What governance has set, after the last block.
    pub(crate) fn parameters(&self) -> anyhow::Result<Parameters> {
        let answer = self.ask("almanac_getParameters", &json!([]))?;
        let mut parameters = Parameters::default();
        for shown in answer.as_array().map(Vec::as_slice).unwrap_or_default() {
            let known = PARAMETERS.iter().find(|parameter| shown["name"] == parameter.name);
            if let Some(parameter) = known {
                parameters.load(*parameter, quantity(&shown["value"])?);
            }
        }
        Ok(parameters)
    }

    /// What a contract answers.
    pub(crate) fn view(&self, to: Address, data: &[u8]) -> anyhow::Result<Bytes> {
        let call = json!({ "to": to, "data": hex::encode_prefixed(data) });
        let answer = self.ask("eth_call", &json!([call, "latest"]))?;
        serde_json::from_value(answer.clone())
            .with_context(|| format!("the node answers {answer} instead of bytes"))
    }

    /// The chain, as signatures name it.
    pub(crate) fn chain(&self) -> anyhow::Result<Chain> {
        Ok(Chain { id: quantity(&self.ask("eth_chainId", &json!([]))?)?, genesis: self.genesis()? })
    }

    /// Hash of block 0, which names the chain.
    pub(crate) fn genesis(&self) -> anyhow::Result<B256> {
        let block = self.ask("eth_getBlockByNumber", &json!(["0x0", false]))?;
        block["hash"].as_str().and_then(|hash| hash.parse().ok()).context("the node does not know block 0")
    }
}

/// A number of 64 bits in an answer.
pub(crate) fn quantity(answer: &Value) -> anyhow::Result<u64> {
    let number: U64 = serde_json::from_value(answer.clone())
        .with_context(|| format!("the node answers {answer} instead of a number"))?;
    Ok(number.to())
}

/// An amount of money, or a price, in an answer.
pub(crate) fn wei(answer: &Value) -> anyhow::Result<U256> {
    serde_json::from_value(answer.clone())
        .with_context(|| format!("the node answers {answer} instead of an amount"))
}

/// A time in an answer, `{ ms, iso }`.
pub(crate) fn time(answer: &Value) -> anyhow::Result<TimestampMs> {
    quantity(&answer["ms"])
        .map(TimestampMs)
        .map_err(|_| anyhow!("the node answers {answer} instead of a time"))
}

/// A time that may be missing.
pub(crate) fn maybe_time(answer: &Value) -> Option<TimestampMs> {
    time(answer).ok()
}

/// A text in an answer. Whoever runs the node chose the words: none of them may steer a terminal.
pub(crate) fn text(answer: &Value) -> String {
    match answer {
        Value::String(text) => printable(text, usize::MAX),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}
