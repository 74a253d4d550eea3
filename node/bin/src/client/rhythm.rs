//! Rhythms as people write them ("30 days, 12 times", "month on the 1st at 09:00 UTC"), made exact.
//!
//! The chain repeats after a fixed number of seconds. Months have no fixed length, so a monthly rhythm becomes a list
//! of dates, each of which is a schedule of its own.

use super::moment::{MomentError, from_local, local, parse_clock, parse_moment, parse_span};
use almanac_primitives::{TimestampMs, native::CALLS_MAX, params::SECOND_MS};
use chrono::{Datelike as _, Days, FixedOffset, Months, NaiveDate, NaiveTime, Weekday};

const DAY_SECONDS: u64 = 86_400;
const WEEK_SECONDS: u64 = 7 * DAY_SECONDS;

/// Why a text is no rhythm that the chain can keep exactly.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum RhythmError {
    #[error(
        "RhythmUnclear: {0:?} is no rhythm: write \"30 days, 12 times\", \"day at 09:00 UTC\", \"monday at 09:00 UTC\" or \"month on the 1st at 09:00 UTC, 12 times\""
    )]
    RhythmUnclear(String),
    #[error("NoTimeOfDay: {0:?} names a day but no time: add one, such as \"{0} at 09:00 UTC\"")]
    NoTimeOfDay(String),
    #[error(
        "NoDayOfMonth: months differ in length, so name the day, such as \"month on the 1st at 09:00 UTC\""
    )]
    NoDayOfMonth,
    #[error("DayNotInEveryMonth: not every month has a day {0}: use 1 to 28, or \"the last day\"")]
    DayNotInEveryMonth(u32),
    #[error(
        "NoEnd: this becomes one schedule for each run, so it needs an end: add \", 12 times\", at most {CALLS_MAX}"
    )]
    NoEnd,
    #[error("TooManyDates: {given} schedules do not fit one transaction: at most {CALLS_MAX}")]
    TooManyDates { given: u64 },
    #[error("NoRuns: 0 times is never: leave it out to run until the escrow is empty")]
    NoRuns,
    #[error(transparent)]
    Moment(#[from] MomentError),
    #[error("TimeTooFar: {0:?} leads beyond the dates that can be counted")]
    TimeTooFar(String),
}

/// When something runs, exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// One run.
    Once(TimestampMs),
    /// Runs with a fixed distance; without `times` as many as the escrow pays for.
    Series { first: TimestampMs, interval_seconds: u64, times: Option<u64> },
    /// Runs at dates that have no fixed distance.
    Dates(Vec<TimestampMs>),
}

impl Plan {
    pub(crate) fn first(&self) -> TimestampMs {
        match self {
            Self::Once(at) | Self::Series { first: at, .. } => *at,
            Self::Dates(dates) => dates[0],
        }
    }

    /// How many runs there are, if that is known.
    pub(crate) fn count(&self) -> Option<u64> {
        match self {
            Self::Once(_) => Some(1),
            Self::Series { times, .. } => *times,
            Self::Dates(dates) => Some(dates.len() as u64),
        }
    }

    /// The run with this number, from 0.
    pub(crate) fn nth(&self, n: u64) -> Option<TimestampMs> {
        if self.count().is_some_and(|count| n >= count) {
            return None;
        }
        match self {
            Self::Once(at) => Some(*at),
            Self::Series { first, interval_seconds, .. } => {
                let after = interval_seconds.checked_mul(SECOND_MS)?.checked_mul(n)?;
                first.0.checked_add(after).map(TimestampMs)
            }
            Self::Dates(dates) => dates.get(usize::try_from(n).ok()?).copied(),
        }
    }

    /// Every run as a date, for doors that repeat nothing.
    pub(crate) fn into_dates(self) -> Result<Vec<TimestampMs>, RhythmError> {
        let given = self.count().ok_or(RhythmError::NoEnd)?;
        if given > CALLS_MAX as u64 {
            return Err(RhythmError::TooManyDates { given });
        }
        Ok((0..given).filter_map(|n| self.nth(n)).collect())
    }
}

/// Reads a rhythm. `start` is the earliest first run; without it, the rhythm begins after `now`.
pub(crate) fn parse_rhythm(
    text: &str,
    start: Option<TimestampMs>,
    now: TimestampMs,
) -> Result<Plan, RhythmError> {
    let lower = text.trim().to_ascii_lowercase();
    let beat = lower.strip_prefix("every ").unwrap_or(&lower);
    let (beat, begins) = take_start(beat);
    let (beat, mut times) = take_times(beat)?;
    let mut start = start;
    if let Some(begins) = begins {
        // People say how often before the start, or after it.
        let (begins, after) = take_times(begins)?;
        if times.is_some() && after.is_some() {
            return Err(RhythmError::RhythmUnclear(text.to_owned()));
        }
        times = times.or(after);
        start = Some(parse_moment(begins.trim_end_matches([',', ' ']), now)?);
    }
    let beat = Beat::parse(beat.trim_end_matches([',', ' ']))?;
    beat.plan(times, start, now).map_err(|error| match error {
        RhythmError::TimeTooFar(_) => RhythmError::TimeTooFar(text.to_owned()),
        error => error,
    })
}

/// Splits "…, starting in 2 hours".
fn take_start(text: &str) -> (&str, Option<&str>) {
    let split = [" starting ", " from "].iter().find_map(|word| text.split_once(word));
    split.map_or((text, None), |(beat, start)| (beat, Some(start)))
}

/// Splits "…, 12 times".
fn take_times(text: &str) -> Result<(&str, Option<u64>), RhythmError> {
    let text = text.trim_end_matches([',', ' ']);
    let Some(rest) = text.strip_suffix("times").or_else(|| text.strip_suffix("time")) else {
        return Ok((text, None));
    };
    let rest = rest.trim_end();
    let (beat, count) = rest.rsplit_once([' ', ',']).unwrap_or(("", rest));
    match count.parse() {
        Ok(0) => Err(RhythmError::NoRuns),
        Ok(count) => Ok((beat, Some(count))),
        Err(_) => Err(RhythmError::RhythmUnclear(text.to_owned())),
    }
}

/// What repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beat {
    Interval {
        seconds: u64,
    },
    /// Every so many days at a time of the day.
    Daily {
        days: u64,
        clock: Clock,
    },
    Weekly {
        weekday: Weekday,
        clock: Clock,
    },
    Monthly {
        months: u32,
        day: Day,
        clock: Clock,
    },
}

type Clock = (NaiveTime, FixedOffset);

/// A day that every month has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Day {
    Nth(u32),
    Last,
}

impl Beat {
    fn parse(text: &str) -> Result<Self, RhythmError> {
        let unclear = || RhythmError::RhythmUnclear(text.to_owned());
        let (days, clock) = match text.split_once(" at ") {
            Some((days, clock)) => (days.trim(), Some(parse_clock(clock.trim())?)),
            None => (text, None),
        };
        let timed = |clock: Option<Clock>| clock.ok_or_else(|| RhythmError::NoTimeOfDay(days.to_owned()));
        let (unit, on) = match days.split_once(" on ") {
            Some((unit, on)) => (unit.trim(), Some(on.trim())),
            None => (days, None),
        };
        if let (Some(months), on) = (parse_months(unit), on) {
            let day = parse_day(on.ok_or(RhythmError::NoDayOfMonth)?)?;
            return Ok(Self::Monthly { months, day, clock: timed(clock)? });
        }
        let weekday = match (unit, on) {
            ("week", Some(day)) => Some(day.trim_end_matches('s').parse().map_err(|_| unclear())?),
            (day, None) => day.trim_end_matches('s').parse().ok(),
            _ => return Err(unclear()),
        };
        if let Some(weekday) = weekday {
            return Ok(Self::Weekly { weekday, clock: timed(clock)? });
        }
        let seconds = parse_span(unit)?.filter(|seconds| *seconds > 0).ok_or_else(unclear)?;
        match clock {
            None => Ok(Self::Interval { seconds }),
            Some(clock) if seconds.is_multiple_of(DAY_SECONDS) => {
                Ok(Self::Daily { days: seconds / DAY_SECONDS, clock })
            }
            Some(_) => Err(unclear()),
        }
    }

    fn plan(
        self,
        times: Option<u64>,
        start: Option<TimestampMs>,
        now: TimestampMs,
    ) -> Result<Plan, RhythmError> {
        // Whole seconds, and strictly after now.
        let soonest = TimestampMs((now.0 / SECOND_MS + 1) * SECOND_MS);
        let from = start.unwrap_or(soonest).max(soonest);
        let far = || RhythmError::TimeTooFar(String::new());
        match self {
            Self::Interval { seconds } => {
                let ms = seconds.checked_mul(SECOND_MS).ok_or_else(far)?;
                let default =
                    now.0.div_ceil(SECOND_MS).checked_mul(SECOND_MS).and_then(|now| now.checked_add(ms));
                let first = start.map_or_else(|| default.map(TimestampMs).ok_or_else(far), Ok)?;
                Ok(Plan::Series { first, interval_seconds: seconds, times })
            }
            Self::Daily { days, clock } => {
                let first = next_day(from, clock, |_| true).ok_or_else(far)?;
                Ok(Plan::Series { first, interval_seconds: days * DAY_SECONDS, times })
            }
            Self::Weekly { weekday, clock } => {
                let first = next_day(from, clock, |day| day.weekday() == weekday).ok_or_else(far)?;
                Ok(Plan::Series { first, interval_seconds: WEEK_SECONDS, times })
            }
            Self::Monthly { months, day, clock } => {
                let given = times.ok_or(RhythmError::NoEnd)?;
                if given > CALLS_MAX as u64 {
                    return Err(RhythmError::TooManyDates { given });
                }
                let count = u32::try_from(given).expect("at most 64");
                Ok(Plan::Dates(month_dates(from, clock, day, months, count).ok_or_else(far)?))
            }
        }
    }
}

/// "month", "3 months".
fn parse_months(text: &str) -> Option<u32> {
    match text.split_once(' ') {
        None if text == "month" => Some(1),
        Some((count, "months" | "month")) => count.parse().ok().filter(|count| (1..=120).contains(count)),
        _ => None,
    }
}

/// "the 1st", "1", "the last day".
fn parse_day(text: &str) -> Result<Day, RhythmError> {
    let text = text.strip_prefix("the ").unwrap_or(text);
    let text = text.strip_suffix(" day").unwrap_or(text);
    if text == "last" {
        return Ok(Day::Last);
    }
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| text.strip_suffix(end)).unwrap_or(text);
    match digits.parse() {
        Ok(day @ 1..=28) => Ok(Day::Nth(day)),
        Ok(day @ 29..=31) => Err(RhythmError::DayNotInEveryMonth(day)),
        _ => Err(RhythmError::RhythmUnclear(text.to_owned())),
    }
}

/// The first suitable day, at its time, that is not before `from`.
fn next_day(
    from: TimestampMs,
    (time, offset): Clock,
    suits: impl Fn(NaiveDate) -> bool,
) -> Option<TimestampMs> {
    let today = local(from, offset)?.date();
    let days = (0..=7).filter_map(|days| today.checked_add_days(Days::new(days)));
    let moments = days.filter(|day| suits(*day)).filter_map(|day| from_local(day.and_time(time), offset));
    moments.into_iter().find(|moment| *moment >= from)
}

fn month_dates(
    from: TimestampMs,
    (time, offset): Clock,
    day: Day,
    step: u32,
    count: u32,
) -> Option<Vec<TimestampMs>> {
    let month = local(from, offset)?.date().with_day(1)?;
    let in_month = |months: u32| {
        let month = month.checked_add_months(Months::new(months))?;
        let date = match day {
            Day::Nth(day) => month.with_day(day)?,
            Day::Last => month.checked_add_months(Months::new(1))?.pred_opt()?,
        };
        from_local(date.and_time(time), offset)
    };
    let skipped = u32::from(in_month(0)? < from);
    (0..count).map(|n| in_month(n.checked_mul(step)?.checked_add(skipped)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::words::date;

    /// 2026-11-17 11:30:00.250 UTC, a Tuesday.
    const NOW: TimestampMs = TimestampMs(1_794_915_000_250);

    fn plan(text: &str) -> Result<Plan, RhythmError> {
        parse_rhythm(text, None, NOW)
    }

    #[test]
    fn rhythm_01_fixed_distances_are_one_series() {
        for (text, first, interval, times) in [
            ("30 days, 12 times", "2026-12-17 11:30:01 UTC", 30 * DAY_SECONDS, Some(12)),
            ("every 30 days 12 times", "2026-12-17 11:30:01 UTC", 30 * DAY_SECONDS, Some(12)),
            ("hour", "2026-11-17 12:30:01 UTC", 3_600, None),
            ("1 hour and 30 minutes", "2026-11-17 13:00:01 UTC", 5_400, None),
            ("day at 09:00 UTC", "2026-11-18 09:00 UTC", DAY_SECONDS, None),
            ("every day at 12:00 UTC, 3 times", "2026-11-17 12:00 UTC", DAY_SECONDS, Some(3)),
            ("2 days at 12:00 UTC", "2026-11-17 12:00 UTC", 2 * DAY_SECONDS, None),
            ("monday at 09:00 UTC", "2026-11-23 09:00 UTC", WEEK_SECONDS, None),
            ("week on tuesday at 11:00 UTC", "2026-11-24 11:00 UTC", WEEK_SECONDS, None),
            ("week on tue at 12:00 UTC", "2026-11-17 12:00 UTC", WEEK_SECONDS, None),
            ("10 minutes, 2 times, starting in 2 hours", "2026-11-17 13:30:01 UTC", 600, Some(2)),
            ("10 minutes from 2026-12-01 09:00 UTC", "2026-12-01 09:00 UTC", 600, None),
            ("10 minutes from 2026-12-01 09:00 UTC, 3 times", "2026-12-01 09:00 UTC", 600, Some(3)),
            ("hour, starting 2026-12-01T09:00Z", "2026-12-01 09:00 UTC", 3_600, None),
            ("hour, starting 2026-12-01T09:00:00Z 2 times", "2026-12-01 09:00 UTC", 3_600, Some(2)),
            ("day at 09:00 UTC starting 2026-12-24 10:00 UTC", "2026-12-25 09:00 UTC", DAY_SECONDS, None),
        ] {
            let Ok(Plan::Series { first: shown, interval_seconds, times: count }) = plan(text) else {
                panic!("{text}: {:?}", plan(text))
            };
            assert_eq!((date(shown).as_str(), interval_seconds, count), (first, interval, times), "{text}");
        }
    }

    #[test]
    fn rhythm_02_months_are_dates() {
        let dates = |text: &str| match plan(text) {
            Ok(Plan::Dates(dates)) => dates.into_iter().map(date).collect::<Vec<_>>(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(
            dates("every month on the 1st at 09:00 UTC, 3 times"),
            ["2026-12-01 09:00 UTC", "2027-01-01 09:00 UTC", "2027-02-01 09:00 UTC"]
        );
        assert_eq!(
            dates("month on the last day at 09:00 UTC, 4 times"),
            ["2026-11-30 09:00 UTC", "2026-12-31 09:00 UTC", "2027-01-31 09:00 UTC", "2027-02-28 09:00 UTC"]
        );
        assert_eq!(
            dates("3 months on the 17th at 12:00 UTC, 2 times"),
            ["2026-11-17 12:00 UTC", "2027-02-17 12:00 UTC"]
        );
        assert_eq!(dates("month on the 17th at 11:00 UTC, 1 time"), ["2026-12-17 11:00 UTC"]);
    }

    #[test]
    fn rhythm_03_what_the_chain_cannot_do_exactly_is_refused_by_name() {
        for (text, name) in [
            ("", "RhythmUnclear"),
            ("often", "RhythmUnclear"),
            ("0 days", "RhythmUnclear"),
            ("hour at 09:00 UTC", "RhythmUnclear"),
            ("week on someday at 09:00 UTC", "RhythmUnclear"),
            ("day, many times", "RhythmUnclear"),
            ("day, 2 times, starting in 2 hours, 3 times", "RhythmUnclear"),
            ("monday", "NoTimeOfDay"),
            ("month on the 1st, 3 times", "NoTimeOfDay"),
            ("day at 09:00", "NoTimeZone"),
            ("month", "NoDayOfMonth"),
            ("month at 09:00 UTC", "NoDayOfMonth"),
            ("month on the 31st at 09:00 UTC, 3 times", "DayNotInEveryMonth"),
            ("month on the 1st at 09:00 UTC", "NoEnd"),
            ("month on the 1st at 09:00 UTC, 65 times", "TooManyDates: 65"),
            ("day, 0 times", "NoRuns"),
            ("year", "LengthVaries"),
            ("day, starting soon", "TimeUnclear"),
        ] {
            let error = plan(text).unwrap_err().to_string();
            assert!(error.starts_with(name), "{text}: {error}");
        }
        assert!(
            matches!(plan("month on the 1st at 09:00 UTC, 64 times"), Ok(Plan::Dates(dates)) if dates.len() == 64)
        );
    }

    #[test]
    fn rhythm_04_a_series_is_expanded_for_doors_that_repeat_nothing() {
        let dates = plan("day at 09:00 UTC, 3 times").unwrap().into_dates().unwrap();
        let shown: Vec<String> = dates.into_iter().map(date).collect();
        assert_eq!(shown, ["2026-11-18 09:00 UTC", "2026-11-19 09:00 UTC", "2026-11-20 09:00 UTC"]);
        assert_eq!(plan("day at 09:00 UTC").unwrap().into_dates(), Err(RhythmError::NoEnd));
        assert_eq!(
            plan("hour, 65 times").unwrap().into_dates(),
            Err(RhythmError::TooManyDates { given: 65 })
        );
    }
}
