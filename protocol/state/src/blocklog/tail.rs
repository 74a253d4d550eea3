//! The end of a log: takes whole records or nothing.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
};

/// Appends to a storage whose first `end` bytes are good and durable.
#[derive(Debug)]
pub(super) struct Tail<S> {
    storage: S,
    end: u64,
    is_stopped: bool,
}

/// Why a record was not appended.
#[derive(Debug)]
pub(super) enum TailError {
    /// It could not be written; what was written of it has been cut off again, if that was possible.
    Write(io::Error),
    /// It was written, but the storage would not say that it is durable.
    Sync(io::Error),
    /// An earlier failure could not be undone.
    Stopped,
}

/// What a tail is kept in.
pub(super) trait Storage: Write + Seek {
    /// Cuts it to `length` bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;
    /// Returns when everything written is durable.
    fn sync(&mut self) -> io::Result<()>;
}

impl Storage for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

impl<S> Tail<S> {
    pub(super) fn new(storage: S, end: u64) -> Self {
        Self { storage, end, is_stopped: false }
    }

    /// Where the next record begins.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn storage(&self) -> &S {
        &self.storage
    }
}

impl<S: Storage> Tail<S> {
    pub(super) fn append(&mut self, record: &[u8]) -> Result<(), TailError> {
        if self.is_stopped {
            return Err(TailError::Stopped);
        }
        if let Err(error) = self.write(record) {
            // A full disk can be cleared, so go on if nothing of the record is left. A record after half a
            // record could never be read again.
            self.is_stopped = self.storage.cut(self.end).is_err();
            return Err(TailError::Write(error));
        }
        if let Err(error) = self.storage.sync() {
            // Nobody knows what is on disk now, and asking again may get a yes that is not true: systems
            // forget that they failed. Opening the log anew reads what is really there.
            self.is_stopped = true;
            // Should it fail, the record stays, whole or torn, at the end: both can be opened.
            let _ = self.storage.cut(self.end);
            return Err(TailError::Sync(error));
        }
        self.end += record.len() as u64;
        Ok(())
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        self.storage.seek(SeekFrom::Start(self.end))?;
        self.storage.write_all(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for some bytes that can be told to fail. What it takes of a write it keeps, like a
    /// real one.
    #[derive(Default)]
    struct Disk {
        bytes: Vec<u8>,
        position: usize,
        room: usize,
        does_cut_fail: bool,
        does_sync_fail: bool,
        synced: Vec<u8>,
    }

    fn failure(does_fail: bool) -> io::Result<()> {
        if does_fail { Err(io::Error::other("the disk is gone")) } else { Ok(()) }
    }

    impl Write for Disk {
        fn write(&mut self, given: &[u8]) -> io::Result<usize> {
            let taken = given.len().min(self.room - self.position).min(3);
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.truncate(self.position);
            self.bytes.extend(&given[..taken]);
            self.position += taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Disk {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            let SeekFrom::Start(position) = to else { panic!("a tail knows where it is") };
            self.position = usize::try_from(position).expect("small");
            Ok(position)
        }
    }

    impl Storage for Disk {
        fn cut(&mut self, length: u64) -> io::Result<()> {
            failure(self.does_cut_fail)?;
            self.bytes.truncate(usize::try_from(length).expect("small"));
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            failure(self.does_sync_fail)?;
            self.synced = self.bytes.clone();
            Ok(())
        }
    }

    fn tail(room: usize) -> Tail<Disk> {
        Tail::new(Disk { bytes: b"good".to_vec(), room, ..Disk::default() }, 4)
    }

    #[test]
    fn a_record_is_durable_when_append_returns() {
        let mut tail = tail(100);
        tail.append(b"first").expect("there is room");
        assert_eq!(tail.storage.synced, b"goodfirst");
        tail.append(b"second").expect("there is room");
        assert_eq!(tail.storage.synced, b"goodfirstsecond");
        assert_eq!(tail.end(), 15);
    }

    #[test]
    fn a_full_disk_keeps_nothing_of_the_record_and_can_be_cleared() {
        let mut tail = tail(10);
        assert!(matches!(tail.append(b"too long"), Err(TailError::Write(_))));
        assert_eq!((&tail.storage.bytes[..], tail.end()), (&b"good"[..], 4));
        tail.append(b"fits").expect("there is room for this one");
        assert!(matches!(tail.append(b"xyz"), Err(TailError::Write(_))));
        tail.storage.room = 100;
        tail.append(b"xyz").expect("there is room again");
        assert_eq!(tail.storage.synced, b"goodfitsxyz");
    }

    #[test]
    fn nothing_is_appended_after_half_a_record() {
        let mut tail = tail(10);
        tail.storage.does_cut_fail = true;
        assert!(matches!(tail.append(b"too long"), Err(TailError::Write(_))));
        assert_eq!(tail.storage.bytes, b"goodtoo lo");
        (tail.storage.does_cut_fail, tail.storage.room) = (false, 100);
        assert!(matches!(tail.append(b"fits"), Err(TailError::Stopped)));
        assert_eq!(tail.storage.bytes, b"goodtoo lo");
    }

    #[test]
    fn nothing_is_appended_after_a_failed_sync() {
        let mut tail = tail(100);
        tail.storage.does_sync_fail = true;
        assert!(matches!(tail.append(b"lost"), Err(TailError::Sync(_))));
        assert_eq!((&tail.storage.bytes[..], tail.end()), (&b"good"[..], 4));
        tail.storage.does_sync_fail = false;
        assert!(matches!(tail.append(b"more"), Err(TailError::Stopped)));
        assert_eq!(tail.storage.bytes, b"good");
    }
}
