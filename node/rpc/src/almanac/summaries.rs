//! `almanac_getTransactionSummaries`: what an account signed, by version (ORDERLESS-19).

use super::params;
use crate::{
    error,
    reading::Reading,
    types::{Number, Version, user_transaction},
    view::View,
};
use alloy_primitives::{Address, TxHash};
use almanac_index::{Direction, Location, Sent};
use almanac_primitives::ReplayProtector;
use jsonrpsee::core::RpcResult;
use serde::{Deserialize, Serialize};

/// Which transactions a client requests. Both bounds are included.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// The first version that counts.
    start_version: Option<Number>,
    /// The last version that counts.
    end_version: Option<Number>,
    /// Length of the page, 1 to 100; by default 20.
    limit: Option<Number>,
}

/// A transaction in brief. The shape is REST's.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    sender: Address,
    version: Version,
    transaction_hash: TxHash,
    replay_protector: RpcProtector,
}

/// What keeps it from running twice. A nonce may come again, with another version.
#[derive(Clone, Debug, Serialize)]
enum RpcProtector {
    Nonce(String),
    SequenceNumber(String),
}

/// A page, ascending: from the start if there is one, otherwise the last ones before the end.
pub(super) fn page(view: &View, sender: Address, wanted: &Wanted) -> RpcResult<Vec<Summary>> {
    let limit = params::limit(wanted.limit)?;
    let (start, end) = (wanted.start_version.map(Number::get), wanted.end_version.map(Number::get));
    if let (Some(start), Some(end)) = (start, end)
        && start > end
    {
        return Err(error::invalid(format!("end_version {end} is before start_version {start}")));
    }
    let first = start.map_or(Location::first_of(0), |start| Version(start).location());
    let last = end.map_or(Location::last_of(u64::MAX), |end| Version(end).location());
    let direction = if start.is_some() { Direction::Ascending } else { Direction::Descending };
    let found = view.index.signed_by(sender, &(first..=last), direction, limit).map_err(error::internal)?;
    let mut reading = Reading::new(super::LESS);
    let shown = Direction::Ascending.first(found, limit);
    shown.into_iter().map(|sent| summary(view, sender, sent, &mut reading)).collect()
}

fn summary(view: &View, sender: Address, sent: Sent, reading: &mut Reading) -> RpcResult<Summary> {
    let block = view.block(Some(sent.location.number.into()))?;
    reading.count(&block)?;
    let missing = || error::internal(format!("there is no transaction at {:?}", sent.location));
    let transaction = user_transaction(&block, sent.location.index).ok_or_else(missing)?;
    let replay_protector = match transaction.replay_protector() {
        ReplayProtector::Sequence(number) => RpcProtector::SequenceNumber(number.to_string()),
        ReplayProtector::Nonce { nonce, .. } => RpcProtector::Nonce(nonce.to_string()),
    };
    Ok(Summary { sender, version: Version::of(sent.location), transaction_hash: sent.hash, replay_protector })
}
