//! Spans of time and amounts of money as people say them.

use alloy_primitives::U256;
use almanac_primitives::{DurationMs, TimestampMs, Wei};

/// How far a time is from another: "in 60 s", "now".
pub(crate) fn due_in(due: TimestampMs, now: TimestampMs) -> String {
    match due.since(now) {
        None | Some(DurationMs(0)) => "now".to_owned(),
        Some(span) => format!("in {}", in_words(span)),
    }
}

/// A span in its two largest units.
fn in_words(DurationMs(ms): DurationMs) -> String {
    const UNITS: [(u64, &str); 5] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms")];
    let whole = UNITS.iter().position(|(unit, _)| ms >= *unit).unwrap_or(UNITS.len() - 1);
    // Two minutes are told in seconds, two hours in minutes: schedules are set in such numbers.
    let first = if ms < UNITS[whole].0 * 2 && whole + 1 < UNITS.len() - 1 { whole + 1 } else { whole };
    let (unit, name) = UNITS[first];
    let rest = ms % unit;
    let second = UNITS.get(first + 1).map(|(unit, name)| (rest / unit, *name));
    match second.filter(|(count, name)| *count > 0 && *name != "ms") {
        Some((count, second)) => format!("{} {name} {count} {second}", ms / unit),
        None => format!("{} {name}", ms / unit),
    }
}

/// An amount in whole coins.
pub(crate) fn coins(Wei(wei): Wei) -> String {
    format!("{} coins", in_units(wei, 18))
}

/// A price in gwei.
pub(crate) fn gwei(wei: U256) -> String {
    format!("{} gwei", in_units(wei, 9))
}

/// An amount in units of 10^`decimals` wei, without trailing zeroes.
fn in_units(wei: U256, decimals: usize) -> String {
    let (whole, rest) = wei.div_rem(U256::from(10).pow(U256::from(decimals)));
    let text = format!("{whole}.{:0>decimals$}", rest.to_string());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_as_people_say_them() {
        for (ms, text) in [
            (0, "now"),
            (1, "in 1 ms"),
            (999, "in 999 ms"),
            (1_000, "in 1 s"),
            (60_000, "in 60 s"),
            (90_500, "in 90 s"),
            (120_000, "in 2 min"),
            (150_000, "in 2 min 30 s"),
            (3_600_000, "in 60 min"),
            (86_400_000, "in 24 h"),
            (3 * 86_400_000 + 7_200_000, "in 3 d 2 h"),
        ] {
            assert_eq!(due_in(TimestampMs(5_000 + ms), TimestampMs(5_000)), text);
        }
        assert_eq!(due_in(TimestampMs(5), TimestampMs(6)), "now", "late");
    }

    #[test]
    fn amounts_as_people_read_them() {
        for (wei, text) in [(0, "0 coins"), (1, "0.000000000000000001 coins"), (10u64.pow(18), "1 coins")] {
            assert_eq!(coins(Wei(U256::from(wei))), text);
        }
        assert_eq!(coins(Wei(U256::from(1_500_000_000_000_000u64))), "0.0015 coins");
        assert_eq!(coins(Wei(U256::from(10).pow(U256::from(20)))), "100 coins");
    }

    #[test]
    fn prices_as_people_read_them() {
        for (wei, text) in [
            (0u64, "0 gwei"),
            (1, "0.000000001 gwei"),
            (875_000_000, "0.875 gwei"),
            (1_000_000_000, "1 gwei"),
            (20_500_000_000, "20.5 gwei"),
        ] {
            assert_eq!(gwei(U256::from(wei)), text);
        }
    }
}
