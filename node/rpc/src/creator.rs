//! Finds the creator of a contract.

use crate::{
    error,
    types::OtsContractCreator,
    view::{self, View},
};
use alloy_primitives::{Address, KECCAK256_EMPTY};
use almanac_primitives::{StateKey, StateRead as _};
use almanac_trace::{Creations, Limits};
use jsonrpsee::core::RpcResult;

/// What the code of an account that delegates to a contract begins with (EIP-7702).
const DELEGATION: [u8; 3] = [0xef, 0x01, 0x00];

/// Who made a contract, and where; `None` where it is none, or one of genesis.
pub(crate) fn find(view: &View, contract: Address) -> RpcResult<Option<OtsContractCreator>> {
    if !is_contract(view, contract)? {
        return Ok(None);
    }
    if let Some(made) = view.index.creation_of(contract).map_err(error::internal)? {
        let block = view.block(Some(made.location.number.into()))?;
        let creator = block.parties.get(made.location.index).map(|parties| parties.from);
        return Ok(creator.map(|creator| OtsContractCreator { hash: made.hash, creator }));
    }
    match first_with_code(view, contract)? {
        Some(number) => made_in(view, contract, number),
        None => Ok(None),
    }
}

fn is_contract(view: &View, address: Address) -> RpcResult<bool> {
    let state = view.index.tip_state();
    let hash = view::account(&state, address)?.code_hash;
    if hash == KECCAK256_EMPTY {
        return Ok(false);
    }
    let code = state.read(StateKey::Code(hash)).map_err(error::internal)?;
    Ok(code.is_some_and(|code| !code.starts_with(&DELEGATION)))
}

/// The block in which another contract made it. A contract that stays stays for good (EIP-6780), so the blocks
/// are searched by halving.
fn first_with_code(view: &View, contract: Address) -> RpcResult<Option<u64>> {
    let has_code = |number: u64| -> RpcResult<bool> {
        let state = view.index.state_at(number).ok_or_else(|| error::unknown_block(number))?;
        Ok(view::account(&state, contract)?.code_hash != KECCAK256_EMPTY)
    };
    let oldest = view.index.oldest_state();
    if has_code(oldest)? {
        return match oldest {
            0 => Ok(None),
            _ => Err(error::refused(format!(
                "{contract} was made by a contract in or before block {oldest}, the oldest whose state is kept"
            ))),
        };
    }
    let (mut without, mut with) = (oldest, view.index.height());
    while with - without > 1 {
        let middle = without + (with - without) / 2;
        if has_code(middle)? {
            with = middle;
        } else {
            without = middle;
        }
    }
    Ok(Some(with))
}

fn made_in(view: &View, contract: Address, number: u64) -> RpcResult<Option<OtsContractCreator>> {
    let block = view.block(Some(number.into()))?;
    let made = view.retrace_all(&block, &Creations, Limits::BLOCK).map_err(|error| error::trace(&error))?;
    let shown = block.receipts[block.unseen()..].iter().zip(made);
    let mut all =
        shown.flat_map(|(receipt, made)| made.into_iter().map(|pair| (receipt.transaction_hash, pair)));
    let found = all.find(|(_, (address, _))| *address == contract);
    Ok(found.map(|(hash, (_, creator))| OtsContractCreator { hash, creator }))
}
