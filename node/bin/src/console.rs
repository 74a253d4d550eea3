//! Prints `console.log` of contracts: every block that may hold such a call is executed once more under a tracer,
//! beside the chain.

use crate::log_switch::LogSwitch;
use almanac_consensus::{Sink, SinkError};
use almanac_exec::BlockOutput;
use almanac_index::{Index, IndexedBlock};
use almanac_primitives::{Block, Chain, Receipt};
use almanac_priority::{lower_thread, off_first_processor};
use almanac_schedule::Agenda;
use almanac_trace::{Console, Limits, Replay, TraceError};
use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

/// Blocks that may wait to be looked at. A chain that is faster than that has no reader either.
const WAITING_MAX: usize = 256;

/// Hands blocks over to the thread that looks at them.
pub(crate) struct ConsoleLines {
    blocks: SyncSender<u64>,
    lines: LogSwitch,
}

impl ConsoleLines {
    /// Starts the thread. It ends with the chain.
    pub(crate) fn start(
        index: Arc<Index>,
        agenda: Arc<dyn Agenda>,
        chain: Chain,
        lines: LogSwitch,
    ) -> std::io::Result<Self> {
        let (blocks, waiting) = sync_channel(WAITING_MAX);
        let look = move || print_all(&waiting, &index, &*agenda, chain);
        thread::Builder::new().name("console".to_owned()).spawn(look)?;
        Ok(Self { blocks, lines })
    }
}

impl Sink for ConsoleLines {
    fn finalized(&self, block: &Arc<Block>, output: &Arc<BlockOutput>) -> Result<(), SinkError> {
        // A transfer between people calls nobody. Where the thread is too far behind, the block is left out.
        let calls = output.receipts.iter().any(|receipt| receipt.gas_used.0 > PLAIN_GAS);
        if calls && self.lines.is_on() {
            let _ = self.blocks.try_send(block.header.number);
        }
        Ok(())
    }

    fn reverted(&self, _: u64) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Gas of a transaction that calls no code.
const PLAIN_GAS: u64 = 21_000;

fn print_all(waiting: &Receiver<u64>, index: &Index, agenda: &dyn Agenda, chain: Chain) {
    lower_thread();
    for number in waiting {
        // A block that was taken back meanwhile, or whose state is gone, has nothing to say.
        let Ok(Some(block)) = index.block(number) else { continue };
        match off_first_processor(|| lines(index, agenda, chain, &block)) {
            Ok(lines) => {
                for (who, line) in &lines {
                    tracing::info!("  console.log · {who} · {line}");
                }
            }
            Err(error) => tracing::debug!("cannot trace console.log of block {number}: {error}"),
        }
    }
}

fn lines(
    index: &Index,
    agenda: &dyn Agenda,
    chain: Chain,
    block: &IndexedBlock,
) -> Result<Vec<(String, String)>, TraceError> {
    let Some(replay) = Replay::new(index, agenda, chain, block)? else { return Ok(Vec::new()) };
    let printed = replay.all(&Console, Limits::BLOCK)?.into_iter().zip(&block.receipts);
    let of_one = |(lines, receipt): (Vec<String>, &Receipt)| {
        let who = match receipt.schedule_ref {
            Some(run) => format!("run {} of schedule {}", run.number, run.schedule),
            None => receipt.transaction_hash.to_string(),
        };
        lines.into_iter().map(move |line| (who.clone(), line))
    };
    Ok(printed.flat_map(of_one).collect())
}
