//! Signed transactions against forgery: one payment has one encoding, one hash and one sender.

use crate::samples::{
    ALICE, BOB, CAROL, Draw, Kind, Unsigned, authorise, encoded_with, signed, signed_by, unsigned,
};
use alloy_consensus::{Transaction as _, crypto::SECP256K1N_HALF, transaction::SignerRecoverable};
use alloy_eips::{eip2718::Encodable2718, eip7702::SignedAuthorization};
use alloy_primitives::{Address, Bytes, Signature, U256, keccak256, uint};
use alloy_rlp::{Header, PayloadView};
use almanac_primitives::{
    GasPrice, RecoveredTransaction, UserTransaction,
    params::TRANSACTION_BYTES_MAX,
    transaction::{RecoverError, SignatureError, TransactionDecodeError as Refused},
};
use proptest::prelude::*;

/// Order of the group that signatures live in.
const N: U256 = uint!(0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141_U256);

fn decode(encoded: &[u8]) -> Result<UserTransaction, Refused> {
    UserTransaction::decode(encoded)
}

fn sender_of(encoded: &[u8]) -> Result<Address, RecoverError> {
    RecoveredTransaction::recover(decode(encoded).unwrap(), &almanac_primitives::Chain::default())
        .map(|recovered| recovered.sender())
}

#[track_caller]
fn assert_malformed(encoded: &[u8], what: &str) {
    let result = decode(encoded);
    assert!(matches!(result, Err(Refused::Malformed { .. } | Refused::NotCanonical)), "{what}: {result:?}");
}

// ---- What is right ----

#[test]
fn every_kind_survives_its_encoding() {
    for kind in Kind::ALL {
        let transaction = signed(kind);
        let again = decode(transaction.encoded()).unwrap();
        assert_eq!(again, transaction, "{kind:?}");
        assert_eq!(again.envelope().unwrap().encoded_2718(), transaction.encoded().to_vec(), "{kind:?}");
        assert_eq!(transaction.hash(), keccak256(transaction.encoded()), "{kind:?}");
        assert_eq!(transaction.hash(), *transaction.envelope().unwrap().tx_hash(), "{kind:?}");
        assert_eq!(transaction.nonce(), 9);
    }
}

#[test]
fn the_sender_is_who_signed() {
    for kind in Kind::ALL {
        for key in [ALICE, BOB, CAROL] {
            let recovered = RecoveredTransaction::recover(
                signed_by(unsigned(kind), key),
                &almanac_primitives::Chain::default(),
            )
            .unwrap();
            assert_eq!(recovered.sender(), key.address, "{kind:?}");
            assert_eq!(recovered.hash(), recovered.transaction().hash());
            let authorities: &[_] =
                if kind == Kind::Eip7702 { &[Some(BOB.address), Some(CAROL.address)] } else { &[] };
            assert_eq!(recovered.authorities(), authorities, "{kind:?}");
        }
    }
}

/// A signature is over every field: whichever bit is changed, the sender is no longer Alice.
#[test]
fn no_bit_can_be_changed_in_her_name() {
    for kind in Kind::ALL {
        let encoded = signed(kind).encoded().to_vec();
        let mut accepted = 0;
        for bit in 0..encoded.len() * 8 {
            let mut changed = encoded.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            if let Ok(transaction) = decode(&changed) {
                accepted += 1;
                let sender =
                    RecoveredTransaction::recover(transaction, &almanac_primitives::Chain::default())
                        .map(|recovered| recovered.sender());
                assert_ne!(sender, Ok(ALICE.address), "{kind:?}, bit {bit}");
            }
        }
        assert!(accepted > 500, "{kind:?}: {accepted} changes decode, so the test looks at something");
    }
}

#[test]
fn a_legacy_transaction_may_lack_a_chain_id() {
    let Unsigned::Legacy(mut legacy) = unsigned(Kind::Legacy) else { unreachable!() };
    legacy.chain_id = None;
    let transaction = signed_by(Unsigned::Legacy(legacy), ALICE);
    assert_eq!(transaction.envelope().unwrap().chain_id(), None);
    assert_eq!(sender_of(transaction.encoded()), Ok(ALICE.address));
}

// ---- Types ----

#[test]
fn blobs_are_refused_by_name() {
    let body = signed(Kind::Eip1559).encoded().slice(1..);
    for encoded in [vec![3], [&[3], &body[..]].concat()] {
        assert_eq!(decode(&encoded), Err(Refused::BlobUnsupported));
    }
    assert!(Refused::BlobUnsupported.to_string().contains("blob transactions (type 3) are not supported"));
}

#[test]
fn unknown_types_are_refused_by_name() {
    let body = signed(Kind::Eip1559).encoded().slice(1..);
    for given in (0..=0xbf).filter(|given| ![1, 2, 3, 4, 0x72, 0x7d].contains(given)) {
        for encoded in [vec![given], [&[given], &body[..]].concat()] {
            assert_eq!(decode(&encoded), Err(Refused::UnknownType { given }));
        }
    }
    for known in [1, 2, 4, 0x72, 0xc0, 0xf8, 0xff] {
        assert!(matches!(decode(&[known]), Err(Refused::Malformed { .. })), "{known}");
    }
}

/// What a peer-to-peer message or a list of transactions in RLP would hold: the envelope behind a length.
#[test]
fn an_envelope_inside_a_string_is_refused() {
    for kind in [Kind::Eip2930, Kind::Eip1559, Kind::Eip7702] {
        let wrapped = alloy_rlp::encode(signed(kind).encoded());
        assert_eq!(decode(&wrapped), Err(Refused::UnknownType { given: wrapped[0] }), "{kind:?}");
    }
}

#[test]
fn a_body_of_another_type_is_refused() {
    for (kind, other) in [(Kind::Eip2930, 2), (Kind::Eip1559, 4), (Kind::Eip7702, 1)] {
        let mut encoded = signed(kind).encoded().to_vec();
        encoded[0] = other;
        assert_malformed(&encoded, "type byte changed");
    }
}

// ---- Sizes ----

#[test]
fn nothing_is_no_transaction() {
    assert_eq!(decode(&[]), Err(Refused::Empty));
}

#[test]
fn both_sides_of_the_size_limit() {
    for kind in Kind::ALL {
        let largest = of_size(kind, TRANSACTION_BYTES_MAX);
        assert_eq!(sender_of(&largest), Ok(ALICE.address), "{kind:?}");
        let given = TRANSACTION_BYTES_MAX + 1;
        let refused = Refused::TooLarge { given, max: TRANSACTION_BYTES_MAX };
        assert_eq!(decode(&of_size(kind, given)), Err(refused), "{kind:?}");
    }
    // The limit comes before any look at the content.
    let garbage = vec![0xff; TRANSACTION_BYTES_MAX + 1];
    assert!(matches!(decode(&garbage), Err(Refused::TooLarge { .. })));
    assert!(matches!(decode(&garbage[1..]), Err(Refused::Malformed { .. })));
}

/// A transaction signed by Alice whose encoding has exactly this many bytes.
fn of_size(kind: Kind, bytes: usize) -> Vec<u8> {
    let mut input_bytes = bytes - 500;
    // Signatures are not all of one length: adjust until it fits.
    loop {
        let mut transaction = unsigned(kind);
        *input_of(&mut transaction) = Bytes::from(vec![0x5a; input_bytes]);
        let signature = crate::samples::signature(&transaction, ALICE);
        let encoded = encoded_with(transaction, signature);
        if encoded.len() == bytes {
            return encoded;
        }
        input_bytes = input_bytes + bytes - encoded.len();
    }
}

fn input_of(transaction: &mut Unsigned) -> &mut Bytes {
    match transaction {
        Unsigned::Legacy(tx) => &mut tx.input,
        Unsigned::Eip2930(tx) => &mut tx.input,
        Unsigned::Eip1559(tx) => &mut tx.input,
        Unsigned::Eip7702(tx) => &mut tx.input,
        Unsigned::Eip4844(_) => unreachable!("there are no blobs"),
    }
}

#[test]
fn nothing_may_follow_or_be_missing() {
    for kind in Kind::ALL {
        let encoded = signed(kind).encoded().to_vec();
        for extra in [0x00, 0x80, 0xc0, 0xff] {
            assert_malformed(&[&encoded[..], &[extra]].concat(), "a byte follows");
        }
        assert_malformed(&encoded.repeat(2), "the same again follows");
        for length in 1..encoded.len() {
            assert_malformed(&encoded[..length], "cut off");
        }
    }
}

// ---- RLP ----

/// An RLP item, to be put together again with one thing wrong.
#[derive(Clone, Debug)]
enum Item {
    Text(Vec<u8>),
    List(Vec<Item>),
}

/// What can be wrong with an item though a lax reader understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// A length of its own, in one byte, though the length would fit the first byte.
    LongLength,
    /// A length with a zero in front.
    PaddedLength,
    /// A number with a zero in front.
    LeadingZero,
    /// A single byte below 0x80 behind a length.
    BoxedByte,
}

impl Flaw {
    const ALL: [Self; 4] = [Self::LongLength, Self::PaddedLength, Self::LeadingZero, Self::BoxedByte];

    /// The item with this flaw, or `None` where it cannot have it.
    fn apply(self, item: &Item) -> Option<Vec<u8>> {
        let (payload, base) = (item.payload(), if matches!(item, Item::List(_)) { 0xf7 } else { 0xb7 });
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let short: Vec<u8> = length.iter().copied().skip_while(|byte| *byte == 0).collect();
        match (self, item) {
            (Self::LongLength, _) if payload.len() < 56 => {
                Some([&[base + 1, length[3]], &payload[..]].concat())
            }
            (Self::PaddedLength, _) if payload.len() >= 56 => {
                Some([&[base + 1 + u8::try_from(short.len()).unwrap(), 0], &short[..], &payload].concat())
            }
            (Self::LeadingZero, Item::Text(bytes)) if bytes.is_empty() => Some(vec![0]),
            (Self::LeadingZero, Item::Text(bytes)) => Some(Item::Text([&[0], &bytes[..]].concat()).encode()),
            (Self::BoxedByte, Item::Text(bytes)) if bytes.len() == 1 && bytes[0] < 0x80 => {
                Some(vec![0x81, bytes[0]])
            }
            _ => None,
        }
    }
}

impl Item {
    fn parse(encoded: &[u8]) -> Self {
        match Header::decode_raw(&mut &*encoded).unwrap() {
            PayloadView::String(bytes) => Self::Text(bytes.to_vec()),
            PayloadView::List(items) => Self::List(items.into_iter().map(Self::parse).collect()),
        }
    }

    fn payload(&self) -> Vec<u8> {
        match self {
            Self::Text(bytes) => bytes.clone(),
            Self::List(items) => items.iter().flat_map(Self::encode).collect(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let payload = self.payload();
        match self {
            Self::Text(bytes) => alloy_rlp::encode(&bytes[..]),
            Self::List(_) => {
                let mut out = vec![];
                Header { list: true, payload_length: payload.len() }.encode(&mut out);
                [out, payload].concat()
            }
        }
    }

    /// Every way to put this item together with one flaw somewhere in it.
    fn flawed(&self) -> Vec<(Flaw, Vec<u8>)> {
        let mut ways: Vec<_> =
            Flaw::ALL.into_iter().filter_map(|flaw| Some((flaw, flaw.apply(self)?))).collect();
        let Self::List(items) = self else { return ways };
        for (index, item) in items.iter().enumerate() {
            for (flaw, replacement) in item.flawed() {
                let mut parts: Vec<_> = items.iter().map(Self::encode).collect();
                parts[index] = replacement;
                ways.push((flaw, list_of(&parts)));
            }
        }
        ways
    }
}

fn list_of(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![];
    Header { list: true, payload_length: parts.iter().map(Vec::len).sum() }.encode(&mut out);
    [out, parts.concat()].concat()
}

/// The type byte, if there is one, and the RLP after it.
fn split(kind: Kind, encoded: &[u8]) -> (Vec<u8>, Item) {
    let type_bytes = usize::from(kind != Kind::Legacy);
    (encoded[..type_bytes].to_vec(), Item::parse(&encoded[type_bytes..]))
}

/// The fields of a transaction signed by Alice, each in RLP.
fn fields(kind: Kind) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (head, Item::List(items)) = split(kind, signed(kind).encoded()) else { unreachable!() };
    (head, items.iter().map(Item::encode).collect())
}

#[test]
fn there_is_one_way_to_write_each_item() {
    for kind in Kind::ALL {
        let mut transaction = unsigned(kind);
        *input_of(&mut transaction) = Bytes::new();
        let encoded = signed_by(transaction, ALICE).encoded().to_vec();
        let (head, item) = split(kind, &encoded);
        assert_eq!([&head[..], &item.encode()].concat(), encoded, "the pieces fit");

        let flawed = item.flawed();
        for wanted in Flaw::ALL {
            assert!(flawed.iter().any(|(flaw, _)| *flaw == wanted), "{kind:?} can have {wanted:?}");
        }
        let mut calldata_changed = 0;
        for (flaw, body) in flawed {
            let changed = [&head[..], &body].concat();
            // A zero in front of calldata is no flaw: it makes another transaction, properly written.
            if decode(&changed).is_ok_and(|transaction| transaction.envelope().unwrap().input()[..] == [0]) {
                calldata_changed += 1;
                assert_ne!(sender_of(&changed), Ok(ALICE.address));
                continue;
            }
            assert_malformed(
                &changed,
                &format!("{kind:?} {flaw:?} {}", alloy_primitives::hex::encode(&body)),
            );
        }
        assert_eq!(calldata_changed, 1, "{kind:?}");
    }
}

#[test]
fn lists_have_exactly_their_fields() {
    for kind in Kind::ALL {
        let (head, fields) = fields(kind);
        let with = |fields: &[Vec<u8>]| [&head[..], &list_of(fields)].concat();
        assert!(decode(&with(&fields)).is_ok(), "{kind:?}");
        for index in 0..fields.len() {
            let mut without = fields.clone();
            without.remove(index);
            assert_malformed(&with(&without), &format!("{kind:?} without field {index}"));
            for extra in [0x80, 0x01, 0xc0] {
                let mut more = fields.clone();
                more.insert(index, vec![extra]);
                assert_malformed(&with(&more), &format!("{kind:?} with {extra} before field {index}"));
            }
            let mut nested = fields.clone();
            nested[index] = list_of(&fields[index..=index]);
            assert_malformed(&with(&nested), &format!("{kind:?} with field {index} in a list"));
        }
        let more = [&fields[..], &[vec![0x80]]].concat();
        assert_malformed(&with(&more), &format!("{kind:?} with a field at the end"));
    }
}

#[test]
fn a_list_covers_its_fields_and_no_more() {
    for kind in Kind::ALL {
        let (head, fields) = fields(kind);
        let payload = fields.concat();
        for length in [payload.len() - 1, payload.len() + 1, 0, usize::from(u16::MAX), 1 << 40] {
            let mut out = head.clone();
            Header { list: true, payload_length: length }.encode(&mut out);
            assert_malformed(&[out, payload.clone()].concat(), &format!("{kind:?} of length {length}"));
        }
        let mut text = head.clone();
        Header { list: false, payload_length: payload.len() }.encode(&mut text);
        let as_text = [text, payload].concat();
        assert!(decode(&as_text).is_err(), "{kind:?} as a string");
    }
}

/// The largest value of each number, and the first that is too large.
#[test]
fn numbers_have_their_width() {
    // (kind, field, bytes that it has room for)
    let widths: [(Kind, usize, usize); 22] = [
        (Kind::Legacy, 0, 8),
        (Kind::Legacy, 1, 16),
        (Kind::Legacy, 2, 8),
        (Kind::Legacy, 4, 32),
        (Kind::Legacy, 7, 32),
        (Kind::Legacy, 8, 32),
        (Kind::Eip2930, 0, 8),
        (Kind::Eip2930, 1, 8),
        (Kind::Eip2930, 2, 16),
        (Kind::Eip2930, 3, 8),
        (Kind::Eip2930, 5, 32),
        (Kind::Eip1559, 0, 8),
        (Kind::Eip1559, 1, 8),
        (Kind::Eip1559, 2, 16),
        (Kind::Eip1559, 3, 16),
        (Kind::Eip1559, 4, 8),
        (Kind::Eip1559, 6, 32),
        (Kind::Eip7702, 0, 8),
        (Kind::Eip7702, 1, 8),
        (Kind::Eip7702, 2, 16),
        (Kind::Eip7702, 3, 16),
        (Kind::Eip7702, 4, 8),
    ];
    for (kind, field, bytes) in widths {
        let with = |number: Vec<u8>| {
            let (head, mut fields) = fields(kind);
            fields[field] = alloy_rlp::encode(&number[..]);
            [head, list_of(&fields)].concat()
        };
        assert!(decode(&with(vec![0xff; bytes])).is_ok(), "{kind:?} field {field}");
        let one_more = [vec![1], vec![0; bytes]].concat();
        assert_malformed(&with(one_more), &format!("{kind:?} field {field}"));
    }
}

#[test]
fn only_an_address_or_nothing_is_a_recipient() {
    for (kind, field) in [(Kind::Legacy, 3), (Kind::Eip2930, 4), (Kind::Eip1559, 5), (Kind::Eip7702, 5)] {
        let with = |to: &[u8]| {
            let (head, mut fields) = fields(kind);
            fields[field] = alloy_rlp::encode(to);
            [head, list_of(&fields)].concat()
        };
        assert!(decode(&with(&[7; 20])).is_ok(), "{kind:?}");
        assert_malformed(&with(&[7; 19]), "19 bytes");
        assert_malformed(&with(&[7; 21]), "21 bytes");
        assert_malformed(&with(&[7; 1]), "one byte");
        // EIP-7702 transactions create no contracts.
        assert_eq!(decode(&with(&[])).is_ok(), kind != Kind::Eip7702, "{kind:?}");
    }
}

// ---- Signatures ----

fn with_signature(kind: Kind, change: impl FnOnce(Signature) -> Signature) -> Vec<u8> {
    let unsigned = unsigned(kind);
    let signature = crate::samples::signature(&unsigned, ALICE);
    encoded_with(unsigned, change(signature))
}

/// EIP-2: (r, n − s) with the other parity is a second signature over the same message by the same key. Were
/// it taken, anyone could give a pending transaction another hash.
#[test]
fn the_other_half_of_a_signature_is_refused() {
    for kind in Kind::ALL {
        let malleated = with_signature(kind, |good| Signature::new(good.r(), N - good.s(), !good.v()));
        let transaction = decode(&malleated).unwrap();
        let unchecked = transaction.envelope().unwrap().recover_signer_unchecked().unwrap();
        assert_eq!(unchecked, ALICE.address, "{kind:?}: without the rule it would pass");

        let hash = transaction.hash();
        assert_ne!(hash, signed(kind).hash());
        let error =
            RecoveredTransaction::recover(transaction, &almanac_primitives::Chain::default()).unwrap_err();
        assert_eq!(error, SignatureError { hash }.into(), "{kind:?}");
        assert!(error.to_string().contains("low-s"), "{error}");
    }
}

#[test]
fn both_sides_of_low_s() {
    assert_eq!(SECP256K1N_HALF, N / U256::from(2));
    for kind in Kind::ALL {
        let with_s = |s: U256| with_signature(kind, |good| Signature::new(good.r(), s, good.v()));
        assert!(sender_of(&with_s(U256::from(1))).is_ok(), "{kind:?}");
        assert!(sender_of(&with_s(SECP256K1N_HALF)).is_ok(), "{kind:?}");
        for s in
            [SECP256K1N_HALF + U256::from(1), N - U256::from(1), N, N + U256::from(1), U256::MAX, U256::ZERO]
        {
            assert!(sender_of(&with_s(s)).is_err(), "{kind:?} s = {s:#x}");
        }
    }
}

#[test]
fn r_is_a_scalar_and_a_point() {
    for kind in Kind::ALL {
        let with_r = |r: U256| with_signature(kind, |good| Signature::new(r, good.s(), good.v()));
        for r in [U256::ZERO, N, N + U256::from(1), U256::MAX] {
            assert!(sender_of(&with_r(r)).is_err(), "{kind:?} r = {r:#x}");
        }
        // 1 is the x of a point, 5 is not.
        assert!(sender_of(&with_r(U256::from(1))).is_ok(), "{kind:?}");
        assert!(sender_of(&with_r(U256::from(5))).is_err(), "{kind:?}");
    }
}

#[test]
fn the_other_parity_is_another_sender() {
    for kind in Kind::ALL {
        let flipped = with_signature(kind, |good| Signature::new(good.r(), good.s(), !good.v()));
        assert_ne!(sender_of(&flipped).ok(), Some(ALICE.address), "{kind:?}");
    }
}

fn with_parity(kind: Kind, parity: u128) -> Vec<u8> {
    let (head, mut fields) = fields(kind);
    let position = fields.len() - 3;
    fields[position] = alloy_rlp::encode(parity);
    [head, list_of(&fields)].concat()
}

#[test]
fn legacy_parity_is_27_28_or_of_a_chain() {
    let largest = 35 + 2 * u128::from(u64::MAX) + 1;
    for good in [27, 28, 35, 36, 37, 38, largest - 1, largest] {
        assert!(decode(&with_parity(Kind::Legacy, good)).is_ok(), "v = {good}");
    }
    for bad in (0..27).chain(29..35).chain([largest + 1, u128::MAX]) {
        assert_malformed(&with_parity(Kind::Legacy, bad), &format!("v = {bad}"));
    }
}

#[test]
fn typed_parity_is_0_or_1() {
    for kind in [Kind::Eip2930, Kind::Eip1559, Kind::Eip7702] {
        for good in [0, 1] {
            assert!(decode(&with_parity(kind, good)).is_ok(), "{kind:?} {good}");
        }
        for bad in [2, 3, 26, 27, 28, 35, 36, 127, 128, 255, 256, u128::MAX] {
            assert_malformed(&with_parity(kind, bad), &format!("{kind:?} parity {bad}"));
        }
    }
}

/// A signature for one chain is not one for another.
#[test]
fn the_chain_id_is_signed() {
    for kind in Kind::ALL {
        let mut elsewhere = unsigned(kind);
        let chain_id = crate::samples::CHAIN_ID + 1;
        match &mut elsewhere {
            Unsigned::Legacy(tx) => tx.chain_id = Some(chain_id),
            Unsigned::Eip2930(tx) => tx.chain_id = chain_id,
            Unsigned::Eip1559(tx) => tx.chain_id = chain_id,
            Unsigned::Eip7702(tx) => tx.chain_id = chain_id,
            Unsigned::Eip4844(_) => unreachable!("there are no blobs"),
        }
        let signature_here = crate::samples::signature(&unsigned(kind), ALICE);
        assert_ne!(sender_of(&encoded_with(elsewhere, signature_here)).ok(), Some(ALICE.address), "{kind:?}");
    }
}

// ---- EIP-7702 ----

/// The authorities of a transaction by Alice with these authorisations, which stands in any case.
fn authorities(list: Vec<SignedAuthorization>) -> Vec<Option<Address>> {
    let Unsigned::Eip7702(mut transaction) = unsigned(Kind::Eip7702) else { unreachable!() };
    transaction.authorization_list = list;
    let recovered = RecoveredTransaction::recover(
        signed_by(Unsigned::Eip7702(transaction), ALICE),
        &almanac_primitives::Chain::default(),
    )
    .unwrap();
    assert_eq!(recovered.sender(), ALICE.address);
    recovered.authorities().to_vec()
}

#[test]
fn a_bad_authorisation_is_none_and_the_transaction_stands() {
    let good = authorise(BOB, 1);
    let resigned =
        |parity: u8, r: U256, s: U256| SignedAuthorization::new_unchecked(good.inner().clone(), parity, r, s);
    let (parity, r, s) = (good.y_parity(), good.r(), good.s());
    let bad = [
        ("high s", resigned(1 - parity, r, N - s)),
        ("parity 2", resigned(2, r, s)),
        ("parity 27", resigned(27, r, s)),
        ("parity 255", resigned(255, r, s)),
        ("r = 0", resigned(parity, U256::ZERO, s)),
        ("r = n", resigned(parity, N, s)),
        ("r is no point", resigned(parity, U256::from(5), s)),
        ("s = 0", resigned(parity, r, U256::ZERO)),
        ("s = n", resigned(parity, r, N)),
        ("s = max", resigned(parity, r, U256::MAX)),
    ];
    for (what, bad) in &bad {
        let list = vec![authorise(CAROL, 0), bad.clone(), good.clone()];
        assert_eq!(authorities(list), [Some(CAROL.address), None, Some(BOB.address)], "{what}");
    }
    let all_bad = bad.map(|(_, bad)| bad).to_vec();
    assert_eq!(authorities(all_bad.clone()), vec![None; all_bad.len()]);
    assert_eq!(authorities(vec![]), []);
}

#[test]
fn an_authorisation_is_for_what_it_says() {
    let good = authorise(BOB, 1);
    let mut other = good.inner().clone();
    other.nonce += 1;
    let moved = SignedAuthorization::new_unchecked(other, good.y_parity(), good.r(), good.s());
    assert_ne!(authorities(vec![moved]), [Some(BOB.address)]);
}

// ---- Prices ----

/// A transaction that pays at most `cap` per gas, and at most `tip` beyond the base fee if it can say so.
fn priced(kind: Kind, cap: u128, tip: u128) -> UserTransaction {
    let mut transaction = unsigned(kind);
    match &mut transaction {
        Unsigned::Legacy(tx) => tx.gas_price = cap,
        Unsigned::Eip2930(tx) => tx.gas_price = cap,
        Unsigned::Eip1559(tx) => (tx.max_fee_per_gas, tx.max_priority_fee_per_gas) = (cap, tip),
        Unsigned::Eip7702(tx) => (tx.max_fee_per_gas, tx.max_priority_fee_per_gas) = (cap, tip),
        Unsigned::Eip4844(_) => unreachable!("there are no blobs"),
    }
    let signature = Signature::new(U256::from(1), U256::from(1), false);
    decode(&encoded_with(transaction, signature)).unwrap()
}

/// (tip, price) at a base fee.
fn pays(transaction: &UserTransaction, base_fee: u128) -> Option<(u128, u128)> {
    let (tip, price) = (transaction.tip_at(GasPrice(base_fee)), transaction.price_at(GasPrice(base_fee)));
    assert_eq!(tip.is_some(), price.is_some());
    Some((tip?.0, price?.0))
}

#[test]
fn one_price_pays_all_of_it() {
    for kind in [Kind::Legacy, Kind::Eip2930] {
        let transaction = priced(kind, 100, 0);
        assert_eq!(transaction.fee_cap(), GasPrice(100));
        assert_eq!(pays(&transaction, 0), Some((100, 100)), "{kind:?}");
        assert_eq!(pays(&transaction, 99), Some((1, 100)), "{kind:?}");
        assert_eq!(pays(&transaction, 100), Some((0, 100)), "{kind:?}");
        assert_eq!(pays(&transaction, 101), None, "{kind:?}");
    }
}

#[test]
fn a_cap_and_a_tip_pay_the_smaller() {
    for kind in [Kind::Eip1559, Kind::Eip7702] {
        let transaction = priced(kind, 100, 10);
        assert_eq!(transaction.fee_cap(), GasPrice(100));
        assert_eq!(pays(&transaction, 0), Some((10, 10)), "{kind:?}");
        assert_eq!(pays(&transaction, 89), Some((10, 99)), "{kind:?}");
        assert_eq!(pays(&transaction, 90), Some((10, 100)), "{kind:?}");
        assert_eq!(pays(&transaction, 91), Some((9, 100)), "{kind:?}");
        assert_eq!(pays(&transaction, 100), Some((0, 100)), "{kind:?}");
        assert_eq!(pays(&transaction, 101), None, "{kind:?}");
        // A tip above the cap buys no more than the cap.
        assert_eq!(pays(&priced(kind, 100, 1_000), 40), Some((60, 100)), "{kind:?}");
        assert_eq!(pays(&priced(kind, 100, 1_000), 101), None, "{kind:?}");
    }
}

#[test]
fn prices_hold_at_the_extremes() {
    for kind in Kind::ALL {
        let most = priced(kind, u128::MAX, u128::MAX);
        assert_eq!(pays(&most, 0), Some((u128::MAX, u128::MAX)), "{kind:?}");
        assert_eq!(pays(&most, 1), Some((u128::MAX - 1, u128::MAX)), "{kind:?}");
        assert_eq!(pays(&most, u128::MAX), Some((0, u128::MAX)), "{kind:?}");
        let least = priced(kind, 0, u128::MAX);
        assert_eq!(pays(&least, 0), Some((0, 0)), "{kind:?}");
        assert_eq!(pays(&least, 1), None, "{kind:?}");
    }
}

/// A number near one of the places where arithmetic could go wrong, or any other.
fn price() -> impl Strategy<Value = u128> {
    prop_oneof![0..5u128, (u128::MAX - 5)..=u128::MAX, 95..105u128, any::<u128>()]
}

proptest! {
    /// EIP-1559 as it is written, in integers too wide to overflow.
    #[test]
    fn prices_agree_with_the_written_rule(cap in price(), tip in price(), base_fee in price()) {
        for kind in Kind::ALL {
            let (wide_cap, wide_base) = (U256::from(cap), U256::from(base_fee));
            let expected = (wide_cap >= wide_base).then(|| {
                let says_tip = matches!(kind, Kind::Eip1559 | Kind::Eip7702);
                let price = if says_tip { wide_cap.min(wide_base + U256::from(tip)) } else { wide_cap };
                ((price - wide_base).to::<u128>(), price.to::<u128>())
            });
            prop_assert_eq!(pays(&priced(kind, cap, tip), base_fee), expected);
        }
    }
}

/// Recovery of generated transactions, most of whose signatures mean nothing, never panics.
#[test]
fn recovery_never_panics() {
    let mut draw = Draw::new("recovery");
    for _ in 0..2_000 {
        let transaction = draw.transaction();
        let authorisations = transaction.envelope().unwrap().authorization_list().unwrap_or_default().len();
        if let Ok(recovered) =
            RecoveredTransaction::recover(transaction, &almanac_primitives::Chain::default())
        {
            assert_eq!(recovered.authorities().len(), authorisations);
        }
    }
}
