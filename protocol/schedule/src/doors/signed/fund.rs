//! Funds: what an account has set aside for schedules that it agrees to in nested calls (HEDERA-15).
//!
//! Anybody can make a contract that passes on calls agree to something. What it loses that way is its fund at most.

use crate::ledger::Ledger;
use alloy_primitives::{Address, U256};
use almanac_primitives::Wei;

/// Last limb of the slots of funds. Doors, which have the same form of slot for epochs, have smaller numbers.
const FUND_KIND: u64 = 0x100;

/// The slot of the ledger that holds an account's fund.
pub fn fund_slot(account: Address) -> U256 {
    let [low, middle, high, _] = U256::from_be_slice(account.as_slice()).into_limbs();
    U256::from_limbs([low, middle, high, FUND_KIND])
}

/// What an account's fund holds.
pub fn fund<L: Ledger>(ledger: &mut L, account: Address) -> Result<Wei, L::Error> {
    ledger.load(fund_slot(account)).map(Wei)
}

/// Adds money that the ledger's balance already includes.
pub fn give<L: Ledger>(ledger: &mut L, account: Address, amount: Wei) -> Result<(), L::Error> {
    let held = fund(ledger, account)?;
    let more = held.checked_add(amount).expect("no fund exceeds what was ever issued");
    ledger.store(fund_slot(account), more.0)
}

/// Takes money out, which stays in the ledger's balance. Returns `false` if there is not as much.
pub fn take<L: Ledger>(ledger: &mut L, account: Address, amount: Wei) -> Result<bool, L::Error> {
    let Some(left) = fund(ledger, account)?.checked_sub(amount) else { return Ok(false) };
    ledger.store(fund_slot(account), left.0)?;
    Ok(true)
}
