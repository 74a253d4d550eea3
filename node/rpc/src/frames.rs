//! WebSocket frames over a socket. Memory follows the bytes that have arrived, not the announced length.

use crate::{
    budget::{Account, Full, Held},
    limits::Limits,
};
use bytes::BytesMut;
use soketto::{
    Parsing,
    base::{Codec, Error as CodecError, Header, OpCode},
};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::Instant,
};

/// Bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// Something that came.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A whole message, and the bytes of the budget that it takes.
    Message(Vec<u8>, Held),
    /// The other end asks for the same bytes back.
    Ping(Vec<u8>),
    /// The other end is there.
    Pong,
    /// The other end leaves.
    Close,
}

/// Why nothing more is read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the socket failed: {0}")]
    Io(#[from] io::Error),
    #[error("not a WebSocket frame: {0}")]
    Codec(CodecError),
    #[error("frames of clients are masked")]
    NotMasked,
    #[error("a fragment out of order")]
    Order,
    #[error("the request is above the limit of {max} bytes")]
    TooLarge { max: usize },
    #[error("nothing came for {} ms", .0.as_millis())]
    Late(Duration),
    #[error("{0}")]
    Full(#[from] Full),
}

impl From<CodecError> for FrameError {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::PayloadTooLarge { maximum, .. } => {
                Self::TooLarge { max: usize::try_from(maximum).unwrap_or(usize::MAX) }
            }
            other => Self::Codec(other),
        }
    }
}

/// The reading end.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    io: R,
    codec: Codec,
    buffer: BytesMut,
    account: Account,
    limits: Limits,
    partial: Option<Partial>,
}

/// A message of which a part has come.
#[derive(Debug)]
struct Partial {
    bytes: Vec<u8>,
    held: Held,
    begun: Instant,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(crate) fn new(io: R, account: Account, limits: &Limits) -> Self {
        let mut codec = Codec::new();
        codec.set_max_data_size(limits.request_bytes_max);
        Self { io, codec, buffer: BytesMut::new(), account, limits: *limits, partial: None }
    }

    /// The next message, or what came between two of them.
    pub(crate) async fn next(&mut self) -> Result<Incoming, FrameError> {
        loop {
            let header = self.header().await?;
            if !header.is_masked() {
                return Err(FrameError::NotMasked);
            }
            match header.opcode() {
                OpCode::Ping => return Ok(Incoming::Ping(self.control(&header).await?)),
                OpCode::Pong => return self.control(&header).await.map(|_| Incoming::Pong),
                OpCode::Close => return Ok(Incoming::Close),
                // The codec lets no reserved kind through, so this is text or binary.
                kind => {
                    if (kind == OpCode::Continue) != self.partial.is_some() {
                        return Err(FrameError::Order);
                    }
                    self.data(&header).await?;
                    if let Some(whole) = self.partial.take_if(|_| header.is_fin()) {
                        return Ok(Incoming::Message(whole.bytes, whole.held));
                    }
                }
            }
        }
    }

    async fn header(&mut self) -> Result<Header, FrameError> {
        loop {
            match self.codec.decode_header(&self.buffer)? {
                Parsing::Done { value, offset } => {
                    let _ = self.buffer.split_to(offset);
                    return Ok(value);
                }
                Parsing::NeedMore(_) => self.read().await?,
            }
        }
    }

    /// The content of a control frame, at most 125 bytes.
    async fn control(&mut self, header: &Header) -> Result<Vec<u8>, FrameError> {
        while self.buffer.len() < header.payload_len() {
            self.read().await?;
        }
        let mut content = self.buffer.split_to(header.payload_len());
        Codec::apply_mask(header, &mut content);
        Ok(content.into())
    }

    /// Adds the content of a frame to the message.
    async fn data(&mut self, header: &Header) -> Result<(), FrameError> {
        let account = &self.account;
        let partial = self.partial.get_or_insert_with(|| Partial {
            bytes: Vec::new(),
            held: account.hold(),
            begun: Instant::now(),
        });
        let (begin, max) = (partial.bytes.len(), self.limits.request_bytes_max);
        let mut left = header.payload_len();
        if begin + left > max {
            return Err(FrameError::TooLarge { max });
        }
        while left > 0 {
            if self.buffer.is_empty() {
                self.read().await?;
            }
            let partial = self.partial.as_mut().ok_or(FrameError::Order)?;
            let part = self.buffer.split_to(left.min(self.buffer.len()));
            partial.held.grow(part.len())?;
            partial.bytes.extend_from_slice(&part);
            left -= part.len();
        }
        let partial = self.partial.as_mut().ok_or(FrameError::Order)?;
        Codec::apply_mask(header, &mut partial.bytes[begin..]);
        Ok(())
    }

    /// Waits for more bytes: as long as a request may take once it has begun, and until a ping is answered otherwise.
    async fn read(&mut self) -> Result<(), FrameError> {
        let Limits { request_time_max, idle_time_max, .. } = self.limits;
        let (deadline, time) = match &self.partial {
            Some(partial) => (partial.begun + request_time_max, request_time_max),
            None => (Instant::now() + idle_time_max, idle_time_max),
        };
        self.buffer.reserve(CHUNK);
        let read = tokio::time::timeout_at(deadline, self.io.read_buf(&mut self.buffer));
        match read.await.map_err(|_| FrameError::Late(time))?? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            _ => Ok(()),
        }
    }
}

/// The writing end.
#[derive(Debug)]
pub(crate) struct Writer<W> {
    io: W,
    codec: Codec,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    pub(crate) fn new(io: W) -> Self {
        Self { io, codec: Codec::new() }
    }

    pub(crate) async fn text(&mut self, text: &str) -> io::Result<()> {
        self.frame(OpCode::Text, text.as_bytes()).await
    }

    pub(crate) async fn ping(&mut self) -> io::Result<()> {
        self.frame(OpCode::Ping, &[]).await
    }

    pub(crate) async fn pong(&mut self, content: &[u8]) -> io::Result<()> {
        self.frame(OpCode::Pong, content).await
    }

    /// Takes leave; the code is one of RFC 6455, section 7.4.
    pub(crate) async fn close(&mut self, code: u16) -> io::Result<()> {
        self.frame(OpCode::Close, &code.to_be_bytes()).await?;
        self.io.shutdown().await
    }

    async fn frame(&mut self, kind: OpCode, content: &[u8]) -> io::Result<()> {
        let mut header = Header::new(kind);
        header.set_payload_len(content.len());
        let head = self.codec.encode_header(&header);
        if content.len() <= CHUNK {
            // One packet rather than two.
            self.io.write_all(&[head, content].concat()).await?;
        } else {
            self.io.write_all(head).await?;
            self.io.write_all(content).await?;
        }
        self.io.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Level;

    const MAX: usize = 100_000;

    fn account() -> (Account, std::sync::Arc<Level>) {
        let level = Level::new("test", MAX);
        (Account::new(level.clone(), Level::new("test", MAX), Level::new("test", 2 * MAX)), level)
    }

    fn reader(bytes: Vec<u8>, account: Account) -> Reader<io::Cursor<Vec<u8>>> {
        let limits = Limits { request_bytes_max: MAX, ..Limits::default() };
        Reader::new(io::Cursor::new(bytes), account, &limits)
    }

    /// A frame as a client sends it.
    fn frame(kind: OpCode, is_last: bool, content: &[u8]) -> Vec<u8> {
        let mut header = Header::new(kind);
        header.set_fin(is_last).set_masked(true).set_mask(0x1234_5678).set_payload_len(content.len());
        let mut masked = content.to_vec();
        Codec::apply_mask(&header, &mut masked);
        [Codec::new().encode_header(&header), &masked].concat()
    }

    #[tokio::test]
    async fn a_message_in_parts_with_a_ping_between() {
        let frames = [
            frame(OpCode::Text, false, b"one "),
            frame(OpCode::Ping, true, b"there?"),
            frame(OpCode::Continue, false, b"two "),
            frame(OpCode::Continue, true, b"three"),
            frame(OpCode::Text, true, b"next"),
            frame(OpCode::Close, true, b""),
        ];
        let mut reader = reader(frames.concat(), account().0);
        assert!(matches!(reader.next().await, Ok(Incoming::Ping(content)) if content == b"there?"));
        assert!(matches!(reader.next().await, Ok(Incoming::Message(text, _)) if text == b"one two three"));
        assert!(matches!(reader.next().await, Ok(Incoming::Message(text, _)) if text == b"next"));
        assert!(matches!(reader.next().await, Ok(Incoming::Close)));
    }

    #[tokio::test]
    async fn a_message_has_a_size_in_one_part_and_in_many() {
        let whole = frame(OpCode::Text, true, &[b' '; MAX]);
        let (account, level) = account();
        let Ok(Incoming::Message(_, held)) = reader(whole, account.clone()).next().await else {
            panic!("the largest message passes")
        };
        assert_eq!(level.used(), MAX - crate::limits::FREE_BYTES, "its bytes count");
        drop(held);
        assert_eq!(level.used(), 0);
        let over = frame(OpCode::Text, true, &[b' '; MAX + 1]);
        let parts = [frame(OpCode::Text, false, &[b' '; MAX]), frame(OpCode::Continue, true, b" ")].concat();
        for bytes in [over, parts] {
            let refused = reader(bytes, account.clone()).next().await;
            assert!(matches!(refused, Err(FrameError::TooLarge { max: MAX })), "{refused:?}");
        }
    }

    #[tokio::test]
    async fn what_is_announced_takes_no_memory() {
        let mut bytes = frame(OpCode::Text, true, &[b' '; MAX]);
        bytes.truncate(20);
        let (account, level) = account();
        let mut reader = reader(bytes, account);
        assert!(matches!(reader.next().await, Err(FrameError::Io(_))));
        assert!(reader.partial.unwrap().bytes.capacity() < 100);
        assert_eq!(level.used(), 0);
    }

    #[tokio::test]
    async fn a_full_budget_ends_it() {
        let (account, _) = account();
        let mut others = account.hold();
        others.grow(MAX + crate::limits::FREE_BYTES - 10).unwrap();
        let free = crate::limits::FREE_BYTES;
        let fits = frame(OpCode::Text, true, &vec![b' '; free + 10]);
        assert!(matches!(reader(fits, account.clone()).next().await, Ok(Incoming::Message(..))));
        let over = frame(OpCode::Text, true, &vec![b' '; free + 11]);
        assert!(matches!(reader(over, account).next().await, Err(FrameError::Full(_))));
    }

    #[tokio::test]
    async fn frames_out_of_order_or_unmasked_are_refused() {
        let first = frame(OpCode::Continue, true, b"x");
        let twice = [frame(OpCode::Text, false, b"x"), frame(OpCode::Text, true, b"x")].concat();
        for bytes in [first, twice] {
            assert!(matches!(reader(bytes, account().0).next().await, Err(FrameError::Order)));
        }
        let unmasked = vec![0x81, 1, b'x'];
        assert!(matches!(reader(unmasked, account().0).next().await, Err(FrameError::NotMasked)));
    }
}
