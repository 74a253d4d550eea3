//! What a method that tries a call takes: one of Ethereum's requests, or a native transaction in the shape in which the
//! node shows it, signed or not.

use crate::{
    error,
    types::{RpcNativeCall, RpcReplayProtector},
};
use alloy_primitives::{Address, Bytes, TxKind, U64};
use alloy_rpc_types_eth::TransactionRequest;
use almanac_exec::NativeParts;
use almanac_primitives::{
    GasPrice, NativeCall, UserTransaction,
    native::{Kind, NATIVE_TYPE},
};
use jsonrpsee::core::RpcResult;
use serde::Deserialize;

/// A request to try something.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallRequest {
    #[serde(flatten)]
    pub(crate) ethereum: TransactionRequest,
    #[serde(flatten)]
    native: NativeFields,
}

/// What only a native transaction has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NativeFields {
    almanac_type: Option<U64>,
    calls: Option<Vec<RpcNativeCall>>,
    replay_protector: Option<RpcReplayProtector>,
    expiration: Option<U64>,
    fee_payer: Option<Address>,
    signatures: Option<Vec<Bytes>>,
    fee_payer_signatures: Option<Vec<Bytes>>,
}

impl From<TransactionRequest> for CallRequest {
    fn from(ethereum: TransactionRequest) -> Self {
        Self { ethereum, native: NativeFields::default() }
    }
}

impl CallRequest {
    /// The nonce that it brings, of either kind.
    pub(super) fn nonce(&self) -> Option<u64> {
        match self.native.replay_protector {
            Some(RpcReplayProtector::Nonce { nonce, .. }) => Some(nonce.to()),
            Some(RpcReplayProtector::Sequence { sequence_number }) => Some(sequence_number.to()),
            None => self.ethereum.nonce,
        }
    }

    /// What makes it a native transaction, if it is one.
    pub(super) fn native_parts(&self) -> RpcResult<Option<NativeParts>> {
        if !self.is_native()? {
            return Ok(None);
        }
        self.check_ethereum_fields()?;
        let kind = match self.native.replay_protector {
            Some(RpcReplayProtector::Nonce { .. }) => Kind::Orderless,
            Some(RpcReplayProtector::Sequence { .. }) | None => Kind::Sequence,
        };
        let fields = &self.native;
        // Shown transactions have both prices, of which one is what they paid.
        let cap = self.ethereum.max_fee_per_gas.or(self.ethereum.gas_price).unwrap_or_default();
        Ok(Some(NativeParts {
            calls: self.calls(),
            kind,
            expiration: self.expiration()?,
            fee_cap: GasPrice(cap),
            tip_cap: GasPrice(match self.ethereum.max_fee_per_gas {
                Some(_) => self.ethereum.max_priority_fee_per_gas.unwrap_or_default(),
                None => cap,
            }),
            fee_payer: fields.fee_payer,
            signatures: fields.signatures.clone().unwrap_or_default(),
            fee_payer_signatures: fields.fee_payer_signatures.clone().unwrap_or_default(),
        }))
    }

    fn is_native(&self) -> RpcResult<bool> {
        let fields = &self.native;
        if let Some(given) = fields.almanac_type.filter(|given| *given != U64::from(NATIVE_TYPE)) {
            return Err(error::invalid(format!(
                "almanacType {given:#x} cannot be tried: only 0x72, a native transaction, can"
            )));
        }
        Ok(fields.almanac_type.is_some()
            || self.ethereum.transaction_type == Some(NATIVE_TYPE)
            || fields.calls.is_some()
            || fields.replay_protector.is_some()
            || fields.fee_payer.is_some())
    }

    /// What Ethereum's transactions have and native ones do not.
    fn check_ethereum_fields(&self) -> RpcResult<()> {
        let has_list = self.ethereum.access_list.as_ref().is_some_and(|list| !list.is_empty());
        let has_authorizations =
            self.ethereum.authorization_list.as_ref().is_some_and(|list| !list.is_empty());
        for (name, is_given) in [("accessList", has_list), ("authorizationList", has_authorizations)] {
            if is_given {
                return Err(error::invalid(format!("a native transaction has no {name}")));
            }
        }
        Ok(())
    }

    /// Its calls; without a list, the one that Ethereum's fields describe.
    fn calls(&self) -> Vec<NativeCall> {
        match &self.native.calls {
            Some(calls) => calls.iter().map(RpcNativeCall::native).collect(),
            None => vec![NativeCall {
                to: self.ethereum.to.and_then(TxKind::into_to),
                value: self.ethereum.value.unwrap_or_default(),
                input: self.ethereum.input.input().cloned().unwrap_or_default(),
            }],
        }
    }

    fn expiration(&self) -> RpcResult<u64> {
        let own = match self.native.replay_protector {
            Some(RpcReplayProtector::Nonce { expiration, .. }) => Some(expiration),
            _ => None,
        };
        match (own, self.native.expiration) {
            (Some(own), Some(other)) if own != other => Err(error::invalid(format!(
                "expiration {other} is not the replayProtector's, {own}: give one of them"
            ))),
            (own, other) => Ok(own.or(other).unwrap_or_default().to()),
        }
    }

    /// Beside a list of calls, Ethereum's fields may only say what the node shows there.
    pub(super) fn check_shape(&self, shown: &UserTransaction) -> RpcResult<()> {
        if self.native.calls.is_none() {
            return Ok(());
        }
        let given = &self.ethereum;
        let differs = [
            ("to", given.to.is_some_and(|given| given.into_to() != shown.to())),
            ("value", given.value.is_some_and(|given| given != shown.value())),
            ("input", given.input.input().is_some_and(|given| given != shown.input())),
        ];
        match differs.iter().find(|(_, differs)| *differs) {
            Some((name, _)) => Err(error::invalid(format!(
                "{name} is not that of calls: beside calls, leave to, value and input out"
            ))),
            None => Ok(()),
        }
    }
}
