//! The schedule service as messages: what is to be signed, what is submitted, and what is known (HEDERA-23).

use crate::support::*;
use alloy_primitives::{Address, Bytes, TxKind, U256, hex, keccak256};
use alloy_sol_types::{SolCall as _, SolError as _, SolValue as _, sol};
use almanac_grpc::proto::{
    AccountId, Key, KeyList, QueryHeader, ResponseCodeEnum as Code, ScheduleCreateTransactionBody,
    ScheduleDeleteTransactionBody, ScheduleGetInfoQuery, ScheduleGetInfoResponse, ScheduleId,
    ScheduleSignTransactionBody, SignatureMap, SignaturePair, Transaction, TransactionResponse, key,
    transaction::Body as TransactionBody,
};
use almanac_primitives::{
    UserTransaction,
    addresses::SCHEDULE_SERVICE,
    testing::{self, native, person},
};
use almanac_rpc::Limits;
use serde_json::Value;
use tokio::task::JoinSet;

sol! {
    struct Call { address from; address to; uint256 value; bytes data; }
    struct Body {
        Call[] calls; uint64 gasLimit; uint256 maxFeePerGas; string memo; uint32 nonce; uint64 executionTime;
        bool waitForExpiry;
    }
    struct SignatureEntry { bytes key; bytes signature; uint64 deadline; }
    struct Info {
        uint64 scheduleID; address creatorAccountID; address payerAccountID; bytes transactionBody; bytes[] signers;
        bytes adminKey; uint32 round; uint64 expiresAt; uint8 ended; uint64 endedAt;
    }
    error Refused(int64 responseCode);
    function createSchedule(bytes transactionBody, bytes adminKey, address payer, SignatureEntry[] sigMap);
    function signSchedule(uint64 scheduleID, SignatureEntry[] sigMap);
    function deleteSchedule(uint64 scheduleID, SignatureEntry[] sigMap);
}

const CREATE: &str = "/almanac.ScheduleService/createSchedule";
const SIGN: &str = "/almanac.ScheduleService/signSchedule";
const DELETE: &str = "/almanac.ScheduleService/deleteSchedule";
const INFO: &str = "/almanac.ScheduleService/getScheduleInfo";

async fn client(called: Called) -> (Served, Client) {
    let served = start(Limits::default(), Value::Null, called).await;
    let (client, _) = Client::connect(served.grpc.address()).await;
    (served, client)
}

fn word(number: u64) -> String {
    hex::encode_prefixed(U256::from(number).to_be_bytes::<32>())
}

fn refused(code: i64) -> Called {
    Err(hex::encode_prefixed(Refused { responseCode: code }.abi_encode()))
}

fn secp(n: u8) -> Key {
    Key { key: Some(key::Key::Secp256k1(vec![n; 20])) }
}

fn leaf(n: u8) -> Bytes {
    [&[1][..], &[n; 20]].concat().into()
}

fn body_bytes() -> Vec<u8> {
    let call = Call {
        from: Address::repeat_byte(1),
        to: Address::repeat_byte(2),
        value: U256::from(3),
        data: Bytes::from_static(&[4]),
    };
    Body {
        calls: vec![call],
        gasLimit: 100_000,
        maxFeePerGas: U256::from(5),
        memo: "rent".to_owned(),
        nonce: 6,
        executionTime: 0,
        waitForExpiry: false,
    }
    .abi_encode()
}

fn creation() -> ScheduleCreateTransactionBody {
    let pair = SignaturePair { key: Some(secp(3)), signature: vec![8; 65], deadline: 77 };
    ScheduleCreateTransactionBody {
        transaction_body: body_bytes(),
        admin_key: Some(secp(4)),
        payer: Some(AccountId { address: vec![5; 20] }),
        sig_map: Some(SignatureMap { sig_pair: vec![pair] }),
    }
}

fn create(signed: Vec<u8>, deadline: u64) -> Transaction {
    let body = Some(TransactionBody::ScheduleCreate(creation()));
    Transaction { body, signed_transaction_bytes: signed, deadline }
}

fn sign(id: u64, signed: Vec<u8>, deadline: u64) -> Transaction {
    let body =
        ScheduleSignTransactionBody { schedule_id: Some(ScheduleId { schedule_num: id }), sig_map: None };
    let body = Some(TransactionBody::ScheduleSign(body));
    Transaction { body, signed_transaction_bytes: signed, deadline }
}

fn delete(id: u64, deadline: u64) -> Transaction {
    let body =
        ScheduleDeleteTransactionBody { schedule: Some(ScheduleId { schedule_num: id }), sig_map: None };
    let body = Some(TransactionBody::ScheduleDelete(body));
    Transaction { body, signed_transaction_bytes: Vec::new(), deadline }
}

fn create_calldata() -> Vec<u8> {
    let entry = SignatureEntry { key: leaf(3), signature: vec![8; 65].into(), deadline: 77 };
    createScheduleCall {
        transactionBody: body_bytes().into(),
        adminKey: leaf(4),
        payer: Address::repeat_byte(5),
        sigMap: vec![entry],
    }
    .abi_encode()
}

#[tokio::test(flavor = "multi_thread")]
async fn hedera_23_without_a_signature_the_answer_is_what_to_sign() {
    let (_served, client) = client(Ok(word(7))).await;
    let plain: TransactionResponse = client.call(CREATE, &create(vec![], 0)).await.message();
    assert_eq!(plain.node_transaction_precheck_code(), Code::Ok);
    assert_eq!((plain.calldata.as_slice(), plain.digest.len()), (create_calldata().as_slice(), 0));
    let first: TransactionResponse = client.call(CREATE, &create(vec![], 99)).await.message();
    let second: TransactionResponse = client.call(CREATE, &create(vec![], 100)).await.message();
    assert_eq!((first.calldata.as_slice(), first.digest.len()), (create_calldata().as_slice(), 32));
    assert_ne!(first.digest, second.digest, "the deadline is part of it");
    let signing: TransactionResponse = client.call(SIGN, &sign(9, vec![], 0)).await.message();
    assert_eq!(signing.calldata, signScheduleCall { scheduleID: 9, sigMap: vec![] }.abi_encode());
    let deletion: TransactionResponse = client.call(DELETE, &delete(9, 55)).await.message();
    assert_eq!(deletion.calldata, deleteScheduleCall { scheduleID: 9, sigMap: vec![] }.abi_encode());
    assert_eq!(deletion.digest.len(), 32);
}

#[tokio::test(flavor = "multi_thread")]
async fn hedera_23_the_code_of_the_contract_is_the_answer() {
    let (_served, client) = client(refused(50)).await;
    let answer: TransactionResponse = client.call(CREATE, &create(vec![], 99)).await.message();
    assert_eq!(answer.node_transaction_precheck_code(), Code::InvalidTransactionBody);
    assert!(answer.calldata.is_empty());
    let answer: TransactionResponse = client.call(SIGN, &sign(9, vec![], 99)).await.message();
    assert_eq!(answer.node_transaction_precheck_code(), Code::InvalidTransactionBody);
}

/// Encoded to an odd number of bytes, which the made-up pool takes; it refuses the others.
fn signed(to: Address, calldata: &[u8], is_taken: bool) -> UserTransaction {
    (0..)
        .map(|nonce: u64| {
            let tx = testing::eip1559(nonce * nonce, TxKind::Call(to), 0, calldata.to_vec(), 500_000);
            testing::sign(tx, person(1).secret)
        })
        .find(|signed| (signed.encoded().len() % 2 == 1) == is_taken)
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn hedera_23_a_signed_transaction_is_submitted_if_it_does_what_body_says() {
    let (_served, client) = client(Ok("0x".to_owned())).await;
    let right = signed(SCHEDULE_SERVICE, &create_calldata(), true);
    let answer = client.call(CREATE, &create(right.encoded().to_vec(), 0)).await;
    let answer: TransactionResponse = answer.message();
    assert_eq!(answer.node_transaction_precheck_code(), Code::Ok);
    assert_eq!(answer.transaction_hash, keccak256(right.encoded()).to_vec());
    assert!(answer.calldata.is_empty() && answer.digest.is_empty());
    // What the pool refuses, with its words.
    let poor = signed(SCHEDULE_SERVICE, &create_calldata(), false);
    client.call(CREATE, &create(poor.encoded().to_vec(), 0)).await.failed(9, "insufficient funds: made up");
    // Something else than body says.
    let other = signed(SCHEDULE_SERVICE, &[create_calldata(), vec![0]].concat(), true);
    client.call(CREATE, &create(other.encoded().to_vec(), 0)).await.failed(3, "other calldata than body");
    client.call(SIGN, &sign(9, right.encoded().to_vec(), 0)).await.failed(3, "other calldata than body");
    let elsewhere = signed(Address::repeat_byte(7), &create_calldata(), true);
    client.call(CREATE, &create(elsewhere.encoded().to_vec(), 0)).await.failed(3, "not the schedule service");
    let call = native::native_call(SCHEDULE_SERVICE, 0, create_calldata());
    let batch = native::native(person(1).address, 0, vec![call.clone(), call.clone()]);
    let batch = native::sign_native(batch, &[person(1).into()]);
    client.call(CREATE, &create(batch.encoded().to_vec(), 0)).await.failed(3, "makes 2 calls");
    let single = native::sign_native(native::native(person(1).address, 0, vec![call]), &[person(1).into()]);
    let answer = client.call(CREATE, &create(single.encoded().to_vec(), 0)).await;
    assert!(
        answer.status == Some(0) || answer.text.contains("made up"),
        "a native one may call too: {answer:?}"
    );
    client.call(CREATE, &create(vec![2, 1], 0)).await.failed(3, "signedTransactionBytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn hedera_23_bodies_have_their_form() {
    let (_served, client) = client(Ok("0x".to_owned())).await;
    client.call(CREATE, &sign(1, vec![], 0)).await.failed(3, "body must be scheduleCreate");
    client.call(SIGN, &delete(1, 0)).await.failed(3, "body must be scheduleSign");
    client.call(DELETE, &create(vec![], 0)).await.failed(3, "body must be scheduleDelete");
    client.call(CREATE, &Transaction::default()).await.failed(3, "body must be scheduleCreate");
    let with = |change: fn(&mut ScheduleCreateTransactionBody)| {
        let mut body = creation();
        change(&mut body);
        Transaction { body: Some(TransactionBody::ScheduleCreate(body)), ..Default::default() }
    };
    let short = with(|body| body.payer = Some(AccountId { address: vec![1; 19] }));
    client.call(CREATE, &short).await.failed(3, "19 bytes, it must have 20");
    let empty = with(|body| body.admin_key = Some(Key { key: None }));
    client.call(CREATE, &empty).await.failed(3, "a key without");
    let keyless = with(|body| body.sig_map.as_mut().unwrap().sig_pair[0].key = None);
    client.call(CREATE, &keyless).await.failed(3, "sigMap without key");
    let nameless = ScheduleSignTransactionBody::default();
    let nameless = Transaction { body: Some(TransactionBody::ScheduleSign(nameless)), ..Default::default() };
    client.call(SIGN, &nameless).await.failed(3, "no ScheduleID");
}

fn info(code: i64) -> String {
    let called = [&[4][..], &[1; 20]].concat();
    let list = [&[3, 2, 1][..], &leaf(2), &leaf(3)].concat();
    let info = Info {
        scheduleID: 9,
        creatorAccountID: Address::repeat_byte(1),
        payerAccountID: Address::ZERO,
        transactionBody: body_bytes().into(),
        signers: vec![leaf(2), called.into()],
        adminKey: list.into(),
        round: 4,
        expiresAt: 1_800,
        ended: u8::from(code == 212),
        endedAt: if code == 212 { 1_700 } else { 0 },
    };
    hex::encode_prefixed((code, info).abi_encode_params())
}

fn query(id: u64, response_type: i32) -> ScheduleGetInfoQuery {
    let header = Some(QueryHeader { response_type });
    ScheduleGetInfoQuery { header, schedule: Some(ScheduleId { schedule_num: id }) }
}

#[tokio::test(flavor = "multi_thread")]
async fn hedera_09_info_while_pending_and_after_the_end() {
    for (code, expected) in [(22, Code::Ok), (212, Code::ScheduleDeleted)] {
        let (_served, client) = client(Ok(info(code))).await;
        let found: ScheduleGetInfoResponse = client.call(INFO, &query(9, 0)).await.message();
        assert_eq!(found.header.unwrap().node_transaction_precheck_code(), expected);
        assert_eq!(found.schedule.unwrap().schedule_num, 9);
        assert_eq!(found.creator_account_id.unwrap().address, [1; 20]);
        assert_eq!(found.payer_account_id.unwrap().address, [1; 20], "the creator pays");
        assert_eq!(found.transaction_body, body_bytes());
        let called = Key { key: Some(key::Key::Account(AccountId { address: vec![1; 20] })) };
        assert_eq!(found.signers, Some(KeyList { keys: vec![secp(2), called] }));
        assert!(
            matches!(found.admin_key.unwrap().key, Some(key::Key::ThresholdKey(one)) if one.threshold == 1)
        );
        assert_eq!((found.round, found.expiration_time.unwrap().seconds), (4, 1_800));
        let ended = (code == 212).then_some(1_700);
        assert_eq!((found.ended, found.ended_at.map(|time| time.seconds)), (i32::from(code == 212), ended));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hedera_09_unknown_ids_and_other_kinds_of_answers_have_codes() {
    let code = |answer: Answer| {
        let found: ScheduleGetInfoResponse = answer.message();
        assert_eq!(found.schedule, None);
        found.header.unwrap().node_transaction_precheck_code()
    };
    let (_served, unknown) = client(Ok(info(201))).await;
    assert_eq!(code(unknown.call(INFO, &query(9, 0)).await), Code::InvalidScheduleId);
    assert_eq!(code(unknown.call(INFO, &query(9, 1)).await), Code::NotSupported, "a state proof");
    assert_eq!(code(unknown.call(INFO, &query(9, 2)).await), Code::Ok, "it costs nothing");
    assert_eq!(code(unknown.call(INFO, &query(9, 99)).await), Code::NotSupported);
    let (_served, absent) = client(Ok("0x".to_owned())).await;
    assert_eq!(code(absent.call(INFO, &query(9, 0)).await), Code::NotSupported, "no contract answers");
    let (_served, broken) = client(Ok("0x1234".to_owned())).await;
    broken.call(INFO, &query(9, 0)).await.failed(13, "something else");
    let (_served, reverting) = client(Err("0x".to_owned())).await;
    reverting.call(INFO, &query(9, 0)).await.failed(9, "execution reverted");
}

/// Each operation has its own rate; what is above it is BUSY, as Hedera answers.
#[tokio::test(flavor = "multi_thread")]
async fn hedera_23_every_operation_is_throttled() {
    let (_served, client) = client(Ok("0x".to_owned())).await;
    let allowed = almanac_grpc::limits::CREATES_PER_SECOND_MAX as usize;
    // Several at once: a slow machine would send them one by one at less than the rate.
    const AT_ONCE: usize = 8;
    let flood = async || {
        let mut callers = JoinSet::new();
        for _ in 0..AT_ONCE {
            let client = client.clone();
            callers.spawn(async move {
                let mut passed = 0;
                for _ in 0..=2 * allowed / AT_ONCE {
                    let answer: TransactionResponse = client.call(CREATE, &create(vec![], 0)).await.message();
                    passed += usize::from(answer.node_transaction_precheck_code() == Code::Ok);
                }
                passed
            });
        }
        callers.join_all().await.into_iter().sum::<usize>()
    };
    let mut passed = Vec::new();
    while passed.len() < 10 && passed.last().is_none_or(|passed| *passed > 2 * allowed) {
        passed.push(flood().await);
    }
    assert!(passed[0] >= allowed, "{passed:?}");
    assert!(passed.last().unwrap() <= &(2 * allowed), "{passed:?}");
    let other: TransactionResponse = client.call(SIGN, &sign(9, vec![], 0)).await.message();
    assert_eq!(other.node_transaction_precheck_code(), Code::Ok, "others have their own");
}
