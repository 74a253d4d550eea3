//! Requests that clients repeat by themselves.
//!
//! Clients repeat a request that timed out or that was answered with "limit exceeded". Moving the clock and mining are
//! not idempotent, so a repetition would add the whole span again. The sequencer therefore remembers the last such
//! request if its client got no answer, or an answer that asks for more time: the same request again continues it, or
//! gets the answer that was lost. Any other request is a new one and ends that.

use super::{
    BlockId,
    controls::{Destination, Mining, Travel},
};
use almanac_primitives::{DurationMs, TimestampMs};

/// How long the same request counts as a repetition, in the machine's time: clients that repeat do so within seconds.
const REPEATED_WITHIN: DurationMs = DurationMs(60_000);

/// A request whose client does not know yet that it was carried out.
#[derive(Clone, Debug)]
pub(super) struct Unanswered {
    request: Request,
    /// The machine's time when it ended.
    at: TimestampMs,
}

#[derive(Clone, Debug)]
enum Request {
    /// A move to `target` that stopped on the way.
    Unfinished { to: Destination, journey: Journey },
    /// A move whose answer was not delivered.
    Travelled { to: Destination, travel: Travel },
    /// Blocks whose answer was not delivered.
    Mined { mining: Mining, last: BlockId },
}

/// A move of the clock: from where, to where, and the offset that the clock had there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Journey {
    pub(super) start: TimestampMs,
    pub(super) target: TimestampMs,
    pub(super) offset_ms: i64,
}

/// What a repetition is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Repeated<T> {
    /// The request goes on.
    GoOn(Journey),
    /// It was carried out.
    Done(T),
}

impl Unanswered {
    pub(super) fn unfinished(to: Destination, journey: Journey, at: TimestampMs) -> Self {
        Self { request: Request::Unfinished { to, journey }, at }
    }

    pub(super) fn travelled(to: Destination, travel: Travel, at: TimestampMs) -> Self {
        Self { request: Request::Travelled { to, travel }, at }
    }

    pub(super) fn mined(mining: Mining, last: BlockId, at: TimestampMs) -> Self {
        Self { request: Request::Mined { mining, last }, at }
    }

    /// Whether a move of the clock repeats this request.
    pub(super) fn by_travel(self, asked: Destination, now: TimestampMs) -> Option<Repeated<Travel>> {
        let is_recent = self.is_recent(now);
        match self.request {
            Request::Unfinished { to, journey } if is_recent && to == asked => Some(Repeated::GoOn(journey)),
            Request::Travelled { to, travel } if is_recent && to == asked => Some(Repeated::Done(travel)),
            _ => None,
        }
    }

    /// Whether mining repeats this request.
    pub(super) fn by_mining(self, asked: Mining, now: TimestampMs) -> Option<BlockId> {
        let is_recent = self.is_recent(now);
        match self.request {
            Request::Mined { mining, last } if is_recent && mining == asked => Some(last),
            _ => None,
        }
    }

    fn is_recent(&self, now: TimestampMs) -> bool {
        now.since(self.at).is_none_or(|age| age <= REPEATED_WITHIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Destination = Destination::After(DurationMs(86_400_000));
    const JOURNEY: Journey = Journey { start: TimestampMs(1), target: TimestampMs(2), offset_ms: 3 };

    #[test]
    fn only_the_same_request_soon_after_is_a_repetition() {
        let unfinished = Unanswered::unfinished(DAY, JOURNEY, TimestampMs(1_000));
        let asked = |to, now| unfinished.clone().by_travel(to, TimestampMs(now));
        assert_eq!(asked(DAY, 61_000), Some(Repeated::GoOn(JOURNEY)));
        assert_eq!(asked(DAY, 61_001), None);
        assert_eq!(asked(Destination::After(DurationMs(86_400_001)), 1_000), None);
        assert_eq!(asked(Destination::At(TimestampMs(86_400_000)), 1_000), None);
        let mining = Mining { count: 5, interval: None, is_led: false };
        assert_eq!(unfinished.by_mining(mining, TimestampMs(1_000)), None);

        let last = BlockId { number: 5, hash: Default::default() };
        let mined = Unanswered::mined(mining, last, TimestampMs(1_000));
        assert_eq!(mined.clone().by_mining(mining, TimestampMs(2_000)), Some(last));
        assert_eq!(mined.clone().by_mining(Mining { count: 6, ..mining }, TimestampMs(2_000)), None);
        assert_eq!(mined.by_travel(DAY, TimestampMs(2_000)), None);
    }
}
