//! A WebSocket as its calls see it: its subscriptions, and its queue of messages.

use crate::{
    budget::{Account, Full, Held},
    error,
    limits::Limits,
};
use jsonrpsee::{Extensions, core::RpcResult, types::ErrorObjectOwned};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc, watch},
    task::AbortHandle,
};

/// Something to send. What it holds is given back when it is sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) text: String,
    /// Its bytes in the budget.
    pub(crate) held: Option<Held>,
    /// The place of its call, or its share of the room for notifications.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

/// The subscriptions of one WebSocket.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    limits: Limits,
    account: Account,
    outbox: mpsc::UnboundedSender<Outgoing>,
    /// Bytes of notifications that may wait to be sent.
    room: Arc<Semaphore>,
    /// One notification at a time is written down and waits for room.
    order: tokio::sync::Mutex<()>,
    /// By id; nothing once the connection has ended.
    open: Mutex<Option<BTreeMap<String, AbortHandle>>>,
}

/// One call's view of its WebSocket.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    subscriptions: Arc<Subscriptions>,
    /// Turns true when the answer to this call is on its way.
    answered: watch::Receiver<bool>,
}

/// Why a subscription ends, unless the client ends it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Ended {
    #[error("{0} events came faster than they were read: subscribe again, and read what was missed")]
    Missed(u64),
    #[error(
        "too slow: {max} bytes of notifications wait, and none was read for {} ms: subscribe again, and read what was \
         missed", .time.as_millis()
    )]
    TooSlow { max: usize, time: Duration },
    #[error("a notification is above the limit of {max} bytes")]
    TooLarge { max: usize },
    #[error("{0}")]
    Full(#[from] Full),
    #[error("{0}")]
    Failed(String),
    /// The client ended it.
    #[error("closed")]
    Closed,
}

impl Subscriptions {
    pub(crate) fn new(
        limits: &Limits,
        account: Account,
        outbox: mpsc::UnboundedSender<Outgoing>,
    ) -> Arc<Self> {
        Arc::new(Self {
            limits: *limits,
            account,
            outbox,
            room: Arc::new(Semaphore::new(limits.notification_bytes_max)),
            order: tokio::sync::Mutex::default(),
            open: Mutex::new(Some(BTreeMap::new())),
        })
    }

    /// For a call whose answer is on its way when `answered` turns true.
    pub(crate) fn session(self: &Arc<Self>, answered: watch::Receiver<bool>) -> Session {
        Session { subscriptions: self.clone(), answered }
    }

    /// Ends all of them, without a word.
    pub(crate) fn close(&self) {
        let open = self.lock().take();
        open.into_iter().flatten().for_each(|(_, task)| task.abort());
    }

    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<String, AbortHandle>>> {
        self.open.lock().expect("nobody panics while holding the subscriptions")
    }
}

impl Session {
    /// The session of a call, or an error where it came over HTTP, which cannot push.
    pub(crate) fn of(call: &Extensions) -> RpcResult<&Self> {
        call.get().ok_or_else(error::no_notifications)
    }

    /// Tells the client what `work` sends, from when the answer with the id is on its way.
    pub(crate) fn subscribe<F, Work>(&self, method: &'static str, work: F) -> RpcResult<String>
    where
        F: FnOnce(Sink) -> Work + Send + 'static,
        Work: Future<Output = Result<(), Ended>> + Send,
    {
        let id = random_id()?;
        let sink = Sink { id: id.clone(), method, subscriptions: self.subscriptions.clone() };
        let mut answered = self.answered.clone();
        let mut open = self.subscriptions.lock();
        let open = open.as_mut().ok_or_else(|| error::limit("the connection is closed"))?;
        let max = self.subscriptions.limits.subscriptions_max;
        if open.len() >= max {
            return Err(error::limit(format!(
                "this connection has {max} subscriptions, the most there may be"
            )));
        }
        let task = tokio::spawn(async move {
            let is_sent = answered.wait_for(|is_answered| *is_answered).await.is_ok();
            let ended = if is_sent { work(sink.clone()).await } else { Ok(()) };
            sink.end(ended.err().as_ref());
        });
        open.insert(id.clone(), task.abort_handle());
        Ok(id)
    }

    /// Ends a subscription of this connection; whether there was one. Nothing of it is sent after the answer.
    pub(crate) fn unsubscribe(&self, id: &str) -> bool {
        let task = self.subscriptions.lock().as_mut().and_then(|open| open.remove(id));
        task.map(|task| task.abort()).is_some()
    }
}

/// A name that nobody guesses: 128 bits.
fn random_id() -> RpcResult<String> {
    Ok(format!("{:#034x}", random_bits().map_err(error::internal)?))
}

/// Random bits from the operating system.
pub(crate) fn random_bits() -> Result<u128, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_be_bytes(bytes))
}

/// Where a subscription sends to.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    id: String,
    method: &'static str,
    subscriptions: Arc<Subscriptions>,
}

#[derive(Serialize)]
struct Message<'a, T> {
    jsonrpc: &'static str,
    method: &'static str,
    params: Params<'a, T>,
}

#[derive(Serialize)]
struct Params<'a, T> {
    subscription: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Sink {
    /// Sends an item when there is room for it; an error where the client does not read.
    pub(crate) async fn send(&self, item: &(impl Serialize + Sync)) -> Result<(), Ended> {
        let Limits { notification_time_max: time, notification_bytes_max: max, .. } =
            self.subscriptions.limits;
        tokio::time::timeout(time, self.queue(item)).await.map_err(|_| Ended::TooSlow { max, time })?
    }

    async fn queue(&self, item: &(impl Serialize + Sync)) -> Result<(), Ended> {
        let all = &self.subscriptions;
        let _turn = all.order.lock().await;
        let text = self.message(Some(item), None)?;
        let mut held = all.account.hold();
        held.grow(text.len())?;
        let taken = u32::try_from(text.len().min(all.limits.notification_bytes_max)).unwrap_or(u32::MAX);
        let permit = all.room.clone().acquire_many_owned(taken).await.map_err(|_| Ended::Closed)?;
        // Under the lock: once it is unsubscribed, nothing follows.
        let open = all.lock();
        if !open.as_ref().is_some_and(|open| open.contains_key(&self.id)) {
            return Err(Ended::Closed);
        }
        let outgoing = Outgoing { text, held: Some(held), permit: Some(permit) };
        all.outbox.send(outgoing).map_err(|_| Ended::Closed)
    }

    /// Ends the subscription, and tells the client why if there is a reason.
    fn end(&self, reason: Option<&Ended>) {
        let mut open = self.subscriptions.lock();
        let was_open = open.as_mut().and_then(|open| open.remove(&self.id)).is_some();
        let Some(reason) = reason.filter(|reason| was_open && **reason != Ended::Closed) else { return };
        if let Ok(text) = self.message(None::<&()>, Some(reason.to_string())) {
            // It is small, and there is one for each subscription: it needs no room.
            let _ = self.subscriptions.outbox.send(Outgoing { text, held: None, permit: None });
        }
    }

    fn message<T: Serialize>(&self, result: Option<T>, error: Option<String>) -> Result<String, Ended> {
        let params = Params { subscription: &self.id, result, error };
        let message = Message { jsonrpc: "2.0", method: self.method, params };
        let max = self.subscriptions.limits.response_bytes_max;
        let mut written = Bounded { bytes: Vec::new(), max };
        serde_json::to_writer(&mut written, &message).map_err(|error| match error.is_io() {
            true => Ended::TooLarge { max },
            false => Ended::Failed(error.to_string()),
        })?;
        String::from_utf8(written.bytes).map_err(|error| Ended::Failed(error.to_string()))
    }
}

/// Takes so many bytes and no more.
struct Bounded {
    bytes: Vec<u8>,
    max: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + part.len() > self.max {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The next event, or `None` where there will be none.
pub(crate) async fn next<T: Clone>(news: &mut broadcast::Receiver<T>) -> Result<Option<T>, Ended> {
    match news.recv().await {
        Ok(event) => Ok(Some(event)),
        Err(broadcast::error::RecvError::Lagged(count)) => Err(Ended::Missed(count)),
        Err(broadcast::error::RecvError::Closed) => Ok(None),
    }
}

/// The end of a subscription that comes too late for the block it was to be told of.
pub(crate) fn missed<T: Clone>(news: &broadcast::Receiver<T>) -> Ended {
    Ended::Missed(u64::try_from(news.len()).unwrap_or(u64::MAX).saturating_add(1))
}

/// What goes wrong before there is a subscription.
impl From<Ended> for ErrorObjectOwned {
    fn from(ended: Ended) -> Self {
        error::limit(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Level;
    use serde_json::{Value, json};

    struct Client {
        subscriptions: Arc<Subscriptions>,
        session: Session,
        inbox: mpsc::UnboundedReceiver<Outgoing>,
    }

    fn client(limits: &Limits) -> Client {
        let level = || Level::new("test", limits.total_bytes_max);
        let (outbox, inbox) = mpsc::unbounded_channel();
        let subscriptions = Subscriptions::new(limits, Account::new(level(), level(), level()), outbox);
        let (answer, answered) = watch::channel(false);
        answer.send(true).unwrap();
        Client { session: subscriptions.session(answered), subscriptions, inbox }
    }

    impl Client {
        async fn receive(&mut self) -> (Value, Outgoing) {
            let outgoing = self.inbox.recv().await.unwrap();
            (serde_json::from_str(&outgoing.text).unwrap(), outgoing)
        }
    }

    /// Sends items without end.
    async fn endless(sink: Sink) -> Result<(), Ended> {
        loop {
            sink.send(&"x".repeat(1_000)).await?;
        }
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_told_that_it_was_too_slow() {
        let limits = Limits {
            notification_bytes_max: 10_000,
            notification_time_max: Duration::from_millis(50),
            ..Limits::default()
        };
        let mut client = client(&limits);
        let id = client.session.subscribe("test", endless).unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut queued = 0;
        let reason = loop {
            let (message, outgoing) = client.receive().await;
            queued += outgoing.text.len();
            if let Some(reason) = message["params"]["error"].as_str() {
                break reason.to_owned();
            }
            // Reading what waits makes room, and is too late.
            drop(outgoing);
        };
        assert!(queued < 11_000, "{queued}");
        assert!(reason.contains("too slow: 10000 bytes") && reason.contains("50 ms"), "{reason}");
        assert!(!client.session.unsubscribe(&id), "it is gone");
        assert!(client.inbox.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_client_that_reads_is_told_everything() {
        let limits = Limits { notification_bytes_max: 2_500, ..Limits::default() };
        let mut client = client(&limits);
        let id = client.session.subscribe("test", endless).unwrap();
        for _ in 0..100 {
            let (message, _) = client.receive().await;
            assert_eq!(message["params"]["subscription"], json!(id));
            assert!(message["params"]["error"].is_null(), "{message}");
        }
        assert!(client.session.unsubscribe(&id) && !client.session.unsubscribe(&id));
        while client.inbox.try_recv().is_ok() {}
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(client.inbox.try_recv().is_err(), "nothing follows");
    }

    #[tokio::test]
    async fn so_many_subscriptions_and_ids_that_nobody_guesses() {
        let limits = Limits { subscriptions_max: 3, ..Limits::default() };
        let client = client(&limits);
        let never = |_: Sink| std::future::pending();
        let ids: Vec<String> = (0..3).map(|_| client.session.subscribe("test", never).unwrap()).collect();
        assert!(ids.iter().all(|id| id.len() == 34 && id.starts_with("0x")), "{ids:?}");
        let bits = |id: &String| u128::from_str_radix(&id[2..], 16).unwrap();
        assert!(ids.windows(2).all(|pair| bits(&pair[0]).abs_diff(bits(&pair[1])) > 1 << 64), "{ids:?}");
        let refused = client.session.subscribe("test", never).unwrap_err();
        assert!(refused.message().contains("3 subscriptions"), "{refused}");
        assert!(client.session.unsubscribe(&ids[1]));
        assert!(client.session.subscribe("test", never).is_ok());
        client.subscriptions.close();
        assert!(client.session.subscribe("test", never).is_err(), "the connection has ended");
    }

    #[tokio::test]
    async fn a_notification_has_a_size() {
        let limits = Limits { response_bytes_max: 1_200, ..Limits::default() };
        let mut client = client(&limits);
        let work = |sink: Sink| async move {
            sink.send(&"x".repeat(1_000)).await?;
            sink.send(&"x".repeat(1_200)).await
        };
        client.session.subscribe("test", work).unwrap();
        assert!(client.receive().await.0["params"]["result"].is_string());
        let reason = client.receive().await.0["params"]["error"].clone();
        assert_eq!(reason, "a notification is above the limit of 1200 bytes");
    }

    #[tokio::test]
    async fn nothing_is_sent_before_the_answer_or_without_one() {
        let limits = Limits::default();
        let mut client = client(&limits);
        let (answer, answered) = watch::channel(false);
        let session = client.subscriptions.session(answered);
        session.subscribe("test", |sink| async move { sink.send(&1).await }).unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(client.inbox.try_recv().is_err());
        answer.send(true).unwrap();
        assert_eq!(client.receive().await.0["params"]["result"], 1);
        let (answer, answered) = watch::channel(false);
        let session = client.subscriptions.session(answered);
        let id = session.subscribe("test", |sink| async move { sink.send(&1).await }).unwrap();
        drop(answer);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(client.inbox.try_recv().is_err());
        assert!(!session.unsubscribe(&id));
    }
}
