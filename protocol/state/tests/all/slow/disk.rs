//! The simulated runtime with a disk whose syncs take time.
#![allow(clippy::disallowed_types, reason = "the simulated clock tells its time in this type")]

use commonware_runtime::{
    BlobVersion, Clock, Error, Handle, IoBufs, IoBufsMut, Metrics, Name, ReadOptions, Spawner, Storage,
    Supervisor, WriteOptions,
    deterministic::{Blob, Context},
    signal::Signal,
    telemetry::metrics::{Metric, Registered},
};
use std::{
    future::Future,
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

pub struct SlowDisk {
    inner: Context,
    sync_ms: Arc<AtomicU64>,
}

impl SlowDisk {
    pub fn new(inner: Context) -> Self {
        Self { inner, sync_ms: Arc::default() }
    }

    /// From now on a sync takes so long.
    pub fn slow_down(&self, sync: Duration) {
        self.sync_ms.store(sync.as_millis() as u64, Ordering::Relaxed);
    }

    fn on(&self, inner: Context) -> Self {
        Self { inner, sync_ms: self.sync_ms.clone() }
    }
}

pub struct SlowBlob {
    inner: Blob,
    clock: Arc<Context>,
    sync_ms: Arc<AtomicU64>,
}

impl SlowBlob {
    fn wait(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.clock.sleep(Duration::from_millis(self.sync_ms.load(Ordering::Relaxed)))
    }
}

impl commonware_runtime::Blob for SlowBlob {
    async fn read_at_buf(
        &self,
        offset: u64,
        len: usize,
        bufs: impl Into<IoBufsMut> + Send,
        options: ReadOptions,
    ) -> Result<IoBufsMut, Error> {
        self.inner.read_at_buf(offset, len, bufs, options).await
    }

    async fn read_at(&self, offset: u64, len: usize, options: ReadOptions) -> Result<IoBufsMut, Error> {
        self.inner.read_at(offset, len, options).await
    }

    async fn write_at(
        &self,
        offset: u64,
        bufs: impl Into<IoBufs> + Send,
        options: WriteOptions,
    ) -> Result<(), Error> {
        self.inner.write_at(offset, bufs, options).await
    }

    async fn resize(&self, len: u64) -> Result<(), Error> {
        self.inner.resize(len).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.wait().await;
        self.inner.sync().await
    }

    async fn start_sync(&self) -> Handle<()> {
        let (waiting, syncing) = (self.wait(), self.inner.start_sync().await);
        Handle::from_future(async move {
            waiting.await;
            syncing.await
        })
    }
}

impl Supervisor for SlowDisk {
    fn name(&self) -> Name {
        self.inner.name()
    }

    fn child(&self, label: &'static str) -> Self {
        self.on(self.inner.child(label))
    }

    fn with_attribute(self, key: &'static str, value: impl std::fmt::Display) -> Self {
        Self { inner: self.inner.with_attribute(key, value), sync_ms: self.sync_ms }
    }
}

impl Spawner for SlowDisk {
    fn shared(self, blocking: bool) -> Self {
        Self { inner: self.inner.shared(blocking), sync_ms: self.sync_ms }
    }

    fn dedicated(self) -> Self {
        Self { inner: self.inner.dedicated(), sync_ms: self.sync_ms }
    }

    fn spawn<F, Fut, T>(self, f: F) -> Handle<T>
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let sync_ms = self.sync_ms;
        self.inner.spawn(move |inner| f(Self { inner, sync_ms }))
    }

    async fn stop(self, value: i32, timeout: Option<Duration>) -> Result<(), Error> {
        self.inner.stop(value, timeout).await
    }

    fn stopped(&self) -> Signal {
        self.inner.stopped()
    }
}

impl Metrics for SlowDisk {
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

impl governor::clock::Clock for SlowDisk {
    type Instant = SystemTime;

    fn now(&self) -> SystemTime {
        self.inner.current()
    }
}

impl governor::clock::ReasonablyRealtime for SlowDisk {}

impl Clock for SlowDisk {
    fn current(&self) -> SystemTime {
        self.inner.current()
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.inner.sleep(duration)
    }

    fn sleep_until(&self, deadline: SystemTime) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.inner.sleep_until(deadline)
    }
}

impl Storage for SlowDisk {
    type Blob = SlowBlob;

    async fn open_versioned(
        &self,
        partition: &str,
        name: &[u8],
        versions: RangeInclusive<BlobVersion>,
    ) -> Result<(SlowBlob, u64, BlobVersion), Error> {
        let (inner, size, version) = self.inner.open_versioned(partition, name, versions).await?;
        let (clock, sync_ms) = (Arc::new(self.inner.child("blob")), self.sync_ms.clone());
        Ok((SlowBlob { inner, clock, sync_ms }, size, version))
    }

    async fn remove(&self, partition: &str, name: Option<&[u8]>) -> Result<(), Error> {
        self.inner.remove(partition, name).await
    }

    async fn scan(&self, partition: &str) -> Result<Vec<Vec<u8>>, Error> {
        self.inner.scan(partition).await
    }
}
