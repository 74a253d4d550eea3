//! The body of an answer, on its way to a client that may not read it.
//!
//! With streams, a client that reads nothing does not block the socket: it leaves the window of the stream closed, and
//! nobody asks the body for more. So the body has a deadline for when it is asked, and a guard closes the connection of
//! a client that never asks.

use almanac_rpc::guest::GuestRequest;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use std::{
    any::Any,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot},
    time::Sleep,
};
use tonic::{Code, Status, body::Body};

/// An answer that is being sent. What it holds is given back when it is sent, or given up.
pub(crate) struct Outgoing {
    body: Body,
    deadline: Pin<Box<Sleep>>,
    is_over: bool,
    /// Bytes in the budget.
    _held: Option<Arc<dyn Any + Send + Sync>>,
    _request: Option<GuestRequest>,
    /// Tells the guard that all is sent.
    _sent: oneshot::Sender<()>,
}

impl Outgoing {
    /// Sends `body` within `time`, and closes the connection of a client that has not read it after twice that.
    pub(crate) fn new(
        body: Body,
        held: Option<Arc<dyn Any + Send + Sync>>,
        request: Option<GuestRequest>,
        time: Duration,
        close: Arc<Notify>,
    ) -> Self {
        let (sent, is_sent) = oneshot::channel::<()>();
        tokio::spawn(async move {
            if tokio::time::timeout(time * 2, is_sent).await.is_err() {
                close.notify_one();
            }
        });
        let deadline = Box::pin(tokio::time::sleep(time));
        Self { body, deadline, is_over: false, _held: held, _request: request, _sent: sent }
    }
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        if this.deadline.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        // A stream that stays open without anything to say.
        this.is_over = true;
        let mut trailers = HeaderMap::new();
        trailers.insert(Status::GRPC_STATUS, HeaderValue::from(Code::DeadlineExceeded as i32));
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }
}
