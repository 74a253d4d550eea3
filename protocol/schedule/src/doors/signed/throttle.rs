//! Token buckets, and the share of one caller (HEDERA-18).

use alloy_primitives::U256;
use almanac_primitives::TimestampMs;

/// Thousandths of a token in one.
const TOKEN: u64 = 1_000;

/// Too many operations: try again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// How much of an operation's rate is left. It fills up by its rate, to one second's worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    milli_tokens: u64,
    last: TimestampMs,
}

impl Bucket {
    /// Reads a slot as it is at a time. One that was never used is full.
    pub fn at(word: U256, now: TimestampMs, per_second: u64) -> Self {
        let [stored, last, ..] = word.into_limbs();
        let capacity = per_second.saturating_mul(TOKEN);
        // One thousandth per millisecond for each token per second.
        let refilled = now.0.saturating_sub(last).saturating_mul(per_second);
        let milli_tokens = if last == 0 { capacity } else { stored.saturating_add(refilled).min(capacity) };
        Self { milli_tokens, last: now }
    }

    /// Takes one token.
    pub fn take(self) -> Result<Self, Busy> {
        let milli_tokens = self.milli_tokens.checked_sub(TOKEN).ok_or(Busy)?;
        Ok(Self { milli_tokens, ..self })
    }

    /// Extra gas of an operation: nothing while half of the bucket is left, then `base` times what is gone of it to what
    /// is left, so that holding it empty is dear.
    pub fn surcharge(&self, base: u64, per_second: u64) -> u64 {
        let capacity = per_second.saturating_mul(TOKEN);
        if self.milli_tokens >= capacity / 2 {
            return 0;
        }
        base.saturating_mul(capacity) / self.milli_tokens.max(TOKEN)
    }

    /// The slot's value.
    pub fn to_word(self) -> U256 {
        U256::from_limbs([self.milli_tokens, self.last.0, 0, 0])
    }
}

/// What one caller has used of the current second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    second: u64,
    used: u64,
}

impl Share {
    /// Reads a slot as it is at a time.
    pub fn at(word: U256, now: TimestampMs) -> Self {
        let [used, second, ..] = word.into_limbs();
        let used = if second == now.seconds() { used } else { 0 };
        Self { second: now.seconds(), used }
    }

    /// Uses one of what is the caller's part of a rate: at least one.
    pub fn take(self, per_second: u64, percent: u64) -> Result<Self, Busy> {
        let allowed = (per_second.saturating_mul(percent) / 100).max(1);
        if self.used >= allowed {
            return Err(Busy);
        }
        Ok(Self { used: self.used + 1, ..self })
    }

    /// The slot's value.
    pub fn to_word(self) -> U256 {
        U256::from_limbs([self.used, self.second, 0, 0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(per_second: u64, now: u64) -> U256 {
        let mut word = U256::ZERO;
        for _ in 0..per_second {
            word = Bucket::at(word, TimestampMs(now), per_second).take().unwrap().to_word();
        }
        word
    }

    #[test]
    fn hedera_18_a_bucket_holds_one_second_and_fills_by_its_rate() {
        let word = drained(100, 5_000);
        let take = |now| Bucket::at(word, TimestampMs(now), 100).take();
        assert_eq!(take(5_000), Err(Busy));
        assert_eq!(take(5_009), Err(Busy), "a millisecond short of a token");
        assert!(take(5_010).is_ok());
        assert_eq!(
            Bucket::at(word, TimestampMs(9_999_999), 100).milli_tokens,
            100_000,
            "never more than a second's"
        );
    }

    #[test]
    fn hedera_18_the_price_rises_when_half_is_gone() {
        let bucket = |milli_tokens| Bucket { milli_tokens, last: TimestampMs(1) };
        let prices =
            [100_000, 50_000, 49_999, 10_000, 1_000, 999].map(|left| bucket(left).surcharge(20_000, 100));
        assert_eq!(prices, [0, 0, 40_000, 200_000, 2_000_000, 2_000_000]);
    }

    #[test]
    fn hedera_18_one_caller_has_a_part_of_each_second() {
        let mut share = Share::at(U256::ZERO, TimestampMs(7_000));
        for _ in 0..20 {
            share = share.take(100, 20).unwrap();
        }
        assert_eq!(share.take(100, 20), Err(Busy));
        assert!(Share::at(share.to_word(), TimestampMs(7_999)).take(100, 20).is_err());
        assert!(Share::at(share.to_word(), TimestampMs(8_000)).take(100, 20).is_ok());
        assert!(Share::at(U256::ZERO, TimestampMs(0)).take(1, 1).is_ok(), "everybody has one");
    }
}
