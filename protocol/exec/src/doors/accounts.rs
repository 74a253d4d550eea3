//! The accounts contract: keys of accounts, their rotation, and accounts made for a key (decision 0033).

use super::{
    call::{DoorCall, DoorError, revert},
    market,
};
use crate::{native, state::BlockState};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, keccak256};
use almanac_primitives::{
    addresses::ACCOUNTS,
    keys::{
        KEY_BYTES_MAX, KeyError, KeyFault, KeyRecord, KeyTree, Leaf, StoredKey, ed25519_address, prove,
        rotation_digest,
    },
    params::{KEY_BYTE_GAS, NEW_ACCOUNT_GAS, PARTY_GAS, SIGNATURE_GAS},
};
use revm::{
    context::{ContextTr as _, JournalTr as _},
    context_interface::journaled_state::account::JournaledAccountTr as _,
    state::Bytecode,
};

alloy_sol_types::sol!("../../contracts/IAccounts.sol");
use IAccounts::IAccountsCalls as Method;

/// Gas per word of what is hashed, as in KECCAK256.
pub(super) const HASH_WORD_GAS: u64 = 6;

/// Gas of an address from a key, and of a digest of typed data, beside the words that are hashed: what they take of plain
/// work (`make bench-prices`).
const ADDRESS_GAS: u64 = 200;
const DIGEST_GAS: u64 = 2_400;

/// Longest input of any method: the longest key, and a proof for each of its leaves.
const INPUT_BYTES_MAX: usize = 8 * 1024;

/// Answers one call.
pub(super) fn call(call: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    // The items of a list of byte strings may overlap, so that decoding copies up to a quarter of the input's square:
    // paid at the price of copying, and bounded.
    if call.input_len() > INPUT_BYTES_MAX {
        return Err(call.malformed());
    }
    let words = call.input_len().div_ceil(32) as u64;
    call.charge(words * words * 3 / 4)?;
    match call.decode::<Method>()? {
        Method::rotateKey(args) => rotate(call, &args.key, &args.proofs),
        Method::createAccount(args) => create(call, &args.key, args.salt),
        Method::keyOf(args) => {
            let record = load_record(call, args.account)?;
            let key = load_key(call, args.account, record)?;
            call.answer_all(&(key.encoded().clone(), record.rotation))
        }
        Method::addressOfKey(args) => {
            call.charge(ADDRESS_GAS)?;
            call.charge_input(HASH_WORD_GAS)?;
            call.answer(&ed25519_address(args.ed25519))
        }
        Method::isSatisfied(args) => {
            let is_satisfied = is_satisfied(call, args.account, args.digest, &args.signatures)?;
            call.answer(&is_satisfied)
        }
        Method::rotationDigest(args) => {
            call.charge(DIGEST_GAS)?;
            call.charge_input(HASH_WORD_GAS)?;
            let next = load_record(call, args.account)?.rotation.saturating_add(1);
            call.answer(&rotation_digest(call.chain(), args.account, &args.key, next))
        }
    }
}

fn rotate(call: &mut DoorCall<'_, '_>, key: &Bytes, proofs: &[Bytes]) -> Result<Bytes, DoorError> {
    call.refuse_static()?;
    // A contract that a user calls must not be able to take the user's account.
    if !call.is_direct() {
        return Err(revert(IAccounts::NotTopLevel {}));
    }
    let account = call.caller();
    let key = read_new_key(call, key)?;
    let record = load_record(call, account)?;
    let rotation = record.rotation.saturating_add(1);
    call.charge_input(HASH_WORD_GAS)?;
    let digest = rotation_digest(call.chain(), account, key.encoded(), rotation);
    let proven = prove_paid(call, digest, proofs)?;
    if proven.is_none_or(|leaves| key.check(&leaves).is_err()) {
        return Err(revert(IAccounts::ProofMissing {}));
    }
    let stored = (!key.is_default_of(account)).then(|| StoredKey::of(&key));
    store_record(call, account, &key, KeyRecord { rotation, key: stored })?;
    end_rights_of_old_key(call, account)?;
    call.emit(&IAccounts::KeyRotated { account, rotation, key: key.encoded().clone() })?;
    Ok(Bytes::new())
}

/// Ends what the old key had allowed: its delegation, and the scheduled transactions that act in the account's name
/// (AIP125-22). What contracts and other doors granted to the address stays the address's.
fn end_rights_of_old_key(call: &mut DoorCall<'_, '_>, account: Address) -> Result<(), DoorError> {
    let journal = call.context().journal_mut();
    let loaded = &journal.load_account_with_code(account)?.info;
    match &loaded.code {
        // Its code may trust the old key.
        Some(code) if code.is_eip7702() => {
            journal.set_code_with_hash(account, Bytecode::default(), KECCAK256_EMPTY);
        }
        // Only a developer acts in a contract's name.
        Some(code) if !code.is_empty() => return Err(revert(IAccounts::AccountTaken { account })),
        _ => {}
    }
    market::cancel_all_of(call, account)?;
    keep_from_vanishing(call, account)
}

/// An account without a nonce and money would be removed as empty (EIP-161), and its flag with it.
fn keep_from_vanishing(call: &mut DoorCall<'_, '_>, account: Address) -> Result<(), DoorError> {
    let mut loaded = call.context().journal_mut().load_account_mut(account)?.data;
    if loaded.nonce() == 0 {
        loaded.set_nonce(1);
    }
    Ok(())
}

fn create(call: &mut DoorCall<'_, '_>, key: &Bytes, salt: B256) -> Result<Bytes, DoorError> {
    call.refuse_static()?;
    let key = read_new_key(call, key)?;
    call.charge_input(HASH_WORD_GAS)?;
    let creator = call.caller();
    let account = created_address(creator, salt, key.encoded());
    call.charge(PARTY_GAS + NEW_ACCOUNT_GAS)?;
    let loaded = call.context().journal_mut().load_account(account)?.data.info.clone();
    let record = load_record(call, account)?;
    if loaded.nonce > 0 || !loaded.is_empty_code_hash() || record != KeyRecord::default() {
        return Err(revert(IAccounts::AccountTaken { account }));
    }
    store_record(call, account, &key, KeyRecord { rotation: 0, key: Some(StoredKey::of(&key)) })?;
    keep_from_vanishing(call, account)?;
    call.emit(&IAccounts::AccountCreated { account, creator, key: key.encoded().clone() })?;
    call.answer(&account)
}

/// The address of an account that is made for a key.
fn created_address(creator: Address, salt: B256, key: &[u8]) -> Address {
    let mut bytes = Vec::with_capacity(15 + 20 + 64);
    bytes.extend_from_slice(b"almanac account");
    bytes.extend_from_slice(creator.as_slice());
    bytes.extend_from_slice(salt.as_slice());
    bytes.extend_from_slice(keccak256(key).as_slice());
    Address::from_word(keccak256(bytes))
}

fn is_satisfied(
    call: &mut DoorCall<'_, '_>,
    account: Address,
    digest: B256,
    signatures: &[Bytes],
) -> Result<bool, DoorError> {
    let record = load_record(call, account)?;
    let proven = prove_paid(call, digest, signatures)?;
    let Some(leaves) = proven else { return Ok(false) };
    Ok(match record.key {
        Some(_) => load_key(call, account, record)?.check(&leaves).is_ok(),
        None => native::keys::own_key(account, &leaves).is_ok(),
    })
}

/// Pays for a new key, then reads it.
fn read_new_key(call: &mut DoorCall<'_, '_>, key: &Bytes) -> Result<KeyTree, DoorError> {
    if key.len() > KEY_BYTES_MAX {
        return Err(refused(KeyError { offset: KEY_BYTES_MAX, fault: KeyFault::TooLong }));
    }
    call.charge((key.len() as u64).saturating_mul(KEY_BYTE_GAS))?;
    KeyTree::decode(key).map_err(refused)
}

fn refused(error: KeyError) -> DoorError {
    let offset = alloy_primitives::U256::from(error.offset);
    revert(IAccounts::KeyRefused { offset, reason: error.fault.to_string() })
}

/// Pays for signatures, then turns them into the leaves that they prove; `None` if they prove nothing.
fn prove_paid(
    call: &mut DoorCall<'_, '_>,
    digest: B256,
    signatures: &[Bytes],
) -> Result<Option<Vec<Leaf>>, DoorError> {
    call.charge((signatures.len() as u64).saturating_mul(SIGNATURE_GAS))?;
    Ok(prove(digest, signatures).ok())
}

pub(super) fn load_record(call: &mut DoorCall<'_, '_>, account: Address) -> Result<KeyRecord, DoorError> {
    let word = call.load_word(ACCOUNTS, KeyRecord::slot(account))?;
    // Nothing but this contract writes its slots.
    KeyRecord::from_word(word).map_err(|error| DoorError::State(BlockState::corrupt_record(account, error)))
}

fn store_record(
    call: &mut DoorCall<'_, '_>,
    account: Address,
    key: &KeyTree,
    record: KeyRecord,
) -> Result<(), DoorError> {
    call.store_word(ACCOUNTS, KeyRecord::slot(account), record.to_word())?;
    call.context().journaled_state.database.keep_key(account, key);
    Ok(())
}

/// The key of a record. What reading it costs is in the record.
pub(super) fn load_key(
    call: &mut DoorCall<'_, '_>,
    account: Address,
    record: KeyRecord,
) -> Result<KeyTree, DoorError> {
    match record.key {
        Some(stored) => {
            call.charge(native::gas::key_record(stored.leaves))?;
            Ok(call.context().journaled_state.database.stored_key(account, stored)?)
        }
        None => Ok(KeyTree::single(Leaf::Secp256k1(account))),
    }
}
