//! Final blocks as the reader of the log sees them.

use almanac_consensus::{Sink, SinkError};
use almanac_exec::{BlockOutput, Executed};
use almanac_primitives::{Block, Outcome, Receipt};
use almanac_rpc::{lines::Lines, revert};
use std::sync::Arc;

/// Writes a line per block.
pub(crate) struct BlockLines(pub(crate) Lines);

impl Sink for BlockLines {
    fn finalized(&self, block: &Arc<Block>, output: &Arc<BlockOutput>) -> Result<(), SinkError> {
        if !self.0.is_on() {
            return Ok(());
        }
        let (users, header) = (block.transactions.len(), &block.header);
        let failed = output.receipts.iter().filter(|receipt| !receipt.outcome.is_success()).count();
        tracing::info!(
            "block {} · {users} transaction{} ({failed} failed) · {} gas · base fee {} gwei · {}",
            header.number,
            if users == 1 { "" } else { "s" },
            header.gas_used.0,
            gwei(header.base_fee.0),
            block.hash(),
        );
        let ran = output.transactions.iter().zip(&output.receipts);
        let seen = ran.filter(|(ran, _)| !matches!(ran, Executed::Prologue(_)));
        for (ran, receipt) in seen.take(LINES_MAX) {
            tracing::info!("  {}", describe(ran, receipt));
        }
        let left = users.saturating_sub(LINES_MAX);
        if left > 0 {
            tracing::info!("  and {left} more");
        }
        Ok(())
    }

    fn reverted(&self, height: u64) -> Result<(), SinkError> {
        if self.0.is_on() {
            tracing::info!("back at block {height}");
        }
        Ok(())
    }
}

/// Transactions of one block that get a line of their own; a busy chain would write nothing else.
const LINES_MAX: usize = 5;

/// One transaction: who called whom, and what became of it.
fn describe(ran: &Executed, receipt: &Receipt) -> String {
    let to = match (ran.to(), receipt.contract_address) {
        (Some(to), _) => to.to_string(),
        (None, Some(created)) => format!("new contract {created}"),
        (None, None) => "no new contract".to_owned(),
    };
    let outcome = match &receipt.outcome {
        Outcome::Success => "ok".to_owned(),
        Outcome::Reverted(data) => format!("reverted: {}", revert::explain(data)),
        Outcome::Halted(halt) => format!("stopped: {halt:?}"),
    };
    let gas = receipt.gas_used.0;
    format!("{} · {} → {to} · {gas} gas · {outcome}", receipt.transaction_hash, ran.from())
}

/// A price as people read it: gwei with up to nine decimals, no trailing zeroes.
fn gwei(wei: u128) -> String {
    let (whole, rest) = (wei / 1_000_000_000, wei % 1_000_000_000);
    let text = format!("{whole}.{rest:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_as_people_read_them() {
        for (wei, text) in [
            (0, "0"),
            (1, "0.000000001"),
            (875_000_000, "0.875"),
            (1_000_000_000, "1"),
            (20_500_000_000, "20.5"),
        ] {
            assert_eq!(gwei(wei), text);
        }
    }
}
