//! The immutable part of a record: owner, calls and terms.

use super::Trigger;
use crate::doors::{Door, Terms};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    Gas, Wei,
    codec::{DecodeError, Reader, Writer},
    params::RUN_INPUT_BYTES_MAX,
};

const VERSION: u8 = 2;

/// The part of a record that is fixed at creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Who may cancel it.
    pub owner: Address,
    /// Who gets its refunds.
    pub refund_to: Address,
    /// Gas that a run may use, intrinsic gas included.
    pub gas_limit: Gas,
    /// What triggers a run.
    pub trigger: Trigger,
    /// The terms of its door.
    pub terms: Terms,
    /// What a run calls, in order. At least one, and no more than the terms allow.
    pub calls: Vec<Call>,
}

/// One call of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `msg.sender` and `tx.origin`.
    pub from: Address,
    /// The contract that is called.
    pub to: Address,
    /// Value that goes with the call.
    pub value: Wei,
    /// Calldata.
    pub input: Bytes,
}

impl Body {
    /// The door that created it and emits its events.
    pub fn door(&self) -> Door {
        self.terms.door()
    }

    /// The first call, which is the one displayed.
    pub fn call(&self) -> &Call {
        self.calls.first().expect("a body has a call: decoding refuses others")
    }

    /// The highest base fee at which an escrow covers one run.
    pub(crate) fn price(&self, escrow: Wei) -> u64 {
        escrow.0.checked_div(U256::from(self.gas_limit.0)).map_or(u64::MAX, |price| price.saturating_to())
    }

    /// Stored form.
    pub fn encode(&self) -> Bytes {
        let input_bytes: usize = self.calls.iter().map(|call| call.input.len() + 80).sum();
        let mut out = Writer::versioned(VERSION, 80 + input_bytes);
        out.u8(self.door() as u8);
        out.u8(self.trigger as u8);
        out.address(self.owner);
        out.address(self.refund_to);
        out.u64(self.gas_limit.0);
        self.terms.encode(&mut out);
        out.u8(u8::try_from(self.calls.len()).expect("no door allows more calls than a byte counts"));
        for call in &self.calls {
            out.address(call.from);
            out.address(call.to);
            out.u256(call.value.0);
            out.bytes(&call.input);
        }
        out.finish().into()
    }

    /// Reads the stored form.
    pub fn decode(encoded: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::versioned(encoded, "schedule body", VERSION)?;
        let unknown = |what, given: u8| DecodeError::UnknownValue { what, given: given.into() };
        let (door, trigger) = (input.u8("door")?, input.u8("trigger")?);
        let door = Door::from_number(door).ok_or_else(|| unknown("door", door))?;
        let trigger = Trigger::from_number(trigger).ok_or_else(|| unknown("trigger", trigger))?;
        let (owner, refund_to) = (input.address("owner")?, input.address("refund recipient")?);
        let gas_limit = Gas(input.u64("gas limit")?);
        let terms = (door.profile().decode)(&mut input)?;
        let count = input.u8("number of calls")?;
        if !(1..=terms.calls_max()).contains(&count.into()) {
            return Err(unknown("number of calls", count));
        }
        let calls = (0..count).map(|_| Call::decode(&mut input)).collect::<Result<_, _>>()?;
        input.finish("schedule body")?;
        Ok(Self { owner, refund_to, gas_limit, trigger, terms, calls })
    }
}

impl Call {
    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            from: input.address("sender")?,
            to: input.address("target")?,
            value: Wei(input.u256("value")?),
            input: input.bytes("calldata", RUN_INPUT_BYTES_MAX)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cron::{CatchUp, Charge, CronTerms},
        signed::SignedTerms,
    };
    use proptest::prelude::*;
    use std::num::NonZeroU64;

    fn terms() -> CronTerms {
        CronTerms {
            interval_ms: NonZeroU64::new(60_000),
            runs_max: NonZeroU64::new(3),
            catch_up: CatchUp::Latest,
            charge: Charge::GasUsed,
        }
    }

    fn call() -> Call {
        Call {
            from: Address::repeat_byte(3),
            to: Address::repeat_byte(4),
            value: Wei::ZERO,
            input: Bytes::from_static(b"four and more"),
        }
    }

    fn body() -> Body {
        Body {
            owner: Address::repeat_byte(1),
            refund_to: Address::repeat_byte(2),
            gas_limit: Gas(100_000),
            trigger: Trigger::Time,
            terms: Terms::Cron(terms()),
            calls: vec![call()],
        }
    }

    #[test]
    fn both_sides_of_the_calldata_bound() {
        let with = |length| Body { calls: vec![Call { input: vec![7; length].into(), ..call() }], ..body() };
        let largest = with(RUN_INPUT_BYTES_MAX);
        assert_eq!(Body::decode(&largest.encode()), Ok(largest));
        assert!(Body::decode(&with(RUN_INPUT_BYTES_MAX + 1).encode()).is_err());
    }

    #[test]
    fn both_sides_of_the_number_of_calls() {
        let decoded = |calls: usize| Body::decode(&Body { calls: vec![call(); calls], ..body() }.encode());
        assert!(decoded(1).is_ok());
        for refused in [0, 2, 255] {
            let given = DecodeError::UnknownValue { what: "number of calls", given: refused as u64 };
            assert_eq!(decoded(refused), Err(given));
        }
    }

    #[test]
    fn every_repeat_and_every_trigger_survives() {
        for interval_ms in [None, NonZeroU64::new(1), NonZeroU64::new(u64::MAX)] {
            for runs_max in [None, NonZeroU64::new(1), NonZeroU64::new(u64::MAX)] {
                for trigger in Trigger::ALL {
                    let terms = Terms::Cron(CronTerms { interval_ms, runs_max, ..terms() });
                    let body = Body { terms, trigger, ..body() };
                    assert_eq!(Body::decode(&body.encode()), Ok(body));
                }
            }
        }
    }

    fn signed() -> Body {
        let terms = SignedTerms {
            payer: Some(Address::repeat_byte(7)),
            admin_key: Bytes::from_static(&[1; 21]),
            max_fee_per_gas: U256::MAX,
            memo: "rent".to_owned(),
            nonce: 5,
            execution_time: 9,
            round: 2,
            identity: alloy_primitives::B256::repeat_byte(6),
            booked: None,
        };
        Body { terms: Terms::Signed(terms), calls: vec![call(); 16], ..body() }
    }

    #[test]
    fn terms_of_the_schedule_service_survive() {
        let body = signed();
        assert_eq!(Body::decode(&body.encode()), Ok(body.clone()));
        let too_many = Body { calls: vec![call(); 17], ..body };
        assert!(Body::decode(&too_many.encode()).is_err());
    }

    proptest! {
        /// The same for terms of the schedule service, which have optional parts and text.
        #[test]
        fn one_signed_body_has_one_encoding(at in 0usize..260, value: u8) {
            let mut bytes = signed().encode().to_vec();
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            if let Ok(body) = Body::decode(&bytes) {
                prop_assert_eq!(body.encode(), Bytes::from(bytes));
            }
        }

        /// Mutates the bytes of a valid body: whatever decodes must encode to the same bytes.
        #[test]
        fn one_body_has_one_encoding(at in 0usize..190, value: u8, cut in 0usize..200) {
            let mut bytes = body().encode().to_vec();
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            bytes.truncate(cut);
            if let Ok(body) = Body::decode(&bytes) {
                prop_assert_eq!(body.encode(), Bytes::from(bytes));
            }
        }
    }
}
