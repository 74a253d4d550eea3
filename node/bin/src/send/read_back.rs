//! What a transaction does, read back before anybody signs it.

use super::{SendCommand, draft::Draft, fill};
use crate::{
    client::{
        call_words::{call_words, creation_words},
        sending::sender_facts,
    },
    span::{coins, gwei},
};
use alloy_primitives::U256;
use almanac_primitives::{NativeCall, NativeTransaction, TimestampMs, Wei, native::Kind};
use almanac_proof::time::iso;
use serde_json::{Value, json};

/// Asks the person at the terminal, if there is one. `false` where it was only to be looked at.
pub(super) fn agree(command: &SendCommand, draft: &Draft) -> anyhow::Result<bool> {
    let expires = match command.file {
        // Its time has begun.
        Some(_) => expiry_words(&draft.transaction),
        None => fill::valid_for(command, draft.transaction.kind)?
            .map(|seconds| format!(", expires {seconds} s after you agree"))
            .unwrap_or_default(),
    };
    let question = if command.out.is_some() { "Sign it?" } else { "Send it?" };
    command.sending.agree_at_terminal(question, || read_back(draft, &expires), &described(draft))
}

fn read_back(draft: &Draft, expires: &str) -> String {
    let transaction = &draft.transaction;
    let mut facts = sender_facts(transaction.sender, &draft.chain);
    for line in numbered_calls(&transaction.calls) {
        facts.add(&line.0, line.1);
    }
    facts.add("kind", kind_words(transaction) + expires);
    let price = U256::from(transaction.max_fee_per_gas);
    let most = coins(Wei(price.saturating_mul(U256::from(transaction.gas_limit))));
    facts.add("gas", format!("{}, at most {most} at up to {}", transaction.gas_limit, gwei(price)));
    if let Some(payer) = transaction.fee_payer {
        facts.add("fee payer", payer.to_string());
    }
    facts.text()
}

/// A line for each call; which one it is, if there are several.
pub(super) fn numbered_calls(calls: &[NativeCall]) -> Vec<(String, String)> {
    let name = |index: usize| if calls.len() == 1 { "call".to_owned() } else { format!("call {index}") };
    let words = |call: &NativeCall| match call.to {
        Some(to) => call_words(to, call.value, &call.input),
        None => creation_words(call.value, &call.input),
    };
    calls.iter().enumerate().map(|(index, call)| (name(index), words(call))).collect()
}

/// "orderless, nonce 9".
pub(super) fn kind_words(transaction: &NativeTransaction) -> String {
    match transaction.kind {
        Kind::Sequence => format!("sequence number {}", transaction.nonce),
        Kind::Orderless => format!("orderless, nonce {}", transaction.nonce),
    }
}

/// ", expires 2026-12-01T09:00:00.000Z", or nothing.
pub(super) fn expiry_words(transaction: &NativeTransaction) -> String {
    match transaction.expiration {
        0 => String::new(),
        second => format!(", expires {}", iso(TimestampMs(second.saturating_mul(1_000)))),
    }
}

/// For programs.
fn described(draft: &Draft) -> Value {
    let Draft { chain, transaction } = draft;
    let call =
        |call: &NativeCall| json!({ "to": call.to, "value": call.value.to_string(), "data": call.input });
    json!({ "chainId": chain.id, "genesis": chain.genesis, "from": transaction.sender,
        "feePayer": transaction.fee_payer, "nonce": transaction.nonce.to_string(),
        "isOrderless": transaction.kind == Kind::Orderless, "gasLimit": transaction.gas_limit,
        "maxFeePerGas": transaction.max_fee_per_gas.to_string(),
        "calls": transaction.calls.iter().map(call).collect::<Vec<_>>() })
}
