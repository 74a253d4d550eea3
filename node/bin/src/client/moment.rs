//! Moments as people write them, made exact.

use super::words::UNITS;
use almanac_primitives::{TimestampMs, params::SECOND_MS};
use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime};

/// Why a text is no moment.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum MomentError {
    #[error(
        "TimeUnclear: {0:?} is no time: write \"2026-12-01 09:00 UTC\", \"in 2 hours\", \"tomorrow at 09:00 UTC\" or Unix seconds"
    )]
    TimeUnclear(String),
    #[error("NoTimeZone: {0:?} names no time zone: add UTC, or an offset such as +02:00")]
    NoTimeZone(String),
    #[error("NoTimeOfDay: {0:?} names a day but no time: add one, such as \"{0} 09:00 UTC\"")]
    NoTimeOfDay(String),
    #[error(
        "LooksLikeMilliseconds: {0} is in the year {1} if it counts seconds: leave out the last three digits"
    )]
    LooksLikeMilliseconds(u64, u64),
    #[error(
        "TooFine: {0:?} counts milliseconds: words count whole seconds, and a date may have milliseconds"
    )]
    TooFine(String),
    #[error("LengthVaries: a {0} has no fixed length: name the date, such as \"2026-12-01 09:00 UTC\"")]
    LengthVaries(String),
    #[error("TimeTooFar: {0:?} is more than the chain can count")]
    TimeTooFar(String),
}

/// Reads a moment. Words are relative to `now`, the chain's time.
pub(crate) fn parse_moment(text: &str, now: TimestampMs) -> Result<TimestampMs, MomentError> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        return from_seconds(text);
    }
    if let Some(span) = lower.strip_prefix("in ") {
        let seconds = parse_span(span)?.ok_or_else(|| MomentError::TimeUnclear(text.to_owned()))?;
        // A run happens at whole seconds: what is left of this one is added, so that none is early.
        let begin = now.0.div_ceil(SECOND_MS);
        let end = begin.checked_add(seconds).and_then(|end| end.checked_mul(SECOND_MS));
        return end.map(TimestampMs).ok_or_else(|| MomentError::TimeTooFar(text.to_owned()));
    }
    for (word, days) in [("today at ", 0), ("tomorrow at ", 1)] {
        if let Some(rest) = lower.strip_prefix(word) {
            let (time, offset) = parse_clock(rest)?;
            let today = local(now, offset).ok_or_else(|| MomentError::TimeTooFar(text.to_owned()))?.date();
            let day = today.checked_add_days(chrono::Days::new(days));
            let day = day.ok_or_else(|| MomentError::TimeTooFar(text.to_owned()))?;
            return from_local(day.and_time(time), offset)
                .ok_or_else(|| MomentError::TimeTooFar(text.to_owned()));
        }
    }
    parse_date(text)
}

fn from_seconds(text: &str) -> Result<TimestampMs, MomentError> {
    // The year 5138, in seconds; the year 1973, in milliseconds.
    const SECONDS_MAX: u64 = 100_000_000_000;
    let seconds: u64 = text.parse().map_err(|_| MomentError::TimeTooFar(text.to_owned()))?;
    if seconds >= SECONDS_MAX {
        let year = 1970 + seconds / 31_556_952;
        return Err(MomentError::LooksLikeMilliseconds(seconds, year));
    }
    Ok(TimestampMs(seconds * SECOND_MS))
}

/// RFC 3339, and the same with a space and `UTC`.
fn parse_date(text: &str) -> Result<TimestampMs, MomentError> {
    let unclear = || MomentError::TimeUnclear(text.to_owned());
    if NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok() {
        return Err(MomentError::NoTimeOfDay(text.to_owned()));
    }
    if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
        return to_timestamp(moment).ok_or_else(unclear);
    }
    let (rest, offset) = split_zone(text);
    // In this order: "at" has a t, too. Rhythms are in lower case.
    let rest = rest.replacen(" at ", " ", 1).replacen(['T', 't'], " ", 1);
    let forms = ["%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S%.3f"];
    let local =
        forms.iter().find_map(|form| NaiveDateTime::parse_from_str(&rest, form).ok()).ok_or_else(unclear)?;
    let offset = offset.ok_or_else(|| MomentError::NoTimeZone(text.to_owned()))?;
    from_local(local, offset).ok_or_else(unclear)
}

/// `09:00 UTC`, `09:00:30 +02:00`.
pub(crate) fn parse_clock(text: &str) -> Result<(NaiveTime, FixedOffset), MomentError> {
    let (rest, offset) = split_zone(text);
    let time = ["%H:%M", "%H:%M:%S"].iter().find_map(|form| NaiveTime::parse_from_str(&rest, form).ok());
    let time = time.ok_or_else(|| MomentError::TimeUnclear(text.to_owned()))?;
    Ok((time, offset.ok_or_else(|| MomentError::NoTimeZone(text.to_owned()))?))
}

/// What stands before the zone, and the zone.
fn split_zone(text: &str) -> (String, Option<FixedOffset>) {
    let text = text.trim();
    let Some((rest, zone)) = text.rsplit_once(' ') else {
        let utc = text.strip_suffix(['Z', 'z']).map(|rest| (rest.to_owned(), FixedOffset::east_opt(0)));
        return utc.unwrap_or((text.to_owned(), None));
    };
    let offset = match zone.to_ascii_uppercase().as_str() {
        "UTC" | "GMT" | "Z" => FixedOffset::east_opt(0),
        zone => zone.parse().ok(),
    };
    match offset {
        Some(offset) => (rest.trim().to_owned(), Some(offset)),
        None => (text.to_owned(), None),
    }
}

/// The clock of an offset at a moment.
pub(crate) fn local(time: TimestampMs, offset: FixedOffset) -> Option<NaiveDateTime> {
    let ms = i64::try_from(time.0).ok()?;
    Some(DateTime::from_timestamp_millis(ms)?.with_timezone(&offset).naive_local())
}

/// The moment at which a clock of this offset shows a time.
pub(crate) fn from_local(local: NaiveDateTime, offset: FixedOffset) -> Option<TimestampMs> {
    to_timestamp(local.and_local_timezone(offset).single()?)
}

fn to_timestamp(moment: DateTime<FixedOffset>) -> Option<TimestampMs> {
    u64::try_from(moment.timestamp_millis()).ok().map(TimestampMs)
}

/// Seconds of "2 hours", "1 hour and 30 minutes", "day"; `None` if it is no span.
pub(crate) fn parse_span(text: &str) -> Result<Option<u64>, MomentError> {
    let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty() && *word != "and").collect();
    let mut sum: u64 = 0;
    let mut rest = &words[..];
    while let [first, after @ ..] = rest {
        let (count, unit, after) = match (first.parse::<u64>(), after) {
            (Ok(count), [unit, after @ ..]) => (count, *unit, after),
            (Err(_), after) if matches!(*first, "a" | "an" | "one") && !after.is_empty() => {
                (1, after[0], &after[1..])
            }
            // A letter alone is a number that was forgotten.
            (Err(_), after) if words.len() == 1 && first.len() > 2 => (1, *first, after),
            _ => return Ok(None),
        };
        if matches!(unit, "ms" | "msec" | "millisecond" | "milliseconds") {
            return Err(MomentError::TooFine(text.to_owned()));
        }
        if let "month" | "months" | "year" | "years" | "quarter" | "quarters" = unit {
            return Err(MomentError::LengthVaries(unit.trim_end_matches('s').to_owned()));
        }
        let Some(seconds) = unit_seconds(unit) else { return Ok(None) };
        let far = || MomentError::TimeTooFar(text.to_owned());
        sum = count.checked_mul(seconds).and_then(|part| sum.checked_add(part)).ok_or_else(far)?;
        rest = after;
    }
    Ok((!words.is_empty()).then_some(sum))
}

/// By exact names: of "ms" without its last letter, minutes would be left.
fn unit_seconds(unit: &str) -> Option<u64> {
    let unit = match unit {
        "s" | "sec" | "secs" | "seconds" => "second",
        "m" | "min" | "mins" | "minutes" => "minute",
        "h" | "hr" | "hrs" | "hours" => "hour",
        "d" | "days" => "day",
        "w" | "weeks" => "week",
        unit => unit,
    };
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, seconds)| *seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-17 11:30:00.250 UTC.
    const NOW: TimestampMs = TimestampMs(1_794_915_000_250);

    #[test]
    fn moment_01_dates_and_words_become_exact() {
        for (text, seconds) in [
            ("1796115600", 1_796_115_600),
            ("2026-12-01 09:00 UTC", 1_796_115_600),
            ("2026-12-01 09:00:00 utc", 1_796_115_600),
            ("2026-12-01 at 09:00 UTC", 1_796_115_600),
            ("2026-12-01T09:00:00Z", 1_796_115_600),
            ("2026-12-01T09:00Z", 1_796_115_600),
            ("2026-12-01t09:00z", 1_796_115_600),
            ("2026-12-01T11:00:00+02:00", 1_796_115_600),
            ("2026-12-01 11:00 +02:00", 1_796_115_600),
            ("in 2 hours", 1_794_915_001 + 7_200),
            ("in 1 hour and 30 minutes", 1_794_915_001 + 5_400),
            ("In 90 seconds", 1_794_915_001 + 90),
            ("in a week", 1_794_915_001 + 604_800),
            ("in 2 d", 1_794_915_001 + 172_800),
            ("in 5 s", 1_794_915_001 + 5),
            ("in 5 m", 1_794_915_001 + 300),
            ("in 3 mins", 1_794_915_001 + 180),
            ("today at 12:00 UTC", 1_794_916_800),
            ("tomorrow at 09:00 UTC", 1_794_992_400),
            // There it is the 18th already.
            ("today at 09:00 +14:00", 1_794_942_000),
        ] {
            assert_eq!(parse_moment(text, NOW), Ok(TimestampMs(seconds * 1_000)), "{text}");
        }
        assert_eq!(parse_moment("2026-12-01T09:00:00.500Z", NOW), Ok(TimestampMs(1_796_115_600_500)));
    }

    #[test]
    fn moment_02_what_is_not_exact_is_refused_by_name() {
        for (text, name) in [
            ("", "TimeUnclear"),
            ("soon", "TimeUnclear"),
            ("in", "TimeUnclear"),
            ("in two hours", "TimeUnclear"),
            ("in s", "TimeUnclear"),
            ("in m", "TimeUnclear"),
            ("in h", "TimeUnclear"),
            ("in 5 ss", "TimeUnclear"),
            ("in 5 hs", "TimeUnclear"),
            ("in 5 ds", "TimeUnclear"),
            // Was read as 500 minutes.
            ("in 500 ms", "TooFine: \"500 ms\" counts milliseconds"),
            ("in 500 milliseconds", "TooFine"),
            ("in ms", "TimeUnclear"),
            ("in 2 fortnights", "TimeUnclear"),
            ("2026-13-01 09:00 UTC", "TimeUnclear"),
            ("2026-02-29 09:00 UTC", "TimeUnclear"),
            ("1960-01-01T00:00:00Z", "TimeUnclear"),
            ("-5", "TimeUnclear"),
            ("2026-12-01 09:00", "NoTimeZone"),
            ("2026-12-01 09:00 CET", "TimeUnclear"),
            ("tomorrow at 09:00", "NoTimeZone"),
            ("tomorrow at 25:00 UTC", "TimeUnclear"),
            ("2026-12-01", "NoTimeOfDay"),
            ("1796115600000", "LooksLikeMilliseconds"),
            ("in 2 months", "LengthVaries"),
            ("in 1 year", "LengthVaries"),
            ("in 99999999999999999 weeks", "TimeTooFar"),
            ("99999999999999999999", "TimeTooFar"),
        ] {
            let error = parse_moment(text, NOW).unwrap_err().to_string();
            assert!(error.starts_with(name), "{text}: {error}");
        }
    }
}
