//! Connections of another protocol: they make the calls of JSON-RPC, under its limits (decision 0041).
//!
//! A guest has a place among the connections of the server, its bytes count in the same budget, its requests in the same
//! rate, and its calls wait in the same queues. Nothing but the form differs.

use crate::{
    budget::Held,
    connection::{Busy, Paced},
    dispatch,
    gate::Gate,
    limits::Limits,
    peer::Peer,
    places::{Place, Refused},
    rate::Rate,
    rest,
};
use jsonrpsee::types::ErrorObjectOwned;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use std::{net::IpAddr, sync::Arc, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};

/// Takes in connections of another protocol.
#[derive(Clone)]
pub struct Guests(Arc<Gate>);

/// One connection. It has its place until all copies of this are dropped.
#[derive(Clone)]
pub struct Guest {
    gate: Arc<Gate>,
    place: Arc<Place>,
}

/// One request of a connection, which is in use until all copies of this are dropped.
#[derive(Clone)]
pub struct GuestRequest {
    guest: Guest,
    _busy: Arc<Busy>,
}

/// Bytes that a request makes the node hold, until this is dropped.
#[derive(Debug)]
pub struct GuestBytes(Held);

/// What a method answered. Its bytes are counted until this is dropped.
#[derive(Debug)]
pub struct GuestAnswer(dispatch::Answer);

/// Why a connection is turned away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}: try again later")]
pub struct TurnedAway(String);

/// Why there is no result.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// The code of JSON-RPC.
    pub code: i32,
    /// What is wrong.
    pub message: String,
    /// What goes with it: the output of a call that reverted.
    pub data: Option<Value>,
}

/// A request that asks for too much.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct TooMuch(String);

impl Guests {
    pub(crate) fn new(gate: Arc<Gate>) -> Self {
        Self(gate)
    }

    /// The limits of all connections.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// A place for a connection from this address, which another one may lose.
    pub fn admit(&self, address: IpAddr) -> Result<Guest, TurnedAway> {
        let place = self.0.places.take(Peer::new(address));
        let place = place.map_err(|refused: Refused| TurnedAway(refused.to_string()))?;
        Ok(Guest { gate: self.0.clone(), place: Arc::new(place) })
    }
}

impl Guest {
    /// The socket, which fails where the other end does not take what is sent.
    pub fn paced<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        socket: S,
    ) -> impl AsyncRead + AsyncWrite + Unpin + Send + use<S> {
        Paced::of_streams(socket, self.place.connection().clone(), &self.gate.limits)
    }

    /// Waits until it has had no request for too long, or has lost its place.
    pub async fn expired(&self) {
        self.place.connection().expired(&self.gate.limits).await;
    }

    /// Begins a request, unless its address makes too many.
    pub fn begin(&self) -> Result<GuestRequest, TooMuch> {
        let busy = Arc::new(self.place.connection().begin());
        self.gate.rate.take(self.place.connection().peer, 1).map_err(too_fast)?;
        Ok(GuestRequest { guest: self.clone(), _busy: busy })
    }
}

fn too_fast(wait: Duration) -> TooMuch {
    TooMuch(format!("too many requests: ask again in {} ms", wait.as_millis()))
}

impl GuestRequest {
    /// Nothing yet; [`GuestBytes::grow`] adds to it.
    pub fn hold(&self) -> GuestBytes {
        GuestBytes(self.guest.place.connection().account.hold())
    }

    /// Calls a method when it is the turn of this address.
    pub async fn call(&self, method: &str, params: &[Value]) -> Result<GuestAnswer, CallError> {
        let message = rest::message(method, params);
        let answer = self.guest.gate.ask(message.as_bytes(), self.guest.place.connection()).await;
        let answer = answer.ok_or_else(|| CallError::internal("the method did not answer"))?;
        Ok(GuestAnswer(answer))
    }
}

impl GuestBytes {
    /// Holds so many bytes more, if there is room for them.
    pub fn grow(&mut self, bytes: usize) -> Result<(), TooMuch> {
        self.0.grow(bytes).map_err(|full| TooMuch(full.to_string()))
    }
}

/// A message of JSON-RPC, as far as it matters here.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ErrorObjectOwned>,
}

impl GuestAnswer {
    /// The result, or `None` where that is null.
    pub fn result<T: DeserializeOwned>(&self) -> Result<Option<T>, CallError> {
        let message: Message<'_> = serde_json::from_str(&self.0.json).map_err(CallError::internal)?;
        if let Some(error) = message.error {
            let data = error.data().and_then(|data| serde_json::from_str(data.get()).ok());
            return Err(CallError { code: error.code(), message: error.message().to_owned(), data });
        }
        let result = message.result.map(RawValue::get).filter(|result| *result != "null");
        result.map(serde_json::from_str).transpose().map_err(CallError::internal)
    }
}

impl CallError {
    /// A fault of the node's own.
    pub fn internal(reason: impl std::fmt::Display) -> Self {
        let fault = crate::error::internal(reason);
        Self { code: fault.code(), message: fault.message().to_owned(), data: None }
    }
}

/// Requests per second that one address may make of one kind.
#[derive(Clone, Debug)]
pub struct Throttle(Arc<Rate>);

impl Throttle {
    /// So many per second.
    pub fn new(per_second: u32) -> Self {
        Self(Rate::new(Some(per_second)))
    }

    /// Counts a request, or refuses it.
    pub fn take(&self, request: &GuestRequest) -> Result<(), TooMuch> {
        self.0.take(request.guest.place.connection().peer, 1).map_err(too_fast)
    }
}
