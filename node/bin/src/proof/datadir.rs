//! Proves something in the state after the last block of a data directory that no node uses.

use super::file::ProofFile;
use crate::{chain::PARTITION, datadir::Datadir};
use alloy_primitives::U64;
use almanac_bft::sync::Floor;
use almanac_primitives::{Genesis, ScheduleId, StateKey};
use almanac_rpc::{
    finality::BlockFinality,
    types::proof::{ClaimJson, ProofJson},
};
use almanac_schedule::Record;
use almanac_state::{
    BlockJournal, ProveError, QmdbConfig, QmdbStore, SealedBatch as _, StateStore as _, verify,
};
use anyhow::{Context as _, ensure};
use commonware_runtime::{Runner as _, Spawner};
use commonware_storage::Context;
use std::path::Path;

/// What to prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// One value.
    Value(StateKey),
    /// A schedule.
    Schedule(ScheduleId),
}

/// Proves something that the directory has.
pub(super) fn prove(directory: &Path, subject: Subject) -> anyhow::Result<ProofFile> {
    let genesis_path = directory.join("genesis.json");
    // Looked at first: taking a directory makes one, and nobody asked for that.
    ensure!(genesis_path.exists(), "{} holds no chain: there is no genesis.json in it", directory.display());
    let datadir = Datadir::take(directory)?;
    ensure!(datadir.has_chain(), "{} holds no state: start the chain once", directory.display());
    let genesis = datadir.kept_genesis()?;
    let floor = datadir.floor()?;
    datadir.runner().start(|context| async move { prove_in(&context, &genesis, floor, subject).await })
}

async fn prove_in<E: Context + Spawner>(
    context: &E,
    genesis: &Genesis,
    floor: Option<Floor>,
    subject: Subject,
) -> anyhow::Result<ProofFile> {
    let config = QmdbConfig::new(PARTITION);
    let store = QmdbStore::open(context.child("state"), &config, &genesis.state()?).await?;
    let first = floor.as_ref().map_or(0, |floor| floor.header.number);
    let (header, certificate) = match (store.height(), floor) {
        (0, _) => (genesis.header(store.head().commitment())?, None),
        (height, Some(floor)) if height == first => (floor.header, Some(floor.certificate)),
        (height, _) => {
            let archive = BlockJournal::open_after(context.child("blocks"), &config, first).await?;
            let archived = archive.get(height).await?;
            let archived = archived.with_context(|| format!("block {height} is not in the archive"))?;
            (archived.block.header, archived.certificate)
        }
    };
    let finality = certificate.map(|certificate| BlockFinality {
        number: U64::from(header.number),
        hash: header.hash(),
        headers: vec![header.encode().into()],
        certificate,
    });
    let (claim, keys) = match subject {
        Subject::Value(key) => (ClaimJson::Value {}, vec![key]),
        Subject::Schedule(id) => {
            let claim = ClaimJson::Schedule { schedule: id.to_string() };
            let [head, _, body] = Record::keys(id);
            (claim, vec![head, body])
        }
    };
    let mut proofs = Vec::new();
    for key in keys {
        proofs.push(store.prove(&header, key).await?);
    }
    if let Subject::Schedule(id) = subject {
        let [_, escrow, _] = Record::keys(id);
        // An empty escrow is no value, and cannot be proven.
        match store.prove(&header, escrow).await {
            Ok(escrow) => proofs.push(escrow),
            Err(ProveError::AbsenceUnprovable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for proof in &proofs {
        verify(&header, proof).context("the store made a proof that does not hold: it is damaged")?;
    }
    Ok(ProofFile::new(ProofJson { finality, ..ProofJson::of_values(claim, &header, &proofs) }))
}
