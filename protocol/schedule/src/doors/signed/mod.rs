//! Hedera's schedule service: transactions that wait for signatures.
//!
//! ```text
//!   ledger slot (id, 2)            tally      signatures so far, who agreed only by a nested call, when it ended
//!   ledger slot (n, id, 3)         signer     the n-th signature; the key of an Ed25519 leaf is in slot (n + 256, id, 3)
//!   ledger slot of its identity    identity   the round, and the schedule that is pending in it
//!   ledger slot of an account      fund       what the account pays with if it agreed by a nested call
//! ```
//!
//! Pure rules: nothing here knows an ABI or makes a call. Keys of accounts are arguments.

mod admit;
mod code;
mod consent;
mod fund;
mod identity;
mod payer;
mod readiness;
mod rules;
mod signer;
mod tally;
mod terms;
mod throttle;

pub use admit::{Admitted, Order, admit, book};
pub use code::Code;
pub use consent::{Consent, Counted, PartyKey, consent, is_required, parties, required};
pub use fund::{fund, fund_slot, give, take};
pub use identity::{Identity, identity_slot, is_identity_slot};
pub use payer::{Payer, creator_that_pays, loans};
pub use readiness::readiness_gas;
pub use signer::{Added, Signer, add, read_signers, signer_slots, signers};
pub use tally::Tally;
pub use terms::SignedTerms;
pub use throttle::{Bucket, Busy, Share};

pub(crate) use identity::leave;
pub(crate) use signer::remove_signers;

use super::{Profile, Switches, Terms};
use crate::calendar::Queue;
use almanac_primitives::params::{SIGNED_ENABLED, SIGNED_PAUSED};

/// The door.
pub(super) const PROFILE: Profile = Profile {
    name: "signed",
    switches: Switches { enabled: Some(SIGNED_ENABLED), paused: Some(SIGNED_PAUSED) },
    queues: &[Queue::Signing],
    decode: |input| SignedTerms::decode(input).map(Terms::Signed),
};
