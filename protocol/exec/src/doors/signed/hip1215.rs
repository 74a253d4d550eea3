//! HIP-1215: the schedule service as contracts written for Hedera call it (HEDERA-22). They get a code, never a revert.

use super::{
    DoorCall, DoorError, IScheduleService, Pays, charge_copies, create, delete, has_capacity, refused, sign,
};
use crate::doors::call::CALL_GAS;
use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::{SolCall as _, SolError as _, SolValue as _};
use almanac_primitives::{
    ScheduleId,
    keys::{KeyTree, Leaf},
    params::SIGNED_BODY_BYTES_MAX,
};
use almanac_schedule::signed::Code;
use revm::context::{ContextTr as _, JournalTr as _};

alloy_sol_types::sol!("../../contracts/IHederaScheduleService.sol");
use IHederaScheduleService::IHederaScheduleServiceCalls as Method;

/// Gas of a call, with what any door's costs.
const ORDER_GAS: u64 = 1_000;

/// Longest input of any method.
const INPUT_BYTES_MAX: usize = SIGNED_BODY_BYTES_MAX + 1_024;

/// The least id: a block's number is in its upper bits, and block 0 creates nothing. So no address of Ethereum's or the
/// chain's own contracts is one of a schedule.
const ID_LEAST: u64 = 1 << 28;

/// What a contract asks to be called.
struct Wanted {
    from: Address,
    to: Address,
    payer: Option<Address>,
    second: U256,
    gas_limit: U256,
    value: u64,
    data: Bytes,
    waits: bool,
}

/// Answers one call at `0x…016b`.
pub(in crate::doors) fn call(call: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    if call.input_len() > INPUT_BYTES_MAX {
        return call.answer_all(&(Code::TooLarge.number(), Address::ZERO));
    }
    call.charge(ORDER_GAS - CALL_GAS)?;
    charge_copies(call, call.input_len())?;
    match call.decode::<Method>()? {
        Method::scheduleCall(args) => {
            let (from, payer) = (call.caller(), None);
            let (second, gas_limit, value, data) =
                (args.expirySecond, args.gasLimit, args.value, args.callData);
            schedule(call, Wanted { from, to: args.to, payer, second, gas_limit, value, data, waits: true })
        }
        Method::scheduleCallWithPayer(args) => {
            let (from, payer) = (args.payer, Some(args.payer));
            let (second, gas_limit, value, data) =
                (args.expirySecond, args.gasLimit, args.value, args.callData);
            schedule(call, Wanted { from, to: args.to, payer, second, gas_limit, value, data, waits: true })
        }
        Method::executeCallOnPayerSignature(args) => {
            let (from, payer) = (args.payer, Some(args.payer));
            let (second, gas_limit, value, data) =
                (args.expirySecond, args.gasLimit, args.value, args.callData);
            schedule(call, Wanted { from, to: args.to, payer, second, gas_limit, value, data, waits: false })
        }
        Method::deleteSchedule_0(args) => {
            answer_code(call, |call| delete::delete(call, id_of(args.scheduleAddress)?, &[]))
        }
        Method::authorizeSchedule(args) => answer_code(call, |call| sign(call, id_of(args.schedule)?, &[])),
        Method::hasScheduleCapacity(args) => {
            let has_capacity = has_capacity(call, args.expirySecond, args.gasLimit)?;
            call.answer(&has_capacity)
        }
        // The facades answer at the schedule's address only.
        Method::deleteSchedule_1(_) | Method::signSchedule_0(_) => {
            call.answer(&Code::InvalidScheduleId.number())
        }
        Method::signSchedule_1(_) => call.answer(&Code::NotSupported.number()),
        Method::scheduleNative(_) => call.answer_all(&(Code::NotSupported.number(), Address::ZERO)),
    }
}

/// Answers a facade's call at the address of a schedule. Elsewhere, there is nobody.
pub(in crate::doors) fn call_facade(call: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    let Some(id) = schedule_at(call.address()) else { return Ok(Bytes::new()) };
    call.charge(ORDER_GAS - CALL_GAS)?;
    charge_copies(call, call.input_len().min(INPUT_BYTES_MAX))?;
    match call.decode::<Method>()? {
        Method::deleteSchedule_1(_) => answer_code(call, |call| delete::delete(call, id, &[])),
        Method::signSchedule_0(_) => answer_code(call, |call| sign(call, id, &[])),
        _ => Ok(Bytes::new()),
    }
}

/// Whether an address may be a schedule's. Every call asks.
pub(in crate::doors) fn may_be_schedule(address: Address) -> bool {
    schedule_at(address).is_some()
}

/// Whether input is for a facade.
pub(in crate::doors) fn is_facade_call(input: &[u8]) -> bool {
    let facades = [
        IHederaScheduleService::deleteSchedule_1Call::SELECTOR,
        IHederaScheduleService::signSchedule_0Call::SELECTOR,
    ];
    input.first_chunk().is_some_and(|selector| facades.contains(selector))
}

/// The schedule whose address this is, if it may be one's.
fn schedule_at(address: Address) -> Option<ScheduleId> {
    let (zeros, id) = address.split_at(12);
    let id = u64::from_be_bytes(id.try_into().expect("20 bytes less 12"));
    (zeros.iter().all(|byte| *byte == 0) && id >= ID_LEAST).then_some(ScheduleId(id))
}

fn id_of(address: Address) -> Result<ScheduleId, DoorError> {
    schedule_at(address).ok_or_else(|| refused(Code::InvalidScheduleId))
}

fn address_of(id: ScheduleId) -> Address {
    let mut address = Address::ZERO;
    address[12..].copy_from_slice(&id.0.to_be_bytes());
    address
}

fn schedule(call: &mut DoorCall<'_, '_>, wanted: Wanted) -> Result<Bytes, DoorError> {
    let answered = attempt(call, |call| {
        let (Ok(second), Ok(gas_limit)) = (u64::try_from(wanted.second), u64::try_from(wanted.gas_limit))
        else {
            return Err(refused(Code::GasLimit));
        };
        let to_call = IScheduleService::Call {
            from: wanted.from,
            to: wanted.to,
            value: U256::from(wanted.value),
            data: wanted.data,
        };
        let body = IScheduleService::Body {
            calls: vec![to_call],
            gasLimit: gas_limit,
            maxFeePerGas: U256::MAX,
            memo: String::new(),
            nonce: 0,
            executionTime: second,
            waitForExpiry: wanted.waits,
        };
        let encoded = body.abi_encode().into();
        let admin_key = KeyTree::single(Leaf::Secp256k1(call.caller())).encoded().clone();
        create::create(call, &encoded, &admin_key, wanted.payer.unwrap_or_default(), &[], Pays::FromFund)
    })?;
    let (code, id) = match answered {
        Ok(id) => (Code::Success.number(), address_of(id)),
        Err(code) => (code, Address::ZERO),
    };
    call.answer_all(&(code, id))
}

fn answer_code(
    call: &mut DoorCall<'_, '_>,
    operation: impl FnOnce(&mut DoorCall<'_, '_>) -> Result<(), DoorError>,
) -> Result<Bytes, DoorError> {
    let answered = attempt(call, operation)?;
    call.answer(&answered.err().unwrap_or(Code::Success.number()))
}

/// Runs an operation, and undoes it if it is refused. Static calls revert as everywhere.
fn attempt<T>(
    call: &mut DoorCall<'_, '_>,
    operation: impl FnOnce(&mut DoorCall<'_, '_>) -> Result<T, DoorError>,
) -> Result<Result<T, i64>, DoorError> {
    call.refuse_static()?;
    let (checkpoint, refunded) = (call.context().journal_mut().checkpoint(), call.refunded());
    match operation(call) {
        Ok(done) => {
            call.context().journal_mut().checkpoint_commit();
            Ok(Ok(done))
        }
        Err(DoorError::Revert(data)) => {
            call.context().journal_mut().checkpoint_revert(checkpoint);
            // What was to be given back for cleared slots was undone with them.
            call.set_refunded(refunded);
            let code = IScheduleService::Refused::abi_decode(&data).map(|refused| refused.responseCode);
            Ok(Err(code.unwrap_or(Code::Unknown.number())))
        }
        Err(error) => Err(error),
    }
}
