//! Funds: money for what accounts agree to in nested calls (HEDERA-15).

use super::{DoorCall, DoorError, refused};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::Wei;
use almanac_schedule::{
    Ledger as _,
    signed::{self, Code},
};

pub(super) fn fund(call: &mut DoorCall<'_, '_>, account: Address) -> Result<Bytes, DoorError> {
    call.refuse_static()?;
    let amount = call.take_escrow()?;
    signed::give(call, account, amount)?;
    Ok(Bytes::new())
}

pub(super) fn fund_of(call: &mut DoorCall<'_, '_>, account: Address) -> Result<Bytes, DoorError> {
    let Wei(held) = signed::fund(call, account)?;
    call.answer(&held)
}

/// Works while the service is off or paused: it is the owner's money.
pub(super) fn withdraw(call: &mut DoorCall<'_, '_>, amount: U256) -> Result<Bytes, DoorError> {
    call.refuse_static()?;
    let (account, amount) = (call.caller(), Wei(amount));
    if !signed::take(call, account, amount)? {
        return Err(refused(Code::InsufficientPayerBalance));
    }
    call.credit(account, amount)?;
    Ok(Bytes::new())
}
