//! Native transactions that are only simulated. Nobody has signed them, so signatures are counted and not checked.

use super::{
    gas::{intrinsic, key_record, plus},
    keys::{AuthError, stored_key},
    rules::{check_enabled, check_expiration, check_fee_payer, check_nonce_history},
};
use crate::{
    environment::Environment,
    error::StateFault,
    machine::{EvmContext, Executed, Machine, Strictness},
    simulate::{Asked, Call, SimulateError, refused},
    state::BlockState,
    validate::{Rules, Sender, check_funds, check_inclusion, check_static},
};
use alloy_primitives::{Address, Bytes};
use almanac_primitives::{
    GasPrice, NativeCall, NativeTransaction, ReplayProtector, StateRead, UserTransaction, native::Kind,
    transaction::PLACEHOLDER_SIGNATURE,
};
use revm::{Inspector, interpreter::InitialAndFloorGas};

/// What only a native transaction says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeParts {
    /// What it does, in order; all or nothing.
    pub calls: Vec<NativeCall>,
    /// What keeps it from running twice.
    pub kind: Kind,
    /// The second from which on it is refused; 0 is never.
    pub expiration: u64,
    /// The most it pays per gas.
    pub fee_cap: GasPrice,
    /// The most it pays per gas beyond the base fee.
    pub tip_cap: GasPrice,
    /// Who pays for the gas, if not the sender.
    pub fee_payer: Option<Address>,
    /// Signatures of the sender, which are paid for. Without any, as many as its key can take.
    pub signatures: Vec<Bytes>,
    /// The same of the fee payer.
    pub fee_payer_signatures: Vec<Bytes>,
}

/// The transaction that a call would be, if it is a native one. Placeholders stand for signatures that it lacks.
pub fn native_transaction(
    state: &dyn StateRead,
    call: &Call,
    chain_id: u64,
) -> Result<Option<UserTransaction>, SimulateError> {
    let parts = call.native.as_ref();
    parts.map(|parts| transaction(&mut BlockState::new(state), call, parts, chain_id)).transpose()
}

fn transaction(
    state: &mut BlockState<'_>,
    call: &Call,
    parts: &NativeParts,
    chain_id: u64,
) -> Result<UserTransaction, SimulateError> {
    let nonce = match (call.nonce, parts.kind) {
        (Some(nonce), _) => nonce,
        (None, Kind::Orderless) => 0,
        (None, Kind::Sequence) => Sender::of(state, call.from)?.nonce,
    };
    let signatures = or_placeholders(state, call.from, &parts.signatures)?;
    let fee_payer_signatures = match parts.fee_payer {
        Some(payer) => or_placeholders(state, payer, &parts.fee_payer_signatures)?,
        None => parts.fee_payer_signatures.clone(),
    };
    // By way of the decoder, which knows every bound.
    let transaction = UserTransaction::native_signed(NativeTransaction {
        chain_id,
        sender: call.from,
        kind: parts.kind,
        nonce,
        expiration: parts.expiration,
        max_priority_fee_per_gas: parts.tip_cap.0,
        max_fee_per_gas: parts.fee_cap.0,
        gas_limit: call.gas_limit.0,
        calls: parts.calls.clone(),
        fee_payer: parts.fee_payer,
        signatures,
        fee_payer_signatures,
    })?;
    Ok(transaction)
}

/// The signatures that are given, or placeholders for the most that the account's key can take: whichever of its keys
/// sign in the end, the gas suffices.
fn or_placeholders(
    state: &mut BlockState<'_>,
    account: Address,
    given: &[Bytes],
) -> Result<Vec<Bytes>, StateFault> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let count = match stored_key(state, account)? {
        Some(stored) => state.stored_key(account, stored)?.signatures_max(),
        None => 1,
    };
    let mut placeholder = PLACEHOLDER_SIGNATURE.as_bytes();
    placeholder[64] = 0;
    Ok(vec![Bytes::copy_from_slice(&placeholder); usize::from(count)])
}

/// Simulates a call as a native transaction. A strict one obeys every rule of a block but that of signatures.
pub(crate) fn transact<'a, I: Inspector<EvmContext<'a>>>(
    machine: &mut Machine<'a, I>,
    environment: &Environment,
    (call, parts): (&Call, &NativeParts),
    strictness: Strictness,
    is_watched: bool,
) -> Result<Executed, SimulateError> {
    let transaction = transaction(machine.state(), call, parts, environment.chain.id)?;
    let native = transaction.native().expect("it was made as one");
    match strictness {
        Strictness::Block => check(machine.state(), environment, &transaction, native)?,
        Strictness::Simulation => {
            let sender = Sender::of(machine.state(), native.sender)?;
            check_funds(&transaction, native.sender, &sender)?;
            check_fee_payer(machine.state(), &transaction)?;
        }
    }
    let gas = gas(machine.state(), native)?;
    let executed = machine.transact_native(transaction.hash(), native, gas, is_watched).map_err(|error| {
        let asked = Asked { from: call.from, cap: parts.fee_cap, gas_limit: call.gas_limit };
        refused(error, environment, asked)
    })?;
    if let ReplayProtector::Nonce { nonce, expiration } = transaction.replay_protector() {
        machine.state().use_nonce((native.sender, nonce), expiration);
    }
    Ok(executed)
}

fn check(
    state: &mut BlockState<'_>,
    environment: &Environment,
    transaction: &UserTransaction,
    native: &NativeTransaction,
) -> Result<(), SimulateError> {
    let rules = Rules { chain: environment.chain, gas_max: environment.gas_limit, is_developer: false };
    check_static(transaction, &rules)?;
    check_enabled(transaction, &environment.parameters)?;
    check_expiration(transaction, environment.timestamp)?;
    let sender = Sender::of(state, native.sender)?;
    check_inclusion(transaction, native.sender, &sender, environment.base_fee)?;
    check_nonce_history(state, transaction, native)?;
    Ok(check_fee_payer(state, transaction)?)
}

/// What it pays before its first call, key records included.
fn gas(state: &mut BlockState<'_>, native: &NativeTransaction) -> Result<InitialAndFloorGas, StateFault> {
    let mut gas = intrinsic(native);
    for account in [Some(native.sender), native.fee_payer].into_iter().flatten() {
        if let Some(stored) = stored_key(state, account)? {
            gas = plus(gas, key_record(stored.leaves));
        }
    }
    Ok(gas)
}

impl From<AuthError> for SimulateError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Rule(rule) => rule.into(),
            AuthError::State(fault) => fault.into(),
        }
    }
}
