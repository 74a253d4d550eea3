//! Many schedules that expire: how many in a block, and what that block takes beside an idle one.

use super::{TimestampMs, count, genesis};
use crate::{
    Chain, median, ms,
    orders::{Kind, bulk_signed},
};
use almanac_primitives::{
    params::{SIGNED_EXPIRIES_MAX, SIGNED_EXPIRY_SECONDS},
    testing::signed::{ScheduleCreated, ScheduleExpired},
};
use commonware_runtime::tokio;
use std::time::Duration;

/// HEDERA-18: 100 a second for 1,800 seconds.
const PENDING: u64 = 180_000;
/// Schedules that a block of the loader creates, by one transaction: less than half of a block's gas, so that the base fee
/// does not rise.
const LOADED: u64 = 150;
/// Empty blocks that are compared.
const EMPTY: usize = 100;
/// Blocks at the pace of the throttle, 100 a second and ten blocks a second.
const PACED: u64 = 100;
const PACED_EXPIRIES: u64 = 10;
const PACED_MS: u64 = 100;

/// Wall and processor time of blocks.
#[derive(Default)]
struct Times {
    wall: Vec<Duration>,
    processor: Vec<Duration>,
}

impl Times {
    fn push(&mut self, chain: &Chain) {
        self.wall.push(chain.last[0] + chain.last[1]);
        self.processor.push(chain.processor);
    }

    fn print(self, what: &str, idle: Self) {
        let most = self.processor.iter().max().copied().unwrap_or_default();
        let [wall, processor, idle_wall, idle] =
            [self.wall, self.processor, idle.wall, idle.processor].map(median);
        println!(
            "{what}: {:.2} ms of a processor, {:.1} x an idle block ({:.2} ms), the slowest {:.2} ms; by the clock {:.2} ms \
             and {:.2} ms",
            ms(processor),
            processor.as_secs_f64() / idle.as_secs_f64(),
            ms(idle),
            ms(most),
            ms(wall),
            ms(idle_wall),
        );
    }
}

pub(super) async fn measure(context: tokio::Context) {
    let asked = std::env::var("ALMANAC_BENCH_PENDING");
    let pending = asked.map_or(PENDING, |text| text.parse().expect("a number of schedules"));
    let genesis = genesis(std::iter::empty());
    let mut idle = Chain::open_with(&context, "idle", Kind::Signed, &genesis).await;
    let mut many = Chain::open_with(&context, "many", Kind::Signed, &genesis).await;
    let mut first = 0;
    while u64::from(first) < pending {
        first = many.create_in_bulk(first, LOADED, 1_000).await;
    }
    println!("{pending} pending schedules that wait for signatures");
    let (mut quiet, mut beside) = (Times::default(), Times::default());
    for _ in 0..EMPTY {
        idle.empty(1, &mut quiet).await;
        assert_eq!(many.empty(1, &mut beside).await, 0);
    }
    beside.print("a block in which none expires", quiet);

    // All at once, as after a standstill.
    let (mut quiet, mut busy, mut left, mut step) =
        (Times::default(), Times::default(), pending, expiry_ms());
    while left > 0 {
        let expired = many.empty(step, &mut busy).await;
        assert_eq!(expired, left.min(SIGNED_EXPIRIES_MAX.default), "as many as a block may end");
        idle.empty(1, &mut quiet).await;
        (left, step) = (left - expired, 1);
    }
    let blocks = busy.wall.len();
    busy.print(
        &format!("all of them due at once, {blocks} blocks of {} each", SIGNED_EXPIRIES_MAX.default),
        quiet,
    );

    for _ in 0..PACED {
        first = many.create_in_bulk(first, PACED_EXPIRIES, PACED_MS).await;
    }
    let (mut quiet, mut paced) = (Times::default(), Times::default());
    let mut step = expiry_ms() - (PACED - 1) * PACED_MS;
    for _ in 0..PACED {
        assert_eq!(many.empty(step, &mut paced).await, PACED_EXPIRIES);
        idle.empty(1, &mut quiet).await;
        step = PACED_MS;
    }
    paced.print(&format!("at the pace of the throttle, {PACED_EXPIRIES} in each block"), quiet);
}

fn expiry_ms() -> u64 {
    SIGNED_EXPIRY_SECONDS.default * 1_000
}

impl Chain {
    /// A block with so many creations, and the number of the next one.
    async fn create_in_bulk(&mut self, first: u32, created: u64, step_ms: u64) -> u32 {
        let orders = vec![bulk_signed(self.next_nonce(0), created, first)];
        let output = self.commit(TimestampMs(self.now_ms() + step_ms), orders).await;
        assert_eq!(count::<ScheduleCreated>(&output) as u64, created, "all of them are created");
        first + u32::try_from(created).expect("few")
    }

    /// An empty block, and how many expired in it.
    async fn empty(&mut self, step_ms: u64, times: &mut Times) -> u64 {
        let output = self.commit(TimestampMs(self.now_ms() + step_ms), vec![]).await;
        times.push(self);
        count::<ScheduleExpired>(&output) as u64
    }
}
