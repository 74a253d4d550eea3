//! JSON-RPC, HTTP pages and gRPC of a node of a network.

use super::start::Started;
use crate::services::{Face, Places, Serving};
use alloy_primitives::U64;
use almanac_bft::{FinalityReader, Prover as ReplicaProver};
use almanac_consensus::{Clock as _, ControlError, Proven, SystemClock};
use almanac_primitives::StateKey;
use almanac_rpc::{
    CLIENT_VERSION, ServerConfig,
    almanac::Prover,
    finality::{BlockFinality, FinalitySource},
    served::NodeKind,
};
use commonware_runtime::{Metrics as _, Supervisor as _};
use std::{future::Future, pin::Pin, sync::Arc};

/// Serves the same as a developer chain, without what only a developer may do.
pub(super) async fn serve(
    places: Places,
    config: ServerConfig,
    started: &Started,
) -> anyhow::Result<Serving> {
    let counters = started.counters.child("page");
    let (role, leave) = (started.role.clone(), started.bft.leave().clone());
    let face = Face {
        kind: NodeKind::Network {
            prover: Arc::new(Proofs(started.prover.clone())),
            finality: Arc::new(Certificates(started.bft.finality().clone())),
        },
        client_version: CLIENT_VERSION,
        next_time: Arc::new(|| SystemClock.now()),
        role: Box::new(move || role.name(leave.borrow().as_ref())),
        counters: Box::new(move || counters.encode()),
    };
    started.services.start(places, config, face).await
}

/// The validator's proofs as RPC asks for them.
struct Proofs(ReplicaProver);

impl Prover for Proofs {
    fn prove(
        &self,
        keys: Vec<StateKey>,
    ) -> Pin<Box<dyn Future<Output = Result<Proven, ControlError>> + Send + '_>> {
        Box::pin(async move {
            let proven = self.0.prove(keys).await.ok_or(ControlError::Stopped)?;
            Ok(proven?)
        })
    }
}

/// The node's certificates as RPC shows them.
struct Certificates(FinalityReader);

impl FinalitySource for Certificates {
    fn find(&self, height: u64) -> Pin<Box<dyn Future<Output = Option<BlockFinality>> + Send + '_>> {
        Box::pin(async move {
            let found = self.0.find(height).await?;
            Some(BlockFinality {
                number: U64::from(height),
                hash: found.headers.first()?.hash(),
                headers: found.headers.iter().map(|header| header.encode().into()).collect(),
                certificate: found.certificate,
            })
        })
    }
}
