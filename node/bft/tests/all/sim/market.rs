//! Scheduled transactions of every client: all of a due time run in one block, by bid, at the price that the block
//! gives, and no proposer can have it otherwise.

use crate::sim::{
    client::account,
    faults::{Faults, good},
    liar::Lie,
    marks::Mark,
    network::Network,
    opened::Store,
    run::run,
};
use alloy_primitives::{Bytes, TxKind};
use alloy_sol_types::{SolCall as _, SolEvent as _};
use almanac_bft::Replica;
use almanac_primitives::{
    Receipt, TimestampMs, UserTransaction,
    addresses::SCHEDULED_TRANSACTIONS,
    testing::{Person, contracts::COUNTER, eip1559, person, sign},
};
use almanac_state::ArchivedBlock;

alloy_sol_types::sol!("../../contracts/IScheduledTransactions.sol");
use IScheduledTransactions::{ScheduledTransaction, TransactionExecutedEvent, TransactionScheduledEvent};

/// Scheduled transactions of each client.
pub const ORDERS: u64 = 12;
/// When the first of each are due, and the time from one to the next.
const FIRST_MS: u64 = 5_000;
const STEP_MS: u64 = 400;
/// All have run by then.
pub const ENDED_BY: TimestampMs = TimestampMs(FIRST_MS + ORDERS * STEP_MS + 2_000);

const GAS: u64 = 60_000;
const GWEI: u64 = 1_000_000_000;

/// Who schedules for a client.
pub fn owner(client: u64) -> Person {
    person(client + 2_000)
}

/// The n-th of a client: those of other clients that are due with it bid something else.
fn order(client: u64, nth: u64) -> ScheduledTransaction {
    ScheduledTransaction {
        senderAddr: owner(client).address,
        scheduledTimeMs: FIRST_MS + nth * STEP_MS,
        maxGasAmount: GAS,
        maxGasUnitPrice: (2 + (client + nth) % 7) * GWEI + client,
        passSigner: false,
        to: COUNTER,
        value: Default::default(),
        data: Bytes::new(),
        expiryBlocks: 0,
    }
}

/// What a client has still to send. Empty where the chain moves on while it is read.
pub async fn orders(client: usize, replica: &Replica<Store>) -> Vec<UserTransaction> {
    let owner = owner(client as u64);
    let Some(account) = account(replica, owner.address).await else { return vec![] };
    (account.nonce..ORDERS).map(|nth| insertion(owner, client as u64, nth)).collect()
}

fn insertion(owner: Person, client: u64, nth: u64) -> UserTransaction {
    let txn = order(client, nth);
    let deposit = u128::from(txn.maxGasAmount) * u128::from(txn.maxGasUnitPrice);
    let call = IScheduledTransactions::insertCall { txn }.abi_encode();
    let mut transaction = eip1559(nth, TxKind::Call(SCHEDULED_TRANSACTIONS), 0, call, 400_000);
    transaction.value = alloy_primitives::U256::from(deposit);
    sign(transaction, owner.secret)
}

/// Whether a receipt is that of a market run.
pub fn is_run(receipt: &Receipt) -> bool {
    receipt.schedule_ref.is_some() && executed(receipt).is_some()
}

fn executed(receipt: &Receipt) -> Option<TransactionExecutedEvent> {
    let mut logs = receipt.logs.iter().filter(|log| log.address == SCHEDULED_TRANSACTIONS);
    logs.find_map(|log| TransactionExecutedEvent::decode_log(log).ok().map(|log| log.data))
}

/// `market_runs_by_bid`: every scheduled transaction ran once, not before its time and in the first block after it; those
/// of a block by bid, and each at the price that AIP125-15 gives.
pub fn check(chain: &[ArchivedBlock], clients: usize) -> Result<(), String> {
    let logs = chain.iter().flat_map(|archived| &archived.receipts).flat_map(|receipt| &receipt.logs);
    let inserted = logs.filter_map(|log| TransactionScheduledEvent::decode_log(log).ok()).count();
    let mut ran = 0;
    for (parent, archived) in std::iter::once(None).chain(chain.iter().map(Some)).zip(chain) {
        let runs: Vec<_> =
            archived.receipts.iter().filter_map(|receipt| Some((receipt, executed(receipt)?))).collect();
        let bids: Vec<_> = runs.iter().map(|(_, said)| u64::MAX - said.key.gasPriority).collect();
        let number = archived.block.header.number;
        if !bids.is_sorted_by(|a, b| a >= b) {
            return Err(format!("block {number} has bids in the order {bids:?}"));
        }
        for ((receipt, said), bid) in runs.iter().zip(&bids) {
            check_price(archived, receipt, *bid)?;
            let (due, now) = (said.key.time * 100, archived.block.header.timestamp.0);
            let before = parent.map_or(0, |parent: &ArchivedBlock| parent.block.header.timestamp.0);
            if now < due || before >= due {
                return Err(format!("due at {due} ms, and ran at {now} in the block after {before}"));
            }
        }
        ran += runs.len();
    }
    let expected = clients * usize::try_from(ORDERS).unwrap();
    if (inserted, ran) != (expected, expected) {
        return Err(format!("{inserted} were inserted and {ran} ran, of {expected}"));
    }
    Ok(())
}

fn check_price(archived: &ArchivedBlock, receipt: &Receipt, bid: u64) -> Result<(), String> {
    let header = &archived.block.header;
    let mut users = vec![header.base_fee.0];
    for transaction in &archived.block.transactions {
        let is_its = |receipt: &&Receipt| receipt.transaction_hash == transaction.hash();
        users.extend(archived.receipts.iter().find(is_its).map(|receipt| receipt.effective_gas_price.0));
    }
    let price = users.into_iter().max().unwrap_or_default().min(bid.into());
    if receipt.effective_gas_price.0 != price {
        let paid = receipt.effective_gas_price.0;
        return Err(format!("a run of block {} paid {paid} instead of {price}", header.number));
    }
    Ok(())
}

/// Receipts with which a proposer would have market runs otherwise. `None` where there is nothing to change.
pub fn falsified(lie: Lie, receipts: &[Receipt]) -> Option<Vec<Receipt>> {
    let runs: Vec<_> = (0..receipts.len()).filter(|at| is_run(&receipts[*at])).collect();
    let mut receipts = receipts.to_vec();
    match (lie, &runs[..]) {
        (Lie::ReorderMarket, [first, second, ..]) => receipts.swap(*first, *second),
        (Lie::MispriceMarket, [first, ..]) => receipts[*first].effective_gas_price.0 += 1,
        _ => return None,
    }
    Some(receipts)
}

const LIAR: usize = 2;

/// AIP125-14, -15: every node derives the same order and prices.
#[test]
fn aip125_14_all_validators_run_scheduled_transactions_by_bid_at_one_price() {
    run(&Network::with_market(4), 21, good(), Faults::default(), 15);
}

/// Each lie is told, refused, and every run takes place as it should.
#[test]
fn aip125_14_proposers_that_drop_reorder_or_misprice_market_runs_are_outvoted() {
    for lie in [Lie::DropMarket, Lie::ReorderMarket, Lie::MispriceMarket] {
        let network = Network::with_market(4).lie(LIAR, lie);
        let outcome = run(&network, 22, good(), Faults::default(), 15);
        let told = outcome.marks.count(Mark::Told(lie));
        assert!(told >= 1, "{lie:?} was told {told} times");
    }
}
