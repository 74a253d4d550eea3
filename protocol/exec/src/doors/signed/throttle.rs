//! The throttle of each operation, in slots of the service (HEDERA-18).

use super::{DoorCall, DoorError, refused};
use alloy_primitives::{Address, U256};
use almanac_primitives::{
    addresses::SCHEDULE_SERVICE,
    params::{
        Parameter, SIGNED_CALLER_PERCENT, SIGNED_CREATES_PER_SECOND, SIGNED_DELETES_PER_SECOND,
        SIGNED_SIGNS_PER_SECOND,
    },
};
use almanac_schedule::signed::{Bucket, Busy, Code, Share};

/// An operation with a throttle.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    number: u64,
    per_second: Parameter,
    /// Extra gas when the bucket is short, times what is gone of it to what is left.
    base_gas: u64,
}

pub(super) const CREATE: Operation =
    Operation { number: 1, per_second: SIGNED_CREATES_PER_SECOND, base_gas: 20_000 };
pub(super) const SIGN: Operation =
    Operation { number: 2, per_second: SIGNED_SIGNS_PER_SECOND, base_gas: 500 };
pub(super) const DELETE: Operation =
    Operation { number: 3, per_second: SIGNED_DELETES_PER_SECOND, base_gas: 5_000 };

/// Uses one operation of the caller's share and of the bucket, or refuses. Nothing changes where a call reverts, so one
/// that is refused later uses none.
pub(super) fn take(call: &mut DoorCall<'_, '_>, operation: Operation) -> Result<(), DoorError> {
    let (now, parameters) = (call.moment().now, call.parameters());
    let rate = parameters.get(operation.per_second);
    let slot = share_slot(call.caller(), operation);
    let share = Share::at(call.load_word(SCHEDULE_SERVICE, slot)?, now);
    let share = share.take(rate, parameters.get(SIGNED_CALLER_PERCENT)).map_err(busy)?;
    call.store_word(SCHEDULE_SERVICE, slot, share.to_word())?;
    let slot = U256::from(operation.number);
    let bucket = Bucket::at(call.load_word(SCHEDULE_SERVICE, slot)?, now, rate);
    call.charge(bucket.surcharge(operation.base_gas, rate))?;
    let bucket = bucket.take().map_err(busy)?;
    call.store_word(SCHEDULE_SERVICE, slot, bucket.to_word())
}

fn share_slot(caller: Address, operation: Operation) -> U256 {
    let [low, middle, high, _] = U256::from_be_slice(caller.as_slice()).into_limbs();
    U256::from_limbs([low, middle, high, operation.number])
}

fn busy(_: Busy) -> DoorError {
    refused(Code::Busy)
}
