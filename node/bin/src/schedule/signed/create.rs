//! `almanac schedule create`: a transaction that waits for signatures, read back before it is sent.

use super::{
    IScheduleService, booking,
    gathering::{Gathering, Parties},
    key_words::parse_key,
    outcome::After,
    terms::Terms,
    to_service, wording,
};
use crate::{
    client::{
        address::parse_address,
        amount::parse_amount,
        call_data::call_data,
        moment::parse_moment,
        node::{NodeArgs, quantity, text},
        output::Colour,
        sending::{SendingArgs, sender_facts},
        words::date,
    },
    http::CallError,
    schedule::{calls, order},
    span::coins,
};
use alloy_primitives::{Address, Bytes, U256, hex};
use alloy_sol_types::{SolCall as _, SolEvent as _};
use almanac_primitives::{
    Chain, ScheduleId, TimestampMs, Wei,
    addresses::SCHEDULE_SERVICE,
    keys::{KeyTree, Leaf},
    params::{CALL_VALUE_GAS, PARTY_GAS, SECOND_MS, SIGNED_MEMO_BYTES_MAX, SIGNED_RUN_GAS_LEAST},
    transaction_body::{BodyCall, TransactionBody},
};
use anyhow::{Context as _, anyhow, bail, ensure};
use clap::{ArgGroup, Args};
use serde_json::{Value, json};

/// The base fee may rise until all have signed: by default it waits only above this times that of now.
const FEE_MARGIN: u64 = 10;

/// What several accounts are to sign.
#[derive(Clone, Debug, Args)]
#[command(
    group(ArgGroup::new("signed_what").args(["data", "method"])),
    group(ArgGroup::new("signed_calls").required(true).args(["to", "call"])),
    after_help = "Examples:
  almanac schedule create --from 0x9fE4…6e0 --to 0x7099…79C8 --value 1.5coins --memo rent --key alice
  almanac schedule create --call \"from 0xf39F…2266 to 0x5FbD…0aa3 method transfer(address,uint256) 0x7099…79C8 100\" \\
      --call \"from 0x7099…79C8 to 0xf39F…2266 value 2coins\" --until \"in 2 days\" --key alice
  almanac schedule create --from 0x9fE4…6e0 --to 0x7099…79C8 --value 3coins --at \"2026-12-04 17:00 UTC\" \\
      --admin \"2 of 0xf39F…2266, 0x7099…79C8, 0x3C44…93BC\" --key alice

All calls run together or not at all, once every account that they come from has signed. Accounts sign with
`almanac schedule sign`; what this command prints has a line for those who sign elsewhere. Creating exactly the same
again, with the same --gas and --max-fee too, adds your signature to the one that waits."
)]
pub(crate) struct CreateArgs {
    /// A call; may be repeated. Words after `method` are its arguments; `from` may be left out.
    #[arg(long, value_name = "from A to B [value AMOUNT] [data HEX | method NAME(TYPES) ARGUMENTS]")]
    call: Vec<String>,

    /// For a single call: account or contract to call or pay.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "call", value_parser = parse_address)]
    to: Option<Address>,

    /// Whose money it is and who calls [default: the key's own account].
    #[arg(long, value_name = "ADDRESS", conflicts_with = "call", value_parser = parse_address)]
    from: Option<Address>,

    /// What goes with the call: wei, 3gwei, 0.1coins.
    #[arg(long, value_name = "AMOUNT", value_parser = parse_amount, default_value = "0", requires = "to")]
    value: U256,

    /// Method to call, with its types.
    #[arg(long, value_name = "SIGNATURE", requires = "to")]
    method: Option<String>,

    /// Argument of --method; may be repeated.
    #[arg(long = "arg", value_name = "VALUE", requires = "method", allow_hyphen_values = true)]
    arguments: Vec<String>,

    /// Calldata instead of a method.
    #[arg(long, value_name = "HEX", requires = "to")]
    data: Option<Bytes>,

    /// Run at this time, if all have signed by then. Paid when it is made [default: with the last signature].
    #[arg(long, value_name = "WHEN", conflicts_with = "until")]
    at: Option<String>,

    /// Run with the last signature, and expire at this time [default: half an hour after it is made].
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,

    /// A note for those who sign, of at most 100 bytes.
    #[arg(long, value_name = "TEXT", default_value = "")]
    memo: String,

    /// Who may delete it: an address, ed25519:0x…, or "2 of A, B, C" [default: nobody].
    #[arg(long, value_name = "KEY", value_parser = parse_key)]
    admin: Option<KeyTree>,

    /// Who pays for the gas of the run, and has to sign too [default: who makes it].
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    payer: Option<Address>,

    /// Gas of all calls together [default: half more than they take now].
    #[arg(long, value_name = "GAS")]
    gas: Option<u64>,

    /// Base fee above which it waits [default: ten times that of now].
    #[arg(long, value_name = "AMOUNT", value_parser = parse_amount)]
    max_fee: Option<U256>,

    /// Makes it another one than an equal one that waits.
    #[arg(long, value_name = "N", default_value_t = 0)]
    nonce: u32,

    #[command(flatten)]
    sending: SendingArgs,
}

/// Makes it.
pub(in crate::schedule) fn run(args: &CreateArgs) -> anyhow::Result<()> {
    let (key, node) = (args.sending.key.required()?, &args.sending.node);
    let creator = key.leaf().account();
    let now = node.now()?;
    let calls = read_calls(args, creator)?;
    let trial = Trial::run(node, &calls)?;
    let terms = terms(args, calls, &trial, now)?;
    let parties = Parties::read(node, terms.accounts(creator), &[] as &[Bytes])?;
    let paid = booking::price(node, &terms.body, &parties)?;
    let mut order = Order { creator, chain: node.chain()?, terms, paid };
    let known = order.try_out(node)?;
    if known.is_some() {
        // Its time is paid for already.
        order.paid = U256::ZERO;
    }
    let parties = known.as_ref().map_or(parties, |known| known.parties.clone());
    // Who creates it signs by that.
    let own = Leaf::Secp256k1(creator);
    let parties = if parties.is_asked(own) { parties.with(own, Some(creator)) } else { parties };
    let mut told = order.described(known.as_ref(), &trial);
    let read_back = || order.read_back(&trial, known.as_ref(), &parties);
    if !args.sending.agree("Send it?", read_back, &told)? {
        return Ok(());
    }
    let receipt = args.sending.submit(&key, vec![to_service(order.sent(), order.call().abi_encode())])?;
    let made = calls::made(&receipt, SCHEDULE_SERVICE, IScheduleService::ScheduleCreated::SIGNATURE_HASH);
    let id = made.first().copied().or_else(|| known.map(|known| known.id));
    let id = id.context("the transaction made no schedule")?;
    let after = After::read(node, order.chain, id)?;
    told["transactionHash"] = json!(calls::hash(&receipt));
    after.add_to(&mut told);
    args.sending
        .output
        .print(|| told, || format!("{} {id}\n{}", Colour::Green.paint("waits as"), after.words(node)))
}

fn read_calls(args: &CreateArgs, creator: Address) -> anyhow::Result<Vec<BodyCall>> {
    let Some(to) = args.to else {
        return args.call.iter().map(|text| parse_call(text, creator)).collect();
    };
    let data = match (&args.method, &args.data) {
        (Some(method), _) => call_data(method, &args.arguments)?,
        (None, data) => data.clone().unwrap_or_default(),
    };
    Ok(vec![BodyCall { from: args.from.unwrap_or(creator), to, value: args.value, data }])
}

/// Reads `from A to B value 5coins method transfer(address,uint256) C 5`.
fn parse_call(text: &str, creator: Address) -> anyhow::Result<BodyCall> {
    let unclear = |what: &str| {
        format!(
            "CallUnclear: {text:?}: {what}: write \"from A to B value 5coins\", and data HEX, or a method with its \
             types and arguments"
        )
    };
    let address = |word: Option<&str>| -> anyhow::Result<Address> {
        let word = word.with_context(|| unclear("an address is missing"))?;
        parse_address(word).map_err(|error| anyhow!(unclear(&error)))
    };
    let (mut from, mut to, mut value, mut data) = (creator, None, U256::ZERO, Bytes::new());
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "from" => from = address(words.next())?,
            "to" => to = Some(address(words.next())?),
            "value" => {
                let amount = words.next().with_context(|| unclear("the value is missing"))?;
                value = parse_amount(amount).map_err(anyhow::Error::msg)?;
            }
            "data" => {
                let hex = words.next().with_context(|| unclear("the data is missing"))?;
                data = hex.parse().with_context(|| unclear(&format!("{hex:?} is not hexadecimal")))?;
            }
            "method" => {
                let method = words.next().with_context(|| unclear("the method is missing"))?;
                let arguments: Vec<String> = words.by_ref().map(ToOwned::to_owned).collect();
                data = call_data(method, &arguments)?;
            }
            other => bail!(unclear(&format!("{other:?} is none of from, to, value, data, method"))),
        }
    }
    let to = to.with_context(|| unclear("it names nobody to call or pay"))?;
    Ok(BodyCall { from, to, value, data })
}

/// The calls, tried now one after the other.
struct Trial {
    /// Of all together, nearly: what one call warms up is cheaper for the next one in a run.
    gas_used: u64,
    /// Which call fails, from 1 on, and why.
    failure: Option<(usize, String)>,
}

impl Trial {
    fn run(node: &NodeArgs, calls: &[BodyCall]) -> anyhow::Result<Self> {
        let tried = calls.iter().map(|call| {
            json!({ "from": call.from, "to": call.to, "value": call.value, "input": hex::encode_prefixed(&call.data) })
        });
        let payload = json!({ "blockStateCalls": [{ "calls": tried.collect::<Vec<_>>() }] });
        let answer = match node.try_ask("eth_simulateV1", &json!([payload, "latest"])) {
            Ok(answer) => answer,
            Err(CallError::Refused { message, .. }) => {
                return Ok(Self { gas_used: 0, failure: Some((1, message)) });
            }
            Err(error) => return Err(error.into()),
        };
        let results = answer[0]["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        ensure!(results.len() == calls.len(), "the node answers {answer} instead of what the calls do");
        let mut gas_used: u64 = 0;
        let mut failure = None;
        for (index, (call, result)) in calls.iter().zip(results).enumerate() {
            let alone = quantity(&result["gasUsed"])?;
            gas_used = gas_used.saturating_add(if index == 0 { alone } else { further_gas(call, alone) });
            if result["status"] != "0x1" && failure.is_none() {
                failure = Some((index + 1, text(&result["error"]["message"])));
            }
        }
        Ok(Self { gas_used, failure })
    }

    fn gas(&self) -> anyhow::Result<u64> {
        if let Some((number, reason)) = &self.failure {
            bail!(
                "GasUnknown: call {number} fails now ({reason}), so its gas cannot be estimated: pass --gas if it will \
                 succeed later"
            );
        }
        Ok((self.gas_used + self.gas_used / 2).next_multiple_of(1_000))
    }

    fn succeeds(&self, gas_limit: u64) -> bool {
        self.failure.is_none() && self.gas_used <= gas_limit
    }

    fn words(&self, gas_limit: u64) -> String {
        match &self.failure {
            None if self.gas_used > gas_limit => {
                let used = self.gas_used;
                Colour::Red.paint(&format!("it needs {used} gas, and has {gas_limit}: raise --gas"))
            }
            None => format!("it succeeds, with {} gas", self.gas_used),
            Some((number, reason)) => Colour::Red.paint(&format!("call {number} fails: {reason}")),
        }
    }
}

/// What a call takes after others: tried alone it paid for a transaction of its own.
fn further_gas(call: &BodyCall, alone: u64) -> u64 {
    let value_gas = if call.value.is_zero() { 0 } else { CALL_VALUE_GAS };
    alone.saturating_sub(SIGNED_RUN_GAS_LEAST).saturating_add(PARTY_GAS + value_gas)
}

fn terms(args: &CreateArgs, calls: Vec<BodyCall>, trial: &Trial, now: TimestampMs) -> anyhow::Result<Terms> {
    ensure!(
        args.memo.len() <= SIGNED_MEMO_BYTES_MAX,
        "MemoTooLong: the memo has {} bytes, and may have {SIGNED_MEMO_BYTES_MAX}",
        args.memo.len()
    );
    let time = args.at.as_deref().or(args.until.as_deref());
    let body = TransactionBody {
        calls,
        gas_limit: args.gas.map_or_else(|| trial.gas(), Ok)?,
        max_fee_per_gas: match args.max_fee {
            Some(price) => price,
            None => args.sending.node.base_fee()?.saturating_mul(U256::from(FEE_MARGIN)),
        },
        memo: args.memo.clone(),
        nonce: args.nonce,
        execution_time: time.map_or(Ok(0), |time| execution_time(time, now))?,
        wait_for_expiry: args.at.is_some(),
    };
    let admin_key = args.admin.as_ref().map(|key| key.encoded().clone()).unwrap_or_default();
    let mut terms = Terms { body, payer: args.payer, admin_key, round: 0 };
    let question = IScheduleService::roundOfCall {
        transactionBody: terms.body.encode(),
        adminKey: terms.admin_key.clone(),
        payer: terms.payer.unwrap_or_default(),
    };
    let answer = args.sending.node.view(SCHEDULE_SERVICE, &question.abi_encode())?;
    let round = IScheduleService::roundOfCall::abi_decode_returns(&answer);
    terms.round = round.context("the node answers no round of a transaction that waits")?;
    Ok(terms)
}

fn execution_time(text: &str, now: TimestampMs) -> anyhow::Result<u64> {
    let time = parse_moment(text, now)?;
    ensure!(
        time.0.is_multiple_of(SECOND_MS),
        "TimeNotExact: {} cannot be kept exactly: this door takes whole seconds",
        date(time)
    );
    ensure!(time > now, "TimeNotInFuture: {} is not after the chain's time, {}", date(time), date(now));
    Ok(time.seconds())
}

/// What is sent to the service.
struct Order {
    creator: Address,
    chain: Chain,
    terms: Terms,
    /// What its time costs now.
    paid: U256,
}

impl Order {
    fn call(&self) -> IScheduleService::createScheduleCall {
        IScheduleService::createScheduleCall {
            transactionBody: self.terms.body.encode(),
            adminKey: self.terms.admin_key.clone(),
            payer: self.terms.payer.unwrap_or_default(),
            sigMap: Vec::new(),
        }
    }

    /// What is above the fee of the block that takes it returns at once.
    fn sent(&self) -> U256 {
        self.paid.saturating_mul(U256::from(order::FEE_MARGIN))
    }

    /// Asks the service without sending. What it would refuse is an error; the one that waits already is found.
    fn try_out(&self, node: &NodeArgs) -> anyhow::Result<Option<Gathering>> {
        let call = json!({ "from": self.creator, "to": SCHEDULE_SERVICE, "value": self.sent(),
            "data": hex::encode_prefixed(self.call().abi_encode()) });
        let answer = node.ask("eth_call", &json!([call, "pending"])).context("OrderRefused")?;
        let answer: Bytes = serde_json::from_value(answer).context("the node answers no bytes")?;
        let id = IScheduleService::createScheduleCall::abi_decode_returns(&answer);
        let id = ScheduleId(id.context("the node answers no id of a schedule")?);
        Ok(Gathering::read(node, id)?.filter(|known| known.end.is_none()))
    }

    fn described(&self, known: Option<&Gathering>, trial: &Trial) -> Value {
        let Terms { body, payer, admin_key, round } = &self.terms;
        let call = |call: &BodyCall| json!({ "from": call.from, "to": call.to, "value": call.value.to_string(), "data": call.data });
        json!({ "door": super::SIGNED, "creator": self.creator, "calls": body.calls.iter().map(call).collect::<Vec<_>>(),
            "gasLimit": body.gas_limit, "maxFeePerGas": body.max_fee_per_gas.to_string(), "memo": body.memo,
            "nonce": body.nonce, "executionTime": body.execution_time, "waitForExpiry": body.wait_for_expiry,
            "payer": payer, "adminKey": admin_key, "round": round, "paid": self.paid.to_string(),
            "sent": self.sent().to_string(), "chainId": self.chain.id, "genesis": self.chain.genesis,
            "waitsAs": known.map(|known| known.id.to_string()),
            "preview": { "success": trial.succeeds(body.gas_limit), "gasUsed": trial.gas_used,
                "error": trial.failure.as_ref().map(|(_, reason)| reason) } })
    }

    fn read_back(&self, trial: &Trial, known: Option<&Gathering>, parties: &Parties) -> String {
        let mut facts = sender_facts(self.creator, &self.chain);
        wording::add_terms(&mut facts, &self.terms, Some(self.creator));
        facts.add(
            "expires",
            match self.terms.body.execution_time {
                0 => "half an hour after it was made, unless the chain's parameters say otherwise".to_owned(),
                time => date(wording::second(time)),
            },
        );
        if !self.paid.is_zero() {
            facts.add(
                "paid in",
                format!("{} for its time; half of it returns if it expires", coins(Wei(self.paid))),
            );
            let sent = coins(Wei(self.sent()));
            facts.add("sent", format!("{sent}; what is above the price in its block returns at once"));
        }
        for (index, line) in parties.lines().into_iter().enumerate() {
            facts.add(if index == 0 { "after this" } else { "" }, line);
        }
        facts.add("tried now", trial.words(self.terms.body.gas_limit));
        if let Some(known) = known {
            facts.add("waits already", format!("as {}: your signature is added to it", known.id));
        }
        facts.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_as_people_write_them() {
        let (a, b, own) = (Address::repeat_byte(1), Address::repeat_byte(2), Address::repeat_byte(9));
        let call = |from, value: u64, data: &[u8]| BodyCall {
            from,
            to: b,
            value: U256::from(value),
            data: Bytes::copy_from_slice(data),
        };
        for (text, expected) in [
            (format!("from {a} to {b}"), call(a, 0, &[])),
            (format!("to {b} value 3gwei"), call(own, 3_000_000_000, &[])),
            (format!("to {b} from {a} value 5 data 0x0102"), call(a, 5, &[1, 2])),
            (format!("from {a} to {b} method increment()"), call(a, 0, &[0xd0, 0x9d, 0xe0, 0x8a])),
        ] {
            assert_eq!(parse_call(&text, own).unwrap(), expected, "{text}");
        }
        for (bad, expected) in [
            (String::new(), "it names nobody to call or pay"),
            (format!("from {a}"), "it names nobody to call or pay"),
            ("to bob".to_owned(), "\"bob\" is not an address"),
            ("to".to_owned(), "an address is missing"),
            (format!("to {b} value"), "the value is missing"),
            (format!("to {b} value much"), "AmountUnclear"),
            (format!("to {b} data 0x0"), "is not hexadecimal"),
            (format!("to {b} pays 5"), "\"pays\" is none of from, to, value, data, method"),
            (format!("to {b} method transfer(address,uint256) {a}"), "ArgumentCount"),
        ] {
            let error = format!("{:#}", parse_call(&bad, own).unwrap_err());
            assert!(error.contains(expected), "{bad}: {error}");
        }
    }

    /// A transaction with less gas than its calls take was told to succeed, and calls were counted as transactions.
    #[test]
    fn gas_is_that_of_one_run_and_compared_with_the_limit() {
        let call = |value: u64| BodyCall {
            from: Address::ZERO,
            to: Address::ZERO,
            value: U256::from(value),
            data: Bytes::new(),
        };
        assert_eq!((further_gas(&call(0), 21_000), further_gas(&call(1), 21_000)), (2_600, 11_600));
        assert_eq!(further_gas(&call(0), 43_174), 24_774);
        let trial = Trial { gas_used: 168_000, failure: None };
        assert_eq!((trial.succeeds(168_000), trial.succeeds(167_999)), (true, false));
        assert_eq!(trial.words(168_000), "it succeeds, with 168000 gas");
        assert_eq!(trial.words(150_000), "it needs 168000 gas, and has 150000: raise --gas");
    }
}
