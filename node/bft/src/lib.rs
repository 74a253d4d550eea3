#![doc = include_str!("../README.md")]

mod backoff;
pub mod block;
pub mod certificate;
mod credit;
pub mod digest;
pub mod engine;
pub mod evidence;
mod fair;
pub mod finality;
pub mod finalizer;
mod forks;
pub mod gossip;
mod held_back;
pub mod keys;
pub mod lost_votes;
mod meter;
pub mod network;
mod newest;
pub mod pace;
mod peer_address;
pub mod prover;
pub mod punctual;
mod questions;
mod rationed;
pub mod recent;
pub mod replica;
pub mod standing;
pub mod sync;
pub mod time;
pub mod transport;
mod turns;
pub mod validators;
pub mod voter;
pub mod votes;
pub mod wiring;

pub use block::ConsensusBlock;
pub use certificate::{CertificateError, Certified};
pub use digest::BlockDigest;
pub use engine::{
    CHANNEL_QUOTA, CHANNELS, Channels, Marshal, RECENT_BLOCKS, TIMEOUT_NS_PER_GAS, Timeouts, Validator,
    message_bytes_max,
};
pub use evidence::{Conflict, ConflictKind, EvidenceError, EvidenceStore};
pub use finality::{Finality, FinalityError, FinalityReader};
pub use finalizer::{FinalizeError, Finalizer};
pub use keys::ValidatorKey;
pub use lost_votes::Silence;
pub use network::{Bft, Parts, Voice};
pub use peer_address::{PeerAddress, PeerAddressError};
pub use prover::Prover;
pub use recent::{BlockNumbers, History};
pub use replica::Replica;
pub use standing::{Leave, Standing};
pub use time::{RuntimeClock, TimeConfig};
pub use transport::{NetworkConfig, NetworkError, Peer};
pub use validators::{Namespace, ValidatorSet, ValidatorSetError};
pub use voter::Voter;
pub use votes::{OwnVote, VoteBook, VoteKind, VotesOnDisk};
