//! What a node offers its clients: JSON-RPC, the explorer at `/`, the pages `/health` and `/metrics`, and gRPC where it is
//! asked for. Every kind of node is wired here.

use crate::{
    block_log::BlockLog,
    explorer,
    figures::{self, BlockFigures},
    grpc::GrpcPlace,
    log_switch::LogSwitch,
};
use almanac_consensus::{Admission, SharedPool, Sink};
use almanac_feed::IndexFeed;
use almanac_grpc::{GrpcConfig, GrpcServer};
use almanac_index::Index;
use almanac_mempool::Pool;
use almanac_primitives::{Chain, TimestampMs};
use almanac_rpc::{
    Server, ServerConfig,
    heads::Heads,
    heavy::{Heavy, HeavyLimits},
    served::{NodeKind, Served},
    server::Page,
    view::View,
};
use almanac_schedule::CalendarAgenda;
use clap::Args;
use std::{net::SocketAddr, sync::Arc};

/// Where /health and /metrics are served.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MetricsFlags {
    /// Serve /health and /metrics at this address, and no longer with JSON-RPC; port 0 picks a free one.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) metrics_addr: Option<SocketAddr>,
}

/// Where a node serves what.
pub(crate) struct Places {
    pub(crate) rpc: SocketAddr,
    pub(crate) grpc: Option<GrpcPlace>,
    /// Of /health and /metrics, where they have an address of their own.
    pub(crate) metrics: Option<SocketAddr>,
}

/// What services answer from.
pub(crate) struct Services {
    pub(crate) chain: Chain,
    pub(crate) index: Arc<Index>,
    pub(crate) pool: Arc<SharedPool>,
    pub(crate) heads: Arc<Heads>,
    pub(crate) admission: Admission,
    feed: Arc<IndexFeed>,
}

/// What differs between the kinds of nodes.
pub(crate) struct Face<'a> {
    /// Its methods.
    pub(crate) kind: NodeKind,
    /// The answer to `web3_clientVersion`.
    pub(crate) client_version: &'a str,
    /// The time that a block would have if it came now.
    pub(crate) next_time: Arc<dyn Fn() -> TimestampMs + Send + Sync>,
    /// The role on `/health`.
    pub(crate) role: Box<dyn Fn() -> &'static str + Send + Sync>,
    /// Metrics beside those of blocks and requests.
    pub(crate) counters: Box<dyn Fn() -> String + Send + Sync>,
}

impl Services {
    /// Services of the chain in `index`, whose pending transactions are in `pool`.
    pub(crate) fn new(chain: Chain, index: Arc<Index>, pool: Pool) -> Self {
        let (pool, heads) = (SharedPool::new(pool), Heads::new(index.clone()));
        let feed = Arc::new(IndexFeed(index.clone()));
        let admission = Admission::new(chain, pool.clone(), feed.clone());
        Self { chain, index, pool, heads, admission, feed }
    }

    /// What has to hear of committed blocks. The index is first: a client that hears of a block finds it there.
    pub(crate) fn sinks(&self, switch: LogSwitch) -> Vec<Arc<dyn Sink>> {
        vec![
            self.feed.clone(),
            self.heads.clone(),
            Arc::new(BlockFigures { pool: self.pool.clone(), index: self.index.clone() }),
            Arc::new(BlockLog { switch, index: self.index.clone() }),
        ]
    }

    /// Starts to serve at all places.
    pub(crate) async fn start(
        &self,
        places: Places,
        config: ServerConfig,
        face: Face<'_>,
    ) -> anyhow::Result<Serving> {
        let Face { kind, client_version, next_time, role, counters } = face;
        let (chain, index) = (self.chain, self.index.clone());
        self.admission.keep_time(next_time.clone());
        let waiting = matches!(kind, NodeKind::Developer { .. }).then(|| self.count_waiting());
        let heavy = Heavy::new(HeavyLimits::default());
        let served = Served {
            view: View { chain, index, agenda: Arc::new(CalendarAgenda), next_time, waiting },
            admission: self.admission.clone(),
            heads: self.heads.clone(),
            heavy: heavy.clone(),
            client_version,
            call_time_max: config.limits.call_time_max,
        };
        let figures = figures::start()?;
        figures::count_waiting(&self.index);
        let pages: Vec<(&str, Page)> = vec![
            ("/health", health(self.index.clone(), role)),
            ("/metrics", Arc::new(move || figures.render() + &counters())),
        ];
        let (pages, own_pages) = match places.metrics {
            Some(address) => (Vec::new(), Some((address, pages))),
            None => (pages, None),
        };
        let metrics = match own_pages {
            Some((address, pages)) => Some(Server::start_pages(address, config.clone(), pages).await?),
            None => None,
        };
        let methods = served.methods(kind);
        let server = Server::start(places.rpc, config, methods, pages, &explorer::FILES).await?;
        let grpc = match (places.grpc, server.guests()) {
            (Some(GrpcPlace { address, tls }), Some(guests)) => {
                Some(GrpcServer::start(GrpcConfig { address, chain, tls }, guests).await?)
            }
            _ => None,
        };
        Ok(Serving { server, metrics, grpc, heavy })
    }

    /// A block is in the index a moment before the pool forgets its transactions.
    fn count_waiting(&self) -> Arc<dyn Fn() -> usize + Send + Sync> {
        let (pool, index) = (self.pool.clone(), self.index.clone());
        Arc::new(move || pool.lock().ready_count_except(&index.tip().block.transactions))
    }
}

/// Services that run.
pub(crate) struct Serving {
    server: Server,
    metrics: Option<Server>,
    grpc: Option<GrpcServer>,
    heavy: Heavy,
}

impl Serving {
    /// Where they listen.
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Where gRPC listens, if it does.
    pub(crate) fn grpc(&self) -> Option<SocketAddr> {
        self.grpc.as_ref().map(GrpcServer::address)
    }

    /// Where /health and /metrics are.
    pub(crate) fn metrics(&self) -> SocketAddr {
        self.metrics.as_ref().map_or(self.server.address(), Server::address)
    }

    /// Answers what is under way, drops the traces that wait, and stops.
    pub(crate) async fn stop(self) {
        self.heavy.close();
        // First: its connections have their places in the other.
        if let Some(grpc) = self.grpc {
            grpc.stop().await;
        }
        self.server.stop().await;
        // Last: who watches sees the node until it is gone.
        if let Some(metrics) = self.metrics {
            metrics.stop().await;
        }
    }
}

/// Shows that the node answers, its role and its last block.
fn health(index: Arc<Index>, role: Box<dyn Fn() -> &'static str + Send + Sync>) -> Page {
    Arc::new(move || {
        let role = role();
        let tip = index.tip();
        let (number, time) = (tip.number(), tip.block.header.timestamp.0);
        format!("{{\"status\":\"ok\",\"block\":{number},\"timestampMs\":{time},\"role\":\"{role}\"}}\n")
    })
}
