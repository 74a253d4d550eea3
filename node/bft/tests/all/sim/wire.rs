//! The two ends of a channel, as the engine gets them.

use crate::sim::line::{Fate, Line};
use commonware_actor::{Feedback, Unreliable};
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{CheckedSender, LimitedSender, Message, Receiver, Recipients, simulated};
use commonware_runtime::{Buf as _, Clock as _, IoBufs, deterministic::Context};
use std::{collections::BTreeMap, fmt, num::NonZeroUsize, sync::Arc, time::SystemTime};

type InnerSender = simulated::Sender<PublicKey, Context>;

#[derive(Clone)]
pub struct WireSender {
    pub inner: InnerSender,
    pub line: Arc<Line>,
}

impl LimitedSender for WireSender {
    type PublicKey = PublicKey;
    type Checked<'a> = WireMessage<'a>;

    fn check(&mut self, recipients: Recipients<PublicKey>) -> Result<WireMessage<'_>, SystemTime> {
        let recipients = self.line.route(recipients);
        Ok(WireMessage { checked: self.inner.check(recipients)?, line: &self.line })
    }
}

/// A message that is about to be sent.
pub struct WireMessage<'a> {
    checked: <InnerSender as LimitedSender>::Checked<'a>,
    line: &'a Line,
}

impl CheckedSender for WireMessage<'_> {
    type PublicKey = PublicKey;

    fn recipients(&self) -> Vec<PublicKey> {
        self.checked.recipients()
    }

    fn send(self, message: impl Into<IoBufs> + Send, priority: bool) -> Unreliable<Feedback> {
        let message = message.into();
        if self.line.is_watched() {
            self.line.note_sent(message.clone().coalesce().chunk());
        }
        self.checked.send(message, priority)
    }
}

impl fmt::Debug for WireSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireSender").finish_non_exhaustive()
    }
}

pub struct WireReceiver {
    inner: simulated::Receiver<PublicKey>,
    line: Arc<Line>,
    /// Messages that arrive later, by time and by the order in which they came.
    held: BTreeMap<(SystemTime, u64), Message<PublicKey>>,
    count: u64,
}

impl WireReceiver {
    pub fn new(inner: simulated::Receiver<PublicKey>, line: Arc<Line>) -> Self {
        Self { inner, line, held: BTreeMap::new(), count: 0 }
    }

    fn hold(&mut self, until: SystemTime, message: Message<PublicKey>) {
        self.count += 1;
        self.held.insert((until, self.count), message);
    }

    fn give(&self, message: Message<PublicKey>) -> Message<PublicKey> {
        self.line.note_received(&message);
        message
    }
}

impl Receiver for WireReceiver {
    type Error = simulated::Error;
    type PublicKey = PublicKey;

    async fn recv(&mut self) -> Result<Message<PublicKey>, simulated::Error> {
        loop {
            let message = match self.held.first_key_value() {
                None => self.inner.recv().await?,
                Some((&(until, _), _)) => {
                    let line = self.line.clone();
                    tokio::select! {
                        biased;
                        () = line.clock.sleep_until(until) => {
                            let (_, message) = self.held.pop_first().expect("something is held");
                            return Ok(self.give(message));
                        }
                        received = self.inner.recv() => received?,
                    }
                }
            };
            let message = self.line.receive(message);
            match self.line.fate(&message.0) {
                Fate::Drop => {}
                Fate::Deliver => return Ok(self.give(message)),
                Fate::Late(until) => self.hold(until, message),
                Fate::Twice(until) => {
                    self.hold(until, message.clone());
                    return Ok(self.give(message));
                }
            }
        }
    }

    fn capacity(&self) -> NonZeroUsize {
        self.inner.capacity()
    }
}

impl fmt::Debug for WireReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireReceiver").finish_non_exhaustive()
    }
}
