//! The machine that a validator runs on: the simulated runtime with a disk and a clock of its own.
//!
//! A panic ends a process. Here it ends the validator if its disk has failed before, and the simulation if not.

use crate::sim::{blob::DiskBlob, disk::Disk, host::Host};
use commonware_runtime::{
    BlobVersion, Clock, Error, Handle, Metrics, Name, Spawner, Storage, Supervisor,
    deterministic::Context,
    signal::Signal,
    telemetry::metrics::{Metric, Registered},
};
use futures::FutureExt as _;
use rand_core::{TryCryptoRng, TryRng};
use std::{
    convert::Infallible,
    future::Future,
    ops::RangeInclusive,
    panic::{AssertUnwindSafe, resume_unwind},
    pin::Pin,
    sync::Arc,
    task::ready,
    time::{Duration, SystemTime},
};

pub struct Machine {
    inner: Context,
    host: Arc<Host>,
}

impl Machine {
    pub fn new(inner: Context, host: Arc<Host>) -> Self {
        Self { inner, host }
    }

    pub fn disk(&self) -> &Arc<Disk> {
        &self.host.disk
    }

    /// The simulated time, whatever this machine's clock shows.
    pub fn true_time(&self) -> SystemTime {
        self.inner.current()
    }
}

/// Runs a task that stands still whenever its process does. What it waits for goes on meanwhile, as after SIGSTOP.
async fn with_pauses<T>(
    mut task: Pin<Box<impl Future<Output = T>>>,
    host: Arc<Host>,
    clock: Option<Context>,
) -> T {
    let Some(clock) = clock else { return task.await };
    let mut pause: Option<Pin<Box<dyn Future<Output = ()> + Send>>> = None;
    std::future::poll_fn(|waker| {
        loop {
            if let Some(sleep) = &mut pause {
                ready!(sleep.as_mut().poll(waker));
                pause = None;
            }
            match host.paused_until(clock.current()) {
                Some(end) => pause = Some(Box::pin(clock.sleep_until(end))),
                None => return task.as_mut().poll(waker),
            }
        }
    })
    .await
}

impl Supervisor for Machine {
    fn name(&self) -> Name {
        self.inner.name()
    }

    fn child(&self, label: &'static str) -> Self {
        Self::new(self.inner.child(label), self.host.clone())
    }

    fn with_attribute(self, key: &'static str, value: impl std::fmt::Display) -> Self {
        Self::new(self.inner.with_attribute(key, value), self.host)
    }
}

impl Spawner for Machine {
    fn shared(self, blocking: bool) -> Self {
        Self::new(self.inner.shared(blocking), self.host)
    }

    fn dedicated(self) -> Self {
        Self::new(self.inner.dedicated(), self.host)
    }

    fn spawn<F, Fut, T>(self, f: F) -> Handle<T>
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let host = self.host;
        self.inner.spawn(move |inner| async move {
            let clock = host.has_pauses().then(|| inner.child("pause"));
            // On the heap: tasks are large, and every wrapper would hold one more.
            let task = Box::pin(f(Self::new(inner, host.clone())));
            let task = with_pauses(task, host.clone(), clock);
            match AssertUnwindSafe(task).catch_unwind().await {
                Ok(value) => value,
                Err(_) if host.disk.has_failed() => {
                    host.disk.stop();
                    std::future::pending().await
                }
                Err(panic) => resume_unwind(panic),
            }
        })
    }

    async fn stop(self, value: i32, timeout: Option<Duration>) -> Result<(), Error> {
        self.inner.stop(value, timeout).await
    }

    fn stopped(&self) -> Signal {
        self.inner.stopped()
    }
}

impl Metrics for Machine {
    fn register<N: Into<String>, H: Into<String>, M: Metric>(
        &self,
        name: N,
        help: H,
        metric: M,
    ) -> Registered<M> {
        self.inner.register(name, help, metric)
    }

    fn encode(&self) -> String {
        self.inner.encode()
    }
}

impl governor::clock::Clock for Machine {
    type Instant = SystemTime;

    fn now(&self) -> SystemTime {
        self.inner.current()
    }
}

impl governor::clock::ReasonablyRealtime for Machine {}

impl Clock for Machine {
    fn current(&self) -> SystemTime {
        self.host.shown(self.inner.current())
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.inner.sleep(duration)
    }

    fn sleep_until(&self, deadline: SystemTime) -> impl Future<Output = ()> + Send + 'static + use<> {
        // As in production: by how long it is from now, whatever the clock is set to meanwhile.
        self.inner.sleep(deadline.duration_since(self.current()).unwrap_or_default())
    }
}

impl TryRng for Machine {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.inner.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.inner.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.inner.try_fill_bytes(bytes)
    }
}

impl TryCryptoRng for Machine {}

impl Storage for Machine {
    type Blob = DiskBlob;

    async fn open_versioned(
        &self,
        partition: &str,
        name: &[u8],
        versions: RangeInclusive<BlobVersion>,
    ) -> Result<(DiskBlob, u64, BlobVersion), Error> {
        self.host.disk.open(&self.inner, partition, name, versions).await
    }

    async fn remove(&self, partition: &str, name: Option<&[u8]>) -> Result<(), Error> {
        self.host.disk.remove(&self.inner, partition, name).await
    }

    async fn scan(&self, partition: &str) -> Result<Vec<Vec<u8>>, Error> {
        self.inner.scan(partition).await
    }
}
