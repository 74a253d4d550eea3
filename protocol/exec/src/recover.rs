//! Signature recovery and the stateless rules, in parallel and outside execution.

use crate::{
    runs::REFUND_DIVISOR,
    validate::{Rules, TransactionError, check_static, intrinsic_gas},
};
use alloy_primitives::TxHash;
use almanac_primitives::{
    Gas, RecoveredTransaction, SignedTransaction, UserTransaction, block::block_body_bytes,
    params::BLOCK_BODY_BYTES_MAX,
};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Checks the stateless rules of a transaction, then recovers its signer and those of its authorizations.
pub fn recover(
    transaction: UserTransaction,
    rules: &Rules,
) -> Result<RecoveredTransaction, TransactionError> {
    Ok(recover_sender(transaction, rules)?.recover_authorities())
}

/// Checks the stateless rules of a transaction, then recovers only its sender.
pub fn recover_sender(
    transaction: UserTransaction,
    rules: &Rules,
) -> Result<SignedTransaction, TransactionError> {
    // Cheap rules first: invalid transactions must not cost a recovery each.
    check_static(&transaction, rules)?;
    Ok(SignedTransaction::recover(transaction, &rules.chain)?)
}

/// Recovers a whole body on all cores. On failure returns the first invalid position and the reason.
pub fn recover_all(
    transactions: &[UserTransaction],
    rules: &Rules,
) -> Result<Vec<RecoveredTransaction>, (usize, TransactionError)> {
    recover_unknown(transactions, rules, &BTreeMap::new())
}

/// Like [`recover_all`], but skips transactions that were recovered before, by hash (which covers the
/// signature). Checks all rules.
///
/// Rejects a body that cannot fit a block before recovering anything: lists of authorizations take long, and
/// only gas bounds their length.
pub fn recover_unknown(
    transactions: &[UserTransaction],
    rules: &Rules,
    known: &BTreeMap<TxHash, RecoveredTransaction>,
) -> Result<Vec<RecoveredTransaction>, (usize, TransactionError)> {
    check_least_gas(transactions, rules)?;
    // Join by position, so that every node reports the same transaction, whichever core finished first.
    let recovered = |tx: &UserTransaction| match known.get(&tx.hash()) {
        Some(known) => check_static(tx, rules).map(|()| known.clone()),
        None => recover(tx.clone(), rules),
    };
    let results: Vec<_> = transactions.par_iter().map(recovered).collect();
    results.into_iter().enumerate().map(|(index, result)| result.map_err(|error| (index, error))).collect()
}

/// Checks that a block could hold the body if each transaction used only its intrinsic gas less the largest
/// possible refund. No valid body uses less.
fn check_least_gas(transactions: &[UserTransaction], rules: &Rules) -> Result<(), (usize, TransactionError)> {
    let mut gas_left = rules.gas_max;
    for (index, transaction) in transactions.iter().enumerate() {
        let gas = intrinsic_gas(transaction);
        let gas = Gas(gas - gas / REFUND_DIVISOR);
        gas_left = gas_left.checked_sub(gas).ok_or_else(|| {
            let (bytes, bytes_left) = (block_body_bytes(transaction), BLOCK_BODY_BYTES_MAX);
            (index, TransactionError::DoesNotFit { gas, bytes, gas_left, bytes_left })
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::{
        Chain,
        testing::{CHAIN, person, recovered, transfer},
    };

    /// A wrong sender stored under a hash shows that it is not recovered again. The pool never contains that.
    #[test]
    fn what_is_known_is_not_recovered_again_and_still_checked() {
        let rules = Rules { chain: CHAIN, gas_max: Gas(30_000_000), is_developer: false };
        let sent: Vec<_> = (0..3).map(|nonce| transfer(person(0), nonce, person(1).address, 1)).collect();
        let other = recovered(transfer(person(2), 9, person(1).address, 1));
        let known = BTreeMap::from([(sent[1].hash(), other.clone())]);
        let found = recover_unknown(&sent, &rules, &known).unwrap();
        assert_eq!(found[1], other);
        assert_eq!([found[0].sender(), found[2].sender()], [person(0).address; 2]);
        let foreign = Rules { chain: Chain { id: CHAIN.id + 1, ..CHAIN }, ..rules };
        let known = sent.iter().map(|tx| (tx.hash(), recovered(tx.clone()))).collect();
        let (index, _) = recover_unknown(&sent, &foreign, &known).unwrap_err();
        assert_eq!(index, 0, "signed for another chain");
    }
}
