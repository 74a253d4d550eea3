//! Amounts of money as people write them.

use crate::proof::parse_number;
use alloy_primitives::{U256, utils::parse_units};

/// Reads `1000` (wei), `0x3e8`, `5wei`, `3 gwei`, `0.01 coins` or `0.01ether`.
pub(crate) fn parse_amount(text: &str) -> Result<U256, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).filter(|_| !text.starts_with("0x"));
    let Some(unit_at) = unit_at else { return parse_number(text) };
    let (number, unit) = text.split_at(unit_at);
    let (number, unit) = (number.trim(), unit.trim());
    let malformed = || format!("AmountUnclear: {text:?} is no amount: write 1000 (wei), 3gwei or 0.01coins");
    let decimals = match unit {
        "wei" => "wei",
        "gwei" => "gwei",
        "coin" | "coins" | "eth" | "ether" => "ether",
        _ => return Err(malformed()),
    };
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.ends_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let fraction = number.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let places = match decimals {
        "wei" => 0,
        "gwei" => 9,
        _ => 18,
    };
    if fraction > places {
        return Err(format!("AmountUnclear: {text:?} has more than {places} digits behind the point"));
    }
    is_number
        .then(|| parse_units(number, decimals).ok())
        .flatten()
        .map(|units| units.get_absolute())
        .ok_or_else(malformed)
}

/// Reads a price per gas, written as an amount.
pub(crate) fn parse_price(text: &str) -> Result<u128, String> {
    let price = parse_amount(text)?;
    u128::try_from(price).map_err(|_| format!("PriceTooHigh: {text:?} per gas is above 2^128 wei"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_as_people_write_them() {
        for (text, wei) in [
            ("1000", 1_000u64),
            ("0x3e8", 1_000),
            ("5wei", 5),
            ("3gwei", 3_000_000_000),
            ("1.5 gwei", 1_500_000_000),
            ("0.01coins", 10_000_000_000_000_000),
            ("0.01 ether", 10_000_000_000_000_000),
            ("1 coin", 1_000_000_000_000_000_000),
            ("0.000000000000000001eth", 1),
        ] {
            assert_eq!(parse_amount(text), Ok(U256::from(wei)), "{text}");
            assert_eq!(parse_price(text), Ok(wei.into()), "{text}");
        }
        for bad in [
            "",
            "coins",
            "1.5",
            "1.5wei",
            "-1gwei",
            ".5gwei",
            "5.gwei",
            "1.2.3gwei",
            "1 usd",
            "1e18",
            "0.0000000000000000001eth",
        ] {
            assert!(parse_amount(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_price(&u128::MAX.to_string()), Ok(u128::MAX));
        assert!(parse_price("340282366920938463463374607431768211456").is_err());
    }
}
