//! Signature recovery and the stateless rules, in parallel and off the execution path.

use crate::validate::{Rules, TransactionError, check_static};
use almanac_primitives::{RecoveredTransaction, UserTransaction};
use rayon::prelude::*;

/// Checks the stateless rules of a transaction, then recovers who signed it.
pub fn recover(
    transaction: UserTransaction,
    rules: &Rules,
) -> Result<RecoveredTransaction, TransactionError> {
    // Cheap rules first: a flood of nonsense must not cost a recovery each.
    check_static(&transaction, rules)?;
    Ok(RecoveredTransaction::recover(transaction)?)
}

/// Recovers a whole body on all cores. On failure: the first position that is wrong, and why.
pub fn recover_all(
    transactions: &[UserTransaction],
    rules: &Rules,
) -> Result<Vec<RecoveredTransaction>, (usize, TransactionError)> {
    // Joined by position, so that every node names the same transaction whichever core was first.
    let results: Vec<_> = transactions.par_iter().map(|tx| recover(tx.clone(), rules)).collect();
    results.into_iter().enumerate().map(|(index, result)| result.map_err(|error| (index, error))).collect()
}
