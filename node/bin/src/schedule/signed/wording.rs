//! What a transaction does, in plain words, for those who sign it.

use super::{key_words::key_words, terms::Terms};
use crate::{
    client::{
        call_words,
        output::Facts,
        words::{date, distance},
    },
    span::{coins, gwei},
};
use alloy_primitives::{Address, U256, hex};
use almanac_primitives::{TimestampMs, Wei, keys::KeyTree, params::SECOND_MS, transaction_body::BodyCall};

/// A second of the chain.
pub(super) fn second(second: u64) -> TimestampMs {
    TimestampMs(second.saturating_mul(SECOND_MS))
}

/// Adds all that is signed: calls, when it runs, what it costs, who deletes it.
pub(super) fn add_terms(facts: &mut Facts, terms: &Terms, creator: Option<Address>) {
    let body = &terms.body;
    for (index, call) in body.calls.iter().enumerate() {
        let name = if body.calls.len() == 1 { "call".to_owned() } else { format!("call {}", index + 1) };
        facts.add(&name, call_words(call));
    }
    if !body.memo.is_empty() {
        facts.add("memo", crate::client::node::text(&body.memo.as_str().into()));
    }
    facts.add(
        "runs",
        match body.wait_for_expiry {
            true => format!("at {}, if all have signed by then", date(second(body.execution_time))),
            false => "once, directly after the last signature".to_owned(),
        },
    );
    let price = U256::from(body.gas_limit).checked_mul(body.max_fee_per_gas);
    let price = price.map_or_else(|| "any price".to_owned(), |price| coins(Wei(price)));
    let payer = match (terms.payer, creator) {
        (Some(payer), _) => payer.to_string(),
        (None, Some(creator)) => format!("{creator}, who made it"),
        (None, None) => "who made it".to_owned(),
    };
    facts.add("gas", format!("{}, at most {price}, paid by {payer}", body.gas_limit));
    facts.add("waits", format!("while the base fee is above {} per gas", gwei(body.max_fee_per_gas)));
    facts.add("deletes it", admin_words(terms));
    if terms.round > 0 {
        facts.add("round", format!("{}: it was executed or deleted that often before", terms.round));
    }
}

/// Who may delete it.
pub(super) fn admin_words(terms: &Terms) -> String {
    match KeyTree::decode(&terms.admin_key) {
        _ if terms.admin_key.is_empty() => "nobody".to_owned(),
        Ok(key) => key_words(&key),
        Err(_) => hex::encode_prefixed(&terms.admin_key),
    }
}

/// "in 29 min", with the date.
pub(super) fn until(expires: u64, now: TimestampMs) -> String {
    format!("{} ({})", date(second(expires)), distance(second(expires), now))
}

/// One call: who pays or calls whom, with what.
pub(super) fn call_words(call: &BodyCall) -> String {
    format!("{} {}", call.from, call_words::call_words(call.to, call.value, &call.data))
}

/// The first of the calls, and how many follow: for tables.
pub(super) fn short_words(calls: &[BodyCall]) -> String {
    let first = calls.first().map(call_words).unwrap_or_default();
    match calls.len() {
        0 | 1 => first,
        count => format!("{first}, and {} more", count - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::call_data::call_data;
    use alloy_primitives::Bytes;

    #[test]
    fn calls_in_plain_words() {
        let (from, to) = (Address::repeat_byte(1), Address::repeat_byte(2));
        let call = |value: u64, data: Bytes| BodyCall { from, to, value: U256::from(value), data };
        let coin = 1_000_000_000_000_000_000;
        assert_eq!(call_words(&call(coin, Bytes::new())), format!("{from} pays 1 coins to {to}"));
        let paid = call_data("transfer(address,uint256)", &[to.to_string(), "5".to_owned()]).unwrap();
        assert_eq!(call_words(&call(0, paid.clone())), format!("{from} calls {to}: transfer({to}, 5)"));
        let unknown = call_words(&call(coin, Bytes::from_static(&[1, 2, 3, 4])));
        assert_eq!(unknown, format!("{from} calls {to} with 1 coins: data 0x01020304"));
        // Data that is more than the method's arguments is not told as if it were only those.
        let more: Bytes = [&paid[..], &[0; 32]].concat().into();
        assert!(call_words(&call(0, more.clone())).contains(&format!("data {more}")));
        let long = call_words(&call(0, vec![7; 257].into()));
        assert!(long.contains("257 bytes of data with the hash 0x"), "{long}");
        assert_eq!(
            short_words(&[call(coin, Bytes::new()), call(0, paid)]),
            format!("{from} pays 1 coins to {to}, and 1 more")
        );
    }
}
