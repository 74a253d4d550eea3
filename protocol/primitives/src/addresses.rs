//! Addresses of the chain's own contracts and accounts.

use alloy_primitives::{Address, address};

/// ARC-21 cron registry. It shares the address with the ecAdd precompile.
pub const CRON_REGISTRY: Address = address!("0x0000000000000000000000000000000000000006");
/// AIP-125 scheduled transactions.
pub const SCHEDULED_TRANSACTIONS: Address = address!("0x000000000000000000000000000000000000a101");
/// FLIP-330 callbacks.
pub const CALLBACKS: Address = address!("0x000000000000000000000000000000000000a102");
/// Hedera schedule service.
pub const SCHEDULE_SERVICE: Address = address!("0x000000000000000000000000000000000000a103");
/// The HIP-1215 face of the schedule service.
pub const HIP1215_SERVICE: Address = address!("0x000000000000000000000000000000000000016b");
/// Account keys and their rotation.
pub const ACCOUNTS: Address = address!("0x000000000000000000000000000000000000a104");
/// Parameters and governance.
pub const PARAMETERS: Address = address!("0x000000000000000000000000000000000000a105");
/// The ledger: escrow and schedule records. It answers no call.
pub const LEDGER: Address = address!("0x000000000000000000000000000000000000a1ff");
/// Money that is sent here is burned when its transaction is over: nobody ever sees a balance.
pub const BURN: Address = address!("0x000000000000000000000000000000000000a1bb");
/// Edits of the state on a developer's chain. Any other chain has no such contract.
pub const DEVELOPER_DOOR: Address = address!("0x000000000000000000000000000000000000a1de");
/// Makes the edits of a developer's chain and holds the money that they give and take. It has no code.
pub const DEVELOPER: Address = address!("0x000000000000000000000000000000000000a1d0");
/// EIP-2935: the contract whose storage holds recent block hashes.
pub const BLOCK_HASH_HISTORY: Address = address!("0x0000F90827F1C53a10cb7A02335B175320002935");

/// Accounts that exist from genesis with nonce 1 and a byte of code, so that EIP-161 never takes them for
/// empty and wipes their storage, and so that Solidity's check for code passes.
pub const SYSTEM_ACCOUNTS: [Address; 8] = [
    CRON_REGISTRY,
    SCHEDULED_TRANSACTIONS,
    CALLBACKS,
    SCHEDULE_SERVICE,
    HIP1215_SERVICE,
    ACCOUNTS,
    PARAMETERS,
    LEDGER,
];

/// Those of them that no contract answers for yet.
pub const UNBUILT_ACCOUNTS: [Address; 0] = [];

/// Whether an address belongs to the chain itself: nobody starts with it, and no developer edits it or acts
/// in its name.
pub fn is_system(address: Address) -> bool {
    let is_low = || SYSTEM_ACCOUNTS.contains(&address) || [DEVELOPER_DOOR, BURN].contains(&address);
    (may_be_system(address) && is_low()) || address == BLOCK_HASH_HISTORY
}

/// Whether an address begins as those of the chain's own contracts do. Every call asks, and nearly all are of others.
pub fn may_be_system(address: Address) -> bool {
    address.first_chunk::<18>() == Some(&[0; 18])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_look_misses_nothing() {
        let all = SYSTEM_ACCOUNTS.into_iter().chain([DEVELOPER_DOOR, BURN, BLOCK_HASH_HISTORY]);
        assert!(all.clone().all(is_system));
        assert!(all.filter(|address| *address != BLOCK_HASH_HISTORY).all(may_be_system));
        for other in [Address::ZERO, DEVELOPER, Address::repeat_byte(1), Address::with_last_byte(7)] {
            assert!(!is_system(other), "{other}");
        }
    }
}
