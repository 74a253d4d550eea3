//! A transaction that waits on a chain: its terms, who has signed, and who is missing.

use super::{
    IScheduleService,
    key_words::{key_words, leaf_bytes, leaf_words},
    terms::Terms,
};
use crate::{client::node::NodeArgs, schedule::calls::IAccounts};
use alloy_primitives::{Address, Bytes, hex};
use alloy_sol_types::SolCall as _;
use almanac_primitives::{
    ScheduleId,
    addresses::{ACCOUNTS, SCHEDULE_SERVICE},
    keys::{KeyTree, Leaf},
    transaction_body::TransactionBody,
};
use almanac_schedule::signed::{Code, Consent, Counted, PartyKey, consent, is_required, readiness_gas};
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How an account that called stands among the signers.
const CALLER_TAG: u8 = 4;

/// Whether it still waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Executed,
    Deleted,
    Expired,
}

impl End {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::Deleted => "deleted",
            Self::Expired => "expired",
        }
    }
}

/// A transaction on its way to its signatures.
#[derive(Clone, Debug)]
pub(super) struct Gathering {
    pub(super) id: ScheduleId,
    pub(super) creator: Address,
    pub(super) terms: Terms,
    /// The second at which it expires, or runs if it waits for its time.
    pub(super) expires: u64,
    pub(super) end: Option<End>,
    pub(super) parties: Parties,
}

/// Who has to sign, and who has.
#[derive(Clone, Debug)]
pub(super) struct Parties {
    keys: Vec<PartyKey>,
    counted: Vec<Counted>,
}

impl Gathering {
    /// What the chain knows of a schedule; `None` if it knows nothing, or no longer.
    pub(super) fn read(node: &NodeArgs, id: ScheduleId) -> anyhow::Result<Option<Self>> {
        let question = IScheduleService::getScheduleInfoCall { scheduleID: id.0 };
        let answer = node.view(SCHEDULE_SERVICE, &question.abi_encode())?;
        let answer = IScheduleService::getScheduleInfoCall::abi_decode_returns(&answer)
            .context("the node answers nothing about transactions that wait for signatures")?;
        if answer.responseCode == Code::InvalidScheduleId.number() {
            return Ok(None);
        }
        let info = answer.info;
        let terms = Terms {
            body: TransactionBody::decode(&info.transactionBody)
                .context("the node answered with something that is not the body of a transaction")?,
            payer: (!info.payerAccountID.is_zero()).then_some(info.payerAccountID),
            admin_key: info.adminKey,
            round: info.round,
        };
        let accounts = terms.accounts(info.creatorAccountID);
        let counting = counting_signers(node, id)?;
        let parties = Parties::read(node, accounts, &counting.unwrap_or(info.signers))?;
        let end = match info.ended {
            0 => None,
            1 => Some(End::Executed),
            2 => Some(End::Deleted),
            _ => Some(End::Expired),
        };
        let (creator, expires) = (info.creatorAccountID, info.expiresAt);
        Ok(Some(Self { id, creator, terms, expires, end, parties }))
    }

    /// The same, where only one that still waits will do.
    pub(super) fn read_pending(node: &NodeArgs, id: ScheduleId) -> anyhow::Result<Self> {
        let found = Self::read(node, id)?;
        let found = found.with_context(|| {
            format!(
                "UnknownSchedule: no transaction {id} waits for signatures: see `almanac schedule show {id}`, \
                 or list what waits for you with `almanac schedule waiting`"
            )
        })?;
        if let Some(end) = found.end {
            anyhow::bail!(
                "AlreadyEnded: {id} was {}: see how with `almanac schedule show {id}`",
                match end {
                    End::Expired => "not signed in time, and expired",
                    end => end.name(),
                }
            );
        }
        Ok(found)
    }
}

impl Parties {
    /// Reads the keys of the accounts that must agree. The signers are those that count.
    pub(super) fn read(
        node: &NodeArgs,
        accounts: Vec<Address>,
        signers: &[impl AsRef<[u8]>],
    ) -> anyhow::Result<Self> {
        let mut keys = Keys { node, known: BTreeMap::new() };
        let mut parties = Vec::with_capacity(accounts.len());
        for account in accounts {
            let key = keys.of(account)?;
            parties.push(match key.is_default_of(account) {
                true => PartyKey::Own(account),
                false => PartyKey::Recorded(account, key),
            });
        }
        let counted =
            signers.iter().map(|signer| read_signer(signer.as_ref())).collect::<anyhow::Result<_>>()?;
        Ok(Self { keys: parties, counted })
    }

    /// Gas of judging them at a second, by their present keys.
    pub(super) fn readiness_gas(&self) -> u64 {
        readiness_gas(self.keys.len(), self.keys.iter().map(PartyKey::leaves).sum())
    }

    /// Those that have not agreed yet.
    pub(super) fn missing(&self) -> Vec<Address> {
        let missing = self.keys.iter().filter(|party| !self.has_agreed(party));
        missing.map(PartyKey::account).collect()
    }

    fn has_agreed(&self, party: &PartyKey) -> bool {
        consent(party, &self.counted) != Consent::Missing
    }

    /// The same with one more signature.
    pub(super) fn with(&self, leaf: Leaf, caller: Option<Address>) -> Self {
        let mut more = self.clone();
        more.counted.push(Counted { leaf, caller, is_nested: false });
        more
    }

    /// Whether this key may sign.
    pub(super) fn is_asked(&self, leaf: Leaf) -> bool {
        is_required(&self.keys, leaf)
    }

    pub(super) fn has_signed(&self, leaf: Leaf) -> bool {
        self.counted.iter().any(|one| one.leaf == leaf || one.caller == Some(leaf.account()))
    }

    /// Whether it waits for this account: it is missing itself, or holds a key of one that is, and has not signed.
    pub(super) fn waits_for(&self, account: Address) -> bool {
        let holds = |party: &PartyKey| match party {
            PartyKey::Own(own) => *own == account,
            PartyKey::Recorded(own, key) => {
                *own == account || key.leaves().any(|leaf| leaf.account() == account)
            }
        };
        let has_signed =
            self.counted.iter().any(|one| one.leaf.account() == account || one.caller == Some(account));
        !has_signed && self.keys.iter().any(|party| !self.has_agreed(party) && holds(party))
    }

    /// Who has to sign: each account, its key if it is a tree, and what of it has signed.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |party: &PartyKey| {
            let has_agreed = self.has_agreed(party);
            let (account, key) = match party {
                PartyKey::Own(account) => {
                    return format!("{account}: {}", if has_agreed { "signed" } else { "waits" });
                }
                PartyKey::Recorded(account, key) => (account, key),
            };
            let signed: Vec<String> = self.signed_leaves(key).map(leaf_words).collect();
            let signed = match (signed.is_empty(), has_agreed) {
                (false, _) => signed.join(", "),
                (true, true) => "itself".to_owned(),
                (true, false) => "none".to_owned(),
            };
            match has_agreed {
                true => format!("{account}: signed by {signed} ({})", key_words(key)),
                false => format!("{account}: waits for {}; signed so far: {signed}", key_words(key)),
            }
        };
        self.keys.iter().map(line).collect()
    }

    fn signed_leaves(&self, key: &KeyTree) -> impl Iterator<Item = Leaf> {
        let has_signed = |leaf: &Leaf| self.counted.iter().any(|one| one.leaf == *leaf);
        let leaves: Vec<Leaf> = key.leaves().filter(has_signed).collect();
        leaves.into_iter()
    }

    pub(super) fn described(&self) -> Value {
        let party = |party: &PartyKey| {
            let key = match party {
                PartyKey::Own(account) => KeyTree::single(Leaf::Secp256k1(*account)),
                PartyKey::Recorded(_, key) => key.clone(),
            };
            let signed = self.signed_leaves(&key).map(|leaf| hex::encode_prefixed(leaf_bytes(leaf)));
            json!({ "account": party.account(), "key": key.encoded(), "hasSigned": self.has_agreed(party),
                "signedBy": signed.collect::<Vec<_>>() })
        };
        self.keys.iter().map(party).collect()
    }
}

/// Keys of accounts, each asked for once.
struct Keys<'a> {
    node: &'a NodeArgs,
    known: BTreeMap<Address, KeyTree>,
}

impl Keys<'_> {
    fn of(&mut self, account: Address) -> anyhow::Result<KeyTree> {
        if let Some(key) = self.known.get(&account) {
            return Ok(key.clone());
        }
        let answer = self.node.view(ACCOUNTS, &IAccounts::keyOfCall { account }.abi_encode())?;
        let answer = IAccounts::keyOfCall::abi_decode_returns(&answer);
        let key = answer.with_context(|| format!("the node answers no key of {account}"))?.key;
        let key = KeyTree::decode(&key).with_context(|| format!("the node answers no key of {account}"))?;
        self.known.insert(account, key.clone());
        Ok(key)
    }
}

/// The signers that count by present keys, as the node judges it; `None` of what does not wait any more.
fn counting_signers(node: &NodeArgs, id: ScheduleId) -> anyhow::Result<Option<Vec<Bytes>>> {
    let mut schedule = node.ask("almanac_getSchedule", &json!([id.to_string()]))?;
    let signers = schedule["signatures"]["signers"].take();
    serde_json::from_value(signers).context("the node answers no list of signers")
}

fn read_signer(signer: &[u8]) -> anyhow::Result<Counted> {
    if let Some(account) = signer.strip_prefix(&[CALLER_TAG]) {
        ensure!(account.len() == 20, "the node answers a signer of {} bytes", signer.len());
        let account = Address::from_slice(account);
        return Ok(Counted { leaf: Leaf::Secp256k1(account), caller: Some(account), is_nested: false });
    }
    let leaf = Leaf::decode(signer).context("the node answers a signer that is no key")?;
    Ok(Counted { leaf, caller: None, is_nested: false })
}
