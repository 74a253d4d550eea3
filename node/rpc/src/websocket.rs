//! A WebSocket: reads a message when there is room to work on it, and sends what is ready.
//!
//! A call occupies one of the connection's places until its answer is written to the socket. While all places are
//! taken, nothing is read, so a client that does not read its answers cannot ask for more.

use crate::{
    connection::Connection,
    dispatch::{Dispatcher, Origin},
    frames::{FrameError, Incoming, Reader, Writer},
    limits::Limits,
    peer::Client,
    places::Place,
    session::{Outgoing, Subscriptions},
};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use jsonrpsee::{
    Extensions, MethodResponse,
    types::{Id, error::reject_too_big_request},
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinSet,
};

/// Turns true, or breaks off, when the server stops. Connections hold the other half until they have ended.
#[derive(Clone, Debug)]
pub(crate) struct Stopping {
    pub(crate) is_stopping: watch::Receiver<bool>,
    pub(crate) _alive: mpsc::Sender<()>,
}

impl Stopping {
    /// Waits until the server stops.
    pub(crate) async fn wait(&mut self) {
        // An error means that the server was dropped, which stops it too.
        let _ = self.is_stopping.wait_for(|is_stopping| *is_stopping).await;
    }
}

/// RFC 6455, section 7.4.1.
const CLOSED_NORMALLY: u16 = 1000;
const MESSAGE_TOO_BIG: u16 = 1009;
const TRY_AGAIN_LATER: u16 = 1013;

/// Serves a connection until either side ends it.
pub(crate) async fn run(
    socket: Upgraded,
    place: &Place,
    dispatcher: Arc<Dispatcher>,
    limits: &Limits,
    stopping: Stopping,
) {
    let connection = place.connection().clone();
    let (reader, writer) = tokio::io::split(TokioIo::new(socket));
    let (outbox, inbox) = mpsc::unbounded_channel();
    let subscriptions = Subscriptions::new(limits, connection.account.clone(), outbox.clone());
    let control = Arc::new(Control::default());
    let reader = Reader::new(reader, connection.account.clone(), limits);
    let calls =
        Calls { connection: connection.clone(), dispatcher, subscriptions: subscriptions.clone(), outbox };
    tokio::select! {
        () = read(reader, calls, &control, limits, stopping) => {}
        // A client that does not read shows itself here.
        _ = write(Writer::new(writer), inbox, &control, limits.idle_time_max / 2) => {}
        () = connection.displaced() => {}
    }
    subscriptions.close();
}

/// What the reading side asks of the writing side, beside answers.
#[derive(Debug, Default)]
struct Control {
    /// The last ping. One that follows before it is answered replaces it, as RFC 6455 allows.
    pong: Mutex<Option<Vec<u8>>>,
    /// Take leave, with this code, when all answers are sent.
    close: Mutex<Option<u16>>,
    changed: Notify,
}

impl Control {
    fn pong(&self, content: Vec<u8>) {
        *self.pong.lock().expect("nobody panics while holding a pong") = Some(content);
        self.changed.notify_one();
    }

    fn close(&self, code: u16) {
        *self.close.lock().expect("nobody panics while holding a code") = Some(code);
        self.changed.notify_one();
    }

    fn take_pong(&self) -> Option<Vec<u8>> {
        self.pong.lock().expect("nobody panics while holding a pong").take()
    }

    fn closing(&self) -> Option<u16> {
        *self.close.lock().expect("nobody panics while holding a code")
    }
}

/// What a call needs.
#[derive(Clone)]
struct Calls {
    connection: Arc<Connection>,
    dispatcher: Arc<Dispatcher>,
    subscriptions: Arc<Subscriptions>,
    outbox: mpsc::UnboundedSender<Outgoing>,
}

/// Reads until the client leaves. Returns at once then: nobody waits for what is under way.
async fn read(
    mut reader: Reader<impl AsyncRead + Unpin>,
    calls: Calls,
    control: &Control,
    limits: &Limits,
    mut stopping: Stopping,
) {
    let places = Arc::new(Semaphore::new(limits.connection_calls_max));
    let mut tasks = JoinSet::new();
    let code = loop {
        let next = async {
            let place = places.clone().acquire_owned().await.ok()?;
            Some((place, reader.next().await))
        };
        let next = tokio::select! {
            () = stopping.wait() => break CLOSED_NORMALLY,
            next = next => next,
        };
        let Some((place, incoming)) = next else { return };
        match incoming {
            Ok(Incoming::Message(message, held)) => {
                let calls = calls.clone();
                tasks.spawn(async move {
                    calls.answer(message, place).await;
                    drop(held);
                });
                while tasks.try_join_next().is_some() {}
            }
            Ok(Incoming::Ping(content)) => control.pong(content),
            Ok(Incoming::Pong) => {}
            Ok(Incoming::Close) => break CLOSED_NORMALLY,
            Err(FrameError::TooLarge { max }) => {
                let max = u32::try_from(max).unwrap_or(u32::MAX);
                calls.refuse(&MethodResponse::error(Id::Null, reject_too_big_request(max)));
                break MESSAGE_TOO_BIG;
            }
            Err(FrameError::Full(full)) => {
                calls.refuse(&MethodResponse::error(Id::Null, crate::error::limit(full)));
                break TRY_AGAIN_LATER;
            }
            Err(error) => {
                tracing::debug!("a WebSocket of {} ended: {error}", calls.connection.peer);
                return;
            }
        }
    };
    while tasks.join_next().await.is_some() {}
    control.close(code);
    // The writing side takes leave, and that ends both.
    std::future::pending::<()>().await;
}

impl Calls {
    async fn answer(&self, message: Vec<u8>, place: OwnedSemaphorePermit) {
        let connection = &self.connection;
        let (is_answered, answered) = watch::channel(false);
        let mut extensions = Extensions::new();
        extensions.insert(Client { peer: connection.peer, websocket: Some(connection.number) });
        extensions.insert(self.subscriptions.session(answered));
        let origin = Origin {
            peer: connection.peer,
            connection: connection.number,
            account: connection.account.clone(),
            writes: connection.writes.clone(),
            is_counted: false,
            extensions,
        };
        let turn = connection.turns.acquire().await;
        let answer = self.dispatcher.answer(&message, &origin).await;
        drop(turn);
        if let Some(answer) = answer {
            let outgoing = Outgoing { text: answer.json, held: Some(answer.held), permit: Some(place) };
            // An error means that the connection has ended.
            let _ = self.outbox.send(outgoing);
        }
        let _ = is_answered.send(true);
    }

    fn refuse(&self, reason: &MethodResponse) {
        let text = reason.as_json().get().to_owned();
        let _ = self.outbox.send(Outgoing { text, held: None, permit: None });
    }
}

/// Sends answers, notifications and pings, until the socket fails or it is time to take leave.
async fn write(
    mut writer: Writer<impl AsyncWrite + Unpin>,
    mut inbox: mpsc::UnboundedReceiver<Outgoing>,
    control: &Control,
    ping_every: Duration,
) -> std::io::Result<()> {
    loop {
        if let Some(content) = control.take_pong() {
            writer.pong(&content).await?;
        }
        tokio::select! {
            biased;
            () = control.changed.notified() => {}
            outgoing = inbox.recv() => match outgoing {
                Some(outgoing) => send(&mut writer, outgoing).await?,
                None => return Ok(()),
            },
            () = tokio::time::sleep(ping_every) => writer.ping().await?,
        }
        if let Some(code) = control.closing() {
            while let Ok(outgoing) = inbox.try_recv() {
                send(&mut writer, outgoing).await?;
            }
            return writer.close(code).await;
        }
    }
}

/// Writes a message, and only then gives back what it held.
async fn send(
    writer: &mut Writer<impl AsyncWrite + Unpin>,
    Outgoing { text, held, permit }: Outgoing,
) -> std::io::Result<()> {
    let sent = writer.text(&text).await;
    drop((text, held, permit));
    sent
}
