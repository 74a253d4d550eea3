//! Fills the fields that a client left out of a transaction: nonce, gas, price, chain id.

use super::{
    Eth,
    attempt::{Overrides, called},
    estimate::estimate_soon,
    fees::TIP,
};
use crate::error;
use alloy_consensus::TypedTransaction;
use alloy_eips::BlockId;
use alloy_primitives::{Address, TxKind};
use alloy_rpc_types_eth::TransactionRequest;
use jsonrpsee::core::RpcResult;

impl Eth {
    /// The request with everything that a transaction needs, and its sender.
    pub(super) async fn fill(
        &self,
        mut request: TransactionRequest,
    ) -> RpcResult<(Address, TransactionRequest)> {
        let from = request.from.or_else(|| self.wallet.addresses().first().copied());
        let from = from.ok_or_else(|| error::invalid("the transaction has no sender: give \"from\""))?;
        request.from = Some(from);
        self.check_chain(&request)?;
        request.chain_id = Some(self.view.chain.id);
        request.to.get_or_insert(TxKind::Create);
        request.value.get_or_insert_default();
        request.input.normalize_input();
        if request.nonce.is_none() {
            request.nonce = Some(self.next_nonce(from)?);
        }
        if request.gas.is_none() {
            request.gas = Some(self.gas_for(request.clone()).await?);
        }
        self.fill_price(&mut request)?;
        Ok((from, request))
    }

    fn check_chain(&self, request: &TransactionRequest) -> RpcResult<()> {
        match request.chain_id.filter(|given| *given != self.view.chain.id) {
            Some(given) => {
                let ours = self.view.chain.id;
                Err(error::invalid(format!("invalid chain id {given}: this chain has {ours}")))
            }
            None => Ok(()),
        }
    }

    async fn gas_for(&self, request: TransactionRequest) -> RpcResult<u64> {
        // Not yet priced: whoever cannot pay hears that when it is sent, with the numbers.
        let request = TransactionRequest { gas_price: None, max_fee_per_gas: None, ..request };
        self.try_out(Some(BlockId::pending()), Overrides::default(), |mut attempt| {
            let call = attempt.call(request)?;
            match estimate_soon(&call, &mut attempt).map_err(|error| error::attempt(&error))? {
                Ok(gas) => Ok(gas.0),
                Err(failed) => Err(error::failed_call(&called(&call), &failed)),
            }
        })
        .await
    }

    fn fill_price(&self, request: &mut TransactionRequest) -> RpcResult<()> {
        if request.gas_price.is_some() {
            return Ok(());
        }
        let base_fee = self.upcoming()?.base_fee.0;
        // Old kinds of transactions have one price.
        if matches!(request.transaction_type, Some(0 | 1)) {
            request.gas_price = Some(base_fee.saturating_mul(2).saturating_add(TIP.0));
            return Ok(());
        }
        let tip = request.max_priority_fee_per_gas.unwrap_or(TIP.0);
        let cap = request.max_fee_per_gas.unwrap_or_else(|| base_fee.saturating_mul(2).saturating_add(tip));
        request.max_fee_per_gas = Some(cap);
        request.max_priority_fee_per_gas = Some(tip.min(cap));
        Ok(())
    }
}

/// A filled request as the transaction that is to be signed.
pub(super) fn unsigned(mut request: TransactionRequest) -> RpcResult<TypedTransaction> {
    // Some clients name the type and leave out what makes it that type.
    if request.transaction_type == Some(1) {
        request.access_list.get_or_insert_default();
    }
    request.build_consensus_tx().map_err(|error| error::invalid(error.error))
}
