//! Money, gas and time, each a type with only meaningful arithmetic.

use alloy_primitives::U256;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

/// An amount of money. One unit of the native coin is 10¹⁸ wei.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Wei(pub U256);

/// An amount of gas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Gas(pub u64);

/// Wei per gas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GasPrice(pub u128);

/// A moment: milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimestampMs(pub u64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationMs(pub u64);

impl Wei {
    /// No money.
    pub const ZERO: Self = Self(U256::ZERO);

    /// Sum, or `None` where it does not fit.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// Difference, or `None` where it would be negative.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }
}

impl<'de> Deserialize<'de> for Wei {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WeiVisitor)
    }
}

/// Reads an amount that a person wrote. `U256` alone would take an empty string for zero.
struct WeiVisitor;

impl de::Visitor<'_> for WeiVisitor {
    type Value = Wei;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of wei below 2^256, in quotes, decimal or 0x-hexadecimal")
    }

    fn visit_u64<E: de::Error>(self, amount: u64) -> Result<Wei, E> {
        Ok(Wei(U256::from(amount)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Wei, E> {
        let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
        let is_number = digits.starts_with(|first: char| first.is_digit(radix));
        is_number
            .then(|| U256::from_str_radix(digits, radix.into()).ok())
            .flatten()
            .map(Wei)
            .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

impl Gas {
    /// No gas.
    pub const ZERO: Self = Self(0);

    /// Sum, or `None` where it does not fit.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// Difference, or `None` where it would be negative.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// What this much gas costs. A u64 times a u128 always fits 256 bits.
    pub fn cost(self, price: GasPrice) -> Wei {
        Wei(U256::from(self.0) * U256::from(price.0))
    }
}

impl TimestampMs {
    /// The whole seconds of this moment, which is what `block.timestamp` shows.
    pub fn seconds(self) -> u64 {
        self.0 / 1_000
    }

    /// The first moment of a Unix second, or `None` beyond the range of milliseconds.
    pub fn from_seconds(seconds: u64) -> Option<Self> {
        seconds.checked_mul(1_000).map(Self)
    }

    /// This moment moved later, or `None` where it does not fit.
    pub fn checked_add(self, duration: DurationMs) -> Option<Self> {
        self.0.checked_add(duration.0).map(Self)
    }

    /// Time since an earlier moment, or `None` if that one is later.
    pub fn since(self, earlier: Self) -> Option<DurationMs> {
        self.0.checked_sub(earlier.0).map(DurationMs)
    }
}

impl fmt::Display for Wei {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} wei", self.0)
    }
}

impl fmt::Display for Gas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} gas", self.0)
    }
}

impl fmt::Display for GasPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} wei per gas", self.0)
    }
}

impl fmt::Display for TimestampMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

impl fmt::Display for DurationMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gas_cost_holds_at_the_extremes() {
        let most = Gas(u64::MAX).cost(GasPrice(u128::MAX));
        assert_eq!(most.0, U256::from(u64::MAX) * U256::from(u128::MAX));
        assert_eq!(Gas(0).cost(GasPrice(u128::MAX)), Wei::ZERO);
    }

    #[test]
    fn time_does_not_wrap() {
        assert_eq!(TimestampMs(u64::MAX).checked_add(DurationMs(1)), None);
        assert_eq!(TimestampMs(1).since(TimestampMs(2)), None);
        assert_eq!(TimestampMs(1_999).seconds(), 1);
        assert_eq!(TimestampMs::from_seconds(u64::MAX), None);
    }
}
