//! When a run is over, and what must hold then.

use crate::sim::{
    client::{self, RECEIVER, account},
    jobs, market,
    network::Network,
    node::Node,
    opened::Store,
    orderless, signed,
};
use alloy_primitives::U256;
use almanac_bft::{Replica, certificate};
use almanac_primitives::{StateKey, TimestampMs, addresses::CRON_REGISTRY, testing::person};
use almanac_state::{ArchivedBlock, StateView as _};
use commonware_cryptography::ed25519::PublicKey;
use commonware_glue::simulate::{exit::ExitCondition, property::Property, tracker::ProgressTracker};
use commonware_utils::test_rng;
use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
};

type Checked<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// All validators have reached a height, and all transfers and jobs are final on each of them.
#[derive(Clone)]
pub struct Finished {
    pub network: Network,
    pub height: u64,
    /// Blocks must have come up to this time.
    pub until: TimestampMs,
}

impl ExitCondition<PublicKey, Node> for Finished {
    fn name(&self) -> &str {
        "finished"
    }

    fn requires_polling(&self) -> bool {
        true
    }

    fn reached<'a>(
        &'a self,
        _: &'a ProgressTracker<PublicKey>,
        nodes: &'a [&'a Node],
        _: usize,
    ) -> Checked<'a, bool> {
        Box::pin(async move {
            self.network.check_violations()?;
            if nodes.len() < self.network.keys.len() || self.network.is_anyone_silent() {
                return Ok(false);
            }
            for node in self.network.in_order(nodes) {
                // One whose disk has failed is over, and waits for its restart.
                let Some(replica) = node.replica() else { return Ok(false) };
                let tip = replica.tip().header;
                if tip.number < self.height || tip.timestamp < self.until {
                    return Ok(false);
                }
                if self.is_done(&replica).await != Some(true) {
                    return Ok(false);
                }
            }
            self.network.note_end();
            Ok(true)
        })
    }
}

impl Finished {
    /// Whether all of its transactions and runs are in the chain of a validator. `None` where that moves on while it is
    /// read: so it is read at once.
    async fn is_done(&self, replica: &Replica<Store>) -> Option<bool> {
        let clients = self.network.participants();
        let mut keys: Vec<_> =
            clients.map(|client| StateKey::Account(person(client as u64).address)).collect();
        let clients = keys.len();
        keys.extend([CRON_REGISTRY, signed::treasury().address].map(jobs::calls_slot));
        let mut stored = replica.tip().state.get_many(&keys).await.ok()?;
        let executed = stored.pop().map(jobs::decode_calls)?;
        let runs = stored.pop().map(jobs::decode_calls)?;
        let mut nonces = stored.into_iter().map(|stored| client::decode_account(stored).nonce);
        let is_executed = !self.network.has_signed || executed >= signed::EXECUTIONS;
        let have_run = runs >= U256::from(clients as u64 * jobs::RUNS);
        Some(is_executed && have_run && nonces.all(|nonce| nonce >= self.network.transfers))
    }
}

/// What all validators have in common at the end.
#[derive(Clone)]
pub struct Agreement {
    pub network: Network,
    /// The chain of the first validator, for tests that look closer.
    pub chain: Arc<Mutex<Vec<ArchivedBlock>>>,
}

impl Agreement {
    pub fn new(network: &Network) -> Self {
        Self { network: network.clone(), chain: Arc::default() }
    }

    /// `same_block_at_height`, and each a child of the one before, later than it.
    fn check_chain(&self, node: &Node, archived: ArchivedBlock) -> Result<(), String> {
        let mut chain = self.chain.lock().unwrap();
        let height = archived.block.header.number;
        let position = usize::try_from(height - 1).unwrap();
        if let Some(expected) = chain.get(position) {
            if archived.block != expected.block || archived.receipts != expected.receipts {
                return Err(format!("validator {} has another block {height}", node.index));
            }
            return Ok(());
        }
        let parent = chain.last().map_or(&self.network.genesis_header, |archived| &archived.block.header);
        let header = &archived.block.header;
        if header.parent_hash != parent.hash() || header.timestamp <= parent.timestamp {
            return Err(format!("block {height} does not follow its parent"));
        }
        chain.push(archived);
        Ok(())
    }

    /// Each certificate signs the hash of its own block.
    fn check_certificate(&self, archived: &ArchivedBlock) -> Result<bool, String> {
        let Some(certificate) = &archived.certificate else { return Ok(false) };
        let Network { validators, namespace, .. } = &self.network;
        let certified = certificate::verify(certificate, validators, namespace, &mut test_rng())
            .map_err(|error| error.to_string())?;
        if certified.hash != archived.block.hash() {
            return Err(format!("a certificate for {} beside {}", certified.hash, archived.block.hash()));
        }
        Ok(true)
    }

    async fn check(&self, nodes: &[&Node]) -> Result<(), String> {
        self.network.check_violations()?;
        // Validators first: the chain of a follower has no beginning.
        let nodes = self.network.in_order(nodes);
        for node in &nodes {
            let chain = node.chain().await?;
            let (blocks, mut certified) = (chain.len(), 0);
            for archived in chain {
                certified += usize::from(self.check_certificate(&archived)?);
                self.check_chain(node, archived)?;
            }
            // Where more is wrong than that, most blocks become final by the certificate of a later one.
            if self.network.is_bearable() && certified * 2 < blocks {
                return Err(format!("only {certified} of {blocks} blocks have a certificate"));
            }
            self.check_transfers(node).await?;
        }
        let runs = jobs::check_within(&self.chain.lock().unwrap(), self.network.late_blocks_max())?;
        if self.network.has_market {
            market::check(&self.chain.lock().unwrap(), self.network.participants().count())?;
        }
        if self.network.has_signed {
            let group = signed::Group::of(&self.network);
            signed::check(&self.chain.lock().unwrap(), &group, &self.network.marks)?;
        }
        orderless::check(&self.chain.lock().unwrap(), &self.network.orderless)?;
        self.check_count(&nodes, runs).await
    }

    /// No transfer was lost or done twice.
    async fn check_transfers(&self, node: &Node) -> Result<(), String> {
        let expected = client::expected_balance(self.network.participants(), self.network.transfers);
        let replica = node.replica().ok_or("a validator does not run")?;
        let found = account(&replica, RECEIVER).await.ok_or("a validator has stopped")?.balance;
        if found != expected {
            return Err(format!("validator {}: {found} arrived instead of {expected}", node.index));
        }
        Ok(())
    }
}

impl Agreement {
    /// What receipts say of runs is what the contract says that they call.
    async fn check_count(&self, nodes: &[&Node], runs: usize) -> Result<(), String> {
        for node in nodes {
            let replica = node.replica().ok_or("a validator does not run")?;
            let counted = jobs::counted(&replica).await.ok_or("a validator has stopped")?;
            if counted != U256::from(runs) {
                return Err(format!("validator {}: {counted} runs instead of {runs}", node.index));
            }
            let executed = signed::executed(&replica).await.ok_or("a validator has stopped")?;
            if self.network.has_signed && executed != signed::EXECUTIONS {
                return Err(format!("validator {}: {executed} executions of what was signed", node.index));
            }
        }
        Ok(())
    }
}

impl Property<PublicKey, Node> for Agreement {
    fn name(&self) -> &str {
        "agreement"
    }

    fn check<'a>(&'a self, _: &'a ProgressTracker<PublicKey>, nodes: &'a [&'a Node]) -> Checked<'a, ()> {
        Box::pin(Agreement::check(self, nodes))
    }
}
