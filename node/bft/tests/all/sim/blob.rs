//! A file on the disk of a validator.

use crate::sim::disk::{Disk, FileKey, What};
use commonware_runtime::{
    Buf as _, Error, Handle, IoBufs, IoBufsMut, ReadOptions, WriteOptions, deterministic::Blob,
};
use std::sync::Arc;

pub struct DiskBlob {
    pub inner: Arc<Blob>,
    pub key: FileKey,
    pub opening: u64,
    pub disk: Arc<Disk>,
}

impl commonware_runtime::Blob for DiskBlob {
    async fn read_at_buf(
        &self,
        offset: u64,
        len: usize,
        bufs: impl Into<IoBufsMut> + Send,
        options: ReadOptions,
    ) -> Result<IoBufsMut, Error> {
        let read = self.inner.read_at_buf(offset, len, bufs, options).await?;
        Ok(self.disk.misread(read))
    }

    async fn read_at(&self, offset: u64, len: usize, options: ReadOptions) -> Result<IoBufsMut, Error> {
        let read = self.inner.read_at(offset, len, options).await?;
        Ok(self.disk.misread(read))
    }

    async fn write_at(
        &self,
        offset: u64,
        bufs: impl Into<IoBufs> + Send,
        options: WriteOptions,
    ) -> Result<(), Error> {
        let buf = bufs.into().coalesce();
        let bytes = buf.chunk().to_vec();
        if bytes.is_empty() {
            return Ok(());
        }
        let end = offset + bytes.len() as u64;
        // Before it is done: of a write that fails or is never finished, a part may be there after the restart.
        let number = self.disk.add(&self.key, self.opening, What::Write { offset, bytes, is_durable: false });
        self.disk.check(&self.key).await?;
        if options.contains(WriteOptions::SYNC) {
            self.disk.take_sync_time(&self.key).await;
        }
        self.inner.write_at(offset, buf, options).await?;
        if options.contains(WriteOptions::SYNC) {
            self.disk.keep(&self.key, number);
        }
        self.disk.reach(&self.key, self.opening, end);
        Ok(())
    }

    async fn resize(&self, len: u64) -> Result<(), Error> {
        self.disk.check(&self.key).await?;
        self.inner.resize(len).await?;
        self.disk.add(&self.key, self.opening, What::Resize(len));
        Ok(())
    }

    async fn sync(&self) -> Result<(), Error> {
        self.disk.check(&self.key).await?;
        let cut = self.disk.cut();
        self.disk.take_sync_time(&self.key).await;
        self.inner.sync().await?;
        self.disk.settle(&self.key, cut);
        Ok(())
    }

    async fn start_sync(&self) -> Handle<()> {
        if let Err(error) = self.disk.check(&self.key).await {
            return Handle::ready(Err(error));
        }
        let cut = self.disk.cut();
        let (inner, disk, key) = (self.inner.clone(), self.disk.clone(), self.key.clone());
        Handle::from_future(async move {
            disk.take_sync_time(&key).await;
            inner.sync().await?;
            disk.settle(&key, cut);
            Ok(())
        })
    }
}
