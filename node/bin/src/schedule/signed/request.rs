//! What somebody is asked to sign: to run a transaction, or to delete it.

use super::{
    gathering::Gathering,
    key_words::{leaf_bytes, leaf_words},
    line::{self, Answer},
    terms::Terms,
    wording,
};
use crate::client::{
    output::Facts,
    words::{chain_words, date},
};
use alloy_primitives::{B256, Bytes};
use almanac_primitives::{
    Chain, ScheduleId,
    keys::{Leaf, SecretKey, recover_leaf},
    transaction_body::deletion_hash,
};
use anyhow::ensure;

/// What is to be signed, for which chain, and until when the signature is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) chain: Chain,
    pub(super) schedule: ScheduleId,
    /// The last second at which the signature is accepted.
    pub(super) deadline: u64,
    /// `None`: it is asked to delete the schedule.
    pub(super) terms: Option<Terms>,
}

impl Request {
    /// Asks to run what waits. A signature counts as long as it waits: nothing else can come of it.
    pub(super) fn to_run(chain: Chain, gathering: &Gathering) -> Self {
        let terms = Some(gathering.terms.clone());
        Self { chain, schedule: gathering.id, deadline: gathering.expires, terms }
    }

    /// Asks to delete what waits.
    pub(super) fn to_delete(chain: Chain, gathering: &Gathering) -> Self {
        Self { chain, schedule: gathering.id, deadline: gathering.expires, terms: None }
    }

    /// EIP-712's hash of it.
    pub(super) fn digest(&self) -> B256 {
        match &self.terms {
            Some(terms) => terms.body.signing_hash(&self.chain, terms.signed_for(self.deadline)),
            None => deletion_hash(&self.chain, self.schedule, self.deadline),
        }
    }

    pub(super) fn sign(&self, key: &SecretKey) -> Answer {
        Answer {
            schedule: self.schedule.0,
            key: leaf_bytes(key.leaf()).into(),
            signature: key.sign(self.digest()),
            deadline: self.deadline,
        }
    }

    /// A signature without anything beside it, as wallets answer: they count parities from 27 on.
    pub(super) fn answer_of(&self, signature: &Bytes) -> anyhow::Result<Answer> {
        let mut signature = signature.to_vec();
        if let [.., parity @ 27..=28] = &mut signature[..] {
            *parity -= 27;
        }
        let leaf = recover_leaf(self.digest(), &signature)?;
        let key = leaf_bytes(leaf).into();
        Ok(Answer { schedule: self.schedule.0, key, signature: signature.into(), deadline: self.deadline })
    }

    /// Whose signature an answer is. An error if it is none over this, for example of an earlier round.
    pub(super) fn check(&self, answer: &Answer) -> anyhow::Result<Leaf> {
        let of = ScheduleId(answer.schedule);
        ensure!(
            of == self.schedule,
            "SignatureOfAnother: a signature is for schedule {of}, not for {}",
            self.schedule
        );
        let leaf = Leaf::decode(&answer.key);
        let words = leaf.map_or_else(|| answer.key.to_string(), leaf_words);
        let as_signed = Self { deadline: answer.deadline, ..self.clone() };
        let signer = recover_leaf(as_signed.digest(), &answer.signature).ok();
        match leaf {
            Some(leaf) if signer == Some(leaf) => Ok(leaf),
            _ => anyhow::bail!(
                "WrongSignature: the signature of {words} is not over {}: it was made for another chain, an \
                 earlier round, or another purpose: let it be signed again",
                match self.terms {
                    Some(_) => format!("{of} as it waits here"),
                    None => format!("the deletion of {of}"),
                }
            ),
        }
    }

    /// The line that others paste.
    pub(super) fn line(&self) -> String {
        line::write_request(self)
    }

    /// What one signs, in plain words.
    pub(super) fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        match &self.terms {
            Some(terms) => {
                facts.add("you sign", format!("schedule {}", self.schedule));
                wording::add_terms(&mut facts, terms, None);
            }
            None => facts.add("you sign", format!("to delete schedule {}", self.schedule)),
        }
        facts.add("counts until", date(wording::second(self.deadline)));
        facts.add("chain", chain_words(&self.chain));
        facts
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use alloy_primitives::{Address, U256};
    use almanac_primitives::{
        testing::{CHAIN, person},
        transaction_body::{BodyCall, TransactionBody},
    };

    pub(in crate::schedule::signed) fn payment() -> Request {
        let call = BodyCall {
            from: Address::repeat_byte(1),
            to: Address::repeat_byte(2),
            value: U256::from(1_000_000_000_000_000_000u64),
            data: Bytes::new(),
        };
        let body = TransactionBody {
            calls: vec![call],
            gas_limit: 32_000,
            max_fee_per_gas: U256::from(10_000_000_000u64),
            memo: "rent".to_owned(),
            nonce: 0,
            execution_time: 0,
            wait_for_expiry: false,
        };
        let terms = Terms {
            body,
            payer: Some(Address::repeat_byte(3)),
            admin_key: leaf_bytes(Leaf::Secp256k1(Address::repeat_byte(1))).into(),
            round: 2,
        };
        let schedule = ScheduleId::new(5, 1, 0).unwrap();
        Request { chain: CHAIN, schedule, deadline: 1_800_000_000, terms: Some(terms) }
    }

    pub(in crate::schedule::signed) fn deletion() -> Request {
        Request { terms: None, ..payment() }
    }

    pub(in crate::schedule::signed) fn key(n: u64) -> SecretKey {
        SecretKey::secp256k1(person(n).secret).unwrap()
    }

    #[test]
    fn only_signatures_over_the_same_count() {
        for request in [payment(), deletion()] {
            for key in [key(1), SecretKey::ed25519(B256::repeat_byte(9))] {
                let answer = request.sign(&key);
                assert_eq!(request.check(&answer).unwrap(), key.leaf());
                let later = Request { deadline: request.deadline + 5, ..request.clone() };
                assert_eq!(later.check(&answer).unwrap(), key.leaf(), "the answer names its own deadline");
                let moved = Answer { deadline: answer.deadline + 1, ..answer.clone() };
                assert!(request.check(&moved).unwrap_err().to_string().starts_with("WrongSignature"));
                let other = Request { schedule: ScheduleId::new(5, 1, 1).unwrap(), ..request.clone() };
                assert!(other.check(&answer).unwrap_err().to_string().starts_with("SignatureOfAnother"));
                let chain = Chain { id: 9, ..request.chain };
                assert!(Request { chain, ..request.clone() }.check(&answer).is_err());
            }
        }
        let mut next = payment();
        next.terms.as_mut().unwrap().round += 1;
        assert!(next.check(&payment().sign(&key(1))).is_err(), "a signature of an earlier round");
        assert!(
            deletion().check(&payment().sign(&key(1))).is_err(),
            "who agrees to run it does not delete it"
        );
    }

    #[test]
    fn wallets_count_parities_from_27() {
        let request = payment();
        let mut signature = request.sign(&key(1)).signature.to_vec();
        assert_eq!(request.answer_of(&signature.clone().into()).unwrap(), request.sign(&key(1)));
        signature[64] += 27;
        assert_eq!(request.answer_of(&signature.into()).unwrap(), request.sign(&key(1)));
        assert!(request.answer_of(&Bytes::from_static(&[7; 64])).is_err());
    }
}
