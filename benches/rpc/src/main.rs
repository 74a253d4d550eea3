#![doc = include_str!("../README.md")]

mod http;
mod load;
mod node;
mod table;
mod transfers;

use load::{Load, Outcome};
use node::{Contender, Running};
use std::{process::ExitCode, sync::Arc, time::Duration};
use transfers::Transfers;

/// What can go wrong while measuring.
#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error("usage: almanac-bench-rpc <almanac binary> <anvil binary>")]
    Usage,
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("{program} gave no answer within {ms} ms")]
    Silent { program: String, ms: u128 },
    #[error("connection to the node: {0}")]
    Connection(#[from] std::io::Error),
    #[error("{method} was answered with {answer}")]
    Answer { method: &'static str, answer: String },
    #[error("{included} of {sent} transactions were included within {s} s")]
    Unfinished { included: usize, sent: usize, s: u64 },
}

/// Everything measured of one node: one outcome per size of batch.
#[derive(Debug, Default)]
struct Measured {
    start: Vec<Duration>,
    single: Vec<Outcome>,
    batch: Vec<Outcome>,
}

/// Times each measurement is taken; the median counts.
const ROUNDS: usize = 3;
const BATCH: usize = 100;

fn main() -> ExitCode {
    // One thread: the node should have the rest of the machine.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(BenchError::from).and_then(|runtime| runtime.block_on(compare())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-rpc: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn compare() -> Result<(), BenchError> {
    let mut arguments = std::env::args().skip(1);
    let (Some(almanac), Some(anvil)) = (arguments.next(), arguments.next()) else {
        return Err(BenchError::Usage);
    };
    let contenders = [Contender::almanac(almanac), Contender::anvil(anvil)];
    eprintln!("bench-rpc: signing {} transfers", transfers::COUNT);
    let transfers = Arc::new(Transfers::sign());
    let mut measured = [Measured::default(), Measured::default()];
    for round in 1..=ROUNDS {
        // They take turns, so that a slow minute of the machine meets both.
        for (contender, measured) in contenders.iter().zip(&mut measured) {
            eprintln!("bench-rpc: round {round} of {ROUNDS}, {}", contender.name);
            measured.take(contender, &transfers).await?;
        }
    }
    table::print(&contenders, &measured);
    Ok(())
}

impl Measured {
    /// One more measurement of everything, each on a fresh node.
    async fn take(&mut self, contender: &Contender, transfers: &Arc<Transfers>) -> Result<(), BenchError> {
        for (batch, outcomes) in [(1, &mut self.single), (BATCH, &mut self.batch)] {
            let node = Running::start(contender).await?;
            self.start.push(node.started_in);
            outcomes.push(Load::new(&node, transfers.clone(), batch).await?.run().await?);
            node.stop().await;
        }
        Ok(())
    }
}
