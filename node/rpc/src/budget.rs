//! Counts the bytes that clients make the node hold: per connection, per address and in all.
//!
//! An address may hold no more than it leaves to others. So even if many hold as much as they can, a new address
//! always finds room.

use crate::limits::FREE_BYTES;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// How much one scope may hold, and how much it holds.
#[derive(Debug)]
pub(crate) struct Level {
    scope: &'static str,
    max: usize,
    used: AtomicUsize,
}

/// Why nothing more is held.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{bytes} bytes more are above the {max} that {scope} may have in flight, of which {used} are in use: read the \
     answers, and ask again"
)]
pub(crate) struct Full {
    bytes: usize,
    scope: &'static str,
    max: usize,
    used: usize,
}

impl Level {
    pub(crate) fn new(scope: &'static str, max: usize) -> Arc<Self> {
        Arc::new(Self { scope, max, used: AtomicUsize::new(0) })
    }

    fn take(&self, bytes: usize) -> Result<(), Full> {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.max);
        let taken = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits);
        taken.map(|_| ()).map_err(|used| Full { bytes, scope: self.scope, max: self.max, used })
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }
}

/// The scopes that a connection's bytes count in.
#[derive(Clone, Debug)]
pub(crate) struct Account([Arc<Level>; 3]);

impl Account {
    /// Of a connection, its address and all connections.
    pub(crate) fn new(connection: Arc<Level>, address: Arc<Level>, total: Arc<Level>) -> Self {
        Self([connection, address, total])
    }

    /// Whether the address holds no more than half of what others leave, after these bytes were taken. Somebody else may
    /// take some in the same moment; the bounds of the levels themselves hold nevertheless.
    fn check_share(&self, bytes: usize) -> Result<(), Full> {
        let [_, address, total] = &self.0;
        let used = address.used();
        let max = total.max.saturating_sub(total.used().saturating_sub(used)) / 2;
        let scope = "one address, while others hold this much,";
        if used <= max { Ok(()) } else { Err(Full { bytes, scope, max, used: used.saturating_sub(bytes) }) }
    }

    /// Nothing yet; [`Held::grow`] adds to it.
    pub(crate) fn hold(&self) -> Held {
        Held { account: self.clone(), bytes: 0, free: 0 }
    }
}

/// Bytes that are held, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    account: Account,
    bytes: usize,
    free: usize,
}

impl Held {
    /// Holds so many bytes more. The first few are free.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Full> {
        let free = bytes.min(FREE_BYTES - self.free);
        let counted = bytes - free;
        for (taken, level) in self.account.0.iter().enumerate() {
            if let Err(full) = level.take(counted) {
                self.account.0[..taken].iter().for_each(|level| level.give(counted));
                return Err(full);
            }
        }
        if counted > 0
            && let Err(full) = self.account.check_share(counted)
        {
            self.account.0.iter().for_each(|level| level.give(counted));
            return Err(full);
        }
        self.free += free;
        self.bytes += counted;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.0.iter().for_each(|level| level.give(self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels() -> [Arc<Level>; 3] {
        [Level::new("a connection", 100), Level::new("an address", 150), Level::new("all", 300)]
    }

    fn used(levels: &[Arc<Level>; 3]) -> [usize; 3] {
        levels.each_ref().map(|level| level.used())
    }

    #[test]
    fn the_last_byte_fits_and_the_next_does_not() {
        let levels = levels();
        let account = Account(levels.clone());
        let mut held = account.hold();
        held.grow(FREE_BYTES).unwrap();
        assert_eq!(used(&levels), [0; 3], "the first bytes are free");
        held.grow(100).unwrap();
        let full = held.grow(1).unwrap_err();
        assert_eq!((full.scope, full.max, full.used), ("a connection", 100, 100));
        assert_eq!(used(&levels), [100; 3], "what did not fit is counted nowhere");
        drop(held);
        assert_eq!(used(&levels), [0; 3]);
    }

    #[test]
    fn each_scope_has_its_own_end() {
        let [first, address, total] = levels();
        let second = Level::new("a connection", 100);
        let other = Account::new(second.clone(), address.clone(), total.clone());
        let mut held = Account::new(first, address.clone(), total.clone()).hold();
        held.grow(FREE_BYTES + 100).unwrap();
        let mut more = other.hold();
        more.grow(FREE_BYTES + 50).unwrap();
        assert_eq!(more.grow(1).unwrap_err().scope, "an address");
        drop((held, more));
        assert_eq!((second.used(), address.used(), total.used()), (0, 0, 0));
    }

    /// Both sides of what an address may hold beside others.
    #[test]
    fn there_is_room_for_one_more_address() {
        let total = Level::new("all", 256);
        let address = || {
            let account =
                Account::new(Level::new("a connection", 64), Level::new("an address", 64), total.clone());
            let mut held = account.hold();
            held.grow(FREE_BYTES).unwrap();
            held
        };
        let mut all = Vec::new();
        for share in [64, 64, 64, 32, 16, 8, 4] {
            let mut held = address();
            held.grow(share).unwrap();
            let full = held.grow(1).unwrap_err();
            assert_eq!((full.max, full.used, full.bytes), (share, share, 1));
            all.push(held);
        }
        assert_eq!(total.used(), 252);
        address().grow(2).unwrap();
        all.remove(0);
        address().grow(32).unwrap();
        drop(all);
        assert_eq!(total.used(), 0);
    }
}
