//! One line of text for chats and mails: what somebody asks to be signed, and the answer. A checksum finds lines that were
//! cut off or changed on the way.

use super::{request::Request, terms::Terms};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::{Decodable, Encodable, RlpDecodable, RlpEncodable};
use almanac_primitives::{
    Chain, ScheduleId,
    transaction_body::{BodyCall, TransactionBody},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// Every line begins like this.
pub(super) const PREFIX: &str = "almanac:";
const REQUEST: &str = "almanac:sign:";
const ANSWER: &str = "almanac:signature:";
const CHECKSUM_BYTES: usize = 4;

/// Why a text is no line.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum LineError {
    #[error("LineBroken: the line is cut off, or was changed on its way: copy all of it, from {0:?} on")]
    Broken(&'static str),
    #[error("LineUnknown: the line was made by another version, or is none: it begins with {0:?} or {1:?}")]
    Unknown(&'static str, &'static str),
    #[error(
        "NotASignature: this line asks for a signature: sign it with `almanac schedule sign`, and pass the answer"
    )]
    IsRequest,
    #[error("NotARequest: this line is a signature: whoever asked for it passes it with --with")]
    IsAnswer,
}

/// A signature of a leaf.
#[derive(Clone, Debug, PartialEq, Eq, RlpEncodable, RlpDecodable)]
pub(super) struct Answer {
    pub(super) schedule: u64,
    /// The bytes of the leaf.
    pub(super) key: Bytes,
    pub(super) signature: Bytes,
    pub(super) deadline: u64,
}

#[derive(RlpEncodable, RlpDecodable)]
struct PackedRequest {
    chain_id: u64,
    genesis: B256,
    schedule: u64,
    deadline: u64,
    /// None: it is asked to delete the schedule.
    terms: Vec<PackedTerms>,
}

#[derive(RlpEncodable, RlpDecodable)]
struct PackedTerms {
    calls: Vec<PackedCall>,
    gas_limit: u64,
    max_fee_per_gas: U256,
    memo: String,
    nonce: u32,
    execution_time: u64,
    wait_for_expiry: bool,
    /// None or one.
    payer: Vec<Address>,
    admin_key: Bytes,
    round: u32,
}

#[derive(RlpEncodable, RlpDecodable)]
struct PackedCall {
    from: Address,
    to: Address,
    value: U256,
    data: Bytes,
}

pub(super) fn write_request(request: &Request) -> String {
    let terms = request.terms.iter().map(|Terms { body, payer, admin_key, round }| PackedTerms {
        calls: body
            .calls
            .iter()
            .cloned()
            .map(|BodyCall { from, to, value, data }| PackedCall { from, to, value, data })
            .collect(),
        gas_limit: body.gas_limit,
        max_fee_per_gas: body.max_fee_per_gas,
        memo: body.memo.clone(),
        nonce: body.nonce,
        execution_time: body.execution_time,
        wait_for_expiry: body.wait_for_expiry,
        payer: payer.iter().copied().collect(),
        admin_key: admin_key.clone(),
        round: *round,
    });
    let packed = PackedRequest {
        chain_id: request.chain.id,
        genesis: request.chain.genesis,
        schedule: request.schedule.0,
        deadline: request.deadline,
        terms: terms.collect(),
    };
    write(REQUEST, &packed)
}

pub(super) fn read_request(line: &str) -> Result<Request, LineError> {
    if line.starts_with(ANSWER) {
        return Err(LineError::IsAnswer);
    }
    let packed: PackedRequest = read(REQUEST, line)?;
    let terms = packed.terms.into_iter().next().map(|terms| Terms {
        body: TransactionBody {
            calls: terms
                .calls
                .into_iter()
                .map(|PackedCall { from, to, value, data }| BodyCall { from, to, value, data })
                .collect(),
            gas_limit: terms.gas_limit,
            max_fee_per_gas: terms.max_fee_per_gas,
            memo: terms.memo,
            nonce: terms.nonce,
            execution_time: terms.execution_time,
            wait_for_expiry: terms.wait_for_expiry,
        },
        payer: terms.payer.into_iter().next(),
        admin_key: terms.admin_key,
        round: terms.round,
    });
    let chain = Chain { id: packed.chain_id, genesis: packed.genesis };
    Ok(Request { chain, schedule: ScheduleId(packed.schedule), deadline: packed.deadline, terms })
}

pub(super) fn write_answer(answer: &Answer) -> String {
    write(ANSWER, answer)
}

pub(super) fn read_answer(line: &str) -> Result<Answer, LineError> {
    if line.starts_with(REQUEST) {
        return Err(LineError::IsRequest);
    }
    read(ANSWER, line)
}

fn write(prefix: &str, packed: &impl Encodable) -> String {
    let payload = alloy_rlp::encode(packed);
    let whole = [&checksum(prefix, &payload)[..], &payload].concat();
    format!("{prefix}{}", URL_SAFE_NO_PAD.encode(whole))
}

fn read<T: Decodable>(prefix: &'static str, line: &str) -> Result<T, LineError> {
    // Programs for mail and chat break long lines.
    let line: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    let text = line.strip_prefix(prefix).ok_or(LineError::Unknown(REQUEST, ANSWER))?;
    let broken = || LineError::Broken(prefix);
    let whole = URL_SAFE_NO_PAD.decode(text).map_err(|_| broken())?;
    let (sum, payload) = whole.split_first_chunk::<CHECKSUM_BYTES>().ok_or_else(broken)?;
    if *sum != checksum(prefix, payload) {
        return Err(broken());
    }
    alloy_rlp::decode_exact(payload).map_err(|_| LineError::Unknown(REQUEST, ANSWER))
}

fn checksum(prefix: &str, payload: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let hash = keccak256([prefix.as_bytes(), payload].concat());
    hash[..CHECKSUM_BYTES].try_into().expect("a hash is longer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::signed::request::tests::{deletion, payment};

    #[test]
    fn lines_carry_all_that_is_signed() {
        for request in [payment(), deletion()] {
            let line = write_request(&request);
            assert_eq!(read_request(&line).unwrap(), request);
            let broken: String = line.chars().flat_map(|c| [c, '\n']).collect();
            assert_eq!(read_request(&broken).unwrap(), request, "broken into lines");
        }
        // A payment fits into a message.
        assert!(write_request(&payment()).len() < 300, "{}", write_request(&payment()));
        let answer = Answer {
            schedule: 5,
            key: vec![1; 21].into(),
            signature: vec![2; 65].into(),
            deadline: 1_800_000_000,
        };
        assert_eq!(read_answer(&write_answer(&answer)), Ok(answer.clone()));
        assert_eq!(read_request(&write_answer(&answer)), Err(LineError::IsAnswer));
        assert_eq!(read_answer(&write_request(&deletion())), Err(LineError::IsRequest));
    }

    /// Every single change of a letter, and every cut, is found.
    #[test]
    fn changed_lines_are_refused() {
        let line = write_request(&deletion());
        for end in 0..line.len() {
            assert!(read_request(&line[..end]).is_err(), "cut at {end}");
        }
        for at in REQUEST.len()..line.len() {
            let mut changed = line.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(read_request(&changed).is_err(), "changed at {at}");
        }
    }
}
