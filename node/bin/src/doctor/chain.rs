//! What a running node says of itself.

use super::Check;
use crate::{
    client::{
        network,
        node::{NodeArgs, quantity, text, wei},
        words::distance,
    },
    http::CallError,
    span::coins,
};
use alloy_primitives::Address;
use almanac_primitives::{TimestampMs, Wei};
use serde_json::{Value, json};
use std::time::SystemTime;

/// Difference of the clocks that transactions and runs do not notice.
const CLOCK_MS_MAX: u64 = 2_000;
/// A network that made no block for so long stands still.
const BLOCK_AGE_MS_MAX: u64 = 30_000;
/// JSON-RPC's code of a method that a node does not serve.
const UNKNOWN_METHOD: i64 = -32_601;

/// Checks of the node. Where none answers, there is one check.
pub(super) fn checks(node: &NodeArgs) -> Vec<Check> {
    let version = match node.try_ask("web3_clientVersion", &json!([])) {
        Ok(version) => text(&version),
        Err(error) => {
            let advice = format!(
                "start one with `almanac dev`, or pass --rpc with the address of yours; does a firewall or another \
                 program hold {}?",
                node.rpc.host()
            );
            return vec![Check::broken("node", format!("{:#}", anyhow::Error::from(error)), advice)];
        }
    };
    let answers = || -> anyhow::Result<Vec<Check>> {
        let id = quantity(&node.ask("eth_chainId", &json!([]))?)?;
        let is_network = is_network(node);
        let kind = if is_network { "node of a network" } else { "developer chain" };
        let mut checks = vec![Check::well("node", format!("{version}, {kind}, chain id {id}"))];
        let head = node.ask("eth_getBlockByNumber", &json!(["latest", false]))?;
        checks.push(block(&head, is_network)?);
        checks.push(clock(node, is_network)?);
        if is_network {
            checks.push(syncing(&node.ask("eth_syncing", &json!([]))?));
            let known = network::role(node);
            checks.push(role(known.as_deref()));
            checks
                .push(peers(network::peers(node), known.as_deref() == Some("validator") && !is_old(&head)?));
        }
        checks.push(schedules(node)?);
        Ok(checks)
    };
    answers().unwrap_or_else(|error| {
        let advice =
            "is it an Almanac node? Compare its version with `almanac --version`, and look into its log";
        vec![Check::broken("node", format!("{version}: {error:#}"), advice)]
    })
}

/// Nodes of a network serve certificates; developer chains have none.
fn is_network(node: &NodeArgs) -> bool {
    !matches!(
        node.try_ask("almanac_getFinality", &json!(["0x0"])),
        Err(CallError::Refused { code: UNKNOWN_METHOD, .. })
    )
}

fn machine_now() -> TimestampMs {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    TimestampMs(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

fn is_old(head: &Value) -> anyhow::Result<bool> {
    let time = TimestampMs(quantity(&head["timestampMs"])?);
    Ok(machine_now().since(time).is_some_and(|age| age.0 > BLOCK_AGE_MS_MAX))
}

fn block(head: &Value, is_network: bool) -> anyhow::Result<Check> {
    let (number, time) = (quantity(&head["number"])?, TimestampMs(quantity(&head["timestampMs"])?));
    let found = format!("block {number}, {}", distance(time, machine_now()));
    Ok(match is_network && is_old(head)? {
        true => Check::broken(
            "blocks",
            found,
            "no block became final for a while: are more than two thirds of the validators up, and is this node connected?",
        ),
        false => Check::well("blocks", found),
    })
}

fn clock(node: &NodeArgs, is_network: bool) -> anyhow::Result<Check> {
    let (theirs, ours) = (node.now()?, machine_now());
    let apart = theirs.0.abs_diff(ours.0);
    let found =
        format!("the chain is {apart} ms {} this machine", if theirs > ours { "ahead of" } else { "behind" });
    Ok(match (apart > CLOCK_MS_MAX, is_network) {
        (false, _) => Check::well("clock", found),
        (true, false) => Check::doubtful(
            "clock",
            found,
            "somebody moved the developer chain's time; words such as \"in 2 hours\" count from it",
        ),
        (true, true) => {
            Check::doubtful("clock", found, "synchronise this machine's clock, for example with chrony")
        }
    })
}

fn syncing(answer: &Value) -> Check {
    match answer.as_bool() {
        Some(false) => Check::well("sync", "up to date"),
        _ => Check::doubtful(
            "sync",
            format!("still catching up: {answer}"),
            "wait, and ask again: `almanac doctor`",
        ),
    }
}

fn role(role: Option<&str>) -> Check {
    match role {
        Some("silent" | "waiting") => Check::doubtful(
            "role",
            "validator that does not vote yet",
            "it does not know what it signed before, and votes by itself once that cannot matter (docs/followers.md)",
        ),
        Some(role) => Check::well("role", role),
        None => {
            Check::doubtful("role", "/health is not reachable", "ask the node itself, not a proxy before it")
        }
    }
}

/// A validator whose blocks become final without anybody else is the only one of its network.
fn peers(count: Option<usize>, is_enough: bool) -> Check {
    match count {
        Some(0) if is_enough => Check::well("peers", "none: this validator makes blocks alone"),
        Some(0) => Check::broken(
            "peers",
            "none",
            "check the addresses of the peers in its configuration, and the firewall of its p2p port",
        ),
        Some(count) => Check::well("peers", count.to_string()),
        None => Check::doubtful(
            "peers",
            "/metrics is not reachable",
            "ask the node itself, not a proxy before it",
        ),
    }
}

fn schedules(node: &NodeArgs) -> anyhow::Result<Check> {
    let answer = node.ask("almanac_agendaBuckets", &json!([{}]))?;
    let lanes = answer["lanes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let sum = |field: &str| lanes.iter().filter_map(|lane| quantity(&lane[field]).ok()).sum::<u64>();
    let held: Vec<String> =
        lanes.iter().filter(|lane| lane["isHeld"] == true).map(|lane| text(&lane["lane"])).collect();
    let found = format!("{} pending, {} of them overdue", sum("pending"), sum("overdue"));
    Ok(match held.is_empty() {
        true => Check::well("schedules", found),
        false => Check::doubtful(
            "schedules",
            format!("{found}; paused: {}", held.join(", ")),
            "governance paused these lanes: their runs wait",
        ),
    })
}

/// Whether an account can pay for anything.
pub(super) fn balance(node: &NodeArgs, account: Address) -> Check {
    let balance = node.ask("eth_getBalance", &json!([account, "latest"])).and_then(|answer| wei(&answer));
    match balance {
        Ok(balance) if balance.is_zero() => Check::broken(
            "balance",
            format!("{account} has nothing"),
            "send it coins; on a developer chain: almanac send --dev-account 0 --to ADDRESS --value 1coins",
        ),
        Ok(balance) => Check::well("balance", format!("{account} has {}", coins(Wei(balance)))),
        Err(error) => Check::broken("balance", format!("{error:#}"), "mend the node first"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A network of one validator was told that its peers are broken.
    #[test]
    fn a_validator_that_makes_blocks_alone_lacks_no_peers() {
        for (count, is_enough, result) in [
            (Some(0), true, "ok"),
            (Some(0), false, "broken"),
            (Some(3), false, "ok"),
            (None, true, "warning"),
        ] {
            assert_eq!(peers(count, is_enough).verdict.name(), result, "{count:?} {is_enough}");
        }
    }
}
