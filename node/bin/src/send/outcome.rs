//! Sends a transaction, waits for its receipt, and prints what became of it.

use super::{
    SendCommand,
    draft::Draft,
    read_back::{expiry_words, kind_words, numbered_calls},
};
use crate::{
    client::node::{NodeArgs, quantity},
    span::coins,
};
use alloy_primitives::{TxHash, U256};
use almanac_primitives::{NativeTransaction, Wei};
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::{
    fmt::Write as _,
    io::Write as _,
    time::{Duration, Instant},
};

/// Longest time until it is in a block: an orderless one is never later.
const RECEIPT_PATIENCE: Duration = Duration::from_secs(65);
/// Time between two looks for the receipt.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Sends it. An error if the node refuses it, or if it failed in its block.
pub(super) fn send(command: &SendCommand, draft: &Draft) -> anyhow::Result<()> {
    let (encoded, hash) = draft.encoded()?;
    let node = &command.sending.node;
    node.ask("eth_sendRawTransaction", &json!([encoded]))?;
    let receipt = match command.is_not_waiting {
        true => Value::Null,
        false => wait(node, hash)?,
    };
    let text = match command.sending.output.is_json {
        true => json!({ "hash": hash, "receipt": receipt }).to_string() + "\n",
        false => told(&draft.transaction, hash, &receipt)?,
    };
    std::io::stdout().write_all(text.as_bytes()).context("cannot print")?;
    check(&receipt)
}

/// Fails as the transaction did.
pub(super) fn check(receipt: &Value) -> anyhow::Result<()> {
    match (receipt["status"].as_str(), receipt["failedCall"].as_str()) {
        (Some("0x0"), Some(_)) => {
            bail!("call {} failed and undid the others", quantity(&receipt["failedCall"])?)
        }
        (Some("0x0"), None) => bail!("the transaction failed"),
        _ => Ok(()),
    }
}

pub(super) fn wait(node: &NodeArgs, hash: TxHash) -> anyhow::Result<Value> {
    let end = Instant::now() + RECEIPT_PATIENCE;
    loop {
        let receipt = node.ask("eth_getTransactionReceipt", &json!([hash]))?;
        if !receipt.is_null() {
            return Ok(receipt);
        }
        if Instant::now() > end {
            bail!("{hash} was taken, but is in no block after {} s", RECEIPT_PATIENCE.as_secs());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// What became of it, for people.
fn told(transaction: &NativeTransaction, hash: TxHash, receipt: &Value) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(text, "{name:<10} {value}");
    };
    line("sent", &hash);
    line("from", &transaction.sender);
    if let Some(payer) = transaction.fee_payer {
        line("fee payer", &payer);
    }
    line("kind", &(kind_words(transaction) + &expiry_words(transaction)));
    for (name, words) in numbered_calls(&transaction.calls) {
        line(&name, &words);
    }
    if receipt.is_null() {
        return Ok(text);
    }
    let gas = quantity(&receipt["gasUsed"])?;
    let price: U256 = serde_json::from_value(receipt["effectiveGasPrice"].clone()).unwrap_or_default();
    line("block", &quantity(&receipt["blockNumber"])?);
    line("status", &if receipt["status"] == "0x1" { "success" } else { "failed" });
    line("gas used", &gas);
    line("fee", &coins(Wei(price.saturating_mul(U256::from(gas)))));
    if let Some(contract) = receipt["contractAddress"].as_str() {
        line("created", &contract);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Address, B256};
    use almanac_primitives::testing::native::{native, native_call, orderless};

    #[test]
    fn the_outcome_as_people_read_it() {
        let sender = Address::repeat_byte(1);
        let calls = vec![native_call(Address::repeat_byte(7), 5, vec![]); 2];
        let batch = orderless(sender, 9, 1_800_000_000, calls);
        let batch = NativeTransaction { fee_payer: Some(Address::repeat_byte(2)), ..batch };
        let receipt =
            json!({ "blockNumber": "0x5", "status": "0x1", "gasUsed": "0x5208", "effectiveGasPrice": "0x2" });
        let expected = "\
sent       0x0000000000000000000000000000000000000000000000000000000000000000
from       0x0101010101010101010101010101010101010101
fee payer  0x0202020202020202020202020202020202020202
kind       orderless, nonce 9, expires 2027-01-15T08:00:00.000Z
call 0     pays 0.000000000000000005 coins to 0x0707070707070707070707070707070707070707
call 1     pays 0.000000000000000005 coins to 0x0707070707070707070707070707070707070707
block      5
status     success
gas used   21000
fee        0.000000000000042 coins
";
        assert_eq!(told(&batch, B256::ZERO, &receipt).unwrap(), expected);
        let single = native(sender, 3, vec![native_call(sender, 0, vec![])]);
        let shown = told(&single, B256::ZERO, &Value::Null).unwrap();
        assert!(shown.ends_with("kind       sequence number 3\ncall       pays 0 coins to 0x0101010101010101010101010101010101010101\n"), "{shown}");
    }
}
