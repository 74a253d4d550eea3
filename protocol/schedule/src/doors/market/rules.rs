//! What becomes of a scheduled transaction whose time has come, and who gets its deposit.

use super::BidTerms;
use crate::{
    decide::{Decision, End, Moment, NextRun, RunEnd, Settlement},
    doors::{Door, Fact, Rules},
    record::{Head, Record, Status},
};
use alloy_primitives::B256;
use almanac_primitives::{GasPrice, Wei, codec::Writer};

impl Rules for BidTerms {
    fn door(&self) -> Door {
        Door::Market
    }

    fn encode(&self, out: &mut Writer) {
        out.u64(self.scheduled_ms);
        out.u64(self.bid);
        out.u32(self.expiry_blocks);
        out.u64(self.epoch);
        out.b256(self.txn_id);
    }

    /// It runs where its bid reaches the base fee, and waits elsewhere. GASPRICE is the base fee: a bid is refundable,
    /// and would drain contracts that reimburse gas (AIP125-15).
    fn decide(&self, record: &Record, moment: Moment) -> Decision {
        if u128::from(self.bid) < moment.base_fee.0 {
            return Decision::Wait;
        }
        let due = record.head.due.unwrap_or(moment.now);
        let charge = record.charge(moment.base_fee);
        Decision::Run { due, price: moment.base_fee, charge, again: NextRun::Never }
    }

    /// All that its gas can cost: the price is known at the end of the block.
    fn charge(&self, record: &Record, _: GasPrice) -> Wei {
        record.body.gas_limit.cost(GasPrice(self.bid.into()))
    }

    /// Burns the gas used at the price of the block, and refunds the rest (AIP125-15, -16).
    fn settle_run(&self, _: &Record, charge: Wei, ended: RunEnd<'_>, _: Moment) -> Settlement {
        let used = ended.gas_used.cost(ended.price);
        Settlement::burn_part(Wei(used.0.saturating_add(ended.place.0)), charge)
    }

    /// Refunds everything, whatever the reason: nothing of it was used.
    fn settle_end(&self, record: &Record, _: End, _: Moment) -> Settlement {
        Settlement::refund(record.escrow)
    }

    fn facts(&self) -> Vec<(&'static str, Fact)> {
        vec![
            ("scheduledTimeMs", Fact::Number(Some(self.scheduled_ms))),
            ("maxGasUnitPrice", Fact::Number(Some(self.bid))),
            ("expiryBlocks", Fact::Number(Some(self.expiry_blocks.into()))),
        ]
    }

    fn returns_unused(&self) -> bool {
        true
    }

    fn keeps_ends(&self) -> bool {
        true
    }

    fn may_wait(&self) -> bool {
        true
    }

    fn holds_value(&self) -> bool {
        true
    }

    fn hash_name(&self) -> Option<B256> {
        Some(self.txn_id)
    }

    fn epoch(&self) -> Option<u64> {
        Some(self.epoch)
    }

    /// AIP125-15: the highest price that a user transaction of the block pays, between the base fee and the bid.
    fn price_at_end(&self, base_fee: GasPrice, top: GasPrice) -> Option<GasPrice> {
        Some(GasPrice(self.bid.into()).min(top.max(base_fee)))
    }

    /// While it is pending, the head caches how long it will wait, so that letting it wait reads nothing else.
    fn full_head(&self, record: &Record) -> Head {
        match record.head.status {
            Status::Pending => Head { until: self.expiry_blocks.into(), ..record.head },
            _ => record.head,
        }
    }
}
