//! Native transactions: one encoding each, bounds, and digests that EIP-712 tools compute too.

use alloy_consensus::crypto::secp256k1::sign_message;
use alloy_primitives::{Address, B256, Bytes, U256, address, hex, keccak256};
use alloy_sol_types::{Eip712Domain, SolStruct as _, sol};
use almanac_primitives::{
    Chain, NativeCall, NativeTransaction, RecoveredTransaction, ReplayProtector, UserTransaction,
    addresses::ACCOUNTS,
    keys::{Leaf, ProofError, SignatureFault},
    native::{AuthenticatorError, CALLS_MAX, Kind, NATIVE_TYPE, NativeError, Signer},
    transaction::{RecoverError, TransactionDecodeError},
};
use std::borrow::Cow;

pub(crate) const CHAIN: Chain = Chain { id: 31_337, genesis: B256::repeat_byte(0x60) };
const SECRET: B256 = B256::repeat_byte(0x11);
const PAYER_SECRET: B256 = B256::repeat_byte(0x22);

sol! {
    struct Call {
        address to;
        uint256 value;
        bytes data;
    }
    struct Transaction {
        address sender;
        uint8 kind;
        uint64 nonce;
        uint64 expiration;
        bool creation;
        Call[] calls;
        uint64 gasLimit;
        uint128 maxFeePerGas;
        uint128 maxPriorityFeePerGas;
        address feePayer;
    }
    struct PayFee {
        Transaction transaction;
    }
}

fn address_of(secret: B256) -> Address {
    sign_message(secret, B256::ZERO).unwrap().recover_address_from_prehash(&B256::ZERO).unwrap()
}

fn signature(secret: B256, digest: B256) -> Bytes {
    let signature = sign_message(secret, digest).unwrap();
    [&signature.r().to_be_bytes::<32>()[..], &signature.s().to_be_bytes::<32>(), &[u8::from(signature.v())]]
        .concat()
        .into()
}

fn call(byte: u8) -> NativeCall {
    NativeCall {
        to: Some(Address::repeat_byte(byte)),
        value: U256::from(byte),
        input: Bytes::from(vec![byte; usize::from(byte)]),
    }
}

pub(crate) fn unsigned(kind: Kind) -> NativeTransaction {
    NativeTransaction {
        chain_id: CHAIN.id,
        sender: address_of(SECRET),
        kind,
        nonce: 7,
        expiration: 1_700_000_060,
        max_priority_fee_per_gas: 3,
        max_fee_per_gas: 5,
        gas_limit: 100_000,
        calls: vec![call(1), call(2)],
        fee_payer: None,
        signatures: Vec::new(),
        fee_payer_signatures: Vec::new(),
    }
}

pub(crate) fn signed(mut transaction: NativeTransaction) -> NativeTransaction {
    transaction.signatures = vec![signature(SECRET, transaction.signing_hash(&CHAIN))];
    if transaction.fee_payer.is_some() {
        let digest = transaction.fee_payer_signing_hash(&CHAIN);
        transaction.fee_payer_signatures = vec![signature(PAYER_SECRET, digest)];
    }
    transaction
}

pub(crate) fn paid() -> NativeTransaction {
    signed(NativeTransaction { fee_payer: Some(address_of(PAYER_SECRET)), ..unsigned(Kind::Orderless) })
}

pub(crate) fn creation() -> NativeTransaction {
    let init = NativeCall { to: None, value: U256::ZERO, input: Bytes::from_static(b"\x60\x00") };
    signed(NativeTransaction { calls: vec![init], ..unsigned(Kind::Sequence) })
}

fn encode(transaction: NativeTransaction) -> Bytes {
    UserTransaction::native_signed(transaction).unwrap().encoded().clone()
}

fn refusal(transaction: NativeTransaction) -> NativeError {
    match UserTransaction::native_signed(transaction).unwrap_err() {
        TransactionDecodeError::Native(error) => error,
        other => panic!("{other}"),
    }
}

fn typed(transaction: &NativeTransaction) -> Transaction {
    Transaction {
        sender: transaction.sender,
        kind: transaction.kind as u8,
        nonce: transaction.nonce,
        expiration: transaction.expiration,
        creation: transaction.is_create(),
        calls: transaction
            .calls
            .iter()
            .map(|call| Call { to: call.to.unwrap_or_default(), value: call.value, data: call.input.clone() })
            .collect(),
        gasLimit: transaction.gas_limit,
        maxFeePerGas: transaction.max_fee_per_gas,
        maxPriorityFeePerGas: transaction.max_priority_fee_per_gas,
        feePayer: transaction.fee_payer.unwrap_or_default(),
    }
}

fn domain(chain: &Chain) -> Eip712Domain {
    Eip712Domain {
        name: Some(Cow::Borrowed("Almanac")),
        version: Some(Cow::Borrowed("1")),
        chain_id: Some(U256::from(chain.id)),
        verifying_contract: Some(ACCOUNTS),
        salt: Some(chain.genesis),
    }
}

#[test]
fn orderless_01_one_format_holds_both_replay_protectors() {
    for (kind, expected) in [
        (Kind::Sequence, ReplayProtector::Sequence(7)),
        (Kind::Orderless, ReplayProtector::Nonce { nonce: 7, expiration: 1_700_000_060 }),
    ] {
        let encoded = encode(signed(unsigned(kind)));
        assert_eq!(encoded[0], NATIVE_TYPE);
        let decoded = UserTransaction::decode(&encoded).unwrap();
        assert_eq!(decoded.native().unwrap(), &signed(unsigned(kind)));
        assert_eq!(decoded.replay_protector(), expected);
        assert_eq!(decoded.hash(), keccak256(&encoded));
    }
}

#[test]
fn digests_are_those_of_eip712() {
    let other = Chain { id: 1, genesis: B256::repeat_byte(9) };
    for transaction in [signed(unsigned(Kind::Sequence)), paid(), creation()] {
        for chain in [CHAIN, other] {
            let typed = typed(&transaction);
            assert_eq!(transaction.signing_hash(&chain), typed.eip712_signing_hash(&domain(&chain)));
            let pay = PayFee { transaction: typed };
            assert_eq!(transaction.fee_payer_signing_hash(&chain), pay.eip712_signing_hash(&domain(&chain)));
        }
    }
}

#[test]
fn orderless_10_signatures_are_bound_to_chain_and_genesis() {
    let transaction = UserTransaction::native_signed(paid()).unwrap();
    let proven = |chain: Chain| {
        RecoveredTransaction::recover(transaction.clone(), &chain).unwrap().proven().unwrap().clone()
    };
    let here = proven(CHAIN);
    assert_eq!(here.sender, [Leaf::Secp256k1(address_of(SECRET))]);
    assert_eq!(here.fee_payer, [Leaf::Secp256k1(address_of(PAYER_SECRET))]);
    for other in [Chain { id: 1, ..CHAIN }, Chain { genesis: B256::repeat_byte(0x61), ..CHAIN }] {
        let there = proven(other);
        assert_ne!(there.sender, here.sender, "another key seems to have signed");
        assert_ne!(there.fee_payer, here.fee_payer);
    }
}

#[test]
fn a_senders_signature_is_not_a_fee_payers() {
    let mut transaction = paid();
    std::mem::swap(&mut transaction.signatures, &mut transaction.fee_payer_signatures);
    let transaction = UserTransaction::native_signed(transaction).unwrap();
    let recovered = RecoveredTransaction::recover(transaction, &CHAIN).unwrap();
    assert_ne!(recovered.proven().unwrap().sender, [Leaf::Secp256k1(address_of(PAYER_SECRET))]);
}

#[test]
fn bounds_on_both_sides() {
    let with_calls =
        |count: usize| signed(NativeTransaction { calls: vec![call(1); count], ..unsigned(Kind::Sequence) });
    for count in [1, CALLS_MAX] {
        UserTransaction::native_signed(with_calls(count)).unwrap();
    }
    for given in [0, CALLS_MAX + 1] {
        assert_eq!(refusal(with_calls(given)), NativeError::TooManyCalls { given });
    }
    let mut batch = creation();
    batch.calls.insert(0, call(1));
    assert_eq!(refusal(batch), NativeError::CreationNotAlone { index: 1 });
    let mut rich = signed(unsigned(Kind::Sequence));
    rich.calls[0].value = U256::MAX;
    assert_eq!(refusal(rich), NativeError::ValueOverflow);
    let sender = address_of(SECRET);
    assert_eq!(
        refusal(NativeTransaction { fee_payer: Some(sender), ..paid() }),
        NativeError::FeePayerIsSender { sender }
    );
    let own = signed(unsigned(Kind::Sequence)).signatures[0].clone();
    let with_signatures =
        |count: usize| NativeTransaction { signatures: vec![own.clone(); count], ..unsigned(Kind::Sequence) };
    UserTransaction::native_signed(with_signatures(32)).unwrap();
    for given in [0, 33] {
        let refused = refusal(with_signatures(given));
        assert!(
            matches!(refused, NativeError::SignatureCount { signer: Signer::Sender, given: found, .. } if found == given),
            "{refused}"
        );
    }
    let unpaid = NativeTransaction { fee_payer: None, ..paid() };
    assert!(matches!(
        refusal(unpaid),
        NativeError::SignatureCount { signer: Signer::FeePayer, given: 1, .. }
    ));
    let unsigned_payer = NativeTransaction { fee_payer_signatures: Vec::new(), ..paid() };
    assert!(matches!(
        refusal(unsigned_payer),
        NativeError::SignatureCount { signer: Signer::FeePayer, given: 0, .. }
    ));
}

#[test]
fn truncated_and_malleated_signatures_have_named_errors() {
    let good = signed(unsigned(Kind::Orderless));
    let with = |signature: Vec<u8>| NativeTransaction { signatures: vec![signature.into()], ..good.clone() };
    for length in [0, 1, 64, 66, 95, 97] {
        let mut bytes = good.signatures[0].to_vec();
        bytes.resize(length, 0);
        let fault = SignatureFault::Length { given: length };
        let expected = NativeError::SignatureMalformed { signer: Signer::Sender, index: 0, fault };
        assert_eq!(refusal(with(bytes)), expected);
    }
    let mut parity = good.signatures[0].to_vec();
    parity[64] += 2;
    let fault = SignatureFault::Secp256k1;
    let expected = NativeError::SignatureMalformed { signer: Signer::Sender, index: 0, fault };
    assert_eq!(refusal(with(parity)), expected);
    // n - s with the other parity is the same signature to a lax verifier.
    let order = U256::from_be_bytes(hex!("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"));
    let mut high = good.signatures[0].to_vec();
    let s = order - U256::from_be_slice(&high[32..64]);
    high[32..64].copy_from_slice(&s.to_be_bytes::<32>());
    high[64] ^= 1;
    let transaction = UserTransaction::native_signed(with(high)).unwrap();
    let (hash, error) = (transaction.hash(), ProofError::SignatureInvalid { index: 0, fault });
    assert_eq!(
        RecoveredTransaction::recover(transaction, &CHAIN).unwrap_err(),
        RecoverError::Authenticator(AuthenticatorError { hash, signer: Signer::Sender, error })
    );
}

#[test]
fn the_same_signature_twice_is_out_of_order() {
    let mut twice = signed(unsigned(Kind::Orderless));
    twice.signatures.push(twice.signatures[0].clone());
    let transaction = UserTransaction::native_signed(twice).unwrap();
    let RecoverError::Authenticator(AuthenticatorError { error, .. }) =
        RecoveredTransaction::recover(transaction, &CHAIN).unwrap_err()
    else {
        panic!("not about its signatures")
    };
    assert_eq!(error, ProofError::SignaturesUnordered { index: 1 });
}

/// Any byte changed, added or cut gives another transaction or none.
#[test]
fn one_transaction_has_one_encoding() {
    for good in [encode(signed(unsigned(Kind::Orderless))), encode(paid()), encode(creation())] {
        for end in 0..good.len() {
            assert!(UserTransaction::decode(&good[..end]).is_err(), "cut at {end}");
        }
        let mut longer = good.to_vec();
        longer.push(0);
        assert!(UserTransaction::decode(&longer).is_err());
        for place in 0..good.len() {
            for change in [1, 0x80] {
                let mut changed = good.to_vec();
                changed[place] ^= change;
                if let Ok(other) = UserTransaction::decode(&changed) {
                    assert_eq!(other.encoded()[..], changed[..], "byte {place}");
                }
            }
        }
    }
}

/// The list of calls and its items with lengths written in a longer form than needed.
#[test]
fn lax_rlp_is_refused() {
    // 0x81 0x05 is 5 with a needless length.
    let body = hex!("c28105");
    assert!(UserTransaction::decode(&[&[NATIVE_TYPE][..], &body].concat()).is_err());
    assert!(UserTransaction::decode(&[NATIVE_TYPE]).is_err());
    assert!(UserTransaction::decode(&[NATIVE_TYPE, 0xc0]).is_err());
    assert!(UserTransaction::decode(&[NATIVE_TYPE, 0x80]).is_err());
}

#[test]
fn addresses_of_ed25519_keys() {
    let key = B256::from(hex!("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"));
    let expected = keccak256([&b"almanac ed25519"[..], key.as_slice()].concat());
    assert_eq!(Leaf::Ed25519(key).account(), Address::from_slice(&expected[12..]));
    assert_ne!(Leaf::Ed25519(key).account(), address!("0x0000000000000000000000000000000000000000"));
}
