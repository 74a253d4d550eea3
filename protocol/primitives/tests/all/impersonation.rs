//! Transactions in a sender's name: one encoding and one hash each, and never mistaken for a signed one.

use crate::samples::{ALICE, BOB, Kind, encoded_with, impersonated, signature, signed, unsigned};
use alloy_consensus::{TxEip4844, TxLegacy};
use alloy_primitives::{Address, Signature, U256, hex, keccak256};
use almanac_primitives::{
    Block, RecoveredTransaction, UserTransaction,
    params::TRANSACTION_BYTES_MAX,
    transaction::{PLACEHOLDER_SIGNATURE, TransactionDecodeError as Refused, Unsigned},
};

#[test]
fn the_sender_is_who_is_named() {
    for kind in Kind::ALL {
        for sender in [BOB.address, Address::ZERO, Address::repeat_byte(0xff)] {
            let transaction = UserTransaction::impersonate(sender, unsigned(kind)).unwrap();
            assert_eq!(transaction.impersonated(), Some(sender));
            let recovered =
                RecoveredTransaction::recover(transaction, &almanac_primitives::Chain::default()).unwrap();
            assert_eq!(recovered.sender(), sender, "{kind:?}");
            let signed =
                RecoveredTransaction::recover(signed(kind), &almanac_primitives::Chain::default()).unwrap();
            assert_eq!(recovered.authorities(), signed.authorities(), "authorisations are still signed");
        }
        assert_eq!(signed(kind).impersonated(), None);
    }
}

#[test]
fn it_survives_its_encoding_alone_and_in_a_block() {
    for kind in Kind::ALL {
        let transaction = impersonated(kind);
        assert_eq!(UserTransaction::decode(transaction.encoded()), Ok(transaction.clone()));
        assert_eq!(transaction.hash(), keccak256(transaction.encoded()));
        assert_eq!(transaction.hash(), *transaction.envelope().unwrap().tx_hash());
        assert_ne!(transaction.hash(), signed(kind).hash());
        let block = Block { transactions: vec![signed(kind), transaction], ..crate::samples::block() };
        assert_eq!(Block::decode(&block.encode()), Ok(block));
    }
}

/// The bytes put together by hand.
#[test]
fn the_encoding_is_type_sender_and_envelope() {
    let transaction = impersonated(Kind::Legacy);
    let expected = [
        "7d",
        &hex::encode(BOB.address),
        "f83c",         // a list of 60 bytes
        "09",           // nonce
        "8506fc23ac00", // gas price
        "83033450",     // gas limit
        "94",           // to
        &hex::encode(crate::samples::CAROL.address),
        "880de0b6b3a7640000",           // value
        "8d010203042063616c6c64617461", // calldata
        "823ce5",                       // v: 2 × 7777 + 35
        "01",                           // r
        "01",                           // s
    ]
    .concat();
    assert_eq!(hex::encode(transaction.encoded()), expected);
}

/// Whichever bit is changed: another transaction, or none; never two encodings of one.
#[test]
fn no_bit_is_free() {
    for kind in Kind::ALL {
        let transaction = impersonated(kind);
        let encoded = transaction.encoded().to_vec();
        let mut accepted = 0;
        for bit in 0..encoded.len() * 8 {
            let mut changed = encoded.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            if let Ok(other) = UserTransaction::decode(&changed) {
                accepted += 1;
                assert_ne!(other, transaction, "{kind:?}, bit {bit}");
                assert_eq!(other.encoded()[..], changed[..]);
                assert!(other.impersonated().is_some(), "{kind:?}, bit {bit}");
            }
        }
        assert!(accepted > 300, "{kind:?}: {accepted} changes decode, so the test looks at something");
    }
}

#[test]
fn only_the_placeholder_stands_for_a_signature() {
    for kind in Kind::ALL {
        let wrap = |signature: Signature| {
            let inner = encoded_with(unsigned(kind), signature);
            UserTransaction::decode(&[&[0x7d], &BOB.address[..], &inner].concat())
        };
        assert_eq!(wrap(PLACEHOLDER_SIGNATURE), Ok(impersonated(kind)));
        let (one, two) = (U256::from(1), U256::from(2));
        for other in [
            Signature::new(one, one, true),
            Signature::new(two, one, false),
            Signature::new(one, two, false),
            Signature::new(U256::ZERO, U256::ZERO, false),
            signature(&unsigned(kind), ALICE),
            signature(&unsigned(kind), BOB),
        ] {
            assert_eq!(wrap(other), Err(Refused::NotPlaceholder), "{kind:?}");
        }
        // Outside of the wrapping the placeholder is nobody's signature worth having.
        let bare = UserTransaction::decode(&encoded_with(unsigned(kind), PLACEHOLDER_SIGNATURE)).unwrap();
        assert_eq!(bare.impersonated(), None);
        assert_ne!(
            RecoveredTransaction::recover(bare, &almanac_primitives::Chain::default())
                .map(|bare| bare.sender()),
            Ok(BOB.address)
        );
    }
}

#[test]
fn what_is_inside_is_one_of_ethereums_kinds() {
    let wrap = |inner: &[u8]| UserTransaction::decode(&[&[0x7d], &BOB.address[..], inner].concat());
    assert_eq!(wrap(&[]), Err(Refused::Empty));
    assert_eq!(wrap(&[3, 1, 2]), Err(Refused::BlobUnsupported));
    assert_eq!(wrap(&[5, 1, 2]), Err(Refused::UnknownType { given: 5 }));
    let twice = wrap(impersonated(Kind::Legacy).encoded());
    assert_eq!(twice, Err(Refused::UnknownType { given: 0x7d }), "nobody impersonates an impersonator");
    let blob = UserTransaction::impersonate(BOB.address, Unsigned::Eip4844(TxEip4844::default()));
    assert_eq!(blob, Err(Refused::BlobUnsupported));
    let encoded = impersonated(Kind::Eip1559).encoded().to_vec();
    for length in 0..encoded.len() {
        assert!(UserTransaction::decode(&encoded[..length]).is_err(), "{length}");
    }
    assert!(UserTransaction::decode(&[&encoded[..], &[0]].concat()).is_err(), "a byte too many");
}

#[test]
fn both_sides_of_the_size() {
    let with_input = |bytes: usize| {
        let Unsigned::Legacy(tx) = unsigned(Kind::Legacy) else { unreachable!("it is legacy") };
        let input = vec![1; bytes].into();
        UserTransaction::impersonate(BOB.address, TxLegacy { input, ..tx }.into())
    };
    let overhead = with_input(100_000).unwrap().encoded().len() - 100_000;
    let of_size = |size: usize| with_input(size - overhead);
    assert_eq!(of_size(TRANSACTION_BYTES_MAX).unwrap().encoded().len(), TRANSACTION_BYTES_MAX);
    let (given, max) = (TRANSACTION_BYTES_MAX + 1, TRANSACTION_BYTES_MAX);
    assert_eq!(of_size(TRANSACTION_BYTES_MAX + 1), Err(Refused::TooLarge { given, max }));
}
