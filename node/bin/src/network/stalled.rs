//! Warns when finality stalls.

use almanac_index::Index;
use almanac_primitives::{DurationMs, Genesis};
use std::{
    convert::Infallible,
    time::{Duration, Instant},
};

/// Shortest time without a block that is worth a word.
const QUIET: Duration = Duration::from_secs(10);

/// The same in block times, where those are long.
const QUIET_BLOCKS: u32 = 10;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks at the height for ever, and says when it stays where it is.
pub(super) async fn watch(
    index: &Index,
    DurationMs(block_time): DurationMs,
    genesis: &Genesis,
) -> Infallible {
    let advice = advice(index, genesis);
    let patience = QUIET.max(Duration::from_millis(block_time) * QUIET_BLOCKS);
    let mut quiet = Quiet::new(index.height(), Instant::now(), patience);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match quiet.look(index.height(), Instant::now()) {
            Some(Word::Quiet { height, secs }) => {
                tracing::warn!("no block after {height} has become final for {secs} s: {advice}");
            }
            Some(Word::Over { height, secs }) => {
                tracing::info!("block {height} is final, after {secs} s without a final block");
            }
            None => {}
        }
    }
}

/// What it takes for blocks to become final.
fn advice(index: &Index, genesis: &Genesis) -> String {
    let count = genesis.validators.len();
    let quorum = count - count.saturating_sub(1) / 3;
    let origin = index.block(0).ok().flatten();
    let origin = origin.map_or_else(|| "unknown".to_owned(), |block| block.hash.to_string());
    format!(
        "{quorum} of the {count} validators must run, reach each other and have the same genesis; block 0 is {origin} here"
    )
}

/// The last height, and for how long it has been that.
struct Quiet {
    height: u64,
    since: Instant,
    patience: Duration,
    /// How much longer it must be quiet for the next word. Doubles, so that the log of a long night stays short.
    next: Duration,
}

/// What there is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Quiet { height: u64, secs: u64 },
    Over { height: u64, secs: u64 },
}

impl Quiet {
    fn new(height: u64, since: Instant, patience: Duration) -> Self {
        Self { height, since, patience, next: patience }
    }

    fn look(&mut self, height: u64, now: Instant) -> Option<Word> {
        let quiet = now.saturating_duration_since(self.since);
        let secs = quiet.as_secs();
        if height != self.height {
            let was_said = self.next > self.patience;
            *self = Self::new(height, now, self.patience);
            return was_said.then_some(Word::Over { height, secs });
        }
        if quiet < self.next {
            return None;
        }
        self.next = quiet.saturating_mul(2);
        Some(Word::Quiet { height, secs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{accounts, chain};
    use alloy_primitives::{Address, B256};
    use almanac_index::IndexConfig;
    use almanac_primitives::{TimestampMs, genesis::Validator};

    #[test]
    fn silence_is_said_ever_more_seldom_and_its_end_once() {
        let start = Instant::now();
        let mut quiet = Quiet::new(7, start, Duration::from_secs(10));
        let mut look = |height, secs| quiet.look(height, start + Duration::from_secs(secs));
        assert_eq!(look(7, 9), None);
        assert_eq!(look(7, 10), Some(Word::Quiet { height: 7, secs: 10 }));
        assert_eq!(look(7, 19), None);
        assert_eq!(look(7, 20), Some(Word::Quiet { height: 7, secs: 20 }));
        assert_eq!(look(7, 39), None);
        assert_eq!(look(7, 45), Some(Word::Quiet { height: 7, secs: 45 }), "a late look");
        assert_eq!(look(7, 89), None);
        assert_eq!(look(8, 89), Some(Word::Over { height: 8, secs: 89 }));
        assert_eq!(look(9, 90), None, "it goes on");
        assert_eq!(look(9, 99), None);
        assert_eq!(look(12, 99), None, "nothing was said of that");
        assert_eq!(look(12, 109), Some(Word::Quiet { height: 12, secs: 10 }));
    }

    #[test]
    fn the_advice_names_the_quorum_and_the_start_of_the_chain() {
        let validator = |n: u8| Validator {
            name: n.to_string(),
            public_key: B256::repeat_byte(n),
            fee_recipient: Address::ZERO,
        };
        let start = accounts::genesis(1, TimestampMs(1));
        for (count, quorum) in [(1, 1), (2, 2), (3, 3), (4, 3), (7, 5), (10, 7)] {
            let genesis = Genesis { validators: (1..=count).map(validator).collect(), ..start.clone() };
            let chain = chain::in_memory(&start, IndexConfig::default()).unwrap();
            let words = advice(&chain.index, &genesis);
            assert!(words.contains(&format!("{quorum} of the {count} validators")), "{words}");
            assert!(words.contains(&chain.tip.hash.to_string()), "{words}");
        }
    }
}
