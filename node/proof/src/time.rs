//! Times, for programs and for people.

use alloy_primitives::U64;
use almanac_primitives::TimestampMs;
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

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A moment in the calendar of people: `2026-11-15T16:40:00.000Z`.
pub fn iso(time: TimestampMs) -> String {
    let (days, ms) = (time.0 / DAY_MS, time.0 % DAY_MS);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
}

/// Year, month and day so many days after 1970-01-01.
///
/// Years are counted from March, so that the day which only some years have is the last of a year. 400 of them
/// have always the same number of days.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468;
    const DAYS_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970;
    let (era, day) = (days / DAYS_400_YEARS, days % DAYS_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months of 31, 30, 31, 30, 31 days from March on, twice and a bit: 153 days for five.
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let month = if is_next_year { month - 9 } else { month + 3 };
    (400 * era + year + u64::from(is_next_year), month, day_of_month)
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
        ] {
            assert_eq!(iso(TimestampMs(ms)), text);
        }
        assert!(iso(TimestampMs(u64::MAX)).starts_with("584556019-"), "the last moment there is");
    }

    /// Day by day through 800 years, as a calendar on paper does it.
    #[test]
    fn dates_as_by_counting() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..2 * 146_097 {
            assert_eq!(date(days), (year, month, day));
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
