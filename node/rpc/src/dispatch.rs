//! Parses a JSON-RPC message, calls its methods, and writes the answer within the limits.

use crate::{
    answer::within,
    budget::{Account, Held},
    error,
    limits::Limits,
    meter::Meter,
    peer::Peer,
    rate::Rate,
    turns::ASKER,
};
use jsonrpsee::{
    BatchResponseBuilder, Extensions, MethodCallback, MethodResponse, Methods,
    types::{ErrorCode, ErrorObject, Id, InvalidRequest, Notification, Params, Request},
};
use serde::de::{DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::{future::poll_fn, pin::Pin, sync::Arc, task::Poll, time::Instant};
use tokio::sync::Semaphore;

/// What a message comes to.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) json: String,
    /// Its bytes in the budget.
    pub(crate) held: Held,
}

/// Where a message comes from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) peer: Peer,
    /// Number of the connection.
    pub(crate) connection: u64,
    pub(crate) account: Account,
    /// Turns to have a result written down.
    pub(crate) writes: Arc<Semaphore>,
    /// One call was counted before the message was read.
    pub(crate) is_counted: bool,
    /// What methods see of it.
    pub(crate) extensions: Extensions,
}

/// All methods, and the limits of a message.
pub(crate) struct Dispatcher {
    methods: Methods,
    limits: Limits,
    rate: Arc<Rate>,
    meter: Meter,
}

impl Dispatcher {
    pub(crate) fn new(methods: Methods, limits: Limits, rate: Arc<Rate>) -> Self {
        Self { meter: Meter::new(&methods), methods, limits, rate }
    }

    /// The answer to a message, or `None` where none is expected.
    pub(crate) async fn answer(&self, message: &[u8], origin: &Origin) -> Option<Answer> {
        let held = origin.account.hold();
        let message = message.trim_ascii_start();
        match message.first() {
            Some(b'[') => self.batch(message, origin, held).await,
            _ => self.single(message, origin, held).await,
        }
    }

    async fn single(&self, message: &[u8], origin: &Origin, mut held: Held) -> Option<Answer> {
        let entry = read(message);
        // Whatever it is: to read it costs as much as to read a call.
        let admitted = self.admit(origin, 1).map_err(error::limit);
        let request = match (entry, admitted) {
            (Entry::Notification, _) => return None,
            (Entry::Call(request), Ok(())) => request,
            (Entry::Invalid(id, code), Ok(())) => return Some(refusal(id, code, held)),
            (Entry::Call(Request { id, .. }) | Entry::Invalid(id, _), Err(reason)) => {
                return Some(refusal(id, reason, held));
            }
        };
        let id = request.id.clone().into_owned();
        let response = self.call(request, origin).await;
        match held.grow(response.as_json().get().len()) {
            Ok(()) => Some(Answer { json: text(response), held }),
            Err(full) => Some(refusal(id, error::limit(full), held)),
        }
    }

    /// Calls one after the other. The answer counts while it grows.
    async fn batch(&self, message: &[u8], origin: &Origin, mut held: Held) -> Option<Answer> {
        let entries = entries(message, self.limits.batch_max);
        // One without a call, or one that cannot be read, counts as a call.
        let calls = entries.as_ref().map_or(1, |entries| entries.len().max(1));
        let entries = match self.admit(origin, calls).map_err(error::limit).and(entries) {
            Ok(entries) => entries,
            Err(refused) => return Some(refusal(Id::Null, refused, held)),
        };
        let mut answers = BatchResponseBuilder::new_with_limit(self.limits.response_bytes_max);
        let mut has_notification = false;
        for entry in entries {
            let response = match read(entry.get().as_bytes()) {
                Entry::Call(request) => self.call(request, origin).await,
                Entry::Notification => {
                    has_notification = true;
                    continue;
                }
                Entry::Invalid(id, _) => MethodResponse::error(id, ErrorCode::InvalidRequest),
            };
            if let Err(full) = held.grow(response.as_json().get().len() + 1) {
                return Some(refusal(Id::Null, error::limit(full), held));
            }
            if let Err(too_large) = answers.append(response) {
                return Some(Answer { json: text(too_large), held });
            }
        }
        if answers.is_empty() && has_notification {
            return None;
        }
        Some(Answer { json: text(MethodResponse::from_batch(answers.finish())), held })
    }

    async fn call(&self, request: Request<'_>, origin: &Origin) -> MethodResponse {
        let begun = Instant::now();
        let Request { id, method, params, .. } = request;
        let params = Params::new(params.as_ref().map(|params| params.get()));
        let (max, extensions) = (self.limits.response_bytes_max, origin.extensions.clone());
        let response = match self.methods.method_with_name(&method).map(|(_, found)| found) {
            Some(MethodCallback::Sync(callback)) => callback(id, params, max, extensions),
            Some(MethodCallback::Async(callback)) => {
                let (id, params) = (id.into_owned(), params.into_owned());
                let connection = usize::try_from(origin.connection).unwrap_or_default();
                let call = ASKER.scope(origin.peer, callback(id, params, connection.into(), max, extensions));
                aside(within(max, call), &origin.writes).await
            }
            // Subscriptions are methods of ours that look for a `Session`; there is nothing of the library's own kind.
            None | Some(MethodCallback::Subscription(_) | MethodCallback::Unsubscription(_)) => {
                MethodResponse::error(id, ErrorCode::MethodNotFound)
            }
        };
        self.meter.finished(&method, &response, begun.elapsed());
        response
    }

    /// Counts calls, one at least, against the rate of their address.
    fn admit(&self, origin: &Origin, calls: usize) -> Result<(), String> {
        let calls = calls - usize::from(origin.is_counted);
        if calls == 0 {
            return Ok(());
        }
        let taken = self.rate.take(origin.peer, calls);
        taken.map_err(|wait| format!("too many calls: ask again in {} ms", wait.as_millis()))
    }
}

/// Runs a call. One that had to wait comes back with the result of long work, which may take long to write down: a turn
/// is waited for, and other connections are served by another thread meanwhile.
async fn aside<T>(call: impl Future<Output = T>, writes: &Semaphore) -> T {
    let mut call = std::pin::pin!(call);
    if let Poll::Ready(done) = once(call.as_mut()).await {
        return done;
    }
    loop {
        woken().await;
        // The semaphore is never closed; without a turn the answer would only be less orderly.
        let _turn = writes.acquire().await;
        let polled = poll_fn(|cx| Poll::Ready(tokio::task::block_in_place(|| call.as_mut().poll(cx)))).await;
        if let Poll::Ready(done) = polled {
            return done;
        }
    }
}

/// Polls a future once.
async fn once<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

/// Waits until what was polled before wakes the task.
async fn woken() {
    let mut is_first = true;
    poll_fn(|_| if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }).await;
}

/// One element of a message.
enum Entry<'a> {
    Call(Request<'a>),
    Notification,
    Invalid(Id<'a>, ErrorCode),
}

fn read(text: &[u8]) -> Entry<'_> {
    if let Ok(request) = serde_json::from_slice::<Request<'_>>(text) {
        return Entry::Call(request);
    }
    if serde_json::from_slice::<Notification<'_, Option<&RawValue>>>(text).is_ok() {
        return Entry::Notification;
    }
    match serde_json::from_slice::<InvalidRequest<'_>>(text) {
        Ok(invalid) => Entry::Invalid(invalid.id, ErrorCode::InvalidRequest),
        Err(_) => Entry::Invalid(Id::Null, ErrorCode::ParseError),
    }
}

/// An error as the answer. It names the request, whose id may be long, where there is room for that.
fn refusal<'a>(id: Id<'_>, reason: impl Into<ErrorObject<'a>>, mut held: Held) -> Answer {
    let reason = reason.into();
    let json = text(MethodResponse::error(id, reason.borrow()));
    match held.grow(json.len()) {
        Ok(()) => Answer { json, held },
        Err(_) => Answer { json: text(MethodResponse::error(Id::Null, reason)), held },
    }
}

fn text(response: MethodResponse) -> String {
    Box::<str>::from(response.into_json()).into()
}

/// The elements of a batch. Reading stops at the first one too many.
fn entries(message: &[u8], max: usize) -> Result<Vec<&RawValue>, ErrorObject<'static>> {
    let mut is_over = false;
    let mut reader = serde_json::Deserializer::from_slice(message);
    let read = Entries { max, is_over: &mut is_over }.deserialize(&mut reader);
    let read = read.and_then(|entries| reader.end().map(|()| entries));
    read.map_err(|_| match is_over {
        true => jsonrpsee::types::error::reject_too_big_batch_request(max),
        false => ErrorCode::ParseError.into(),
    })
}

struct Entries<'f> {
    max: usize,
    is_over: &'f mut bool,
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = Vec<&'de RawValue>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at most {} calls", self.max)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = sequence.next_element()? {
            if entries.len() == self.max {
                *self.is_over = true;
                return Err(A::Error::custom("too many calls"));
            }
            entries.push(entry);
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Level;
    use jsonrpsee::RpcModule;
    use serde_json::{Value, json};
    use std::net::Ipv4Addr;

    fn dispatcher(limits: Limits) -> Dispatcher {
        limited(limits, Rate::new(None))
    }

    fn limited(limits: Limits, rate: Arc<Rate>) -> Dispatcher {
        let mut methods = RpcModule::new(());
        methods
            .register_method("text", |params, _, _| "x".repeat(params.one::<usize>().unwrap_or_default()))
            .unwrap();
        let later = |_, _, _| async {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            tokio::task::yield_now().await;
            "pong"
        };
        methods.register_async_method("later", later).unwrap();
        Dispatcher::new(methods.into(), limits, rate)
    }

    fn origin(bytes: usize) -> (Origin, Arc<Level>) {
        let level = Level::new("test", bytes);
        let account = Account::new(level.clone(), Level::new("a", bytes), Level::new("b", 2 * bytes));
        let peer = Peer::new(Ipv4Addr::LOCALHOST.into());
        let writes = Arc::new(Semaphore::new(1));
        let extensions = Extensions::new();
        (Origin { peer, connection: 1, account, writes, is_counted: false, extensions }, level)
    }

    async fn ask(limits: Limits, bytes: usize, message: &str) -> Value {
        let (origin, level) = origin(bytes);
        let answer = dispatcher(limits).answer(message.as_bytes(), &origin).await;
        let value = answer.map(|answer| serde_json::from_str(&answer.json).unwrap()).unwrap_or_default();
        assert_eq!(level.used(), 0, "everything is given back");
        value
    }

    fn text_of(length: usize, id: u64) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "method": "text", "params": [length] })
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn messages_and_their_answers() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"later"}"#;
        let cases = [
            (call, json!("pong"), Value::Null),
            (" \n{", Value::Null, json!(-32_700)),
            ("", Value::Null, json!(-32_700)),
            ("1", Value::Null, json!(-32_700)),
            (r#"{"jsonrpc":"2.0","id":1}"#, Value::Null, json!(-32_600)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"nothing"}"#, Value::Null, json!(-32_601)),
            ("[]", Value::Null, json!(-32_600)),
            ("[1", Value::Null, json!(-32_700)),
        ];
        for (message, result, code) in cases {
            let answer = ask(Limits::default(), 1 << 20, message).await;
            assert_eq!(
                (&answer["result"], &answer["error"]["code"]),
                (&result, &code),
                "{message}: {answer}"
            );
        }
        let notification = r#"{"jsonrpc":"2.0","method":"later"}"#;
        for silent in [notification.to_owned(), format!("[{notification}]")] {
            assert!(ask(Limits::default(), 1 << 20, &silent).await.is_null());
        }
        let mixed = ask(Limits::default(), 1 << 20, &format!("[{call},1,{notification},{call}]")).await;
        assert_eq!(mixed.as_array().unwrap().len(), 3, "{mixed}");
        assert_eq!((&mixed[0]["result"], &mixed[1]["error"]["code"]), (&json!("pong"), &json!(-32_600)));
    }

    /// Notifications and what is no request used to be free.
    #[tokio::test(flavor = "multi_thread")]
    async fn every_message_counts_against_the_rate() {
        let notification = r#"{"jsonrpc":"2.0","method":"later"}"#;
        let limits = Limits { batch_max: 3, ..Limits::default() };
        let nonsense = [notification, r#"{"jsonrpc":"2.0","id":1}"#, "{", "1", "", "[]", "[1", "[1,1,1,1]"];
        for message in nonsense {
            let dispatcher = limited(limits, Rate::new(Some(1)));
            let (origin, _) = origin(1 << 20);
            let ask = async |message: &str| {
                let answer = dispatcher.answer(message.as_bytes(), &origin).await;
                let json = |answer: Answer| serde_json::from_str::<Value>(&answer.json).unwrap();
                answer.map(json).unwrap_or_default()["error"]["code"].clone()
            };
            assert_ne!(ask(message).await, -32_005, "{message}");
            let call = text_of(1, 1).to_string();
            assert_eq!(ask(&call).await, -32_005, "{message:?} was all that may be asked in a second");
            if message != notification {
                assert_eq!(ask(message).await, -32_005, "{message}");
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_batch_is_read_no_further_than_it_may_go() {
        let limits = Limits { batch_max: 3, ..Limits::default() };
        let batch = |count: usize| json!(vec![text_of(1, 7); count]).to_string();
        assert_eq!(ask(limits, 1 << 20, &batch(3)).await.as_array().unwrap().len(), 3);
        assert_eq!(ask(limits, 1 << 20, &batch(4)).await["error"]["code"], -32_010);
        let endless = format!("[{}", "1,".repeat(100_000));
        assert_eq!(
            ask(limits, 1 << 20, &endless).await["error"]["code"],
            -32_010,
            "not even its end is looked for"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_answer_above_the_budget_is_replaced() {
        let room = 10_000 + crate::limits::FREE_BYTES;
        let envelope = r#"{"jsonrpc":"2.0","id":1,"result":""}"#.len();
        let fits = ask(Limits::default(), 10_000, &text_of(room - envelope, 1).to_string()).await;
        assert!(fits["result"].is_string());
        let over = ask(Limits::default(), 10_000, &text_of(room - envelope + 1, 1).to_string()).await;
        assert_eq!((&over["error"]["code"], &over["id"]), (&json!(-32_005), &json!(1)));
        let message = over["error"]["message"].as_str().unwrap();
        assert!(message.contains("10000 that test may have in flight"), "{message}");
        let batch = json!([text_of(room / 2, 1), text_of(room / 2, 2)]).to_string();
        assert_eq!(ask(Limits::default(), 10_000, &batch).await["error"]["code"], -32_005, "batches alike");
    }

    /// An error names the request by its id, which is as long as the client likes.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_bytes_of_a_refusal_count_as_well() {
        let (id, room) = ("x".repeat(8_000), 6_000);
        let invalid = json!({ "jsonrpc": "2.0", "id": id }).to_string();
        let unknown = json!({ "jsonrpc": "2.0", "id": id, "method": "nothing" }).to_string();
        for message in [invalid, unknown] {
            let (origin, level) = origin(room);
            let dispatcher = dispatcher(Limits::default());
            let first = dispatcher.answer(message.as_bytes(), &origin).await.unwrap();
            assert_eq!(level.used(), first.json.len() - crate::limits::FREE_BYTES, "while it is not sent");
            assert!(first.json.contains(&id));
            let second = dispatcher.answer(message.as_bytes(), &origin).await.unwrap();
            let second: Value = serde_json::from_str(&second.json).unwrap();
            assert!(
                second["id"].is_null() && second["error"]["code"].is_i64(),
                "there is no room for the id"
            );
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_answer_has_a_size() {
        let limits = Limits { response_bytes_max: 1_000, ..Limits::default() };
        let envelope = r#"{"jsonrpc":"2.0","id":1,"result":""}"#.len();
        assert!(ask(limits, 1 << 20, &text_of(1_000 - envelope, 1).to_string()).await["result"].is_string());
        let over = ask(limits, 1 << 20, &text_of(1_001 - envelope, 1).to_string()).await;
        assert_eq!(over["error"]["code"], -32_008, "{over}");
        let batch = json!(vec![text_of(400, 1); 3]).to_string();
        assert!(ask(limits, 1 << 20, &batch).await["error"]["code"].is_i64(), "all answers together as well");
    }
}
