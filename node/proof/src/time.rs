//! Times, for programs and for people.

use alloy_primitives::U64;
use almanac_primitives::TimestampMs;
use chrono::{DateTime, Datelike as _};
use serde::{Deserialize, Serialize};

/// A moment as milliseconds since 1970 and as ISO 8601 has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcTime {
    ms: U64,
    iso: String,
}

impl RpcTime {
    /// A moment.
    pub fn new(time: TimestampMs) -> Self {
        Self { ms: U64::from(time.0), iso: iso(time) }
    }
}

/// The calendar repeats after 400 years.
const CYCLE_YEARS: u64 = 400;
const CYCLE_MS: u64 = 146_097 * 24 * 60 * 60 * 1_000;

/// A moment in the calendar of people: `2026-11-15T16:40:00.000Z`.
///
/// A schedule may name any 64-bit number of milliseconds, which is more years than date libraries know. So chrono gets
/// a moment of the first cycle, and the whole cycles are added to its year.
pub fn iso(time: TimestampMs) -> String {
    let (cycles, ms) = (time.0 / CYCLE_MS, time.0 % CYCLE_MS);
    let ms = i64::try_from(ms).expect("a cycle fits 63 bits");
    let moment = DateTime::from_timestamp_millis(ms).expect("chrono knows the years 1970 to 2370");
    let year = cycles * CYCLE_YEARS + u64::from(moment.year().unsigned_abs());
    format!("{year:04}-{}", moment.format("%m-%dT%H:%M:%S%.3fZ"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_that_everybody_knows() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "10000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso(TimestampMs(ms)), text);
        }
        assert_eq!(iso(TimestampMs(u64::MAX)), "584556019-04-03T14:25:51.615Z", "the last moment there is");
    }

    /// Day by day through 800 years, as a calendar on paper does it.
    #[test]
    fn dates_as_by_counting() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..2 * 146_097 {
            let shown = iso(TimestampMs(days * 24 * 60 * 60 * 1_000));
            assert_eq!(shown, format!("{year}-{month:02}-{day:02}T00:00:00.000Z"));
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 if is_leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > last {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }
}
