//! Who got what in a transaction: coins by balances before and after, tokens by the logs of ERC-20.
//!
//! Amounts are what an account has more, or less, after all of it. A token may log any amounts, so sums have 512 bits.

use alloy_primitives::{Address, B256, Log, U256, U512, aliases::I512, b256};
use almanac_index::KnownSchedule;
use almanac_primitives::{ScheduleId, Wei, addresses::LEDGER};
use almanac_schedule::life::{LifeEvent, What};
use almanac_trace::BalanceChange;
use serde::Serialize;
use std::collections::BTreeMap;

/// `Transfer(address indexed,address indexed,uint256)` of ERC-20. That of ERC-721 has the same name and one topic more.
const TRANSFER: B256 = b256!("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

/// What one account has more, or less.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AccountAmount {
    #[serde(rename = "accountID")]
    account: Address,
    /// In decimal, with a sign where it is less.
    amount: String,
}

/// The transfers of one token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TokenTransferList {
    token: Address,
    transfers: Vec<AccountAmount>,
}

/// Sums by account.
#[derive(Debug, Default)]
pub(super) struct Sums(BTreeMap<Address, I512>);

impl Sums {
    /// The balances that a transaction changed.
    pub(super) fn of_balances(changes: &[BalanceChange]) -> Self {
        let mut sums = Self::default();
        for change in changes {
            sums.add(change.account, change.after);
            sums.take(change.account, change.before);
        }
        sums
    }

    /// Adds what the ledger paid for a run, out of the escrow of its schedule: its fee, its value, and what it returned.
    /// Who got the fee is not told: it is burned, except for the proposer's part of a callback's.
    pub(super) fn add_ledger(
        &mut self,
        id: ScheduleId,
        index: usize,
        known: &KnownSchedule,
        events: &[LifeEvent],
    ) {
        let body = known.body.as_ref();
        let events = events.iter().filter(|one| one.index == index && one.event.id == id);
        for LifeEvent { event, .. } in events {
            match &event.what {
                What::Executed { fee, is_success, .. } => {
                    self.take(LEDGER, fee.0);
                    let Some(body) = body.filter(|body| body.terms.holds_value()) else { continue };
                    // A call that fails leaves the value with its owner, or it returns with the rest of the escrow.
                    let call = body.call();
                    if *is_success || call.from == body.owner {
                        self.take(LEDGER, call.value.0);
                        self.add(call.from, call.value.0);
                    }
                }
                What::Ended { owner, refunded, .. } => {
                    self.take(LEDGER, refunded.0);
                    self.add(body.map_or(*owner, |body| body.refund_to), refunded.0);
                }
                What::Created { .. }
                | What::Processed { .. }
                | What::ToppedUp { .. }
                | What::Quarantined { .. } => {}
            }
        }
    }

    /// Moves an amount from one account to another.
    pub(super) fn pay(&mut self, from: Address, to: Address, amount: Wei) {
        self.take(from, amount.0);
        self.add(to, amount.0);
    }

    fn add(&mut self, account: Address, amount: U256) {
        let sum = self.0.entry(account).or_default();
        // A receipt has fewer than 2^255 logs.
        *sum = sum.wrapping_add(I512::from_raw(U512::from(amount)));
    }

    fn take(&mut self, account: Address, amount: U256) {
        let sum = self.0.entry(account).or_default();
        *sum = sum.wrapping_sub(I512::from_raw(U512::from(amount)));
    }

    /// By address, without those that have as much as before.
    pub(super) fn list(self) -> Vec<AccountAmount> {
        let changed = self.0.into_iter().filter(|(_, amount)| !amount.is_zero());
        changed.map(|(account, amount)| AccountAmount { account, amount: amount.to_string() }).collect()
    }
}

/// The transfers that tokens logged, in the order of each token's first. What is minted or burned has one side.
pub(super) fn of_tokens(logs: &[Log]) -> Vec<TokenTransferList> {
    let mut tokens: Vec<Address> = Vec::new();
    let mut sums: BTreeMap<Address, Sums> = BTreeMap::new();
    for log in logs {
        let [TRANSFER, from, to] = *log.topics() else { continue };
        let Ok(amount) = <[u8; 32]>::try_from(log.data.data.as_ref()).map(U256::from_be_bytes) else {
            continue;
        };
        let sums = sums.entry(log.address).or_insert_with(|| {
            tokens.push(log.address);
            Sums::default()
        });
        let (from, to) = (Address::from_word(from), Address::from_word(to));
        if !from.is_zero() {
            sums.take(from, amount);
        }
        if !to.is_zero() {
            sums.add(to, amount);
        }
    }
    let lists = tokens.into_iter().map(|token| {
        let transfers = sums.remove(&token).unwrap_or_default().list();
        TokenTransferList { token, transfers }
    });
    lists.filter(|list| !list.transfers.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Bytes, LogData};
    use serde_json::json;

    const fn account(n: u8) -> Address {
        Address::repeat_byte(n)
    }

    fn log(token: u8, topics: &[B256], data: Vec<u8>) -> Log {
        Log { address: account(token), data: LogData::new_unchecked(topics.to_vec(), Bytes::from(data)) }
    }

    fn transfer(token: u8, from: Address, to: Address, amount: U256) -> Log {
        log(token, &[TRANSFER, from.into_word(), to.into_word()], amount.to_be_bytes_vec())
    }

    /// Also above 256 bits: nothing keeps a token from logging the largest amount twice.
    #[test]
    fn tokens_are_added_up_by_account() {
        let logs = [
            transfer(9, account(1), account(2), U256::MAX),
            transfer(8, Address::ZERO, account(1), U256::from(5)),
            transfer(9, account(1), account(2), U256::MAX),
            transfer(9, account(2), account(3), U256::from(1)),
            transfer(8, account(1), account(3), U256::from(2)),
        ];
        let twice = (U512::from(U256::MAX) * U512::from(2)).to_string();
        let less_one = (U512::from(U256::MAX) * U512::from(2) - U512::from(1)).to_string();
        let expected = json!([
            { "token": account(9), "transfers": [
                { "accountID": account(1), "amount": format!("-{twice}") },
                { "accountID": account(2), "amount": less_one },
                { "accountID": account(3), "amount": "1" },
            ] },
            { "token": account(8), "transfers": [
                { "accountID": account(1), "amount": "3" },
                { "accountID": account(3), "amount": "2" },
            ] },
        ]);
        assert_eq!(serde_json::to_value(of_tokens(&logs)).unwrap(), expected);
    }

    #[test]
    fn what_is_not_erc20_or_moves_nothing_is_left_out() {
        let (one, two) = (account(1).into_word(), account(2).into_word());
        let word = U256::from(1).to_be_bytes_vec();
        let logs = [
            // ERC-721: the id is a topic.
            log(9, &[TRANSFER, one, two, B256::ZERO], vec![]),
            log(9, &[TRANSFER, one, two], vec![1; 31]),
            log(9, &[TRANSFER, one, two], vec![1; 64]),
            log(9, &[B256::ZERO, one, two], word),
            log(9, &[], vec![]),
            transfer(8, account(1), account(1), U256::from(4)),
            transfer(8, account(1), account(2), U256::from(4)),
            transfer(8, account(2), account(1), U256::from(4)),
        ];
        assert_eq!(of_tokens(&logs), []);
    }

    #[test]
    fn balances_are_differences() {
        let change = |n: u8, before: u64, after: u64| BalanceChange {
            account: account(n),
            before: U256::from(before),
            after: U256::from(after),
        };
        let list = Sums::of_balances(&[change(2, 7, 3), change(1, 0, 4), change(3, 5, 5)]).list();
        let shown: Vec<_> = list.iter().map(|one| (one.account, one.amount.as_str())).collect();
        assert_eq!(shown, [(account(1), "4"), (account(2), "-4")]);
    }
}
