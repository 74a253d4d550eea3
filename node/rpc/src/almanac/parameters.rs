//! `almanac_getParameters`: the values that governance may change.

use crate::{error, view::View};
use alloy_primitives::{Address, U64};
use almanac_exec::environment::read_parameters;
use almanac_primitives::{addresses::PARAMETERS, params::PARAMETERS as ALL};
use jsonrpsee::core::RpcResult;
use serde::Serialize;

/// A parameter and its current value.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RpcParameter {
    name: &'static str,
    value: U64,
    default: U64,
    min: U64,
    max: U64,
    reason: &'static str,
    /// The contract that reads and sets it, and its slot there.
    contract: Address,
    slot: U64,
}

/// All parameters after the last block.
pub(super) fn all(view: &View) -> RpcResult<Vec<RpcParameter>> {
    let (_, state) = view.state(None)?;
    let values = read_parameters(&state).map_err(error::internal)?;
    let shown = ALL.map(|parameter| RpcParameter {
        name: parameter.name,
        value: U64::from(values.get(parameter)),
        default: U64::from(parameter.default),
        min: U64::from(parameter.min),
        max: U64::from(parameter.max),
        reason: parameter.reason,
        contract: PARAMETERS,
        slot: U64::from(parameter.slot),
    });
    Ok(shown.into())
}
