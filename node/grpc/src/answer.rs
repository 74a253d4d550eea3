//! Answers of JSON-RPC's methods, and their errors as gRPC says them.

use almanac_rpc::guest::{CallError, GuestAnswer, GuestRequest, TooMuch};
use std::{any::Any, sync::Arc};
use tonic::{Request, Response, Status};

/// Keeps the bytes of an answer in the budget until it is sent.
#[derive(Clone)]
pub(crate) struct Kept(pub(crate) Arc<dyn Any + Send + Sync>);

/// Who asks.
pub(crate) fn asker<T>(request: &Request<T>) -> Result<GuestRequest, Status> {
    let asker = request.extensions().get::<GuestRequest>().cloned();
    asker.ok_or_else(|| Status::internal("a request without a connection"))
}

/// A response whose bytes count as long as those of the answer that it was made of.
pub(crate) fn response<T>(message: T, answer: GuestAnswer) -> Response<T> {
    let mut response = Response::new(message);
    response.extensions_mut().insert(Kept(Arc::new(answer)));
    response
}

/// A request that asks for too much.
pub(crate) fn too_much(refused: &TooMuch) -> Status {
    Status::resource_exhausted(refused.to_string())
}

/// What a method refuses, with its own words.
pub(crate) fn refused(error: CallError) -> Status {
    let CallError { code, message, .. } = error;
    match code {
        -32_602 | -32_700 | -32_600 => Status::invalid_argument(message),
        -32_601 => Status::unimplemented(message),
        -32_005 | -32_007 | -32_008 => Status::resource_exhausted(message),
        -32_603 => Status::internal(message),
        _ => Status::failed_precondition(message),
    }
}
