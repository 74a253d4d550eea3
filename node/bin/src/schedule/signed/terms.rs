//! On which terms a transaction waits, and all that a signature is bound to beside the chain.

use alloy_primitives::{Address, Bytes};
use almanac_primitives::transaction_body::{SignedFor, TransactionBody};

/// What is signed, but for chain and deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) body: TransactionBody,
    /// `None`: its creator pays.
    pub(super) payer: Option<Address>,
    /// Whose signature deletes it; empty if nobody's does.
    pub(super) admin_key: Bytes,
    pub(super) round: u32,
}

impl Terms {
    pub(super) fn signed_for(&self, deadline: u64) -> SignedFor<'_> {
        SignedFor { payer: self.payer, admin_key: &self.admin_key, round: self.round, deadline }
    }

    /// The accounts that have to agree, given who creates it: where the calls come from, in order, and the payer.
    pub(super) fn accounts(&self, creator: Address) -> Vec<Address> {
        let payer = self.payer.filter(|payer| *payer != creator);
        let mut accounts: Vec<Address> = Vec::new();
        for account in self.body.calls.iter().map(|call| call.from).chain(payer) {
            if !accounts.contains(&account) {
                accounts.push(account);
            }
        }
        accounts
    }
}
