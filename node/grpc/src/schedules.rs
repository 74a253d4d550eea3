//! `ScheduleService`: transactions for the schedule service, checked and passed on, and its answers (HEDERA-23).

use crate::{
    abi::IScheduleService::{self, Info, SignatureEntry},
    answer::{asker, refused},
    keys,
    limits::{CREATES_PER_SECOND_MAX, DELETES_PER_SECOND_MAX, QUERIES_PER_SECOND_MAX, SIGNS_PER_SECOND_MAX},
    proto::{
        AccountId, KeyList, ResponseCodeEnum as Code, ResponseHeader, ResponseType,
        ScheduleCreateTransactionBody, ScheduleGetInfoQuery, ScheduleGetInfoResponse, ScheduleId,
        SignatureMap, Timestamp, Transaction, TransactionResponse, schedule_service_server::ScheduleService,
        transaction::Body,
    },
    records::account_id,
};
use alloy_primitives::{Address, B256, Bytes};
use alloy_sol_types::{SolCall, SolError as _};
use almanac_primitives::{
    Chain, UserTransaction,
    addresses::SCHEDULE_SERVICE,
    transaction_body::{SignedFor, TransactionBody, deletion_hash},
};
use almanac_rpc::guest::{CallError, GuestRequest, Throttle};
use serde_json::{Value, json};
use tonic::{Request, Response, Status};

/// JSON-RPC's code of a call that reverted.
const REVERTED: i32 = 3;

/// Answers for schedules.
pub(crate) struct Schedules {
    chain: Chain,
    creates: Throttle,
    signs: Throttle,
    deletes: Throttle,
    queries: Throttle,
}

impl Schedules {
    pub(crate) fn new(chain: Chain) -> Self {
        Self {
            chain,
            creates: Throttle::new(CREATES_PER_SECOND_MAX),
            signs: Throttle::new(SIGNS_PER_SECOND_MAX),
            deletes: Throttle::new(DELETES_PER_SECOND_MAX),
            queries: Throttle::new(QUERIES_PER_SECOND_MAX),
        }
    }
}

type Answered = Result<Response<TransactionResponse>, Status>;

#[tonic::async_trait]
impl ScheduleService for Schedules {
    async fn create_schedule(&self, request: Request<Transaction>) -> Answered {
        let asker = asker(&request)?;
        let Transaction { body, signed_transaction_bytes, deadline } = request.into_inner();
        let Some(Body::ScheduleCreate(body)) = body else { return Err(wrong_body("scheduleCreate")) };
        if self.creates.take(&asker).is_err() {
            return Ok(coded(Code::Busy.into()));
        }
        let create = Creation::read(body)?;
        let calldata = create.call().abi_encode();
        if !signed_transaction_bytes.is_empty() {
            return submit(&asker, &signed_transaction_bytes, &calldata).await;
        }
        let digest = match deadline {
            0 => None,
            _ => {
                let round = IScheduleService::roundOfCall {
                    transactionBody: create.transaction_body.clone(),
                    adminKey: create.admin_key.clone(),
                    payer: create.payer,
                };
                match ask(&asker, &round).await? {
                    Ok(round) => Some(self.digest(&create, round, deadline)?),
                    Err(code) => return Ok(coded(code)),
                }
            }
        };
        Ok(to_sign(calldata, digest))
    }

    async fn sign_schedule(&self, request: Request<Transaction>) -> Answered {
        let asker = asker(&request)?;
        let Transaction { body, signed_transaction_bytes, deadline } = request.into_inner();
        let Some(Body::ScheduleSign(body)) = body else { return Err(wrong_body("scheduleSign")) };
        if self.signs.take(&asker).is_err() {
            return Ok(coded(Code::Busy.into()));
        }
        let id = schedule_num(body.schedule_id)?;
        let call = IScheduleService::signScheduleCall { scheduleID: id, sigMap: entries(body.sig_map)? };
        let calldata = call.abi_encode();
        if !signed_transaction_bytes.is_empty() {
            return submit(&asker, &signed_transaction_bytes, &calldata).await;
        }
        let digest = match deadline {
            0 => None,
            _ => {
                let found = ask(&asker, &IScheduleService::getScheduleInfoCall { scheduleID: id }).await?;
                let found = match found {
                    Ok(found) if found.responseCode == i64::from(Code::Success as i32) => found.info,
                    Ok(found) => return Ok(coded(code_of(found.responseCode))),
                    Err(code) => return Ok(coded(code)),
                };
                let create = Creation {
                    transaction_body: found.transactionBody,
                    admin_key: found.adminKey,
                    payer: found.payerAccountID,
                    entries: Vec::new(),
                };
                Some(self.digest(&create, found.round, deadline)?)
            }
        };
        Ok(to_sign(calldata, digest))
    }

    async fn delete_schedule(&self, request: Request<Transaction>) -> Answered {
        let asker = asker(&request)?;
        let Transaction { body, signed_transaction_bytes, deadline } = request.into_inner();
        let Some(Body::ScheduleDelete(body)) = body else { return Err(wrong_body("scheduleDelete")) };
        if self.deletes.take(&asker).is_err() {
            return Ok(coded(Code::Busy.into()));
        }
        let id = schedule_num(body.schedule)?;
        let call = IScheduleService::deleteScheduleCall { scheduleID: id, sigMap: entries(body.sig_map)? };
        let calldata = call.abi_encode();
        if !signed_transaction_bytes.is_empty() {
            return submit(&asker, &signed_transaction_bytes, &calldata).await;
        }
        let digest =
            (deadline > 0).then(|| deletion_hash(&self.chain, almanac_primitives::ScheduleId(id), deadline));
        Ok(to_sign(calldata, digest))
    }

    async fn get_schedule_info(
        &self,
        request: Request<ScheduleGetInfoQuery>,
    ) -> Result<Response<ScheduleGetInfoResponse>, Status> {
        let asker = asker(&request)?;
        let ScheduleGetInfoQuery { header, schedule } = request.into_inner();
        let kind = header.unwrap_or_default().response_type;
        let headed = |code: i32| {
            let header =
                ResponseHeader { node_transaction_precheck_code: code, response_type: kind, cost: 0 };
            Response::new(ScheduleGetInfoResponse { header: Some(header), ..Default::default() })
        };
        if self.queries.take(&asker).is_err() {
            return Ok(headed(Code::Busy.into()));
        }
        match ResponseType::try_from(kind) {
            Ok(ResponseType::AnswerOnly) => {}
            // It costs nothing.
            Ok(ResponseType::CostAnswer) => return Ok(headed(Code::Ok.into())),
            _ => return Ok(headed(Code::NotSupported.into())),
        }
        let id = schedule_num(schedule)?;
        let found = match ask(&asker, &IScheduleService::getScheduleInfoCall { scheduleID: id }).await? {
            Ok(found) => found,
            Err(code) => return Ok(headed(code)),
        };
        // A query that is answered is OK; what ended or never was has its own code.
        let code = match code_of(found.responseCode) {
            code if code == Code::Success as i32 => Code::Ok.into(),
            code => code,
        };
        let header = headed(code).into_inner().header;
        if code == Code::InvalidScheduleId as i32 {
            return Ok(headed(code));
        }
        Ok(Response::new(ScheduleGetInfoResponse { header, ..shown(found.info)? }))
    }
}

impl Schedules {
    fn digest(&self, create: &Creation, round: u32, deadline: u64) -> Result<B256, Status> {
        let payer = (!create.payer.is_zero()).then_some(create.payer);
        let signed_for = SignedFor { payer, admin_key: &create.admin_key, round, deadline };
        let body = TransactionBody::decode(&create.transaction_body)
            .ok_or_else(|| Status::invalid_argument("transactionBody is not abi.encode(Body)"))?;
        Ok(body.signing_hash(&self.chain, signed_for))
    }
}

/// What is to be created.
struct Creation {
    transaction_body: Bytes,
    admin_key: Bytes,
    payer: Address,
    entries: Vec<SignatureEntry>,
}

impl Creation {
    fn read(body: ScheduleCreateTransactionBody) -> Result<Self, Status> {
        let admin_key = body.admin_key.as_ref().map(keys::encode).transpose()?.unwrap_or_default();
        Ok(Self {
            transaction_body: body.transaction_body.into(),
            admin_key: admin_key.into(),
            payer: body.payer.as_ref().map(account).transpose()?.unwrap_or_default(),
            entries: entries(body.sig_map)?,
        })
    }

    fn call(&self) -> IScheduleService::createScheduleCall {
        IScheduleService::createScheduleCall {
            transactionBody: self.transaction_body.clone(),
            adminKey: self.admin_key.clone(),
            payer: self.payer,
            sigMap: self.entries.clone(),
        }
    }
}

fn entries(map: Option<SignatureMap>) -> Result<Vec<SignatureEntry>, Status> {
    let entry = |pair: crate::proto::SignaturePair| {
        let key = pair.key.ok_or_else(|| Status::invalid_argument("an entry of sigMap without key"))?;
        Ok(SignatureEntry {
            key: keys::encode(&key)?.into(),
            signature: pair.signature.into(),
            deadline: pair.deadline,
        })
    };
    map.unwrap_or_default().sig_pair.into_iter().map(entry).collect()
}

fn account(id: &AccountId) -> Result<Address, Status> {
    let count = id.address.len();
    Address::try_from(id.address.as_slice())
        .map_err(|_| Status::invalid_argument(format!("an AccountID has {count} bytes, it must have 20")))
}

fn schedule_num(id: Option<ScheduleId>) -> Result<u64, Status> {
    id.map(|id| id.schedule_num).ok_or_else(|| Status::invalid_argument("no ScheduleID is given"))
}

fn wrong_body(expected: &str) -> Status {
    Status::invalid_argument(format!("body must be {expected}"))
}

/// Submits a signed transaction, if it does what the body says and nothing else.
async fn submit(asker: &GuestRequest, signed: &[u8], calldata: &[u8]) -> Answered {
    let transaction = UserTransaction::decode(signed)
        .map_err(|error| Status::invalid_argument(format!("signedTransactionBytes: {error}")))?;
    check_call(&transaction, calldata)?;
    let raw = json!(alloy_primitives::hex::encode_prefixed(signed));
    let answer = asker.call("eth_sendRawTransaction", &[raw]).await.map_err(refused)?;
    let hash: Option<B256> = answer.result().map_err(refused)?;
    let transaction_hash = hash.unwrap_or_else(|| transaction.hash()).to_vec();
    let node_transaction_precheck_code = Code::Ok.into();
    Ok(Response::new(TransactionResponse {
        node_transaction_precheck_code,
        transaction_hash,
        ..Default::default()
    }))
}

fn check_call(transaction: &UserTransaction, calldata: &[u8]) -> Result<(), Status> {
    let calls = transaction.native().map_or(1, |native| native.calls.len());
    if calls != 1 {
        let text = format!("the signed transaction makes {calls} calls, body describes one");
        return Err(Status::invalid_argument(text));
    }
    if transaction.to() != Some(SCHEDULE_SERVICE) {
        let to = transaction.to().map_or_else(|| "a new contract".to_owned(), |to| to.to_string());
        let text =
            format!("the signed transaction calls {to}, not the schedule service at {SCHEDULE_SERVICE}");
        return Err(Status::invalid_argument(text));
    }
    if transaction.input() != calldata {
        return Err(Status::invalid_argument(
            "the signed transaction has other calldata than body: leave signedTransactionBytes out to see body's",
        ));
    }
    Ok(())
}

/// What a view of the schedule service answers; as an error, the code that it refuses with.
async fn ask<C: SolCall>(asker: &GuestRequest, call: &C) -> Result<Result<C::Return, i32>, Status> {
    let data = alloy_primitives::hex::encode_prefixed(call.abi_encode());
    let request = json!({ "to": SCHEDULE_SERVICE, "data": data });
    let answer = asker.call("eth_call", &[request, json!("latest")]).await.map_err(refused)?;
    let output: Bytes = match answer.result() {
        Ok(output) => output.unwrap_or_default(),
        Err(error) => return refusal_code(error).map(Err),
    };
    let decoded = C::abi_decode_returns(&output);
    // No code answers there where governance has not switched the service on, and on chains older than it.
    decoded.map(Ok).or_else(|_| match output.is_empty() {
        true => Ok(Err(Code::NotSupported.into())),
        false => Err(Status::internal("the schedule service answered something else")),
    })
}

/// The code of `Refused(code)`.
fn refusal_code(error: CallError) -> Result<i32, Status> {
    let data = error.data.as_ref().filter(|_| error.code == REVERTED).and_then(Value::as_str);
    let data = data.and_then(|data| data.parse::<Bytes>().ok());
    let code = data.and_then(|data| IScheduleService::Refused::abi_decode(&data).ok());
    code.map(|refused_with| code_of(refused_with.responseCode)).ok_or_else(|| refused(error))
}

/// A code of the contract, in the 32 bits of the enum.
fn code_of(code: i64) -> i32 {
    i32::try_from(code).unwrap_or(Code::Unknown.into())
}

fn coded(code: i32) -> Response<TransactionResponse> {
    Response::new(TransactionResponse { node_transaction_precheck_code: code, ..Default::default() })
}

fn to_sign(calldata: Vec<u8>, digest: Option<B256>) -> Response<TransactionResponse> {
    let digest = digest.map(|digest| digest.to_vec()).unwrap_or_default();
    Response::new(TransactionResponse { calldata, digest, ..Default::default() })
}

/// A schedule as a message. Its header is still missing.
fn shown(info: Info) -> Result<ScheduleGetInfoResponse, Status> {
    let key = |bytes: &Bytes| {
        keys::decode(bytes).ok_or_else(|| Status::internal(format!("{bytes} is not a key of this chain")))
    };
    let time = |seconds: u64| {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        (seconds > 0).then_some(Timestamp { seconds, nanos: 0 })
    };
    let signers = info.signers.iter().map(key).collect::<Result<_, _>>()?;
    Ok(ScheduleGetInfoResponse {
        header: None,
        schedule: Some(ScheduleId { schedule_num: info.scheduleID }),
        creator_account_id: Some(account_id(info.creatorAccountID)),
        // Without one, the creator pays.
        payer_account_id: Some(match info.payerAccountID {
            Address::ZERO => account_id(info.creatorAccountID),
            payer => account_id(payer),
        }),
        transaction_body: info.transactionBody.into(),
        signers: Some(KeyList { keys: signers }),
        admin_key: (!info.adminKey.is_empty()).then(|| key(&info.adminKey)).transpose()?,
        round: info.round,
        expiration_time: time(info.expiresAt),
        ended: info.ended.into(),
        ended_at: time(info.endedAt),
    })
}
