//! Makes proofs from the data directory of a stopped node: of the state after its last block, or of a run or
//! transaction in any of its blocks.

use crate::{
    chain::{self, PARTITION},
    datadir::Datadir,
    index_command,
};
use alloy_primitives::{TxHash, U64};
use almanac_bft::{finality::LOOK_AHEAD, sync::Floor};
use almanac_index::Index;
use almanac_primitives::{Genesis, Header, Origin};
use almanac_proof::{BlockFinality, ProofJson, StateSubject, Subject};
use almanac_rpc::almanac::receipt_proof::prove_ran;
use almanac_state::{
    BlockJournal, ProveError, QmdbConfig, QmdbStore, SealedBatch as _, StateStore as _, verify, with_reader,
};
use anyhow::{Context as _, ensure};
use commonware_runtime::{Runner as _, Spawner};
use commonware_storage::Context;
use std::path::Path;

/// Proves something that the directory has.
pub(super) fn prove(directory: &Path, subject: Subject) -> anyhow::Result<ProofJson> {
    let genesis_path = directory.join("genesis.json");
    // Looked at first: taking a directory makes one, and nobody asked for that.
    ensure!(genesis_path.exists(), "{} holds no chain: there is no genesis.json in it", directory.display());
    let datadir = Datadir::take(directory)?;
    ensure!(datadir.has_chain(), "{} holds no state: start the chain once", directory.display());
    let (genesis, floor, place) = (datadir.kept_genesis()?, datadir.floor()?, datadir.index());
    datadir.runner().start(|context| async move {
        let kept = Kept::open(context, floor).await?;
        let proof = match subject {
            Subject::State(subject) => kept.prove_state(&genesis, subject).await?,
            Subject::Ran { hash, is_run } => kept.prove_ran(&genesis, &place, hash, is_run).await?,
        };
        kept.with_finality(proof).await
    })
}

/// What a directory keeps.
struct Kept<E: Context + Spawner> {
    context: E,
    config: QmdbConfig,
    /// The block whose state was copied, if one was.
    floor: Option<Floor>,
    archive: BlockJournal<E>,
}

impl<E: Context + Spawner> Kept<E> {
    async fn open(context: E, floor: Option<Floor>) -> anyhow::Result<Self> {
        let config = QmdbConfig::new(PARTITION);
        let first = floor.as_ref().map_or(0, |floor| floor.header.number);
        let archive = BlockJournal::open_after(context.child("blocks"), &config, first).await?;
        Ok(Self { context, config, floor, archive })
    }

    async fn prove_state(&self, genesis: &Genesis, subject: StateSubject) -> anyhow::Result<ProofJson> {
        let store = QmdbStore::open(self.context.child("state"), &self.config, &genesis.state()?).await?;
        let tip = store.tip();
        let header = match store.height() {
            0 => genesis.header(tip.commitment())?,
            height => self.header(height).await?,
        };
        let plan = with_reader(&tip, &[], move |state| almanac_proof::plan(state, subject)).await??;
        let mut proofs = Vec::with_capacity(plan.keys.len());
        for key in plan.keys {
            if genesis.fork.is_some() && Origin::has(&key) {
                return Err(ProveError::Forked { key }.into());
            }
            let proof = store.prove(&header, key).await?;
            verify(&header, &proof).context("the store made an invalid proof: it is damaged")?;
            proofs.push(proof);
        }
        Ok(ProofJson { entries: plan.entries, ..ProofJson::of_values(plan.claim, &header, &proofs) })
    }

    /// Runs are in no block body, so the index is asked, which has them.
    async fn prove_ran(
        &self,
        genesis: &Genesis,
        place: &Path,
        hash: TxHash,
        is_run: bool,
    ) -> anyhow::Result<ProofJson> {
        ensure!(place.is_dir(), "{} is missing: make it with `almanac index rebuild`", place.display());
        let origin = chain::genesis_header(&self.context, genesis).await?;
        let index = Index::open(place, index_command::keeping(None), origin, genesis.state()?)?;
        Ok(prove_ran(&index, hash, is_run)?)
    }

    async fn header(&self, height: u64) -> anyhow::Result<Header> {
        match &self.floor {
            Some(floor) if floor.header.number == height => Ok(floor.header.clone()),
            _ => {
                let archived = self.archive.get(height).await?;
                Ok(archived.with_context(|| format!("block {height} is not in the archive"))?.block.header)
            }
        }
    }

    /// The proof with the certificate of its block, or with the next one above and the headers up to it, where the
    /// archive has any.
    async fn with_finality(&self, proof: ProofJson) -> anyhow::Result<ProofJson> {
        let number = proof.header.number.to::<u64>();
        let mut headers = Vec::new();
        for height in number..=number.saturating_add(LOOK_AHEAD) {
            let (header, certificate) = match &self.floor {
                Some(floor) if floor.header.number == height => {
                    (floor.header.clone(), Some(floor.certificate.clone()))
                }
                _ => match self.archive.get(height).await? {
                    Some(archived) => (archived.block.header, archived.certificate),
                    None => break,
                },
            };
            headers.push(header.encode().into());
            if let Some(certificate) = certificate {
                let (number, hash) = (U64::from(number), proof.header.hash);
                let finality = Some(BlockFinality { number, hash, headers, certificate });
                return Ok(ProofJson { finality, ..proof });
            }
        }
        Ok(proof)
    }
}
