//! The rules that only native transactions have, at submission and in a block.

use super::{
    gas,
    keys::{AuthError, authenticate, check_named},
};
use crate::{
    error::StateFault,
    state::BlockState,
    validate::{Sender, TransactionError, least_gas, payer_cost_max},
};
use almanac_primitives::{
    NativeTransaction, RecoveredTransaction, ReplayProtector, StateRead, TimestampMs, UserTransaction,
    params::{NONCE_KEPT_SECONDS, ORDERLESS_AHEAD_MS_MAX, ORDERLESS_ENABLED, Parameters, SECOND_MS},
};
use revm::interpreter::InitialAndFloorGas;

/// Whether governance has switched a transaction's kind off (ORDERLESS-11).
pub fn check_enabled(transaction: &UserTransaction, parameters: &Parameters) -> Result<(), TransactionError> {
    if transaction.is_orderless() && parameters.get(ORDERLESS_ENABLED) == 0 {
        return Err(TransactionError::OrderlessDisabled);
    }
    Ok(())
}

/// Whether a transaction may be in a block of this time (ORDERLESS-03).
pub fn check_expiration(transaction: &UserTransaction, now: TimestampMs) -> Result<(), TransactionError> {
    let Some(given) = transaction.expiration() else { return Ok(()) };
    // What overflows is far ahead.
    let expires_at = given.saturating_mul(SECOND_MS);
    if expires_at <= now.0 {
        return Err(TransactionError::TransactionExpired { given, now });
    }
    if transaction.is_orderless() && expires_at - now.0 > ORDERLESS_AHEAD_MS_MAX {
        return Err(TransactionError::ExpirationTooFar { given, now, max_ms: ORDERLESS_AHEAD_MS_MAX });
    }
    Ok(())
}

/// Whether the signatures of a native transaction could be those of its sender and fee payer, who can pay, and its nonce is
/// free, in a state, before any is recovered: anyone can name somebody who can pay. Other kinds pass.
pub fn check_signatures(
    state: &dyn StateRead,
    transaction: &UserTransaction,
) -> Result<Result<(), TransactionError>, StateFault> {
    let Some(native) = transaction.native() else { return Ok(Ok(())) };
    match check_unrecovered(&mut BlockState::new(state), transaction, native) {
        Ok(()) => Ok(Ok(())),
        Err(AuthError::Rule(error)) => Ok(Err(error)),
        Err(AuthError::State(fault)) => Err(fault),
    }
}

fn check_unrecovered(
    state: &mut BlockState<'_>,
    transaction: &UserTransaction,
    native: &NativeTransaction,
) -> Result<(), AuthError> {
    check_nonce_history(state, transaction, native)?;
    let parties =
        [(Some(native.sender), &native.signatures), (native.fee_payer, &native.fee_payer_signatures)];
    for (account, signatures) in parties {
        let Some(account) = account else { continue };
        check_named(state, account, signatures)?;
    }
    check_fee_payer(state, transaction)
}

/// Whether sender and fee payer of a native transaction have signed it and can pay, and its nonce is free, in a state.
/// Other kinds pass.
pub fn check_parties(
    state: &dyn StateRead,
    candidate: &RecoveredTransaction,
) -> Result<Result<(), TransactionError>, StateFault> {
    let Some(native) = candidate.transaction().native() else { return Ok(Ok(())) };
    match check_native(&mut BlockState::new(state), candidate, native) {
        Ok(_) => Ok(Ok(())),
        Err(AuthError::Rule(error)) => Ok(Err(error)),
        Err(AuthError::State(fault)) => Err(fault),
    }
}

/// The same in a block's state. Returns the gas that it pays before its first call.
pub(crate) fn check_native(
    state: &mut BlockState<'_>,
    candidate: &RecoveredTransaction,
    native: &NativeTransaction,
) -> Result<InitialAndFloorGas, AuthError> {
    let transaction = candidate.transaction();
    check_nonce_history(state, transaction, native)?;
    let mut gas = gas::intrinsic(native);
    let Some(proven) = candidate.proven() else {
        return Err(AuthError::Rule(TransactionError::KeyNotSatisfied { account: native.sender }));
    };
    let parties = [(Some(native.sender), &proven.sender), (native.fee_payer, &proven.fee_payer)];
    for (account, leaves) in parties {
        let Some(account) = account else { continue };
        let paid = |extra| {
            let needed = least_gas(&gas::plus(gas, extra));
            let given = native.gas_limit;
            if given < needed { Err(TransactionError::IntrinsicGasTooLow { given, needed }) } else { Ok(()) }
        };
        let extra = authenticate(state, account, leaves, paid)?;
        gas = gas::plus(gas, extra);
    }
    check_fee_payer(state, transaction)?;
    Ok(gas)
}

/// ORDERLESS-02 and -04: a pair is taken until 130 s after it expired.
pub(crate) fn check_nonce_history(
    state: &BlockState<'_>,
    transaction: &UserTransaction,
    native: &NativeTransaction,
) -> Result<(), AuthError> {
    let ReplayProtector::Nonce { nonce, expiration } = transaction.replay_protector() else { return Ok(()) };
    let Some(taken_until) = state.nonce_expiration((native.sender, nonce))? else { return Ok(()) };
    if expiration <= taken_until.saturating_add(NONCE_KEPT_SECONDS) {
        return Err(AuthError::Rule(TransactionError::NonceAlreadyUsed { nonce, expiration: taken_until }));
    }
    Ok(())
}

/// Whether the fee payer can sign, and pay.
pub(crate) fn check_fee_payer(
    state: &mut BlockState<'_>,
    transaction: &UserTransaction,
) -> Result<(), AuthError> {
    let Some((payer, needed)) = payer_cost_max(transaction).map_err(AuthError::Rule)? else { return Ok(()) };
    let account = Sender::of(state, payer)?;
    if !account.may_sign {
        return Err(AuthError::Rule(TransactionError::SenderHasCode { sender: payer }));
    }
    if account.balance < needed {
        let balance = account.balance;
        return Err(AuthError::Rule(TransactionError::FeePayerFunds { payer, needed, balance }));
    }
    Ok(())
}
