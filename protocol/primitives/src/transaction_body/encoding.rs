//! A body as bytes: `abi.encode(IScheduleService.Body)`, as contracts and clients have it.

use super::{BodyCall, TransactionBody};
use alloy_primitives::Bytes;
use alloy_sol_types::{SolValue as _, sol};

sol! {
    struct Call {
        address from;
        address to;
        uint256 value;
        bytes data;
    }

    struct Body {
        Call[] calls;
        uint64 gasLimit;
        uint256 maxFeePerGas;
        string memo;
        uint32 nonce;
        uint64 executionTime;
        bool waitForExpiry;
    }
}

impl TransactionBody {
    /// Its only encoding.
    pub fn encode(&self) -> Bytes {
        let calls = self.calls.iter().cloned();
        let calls = calls.map(|BodyCall { from, to, value, data }| Call { from, to, value, data });
        let body = Body {
            calls: calls.collect(),
            gasLimit: self.gas_limit,
            maxFeePerGas: self.max_fee_per_gas,
            memo: self.memo.clone(),
            nonce: self.nonce,
            executionTime: self.execution_time,
            waitForExpiry: self.wait_for_expiry,
        };
        body.abi_encode().into()
    }

    /// Reads a body. `None` if this is none, or not its only encoding: another one would make it another schedule.
    pub fn decode(encoded: &[u8]) -> Option<Self> {
        let body = Body::abi_decode_validate(encoded).ok()?;
        if body.abi_encode() != encoded {
            return None;
        }
        let Body { calls, gasLimit, maxFeePerGas, memo, nonce, executionTime, waitForExpiry } = body;
        let calls =
            calls.into_iter().map(|Call { from, to, value, data }| BodyCall { from, to, value, data });
        Some(Self {
            calls: calls.collect(),
            gas_limit: gasLimit,
            max_fee_per_gas: maxFeePerGas,
            memo,
            nonce,
            execution_time: executionTime,
            wait_for_expiry: waitForExpiry,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Address, U256};

    mod interface {
        alloy_sol_types::sol!("../../contracts/IScheduleService.sol");
    }
    use interface::IScheduleService;

    fn body(calls: usize) -> TransactionBody {
        let call = BodyCall {
            from: Address::repeat_byte(1),
            to: Address::repeat_byte(2),
            value: U256::MAX,
            data: Bytes::from_static(b"more than a word of data, so that lengths count"),
        };
        TransactionBody {
            calls: vec![call; calls],
            gas_limit: u64::MAX,
            max_fee_per_gas: U256::from(5),
            memo: "rent".to_owned(),
            nonce: 7,
            execution_time: 8,
            wait_for_expiry: true,
        }
    }

    #[test]
    fn hedera_03_bodies_are_those_of_the_interface_and_come_back() {
        for calls in [0, 1, 3] {
            let (body, encoded) = (body(calls), body(calls).encode());
            assert_eq!(TransactionBody::decode(&encoded).as_ref(), Some(&body));
            let shown = IScheduleService::Body::abi_decode_validate(&encoded).unwrap();
            assert_eq!((shown.gasLimit, shown.maxFeePerGas), (body.gas_limit, body.max_fee_per_gas));
            assert_eq!((shown.memo.as_str(), shown.nonce), (body.memo.as_str(), body.nonce));
            assert_eq!((shown.executionTime, shown.waitForExpiry), (8, true));
            assert_eq!(shown.calls.len(), calls);
            assert!(shown.calls.iter().zip(&body.calls).all(|(shown, call)| {
                (shown.from, shown.to, shown.value, &shown.data)
                    == (call.from, call.to, call.value, &call.data)
            }));
            assert_eq!(shown.abi_encode(), encoded);
        }
    }

    /// HEDERA-04: what decodes to the same body and is not its encoding would be another schedule.
    #[test]
    fn hedera_04_a_body_has_one_encoding() {
        let encoded = body(2).encode();
        let mut longer = encoded.to_vec();
        longer.extend([0; 32]);
        assert_eq!(TransactionBody::decode(&longer), None, "something behind it");
        assert_eq!(TransactionBody::decode(&encoded[..encoded.len() - 1]), None, "cut");
        let mut dirty = encoded.to_vec();
        let last = dirty.len() - 1;
        dirty[last] = 1;
        assert_eq!(TransactionBody::decode(&dirty), None, "padding");
        assert_eq!(TransactionBody::decode(&[]), None);
    }
}
