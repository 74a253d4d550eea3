//! The config file of a node, validator or follower.

use super::keys;
use crate::{
    chain::Keeping,
    grpc::GrpcSettings,
    index_command, private_file,
    prune::COPIED_BLOCKS,
    regular_file::{self, CONFIG_BYTES_MAX},
};
use alloy_primitives::B256;
use almanac_bft::{NetworkConfig, Peer, PeerAddress, TIMEOUT_NS_PER_GAS, TimeConfig};
use almanac_mempool::PoolConfig;
use almanac_primitives::DurationMs;
use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// What a node needs to know beside the genesis. Paths are relative to the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NodeConfig {
    /// The genesis of the chain.
    pub(super) genesis: PathBuf,
    /// The node's key. It votes if the genesis names the key as a validator's, and follows otherwise.
    pub(super) key: PathBuf,
    /// Where the chain is kept.
    pub(super) datadir: PathBuf,
    /// Where peers connect.
    pub(super) listen: SocketAddr,
    /// Where JSON-RPC is served.
    pub(super) rpc: SocketAddr,
    /// Time between blocks.
    pub(super) block_time_ms: DurationMs,
    /// The other validators.
    pub(super) peers: Vec<PeerConfig>,
    /// Public keys of the followers that may connect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) followers: Vec<B256>,
    /// How a node with an empty directory, or one that is far behind, gets to where the others are.
    #[serde(default, skip_serializing_if = "Sync::is_default")]
    pub(super) sync: Sync,
    /// Blocks before the last one whose states are kept and can be asked for. All without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) history: Option<u64>,
    /// Blocks before the last one that other nodes can have from this one. All without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) blocks: Option<u64>,
    /// With `"sync": "state"`: how many blocks a node may be behind at its start before it copies the state again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sync_behind_blocks: Option<u64>,
    /// Memory for what the index has written and not put in its place yet, in MiB. It takes up to four times as much
    /// for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) index_buffer_mb: Option<u64>,
    /// Memory for what was read from the disk, in MiB: four fifths for the index, the rest for the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cache_mb: Option<u64>,
    /// Nanoseconds that a gas takes this machine at most. Timeouts are no shorter than a full block takes by it; 0
    /// leaves them to the block time alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) timeout_ns_per_gas: Option<u64>,
    /// Most pending transactions in the pool; a tenth of them may be parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pool_max: Option<u64>,
    /// Where gRPC is served. Nowhere without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) grpc: Option<GrpcSettings>,
}

/// How a node with an empty directory, or one that is far behind, gets to where the others are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Sync {
    /// It fetches and executes every block.
    #[default]
    Blocks,
    /// It copies the state after a recent final block, and has no blocks before. What it had is replaced.
    State,
}

impl Sync {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Another validator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PeerConfig {
    pub(super) public_key: B256,
    /// An IP address or a name, and a port. A name is looked up each time the peer is dialled.
    #[serde(with = "as_text")]
    pub(super) address: PeerAddress,
}

/// What has a form for people stands in that form.
pub(super) mod as_text {
    use serde::{Deserialize as _, Deserializer, Serializer, de};
    use std::{fmt::Display, str::FromStr};

    pub(crate) fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Shortest and longest time between blocks.
const BLOCK_TIME_MS: std::ops::RangeInclusive<u64> = 10..=60_000;

/// Least that is kept of history and blocks: what a node needs that copies the state from this one.
const KEPT_BLOCKS_MIN: u64 = 2 * COPIED_BLOCKS;

/// Least and most memory for the index to write in, in MiB.
const INDEX_BUFFER_MB: std::ops::RangeInclusive<u64> = 1..=1_024;

/// Blocks that a node may be behind before copying is worth it, where nothing else is said. See
/// docs/decisions/0021-catching-up.md for what both cost.
const SYNC_BEHIND_BLOCKS: u64 = 20_000;

/// Fewest and most of them.
const SYNC_BEHIND_BLOCKS_RANGE: std::ops::RangeInclusive<u64> = 10..=1_000_000_000;

/// Longest time that a gas may be said to take, in nanoseconds: far more than the dearest takes (13, see `TIMEOUT_NS_PER_GAS`).
const TIMEOUT_NS_PER_GAS_MAX: u64 = 1_000;

/// Least and most memory for what was read from the disk, in MiB.
const CACHE_MB: std::ops::RangeInclusive<u64> = 5..=65_536;

/// Fewest and most transactions that a pool may be told to hold. With fewer than a block holds, blocks are not full.
pub(crate) const POOL_MAX: std::ops::RangeInclusive<u64> = 100..=1_000_000;

impl NodeConfig {
    /// What every network says; the rest is left to defaults. The genesis is one folder up, the chain beside the file.
    pub(super) fn new(
        key: PathBuf,
        listen: SocketAddr,
        rpc: SocketAddr,
        block_time_ms: DurationMs,
        peers: Vec<PeerConfig>,
    ) -> Self {
        Self {
            genesis: "../genesis.json".into(),
            key,
            datadir: "data".into(),
            listen,
            rpc,
            block_time_ms,
            peers,
            followers: Vec::new(),
            sync: Sync::default(),
            history: None,
            blocks: None,
            sync_behind_blocks: None,
            index_buffer_mb: None,
            cache_mb: None,
            timeout_ns_per_gas: None,
            pool_max: None,
            grpc: None,
        }
    }

    /// Writes a file that [`Self::read`] reads.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let json = serde_json::to_string_pretty(self).expect("a configuration has only string keys");
        private_file::replace(path, (json + "\n").as_bytes())
    }

    /// Reads a file, and makes its paths usable from anywhere.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let json = regular_file::read_text(path, CONFIG_BYTES_MAX)?;
        let mut config: Self = serde_json::from_str(&json)
            .with_context(|| format!("{} is not a config of a node", path.display()))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        for place in [&mut config.genesis, &mut config.key, &mut config.datadir] {
            *place = directory.join(&*place);
        }
        if let Some(grpc) = &mut config.grpc {
            grpc.resolve(directory);
        }
        check_block_time(config.block_time_ms).context("blockTimeMs")?;
        if let Some(given) = config.index_buffer_mb {
            let (least, most) = (INDEX_BUFFER_MB.start(), INDEX_BUFFER_MB.end());
            let is_allowed = INDEX_BUFFER_MB.contains(&given);
            ensure!(is_allowed, "indexBufferMb is {given}, it must be from {least} to {most}");
        }
        if let Some(given) = config.cache_mb {
            let (least, most) = (CACHE_MB.start(), CACHE_MB.end());
            ensure!(CACHE_MB.contains(&given), "cacheMb is {given}, it must be from {least} to {most}");
        }
        for (name, kept) in [("history", config.history), ("blocks", config.blocks)] {
            let given = kept.unwrap_or(u64::MAX);
            ensure!(given >= KEPT_BLOCKS_MIN, "{name} is {given}, it must be at least {KEPT_BLOCKS_MIN}");
        }
        if let Some(given) = config.sync_behind_blocks {
            let (least, most) = (SYNC_BEHIND_BLOCKS_RANGE.start(), SYNC_BEHIND_BLOCKS_RANGE.end());
            let is_allowed = SYNC_BEHIND_BLOCKS_RANGE.contains(&given);
            ensure!(is_allowed, "syncBehindBlocks is {given}, it must be from {least} to {most}");
        }
        if let Some(given) = config.timeout_ns_per_gas {
            let most = TIMEOUT_NS_PER_GAS_MAX;
            ensure!(given <= most, "timeoutNsPerGas is {given}, it must be from 0 to {most}");
        }
        if let Some(given) = config.pool_max {
            let (least, most) = (POOL_MAX.start(), POOL_MAX.end());
            ensure!(POOL_MAX.contains(&given), "poolMax is {given}, it must be from {least} to {most}");
        }
        Ok(config)
    }

    /// How many blocks the node may be behind before it copies the state again, if it ever does.
    pub(super) fn behind_max(&self) -> u64 {
        self.sync_behind_blocks.unwrap_or(SYNC_BEHIND_BLOCKS)
    }

    /// How much is kept on disk, and in how much memory the index writes it.
    pub(super) fn keeping(&self) -> Keeping {
        let mut index = index_command::keeping(self.history);
        if let Some(mebibytes) = self.index_buffer_mb {
            index.buffer_bytes = mebibytes << 20;
        }
        let mut state_cache_bytes = None;
        if let Some(mebibytes) = self.cache_mb {
            index.cache_bytes = (mebibytes << 20) / 5 * 4;
            state_cache_bytes = usize::try_from((mebibytes << 20) / 5).ok();
        }
        Keeping { index, blocks: self.blocks, state_cache_bytes }
    }

    /// How much the pool holds.
    pub(super) fn pool(&self) -> PoolConfig {
        let config = PoolConfig::default();
        match self.pool_max.and_then(|count| usize::try_from(count).ok()) {
            Some(count) => config.with_count_max(count),
            None => config,
        }
    }

    /// How the node takes part in the network. Reads its key.
    pub(super) fn network(&self) -> anyhow::Result<NetworkConfig> {
        let peer = |peer: &PeerConfig| Peer { public_key: peer.public_key, address: peer.address.clone() };
        Ok(NetworkConfig {
            key: keys::read(&self.key)?,
            listen: self.listen,
            peers: self.peers.iter().map(peer).collect(),
            followers: self.followers.clone(),
            time: TimeConfig { block_time: self.block_time_ms, ..TimeConfig::default() },
            ns_per_gas: self.timeout_ns_per_gas.unwrap_or(TIMEOUT_NS_PER_GAS),
        })
    }
}

/// Checks that blocks can be made so often.
pub(super) fn check_block_time(DurationMs(given): DurationMs) -> anyhow::Result<()> {
    let (least, most) = (BLOCK_TIME_MS.start(), BLOCK_TIME_MS.end());
    ensure!(
        BLOCK_TIME_MS.contains(&given),
        "the block time is {given} ms, it must be from {least} to {most}"
    );
    Ok(())
}

/// Whether a configuration may have a key of this name.
#[cfg(test)]
pub(crate) fn is_key(name: &str) -> bool {
    let read = serde_json::from_str::<NodeConfig>(&format!("{{\"{name}\": null}}"));
    !read.unwrap_err().to_string().starts_with("unknown field")
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_index::IndexConfig;

    const FILE: &str = r#"{
        "genesis": "../genesis.json", "key": "validator.key", "datadir": "/data",
        "listen": "127.0.0.1:30300", "rpc": "127.0.0.1:8545", "blockTimeMs": BLOCK_TIME, "peers": []
    }"#;

    fn read(block_time: &str) -> anyhow::Result<NodeConfig> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.json");
        std::fs::write(&path, FILE.replace("BLOCK_TIME", block_time)).unwrap();
        let config = NodeConfig::read(&path)?;
        assert_eq!(config.key, directory.path().join("validator.key"));
        assert_eq!(config.datadir, Path::new("/data"), "what is absolute stays");
        Ok(config)
    }

    #[test]
    fn both_sides_of_the_block_time() {
        for allowed in ["10", "60000"] {
            assert_eq!(read(allowed).unwrap().block_time_ms.0.to_string(), allowed);
        }
        for refused in ["9", "60001", "0"] {
            let error = format!("{:#}", read(refused).unwrap_err());
            assert!(error.contains("blockTimeMs") && error.contains("10 to 60000"), "{error}");
        }
    }

    #[test]
    fn both_sides_of_the_memory_for_the_index() {
        let with = |given: u64| read(&format!("500, \"indexBufferMb\": {given}"));
        for allowed in [1, 1_024] {
            assert_eq!(with(allowed).unwrap().keeping().index.buffer_bytes, allowed << 20);
        }
        for refused in [0, 1_025] {
            assert!(with(refused).unwrap_err().to_string().contains("from 1 to 1024"));
        }
        assert_eq!(read("500").unwrap().keeping().index, IndexConfig::archive());
    }

    #[test]
    fn both_sides_of_the_memory_for_what_was_read() {
        let with = |given: u64| read(&format!("500, \"cacheMb\": {given}"));
        for allowed in [5, 65_536] {
            let keeping = with(allowed).unwrap().keeping();
            let state = keeping.state_cache_bytes.unwrap() as u64;
            assert_eq!((keeping.index.cache_bytes, state), ((allowed << 20) / 5 * 4, (allowed << 20) / 5));
        }
        for refused in [4, 65_537] {
            assert!(with(refused).unwrap_err().to_string().contains("from 5 to 65536"));
        }
    }

    #[test]
    fn both_sides_of_what_is_kept() {
        let with = |name: &str, given: u64| read(&format!("500, \"{name}\": {given}"));
        assert_eq!(with("history", KEPT_BLOCKS_MIN).unwrap().keeping().index.history_depth, KEPT_BLOCKS_MIN);
        assert_eq!(with("blocks", KEPT_BLOCKS_MIN).unwrap().keeping().blocks, Some(KEPT_BLOCKS_MIN));
        for name in ["history", "blocks"] {
            let refused = with(name, KEPT_BLOCKS_MIN - 1).unwrap_err().to_string();
            assert_eq!(refused, format!("{name} is 8191, it must be at least 8192"));
        }
        let whole = read("500").unwrap().keeping();
        assert_eq!((whole.index.history_depth, whole.blocks), (u64::MAX, None));
    }

    #[test]
    fn both_sides_of_the_blocks_behind() {
        let with = |given: u64| read(&format!("500, \"syncBehindBlocks\": {given}"));
        for allowed in [10, 1_000_000_000] {
            assert_eq!(with(allowed).unwrap().behind_max(), allowed);
        }
        for refused in [9, 1_000_000_001] {
            assert!(with(refused).unwrap_err().to_string().contains("from 10 to 1000000000"));
        }
        assert_eq!(read("500").unwrap().behind_max(), SYNC_BEHIND_BLOCKS);
    }

    #[test]
    fn both_sides_of_the_size_of_the_pool() {
        let with = |given: u64| read(&format!("500, \"poolMax\": {given}"));
        for allowed in [100, 1_000_000] {
            let pool = with(allowed).unwrap().pool();
            assert_eq!((pool.count_max as u64, pool.parked_count_max as u64), (allowed, allowed / 10));
        }
        for refused in [99, 1_000_001] {
            assert!(with(refused).unwrap_err().to_string().contains("from 100 to 1000000"));
        }
    }

    #[test]
    fn both_sides_of_the_time_of_a_gas() {
        let with = |given: u64| read(&format!("500, \"timeoutNsPerGas\": {given}"));
        for allowed in [0, 1_000] {
            assert_eq!(with(allowed).unwrap().timeout_ns_per_gas, Some(allowed));
        }
        assert!(with(1_001).unwrap_err().to_string().contains("from 0 to 1000"));
    }

    #[test]
    fn peers_have_addresses_or_names() {
        let with = |address: &str| {
            let peer = format!("[{{\"publicKey\": \"{}\", \"address\": \"{address}\"}}]", B256::ZERO);
            serde_json::from_str::<Vec<PeerConfig>>(&peer)
        };
        for allowed in ["127.0.0.1:30300", "v0.example:30300"] {
            let written = serde_json::to_string(&with(allowed).unwrap()).unwrap();
            assert!(written.contains(allowed), "{written}");
        }
        assert!(with("v0.example").unwrap_err().to_string().contains("write IP:PORT or NAME:PORT"));
    }

    #[test]
    fn unknown_fields_are_refused() {
        assert!(read("500, \"perrs\": []").is_err());
    }
}
