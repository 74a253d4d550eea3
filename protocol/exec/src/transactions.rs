//! The user transactions of a block, with the market lane merged in by price.

use crate::{
    block::Execution,
    choose::{Room, TransactionSource},
    error::{BlockError, Fault},
    machine::{EvmContext, MachineError},
    market::MarketRuns,
    native::{
        keys::AuthError,
        rules::{check_enabled, check_expiration, check_native},
    },
    output::{self, Executed},
    prefetch::{Lookahead, announce_paid},
    signed,
    validate::{Sender, TransactionError, check_inclusion},
};
use alloy_primitives::Address;
use almanac_primitives::{
    Gas, GasPrice, Receipt, RecoveredTransaction, ReplayProtector,
    block::block_body_bytes,
    params::{BLOCK_BODY_BYTES_MAX, BLOCK_TRANSACTIONS_MAX},
};
use almanac_schedule::GasPool;
use revm::{Inspector, context_interface::result::ExecutionResult, interpreter::InitialAndFloorGas};

/// Executes the source's transactions in its order. Before each, executes the market runs with a strictly
/// higher bid; at the end, the rest of the market runs.
///
/// A proposer may leave out a transaction after runs went ahead of it. Nobody else sees that transaction, so what
/// follows must be what would also follow without it: `ahead` is the lowest bid that went ahead, and transactions that
/// pay as much are left for a later block (AIP125-14).
pub(crate) fn run<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    source: &mut dyn TransactionSource,
    mut market: MarketRuns,
) -> Result<(), BlockError> {
    let mut body = BlockBodySize::default();
    let mut lookahead = Lookahead::default();
    let mut ahead: Option<GasPrice> = None;
    while let Some(candidate) = source.next(body.room(execution.shared_gas_left(), market.gas())) {
        lookahead.step(execution.machine.state().parent(), &candidate, source);
        let (cap, base_fee) = (candidate.transaction().fee_cap(), execution.environment.base_fee);
        // A transaction without a price (fee cap below the base fee) cannot be ordered among the runs, and must
        // not pull all of them ahead of itself.
        let Some(price) = candidate.transaction().price_at(base_fee) else {
            source.refused(candidate, TransactionError::FeeCapBelowBaseFee { cap, base_fee })?;
            continue;
        };
        if let Some(ahead) = ahead.filter(|ahead| price >= *ahead) {
            source.refused(candidate, TransactionError::BehindRuns { price, ahead })?;
            continue;
        }
        // One that fails anyway must not pull runs ahead of itself either. The runs may make it fail, or make it valid:
        // a body is checked after them.
        let moves_runs = market.highest().is_some_and(|bid| bid > price);
        let is_valid = if moves_runs && source.is_choosing() {
            check(execution, &candidate, &body).map(|_| ())
        } else {
            Ok(())
        };
        let included = match is_valid {
            Ok(()) => {
                let dearer = market.run_above(execution, Some(price))?;
                ahead = ahead.into_iter().chain(dearer).min();
                include(execution, &candidate, &mut body)
            }
            Err(error) => Err(error),
        };
        match included {
            Ok(()) => ahead = None,
            Err(IncludeError::Refused(error)) => source.refused(candidate, error)?,
            Err(IncludeError::Faulted(error)) => source.faulted(candidate, error)?,
            Err(IncludeError::Block(error)) => return Err(error),
        }
    }
    market.run_above(execution, None)?;
    market.let_others_wait(execution)
}

/// How full the body is.
#[derive(Default)]
struct BlockBodySize {
    bytes: usize,
    count: usize,
}

impl BlockBodySize {
    fn room(&self, gas_left: Gas, runs_gas: Gas) -> Room {
        Room {
            gas_left,
            runs_gas,
            bytes_left: BLOCK_BODY_BYTES_MAX - self.bytes,
            count_left: BLOCK_TRANSACTIONS_MAX - self.count,
        }
    }
}

enum IncludeError {
    /// The transaction breaks a rule; nothing changed.
    Refused(TransactionError),
    /// Executing it caused a fault; nothing changed.
    Faulted(BlockError),
    /// The block cannot continue.
    Block(BlockError),
}

impl From<TransactionError> for IncludeError {
    fn from(error: TransactionError) -> Self {
        Self::Refused(error)
    }
}

/// Checks a transaction on the present state. Returns its bytes in the body, and the gas that a native one pays before
/// its first call.
fn check<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    candidate: &RecoveredTransaction,
    body: &BlockBodySize,
) -> Result<(usize, Option<InitialAndFloorGas>), IncludeError> {
    let transaction = candidate.transaction();
    let bytes = check_room(candidate, body.room(execution.shared_gas_left(), Gas::ZERO))?;
    let sender = Sender::of(execution.machine.state(), candidate.sender())
        .map_err(|fault| IncludeError::Faulted(fault.into()))?;
    let base_fee = execution.environment.base_fee;
    check_enabled(transaction, &execution.environment.parameters)?;
    check_expiration(transaction, execution.environment.timestamp)?;
    check_inclusion(transaction, candidate.sender(), &sender, base_fee)?;
    let native =
        transaction.native().map(|native| check_native(execution.machine.state(), candidate, native));
    Ok((bytes, native.transpose()?))
}

impl From<AuthError> for IncludeError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Rule(error) => Self::Refused(error),
            AuthError::State(fault) => Self::Faulted(fault.into()),
        }
    }
}

fn include<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    candidate: &RecoveredTransaction,
    body: &mut BlockBodySize,
) -> Result<(), IncludeError> {
    let transaction = candidate.transaction();
    let (bytes, native_gas) = check(execution, candidate, body)?;
    let base_fee = execution.environment.base_fee;
    announce_paid(execution.machine.state().parent(), candidate);
    let is_watched = execution.is_watched();
    execution.name_next().map_err(IncludeError::Block)?;
    let machine = &mut execution.machine;
    let executed = match transaction.native().zip(native_gas) {
        Some((native, gas)) => machine.transact_native(candidate.hash(), native, gas, is_watched),
        None => machine.transact_user(candidate, is_watched),
    };
    let executed = executed.map_err(|error| match error {
        MachineError::State(fault) => IncludeError::Faulted(fault.into()),
        MachineError::Fault(fault) => IncludeError::Faulted(fault.into()),
        // It passed our rules, so the EVM must accept it: if the two disagree, our rules are wrong.
        MachineError::Refused(reason) => {
            IncludeError::Faulted(Fault::RulesDisagree { reason: reason.to_string() }.into())
        }
    })?;
    let gas_used = Gas(executed.result.tx_gas_used());
    let burned =
        execution.weigh(executed.balances, gas_used.cost(base_fee)).map_err(IncludeError::Faulted)?;
    execution.commit(executed.changes, burned).map_err(IncludeError::Block)?;
    if let ReplayProtector::Nonce { nonce, expiration } = transaction.replay_protector() {
        execution.machine.state().use_nonce((candidate.sender(), nonce), expiration);
    }
    execution.use_gas(GasPool::Shared, gas_used);
    let contract_address = created_address(&executed.result);
    let (outcome, logs) = output::outcome(executed.result);
    let receipt = Receipt {
        transaction_type: transaction.transaction_type(),
        transaction_hash: transaction.hash(),
        outcome,
        gas_used,
        cumulative_gas_used: execution.cumulative_gas,
        effective_gas_price: transaction.price_at(base_fee).expect("the cap was checked"),
        contract_address,
        failed_call: executed.failed_call,
        schedule_ref: None,
        logs,
    };
    let triggered = signed::triggers(&executed.events);
    execution.tell(executed.events);
    execution.record(Executed::User(candidate.clone()), receipt, executed.footprint);
    body.bytes += bytes;
    body.count += 1;
    signed::run_all(execution, triggered, GasPool::Shared).map_err(IncludeError::Block)
}

fn check_room(candidate: &RecoveredTransaction, room: Room) -> Result<usize, TransactionError> {
    let transaction = candidate.transaction();
    let (gas, bytes) = (Gas(transaction.gas_limit()), block_body_bytes(transaction));
    if room.count_left == 0 {
        return Err(TransactionError::BlockCountFull { max: BLOCK_TRANSACTIONS_MAX });
    }
    if gas > room.gas_left || bytes > room.bytes_left {
        let Room { gas_left, bytes_left, .. } = room;
        return Err(TransactionError::DoesNotFit { gas, bytes, gas_left, bytes_left });
    }
    Ok(bytes)
}

fn created_address(result: &ExecutionResult) -> Option<Address> {
    match result {
        ExecutionResult::Success { output, .. } => output.address().copied(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_consensus::{SignableTransaction, TxLegacy, crypto::secp256k1::sign_message};
    use alloy_eips::eip2718::Encodable2718;
    use alloy_primitives::B256;
    use almanac_primitives::UserTransaction;

    fn candidate(gas_limit: u64) -> RecoveredTransaction {
        let tx = TxLegacy { gas_limit, ..Default::default() };
        let signature = sign_message(B256::repeat_byte(1), tx.signature_hash()).unwrap();
        let bytes = tx.into_signed(signature).encoded_2718();
        RecoveredTransaction::recover(
            UserTransaction::decode(&bytes).unwrap(),
            &almanac_primitives::Chain::default(),
        )
        .unwrap()
    }

    #[test]
    fn both_sides_of_every_limit_of_a_body() {
        let candidate = candidate(21_000);
        let size = block_body_bytes(candidate.transaction());
        let room = Room { gas_left: Gas(21_000), bytes_left: size, count_left: 1, runs_gas: Gas(7) };
        assert_eq!(check_room(&candidate, room), Ok(size));
        assert_eq!(
            check_room(&candidate, Room { count_left: 0, ..room }),
            Err(TransactionError::BlockCountFull { max: BLOCK_TRANSACTIONS_MAX })
        );
        let does_not_fit = |room: Room| TransactionError::DoesNotFit {
            gas: Gas(21_000),
            bytes: size,
            gas_left: room.gas_left,
            bytes_left: room.bytes_left,
        };
        for tight in [Room { gas_left: Gas(20_999), ..room }, Room { bytes_left: size - 1, ..room }] {
            assert_eq!(check_room(&candidate, tight), Err(does_not_fit(tight)));
        }
    }

    #[test]
    fn a_body_counts_what_it_holds() {
        let empty = BlockBodySize::default().room(Gas(7), Gas(5));
        assert_eq!(
            empty,
            Room {
                gas_left: Gas(7),
                bytes_left: BLOCK_BODY_BYTES_MAX,
                count_left: BLOCK_TRANSACTIONS_MAX,
                runs_gas: Gas(5)
            }
        );
        let full = BlockBodySize { bytes: BLOCK_BODY_BYTES_MAX, count: BLOCK_TRANSACTIONS_MAX };
        let nothing = Room { gas_left: Gas(0), bytes_left: 0, count_left: 0, runs_gas: Gas(0) };
        assert_eq!(full.room(Gas(0), Gas(0)), nothing);
    }
}
