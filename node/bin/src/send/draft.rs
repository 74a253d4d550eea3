//! A transaction that is being signed, in a file that people can read before they sign.

use super::{calls::CallJson, signer::Role};
use crate::regular_file::{self, TRANSACTION_BYTES_MAX};
use alloy_primitives::{Address, B256, Bytes, TxHash};
use almanac_primitives::{
    Chain, NativeTransaction, UserTransaction,
    keys::{SecretKey, prove},
    native::{Kind, Signer},
};
use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A transaction for a chain, with the signatures that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) chain: Chain,
    pub(super) transaction: NativeTransaction,
}

/// The form in a file. Numbers of 64 bits and more are text: many programs read JSON's as floats.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DraftJson {
    chain_id: u64,
    /// Hash of block 0.
    genesis: B256,
    sender: Address,
    kind: KindName,
    nonce: String,
    /// The second from which on it is refused; 0 is never.
    expiration: u64,
    max_priority_fee_per_gas: String,
    max_fee_per_gas: String,
    gas_limit: u64,
    calls: Vec<CallJson>,
    fee_payer: Option<Address>,
    signatures: Vec<Bytes>,
    fee_payer_signatures: Vec<Bytes>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum KindName {
    Sequence,
    Orderless,
}

impl Draft {
    /// Reads a file that [`Self::to_json`] made.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = regular_file::read_text(path, TRANSACTION_BYTES_MAX)?;
        Self::from_json(&text).with_context(|| format!("{} has no transaction to sign", path.display()))
    }

    fn from_json(text: &str) -> anyhow::Result<Self> {
        let json: DraftJson = serde_json::from_str(text)?;
        let calls = json.calls.into_iter().map(|call| call.read().map_err(anyhow::Error::msg));
        let number = |text: &str| text.parse().with_context(|| format!("{text:?} is no decimal number"));
        let transaction = NativeTransaction {
            chain_id: json.chain_id,
            sender: json.sender,
            kind: match json.kind {
                KindName::Sequence => Kind::Sequence,
                KindName::Orderless => Kind::Orderless,
            },
            nonce: json.nonce.parse().with_context(|| format!("nonce {:?} is not below 2^64", json.nonce))?,
            expiration: json.expiration,
            max_priority_fee_per_gas: number(&json.max_priority_fee_per_gas)?,
            max_fee_per_gas: number(&json.max_fee_per_gas)?,
            gas_limit: json.gas_limit,
            calls: calls.collect::<anyhow::Result<_>>()?,
            fee_payer: json.fee_payer,
            signatures: json.signatures,
            fee_payer_signatures: json.fee_payer_signatures,
        };
        Ok(Self { chain: Chain { id: json.chain_id, genesis: json.genesis }, transaction })
    }

    /// The form in a file.
    pub(super) fn to_json(&self) -> anyhow::Result<String> {
        let Self { chain, transaction } = self;
        let json = DraftJson {
            chain_id: transaction.chain_id,
            genesis: chain.genesis,
            sender: transaction.sender,
            kind: match transaction.kind {
                Kind::Sequence => KindName::Sequence,
                Kind::Orderless => KindName::Orderless,
            },
            nonce: transaction.nonce.to_string(),
            expiration: transaction.expiration,
            max_priority_fee_per_gas: transaction.max_priority_fee_per_gas.to_string(),
            max_fee_per_gas: transaction.max_fee_per_gas.to_string(),
            gas_limit: transaction.gas_limit,
            calls: transaction.calls.iter().map(CallJson::new).collect(),
            fee_payer: transaction.fee_payer,
            signatures: transaction.signatures.clone(),
            fee_payer_signatures: transaction.fee_payer_signatures.clone(),
        };
        Ok(serde_json::to_string_pretty(&json)? + "\n")
    }

    /// Adds the signature of a key, in the order that the chain wants. One that is there already is left alone.
    pub(super) fn sign(&mut self, key: &SecretKey, role: Option<Role>) -> anyhow::Result<()> {
        let transaction = &mut self.transaction;
        let own = if transaction.fee_payer == Some(key.leaf().account()) {
            Signer::FeePayer
        } else {
            Signer::Sender
        };
        let (digest, signatures) = match role.map_or(own, Signer::from) {
            Signer::Sender => (transaction.signing_hash(&self.chain), &mut transaction.signatures),
            Signer::FeePayer => {
                ensure!(transaction.fee_payer.is_some(), "the transaction names no fee payer to sign for");
                (transaction.fee_payer_signing_hash(&self.chain), &mut transaction.fee_payer_signatures)
            }
        };
        let leaves = match signatures.is_empty() {
            true => Vec::new(),
            false => prove(digest, signatures).context("a signature that is there already proves nothing")?,
        };
        if let Err(place) = leaves.binary_search(&key.leaf()) {
            signatures.insert(place, key.sign(digest));
        }
        Ok(())
    }

    /// Who has not signed at all.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let NativeTransaction { fee_payer, signatures, fee_payer_signatures, .. } = &self.transaction;
        let sender = signatures.is_empty().then_some("sender");
        let payer = (fee_payer.is_some() && fee_payer_signatures.is_empty()).then_some("fee payer");
        sender.into_iter().chain(payer).collect()
    }

    /// Its encoding and its hash, once everybody has signed.
    pub(super) fn encoded(&self) -> anyhow::Result<(Bytes, TxHash)> {
        let missing = self.missing();
        ensure!(
            missing.is_empty(),
            "not signed yet by the {}: write it with --out, and sign it with --file",
            missing.join(" and the ")
        );
        let signed = UserTransaction::native_signed(self.transaction.clone())?;
        Ok((signed.encoded().clone(), signed.hash()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::{
        keys::Leaf,
        testing::{CHAIN, native::*, person},
    };

    fn draft() -> Draft {
        let calls = vec![native_call(Address::repeat_byte(7), 5, vec![1, 2])];
        let transaction = orderless(person(0).address, u64::MAX, 1_800_000_000, calls);
        let transaction = NativeTransaction { fee_payer: Some(person(1).address), ..transaction };
        Draft { chain: CHAIN, transaction }
    }

    fn key(n: u64) -> SecretKey {
        SecretKey::secp256k1(person(n).secret).unwrap()
    }

    #[test]
    fn a_file_has_all_of_it() {
        let mut draft = draft();
        draft.sign(&key(0), None).unwrap();
        let json = draft.to_json().unwrap();
        assert_eq!(Draft::from_json(&json).unwrap(), draft);
        assert!(json.contains("\"nonce\": \"18446744073709551615\""), "{json}");
        for bad in ["", "{}", &json.replace("orderless", "other"), &json.replace("\"gasLimit\"", "\"gas\"")] {
            assert!(Draft::from_json(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_key_signs_for_its_own_and_once() {
        let mut draft = draft();
        assert_eq!(draft.missing(), ["sender", "fee payer"]);
        assert!(
            draft
                .encoded()
                .unwrap_err()
                .to_string()
                .contains("not signed yet by the sender and the fee payer")
        );
        draft.sign(&key(1), None).unwrap();
        assert_eq!(draft.missing(), ["sender"]);
        draft.sign(&key(0), None).unwrap();
        let signed = draft.clone();
        draft.sign(&key(0), None).unwrap();
        assert_eq!(draft, signed, "a second signature of the same key changes nothing");
        let by_hand = sign_native_on(
            &CHAIN,
            NativeTransaction {
                signatures: Vec::new(),
                fee_payer_signatures: Vec::new(),
                ..draft.transaction.clone()
            },
            &[person(0).into()],
            &[person(1).into()],
        );
        assert_eq!(draft.encoded().unwrap(), (by_hand.encoded().clone(), by_hand.hash()));
    }

    /// Members of a key tree sign one after the other; the chain wants them ascending.
    #[test]
    fn signatures_ascend_whoever_signs_first() {
        let mut draft = draft();
        let ed = SecretKey::ed25519(B256::repeat_byte(9));
        for key in [ed, key(3), key(2)] {
            draft.sign(&key, Some(Role::Sender)).unwrap();
        }
        let proven = prove(draft.transaction.signing_hash(&CHAIN), &draft.transaction.signatures).unwrap();
        assert!(proven.is_sorted() && proven.len() == 3);
        assert!(matches!(proven[2], Leaf::Ed25519(_)));
        draft.transaction.fee_payer = None;
        draft.transaction.signatures.clear();
        assert!(draft.sign(&ed, Some(Role::FeePayer)).is_err(), "there is none");
    }
}
