//! All methods that a node serves, by its kind.

use crate::{
    almanac::{Almanac, Prover},
    dev::Dev,
    eth::Eth,
    finality::{self, FinalitySource},
    heads::Heads,
    heavy::{Heavy, HeavyLimits},
    impersonation::Impersonation,
    retrace::Retrace,
    view::View,
    wallet::Wallet,
};
use almanac_consensus::{Admission, Controls};
use jsonrpsee::{Methods, RpcModule};
use std::{sync::Arc, time::Duration};

/// What every node answers from.
pub struct Served<'a> {
    /// The chain.
    pub view: View,
    /// Where transactions go.
    pub admission: Admission,
    /// News of blocks.
    pub heads: Arc<Heads>,
    /// Where traces wait.
    pub heavy: Heavy,
    /// Who answers, as `web3_clientVersion` says it.
    pub client_version: &'a str,
    /// Longest that the EVM works on a request that only tries calls out.
    pub call_time_max: Duration,
}

/// Turns the log lines about blocks on or off.
pub type SetLogging = Arc<dyn Fn(bool) + Send + Sync>;

/// What a kind of node has beside that, and so serves.
pub enum NodeKind {
    /// A developer chain: signs for `wallet` and takes orders for its sequencer.
    Developer {
        /// The keys it signs with.
        wallet: Wallet,
        /// Its sequencer.
        controls: Controls,
        /// Its log.
        set_logging: SetLogging,
    },
    /// A node of a network, which has no keys of accounts.
    Network {
        /// Proves values of the state.
        prover: Arc<dyn Prover>,
        /// Finds certificates.
        finality: Arc<dyn FinalitySource>,
    },
}

impl Served<'_> {
    /// The methods of a node of this kind.
    pub fn methods(self, kind: NodeKind) -> RpcModule<()> {
        match kind {
            NodeKind::Developer { wallet, controls, set_logging } => {
                self.developer(wallet, controls, set_logging)
            }
            NodeKind::Network { prover, finality } => {
                let eth = self.eth(Wallet::default());
                self.with(eth, prover, finality::module(finality))
            }
        }
    }

    fn developer(self, wallet: Wallet, controls: Controls, set_logging: SetLogging) -> RpcModule<()> {
        let impersonation = Arc::new(Impersonation::default());
        let dev = Dev::new(
            self.view.clone(),
            self.admission.clone(),
            controls.clone(),
            impersonation.clone(),
            set_logging,
            self.client_version,
        );
        let eth = self.eth(wallet).impersonating(impersonation);
        self.with(eth, Arc::new(controls), dev.into_module())
    }

    fn eth(&self, wallet: Wallet) -> Eth {
        let (view, admission, heads) = (self.view.clone(), self.admission.clone(), self.heads.clone());
        Eth::new(view, admission, heads, Arc::new(wallet), self.client_version, self.call_time_max)
    }

    fn with(self, eth: Eth, prover: Arc<dyn Prover>, own: RpcModule<()>) -> RpcModule<()> {
        // Apart from traces: a flood of those does not keep anybody from asking what is due.
        let questions = Heavy::new(HeavyLimits::QUESTIONS);
        let almanac = Almanac::new(self.view.clone(), self.heads, questions, prover);
        let retrace = Retrace::new(self.view, self.heavy, self.call_time_max);
        let mut all = eth.into_module();
        let parts: [Methods; 3] = [almanac.into_module().into(), retrace.into_module().into(), own.into()];
        for part in parts {
            all.merge(part).expect("no two parts have a method of the same name");
        }
        all
    }
}
