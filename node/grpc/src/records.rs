//! `RecordService`: `almanac_getRecord` as messages.

use crate::{
    answer::{asker, refused, response, too_much},
    limits::RECORDS_PER_SECOND_MAX,
    proto::{
        AccountAmount, AccountId, ScheduleId, Timestamp, TokenTransferList, TransactionGetRecordQuery,
        TransactionId, TransactionReceipt, TransactionRecord, TransferList,
        record_service_server::RecordService,
    },
};
use alloy_primitives::{Address, B256, U64};
use almanac_rpc::guest::Throttle;
use serde::Deserialize;
use serde_json::json;
use tonic::{Request, Response, Status};

/// Answers for records.
pub(crate) struct Records {
    throttle: Throttle,
}

impl Records {
    pub(crate) fn new() -> Self {
        Self { throttle: Throttle::new(RECORDS_PER_SECOND_MAX) }
    }
}

#[tonic::async_trait]
impl RecordService for Records {
    async fn get_record(
        &self,
        request: Request<TransactionGetRecordQuery>,
    ) -> Result<Response<TransactionRecord>, Status> {
        let asker = asker(&request)?;
        self.throttle.take(&asker).map_err(|refused| too_much(&refused))?;
        let TransactionGetRecordQuery { header, transaction_hash: given } = request.into_inner();
        if header.unwrap_or_default().response_type != 0 {
            return Err(Status::unimplemented("records are answered with ANSWER_ONLY"));
        }
        let hash = B256::try_from(given.as_slice()).map_err(|_| {
            let count = given.len();
            Status::invalid_argument(format!("transactionHash has {count} bytes, it must have 32"))
        })?;
        let answer = asker.call("almanac_getRecord", &[json!(hash)]).await.map_err(refused)?;
        let record: Option<Record> = answer.result().map_err(refused)?;
        let unknown =
            || Status::not_found(format!("this node knows no transaction or run {hash} in a block"));
        Ok(response(record.ok_or_else(unknown)?.into_message()?, answer))
    }
}

/// A record as the method answers it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    receipt: Receipt,
    transaction_hash: B256,
    consensus_timestamp: Time,
    #[serde(rename = "transactionID")]
    transaction_id: Id,
    memo: String,
    transaction_fee: String,
    transfer_list: Option<Vec<Amount>>,
    token_transfer_list: Vec<Tokens>,
    schedule_ref: Option<ScheduleName>,
}

#[derive(Deserialize)]
struct Receipt {
    code: i32,
    #[serde(rename = "scheduleID")]
    schedule_id: Option<ScheduleName>,
}

#[derive(Deserialize)]
struct Time {
    seconds: String,
    nanos: i32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Id {
    transaction_valid_start: Option<Time>,
    #[serde(rename = "accountID")]
    account: Address,
    scheduled: bool,
    nonce: u64,
}

#[derive(Deserialize)]
struct Amount {
    #[serde(rename = "accountID")]
    account: Address,
    amount: String,
}

#[derive(Deserialize)]
struct Tokens {
    token: Address,
    transfers: Vec<Amount>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScheduleName {
    id_number: U64,
}

impl Record {
    fn into_message(self) -> Result<TransactionRecord, Status> {
        let Id { transaction_valid_start, account, scheduled, nonce } = self.transaction_id;
        let tokens = self.token_transfer_list.into_iter().map(|tokens| TokenTransferList {
            token: Some(account_id(tokens.token)),
            transfers: amounts(tokens.transfers),
        });
        Ok(TransactionRecord {
            receipt: Some(TransactionReceipt {
                status: self.receipt.code,
                schedule_id: self.receipt.schedule_id.map(ScheduleName::into_message),
            }),
            transaction_hash: self.transaction_hash.to_vec(),
            consensus_timestamp: Some(self.consensus_timestamp.into_message()?),
            transaction_id: Some(TransactionId {
                transaction_valid_start: transaction_valid_start.map(Time::into_message).transpose()?,
                account_id: Some(account_id(account)),
                scheduled,
                nonce,
            }),
            memo: self.memo,
            transaction_fee: self.transaction_fee,
            transfer_list: self.transfer_list.map(|list| TransferList { account_amounts: amounts(list) }),
            token_transfer_list: tokens.collect(),
            schedule_ref: self.schedule_ref.map(ScheduleName::into_message),
        })
    }
}

impl Time {
    fn into_message(self) -> Result<Timestamp, Status> {
        let seconds = self.seconds.parse();
        let seconds =
            seconds.map_err(|_| Status::internal(format!("time {:?} is no number", self.seconds)))?;
        Ok(Timestamp { seconds, nanos: self.nanos })
    }
}

impl ScheduleName {
    fn into_message(self) -> ScheduleId {
        ScheduleId { schedule_num: self.id_number.to() }
    }
}

fn amounts(list: Vec<Amount>) -> Vec<AccountAmount> {
    let amount =
        |one: Amount| AccountAmount { account_id: Some(account_id(one.account)), amount: one.amount };
    list.into_iter().map(amount).collect()
}

/// An account, as messages name it.
pub(crate) fn account_id(account: Address) -> AccountId {
    AccountId { address: account.to_vec() }
}

#[cfg(test)]
mod tests {
    use crate::proto::ResponseCodeEnum;
    use almanac_rpc::ReceiptStatus;

    /// The codes of receipts are codes of the proto file, by number and by name.
    #[test]
    fn hedera_12_every_status_has_its_code() {
        for status in ReceiptStatus::ALL {
            let code = ResponseCodeEnum::try_from(status as i32).unwrap();
            assert_eq!(code.as_str_name(), status.name());
        }
    }
}
