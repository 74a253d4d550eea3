//! A connection to a validator with another validator's key: the real handshake, then any bytes on any channel.

use crate::support::network::read_json;
use alloy_primitives::{B256, hex};
use almanac_bft::{Namespace, ValidatorSet, message_bytes_max};
use almanac_primitives::Genesis;
use commonware_codec::{Copying, DecodeExt as _, Encode as _, varint::UInt};
use commonware_consensus::simplex::scheme::ed25519::Scheme;
use commonware_cryptography::{
    ChaCha20Poly1305, Signer as _,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_runtime::{
    IoBuf, Network as _, SinkOf, Spawner as _, StreamOf, Supervisor as _, tokio::Context,
};
use commonware_stream::{
    SakeCups, Upgrader,
    cups::{self, Cups},
    sake::{self, Sake},
};
use std::{fs, net::SocketAddr, path::Path, time::Duration};

type Handshake = SakeCups<PrivateKey, ChaCha20Poly1305>;

/// What the transport adds to the name of the network before it shakes hands.
const STREAM_SUFFIX: &[u8] = b"_STREAM";

/// What the transport adds to a message.
const FRAME_BYTES: u32 = 16;

/// A validator's key in the wrong hands.
#[derive(Clone)]
pub struct Enemy {
    key: PrivateKey,
    namespace: Namespace,
    validators: ValidatorSet,
    pub victims: Vec<Victim>,
}

/// A validator that keeps the rules.
#[derive(Clone)]
pub struct Victim {
    key: PublicKey,
    pub address: SocketAddr,
}

/// Where a message goes, and what is in it.
#[derive(Clone)]
pub struct Message {
    pub channel: u64,
    pub bytes: Vec<u8>,
}

impl Enemy {
    /// Takes over the key in a validator's configuration.
    pub fn of(config: &str, genesis_hash: B256) -> Self {
        let (json, directory) = (read_json(Path::new(config)), Path::new(config).parent().unwrap());
        let text = |name: &str| fs::read_to_string(directory.join(json[name].as_str().unwrap())).unwrap();
        let secret: B256 = hex::FromHex::from_hex(text("key").trim()).unwrap();
        let genesis = Genesis::from_json(&text("genesis")).unwrap();
        let victim = |peer: &serde_json::Value| Victim {
            key: public_key(peer["publicKey"].as_str().unwrap()),
            address: peer["address"].as_str().unwrap().parse().unwrap(),
        };
        Self {
            key: PrivateKey::decode(Copying(secret.as_slice())).unwrap(),
            namespace: Namespace(genesis_hash),
            validators: ValidatorSet::new(&genesis).unwrap(),
            victims: json["peers"].as_array().unwrap().iter().map(victim).collect(),
        }
    }

    /// The same with one victim.
    pub fn against(&self, victim: &Victim) -> Self {
        Self { victims: vec![victim.clone()], ..self.clone() }
    }

    /// How others call it.
    pub fn name(&self) -> String {
        self.key.public_key().to_string()
    }

    /// Signs votes with the key.
    pub fn scheme(&self) -> Scheme {
        self.validators.signer(&self.namespace, &self.key).unwrap()
    }

    /// How many validators there are.
    pub fn validators_count(&self) -> u32 {
        u32::try_from(self.validators.keys().len()).unwrap()
    }

    /// Shakes hands with a validator. `None` where it does not want to.
    pub async fn dial(&self, context: &Context, victim: &Victim) -> Option<Line> {
        let (sink, stream) = context.dial(victim.address).await.ok()?;
        let sake = Sake {
            signer: self.key.clone(),
            synchrony_bound: Duration::from_secs(5),
            max_handshake_age: Duration::from_secs(10),
            version: sake::Version::V1,
        };
        let handshake: Handshake = Cups::new(sake, cups::Version::V1);
        let namespace = [self.namespace.network(), STREAM_SUFFIX.to_vec()].concat();
        let size_max = message_bytes_max(self.validators_count()) + FRAME_BYTES;
        let dialled =
            handshake.dial(context.child("dial"), &namespace, size_max, victim.key.clone(), stream, sink);
        let (sender, receiver) = tokio::time::timeout(Duration::from_secs(5), dialled).await.ok()?.ok()?;
        Some(Line { sender, receiver: Some(receiver) })
    }
}

fn public_key(text: &str) -> PublicKey {
    let bytes: B256 = text.parse().unwrap();
    PublicKey::decode(Copying(bytes.as_slice())).unwrap()
}

type Sender = <Handshake as Upgrader>::Sender<StreamOf<Context>, SinkOf<Context>>;
type Receiver = <Handshake as Upgrader>::Receiver<StreamOf<Context>, SinkOf<Context>>;

/// A connection that is up.
pub struct Line {
    sender: Sender,
    receiver: Option<Receiver>,
}

impl Line {
    /// Reads and forgets whatever comes. Without it the line is deaf: what is sent to it piles up at the other end.
    pub fn listen(&mut self, context: &Context) {
        let Some(mut receiver) = self.receiver.take() else { return };
        context.child("ear").spawn(|_| async move { while receiver.recv().await.is_ok() {} });
    }

    /// Whether it could be sent.
    pub async fn send(&mut self, message: &Message) -> bool {
        let Message { channel, bytes } = message;
        let frame = [&[0][..], &UInt(*channel).encode(), &bytes.len().encode(), bytes].concat();
        self.sender.send(IoBuf::from(frame)).await.is_ok()
    }
}
