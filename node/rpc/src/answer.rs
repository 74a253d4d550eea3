//! Answers as JSON, written where they are built.
//!
//! jsonrpsee serializes the result of a method on a thread that serves connections, and checks its size only then.
//! Here the thread that did the work writes the JSON, piece by piece where there can be many, and stops as soon as it
//! is too large. So an answer is in memory once, as JSON, and never beyond its limit.

use crate::{
    bounds::{ANSWER_BYTES_MAX, ENVELOPE_BYTES},
    error,
};
use jsonrpsee::core::RpcResult;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::{io, marker::PhantomData};

/// A `T` as JSON.
pub struct Answer<T> {
    json: Box<RawValue>,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Answer<T> {
    fn clone(&self) -> Self {
        Self { json: self.json.clone(), of: PhantomData }
    }
}

impl<T> std::fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.json.get())
    }
}

impl<T> Serialize for Answer<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

tokio::task_local! {
    /// Most bytes of the answer to the current call.
    static BYTES_MAX: usize;
}

/// Most bytes of an answer here: what the server was told, or the usual where nobody said.
fn bytes_max() -> usize {
    BYTES_MAX.try_with(|max| *max).unwrap_or(ANSWER_BYTES_MAX)
}

/// Makes a call whose whole response has so many bytes at most.
pub(crate) async fn within<T>(response_bytes_max: usize, call: impl Future<Output = T>) -> T {
    BYTES_MAX.scope(response_bytes_max.saturating_sub(ENVELOPE_BYTES), call).await
}

/// Takes the limit of the current call along to another thread.
pub(crate) fn keep_limit<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let max = bytes_max();
    move || BYTES_MAX.sync_scope(max, work)
}

/// The bytes that are left for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    max: usize,
    left: usize,
    /// How to ask for less.
    instead: &'static str,
}

impl Room {
    /// Room for a whole answer; `instead` says how to ask for less.
    pub(crate) fn new(instead: &'static str) -> Self {
        let max = bytes_max();
        Self { max, left: max, instead }
    }

    /// Writes a part of the answer, or says that there is too much.
    pub(crate) fn write<T: Serialize>(&mut self, part: &T) -> RpcResult<Answer<T>> {
        let mut page = Page { json: Vec::new(), max: self.left, is_full: false };
        let written = serde_json::to_writer(&mut page, part);
        if page.is_full {
            return Err(self.refusal());
        }
        written.map_err(error::internal)?;
        // A comma or a bracket comes with it.
        self.take(page.json.len().saturating_add(1))?;
        let json = String::from_utf8(page.json).map_err(error::internal)?;
        Ok(Answer { json: RawValue::from_string(json).map_err(error::internal)?, of: PhantomData })
    }

    /// Counts bytes of the answer that are written later.
    pub(crate) fn take(&mut self, bytes: usize) -> RpcResult<()> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| self.refusal())?;
        Ok(())
    }

    fn refusal(&self) -> jsonrpsee::types::ErrorObjectOwned {
        let Self { max, instead, .. } = self;
        error::limit(format!("the answer is above the limit of {max} bytes: {instead}"))
    }
}

/// JSON that is being written, and may become so long.
struct Page {
    json: Vec<u8>,
    max: usize,
    is_full: bool,
}

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.json.len().saturating_add(bytes.len()) > self.max {
            self.is_full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.json.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_what_it_is_of_as_json() {
        let mut room = Room::new("ask for less");
        let parts = [room.write(&1).unwrap(), room.write(&2).unwrap()];
        let whole = Room::new("ask for less").write(&parts).unwrap();
        assert_eq!(serde_json::to_string(&whole).unwrap(), "[1,2]");
    }

    #[test]
    fn an_answer_has_a_size() {
        let text = |bytes: usize| "x".repeat(bytes - 2);
        let write = |bytes: usize| Room::new("ask for less").write(&text(bytes));
        assert!(write(ANSWER_BYTES_MAX - 1).is_ok());
        for bytes in [ANSWER_BYTES_MAX, ANSWER_BYTES_MAX + 1, 3 * ANSWER_BYTES_MAX] {
            let refused = write(bytes).unwrap_err();
            assert_eq!(refused.code(), -32_005);
            assert_eq!(refused.message(), "the answer is above the limit of 10481664 bytes: ask for less");
        }
    }

    /// Also on the thread that does the work, and above the usual.
    #[tokio::test]
    async fn the_server_says_how_large_an_answer_may_be() {
        for max in [1_000, 2 * ANSWER_BYTES_MAX] {
            let write = |bytes: usize| async move {
                let work =
                    keep_limit(move || Room::new("ask for less").write(&"x".repeat(bytes - 3)).map(|_| ()));
                tokio::task::spawn_blocking(work).await.unwrap()
            };
            assert_eq!(within(max + ENVELOPE_BYTES, write(max)).await, Ok(()));
            let refused = within(max + ENVELOPE_BYTES, write(max + 1)).await.unwrap_err();
            assert_eq!(
                refused.message(),
                format!("the answer is above the limit of {max} bytes: ask for less")
            );
        }
    }

    #[test]
    fn parts_count_together() {
        let mut room = Room::new("ask for less");
        let part = "x".repeat(ANSWER_BYTES_MAX / 4 - 3);
        for _ in 0..4 {
            room.write(&part).unwrap();
        }
        room.write(&0).unwrap_err();
        let mut room = Room::new("ask for less");
        room.take(ANSWER_BYTES_MAX - 2).unwrap();
        room.write(&0).unwrap();
        room.take(1).unwrap_err();
    }

    /// Calls inside calls are 1,024 deep at most, each an object in a list: nothing that writes or checks JSON may give
    /// up, or overflow, before.
    #[test]
    fn an_answer_may_be_deep() {
        struct Nest(usize);
        impl Serialize for Nest {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let inside = self.0.checked_sub(1).map(Nest);
                serializer.collect_seq(inside)
            }
        }
        let answer = Room::new("ask for less").write(&Nest(2_100)).unwrap();
        assert_eq!(serde_json::to_string(&answer).unwrap().len(), 2 * 2_101);
    }

    /// The server has a limit of its own for the whole response, which also has an envelope.
    #[test]
    fn an_answer_fits_a_response() {
        let response = crate::Limits::default().response_bytes_max;
        assert_eq!(ANSWER_BYTES_MAX + crate::bounds::ENVELOPE_BYTES, response);
    }
}
