//! The developer door: edits balances, code, nonces and storage, on chains whose genesis allows it.
//!
//! An edit is a call in a transaction in a block, so replay, history and proofs work for an edited chain as for
//! any other. Balance edits move money and never create it: the developer account pays or receives the
//! difference.

use super::call::{DoorCall, DoorError, revert};
use crate::{environment::NEXT_BASE_FEE_SLOT, state::bytecode};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    addresses::{DEVELOPER, DEVELOPER_DOOR, is_system},
    params::{BASE_FEE_MAX, CODE_BYTES_MAX, DEVELOPER_RESERVE},
};
use revm::{
    context::{ContextTr, JournalTr},
    context_interface::journaled_state::account::JournaledAccountTr,
};

alloy_sol_types::sol!("../../contracts/IDeveloper.sol");
use IDeveloper::IDeveloperCalls as Method;

/// Gas of writing one account or slot. It only has to bound a block's work, since nobody competes for it.
const EDIT_GAS: u64 = 25_000;

/// Gas per byte of code, as in contract creation.
const CODE_BYTE_GAS: u64 = 200;

/// Answers one call.
pub(super) fn call(call: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    let caller = call.caller();
    if caller != DEVELOPER {
        return Err(revert(IDeveloper::NotDeveloper { caller, developer: DEVELOPER }));
    }
    let method = call.decode::<Method>()?;
    call.refuse_static()?;
    call.charge(EDIT_GAS)?;
    match method {
        Method::setBalance(args) => set_balance(call, editable(args.account)?, args.balance)?,
        Method::setCode(args) => set_code(call, editable(args.account)?, args.code)?,
        Method::setNonce(args) => set_nonce(call, editable(args.account)?, args.nonce)?,
        Method::setStorageAt(args) => set_storage(call, editable(args.account)?, args.slot, args.value)?,
        Method::setNextBaseFee(args) => set_next_base_fee(call, args.baseFee)?,
    }
    Ok(Bytes::new())
}

/// Rejects the chain's own accounts, on which invariants depend, and the developer's, on which every edit
/// depends.
fn editable(account: Address) -> Result<Address, DoorError> {
    if is_system(account) || account == DEVELOPER {
        return Err(revert(IDeveloper::NotEditable { account }));
    }
    Ok(account)
}

fn set_balance(call: &mut DoorCall<'_, '_>, account: Address, wanted: U256) -> Result<(), DoorError> {
    let journal = call.context().journal_mut();
    let had = journal.load_account(account)?.data.info.balance;
    let treasury = journal.load_account(DEVELOPER)?.data.info.balance;
    let (from, to) = if wanted > had { (DEVELOPER, account) } else { (account, DEVELOPER) };
    let moved = wanted.abs_diff(had);
    let available = treasury.saturating_sub(DEVELOPER_RESERVE.0);
    if from == DEVELOPER && moved > available {
        return Err(revert(IDeveloper::TreasuryTooSmall { needed: moved, available }));
    }
    let refused = journal.transfer(from, to, moved)?;
    assert!(refused.is_none(), "the payer has what is moved, and the supply fits any balance");
    Ok(())
}

fn set_code(call: &mut DoorCall<'_, '_>, account: Address, code: Bytes) -> Result<(), DoorError> {
    if code.len() > CODE_BYTES_MAX {
        let (given, max) = (U256::from(code.len()), U256::from(CODE_BYTES_MAX));
        return Err(revert(IDeveloper::CodeTooLarge { given, max }));
    }
    call.charge(CODE_BYTE_GAS * code.len() as u64)?;
    let is_code = !code.is_empty();
    let mut edited = call.context().journal_mut().load_account_with_code_mut(account)?;
    edited.set_code_and_hash_slow(bytecode(code));
    if is_code && edited.nonce() == 0 {
        edited.set_nonce(1);
    }
    Ok(())
}

fn set_nonce(call: &mut DoorCall<'_, '_>, account: Address, given: u64) -> Result<(), DoorError> {
    let mut edited = call.context().journal_mut().load_account_mut(account)?;
    let current = edited.nonce();
    if given < current {
        return Err(revert(IDeveloper::NonceTooLow { given, current }));
    }
    edited.set_nonce(given);
    Ok(())
}

/// Stores the base fee for the next block.
fn set_next_base_fee(call: &mut DoorCall<'_, '_>, given: U256) -> Result<(), DoorError> {
    let (min, max) = (U256::from(call.parameters().base_fee_floor().0), U256::from(BASE_FEE_MAX.0));
    if !(min..=max).contains(&given) {
        return Err(revert(IDeveloper::BaseFeeOutOfBounds { given, min, max }));
    }
    call.context().journal_mut().load_account(DEVELOPER_DOOR)?;
    call.context().journal_mut().touch_account(DEVELOPER_DOOR);
    call.context().journal_mut().sstore(DEVELOPER_DOOR, NEXT_BASE_FEE_SLOT, given)?;
    Ok(())
}

fn set_storage(
    call: &mut DoorCall<'_, '_>,
    account: Address,
    slot: U256,
    value: U256,
) -> Result<(), DoorError> {
    let mut edited = call.context().journal_mut().load_account_mut(account)?;
    // An account that is empty by EIP-161 would be removed together with its storage.
    let nonce = edited.nonce().max(1);
    edited.set_nonce(nonce);
    call.context().journal_mut().sstore(account, slot, value)?;
    Ok(())
}
