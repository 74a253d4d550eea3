//! Records as messages.

use crate::support::*;
use alloy_primitives::{Address, hex};
use almanac_grpc::proto::{QueryHeader, ResponseCodeEnum, TransactionGetRecordQuery, TransactionRecord};
use almanac_rpc::Limits;
use serde_json::{Value, json};

const GET: &str = "/almanac.RecordService/getRecord";

fn hash(n: u8) -> String {
    hex::encode_prefixed([n; 32])
}

fn record() -> Value {
    json!({
        "receipt": { "status": "SUCCESS", "code": 22, "scheduleID": { "id": "2-1-0", "idNumber": "0x20000400" } },
        "transactionHash": hash(7),
        "consensusTimestamp": { "seconds": "1794798275", "nanos": 123_000_001 },
        "transactionID": {
            "transactionValidStart": { "seconds": "1794798000", "nanos": 5 },
            "accountID": Address::repeat_byte(1), "scheduled": true, "nonce": 3,
        },
        "memo": "rent",
        "transactionFee": "21000",
        "transferList": [{ "accountID": Address::repeat_byte(1), "amount": "-21000" }],
        "tokenTransferList": [
            { "token": Address::repeat_byte(9), "transfers": [{ "accountID": Address::repeat_byte(2), "amount": "5" }] },
        ],
        "scheduleRef": { "id": "2-1-0", "idNumber": "0x20000400", "run": "0x0" },
    })
}

fn query(hash: Vec<u8>) -> TransactionGetRecordQuery {
    TransactionGetRecordQuery { header: None, transaction_hash: hash }
}

#[tokio::test(flavor = "multi_thread")]
async fn hedera_12_every_field_arrives() {
    let served = start(Limits::default(), record(), Ok("0x".to_owned())).await;
    let (client, _) = Client::connect(served.grpc.address()).await;
    let found: TransactionRecord = client.call(GET, &query(vec![7; 32])).await.message();
    let receipt = found.receipt.unwrap();
    assert_eq!(receipt.status(), ResponseCodeEnum::Success);
    assert_eq!(receipt.schedule_id.unwrap().schedule_num, 0x2000_0400);
    assert_eq!(found.transaction_hash, [7; 32]);
    let time = found.consensus_timestamp.unwrap();
    assert_eq!((time.seconds, time.nanos), (1_794_798_275, 123_000_001));
    let id = found.transaction_id.unwrap();
    assert_eq!((id.scheduled, id.nonce, id.account_id.unwrap().address), (true, 3, vec![1; 20]));
    assert_eq!(id.transaction_valid_start.unwrap().seconds, 1_794_798_000);
    assert_eq!((found.memo.as_str(), found.transaction_fee.as_str()), ("rent", "21000"));
    let transfers = found.transfer_list.unwrap().account_amounts;
    assert_eq!(transfers[0].amount, "-21000");
    let tokens = &found.token_transfer_list[0];
    assert_eq!(tokens.token.as_ref().unwrap().address, [9; 20]);
    assert_eq!(tokens.transfers[0].amount, "5");
    assert_eq!(found.schedule_ref.unwrap().schedule_num, 0x2000_0400);
}

#[tokio::test(flavor = "multi_thread")]
async fn hedera_12_what_is_not_there_stays_away() {
    let mut bare = record();
    for field in ["transferList", "scheduleRef"] {
        bare[field] = Value::Null;
    }
    bare["receipt"]["scheduleID"] = Value::Null;
    bare["transactionID"]["transactionValidStart"] = Value::Null;
    let served = start(Limits::default(), bare, Ok("0x".to_owned())).await;
    let (client, _) = Client::connect(served.grpc.address()).await;
    let found: TransactionRecord = client.call(GET, &query(vec![7; 32])).await.message();
    assert_eq!((found.transfer_list, found.schedule_ref), (None, None));
    assert_eq!(found.receipt.unwrap().schedule_id, None);
    assert_eq!(found.transaction_id.unwrap().transaction_valid_start, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_questions_are_refused_by_name() {
    let served = start(Limits::default(), record(), Ok("0x".to_owned())).await;
    let (client, _) = Client::connect(served.grpc.address()).await;
    client.call(GET, &query(vec![8; 32])).await.failed(5, "knows no transaction or run");
    for length in [0, 31, 33] {
        client
            .call(GET, &query(vec![7; length]))
            .await
            .failed(3, &format!("{length} bytes, it must have 32"));
    }
    let proof = TransactionGetRecordQuery {
        header: Some(QueryHeader { response_type: 1 }),
        transaction_hash: vec![7; 32],
    };
    client.call(GET, &proof).await.failed(12, "ANSWER_ONLY");
    // A field that says that it has more bytes than there are.
    let broken = client.send(GET, &[], frame(&[0x12, 0x20, 1, 2])).await;
    broken.failed(3, "the body is not the message of this method");
    // Less than the five bytes before a message, and a message that is announced and does not come.
    for short in [&[0u8, 0][..], &[0, 0, 0, 0, 9, 1]] {
        let broken = client.send(GET, &[], bytes::Bytes::copy_from_slice(short)).await;
        assert!(broken.status.is_some_and(|status| status != 0), "{broken:?}");
    }
    let found: TransactionRecord = client.call(GET, &query(vec![7; 32])).await.message();
    assert_eq!(found.memo, "rent", "the connection is as good as before");
}
