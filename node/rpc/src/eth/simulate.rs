//! `eth_simulateV1`: simulates a series of blocks, each on the effects of the ones before.

use super::{
    attempt::{Attempt, AttemptError, called},
    fill::unsigned,
    overlay::check_count,
    request::CallRequest,
};
use crate::{
    answer::{Answer, Room},
    bounds::{SIMULATE_BLOCKS_MAX, SIMULATE_CALLS_MAX},
    error,
    revert::Called,
    types::{RpcBlock, RpcLog},
    wallet::encode_signed,
};
use alloy_primitives::{B256, Bytes, Signature, TxKind, U64, U256};
use alloy_rpc_types_eth::{
    TransactionRequest,
    simulate::{SimBlock, SimulateError, SimulatePayload},
};
use almanac_exec::{Call, CallResult, Sender, native_transaction};
use almanac_index::{IndexedBlock, Parties};
use almanac_primitives::{
    Block, Gas, Header, Outcome, Receipt, StateDiff, UserTransaction,
    block::{receipts_root, transactions_root},
    fees::next_base_fee,
};
use jsonrpsee::core::RpcResult;
use revm::inspector::NoOpInspector;
use revm_inspectors::transfer::TransferInspector;
use serde::Serialize;
use std::sync::Arc;

/// How to ask for less.
const FEWER_CALLS: &str = "simulate fewer calls at once, or let them return and log less";
/// Error code of a call that reverted, and of one that failed otherwise.
const REVERTED: i32 = 3;
const FAILED: i32 = -32_015;

/// A block that never was.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SimulatedBlock {
    #[serde(flatten)]
    block: RpcBlock,
    calls: Vec<SimulatedCall>,
}

/// What one call gave.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SimulatedCall {
    return_data: Bytes,
    logs: Vec<RpcLog>,
    gas_used: U64,
    status: U64,
    /// Which call of a native transaction failed and undid the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_call: Option<U64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<SimulateError>,
}

/// How calls are tried.
struct Rules {
    /// Each must be one that a block could hold.
    is_strict: bool,
    /// Each transfer of value makes a log, as if money were a token at 0xeeee….
    shows_transfers: bool,
}

impl Rules {
    fn run(&self, attempt: &mut Attempt, call: Call) -> Result<(CallResult, StateDiff), AttemptError> {
        if self.shows_transfers {
            attempt.step(call, self.is_strict, TransferInspector::new(false).with_logs(true))
        } else {
            attempt.step(call, self.is_strict, NoOpInspector)
        }
    }
}

/// Tries all blocks, one after the other, on the block that the attempt is about.
pub(super) fn simulate_blocks(
    mut attempt: Attempt,
    payload: SimulatePayload<CallRequest>,
) -> RpcResult<Vec<Answer<SimulatedBlock>>> {
    check_size(&payload)?;
    let rules = Rules { is_strict: payload.validation, shows_transfers: payload.trace_transfers };
    let mut parent = (attempt.base.block.header.clone(), attempt.base.hash);
    let mut gas_left = attempt.environment.parameters.block_gas_max();
    let (mut simulated, mut room) = (Vec::new(), Room::new(FEWER_CALLS));
    for wanted in payload.block_state_calls {
        begin(&mut attempt, &parent, payload.validation);
        let (block, calls) = run_block(&mut attempt, wanted, &parent.0, &rules, &mut gas_left, room)?;
        parent = (block.block.header.clone(), block.hash);
        let block = RpcBlock::new(&block, attempt.environment.chain.id, payload.return_full_transactions);
        simulated.push(room.write(&SimulatedBlock { block, calls })?);
    }
    Ok(simulated)
}

fn check_size(payload: &SimulatePayload<CallRequest>) -> RpcResult<()> {
    let blocks = payload.block_state_calls.len();
    let calls: usize = payload.block_state_calls.iter().map(|block| block.calls.len()).sum();
    if blocks > SIMULATE_BLOCKS_MAX {
        return Err(error::limit(format!("{blocks} blocks are above the limit of {SIMULATE_BLOCKS_MAX}")));
    }
    if calls > SIMULATE_CALLS_MAX {
        return Err(error::limit(format!("{calls} calls are above the limit of {SIMULATE_CALLS_MAX}")));
    }
    check_count(payload.block_state_calls.iter().filter_map(|block| block.state_overrides.as_ref()))
}

/// Moves on to the block after `parent`.
fn begin(attempt: &mut Attempt, (parent, hash): &(Header, B256), is_strict: bool) {
    let environment = &mut attempt.environment;
    environment.number = parent.number.saturating_add(1);
    environment.timestamp.0 = parent.timestamp.0.saturating_add(1_000);
    environment.parent_hash = *hash;
    environment.gas_limit = environment.parameters.block_gas_max();
    // Who does not ask for validity does not pay for gas either.
    environment.base_fee = if is_strict {
        let floor = environment.parameters.base_fee_floor();
        next_base_fee(parent.base_fee, parent.gas_used, parent.gas_limit, floor)
    } else {
        almanac_primitives::GasPrice(0)
    };
}

fn run_block(
    attempt: &mut Attempt,
    wanted: SimBlock<CallRequest>,
    parent: &Header,
    rules: &Rules,
    gas_left: &mut Gas,
    mut room: Room,
) -> RpcResult<(IndexedBlock, Vec<SimulatedCall>)> {
    if let Some(overrides) = &wanted.block_overrides {
        attempt.override_block(overrides)?;
    }
    check_order(attempt, parent)?;
    if let Some(overrides) = wanted.state_overrides {
        attempt.state.override_state(overrides)?;
    }
    let (mut transactions, mut receipts, mut parties) = (Vec::new(), Vec::new(), Vec::new());
    let (mut results, mut asked, mut used) = (Vec::new(), Vec::new(), Gas::ZERO);
    for (nth, request) in (0..).zip(wanted.calls) {
        let mut call = attempt.call(request.clone())?;
        call.gas_limit = call.gas_limit.min(*gas_left);
        call.place = Some(attempt.place_of(nth));
        let transaction = transaction(attempt, request.ethereum, &call)?;
        asked.push(called(&call));
        let party = Parties { from: call.from, to: call.to, run: None };
        let (result, diff) = rules.run(attempt, call).map_err(|error| error::simulated(&error))?;
        // Here too, not only when the block is written: all of its calls are in memory until then.
        room.take(least_bytes(&result))?;
        attempt.state.apply(&diff);
        used = Gas(used.0.saturating_add(result.gas_used.0));
        *gas_left = Gas(gas_left.0.saturating_sub(result.gas_used.0));
        receipts.push(receipt(&transaction, &result, used));
        transactions.push(transaction);
        parties.push(party);
        results.push(result);
    }
    let block = finish(attempt, parent, transactions, (receipts, parties), used);
    let calls = results.into_iter().zip(asked).enumerate();
    let calls = calls.map(|(index, (result, called))| shown(&block, index, result, &called)).collect();
    Ok((block, calls))
}

/// What a call's result takes at least, as JSON.
fn least_bytes(result: &CallResult) -> usize {
    /// The names and fixed fields of a log.
    const LOG_BYTES: usize = 400;
    let logs = result.logs.iter().map(|log| log.data.data.len().saturating_mul(2).saturating_add(LOG_BYTES));
    logs.fold(result.output.len().saturating_mul(2), usize::saturating_add)
}

/// Each block must be above and after the one before.
fn check_order(attempt: &Attempt, parent: &Header) -> RpcResult<()> {
    let (number, time) = (attempt.environment.number, attempt.environment.timestamp.seconds());
    if number <= parent.number {
        let before = parent.number;
        return Err(error::out_of_order(format!("block {number} does not come after block {before}")));
    }
    let before = parent.timestamp.seconds();
    if time <= before {
        return Err(error::out_of_time(format!("time {time} does not come after {before}, the parent's")));
    }
    Ok(())
}

/// The transaction that the call would be, with nothing for a signature.
fn transaction(attempt: &Attempt, request: TransactionRequest, call: &Call) -> RpcResult<UserTransaction> {
    let native = native_transaction(&attempt.state, call, attempt.environment.chain.id);
    if let Some(native) = native.map_err(|error| error::simulate(&error))? {
        return Ok(native);
    }
    let nonce = match call.nonce {
        Some(nonce) => nonce,
        None => Sender::read(&attempt.state, call.from).map_err(error::internal)?.nonce,
    };
    let price = request.gas_price.is_none().then(|| request.max_fee_per_gas.unwrap_or_default());
    let filled = TransactionRequest {
        to: Some(call.to.map_or(TxKind::Create, TxKind::Call)),
        gas: Some(call.gas_limit.0),
        nonce: Some(nonce),
        chain_id: Some(attempt.environment.chain.id),
        max_fee_per_gas: price,
        max_priority_fee_per_gas: price.map(|_| request.max_priority_fee_per_gas.unwrap_or_default()),
        value: Some(call.value),
        ..request
    };
    let nothing = Signature::new(U256::ZERO, U256::ZERO, false);
    UserTransaction::decode(&encode_signed(unsigned(filled)?, nothing)).map_err(error::invalid)
}

fn receipt(transaction: &UserTransaction, result: &CallResult, used: Gas) -> Receipt {
    Receipt {
        transaction_type: transaction.transaction_type(),
        transaction_hash: transaction.hash(),
        outcome: result.outcome.clone(),
        gas_used: result.gas_used,
        cumulative_gas_used: used,
        effective_gas_price: almanac_primitives::GasPrice(0),
        contract_address: None,
        failed_call: result.failed_call,
        schedule_ref: None,
        logs: result.logs.clone(),
    }
}

fn finish(
    attempt: &Attempt,
    parent: &Header,
    transactions: Vec<UserTransaction>,
    (receipts, parties): (Vec<Receipt>, Vec<Parties>),
    used: Gas,
) -> IndexedBlock {
    let environment = &attempt.environment;
    let header = Header {
        parent_hash: environment.parent_hash,
        number: environment.number,
        timestamp: environment.timestamp,
        fee_recipient: environment.fee_recipient,
        gas_limit: environment.gas_limit,
        gas_used: used,
        base_fee: environment.base_fee,
        transactions_root: transactions_root(&transactions),
        receipts_root: receipts_root(&receipts),
        commitment: parent.commitment,
        consensus: parent.consensus,
        ..Header::default()
    };
    let block = Block { header, transactions };
    IndexedBlock { receipts, parties, ..IndexedBlock::alone(Arc::new(block)) }
}

fn shown(block: &IndexedBlock, index: usize, result: CallResult, called: &[Called]) -> SimulatedCall {
    let error = match &result.outcome {
        Outcome::Success => None,
        outcome => {
            let failed = error::failed_call(called, &result);
            let code = if matches!(outcome, Outcome::Reverted(_)) { REVERTED } else { FAILED };
            let message = failed.message().to_owned();
            Some(SimulateError { code, message, data: Some(result.output.clone()) })
        }
    };
    SimulatedCall {
        logs: block.logs_of(index).map(|entry| RpcLog::new(&entry)).collect(),
        gas_used: U64::from(result.gas_used.0),
        status: U64::from(u64::from(result.outcome.is_success())),
        failed_call: result.failed_call.map(U64::from),
        return_data: result.output,
        error,
    }
}
