//! Random histories against the dull version: applied, repeated, written, reopened, taken back.

use crate::support::{Chain, Plan, any_filter, any_plan, apply, keeping, key, someone};
use almanac_index::{Direction, Index, IndexConfig, Location, RevertError};
use proptest::{collection::vec, prelude::*};
use tempfile::TempDir;

#[derive(Clone, Debug)]
enum Step {
    Apply(Plan),
    /// Feeds a block again that is so many below the tip.
    Repeat(u64),
    Sync,
    Reopen,
    /// Takes back so many blocks.
    Revert(u64),
    Check,
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => any_plan().prop_map(Step::Apply),
        1 => (0..4u64).prop_map(Step::Repeat),
        1 => Just(Step::Sync),
        1 => Just(Step::Reopen),
        1 => (0..6u64).prop_map(Step::Revert),
        1 => Just(Step::Check),
    ];
    vec(step, 1..25)
}

fn any_config() -> impl Strategy<Value = IndexConfig> {
    prop_oneof![Just(u64::MAX), 0..8u64].prop_map(keeping)
}

/// An index beside the chain that it should know.
struct Pair {
    chain: Chain,
    index: Option<Index>,
    config: IndexConfig,
    directory: Option<TempDir>,
    /// The highest tip there ever was: what it made the index forget stays forgotten.
    highest: u64,
}

impl Pair {
    fn new(config: IndexConfig, is_on_disk: bool) -> Self {
        let directory = is_on_disk.then(|| tempfile::tempdir().unwrap());
        let mut pair = Self { chain: Chain::new(), index: None, config, directory, highest: 0 };
        pair.open();
        pair
    }

    fn open(&mut self) {
        self.index = Some(match &self.directory {
            Some(directory) => self.chain.open(&directory.path().join("index"), self.config.clone()).unwrap(),
            None => self.chain.in_memory(self.config.clone()),
        });
    }

    fn index(&self) -> &Index {
        self.index.as_ref().unwrap()
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Apply(plan) => {
                let fed = self.chain.grow(plan).clone();
                apply(self.index(), &fed).unwrap();
                self.highest = self.highest.max(self.chain.height());
            }
            Step::Repeat(below) => {
                if let Some(fed) = self.chain.fed.iter().rev().nth(*below as usize) {
                    apply(self.index(), fed).unwrap();
                }
            }
            Step::Sync => self.index().sync().unwrap(),
            Step::Reopen if self.directory.is_some() => {
                self.index = None;
                self.open();
            }
            Step::Reopen => {}
            Step::Revert(count) => self.revert(self.chain.height().saturating_sub(*count)),
            Step::Check => self.check(),
        }
    }

    fn revert(&mut self, height: u64) {
        match self.index().revert_to(height) {
            Ok(()) => self.chain.revert_to(height),
            Err(RevertError::Pruned { given, oldest }) => {
                assert_eq!(given, height);
                assert!(height < oldest && oldest <= self.forgotten_most(), "{height} {oldest}");
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn forgotten_most(&self) -> u64 {
        self.highest.saturating_sub(self.config.history_depth)
    }

    fn check(&self) {
        let (chain, index) = (&self.chain, self.index());
        chain.check_blocks(index);
        chain.check_states(index);
        chain.check_schedules(index);
        for height in 0..=chain.height() {
            let is_kept = index.state_at(height).is_some();
            assert_eq!(is_kept, height >= index.oldest_state());
            let deep = height < chain.height().saturating_sub(self.config.history_depth);
            assert!(!(deep && is_kept), "{height} is deeper than asked for");
            assert!(is_kept || height < self.forgotten_most(), "{height} should be kept");
        }
    }

    /// What a new index has that was fed the same blocks.
    fn check_digest(&self) {
        if self.config.history_depth == u64::MAX || self.highest == self.chain.height() {
            let other = self.chain.rebuilt(keeping(self.config.history_depth));
            assert_eq!(self.index().digest().unwrap(), other.digest().unwrap());
        }
    }
}

fn run(steps: &[Step], config: IndexConfig, is_on_disk: bool) {
    let mut pair = Pair::new(config, is_on_disk);
    for step in steps {
        pair.take(step);
    }
    pair.check();
    pair.check_digest();
    pair.check();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn in_memory_it_answers_as_the_dull_version(steps in any_steps(), config in any_config()) {
        run(&steps, config, false);
    }

    #[test]
    fn logs_as_by_a_linear_scan(
        plans in vec(any_plan(), 0..12),
        filters in vec(any_filter(14), 8),
        max in 0..40usize,
    ) {
        let mut chain = Chain::new();
        let index = chain.in_memory(keeping(u64::MAX));
        for plan in &plans {
            apply(&index, chain.grow(plan)).unwrap();
        }
        for filter in &filters {
            let expected = chain.logs(filter);
            let found = index.logs(filter, max);
            if expected.len() <= max {
                prop_assert_eq!(found.unwrap(), expected, "{:?}", filter);
                continue;
            }
            let Err(almanac_index::LogsError::TooMany { max: told, complete_to }) = found else {
                panic!("{} logs were to be too many", expected.len())
            };
            prop_assert_eq!(told, max);
            // The advice works.
            if let Some(to) = complete_to {
                let narrower = almanac_index::LogFilter { to, ..filter.clone() };
                prop_assert_eq!(index.logs(&narrower, max).unwrap(), chain.logs(&narrower));
            }
        }
    }

    #[test]
    fn transactions_of_somebody_as_by_a_linear_scan(
        plans in vec(any_plan(), 0..12),
        sender in 0..5u8,
        from in (0..14u64, 0..4usize),
        to in (0..14u64, 0..4usize),
        limit in 0..12usize,
        is_ascending: bool,
    ) {
        let mut chain = Chain::new();
        let index = chain.in_memory(keeping(u64::MAX));
        for plan in &plans {
            apply(&index, chain.grow(plan)).unwrap();
        }
        let order = if is_ascending { Direction::Ascending } else { Direction::Descending };
        let at = |(number, index): (u64, usize)| Location { number, index };
        for (from, to) in [(at(from), at(to)), (Location::first_of(from.0), Location::last_of(to.0))] {
            let mut expected = chain.transactions_of(someone(sender), from, to, order);
            expected.truncate(limit);
            let found = index.transactions_of(someone(sender), &(from..=to), order, limit).unwrap();
            prop_assert_eq!(found, expected);
            let mut expected = chain.involving(someone(sender), from, to, order);
            expected.truncate(limit);
            let found = index.transactions_involving(someone(sender), &(from..=to), order, limit).unwrap();
            prop_assert_eq!(found, expected);
        }
        let mut expected: Vec<u64> = (from.0..=to.0)
            .filter(|height| chain.fed.get((*height).wrapping_sub(1) as usize).is_some_and(|fed| {
                fed.diff.changes().iter().any(|change| change.key == key(sender))
            }))
            .collect();
        if !is_ascending {
            expected.reverse();
        }
        expected.truncate(limit);
        prop_assert_eq!(index.changes_of(&key(sender), &(from.0..=to.0), order, limit).unwrap(), expected);
        prop_assert_eq!(index.creation_of(someone(sender)).unwrap(), chain.creation_of(someone(sender)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn on_disk_it_answers_as_the_dull_version(steps in any_steps(), config in any_config()) {
        run(&steps, config, true);
    }
}
