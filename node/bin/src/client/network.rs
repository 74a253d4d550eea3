//! What the pages of a node say of its place in a network. JSON-RPC does not: `net_peerCount` is 0 on every node.

use super::node::{NodeArgs, text};
use serde_json::Value;

/// The node's role: validator, silent, follower; `None` if the page is not reachable, for example behind a proxy.
pub(crate) fn role(node: &NodeArgs) -> Option<String> {
    let health: Value = serde_json::from_str(&node.page("/health").ok()?).ok()?;
    health["role"].as_str().map(|_| text(&health["role"]))
}

/// How many peers are connected, if the page is reachable.
pub(crate) fn peers(node: &NodeArgs) -> Option<usize> {
    node.page("/metrics").ok().map(|metrics| count_peers(&metrics))
}

/// The transport has a line for each peer that is connected, with the time since when.
fn count_peers(metrics: &str) -> usize {
    let is_peer = |line: &&str| {
        let (name, labels) = line.split_once('{').unwrap_or_default();
        name.ends_with("_connected") && labels.contains("peer=\"")
    };
    metrics.lines().filter(is_peer).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_counted_once() {
        let metrics = "# HELP network_tracker_directory_connected Unix timestamp
network_tracker_directory_connected{peer=\"aa\"} 1794919337000
network_tracker_directory_connected{peer=\"bb\"} 1794919337001
network_tracker_directory_updates_total{peer=\"bb\"} 1
almanac_block_height 5
";
        assert_eq!(count_peers(metrics), 2);
        assert_eq!(count_peers(""), 0);
    }
}
