//! The body of a request, whose bytes count in the budget as they come.

use crate::limits::REQUEST_BYTES_MAX;
use almanac_rpc::guest::GuestBytes;
use bytes::Bytes;
use http_body::{Body, Frame};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tonic::Status;

/// A body that may have so many bytes, each of which is counted until the request has ended.
pub(crate) struct Counted<B> {
    body: B,
    held: GuestBytes,
    bytes: usize,
}

impl<B> Counted<B> {
    pub(crate) fn new(body: B, held: GuestBytes) -> Self {
        Self { body, held, bytes: 0 }
    }
}

impl<B> Body for Counted<B>
where
    B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let Some(frame) = ready!(Pin::new(&mut this.body).poll_frame(cx)) else { return Poll::Ready(None) };
        let frame = frame.map_err(|error| Status::cancelled(format!("the request broke off: {error}")))?;
        if let Some(data) = frame.data_ref() {
            this.bytes = this.bytes.saturating_add(data.len());
            if this.bytes > REQUEST_BYTES_MAX {
                let text = format!("the request is above the limit of {REQUEST_BYTES_MAX} bytes");
                return Poll::Ready(Some(Err(Status::resource_exhausted(text))));
            }
            let held = this.held.grow(data.len());
            held.map_err(|full| Status::resource_exhausted(full.to_string()))?;
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
