//! Addresses as people write and paste them.

use alloy_primitives::Address;

/// Reads an address. One whose letters are of both cases has a checksum in them (EIP-55), which has to fit: otherwise a
/// digit is wrong, and what is sent there is lost.
pub(crate) fn parse_address(text: &str) -> Result<Address, String> {
    let address: Address = text.parse().map_err(|_| {
        format!("AddressUnclear: {text:?} is not an address: write 0x and 40 hexadecimal digits")
    })?;
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_mixed = digits.contains(|c: char| c.is_ascii_lowercase())
        && digits.contains(|c: char| c.is_ascii_uppercase());
    let checksummed = address.to_checksum(None);
    if is_mixed && checksummed.strip_prefix("0x") != Some(digits) {
        return Err(format!(
            "WrongChecksum: {text} has a wrong digit, or capitals in wrong places: copy it again, or write it in lower case if \
             you are sure"
        ));
    }
    Ok(address)
}

/// Checks every address in a text, such as a list of them.
pub(crate) fn check_addresses(text: &str) -> Result<(), String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_address = |word: &&str| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        digits.len() == 40 && digits.chars().all(|c| c.is_ascii_hexdigit())
    };
    words.filter(is_address).try_for_each(|word| parse_address(word).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOB: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

    #[test]
    fn an_address_with_a_wrong_digit_is_refused() {
        let bob: Address = BOB.to_lowercase().parse().unwrap();
        let upper = format!("0x{}", BOB[2..].to_uppercase());
        for good in [BOB, &BOB[2..], &BOB.to_lowercase(), &upper] {
            assert_eq!(parse_address(good), Ok(bob), "{good}");
        }
        for (bad, name) in [
            (BOB.replace("79C8", "79C7"), "WrongChecksum"),
            (BOB.replace("79C8", "79c8"), "WrongChecksum"),
            (BOB[..40].to_owned(), "AddressUnclear"),
            (format!("{BOB}00"), "AddressUnclear"),
            ("bob".to_owned(), "AddressUnclear"),
            (String::new(), "AddressUnclear"),
        ] {
            let error = parse_address(&bad).unwrap_err();
            assert!(error.starts_with(name), "{bad}: {error}");
        }
    }

    #[test]
    fn addresses_in_a_list_are_checked_each() {
        let wrong = BOB.replace("79C8", "79C7");
        assert_eq!(check_addresses(&format!("[{BOB},{BOB}]")), Ok(()));
        assert!(check_addresses(&format!("[{BOB}, ({wrong}, 5)]")).unwrap_err().contains(&wrong));
        assert!(check_addresses(&wrong[2..]).is_err());
        assert_eq!(check_addresses("5"), Ok(()));
    }
}
