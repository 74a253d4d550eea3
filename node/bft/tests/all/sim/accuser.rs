//! `only_liars_are_accused`: what consensus reports of conflicting votes is about those who mean ill.

use crate::sim::{marks::Mark, network::Network};
use alloy_primitives::Bytes;
use almanac_bft::{Conflict, EvidenceStore, block::key_bytes};
use commonware_cryptography::Signer as _;

pub struct Accuser(pub Network);

impl EvidenceStore for Accuser {
    fn conflict(&self, conflict: &Conflict, _: &Bytes) {
        self.0.marks.add(Mark::Evidence);
        let is_accused = |index: &usize| key_bytes(&self.0.keys[*index].public_key()) == conflict.validator;
        let accused = (0..self.0.size).find(is_accused).expect("a validator");
        if self.0.votes_once(accused) {
            self.0.violated(format!("validator {accused} is accused of two votes: {conflict:?}"));
        }
    }
}
