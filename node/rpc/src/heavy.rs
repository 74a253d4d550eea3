//! Runs long work: a few tasks at a time, with a bounded queue, below block production.

use crate::{
    answer::{Answer, Room, keep_limit},
    error,
    turns::{Refused, Turns},
};
use almanac_priority::off_first_processor;
use jsonrpsee::core::RpcResult;
use serde::Serialize;
use std::sync::Arc;

/// How much may be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeavyLimits {
    /// At once.
    pub running_max: usize,
    /// Waiting for a turn.
    pub waiting_max: usize,
}

impl HeavyLimits {
    /// For questions that are short and many: calls, searches, what is due.
    pub const QUESTIONS: Self = Self { running_max: 4, waiting_max: 256 };

    /// For reading blocks, transactions and receipts: milliseconds each. They do not wait for calls, which may take
    /// seconds.
    pub const READS: Self = Self { running_max: 4, waiting_max: 1_024 };

    /// For transactions that are sent: tens of microseconds each, or of milliseconds with a long list of
    /// authorisations. They do not wait for calls.
    pub const SENDING: Self = Self { running_max: 4, waiting_max: 1_024 };

    /// For pages such as `/metrics`. One at a time: each lists the same figures.
    pub const PAGES: Self = Self { running_max: 1, waiting_max: 64 };
}

impl Default for HeavyLimits {
    fn default() -> Self {
        // One address may have half of the places, which is enough for a tool that traces many calls at once.
        Self { running_max: 2, waiting_max: 64 }
    }
}

/// The one queue that all heavy work waits in, from which addresses are served by turns.
#[derive(Clone, Debug)]
pub struct Heavy {
    limits: HeavyLimits,
    turns: Arc<Turns>,
}

impl Heavy {
    /// A queue in which nobody waits yet.
    pub fn new(limits: HeavyLimits) -> Self {
        let HeavyLimits { running_max, waiting_max } = limits;
        Self { limits, turns: Turns::new(running_max, running_max + waiting_max) }
    }

    /// Does `work` when it is its turn, off the threads that serve connections. An error where too many wait.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> RpcResult<T> + Send + 'static,
    ) -> RpcResult<T> {
        self.run_anywhere(move || off_first_processor(work)).await
    }

    /// The same on any processor: for work that takes locks which blocks wait for, and so must not be stuck behind
    /// long work.
    pub(crate) async fn run_anywhere<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> RpcResult<T> + Send + 'static,
    ) -> RpcResult<T> {
        let turn = self.turns.take().await.map_err(|refused| self.refusal(&refused))?;
        // It goes along: a client that hangs up does not end the work, so its place is not free either.
        let task = tokio::task::spawn_blocking(keep_limit(move || {
            let _turn = turn;
            work()
        }));
        task.await.map_err(error::internal)?
    }

    /// The same, and writes what `work` gives as JSON there too; `instead` says how to ask for less.
    pub async fn answer<T: Serialize + 'static>(
        &self,
        instead: &'static str,
        work: impl FnOnce() -> RpcResult<T> + Send + 'static,
    ) -> RpcResult<Answer<T>> {
        self.run(move || Room::new(instead).write(&work()?)).await
    }

    /// Lets nobody in any more, and sends home who waits: a node that stops does not finish a whole queue first.
    pub fn close(&self) {
        self.turns.close();
    }

    fn refusal(&self, refused: &Refused) -> jsonrpsee::types::ErrorObjectOwned {
        let HeavyLimits { running_max, waiting_max } = self.limits;
        match refused {
            Refused::Closed => error::limit("the node is stopping"),
            Refused::Full => error::limit(format!(
                "{running_max} such requests are running and {waiting_max} are waiting: ask again later"
            )),
            Refused::Share { count } => error::limit(format!(
                "{count} such requests of this address are running or waiting, and there are no more places than that \
                 for others: ask again later"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn so_many_run_so_many_wait_and_one_more_is_refused() {
        let heavy = Heavy::new(HeavyLimits { running_max: 2, waiting_max: 3 });
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (open, gate) = tokio::sync::watch::channel(false);
        let start = || {
            let (heavy, running, most, gate) = (heavy.clone(), running.clone(), most.clone(), gate.clone());
            tokio::spawn(async move {
                heavy
                    .run(move || {
                        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        while !*gate.borrow() {
                            std::thread::yield_now();
                        }
                        running.fetch_sub(1, Ordering::SeqCst);
                        Ok(())
                    })
                    .await
            })
        };
        let five: Vec<_> = (0..5).map(|_| start()).collect();
        while heavy.turns.counts().0 < 5 || running.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
        let refused = start().await.unwrap().unwrap_err();
        assert_eq!(refused.code(), -32_005);
        assert!(refused.message().contains("2 such requests are running and 3 are waiting"), "{refused}");
        open.send(true).unwrap();
        for task in five {
            task.await.unwrap().unwrap();
        }
        assert_eq!(most.load(Ordering::SeqCst), 2);
        start().await.unwrap().unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_waits_is_sent_home_when_the_node_stops() {
        let heavy = Heavy::new(HeavyLimits { running_max: 1, waiting_max: 1 });
        let (open, gate) = tokio::sync::watch::channel(false);
        let start = |value: u8| {
            let (heavy, gate) = (heavy.clone(), gate.clone());
            tokio::spawn(async move {
                let work = move || {
                    while !*gate.borrow() {
                        std::thread::yield_now();
                    }
                    Ok(value)
                };
                heavy.run(work).await
            })
        };
        let first = start(1);
        while heavy.turns.counts().1 > 0 {
            tokio::task::yield_now().await;
        }
        let second = start(2);
        while heavy.turns.counts().0 < 2 {
            tokio::task::yield_now().await;
        }
        heavy.close();
        assert_eq!(second.await.unwrap().unwrap_err().message(), "the node is stopping");
        assert_eq!(start(3).await.unwrap().unwrap_err().message(), "the node is stopping");
        open.send(true).unwrap();
        assert_eq!(first.await.unwrap().unwrap(), 1, "what runs is finished");
    }

    /// A client that hangs up does not make room: its work goes on.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_place_is_held_as_long_as_the_work_lasts() {
        let heavy = Heavy::new(HeavyLimits { running_max: 1, waiting_max: 0 });
        let (open, gate) = tokio::sync::watch::channel(false);
        let task = tokio::spawn({
            let heavy = heavy.clone();
            async move {
                let wait = move || {
                    while !*gate.borrow() {
                        std::thread::yield_now();
                    }
                    Ok(())
                };
                heavy.run(wait).await
            }
        });
        while heavy.turns.counts().1 > 0 {
            tokio::task::yield_now().await;
        }
        // The permits move into the work right after the turn is taken.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert!(heavy.run(|| Ok(())).await.is_err());
        open.send(true).unwrap();
        while heavy.turns.counts().0 > 0 {
            tokio::task::yield_now().await;
        }
        heavy.run(|| Ok(())).await.unwrap();
    }
}
