//! `grpc-timeout`: how long a client is willing to wait.

use crate::limits::REQUEST_TIME_MAX;
use http::HeaderMap;
use std::time::Duration;
use tonic::Status;

/// How long a request may take: what the client says, and no longer than the node's own limit.
pub(crate) fn of(headers: &HeaderMap) -> Result<Duration, Status> {
    let Some(given) = headers.get("grpc-timeout") else { return Ok(REQUEST_TIME_MAX) };
    let read = given.to_str().ok().and_then(read);
    let malformed = || {
        let form = "up to eight digits and one of H M S m u n";
        Status::invalid_argument(format!("grpc-timeout {given:?} is not a time: expected {form}"))
    };
    read.map(|time| time.min(REQUEST_TIME_MAX)).ok_or_else(malformed)
}

fn read(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = (1..=8).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| is_number)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_the_protocol_writes_them() {
        for (text, expected) in [
            ("1S", Some(Duration::from_secs(1))),
            ("0m", Some(Duration::ZERO)),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3_600))),
            ("5M", Some(Duration::from_secs(300))),
            ("7u", Some(Duration::from_micros(7))),
            ("7n", Some(Duration::from_nanos(7))),
            ("100000000S", None),
            ("S", None),
            ("", None),
            ("1s", None),
            ("+1S", None),
            ("1 S", None),
            ("1Sé", None),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
        let mut headers = HeaderMap::new();
        assert_eq!(of(&headers).unwrap(), REQUEST_TIME_MAX);
        headers.insert("grpc-timeout", "99H".parse().unwrap());
        assert_eq!(of(&headers).unwrap(), REQUEST_TIME_MAX, "never longer than the node's own");
        headers.insert("grpc-timeout", "2S".parse().unwrap());
        assert_eq!(of(&headers).unwrap(), Duration::from_secs(2));
        headers.insert("grpc-timeout", "soon".parse().unwrap());
        assert!(of(&headers).unwrap_err().message().contains("soon"));
    }
}
