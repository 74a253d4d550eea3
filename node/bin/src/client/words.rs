//! Spans, times and counts in words.

use almanac_primitives::{Chain, DurationMs, TimestampMs, params::SECOND_MS};
use almanac_proof::time::iso;

/// Units with one length, the longest first: name and seconds.
pub(crate) const UNITS: [(&str, u64); 5] =
    [("week", 604_800), ("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)];

/// `2026-12-01 09:00 UTC`; seconds and milliseconds where there are any.
pub(crate) fn date(time: TimestampMs) -> String {
    let iso = iso(time);
    let text = iso.trim_end_matches('Z').replace('T', " ");
    let text = text.strip_suffix(".000").unwrap_or(&text);
    format!("{} UTC", text.strip_suffix(":00").unwrap_or(text))
}

/// An exact interval: "30 days", "90 minutes", "1 hour".
fn interval(seconds: u64) -> String {
    // Thirty days are clearer than 4 weeks and 2 days, so only one unit is used, and weeks only below a month.
    let fits = |(name, unit): &&(&str, u64)| {
        seconds.is_multiple_of(*unit) && seconds >= *unit && (*name != "week" || seconds < 30 * 86_400)
    };
    let (name, unit) = UNITS.iter().find(fits).copied().unwrap_or(("second", 1));
    counted(seconds / unit, name)
}

/// How often: "every 30 days", "every hour".
pub(crate) fn how_often(seconds: u64) -> String {
    let span = interval(seconds);
    format!("every {}", span.strip_prefix("1 ").unwrap_or(&span))
}

/// "1 run", "12 runs".
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Which chain: two may have the same id, and only one begins with this block.
pub(crate) fn chain_words(chain: &Chain) -> String {
    format!("{}, which begins with block {}", chain.id, chain.genesis)
}

/// How far a time is from another, roughly: "in 2 h", "3 min ago".
pub(crate) fn distance(time: TimestampMs, now: TimestampMs) -> String {
    let rough = |DurationMs(ms): DurationMs| match ms / SECOND_MS {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    };
    match (time.since(now), now.since(time)) {
        (Some(ahead), _) if ahead.0 > 0 => format!("in {}", rough(ahead)),
        (_, Some(ago)) if ago.0 > 0 => format!("{} ago", rough(ago)),
        _ => "now".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_as_people_say_them() {
        for (seconds, text) in [
            (1, "1 second"),
            (60, "1 minute"),
            (90, "90 seconds"),
            (3_600, "1 hour"),
            (5_400, "90 minutes"),
            (86_400, "1 day"),
            (604_800, "1 week"),
            (30 * 86_400, "30 days"),
            (35 * 86_400, "35 days"),
        ] {
            assert_eq!(interval(seconds), text);
        }
        assert_eq!(
            (how_often(86_400).as_str(), how_often(11 * 86_400).as_str()),
            ("every day", "every 11 days")
        );
        let second = |seconds: u64| TimestampMs(seconds * 1_000);
        assert_eq!(date(second(1_796_115_600)), "2026-12-01 09:00 UTC");
        assert_eq!(date(second(1_796_115_601)), "2026-12-01 09:00:01 UTC");
        assert_eq!(date(TimestampMs(1_796_115_600_500)), "2026-12-01 09:00:00.500 UTC");
        assert_eq!(distance(second(200), second(80)), "in 2 min");
        assert_eq!(distance(second(80), second(200_000)), "2 d ago");
        assert_eq!(distance(second(80), second(80)), "now");
    }
}
