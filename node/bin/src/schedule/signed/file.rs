//! A request in a file, as typed data that wallets sign, with the signatures that there are.

use super::{line::Answer, request::Request, terms::Terms};
use crate::{
    private_file,
    proof::parse_number,
    regular_file::{self, TRANSACTION_BYTES_MAX},
};
use alloy_primitives::{Address, B256, Bytes, U256};
use almanac_primitives::{
    Chain, ScheduleId,
    addresses::SCHEDULE_SERVICE,
    transaction_body::{BodyCall, TransactionBody},
};
use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::path::Path;

/// A request, and who has signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SigningFile {
    pub(super) request: Request,
    pub(super) answers: Vec<Answer>,
}

/// Numbers of 64 bits and more are text: many programs read JSON's as floats.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileJson {
    schedule: ScheduleText,
    /// What `eth_signTypedData_v4` takes.
    typed_data: Value,
    signatures: Vec<SignatureJson>,
}

/// An id, as commands take it.
#[derive(Serialize, Deserialize)]
struct ScheduleText(String);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SignatureJson {
    key: Bytes,
    signature: Bytes,
    deadline: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DomainJson {
    chain_id: String,
    salt: B256,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScheduleJson {
    calls: Vec<CallJson>,
    gas_limit: String,
    max_fee_per_gas: String,
    memo: String,
    nonce: String,
    execution_time: String,
    wait_for_expiry: bool,
    payer: Address,
    admin_key: Bytes,
    round: String,
}

#[derive(Deserialize)]
struct CallJson {
    from: Address,
    to: Address,
    value: String,
    data: Bytes,
}

impl SigningFile {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = regular_file::read_text(path, TRANSACTION_BYTES_MAX)?;
        Self::from_json(&text).with_context(|| {
            format!(
                "{} is no file to sign: make one with `almanac schedule sign ID --out FILE`",
                path.display()
            )
        })
    }

    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        private_file::replace(path, self.to_json()?.as_bytes())
    }

    /// Adds a signature, or leaves the one that this key has made already.
    pub(super) fn add(&mut self, answer: Answer) {
        if !self.answers.iter().any(|known| known.key == answer.key) {
            self.answers.push(answer);
        }
    }

    fn to_json(&self) -> anyhow::Result<String> {
        let signatures = self.answers.iter().map(|answer| SignatureJson {
            key: answer.key.clone(),
            signature: answer.signature.clone(),
            deadline: answer.deadline.to_string(),
        });
        let json = FileJson {
            schedule: ScheduleText(self.request.schedule.to_string()),
            typed_data: typed_data(&self.request),
            signatures: signatures.collect(),
        };
        Ok(serde_json::to_string_pretty(&json)? + "\n")
    }

    fn from_json(text: &str) -> anyhow::Result<Self> {
        let json: FileJson = serde_json::from_str(text)?;
        let request = read_typed_data(&json.schedule.0, &json.typed_data)?;
        // What a wallet shows and signs is then what this program shows and signs.
        ensure!(
            typed_data(&request) == json.typed_data,
            "FileChanged: its typed data is not that of a schedule of this chain"
        );
        let answers = json.signatures.into_iter().map(|signature| {
            let answer = Answer {
                schedule: request.schedule.0,
                key: signature.key,
                signature: signature.signature,
                deadline: number(&signature.deadline)?,
            };
            request.check(&answer)?;
            Ok(answer)
        });
        let answers = answers.collect::<anyhow::Result<_>>()?;
        Ok(Self { request, answers })
    }
}

fn number<T: TryFrom<U256>>(text: &str) -> anyhow::Result<T> {
    let number = parse_number(text).map_err(anyhow::Error::msg)?;
    T::try_from(number).ok().with_context(|| format!("{text} is too large"))
}

fn read_part<T: DeserializeOwned>(typed: &Value, part: &str) -> anyhow::Result<T> {
    serde_json::from_value(typed[part].clone())
        .with_context(|| format!("its {part} is not that of a schedule"))
}

fn read_typed_data(schedule: &str, typed: &Value) -> anyhow::Result<Request> {
    let domain: DomainJson = read_part(typed, "domain")?;
    let deadline = typed["message"]["deadline"].as_str().context("its message has no deadline")?;
    let terms = match typed["primaryType"].as_str() {
        Some("Delete") => None,
        _ => {
            let message: ScheduleJson = read_part(typed, "message")?;
            let calls = message.calls.into_iter().map(|call| {
                let CallJson { from, to, value, data } = call;
                Ok(BodyCall { from, to, value: number(&value)?, data })
            });
            let body = TransactionBody {
                calls: calls.collect::<anyhow::Result<_>>()?,
                gas_limit: number(&message.gas_limit)?,
                max_fee_per_gas: number(&message.max_fee_per_gas)?,
                memo: message.memo,
                nonce: number(&message.nonce)?,
                execution_time: number(&message.execution_time)?,
                wait_for_expiry: message.wait_for_expiry,
            };
            let payer = (!message.payer.is_zero()).then_some(message.payer);
            Some(Terms { body, payer, admin_key: message.admin_key, round: number(&message.round)? })
        }
    };
    Ok(Request {
        chain: Chain { id: number(&domain.chain_id)?, genesis: domain.salt },
        schedule: schedule.parse::<ScheduleId>()?,
        deadline: number(deadline)?,
        terms,
    })
}

/// The request as `eth_signTypedData_v4` takes it.
fn typed_data(request: &Request) -> Value {
    let field = |(name, kind): &(&str, &str)| json!({ "name": name, "type": kind });
    let fields = |list: &[(&str, &str)]| list.iter().map(field).collect::<Value>();
    let deadline = request.deadline.to_string();
    let (name, own, message) = match &request.terms {
        None => {
            let id = request.schedule.0.to_string();
            ("Delete", fields(&DELETE), json!({ "scheduleID": id, "deadline": deadline }))
        }
        Some(Terms { body, payer, admin_key, round }) => {
            let call = |call: &BodyCall| json!({ "from": call.from, "to": call.to, "value": call.value.to_string(), "data": call.data });
            let message = json!({
                "calls": body.calls.iter().map(call).collect::<Value>(),
                "gasLimit": body.gas_limit.to_string(),
                "maxFeePerGas": body.max_fee_per_gas.to_string(),
                "memo": body.memo,
                "nonce": body.nonce.to_string(),
                "executionTime": body.execution_time.to_string(),
                "waitForExpiry": body.wait_for_expiry,
                "payer": payer.unwrap_or_default(),
                "adminKey": admin_key,
                "round": round.to_string(),
                "deadline": deadline,
            });
            ("Schedule", fields(&SCHEDULE), message)
        }
    };
    let mut types = json!({ "EIP712Domain": fields(&DOMAIN), name: own });
    if request.terms.is_some() {
        types["Call"] = fields(&CALL);
    }
    let domain = json!({ "name": "Almanac", "version": "1", "chainId": request.chain.id.to_string(),
        "verifyingContract": SCHEDULE_SERVICE, "salt": request.chain.genesis });
    json!({ "types": types, "primaryType": name, "domain": domain, "message": message })
}

const DOMAIN: [(&str, &str); 5] = [
    ("name", "string"),
    ("version", "string"),
    ("chainId", "uint256"),
    ("verifyingContract", "address"),
    ("salt", "bytes32"),
];
const CALL: [(&str, &str); 4] =
    [("from", "address"), ("to", "address"), ("value", "uint256"), ("data", "bytes")];
const SCHEDULE: [(&str, &str); 11] = [
    ("calls", "Call[]"),
    ("gasLimit", "uint64"),
    ("maxFeePerGas", "uint256"),
    ("memo", "string"),
    ("nonce", "uint32"),
    ("executionTime", "uint64"),
    ("waitForExpiry", "bool"),
    ("payer", "address"),
    ("adminKey", "bytes"),
    ("round", "uint32"),
    ("deadline", "uint64"),
];
const DELETE: [(&str, &str); 2] = [("scheduleID", "uint64"), ("deadline", "uint64")];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::signed::request::tests::{deletion, key, payment};
    use alloy_dyn_abi::TypedData;

    /// What a wallet signs is what the chain checks: an independent implementation of EIP-712 hashes the file.
    #[test]
    fn wallets_sign_the_same_digest() {
        for request in [payment(), deletion()] {
            let typed: TypedData = serde_json::from_value(typed_data(&request)).unwrap();
            assert_eq!(typed.eip712_signing_hash().unwrap(), request.digest());
        }
    }

    #[test]
    fn a_file_has_all_of_it_and_is_refused_when_changed() {
        for request in [payment(), deletion()] {
            let mut file = SigningFile { request: request.clone(), answers: Vec::new() };
            file.add(request.sign(&key(1)));
            file.add(request.sign(&key(1)));
            file.add(request.sign(&key(2)));
            assert_eq!(file.answers.len(), 2, "each key once");
            let json = file.to_json().unwrap();
            assert_eq!(SigningFile::from_json(&json).unwrap(), file);
            for (from, to) in [
                ("\"chainId\": \"", "\"chainId\": \"1"),
                ("\"Almanac\"", "\"Other\""),
                ("\"uint64\"", "\"uint128\""),
                ("\"schedule\"", "\"id\""),
            ] {
                assert!(SigningFile::from_json(&json.replacen(from, to, 1)).is_err(), "{from}");
            }
        }
        let mut file = SigningFile { request: payment(), answers: Vec::new() };
        file.add(deletion().sign(&key(1)));
        let foreign = SigningFile::from_json(&file.to_json().unwrap()).unwrap_err().to_string();
        assert!(foreign.starts_with("WrongSignature"), "{foreign}");
    }
}
