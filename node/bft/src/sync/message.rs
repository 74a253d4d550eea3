//! The questions of a node that copies the state, and the answers of its peers, in encodings of fixed width.
//!
//! ```text
//! question   0, number (u64), kind, then
//!            tip 0 | operations 1, size, start, count (u64) | boundary 2, size, start (u64)
//!            keys 3, 0 | 1 key, limit (u32) | changed 4, height (u64), skip, limit (u32)
//! answer     1, number (u64), kind, then
//!            tip 0, header, certificate | operations 1, proof and operations | keys 2, count, keys
//!            refused 3, reason | busy 4, milliseconds (u32)
//! ```
//!
//! A list of keys that is shorter than its question's limit is the last one.

use alloy_primitives::Bytes;
use almanac_primitives::{
    Header, StateKey,
    codec::{DecodeError, Reader, Writer},
    params::STATE_VALUE_BYTES_MAX,
};
use almanac_state::{
    proof::key,
    qmdb::{
        serve::{ANSWER_BYTES_MAX, ANSWER_OPERATIONS_MAX},
        sync::{SyncRequest, SyncResponse},
    },
};
use commonware_codec::{Copying, Decode as _, Encode as _};
use commonware_storage::mmr::Location;
use std::{num::NonZeroU64, time::Duration};

/// Most keys in one answer.
pub const KEYS_MAX: usize = 4_096;

/// Largest question.
pub const QUESTION_BYTES_MAX: usize = 128;

/// Largest answer: a full one, or a single operation of the largest size with its proof.
pub const MESSAGE_BYTES_MAX: usize = ANSWER_BYTES_MAX + STATE_VALUE_BYTES_MAX + (64 << 10);

const HEADER_BYTES_MAX: usize = 1_024;
const CERTIFICATE_BYTES_MAX: usize = 64 << 10;
const REASON_BYTES_MAX: usize = 512;

const QUESTION: u8 = 0;
const ANSWER: u8 = 1;

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The newest final block whose state the peer has.
    Tip,
    /// Operations of a state.
    Operations(SyncRequest),
    /// Keys of values after this one, ascending by their bytes.
    Keys {
        /// The last known one.
        after: Option<StateKey>,
        /// Most keys to return. A peer returns [`KEYS_MAX`] at most.
        limit: u32,
    },
    /// Keys of the values that a block changed.
    Changed {
        /// Height of the block.
        height: u64,
        /// How many of them to skip.
        skip: u32,
        /// Most keys to return.
        limit: u32,
    },
}

/// An answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A block with its certificate.
    Tip {
        /// Its header.
        header: Box<Header>,
        /// Its certificate.
        certificate: Bytes,
    },
    /// Operations with their proof.
    Operations(Box<SyncResponse>),
    /// Keys of values.
    Keys(Vec<StateKey>),
    /// A refusal, with the reason.
    Refused(String),
    /// The peer has used up its share of answers for now.
    Busy {
        /// How long until it may ask again, in milliseconds.
        wait_ms: u32,
    },
}

/// Whether a message is a question.
pub(crate) fn is_question(message: &[u8]) -> bool {
    message.first() == Some(&QUESTION)
}

/// The answer to a question that has to wait. `None` if the question has no number.
pub(crate) fn busy(question: &[u8], wait: Duration) -> Option<Vec<u8>> {
    let number = read_number(question)?;
    let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
    Some(Answer::Busy { wait_ms }.encode(number))
}

/// The number of a question, or of the question that an answer belongs to.
pub(crate) fn read_number(message: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(message.get(1..9)?.try_into().ok()?))
}

impl Question {
    /// Encodes the question with its number.
    pub fn encode(&self, number: u64) -> Vec<u8> {
        let mut out = Writer::versioned(QUESTION, QUESTION_BYTES_MAX);
        out.u64(number);
        match self {
            Self::Tip => out.u8(0),
            Self::Operations(SyncRequest::Operations { size, start, max_ops }) => {
                out.u8(1);
                for value in [**size, **start, max_ops.get()] {
                    out.u64(value);
                }
            }
            Self::Operations(SyncRequest::Boundary { size, start }) => {
                out.u8(2);
                out.u64(**size);
                out.u64(**start);
            }
            Self::Keys { after, limit } => {
                out.u8(3);
                out.u8(after.is_some().into());
                if let Some(after) = after {
                    key::write(after, &mut out);
                }
                out.u32(*limit);
            }
            Self::Changed { height, skip, limit } => {
                out.u8(4);
                out.u64(*height);
                out.u32(*skip);
                out.u32(*limit);
            }
        }
        out.finish()
    }

    /// Decodes a question and its number.
    pub fn decode(bytes: &[u8]) -> Result<(u64, Self), DecodeError> {
        if bytes.len() > QUESTION_BYTES_MAX {
            let (given, max) = (bytes.len(), QUESTION_BYTES_MAX);
            return Err(DecodeError::TooLong { what: "question", given, max });
        }
        let mut input = Reader::versioned(bytes, "question", QUESTION)?;
        let number = input.u64("number")?;
        let question = match input.u8("kind of question")? {
            0 => Self::Tip,
            1 => {
                let (size, start) = range(&mut input)?;
                let max_ops = input.u64("count")?;
                let unknown = DecodeError::UnknownValue { what: "count", given: max_ops };
                Self::Operations(SyncRequest::Operations {
                    size,
                    start,
                    max_ops: NonZeroU64::new(max_ops).ok_or(unknown)?,
                })
            }
            2 => {
                let (size, start) = range(&mut input)?;
                Self::Operations(SyncRequest::Boundary { size, start })
            }
            3 => Self::Keys { after: optional_key(&mut input)?, limit: input.u32("limit")? },
            4 => Self::Changed {
                height: input.u64("height")?,
                skip: input.u32("skip")?,
                limit: input.u32("limit")?,
            },
            given => {
                return Err(DecodeError::UnknownValue { what: "kind of question", given: given.into() });
            }
        };
        input.finish("question")?;
        Ok((number, question))
    }
}

/// The size of a log and a position in it.
fn range(input: &mut Reader<'_>) -> Result<(Location, Location), DecodeError> {
    let (size, start) = (Location::new(input.u64("size")?), Location::new(input.u64("start")?));
    if !size.is_valid() || start >= size {
        return Err(DecodeError::UnknownValue { what: "start", given: *start });
    }
    Ok((size, start))
}

fn optional_key(input: &mut Reader<'_>) -> Result<Option<StateKey>, DecodeError> {
    match input.u8("key flag")? {
        0 => Ok(None),
        1 => key::read(input).map(Some),
        given => Err(DecodeError::UnknownValue { what: "key flag", given: given.into() }),
    }
}

impl Answer {
    /// Encodes the answer to the question with this number.
    pub fn encode(&self, number: u64) -> Vec<u8> {
        let mut out = Writer::versioned(ANSWER, 1_024);
        out.u64(number);
        match self {
            Self::Tip { header, certificate } => {
                out.u8(0);
                out.bytes(&header.encode());
                out.bytes(certificate);
            }
            Self::Operations(response) => {
                out.u8(1);
                out.bytes(&response.encode());
            }
            Self::Keys(keys) => {
                out.u8(2);
                out.count(keys.len());
                for name in keys {
                    key::write(name, &mut out);
                }
            }
            Self::Refused(reason) => {
                out.u8(3);
                out.bytes(&reason.as_bytes()[..reason.floor_char_boundary(REASON_BYTES_MAX)]);
            }
            Self::Busy { wait_ms } => {
                out.u8(4);
                out.u32(*wait_ms);
            }
        }
        out.finish()
    }

    /// Decodes an answer and the number of its question.
    pub fn decode(bytes: &[u8]) -> Result<(u64, Self), DecodeError> {
        let mut input = Reader::versioned(bytes, "answer", ANSWER)?;
        let number = input.u64("number")?;
        let answer = match input.u8("kind of answer")? {
            0 => {
                let header = Header::decode(&input.bytes("header", HEADER_BYTES_MAX)?)?;
                let certificate = input.bytes("certificate", CERTIFICATE_BYTES_MAX)?;
                Self::Tip { header: header.into(), certificate }
            }
            1 => Self::Operations(response(&input.bytes("operations", MESSAGE_BYTES_MAX)?)?.into()),
            2 => {
                let count = input.count("keys", KEYS_MAX)?;
                Self::Keys((0..count).map(|_| key::read(&mut input)).collect::<Result<_, _>>()?)
            }
            3 => {
                let reason = input.bytes("reason", REASON_BYTES_MAX)?;
                // Reject invalid UTF-8: a lossy conversion would give several encodings of one answer.
                let text = str::from_utf8(&reason)
                    .map_err(|_| DecodeError::UnknownValue { what: "reason", given: 3 })?;
                Self::Refused(text.to_owned())
            }
            4 => Self::Busy { wait_ms: input.u32("wait")? },
            given => return Err(DecodeError::UnknownValue { what: "kind of answer", given: given.into() }),
        };
        input.finish("answer")?;
        Ok((number, answer))
    }
}

fn response(bytes: &[u8]) -> Result<SyncResponse, DecodeError> {
    let count = usize::try_from(ANSWER_OPERATIONS_MAX.get()).expect("a small number");
    SyncResponse::decode_cfg(Copying(bytes), &(count, ((), ())))
        .map_err(|_| DecodeError::UnknownValue { what: "operations", given: 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::Address;

    fn questions() -> Vec<Question> {
        let (size, start) = (Location::new(9), Location::new(8));
        let key = StateKey::Account(Address::repeat_byte(7));
        vec![
            Question::Tip,
            Question::Operations(SyncRequest::Operations { size, start, max_ops: ANSWER_OPERATIONS_MAX }),
            Question::Operations(SyncRequest::Boundary { size, start }),
            Question::Keys { after: None, limit: 3 },
            Question::Keys { after: Some(key), limit: 4 },
            Question::Changed { height: 5, skip: 6, limit: 7 },
        ]
    }

    #[test]
    fn one_question_has_one_encoding() {
        for question in questions() {
            let whole = question.encode(7);
            assert!(is_question(&whole));
            assert_eq!(Question::decode(&whole), Ok((7, question)));
            assert!(whole.len() <= QUESTION_BYTES_MAX);
            for length in 0..whole.len() {
                assert!(Question::decode(&whole[..length]).is_err(), "{question:?}: {length} bytes");
            }
            assert!(Question::decode(&[&whole[..], &[0]].concat()).is_err(), "{question:?}");
            assert!(Answer::decode(&whole).is_err(), "a question is no answer");
        }
    }

    /// Found by fuzzing: invalid UTF-8 was replaced, and the text grew.
    #[test]
    fn a_reason_is_text() {
        let whole = Answer::Refused("é".to_owned()).encode(7);
        assert!(matches!(Answer::decode(&whole), Ok((7, Answer::Refused(reason))) if reason == "é"));
        let broken = Answer::decode(&[&whole[..whole.len() - 1], &[0xc5]].concat());
        assert!(matches!(broken, Err(DecodeError::UnknownValue { what: "reason", .. })), "{broken:?}");
    }

    #[test]
    fn questions_that_make_no_sense_are_refused() {
        let asked = |size: u64, start: u64, count: u64| {
            let numbers = [7, size, start, count].map(u64::to_be_bytes);
            let [number, rest @ ..] = &numbers;
            Question::decode(&[&[QUESTION][..], number, &[1], &rest.concat()].concat())
        };
        assert!(asked(9, 8, 1).is_ok());
        assert!(asked(9, 9, 1).is_err(), "nothing behind the end");
        assert!(asked(9, 8, 0).is_err(), "nothing at all");
        assert!(asked(u64::MAX, 8, 1).is_err(), "longer than any log");
        let (given, max) = (QUESTION_BYTES_MAX + 1, QUESTION_BYTES_MAX);
        let too_long = DecodeError::TooLong { what: "question", given, max };
        assert_eq!(Question::decode(&vec![0; given]), Err(too_long));
    }

    #[test]
    fn answers_are_read_back_and_cut_ones_refused() {
        let header = Header { number: 3, ..Header::default() };
        let keys = vec![StateKey::Calendar(1), StateKey::Account(Address::ZERO)];
        let answers = [
            Answer::Tip { header: header.into(), certificate: Bytes::from_static(b"signed") },
            Answer::Keys(keys),
            Answer::Keys(Vec::new()),
            Answer::Refused("no".to_owned()),
            Answer::Busy { wait_ms: 250 },
        ];
        for answer in answers {
            let whole = answer.encode(9);
            assert!(!is_question(&whole));
            let (number, read) = Answer::decode(&whole).unwrap();
            assert_eq!((number, format!("{read:?}")), (9, format!("{answer:?}")));
            for length in 0..whole.len() {
                assert!(Answer::decode(&whole[..length]).is_err(), "{answer:?}: {length} bytes");
            }
            assert!(Answer::decode(&[&whole[..], &[0]].concat()).is_err());
        }
    }

    #[test]
    fn both_sides_of_the_number_of_keys() {
        let keys = |count| Answer::Keys(vec![StateKey::Calendar(1); count]).encode(1);
        assert!(Answer::decode(&keys(KEYS_MAX)).is_ok());
        assert!(keys(KEYS_MAX).len() < MESSAGE_BYTES_MAX);
        assert!(Answer::decode(&keys(KEYS_MAX + 1)).is_err());
    }

    #[test]
    fn a_question_that_has_to_wait_is_answered_with_its_number() {
        for question in questions() {
            let answer = busy(&question.encode(77), Duration::from_millis(1_500)).unwrap();
            let (number, answer) = Answer::decode(&answer).unwrap();
            assert!(matches!((number, answer), (77, Answer::Busy { wait_ms: 1_500 })));
        }
        assert_eq!(busy(&[QUESTION; 8], Duration::ZERO), None, "no number");
        assert!(busy(&[QUESTION; 9], Duration::MAX).is_some());
    }

    #[test]
    fn a_long_reason_is_cut_between_letters() {
        let reason = "é".repeat(REASON_BYTES_MAX);
        let (_, answer) = Answer::decode(&Answer::Refused(reason).encode(1)).unwrap();
        let Answer::Refused(read) = answer else { panic!("{answer:?}") };
        assert_eq!(read, "é".repeat(REASON_BYTES_MAX / 2));
    }
}
