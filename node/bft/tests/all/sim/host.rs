//! What a validator runs on, apart from the network: a disk, a clock that may be wrong, and the times at which the
//! whole process stands still.

use crate::sim::{
    disk::Disk,
    marks::{Mark, Marks},
    run::milliseconds,
};
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// How far a clock has to drift before that counts as a fault.
const DRIFT_MIN: Duration = Duration::from_millis(20);

/// How the clock of a machine differs from the simulated one.
#[derive(Clone, Debug, Default)]
pub struct ClockFaults {
    /// When it is set, and by how many milliseconds.
    pub jumps: Vec<(Duration, i64)>,
    /// How much faster it runs, in millionths.
    pub drift_ppm: i64,
    /// When it is set right, and runs as it should.
    pub drifts_until: Duration,
}

impl ClockFaults {
    /// How far it is ahead, in nanoseconds.
    fn ahead(&self, now: Duration) -> i128 {
        let jumps = self.jumps.iter().filter(|(at, _)| *at <= now).map(|(_, by)| i128::from(*by) * 1_000_000);
        jumps.sum::<i128>() + self.drift(now)
    }

    fn drift(&self, now: Duration) -> i128 {
        let is_drifting = now < self.drifts_until;
        if is_drifting { nanoseconds(now) * i128::from(self.drift_ppm) / 1_000_000 } else { 0 }
    }
}

pub struct Host {
    pub disk: Arc<Disk>,
    pauses: Vec<Range<Duration>>,
    clock: ClockFaults,
    marks: Marks,
    jumps_seen: AtomicUsize,
    is_drift_seen: AtomicBool,
}

impl Host {
    pub fn new(disk: Arc<Disk>, pauses: Vec<Range<Duration>>, clock: ClockFaults, marks: Marks) -> Arc<Self> {
        let (jumps_seen, is_drift_seen) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { disk, pauses, clock, marks, jumps_seen, is_drift_seen })
    }

    /// One on which nothing is wrong but the disk.
    pub fn plain(disk: Arc<Disk>) -> Arc<Self> {
        Self::new(disk, Vec::new(), ClockFaults::default(), Marks::default())
    }

    /// What its clock shows.
    pub fn shown(&self, now: SystemTime) -> SystemTime {
        let now = since_start(now);
        let jumps = self.clock.jumps.iter().filter(|(at, _)| *at <= now).count();
        if self.jumps_seen.fetch_max(jumps, Relaxed) < jumps {
            self.marks.add(Mark::ClockJump);
        }
        let has_drifted = self.clock.drift(now).unsigned_abs() >= DRIFT_MIN.as_nanos();
        if has_drifted && !self.is_drift_seen.swap(true, Relaxed) {
            self.marks.add(Mark::ClockDrift);
        }
        let shown = (nanoseconds(now) + self.clock.ahead(now)).max(0);
        UNIX_EPOCH + Duration::from_nanos(u64::try_from(shown).unwrap())
    }

    /// Whether the process ever stands still.
    pub fn has_pauses(&self) -> bool {
        !self.pauses.is_empty()
    }

    /// Until when it stands still. Asked for a task that would run now.
    pub fn paused_until(&self, now: SystemTime) -> Option<SystemTime> {
        let now = since_start(now);
        let pause = self.pauses.iter().find(|pause| pause.contains(&now))?;
        self.marks.add(Mark::Pause);
        Some(UNIX_EPOCH + pause.end)
    }
}

fn since_start(now: SystemTime) -> Duration {
    now.duration_since(UNIX_EPOCH).unwrap()
}

fn nanoseconds(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap()
}

#[test]
fn a_wrong_clock_jumps_drifts_and_is_set_right() {
    let seconds = Duration::from_secs;
    let clock = ClockFaults {
        jumps: vec![(seconds(2), 1_500), (seconds(3), -1_500)],
        drift_ppm: -10_000,
        drifts_until: seconds(10),
    };
    let marks = Marks::default();
    let host = Host::new(Disk::new(marks.clone()), Vec::new(), clock, marks.clone());
    let shown = |ms: u64| milliseconds(since_start(host.shown(UNIX_EPOCH + Duration::from_millis(ms)))).0;
    assert_eq!([0, 1_000, 2_000, 3_000, 9_000, 10_000].map(shown), [0, 990, 3_480, 2_970, 8_910, 10_000]);
    assert_eq!([Mark::ClockJump, Mark::ClockDrift].map(|mark| marks.count(mark)), [2, 1]);
}
