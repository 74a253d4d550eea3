//! Whether recorded signatures satisfy the current keys of the accounts that a schedule needs.

use super::SignedTerms;
use crate::record::Body;
use alloy_primitives::Address;
use almanac_primitives::keys::{KeyTree, Leaf};

/// The accounts that must agree: where the calls come from, in order, and the payer unless it is the creator.
pub fn parties(terms: &SignedTerms, body: &Body) -> Vec<Address> {
    required(body.calls.iter().map(|call| call.from), terms.payer, body.owner)
}

/// The same for a schedule that is not made yet.
pub fn required(
    senders: impl Iterator<Item = Address>,
    payer: Option<Address>,
    creator: Address,
) -> Vec<Address> {
    let payer = payer.filter(|payer| *payer != creator);
    let mut parties: Vec<Address> = Vec::new();
    for account in senders.chain(payer) {
        if !parties.contains(&account) {
            parties.push(account);
        }
    }
    parties
}

/// The key of an account that must agree.
#[derive(Clone, Debug)]
pub enum PartyKey {
    /// The one that its address derives from (HEDERA-02).
    Own(Address),
    /// The one of its record.
    Recorded(Address, KeyTree),
}

impl PartyKey {
    /// The account.
    pub fn account(&self) -> Address {
        let (Self::Own(account) | Self::Recorded(account, _)) = self;
        *account
    }

    /// The key itself.
    pub fn into_key(self) -> KeyTree {
        match self {
            Self::Own(account) => KeyTree::single(Leaf::Secp256k1(account)),
            Self::Recorded(_, key) => key,
        }
    }

    /// How many leaves it has.
    pub fn leaves(&self) -> usize {
        match self {
            Self::Own(_) => 1,
            Self::Recorded(_, key) => key.leaf_count().into(),
        }
    }

    fn has(&self, leaf: Leaf) -> bool {
        match self {
            Self::Own(account) => leaf.account() == *account,
            Self::Recorded(_, key) => key.leaves().any(|known| known == leaf),
        }
    }
}

/// A recorded signature that counts: its key is still in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The leaf that it proves. An account that called proves the leaf of its address.
    pub leaf: Leaf,
    /// The account that called, if one did: it satisfies all of its own key.
    pub caller: Option<Address>,
    /// Whether it was a nested call.
    pub is_nested: bool,
}

/// How an account has agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Signatures are missing.
    Missing,
    /// Only with calls that code made: it pays from its fund.
    Nested,
    /// By its keys: it pays from its balance.
    Own,
}

/// Whether a key may sign for one of the accounts.
pub fn is_required(parties: &[PartyKey], leaf: Leaf) -> bool {
    parties.iter().any(|party| party.has(leaf))
}

/// How an account has agreed, given the signatures that count.
pub fn consent(party: &PartyKey, counted: &[Counted]) -> Consent {
    let own: Vec<_> = counted.iter().copied().filter(|one| !one.is_nested).collect();
    if is_satisfied(party, &own) {
        Consent::Own
    } else if is_satisfied(party, counted) {
        Consent::Nested
    } else {
        Consent::Missing
    }
}

fn is_satisfied(party: &PartyKey, counted: &[Counted]) -> bool {
    if counted.iter().any(|one| one.caller == Some(party.account())) {
        return true;
    }
    match party {
        PartyKey::Own(account) => counted.iter().any(|one| one.leaf.account() == *account),
        PartyKey::Recorded(_, key) => key.is_satisfied(|leaf| counted.iter().any(|one| one.leaf == leaf)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::B256;

    fn account(n: u8) -> Address {
        Address::repeat_byte(n)
    }

    fn leaf(n: u8) -> Leaf {
        Leaf::Secp256k1(account(n))
    }

    fn signed(leaf: Leaf) -> Counted {
        Counted { leaf, caller: None, is_nested: false }
    }

    fn called(n: u8, is_nested: bool) -> Counted {
        Counted { leaf: leaf(n), caller: Some(account(n)), is_nested }
    }

    fn tree(bytes: &[u8], leaves: &[u8]) -> KeyTree {
        let mut encoded = bytes.to_vec();
        leaves.iter().for_each(|n| leaf(*n).write(&mut encoded));
        KeyTree::decode(&encoded).unwrap()
    }

    /// HEDERA-02.
    #[test]
    fn hedera_02_an_account_without_a_record_is_satisfied_by_its_address() {
        let party = PartyKey::Own(account(1));
        assert_eq!(consent(&party, &[]), Consent::Missing);
        assert_eq!(consent(&party, &[signed(leaf(2))]), Consent::Missing);
        assert_eq!(consent(&party, &[signed(leaf(1))]), Consent::Own);
        let key = Leaf::Ed25519(B256::repeat_byte(5));
        assert_eq!(consent(&PartyKey::Own(key.account()), &[signed(key)]), Consent::Own);
        assert!(is_required(std::slice::from_ref(&party), leaf(1)) && !is_required(&[party], leaf(2)));
    }

    #[test]
    fn hedera_01_a_threshold_counts_each_leaf_once() {
        let party = PartyKey::Recorded(account(9), tree(&[3, 3, 2], &[1, 2, 3]));
        assert_eq!(consent(&party, &[signed(leaf(1)), signed(leaf(1))]), Consent::Missing);
        assert_eq!(
            consent(&party, &[signed(leaf(1)), called(1, false)]),
            Consent::Missing,
            "one leaf, two ways"
        );
        assert_eq!(consent(&party, &[signed(leaf(1)), called(3, false)]), Consent::Own);
        assert_eq!(consent(&party, &[signed(leaf(9))]), Consent::Missing, "its old key");
        assert_eq!(consent(&party, &[called(9, false)]), Consent::Own, "itself");
    }

    #[test]
    fn hedera_15_what_only_code_agreed_to_is_nested() {
        let party = PartyKey::Recorded(account(9), tree(&[3, 2, 1], &[1, 2]));
        assert_eq!(consent(&party, &[called(1, true)]), Consent::Nested);
        assert_eq!(consent(&party, &[called(9, true)]), Consent::Nested);
        assert_eq!(consent(&party, &[called(1, true), signed(leaf(2))]), Consent::Own);
    }
}
