//! The encoding of keys in proofs and between peers: the bytes that [`StateKey::hashed`] hashes.

use almanac_primitives::{
    ScheduleId, StateKey,
    codec::{DecodeError, Reader, Writer},
    state::Meta,
};

/// Length of the longest key, a slot.
pub const KEY_BYTES_MAX: usize = 1 + 20 + 32;

/// Writes a key's bytes. The first byte determines the length.
pub fn write(key: &StateKey, out: &mut Writer) {
    key.with_bytes(|bytes| out.raw(bytes));
}

/// Reads a key.
pub fn read(input: &mut Reader<'_>) -> Result<StateKey, DecodeError> {
    Ok(match input.u8("kind of key")? {
        0 => StateKey::Account(input.address("address")?),
        1 => StateKey::Slot(input.address("address")?, input.u256("slot")?),
        2 => StateKey::Code(input.b256("code hash")?),
        3 => StateKey::Body(ScheduleId(input.u64("schedule id")?)),
        4 => StateKey::Calendar(input.u64("calendar node")?),
        5 => StateKey::Meta(read_meta(input)?),
        6 => StateKey::Nonce(input.address("address")?, input.u64("nonce")?),
        7 => StateKey::NonceLog(input.u64("second")?, input.u64("part")?),
        8 => StateKey::AccountKey(input.address("address")?),
        given => return Err(DecodeError::UnknownValue { what: "kind of key", given: given.into() }),
    })
}

fn read_meta(input: &mut Reader<'_>) -> Result<Meta, DecodeError> {
    match input.u8("fact")? {
        0 => Ok(Meta::Genesis),
        1 => Ok(Meta::NonceSweep),
        given => Err(DecodeError::UnknownValue { what: "fact", given: given.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Address, B256, U256, keccak256};
    use proptest::prelude::*;

    fn encode(key: &StateKey) -> Vec<u8> {
        let mut out = Writer::default();
        write(key, &mut out);
        out.finish()
    }

    fn decode(encoded: &[u8]) -> Result<StateKey, DecodeError> {
        let mut input = Reader::new(encoded);
        let key = read(&mut input)?;
        input.finish("key")?;
        Ok(key)
    }

    fn keys() -> impl Strategy<Value = StateKey> {
        let address = any::<[u8; 20]>().prop_map(Address::from);
        let hash = any::<[u8; 32]>().prop_map(B256::from);
        prop_oneof![
            address.clone().prop_map(StateKey::Account),
            (address, any::<[u8; 32]>())
                .prop_map(|(address, slot)| StateKey::Slot(address, U256::from_be_bytes(slot))),
            hash.prop_map(StateKey::Code),
            any::<u64>().prop_map(|id| StateKey::Body(ScheduleId(id))),
            any::<u64>().prop_map(StateKey::Calendar),
            Just(StateKey::Meta(Meta::Genesis)),
            Just(StateKey::Meta(Meta::NonceSweep)),
            (any::<[u8; 20]>(), any::<u64>()).prop_map(|(a, n)| StateKey::Nonce(a.into(), n)),
            (any::<u64>(), any::<u64>()).prop_map(|(second, part)| StateKey::NonceLog(second, part)),
            any::<[u8; 20]>().prop_map(|a| StateKey::AccountKey(a.into())),
        ]
    }

    proptest! {
        /// Otherwise a proof could name one value and lead to another.
        #[test]
        fn the_encoding_is_what_the_store_hashes(key in keys()) {
            let encoded = encode(&key);
            prop_assert_eq!(keccak256(&encoded), key.hashed());
            prop_assert_eq!(decode(&encoded), Ok(key));
            prop_assert!(encoded.len() <= KEY_BYTES_MAX);
        }

        #[test]
        fn one_key_has_one_encoding(kind in 0..10u8, rest in proptest::collection::vec(any::<u8>(), 0..60)) {
            let encoded = [&[kind][..], &rest].concat();
            if let Ok(key) = decode(&encoded) {
                prop_assert_eq!(encode(&key), encoded);
            }
        }
    }

    #[test]
    fn kinds_that_do_not_exist_are_refused() {
        let unknown = |what, given| Err(DecodeError::UnknownValue { what, given });
        assert_eq!(decode(&[5, 0]), Ok(StateKey::Meta(Meta::Genesis)));
        assert_eq!(decode(&[5, 1]), Ok(StateKey::Meta(Meta::NonceSweep)));
        assert_eq!(decode(&[5, 2]), unknown("fact", 2));
        assert_eq!(decode(&[9, 0]), unknown("kind of key", 9));
        assert_eq!(decode(&[255]), unknown("kind of key", 255));
    }
}
