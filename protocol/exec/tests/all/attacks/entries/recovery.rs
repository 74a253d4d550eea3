//! ecrecover reads the account that it answers with, to see whether its key was replaced, and nobody pays for that read.

use super::*;
use crate::precompiles::ROOM_NS_PER_GAS;
use almanac_primitives::Account;

/// x of the generator of secp256k1. With this s and any other number as digest it is a signature of somebody.
const R: B256 = B256::new(hex!("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"));
const S: B256 = B256::repeat_byte(1);

/// Recoveries that fit the gas.
const RECOVERIES: u64 = LOOP_GAS / 3_000;

/// Recovers the signature of one digest after the other, each of another account, until its gas is gone; or always of the
/// same.
fn recovering(is_each_new: bool) -> Bytes {
    let step = u8::from(is_each_new);
    [
        &hex!("601b602052")[..], // memory[32] = 27
        &[0x7f],
        R.as_slice(),
        &hex!("604052"), // memory[64] = R
        &[0x7f],
        S.as_slice(),
        &hex!("606052"), // memory[96] = S
        &hex!("5b600051"),
        &[0x60, step],
        &hex!("01600052"),                       // loop: memory[0] += step
        &hex!("60206080608060006001610bb8fa50"), // staticcall(3,000 gas, 1, 0, 128, 128, 32)
        &hex!("61c3505a11604d5700"),             // again with more than 50,000 gas
    ]
    .concat()
    .into()
}

/// Each of these accounts has money, so that it is in the state and has to be read from the disk.
fn accounts() -> impl Iterator<Item = (StateKey, Bytes)> {
    let signature = alloy_primitives::Signature::from_scalars_and_parity(R, S, false);
    (1..=RECOVERIES).map(move |digest| {
        let address = signature.recover_address_from_prehash(&U256::from(digest).into()).unwrap();
        (StateKey::Account(address), Account { balance: U256::ONE, ..Account::default() }.encode())
    })
}

/// Timeouts allow so much for a gas. Measured, so that the read stays without a price for a reason.
#[test]
#[ignore = "measures time; make bench-prices"]
fn attack_27_recovering_other_accounts_fits_the_timeouts() {
    let chain = wide_chain();
    let mut values = chain.state.0.clone();
    values.extend(accounts());
    let directory = tempfile::tempdir().unwrap();
    let config = tokio::Config::new().with_storage_directory(directory.path());
    let [same, other] = tokio::Runner::new(config).start(|context| async move {
        let store = QmdbStore::open(context, &QmdbConfig::new("recovery"), &values).await.unwrap();
        let input = Arc::new(chain.input());
        let mut best = [f64::MAX; 2];
        for _ in 0..TRIES {
            for (best, is_each_new) in best.iter_mut().zip([false, true]) {
                let from = person(5);
                let tx =
                    eip1559(chain.nonce(from.address), TxKind::Create, 0, recovering(is_each_new), LOOP_GAS);
                let transaction = recovered(sign(tx, from.secret));
                let keys = prefetch(input.parent.number + 1, input.fee_recipient);
                let (input, agenda) = (input.clone(), chain.agenda.clone());
                let work =
                    move |state: &dyn StateRead| timed(state, &*agenda, &input, transaction, process_time);
                let taken = with_reader(&store.tip(), &keys, work).await.unwrap();
                assert!(taken.gas > LOOP_GAS * 9 / 10, "it goes on to the end: {}", taken.gas);
                let time = taken.time.map_or(f64::MAX, |time| time.as_nanos() as f64);
                *best = best.min(time / taken.gas as f64);
            }
        }
        best
    });
    println!("ecrecover of one account: {same:.2} ns per gas; of another one each time: {other:.2}");
    assert!(other <= ROOM_NS_PER_GAS, "{other} ns per gas");
}
