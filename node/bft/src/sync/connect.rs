//! A network session that is used only for state sync.

use super::{CHANNEL, NAMES_PER_PAGE, Progress, QUOTA, Session, ask::Asker};
use crate::{
    engine::CHANNEL_QUOTA,
    standing,
    transport::{self, NetworkConfig, NetworkError, Peers},
    validators::{Namespace, ValidatorSet},
};
use commonware_cryptography::{Signer as _, ed25519::PublicKey};
use commonware_p2p::{Blocker, Sender};
use commonware_runtime::{Clock, Spawner as _, Supervisor as _, tokio::Context};
use std::sync::Arc;

/// Connects to the validators. The session lives until the runtime ends.
pub fn connect(
    context: &Context,
    config: &NetworkConfig,
    validators: ValidatorSet,
    namespace: Namespace,
    progress: Arc<Progress>,
) -> Result<
    Session<
        impl Clock + use<>,
        impl Sender<PublicKey = PublicKey> + use<>,
        impl Blocker<PublicKey = PublicKey> + Sync + use<>,
    >,
    NetworkError,
> {
    let peers = Peers::new(config, &validators)?;
    let own = config.key.private().public_key();
    let others = validators.keys().iter().filter(|key| **key != own).cloned().collect();
    let (mut network, oracle) = transport::open(context, config, &namespace, peers);
    // Peers send on all channels from the start, and a message on an unknown channel ends the connection.
    let others_of = (0..CHANNEL).chain([standing::CHANNEL]);
    let unheard: Vec<_> = others_of.map(|number| network.register(number, CHANNEL_QUOTA)).collect();
    let channel = network.register(CHANNEL, QUOTA);
    network.start();
    let (asker, listener) = Asker::new(context.child("patience"), others, oracle, channel);
    context.child("answers").spawn(|_| async move {
        let _unheard = unheard;
        listener.await;
    });
    Ok(Session { asker: asker.into(), validators, namespace, progress, names_per_page: NAMES_PER_PAGE })
}
