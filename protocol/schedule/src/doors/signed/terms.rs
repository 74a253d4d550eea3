//! What a schedule that waits for signatures is bound to, beside its calls.

use crate::{callback::CallbackTerms, record::Body};
use alloy_primitives::{Address, B256, Bytes, U256};
use almanac_primitives::{
    codec::{DecodeError, Reader, Writer},
    keys::KEY_BYTES_MAX,
    params::SIGNED_MEMO_BYTES_MAX,
    transaction_body::{BodyCall, TransactionBody},
};

/// The terms of such a schedule, fixed when it is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTerms {
    /// Who pays, where that was said. Otherwise the creator does.
    pub payer: Option<Address>,
    /// Whose signature deletes it; empty if nobody's does.
    pub admin_key: Bytes,
    /// The base fee above which it does not run.
    pub max_fee_per_gas: U256,
    /// For people.
    pub memo: String,
    /// Makes equal bodies different schedules.
    pub nonce: u32,
    /// The second at which it runs or expires; zero if none was given.
    pub execution_time: u64,
    /// How often a schedule of this identity was executed or deleted before: its signatures name it.
    pub round: u32,
    /// The hash of body, payer and admin key.
    pub identity: B256,
    /// What it booked and prepaid, if it waits for its second.
    pub booked: Option<CallbackTerms>,
}

impl SignedTerms {
    /// What was scheduled, as its signers signed it. `body` is the body with these terms.
    pub fn transaction_body(&self, body: &Body) -> TransactionBody {
        let calls = body.calls.iter().map(|call| BodyCall {
            from: call.from,
            to: call.to,
            value: call.value.0,
            data: call.input.clone(),
        });
        TransactionBody {
            calls: calls.collect(),
            gas_limit: body.gas_limit.0,
            max_fee_per_gas: self.max_fee_per_gas,
            memo: self.memo.clone(),
            nonce: self.nonce,
            execution_time: self.execution_time,
            wait_for_expiry: self.booked.is_some(),
        }
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.u8(self.payer.is_some().into());
        out.address(self.payer.unwrap_or_default());
        out.bytes(&self.admin_key);
        out.u256(self.max_fee_per_gas);
        out.bytes(self.memo.as_bytes());
        out.u32(self.nonce);
        out.u64(self.execution_time);
        out.u32(self.round);
        out.b256(self.identity);
        out.u8(self.booked.is_some().into());
        if let Some(booked) = &self.booked {
            booked.write(out);
        }
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let has_payer = flag(input, "payer flag")?;
        let payer = input.address("payer")?;
        if !has_payer && !payer.is_zero() {
            return Err(DecodeError::UnknownValue { what: "absent payer", given: 1 });
        }
        let admin_key = input.bytes("admin key", KEY_BYTES_MAX)?;
        let max_fee_per_gas = input.u256("fee cap")?;
        let memo = input.bytes("memo", SIGNED_MEMO_BYTES_MAX)?;
        let memo = String::from_utf8(memo.to_vec())
            .map_err(|_| DecodeError::UnknownValue { what: "text of the memo", given: 0 })?;
        Ok(Self {
            payer: has_payer.then_some(payer),
            admin_key,
            max_fee_per_gas,
            memo,
            nonce: input.u32("nonce")?,
            execution_time: input.u64("execution time")?,
            round: input.u32("round")?,
            identity: input.b256("identity")?,
            booked: flag(input, "booking flag")?.then(|| CallbackTerms::decode(input)).transpose()?,
        })
    }
}

fn flag(input: &mut Reader<'_>, what: &'static str) -> Result<bool, DecodeError> {
    match input.u8(what)? {
        0 => Ok(false),
        1 => Ok(true),
        given => Err(DecodeError::UnknownValue { what, given: given.into() }),
    }
}
