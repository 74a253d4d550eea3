//! TCP between nodes that know each other's keys, authenticated and encrypted.
//!
//! Nodes connect to validators; nothing connects to a follower. A validator accepts the followers in its config, so a
//! follower needs no public address.

use crate::{
    block::{key_bytes, read_key},
    engine::message_bytes_max,
    keys::{ValidatorKey, is_everyones},
    peer_address::PeerAddress,
    time::TimeConfig,
    validators::{Namespace, ValidatorSet},
};
use alloy_primitives::B256;
use commonware_cryptography::{
    ChaCha20Poly1305,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_p2p::{
    Address, AddressableManager as _, AddressableTrackedPeers,
    authenticated::lookup::{self, Network, Oracle},
};
use commonware_runtime::{Quota, Supervisor as _, tokio::Context};
use commonware_stream::{
    SakeCups,
    cups::{self, Cups},
    sake::{self, Sake},
};
use commonware_utils::{NZU32, NZUsize, TryCollect as _, ordered::Map};
use std::{
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroUsize,
    time::Duration,
};

/// The handshake between two nodes.
type Handshake = SakeCups<PrivateKey, ChaCha20Poly1305>;

/// Most followers that a node accepts.
pub const FOLLOWERS_MAX: usize = 256;

/// Messages queued for a peer that does not read, separately for urgent and other messages. Each may be as
/// large as a block.
const OUTBOX: NonZeroUsize = NZUsize!(64);

/// A node's network configuration.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// Its key. It votes if the key is a validator's, and follows otherwise.
    pub key: ValidatorKey,
    /// The address on which it listens for peers.
    pub listen: SocketAddr,
    /// The addresses of the validators. May include itself.
    pub peers: Vec<Peer>,
    /// Keys of the followers that it accepts. May include itself.
    pub followers: Vec<B256>,
    /// How it handles time.
    pub time: TimeConfig,
    /// Nanoseconds per gas: timeouts are at least as long as a full block takes at this rate. 0 disables this.
    pub ns_per_gas: u64,
}

/// The address of a validator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its public key.
    pub public_key: B256,
    /// The address on which it listens.
    pub address: PeerAddress,
}

/// Why a node cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// A peer is not a validator, or a validator has no address.
    #[error("the peers must be the other validators of the genesis, each once: {public_key} is {problem}")]
    Peer {
        /// The key.
        public_key: B256,
        /// What is wrong.
        problem: &'static str,
    },
    /// An entry of the followers is invalid.
    #[error("the followers must be nodes without a vote, each once: {public_key} is {problem}")]
    Follower {
        /// The key.
        public_key: B256,
        /// What is wrong.
        problem: &'static str,
    },
    /// Too many followers.
    #[error("{given} followers are listed, at most {FOLLOWERS_MAX} are allowed")]
    TooManyFollowers {
        /// How many there are.
        given: usize,
    },
}

/// All nodes that a node talks to, by key, including itself.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    validators: Map<PublicKey, Address>,
    followers: Map<PublicKey, Address>,
}

impl Peers {
    pub(crate) fn new(config: &NetworkConfig, validators: &ValidatorSet) -> Result<Self, NetworkError> {
        let own = config.key.public();
        let is_validator = read_key(own).is_some_and(|key| is_validator(validators, &key));
        let own_follower = (!is_validator).then_some(own);
        let own_validator = is_validator.then(|| Peer { public_key: own, address: config.listen.into() });
        let others = config.peers.iter().filter(|peer| peer.public_key != own).cloned();
        let listed = config.followers.iter().copied().filter(|key| *key != own);
        Ok(Self {
            validators: validators_at(others.chain(own_validator), validators)?,
            followers: followers(listed.chain(own_follower), validators)?,
        })
    }

    fn len(&self) -> usize {
        self.validators.len() + self.followers.len()
    }
}

fn is_validator(validators: &ValidatorSet, key: &PublicKey) -> bool {
    validators.fee_recipient(key).is_some()
}

/// The addresses of all validators.
fn validators_at(
    peers: impl Iterator<Item = Peer>,
    validators: &ValidatorSet,
) -> Result<Map<PublicKey, Address>, NetworkError> {
    let mut known: Vec<(PublicKey, Address)> = Vec::new();
    for Peer { public_key, address } in peers {
        let problem = |problem| NetworkError::Peer { public_key, problem };
        let key = read_key(public_key).filter(|key| is_validator(validators, key));
        let key = key.ok_or_else(|| problem("no validator's key"))?;
        if known.iter().any(|(peer, _)| *peer == key) {
            return Err(problem("there twice"));
        }
        known.push((key, address.to_transport()));
    }
    if let Some(missing) = validators.keys().iter().find(|key| !known.iter().any(|(peer, _)| peer == *key)) {
        return Err(NetworkError::Peer { public_key: key_bytes(missing), problem: "missing" });
    }
    Ok(known.into_iter().try_collect().expect("each key was checked to be there once"))
}

/// The followers, with a dummy address, because nothing connects to them.
fn followers(
    keys: impl Iterator<Item = B256>,
    validators: &ValidatorSet,
) -> Result<Map<PublicKey, Address>, NetworkError> {
    let mut known: Vec<(PublicKey, Address)> = Vec::new();
    for public_key in keys {
        let problem = |problem| NetworkError::Follower { public_key, problem };
        let key = read_key(public_key).ok_or_else(|| problem("no ed25519 key"))?;
        if is_everyones(&key) {
            return Err(problem("a key with which anyone can sign"));
        }
        if is_validator(validators, &key) {
            return Err(problem("a validator"));
        }
        if known.iter().any(|(peer, _)| *peer == key) {
            return Err(problem("there twice"));
        }
        known.push((key, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into()));
    }
    if known.len() > FOLLOWERS_MAX {
        return Err(NetworkError::TooManyFollowers { given: known.len() });
    }
    Ok(known.into_iter().try_collect().expect("each key was checked to be there once"))
}

/// A network that is not started yet, and the provider of its peers.
pub(crate) fn open(
    context: &Context,
    config: &NetworkConfig,
    namespace: &Namespace,
    peers: Peers,
) -> (Network<Context, Handshake>, Oracle<PublicKey>) {
    let network_config = network_config(config, namespace, &peers);
    let (network, mut oracle) = Network::new(context.child("network"), network_config);
    oracle.track(0, AddressableTrackedPeers::new(peers.validators, peers.followers));
    (network, oracle)
}

fn network_config(config: &NetworkConfig, namespace: &Namespace, peers: &Peers) -> lookup::Config<Handshake> {
    let handshake = Cups::<_, ChaCha20Poly1305>::new(
        Sake {
            signer: config.key.private().clone(),
            synchrony_bound: Duration::from_secs(5),
            max_handshake_age: Duration::from_secs(10),
            version: sake::Version::V1,
        },
        cups::Version::V1,
    );
    let validators = u32::try_from(peers.validators.len()).expect("VALIDATORS_MAX is small");
    let peers_max = NonZeroUsize::new(peers.len()).expect("a set of validators is not empty");
    let mut network = lookup::Config::recommended(
        handshake,
        &namespace.network(),
        config.listen,
        peers_max,
        message_bytes_max(validators),
        OUTBOX,
    );
    // There is only one set, and each tracked set makes every queue longer.
    network.tracked_peer_sets = NZUsize!(1);
    // Nodes may share a machine or a private network; keys, not addresses, identify them.
    network.allow_private_ips = true;
    network.bypass_ip_check = true;
    network.allowed_handshake_rate_per_ip = Quota::per_second(NZU32!(16));
    network.allowed_handshake_rate_per_subnet = Quota::per_second(NZU32!(64));
    // Strangers of one subnet can occupy at most 128 of these, so that there is room for a validator that
    // reconnects.
    network.handshake_timeout = Duration::from_secs(2);
    network.max_concurrent_handshakes = NZU32!(2_048);
    // A restarted node should be back within seconds.
    network.peer_connection_cooldown = Duration::from_secs(1);
    network.dial_frequency = Duration::from_millis(200);
    network.ping_frequency = Duration::from_secs(5);
    network
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::{Genesis, genesis::Validator, testing::genesis};

    fn key(secret: u8) -> ValidatorKey {
        ValidatorKey::from_secret(&B256::repeat_byte(secret))
    }

    fn peer(secret: u8) -> Peer {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1)).into();
        Peer { public_key: key(secret).public(), address }
    }

    fn validators(secrets: &[u8]) -> ValidatorSet {
        let validator = |secret: &u8| Validator {
            name: format!("v{secret}"),
            public_key: key(*secret).public(),
            fee_recipient: Default::default(),
        };
        let validators = secrets.iter().map(validator).collect();
        ValidatorSet::new(&Genesis { validators, ..genesis() }).unwrap()
    }

    /// Validators 1 to 3 of a network, and a node with key `own` configured with `peers` and `followers`.
    fn peers(own: u8, peers: &[u8], followers: &[u8]) -> Result<Peers, NetworkError> {
        let config = NetworkConfig {
            key: key(own),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 2)),
            peers: peers.iter().map(|secret| peer(*secret)).collect(),
            followers: followers.iter().map(|secret| key(*secret).public()).collect(),
            time: TimeConfig::default(),
            ns_per_gas: 0,
        };
        Peers::new(&config, &validators(&[1, 2, 3]))
    }

    fn problem(result: Result<Peers, NetworkError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_node_is_among_its_own_kind_and_all_validators_are_known() {
        for own_is_listed in [true, false] {
            let others: &[u8] = if own_is_listed { &[1, 2, 3] } else { &[2, 3] };
            let known = peers(1, others, &[8, 9]).unwrap();
            assert_eq!((known.validators.len(), known.followers.len()), (3, 2), "a validator");
            let listed: &[u8] = if own_is_listed { &[8, 9] } else { &[9] };
            let known = peers(8, &[1, 2, 3], listed).unwrap();
            assert_eq!((known.validators.len(), known.followers.len()), (3, 2), "a follower");
        }
        assert_eq!(
            peers(8, &[1, 2, 3], &[]).unwrap().followers.len(),
            1,
            "a follower that knows of no other"
        );
    }

    #[test]
    fn who_does_not_belong_into_a_list_is_named() {
        assert!(problem(peers(1, &[2], &[])).contains("missing"));
        assert!(problem(peers(8, &[1, 2], &[])).contains("missing"), "a follower must know all of them too");
        assert!(problem(peers(1, &[2, 3, 3], &[])).contains("there twice"));
        assert!(problem(peers(1, &[2, 3, 8], &[])).contains("no validator's key"));
        assert!(problem(peers(1, &[2, 3], &[3])).contains("is a validator"));
        assert!(problem(peers(1, &[2, 3], &[8, 8])).contains("there twice"));
        let anyones = followers([B256::ZERO].into_iter(), &validators(&[1]));
        assert!(anyones.unwrap_err().to_string().contains("anyone can sign"));
    }

    #[test]
    fn both_sides_of_the_number_of_followers() {
        let validators = validators(&[1]);
        let keys = |count: usize| {
            (1..=count as u64)
                .map(|n| ValidatorKey::from_secret(&B256::left_padding_from(&n.to_be_bytes())).public())
        };
        assert_eq!(followers(keys(FOLLOWERS_MAX), &validators).unwrap().len(), FOLLOWERS_MAX);
        let given = FOLLOWERS_MAX + 1;
        assert_eq!(
            followers(keys(given), &validators).unwrap_err(),
            NetworkError::TooManyFollowers { given }
        );
    }
}
