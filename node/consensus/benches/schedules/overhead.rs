//! What a block costs beside many pending schedules, against a chain with few in the same minute: machines are noisy,
//! so the two take turns.

use crate::{
    chain::Chain,
    {SMALL, median, ms},
};
use almanac_primitives::TimestampMs;
use std::time::Duration;

/// Blocks that a median is taken of.
const ROUNDS: usize = 21;
/// Schedules that are due at once.
const DUE: u64 = 100;
/// Times for which schedules are made before a size is loaded, so that they are buried when they are due.
const GROUPS: u64 = 7;

/// What a block took to execute and seal, and to make durable, and the processor time of both.
type Taken = [Duration; 3];

impl Chain {
    /// Creates the schedules that are due much later, and answers with their times.
    pub(crate) async fn groups(&mut self) -> Vec<u64> {
        let first = self.now_s() + 24 * 60 * 60;
        let times: Vec<u64> = (0..GROUPS).map(|n| first + n * 100).collect();
        for at in &times {
            let orders = self.bulk(DUE, *at, 0);
            self.make(orders).await;
        }
        times
    }

    /// A block with nothing due, and one with runs that were scheduled just before.
    async fn fresh(&mut self) -> [Taken; 2] {
        let at = self.now_s() + 100;
        let orders = self.bulk(DUE, at, 0);
        self.make(orders).await;
        [self.timed(at - 50, 0).await, self.timed(at, DUE).await]
    }

    async fn timed(&mut self, at: u64, due: u64) -> Taken {
        let ran = self.block_at(TimestampMs(at * 1_000), vec![]).await;
        assert_eq!(ran as u64, due);
        let [sealed, durable] = self.last;
        [sealed, durable, self.processor]
    }
}

/// Compares a chain with many pending schedules to one with few; each has groups of its own.
pub(crate) async fn compare(chains: [&mut Chain; 2], groups: [&[u64]; 2]) {
    let [small, large] = chains;
    let (mut empty, mut fresh, mut buried) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let ([small_empty, small_due], [large_empty, large_due]) = (small.fresh().await, large.fresh().await);
        empty.push([small_empty, large_empty]);
        fresh.push([small_due, large_due]);
    }
    for (small_at, large_at) in groups[0].iter().zip(groups[1]) {
        buried.push([small.timed(*small_at, DUE).await, large.timed(*large_at, DUE).await]);
    }
    show("empty block", &empty);
    show("block with 100 runs scheduled just before", &fresh);
    show("block with 100 runs scheduled before all the others", &buried);
}

fn show(what: &str, blocks: &[[Taken; 2]]) {
    let middle = |chain: usize, part: usize| median(blocks.iter().map(|block| block[chain][part]).collect());
    let sealed = middle(1, 0);
    println!(
        "  {what}: {:.2} ms to execute and seal, {:.2} x of {SMALL} pending; {:.2} ms to be durable; {:.2} ms of \
         processor time for both, {:.2} x",
        ms(sealed),
        sealed.as_secs_f64() / middle(0, 0).as_secs_f64(),
        ms(middle(1, 1)),
        ms(middle(1, 2)),
        middle(1, 2).as_secs_f64() / middle(0, 2).as_secs_f64(),
    );
}
