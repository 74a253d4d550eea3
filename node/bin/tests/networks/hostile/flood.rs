//! Sends messages to every victim as fast as each takes them, and dials again where it hangs up.

use super::line::{Enemy, Message, Victim};
use commonware_runtime::{
    Clock as _, Handle, Runner as _, Spawner as _, Supervisor as _,
    tokio::{Config, Context, Runner},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Makes the n-th message.
pub type Source = Arc<dyn Fn(u64) -> Message + Send + Sync>;

/// Time between two calls. A validator that is just calling itself, or did a moment ago, does not let the peer in.
const REDIAL: Duration = Duration::from_millis(150);

/// How a peer behaves beside what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Sends five messages a second.
    Calm,
    /// Sends as much as is taken.
    Wild,
    /// The same, and never reads what is answered.
    Deaf,
}

/// A flood that goes on until it is stopped.
pub struct Flood {
    is_over: Arc<AtomicBool>,
    sent: Arc<Sent>,
    thread: JoinHandle<()>,
}

/// What was sent, to all victims together.
#[derive(Default)]
pub struct Sent {
    pub messages: AtomicU64,
    pub bytes: AtomicU64,
    /// Connections that came to be.
    pub lines: AtomicU64,
}

impl Flood {
    /// Floods all victims.
    pub fn start(enemy: &Enemy, manner: Manner, source: Source) -> Self {
        let (is_over, sent) = (Arc::<AtomicBool>::default(), Arc::<Sent>::default());
        let stream =
            Stream { enemy: enemy.clone(), manner, source, is_over: is_over.clone(), sent: sent.clone() };
        let runner = Runner::new(Config::new().with_worker_threads(1));
        let thread = thread::spawn(move || runner.start(|context| stream.run(context)));
        Self { is_over, sent, thread }
    }

    /// Connections so far.
    pub fn lines(&self) -> u64 {
        self.sent.lines.load(SeqCst)
    }

    pub fn stop(self) -> Arc<Sent> {
        self.is_over.store(true, SeqCst);
        self.thread.join().unwrap();
        self.sent
    }
}

#[derive(Clone)]
struct Stream {
    enemy: Enemy,
    manner: Manner,
    source: Source,
    is_over: Arc<AtomicBool>,
    sent: Arc<Sent>,
}

impl Stream {
    async fn run(self, context: Context) {
        let pour = |victim: &Victim| -> Handle<()> {
            let (stream, victim) = (self.clone(), victim.clone());
            context.child("pour").spawn(|context| stream.pour(context, victim))
        };
        let _pouring: Vec<Handle<()>> = self.enemy.victims.iter().map(pour).collect();
        // A send that the other side holds up ends with the runtime.
        while !self.is_over.load(SeqCst) {
            context.sleep(Duration::from_millis(20)).await;
        }
    }

    async fn pour(self, context: Context, victim: Victim) {
        loop {
            if let Some(mut line) = self.enemy.dial(&context, &victim).await {
                self.sent.lines.fetch_add(1, SeqCst);
                if self.manner != Manner::Deaf {
                    line.listen(&context);
                }
                for number in 0.. {
                    let message = (self.source)(number);
                    if !line.send(&message).await {
                        break;
                    }
                    if self.manner == Manner::Calm {
                        context.sleep(Duration::from_millis(200)).await;
                    }
                    self.sent.messages.fetch_add(1, SeqCst);
                    self.sent.bytes.fetch_add(message.bytes.len() as u64, SeqCst);
                }
            }
            context.sleep(REDIAL).await;
        }
    }
}
