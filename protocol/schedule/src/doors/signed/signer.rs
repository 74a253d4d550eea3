//! Recorded signatures.

use super::Tally;
use crate::{
    ledger::{Ledger, read_slot},
    record::SIGNER_KIND,
};
use alloy_primitives::{Address, B256, U256};
use almanac_primitives::{ScheduleId, StateRead, StateReadError, keys::Leaf, params::SIGNED_SIGNERS_MAX};

const SECP256K1: u8 = 1;
const ED25519: u8 = 2;
/// An account that called, as `04 ‖ account` in answers.
const CALLER: u8 = 4;

/// How far the slot of an Ed25519 key is from the slot of its signer.
const KEY_OFFSET: u64 = 256;

const _: () = assert!(SIGNED_SIGNERS_MAX as u64 <= KEY_OFFSET, "signers and their keys do not meet");

/// One recorded signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// A key signed.
    Leaf(Leaf),
    /// An account called the service.
    Caller {
        /// The account.
        account: Address,
        /// How often its key had been changed.
        rotation: u64,
        /// Whether code called, and not the sender of a user transaction itself.
        is_nested: bool,
    },
}

impl Signer {
    /// As answers show it: a key's bytes, or `04 ‖ account`.
    pub fn shown(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(33);
        match self {
            Self::Leaf(leaf) => leaf.write(&mut out),
            Self::Caller { account, .. } => {
                out.push(CALLER);
                out.extend_from_slice(account.as_slice());
            }
        }
        out
    }

    fn to_words(self) -> (U256, Option<U256>) {
        let mut word = [0u8; 32];
        let key = match self {
            Self::Leaf(Leaf::Secp256k1(address)) => {
                word[0] = SECP256K1;
                word[12..].copy_from_slice(address.as_slice());
                None
            }
            Self::Leaf(Leaf::Ed25519(key)) => {
                word[0] = ED25519;
                Some(key.into())
            }
            Self::Caller { account, rotation, is_nested } => {
                (word[0], word[1]) = (CALLER, is_nested.into());
                word[4..12].copy_from_slice(&rotation.to_be_bytes());
                word[12..].copy_from_slice(account.as_slice());
                None
            }
        };
        (U256::from_be_bytes(word), key)
    }

    /// Reads one; `None` for words that no signer has.
    fn from_words(word: U256, key: impl FnOnce() -> U256) -> Option<Self> {
        let bytes = word.to_be_bytes::<32>();
        let address = Address::from_slice(&bytes[12..]);
        let signer = match bytes[0] {
            SECP256K1 => Self::Leaf(Leaf::Secp256k1(address)),
            ED25519 => Self::Leaf(Leaf::Ed25519(B256::from(key()))),
            CALLER => Self::Caller {
                account: address,
                rotation: u64::from_be_bytes(bytes[4..12].try_into().expect("8 bytes")),
                is_nested: bytes[1] == 1,
            },
            _ => return None,
        };
        (signer.to_words().0 == word).then_some(signer)
    }

    /// Whether a recorded signature makes this one superfluous.
    fn is_covered_by(&self, recorded: &Self) -> bool {
        match (self, recorded) {
            (Self::Leaf(new), Self::Leaf(old)) => new == old,
            (
                Self::Caller { account, rotation, is_nested },
                Self::Caller { account: known, rotation: then, is_nested: was_nested },
            ) => account == known && rotation == then && (*is_nested || !was_nested),
            _ => false,
        }
    }

    /// Whether this one takes the place of a recorded one: the same account called again, with another key or directly.
    fn replaces(&self, recorded: &Self) -> bool {
        matches!((self, recorded), (Self::Caller { account, .. }, Self::Caller { account: known, .. }) if account == known)
    }
}

/// The two slots of the n-th signer of a schedule: itself, and the key of an Ed25519 leaf.
pub fn signer_slots(id: ScheduleId, n: u64) -> [U256; 2] {
    [n, n + KEY_OFFSET].map(|place| U256::from_limbs([place, id.0, SIGNER_KIND, 0]))
}

/// All recorded signatures of a schedule. One that cannot be read counts for nothing.
pub fn signers<L: Ledger>(
    ledger: &mut L,
    id: ScheduleId,
    tally: &Tally,
) -> Result<Vec<Option<Signer>>, L::Error> {
    (0..bounded(tally)).map(|n| signer(|slot| ledger.load(slot), id, n)).collect()
}

/// The same, from a state.
pub fn read_signers(state: &dyn StateRead, id: ScheduleId) -> Result<Vec<Signer>, StateReadError> {
    let count = bounded(&Tally::read(state, id)?);
    (0..count).filter_map(|n| signer(|slot| read_slot(state, slot), id, n).transpose()).collect()
}

fn signer<E>(
    mut load: impl FnMut(U256) -> Result<U256, E>,
    id: ScheduleId,
    n: u64,
) -> Result<Option<Signer>, E> {
    let [slot, key_slot] = signer_slots(id, n);
    let word = load(slot)?;
    let is_keyed = word.to_be_bytes::<32>()[0] == ED25519;
    let key = if is_keyed { load(key_slot)? } else { U256::ZERO };
    Ok(Signer::from_words(word, || key))
}

/// What became of a signature that is to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is recorded now.
    New,
    /// It was there already.
    Known,
    /// There is no room.
    Full,
}

/// Records a signature, of which there may be `most`. `recorded` and the tally follow; the caller stores the tally.
pub fn add<L: Ledger>(
    ledger: &mut L,
    id: ScheduleId,
    tally: &mut Tally,
    recorded: &mut Vec<Option<Signer>>,
    new: Signer,
    most: usize,
) -> Result<Added, L::Error> {
    if recorded.iter().flatten().any(|old| new.is_covered_by(old)) {
        return Ok(Added::Known);
    }
    let place = recorded.iter().position(|old| old.is_some_and(|old| new.replaces(&old)));
    let place = place.unwrap_or(recorded.len());
    if place >= most.min(SIGNED_SIGNERS_MAX) {
        return Ok(Added::Full);
    }
    let [slot, key_slot] = signer_slots(id, place as u64);
    let (word, key) = new.to_words();
    ledger.store(slot, word)?;
    if let Some(key) = key {
        ledger.store(key_slot, key)?;
    }
    if place == recorded.len() {
        recorded.push(Some(new));
        tally.signers = recorded.len() as u64;
    } else {
        recorded[place] = Some(new);
    }
    Ok(Added::New)
}

/// Removes all signatures of a schedule and its tally. Returns how many slots it cleared.
pub(crate) fn remove_signers<L: Ledger>(ledger: &mut L, id: ScheduleId) -> Result<u64, L::Error> {
    let tally = Tally::load(ledger, id)?;
    let mut cleared = 1;
    for n in 0..bounded(&tally) {
        let [slot, key_slot] = signer_slots(id, n);
        if ledger.load(slot)?.to_be_bytes::<32>()[0] == ED25519 {
            ledger.store(key_slot, U256::ZERO)?;
            cleared += 1;
        }
        ledger.store(slot, U256::ZERO)?;
        cleared += 1;
    }
    Tally::default().store(ledger, id)?;
    Ok(cleared)
}

/// A damaged count starts no long work.
fn bounded(tally: &Tally) -> u64 {
    tally.signers.min(SIGNED_SIGNERS_MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::MemoryLedger;
    use proptest::prelude::*;

    const ID: ScheduleId = ScheduleId(7);

    fn caller(n: u8, rotation: u64, is_nested: bool) -> Signer {
        Signer::Caller { account: Address::repeat_byte(n), rotation, is_nested }
    }

    fn added(ledger: &mut MemoryLedger, new: Signer) -> bool {
        let Ok(mut tally) = Tally::load(ledger, ID);
        let Ok(mut recorded) = signers(ledger, ID, &tally);
        let Ok(added) = add(ledger, ID, &mut tally, &mut recorded, new, usize::MAX);
        let Ok(()) = tally.store(ledger, ID);
        let Ok(stored) = signers(ledger, ID, &tally);
        assert_eq!(stored, recorded);
        added == Added::New
    }

    /// HEDERA-01: a leaf counts once however often it signs.
    #[test]
    fn hedera_01_a_signer_is_recorded_once() {
        let mut ledger = MemoryLedger::default();
        let leaf = Signer::Leaf(Leaf::Ed25519(B256::repeat_byte(3)));
        let other = Signer::Leaf(Leaf::Secp256k1(Address::repeat_byte(3)));
        assert_eq!(
            [leaf, leaf, other, other, leaf].map(|new| added(&mut ledger, new)),
            [true, false, true, false, false]
        );
        let Ok(tally) = Tally::load(&mut ledger, ID);
        assert_eq!(tally.signers, 2);
    }

    #[test]
    fn a_direct_call_takes_the_place_of_a_nested_one_and_not_the_reverse() {
        let mut ledger = MemoryLedger::default();
        let calls = [
            (caller(1, 0, true), true),
            (caller(1, 0, true), false),
            (caller(1, 0, false), true),
            (caller(1, 0, true), false),
            (caller(1, 0, false), false),
            (caller(1, 1, true), true),
            (caller(2, 0, true), true),
        ];
        for (call, is_new) in calls {
            assert_eq!(added(&mut ledger, call), is_new, "{call:?}");
        }
        let Ok(tally) = Tally::load(&mut ledger, ID);
        assert_eq!(tally.signers, 2, "one place for each account");
    }

    #[test]
    fn both_sides_of_the_number_of_signers() {
        let mut ledger = MemoryLedger::default();
        let leaf = |n: usize| Signer::Leaf(Leaf::Ed25519(B256::from(U256::from(n + 1))));
        assert!((0..SIGNED_SIGNERS_MAX).all(|n| added(&mut ledger, leaf(n))));
        assert!(!added(&mut ledger, leaf(SIGNED_SIGNERS_MAX)));
        let Ok(cleared) = remove_signers(&mut ledger, ID);
        assert_eq!((cleared, ledger.slots.len()), (2 * SIGNED_SIGNERS_MAX as u64 + 1, 0), "nothing is left");
    }

    proptest! {
        #[test]
        fn one_signer_has_one_word(bytes: [u8; 32], plausible: bool) {
            let mut bytes = bytes;
            if plausible {
                bytes[0] %= 5;
                bytes[1] %= 3;
                bytes[2..4].fill(0);
            }
            let (word, key) = (U256::from_be_bytes(bytes), U256::from(5));
            if let Some(signer) = Signer::from_words(word, || key) {
                prop_assert_eq!(signer.to_words().0, word);
            }
        }
    }
}
