//! A developer's commands that are transactions: each becomes a block of its own, at once.

use super::{BlockId, acts::Answer, controls::ControlError, sequencer::Sequencer};
use crate::{
    application::{ApplicationError, MadeBlock},
    clock::Clock,
    deadline::More,
};
use alloy_consensus::TxEip1559;
use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::SolCall as _;
use almanac_exec::{
    Edit, EditError, Executed, Sender, StateFault, edit_gas, environment::wanted_base_fee, recover,
};
use almanac_primitives::{
    RecoveredTransaction, StateKey, StateRead, UserTransaction,
    addresses::{DEVELOPER, DEVELOPER_DOOR, PARAMETERS},
    params::{GOVERNANCE_SLOT, Parameter},
    state::decode_slot,
};
use almanac_state::{StateStore, with_reader};
use std::collections::{BTreeMap, btree_map::Entry};

alloy_sol_types::sol!("../../contracts/IParameters.sol");

/// A call in somebody's name.
struct DeveloperCall {
    from: Address,
    to: Address,
    input: Bytes,
}

impl DeveloperCall {
    fn edit(edit: Edit) -> Self {
        Self { from: DEVELOPER, to: DEVELOPER_DOOR, input: edit.calldata() }
    }
}

impl<S: StateStore<Batch: Send + 'static>, C: Clock> Sequencer<S, C> {
    pub(super) async fn edit(&mut self, edits: Vec<Edit>) -> Answer<BlockId> {
        self.carry_out(edits.into_iter().map(DeveloperCall::edit).collect()).await
    }

    /// Sets parameters as the chain's governor, who pays for it and whose nonce it uses.
    pub(super) async fn govern(&mut self, changes: Vec<(Parameter, u64)>) -> Answer<BlockId> {
        let from = with_reader(&self.tip.state, &[], |state| governor(state))
            .await
            .map_err(ApplicationError::from)?
            .map_err(|fault| ApplicationError::Block(fault.into()))?;
        let calls = changes.into_iter().map(|(parameter, value)| {
            let set = IParameters::setCall { name: parameter.name_word(), value: U256::from(value) };
            DeveloperCall { from, to: PARAMETERS, input: set.abi_encode().into() }
        });
        self.carry_out(calls.collect()).await
    }

    async fn carry_out(&mut self, mut calls: Vec<DeveloperCall>) -> Answer<BlockId> {
        // The block of such a call is not the one that a base fee was set for; that one is still to come.
        let wanted = with_reader(&self.tip.state, &[], |state| wanted_base_fee(state))
            .await
            .map_err(ApplicationError::from)?
            .map_err(|fault| ApplicationError::Block(fault.into()))?;
        if let Some(wanted) = wanted {
            calls.insert(0, DeveloperCall::edit(Edit::NextBaseFee { base_fee: U256::from(wanted.0) }));
        }
        while !calls.is_empty() {
            let candidates = match self.transactions(&calls).await? {
                Ok(candidates) => candidates,
                Err(error) => return Ok(Err(error)),
            };
            let made = self.propose(self.least_time(), candidates, More::NONE).await?;
            let count = made.block.transactions.len();
            // Nothing of the block exists before it is accepted, so a failed call leaves nothing behind.
            if let Some(error) = failed_call(&made) {
                return Ok(Err(error.into()));
            }
            if count == 0 {
                let refused = made.refused.into_iter().next();
                let (_, error) = refused.expect("a block takes a candidate or says why not");
                return Ok(Err(error.into()));
            }
            self.accept(made).await?;
            calls.drain(..count);
        }
        // A pending transaction may have waited for the money or the nonce.
        self.pool.wake();
        Ok(Ok(self.tip_id()))
    }

    /// The calls in their senders' names, at what the next block asks.
    async fn transactions(&self, calls: &[DeveloperCall]) -> Answer<Vec<RecoveredTransaction>> {
        let environment = self.application.next_environment(&self.tip).await?;
        let rules = self.application.rules(&self.tip).await?;
        let mut nonces = BTreeMap::new();
        for from in calls.iter().map(|call| call.from) {
            if let Entry::Vacant(place) = nonces.entry(from) {
                let sender = with_reader(&self.tip.state, &[], move |state| Sender::read(state, from))
                    .await
                    .map_err(ApplicationError::from)?
                    .map_err(|fault| ApplicationError::Block(fault.into()))?;
                place.insert(sender.nonce);
            }
        }
        let made = calls.iter().map(|call| {
            let next = nonces.get_mut(&call.from).expect("every sender was read");
            let nonce = *next;
            *next = nonce.saturating_add(1);
            let transaction = TxEip1559 {
                chain_id: rules.chain.id,
                nonce,
                gas_limit: edit_gas(&call.input).0,
                max_fee_per_gas: environment.base_fee.0,
                to: TxKind::Call(call.to),
                input: call.input.clone(),
                ..TxEip1559::default()
            };
            let transaction = UserTransaction::impersonate(call.from, transaction.into())?;
            Ok(recover(transaction, &rules)?)
        });
        Ok(made.collect::<Result<_, ControlError>>())
    }
}

/// The account that may set parameters.
fn governor(state: &dyn StateRead) -> Result<Address, StateFault> {
    let key = StateKey::Slot(PARAMETERS, U256::from(GOVERNANCE_SLOT));
    let word = match state.read(key)? {
        Some(stored) => decode_slot(&stored).map_err(|error| StateFault::Corrupt { key, error })?,
        None => U256::ZERO,
    };
    Ok(Address::from_word(word.into()))
}

/// Why the first call of a block that failed did so.
fn failed_call<B>(made: &MadeBlock<B>) -> Option<EditError> {
    let executed = made.output.transactions.iter().zip(&made.output.receipts);
    executed
        .filter(|(transaction, _)| matches!(transaction, Executed::User(_)))
        .find_map(|(_, receipt)| EditError::of_outcome(&receipt.outcome))
}
