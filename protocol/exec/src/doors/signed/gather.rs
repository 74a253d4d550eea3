//! Checks signatures, records them, and triggers a schedule that has all of them.

use super::{DoorCall, DoorError, IScheduleService, SignatureEntry, refused, thrown};
use crate::{
    doors::accounts::{HASH_WORD_GAS, load_key, load_record},
    signed::{Keys, count, creator_agrees, is_in_force, load_parties},
};
use alloy_primitives::{Address, B256, U256};
use almanac_primitives::{
    addresses::{LEDGER, SCHEDULE_SERVICE},
    keys::{KeyRecord, KeyTree, Leaf, recover_leaf},
    params::{KEY_LEAF_GAS, SIGNATURE_GAS, SIGNED_ENTRIES_MAX, SIGNED_LEAVES_MAX, SIGNED_TRIGGERS_MAX},
    transaction_body::{SignedFor, TransactionBody},
};
use almanac_schedule::{
    Record, life,
    signed::{
        self, Added, Code, Consent, PartyKey, SignedTerms, Signer, Tally, consent, creator_that_pays,
        is_required, parties, signers,
    },
};
use revm::context::{ContextTr as _, JournalTr as _};

/// Slot of the ledger's transient storage that counts what a transaction has triggered.
const TRIGGERED_SLOT: U256 = U256::from_limbs([1, 0, 0, 0]);

impl Keys for DoorCall<'_, '_> {
    type Error = DoorError;

    fn record(&mut self, account: Address) -> Result<KeyRecord, DoorError> {
        load_record(self, account)
    }

    fn key(&mut self, account: Address, record: KeyRecord) -> Result<KeyTree, DoorError> {
        load_key(self, account, record)
    }
}

/// What came of a call that brought signatures.
pub(super) struct Gathered {
    /// Whether one of them is new.
    pub(super) is_new: bool,
    /// Whether the run follows.
    pub(super) is_triggered: bool,
}

/// How many leaves the keys have, if they are few enough to be collected (HEDERA-01).
pub(super) fn check_leaves(parties: &[PartyKey]) -> Result<usize, DoorError> {
    let leaves: usize = parties.iter().map(PartyKey::leaves).sum();
    if leaves > SIGNED_LEAVES_MAX { Err(refused(Code::TooManySigners)) } else { Ok(leaves) }
}

/// Takes the signatures of a call into a schedule, its caller's own among them, and triggers it if it is ready.
pub(super) fn gather(
    call: &mut DoorCall<'_, '_>,
    record: Record,
    entries: &[SignatureEntry],
) -> Result<Gathered, DoorError> {
    let Some(terms) = record.body.terms.signed().cloned() else { return Err(refused(Code::Unknown)) };
    let parties = load_parties(call, parties(&terms, &record.body))?;
    let new = verify(call, &record, &terms, &parties, entries)?;
    let mut tally = Tally::load(call, record.id)?;
    let mut recorded = signers(call, record.id, &tally)?;
    let (mut is_new, most) = (false, terms.signers_max(&record.body));
    for signer in new.into_iter().chain(caller_of(call, &parties)?) {
        match signed::add(call, record.id, &mut tally, &mut recorded, signer, most)? {
            Added::New => {
                is_new = true;
                let key = signer.shown().into();
                let signed = IScheduleService::ScheduleSigned { id: record.id.0, key };
                call.emit_from(SCHEDULE_SERVICE, &signed)?;
            }
            Added::Known => {}
            Added::Full => return Err(refused(Code::TooManySigners)),
        }
    }
    is_new |= agree_to_pay(call, &record, &terms, &mut tally)?;
    let counted = count(call, recorded.iter().flatten())?;
    charge_walk(call, &parties, counted.len())?;
    let consents: Vec<Consent> = parties.iter().map(|party| consent(party, &counted)).collect();
    let is_ready =
        !consents.contains(&Consent::Missing) && creator_agrees(call, &record, &terms, &tally, &consents)?;
    let is_affordable = terms.max_fee_per_gas >= U256::from(call.moment().base_fee.0);
    let is_triggered = is_ready && is_affordable && terms.booked.is_none();
    if is_triggered {
        tally.nested = Tally::nested_bits(&consents);
    }
    tally.store(call, record.id)?;
    if is_triggered {
        trigger(call, record)?;
    }
    Ok(Gathered { is_new, is_triggered })
}

/// Checks every signature, which is paid for first. One that is wrong refuses the call: nothing is recorded.
fn verify(
    call: &mut DoorCall<'_, '_>,
    record: &Record,
    terms: &SignedTerms,
    parties: &[PartyKey],
    entries: &[SignatureEntry],
) -> Result<Vec<Signer>, DoorError> {
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    check_entries(entries)?;
    let body = terms.transaction_body(&record.body);
    entries
        .iter()
        .map(|entry| {
            let leaf = check_entry(call, entry, |leaf| is_required(parties, leaf))?;
            verify_one(call, &body, terms, leaf, entry)?;
            Ok(Signer::Leaf(leaf))
        })
        .collect()
}

/// How many signatures a call may bring.
pub(super) fn check_entries(entries: &[SignatureEntry]) -> Result<(), DoorError> {
    if entries.len() > SIGNED_ENTRIES_MAX { Err(refused(Code::InvalidBody)) } else { Ok(()) }
}

/// Checks all of a signature but the signature itself. A key that its account has replaced signs for nobody.
pub(super) fn check_entry(
    call: &mut DoorCall<'_, '_>,
    entry: &SignatureEntry,
    is_required: impl FnOnce(Leaf) -> bool,
) -> Result<Leaf, DoorError> {
    let Some(leaf) = Leaf::decode(&entry.key) else { return Err(refused(Code::BadEncoding)) };
    call.charge(KEY_LEAF_GAS * SIGNED_LEAVES_MAX as u64)?;
    if !is_required(leaf) {
        return Err(refused(Code::KeyNotRequired));
    }
    if entry.deadline < call.moment().now.seconds() {
        return Err(refused(Code::DeadlinePassed));
    }
    if !is_in_force(call, leaf)? {
        return Err(refused(Code::InvalidSignature));
    }
    Ok(leaf)
}

fn verify_one(
    call: &mut DoorCall<'_, '_>,
    body: &TransactionBody,
    terms: &SignedTerms,
    leaf: Leaf,
    entry: &SignatureEntry,
) -> Result<(), DoorError> {
    let signed_for = SignedFor {
        payer: terms.payer,
        admin_key: &terms.admin_key,
        round: terms.round,
        deadline: entry.deadline,
    };
    if is_signed(call, body, signed_for, leaf, entry)? {
        return Ok(());
    }
    // One that was collected before the last execution or deletion has an error of its own.
    let Some(round) = terms.round.checked_sub(1) else { return Err(refused(Code::InvalidSignature)) };
    let is_past = is_signed(call, body, SignedFor { round, ..signed_for }, leaf, entry)?;
    Err(refused(if is_past { Code::RoundPassed } else { Code::InvalidSignature }))
}

fn is_signed(
    call: &mut DoorCall<'_, '_>,
    body: &TransactionBody,
    signed_for: SignedFor<'_>,
    leaf: Leaf,
    entry: &SignatureEntry,
) -> Result<bool, DoorError> {
    let hashed: usize = body.calls.iter().map(|call| call.data.len() + 320).sum();
    call.charge_words(hashed + signed_for.admin_key.len() + 1_024, HASH_WORD_GAS)?;
    let digest = body.signing_hash(call.chain(), signed_for);
    is_proven(call, digest, leaf, entry)
}

/// Whether a signature over a digest is this leaf's.
pub(super) fn is_proven(
    call: &mut DoorCall<'_, '_>,
    digest: B256,
    leaf: Leaf,
    entry: &SignatureEntry,
) -> Result<bool, DoorError> {
    call.charge(SIGNATURE_GAS)?;
    Ok(recover_leaf(digest, &entry.signature) == Ok(leaf))
}

/// The signature that a call itself is, if its caller is asked for: as one of the accounts, or as a leaf of their keys.
fn caller_of(call: &mut DoorCall<'_, '_>, parties: &[PartyKey]) -> Result<Option<Signer>, DoorError> {
    let account = call.caller();
    let is_asked = parties.iter().any(|party| party.account() == account)
        || is_required(parties, Leaf::Secp256k1(account));
    if !is_asked {
        return Ok(None);
    }
    let rotation = load_record(call, account)?.rotation;
    Ok(Some(Signer::Caller { account, rotation, is_nested: !call.is_direct() }))
}

/// A creator that pays and calls by itself agrees to that with its present key. Returns whether that is new.
fn agree_to_pay(
    call: &mut DoorCall<'_, '_>,
    record: &Record,
    terms: &SignedTerms,
    tally: &mut Tally,
) -> Result<bool, DoorError> {
    let is_own = call.is_direct() && creator_that_pays(terms, &record.body, tally) == Some(call.caller());
    if !is_own {
        return Ok(false);
    }
    let rotation = load_record(call, call.caller())?.rotation;
    let before = std::mem::replace(&mut tally.creator_rotation, rotation);
    Ok(before != rotation)
}

/// Pays for the walk over the keys, in which each leaf is looked for among the signatures.
fn charge_walk(call: &mut DoorCall<'_, '_>, parties: &[PartyKey], counted: usize) -> Result<(), DoorError> {
    let leaves: u64 = parties.iter().map(|party| party.leaves() as u64).sum();
    call.charge(leaves.saturating_mul(counted as u64 / 8 + 1).saturating_mul(KEY_LEAF_GAS))
}

/// Marks the schedule and sets the run's gas aside: it follows this transaction (HEDERA-05, -07).
fn trigger(call: &mut DoorCall<'_, '_>, record: Record) -> Result<(), DoorError> {
    count_trigger(call)?;
    let (moment, gas_limit) = (call.moment(), record.body.gas_limit);
    let event = life::process(call, record, moment).map_err(thrown)?;
    call.tell(event)?;
    call.set_aside(gas_limit.0)
}

/// The counter is in transient storage, so it ends with the transaction, and a revert restores it.
fn count_trigger(call: &mut DoorCall<'_, '_>) -> Result<(), DoorError> {
    let journal = call.context().journal_mut();
    let count = journal.tload(LEDGER, TRIGGERED_SLOT);
    if count >= U256::from(SIGNED_TRIGGERS_MAX) {
        return Err(refused(Code::Busy));
    }
    journal.tstore(LEDGER, TRIGGERED_SLOT, count + U256::ONE);
    Ok(())
}
