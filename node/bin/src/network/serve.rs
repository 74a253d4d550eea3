//! JSON-RPC and HTTP pages of a node of a network.

use super::{config::NodeConfig, node::Started};
use crate::{figures, run::health};
use alloy_primitives::U64;
use almanac_bft::{FinalityReader, Prover as ReplicaProver};
use almanac_consensus::{Clock as _, ControlError, Proven, SystemClock};
use almanac_primitives::StateKey;
use almanac_rpc::{
    Server, ServerConfig,
    almanac::Prover,
    eth::CLIENT_VERSION,
    finality::{BlockFinality, FinalitySource},
    heavy::Heavy,
    served::Served,
    server::Page,
    view::View,
};
use almanac_schedule::CalendarAgenda;
use commonware_runtime::{Metrics as _, Supervisor as _};
use std::{future::Future, pin::Pin, sync::Arc};

/// Serves the same as a developer's chain, without what only a developer may do.
pub(super) async fn serve(
    config: &NodeConfig,
    serving: ServerConfig,
    chain_id: u64,
    started: &Started,
    heavy: &Heavy,
) -> anyhow::Result<Server> {
    let view = View {
        chain_id,
        index: started.index.clone(),
        agenda: Arc::new(CalendarAgenda),
        next_time: Arc::new(|| SystemClock.now()),
    };
    let prover = Arc::new(Proofs(started.prover.clone()));
    let finality = Arc::new(Certificates(started.bft.finality().clone()));
    let served = Served {
        view,
        admission: started.admission.clone(),
        heads: started.heads.clone(),
        heavy: heavy.clone(),
        client_version: CLIENT_VERSION,
        call_time_max: serving.limits.call_time_max,
    };
    let methods = served.node(prover, finality);
    let figures = figures::start()?;
    let counters = started.counters.child("page");
    let (role, leave) = (started.role.clone(), started.bft.leave().clone());
    let role = move || role.name(leave.borrow().as_ref());
    let pages: Vec<(&str, Page)> = vec![
        ("/health", health(started.index.clone(), role)),
        ("/metrics", Arc::new(move || figures.render() + &counters.encode())),
    ];
    Ok(Server::start(config.rpc, serving, methods, pages).await?)
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
