//! One connection: its activity, its deadlines, and the bytes that it holds.

use crate::{budget::Account, limits::Limits, peer::Peer};
use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, ready},
    time::Instant,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{Notify, Semaphore},
    time::Sleep,
};

/// What the server knows of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) number: u64,
    pub(crate) peer: Peer,
    /// What its bytes count in.
    pub(crate) account: Account,
    /// Turns of its address to have a call worked on.
    pub(crate) turns: Arc<Semaphore>,
    /// Turns of its address to have a result written down.
    pub(crate) writes: Arc<Semaphore>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// Requests whose answers are not sent yet. A WebSocket is one that never ends.
    busy: usize,
    /// The last change of what it is doing.
    since: Instant,
    /// Part of a request has come.
    is_begun: bool,
    /// A request was answered.
    is_served: bool,
    /// Another connection has its place.
    is_displaced: bool,
}

/// A request that is being answered, until this is dropped.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Connection>);

impl Connection {
    pub(crate) fn new(
        number: u64,
        peer: Peer,
        account: Account,
        turns: Arc<Semaphore>,
        writes: Arc<Semaphore>,
    ) -> Arc<Self> {
        let state =
            State { busy: 0, since: Instant::now(), is_begun: false, is_served: false, is_displaced: false };
        let (state, changed) = (Mutex::new(state), Notify::new());
        Arc::new(Self { number, peer, account, turns, writes, state, changed })
    }

    /// Begins a request.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.lock().busy += 1;
        Busy(self.clone())
    }

    /// Since when nothing is asked on it, if that is so.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.busy == 0).then_some(state.since)
    }

    /// Ends it, because another connection has its place.
    pub(crate) fn displace(&self) {
        self.lock().is_displaced = true;
        self.changed.notify_one();
    }

    /// Waits until it has lost its place.
    pub(crate) async fn displaced(&self) {
        while !self.lock().is_displaced {
            self.changed.notified().await;
        }
    }

    /// Waits until it has had no request for too long, or has lost its place.
    pub(crate) async fn expired(&self, limits: &Limits) {
        loop {
            let left = {
                let state = self.lock();
                let is_late = state.is_begun || !state.is_served;
                let idle = limits.idle_time_max;
                let allowed = if is_late { idle.min(limits.request_time_max) } else { idle };
                match state.busy {
                    _ if state.is_displaced => return,
                    0 => allowed.saturating_sub(state.since.elapsed()),
                    _ => idle,
                }
            };
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    /// Bytes have come.
    fn on_read(&self) {
        let mut state = self.lock();
        if state.busy == 0 && !state.is_begun {
            state.is_begun = true;
            state.since = Instant::now();
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding the state of a connection")
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.busy -= 1;
        state.since = Instant::now();
        state.is_begun = false;
        state.is_served = true;
    }
}

/// A socket that reports what comes, and fails where the other end does not take what is sent.
///
/// The clock runs from the first write that has to wait until everything is flushed: a client that reads a byte now and
/// then is as late as one that reads nothing.
#[derive(Debug)]
pub(crate) struct Paced<S> {
    socket: S,
    connection: Arc<Connection>,
    send_time_max: std::time::Duration,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Whether bytes that come belong to a request. With streams, some are only for the connection.
    is_reporting: bool,
}

impl<S> Paced<S> {
    pub(crate) fn new(socket: S, connection: Arc<Connection>, limits: &Limits) -> Self {
        let send_time_max = limits.send_time_max;
        Self { socket, connection, send_time_max, deadline: None, is_reporting: true }
    }

    /// For a protocol with many streams in a connection: what comes between requests is not the start of one.
    pub(crate) fn of_streams(socket: S, connection: Arc<Connection>, limits: &Limits) -> Self {
        Self { is_reporting: false, ..Self::new(socket, connection, limits) }
    }

    /// Passes on what a write came to, unless it is too late for it.
    fn paced<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_pending() && self.deadline.is_none() {
            self.deadline = Some(Box::pin(tokio::time::sleep(self.send_time_max)));
        }
        if self.deadline.as_mut().is_some_and(|deadline| deadline.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")));
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.socket).poll_read(cx, buffer))?;
        if this.is_reporting && buffer.filled().len() > before {
            this.connection.on_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write(cx, bytes);
        this.paced(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write_vectored(cx, parts);
        this.paced(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// Whoever flushes has written all of an answer.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.socket).poll_flush(cx))?;
        this.deadline = None;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
