//! Requests that a developer can send to a running sequencer.

use super::{
    BlockId, Mode,
    time::{NextTime, TIME_MAX},
};
use crate::application::Proven;
use alloy_primitives::Address;
use almanac_exec::{Edit, EditError, TransactionError};
use almanac_primitives::{
    DurationMs, StateKey, TimestampMs, params::Parameter, transaction::TransactionDecodeError,
};
use almanac_state::ProveError;
use std::fmt;
use tokio::sync::{mpsc, oneshot};

/// Most blocks that one request makes. Empty ones take 9 seconds in memory and two minutes on disk, in a build
/// that is not optimised; clients wait that long, and nothing else happens meanwhile.
pub const REQUEST_BLOCKS_MAX: u64 = 20_000;

/// Speaks to a sequencer. Cloning speaks to the same one.
#[derive(Clone)]
pub struct Controls {
    commands: mpsc::Sender<Command>,
    next_time: NextTime,
}

/// An answer on its way back. Whoever asked may have gone; what was done stands.
pub(super) type Reply<T> = oneshot::Sender<Result<T, ControlError>>;

#[derive(Debug)]
pub(super) enum Command {
    Mine { at: Option<TimestampMs>, reply: Reply<BlockId> },
    MineMany { count: u64, interval: Option<DurationMs>, reply: Reply<BlockId> },
    Snapshot { reply: Reply<u64> },
    Revert { id: u64, reply: Reply<BlockId> },
    Reset { reply: Reply<()> },
    Mode { reply: Reply<Mode> },
    SetMode { mode: Mode, reply: Reply<()> },
    SetNextTimestamp { at: TimestampMs, reply: Reply<()> },
    Travel { to: Destination, reply: Reply<Travel> },
    SetDistance { distance: Option<DurationMs>, reply: Reply<bool> },
    Edit { edits: Vec<Edit>, reply: Reply<BlockId> },
    Govern { changes: Vec<(Parameter, u64)>, reply: Reply<BlockId> },
    SetFeeRecipient { to: Address, reply: Reply<()> },
    Prove { keys: Vec<StateKey>, reply: Reply<Proven> },
    Stop,
}

/// Where time is moved.
#[derive(Clone, Copy, Debug)]
pub(super) enum Destination {
    After(DurationMs),
    At(TimestampMs),
}

/// What happened on the way when time was moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Travel {
    /// The blocks that were made, in order.
    pub blocks: Vec<BlockId>,
    /// How many runs they held.
    pub runs: u64,
    /// How far the chain's clock now is ahead of the machine's.
    pub offset_ms: i64,
}

/// Why a request is not followed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The sequencer has ended, or ended over this; it says why to whoever runs it.
    #[error("the chain has stopped")]
    Stopped,
    /// Time does not go back. The message has seconds, as tools do.
    #[error(
        "timestamp {} is lower than or equal to previous block's timestamp {}", .given.seconds(), .tip.seconds()
    )]
    NotAfterTip {
        /// The moment that was asked for.
        given: TimestampMs,
        /// The time of the last block.
        tip: TimestampMs,
    },
    /// A moment that clients cannot hold.
    #[error("that is later than {TIME_MAX}, the latest time that every client can hold")]
    TooLate,
    /// More blocks than one request makes.
    #[error("{given} blocks are above the limit of {REQUEST_BLOCKS_MAX} per request: ask several times")]
    TooManyBlocks {
        /// How many were asked for.
        given: u64,
    },
    /// More becomes due on the way than one request can run.
    #[error(
        "{REQUEST_BLOCKS_MAX} blocks were made on the way and more is due: the chain is now at {reached}, \
         ask again to go on to {asked}"
    )]
    TravelTooLong {
        /// The time that was reached.
        reached: TimestampMs,
        /// Where it should have gone.
        asked: TimestampMs,
    },
    /// There is no such snapshot.
    #[error("there is no snapshot {given}: it was used, dropped by an earlier revert, or is too old")]
    UnknownSnapshot {
        /// The number that was given.
        given: u64,
    },
    /// What would have to be shown again is no longer kept.
    #[error(
        "the chain cannot go back to block {height}: its state is no longer kept; give a larger --history"
    )]
    HistoryGone {
        /// Where it should have gone.
        height: u64,
    },
    /// Committed blocks stay.
    #[error("a chain with a data directory cannot be reset: stop it and choose another --datadir")]
    KeptForGood,
    /// The edit makes no transaction: it is too large.
    #[error(transparent)]
    NotATransaction(#[from] TransactionDecodeError),
    /// The edit is refused as a transaction: this is no developer's chain, for one.
    #[error(transparent)]
    NotIncluded(#[from] TransactionError),
    /// The edit was tried and failed. There is no block of it.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A value cannot be proven.
    #[error(transparent)]
    Prove(#[from] ProveError),
}

impl Controls {
    pub(super) fn new(next_time: NextTime) -> (Self, mpsc::Receiver<Command>) {
        let (commands, inbox) = mpsc::channel(16);
        (Self { commands, next_time }, inbox)
    }

    /// The time that a block would have if it came now, as long as that is after the tip.
    pub fn next_time(&self) -> TimestampMs {
        (self.next_time)()
    }

    /// Makes a block now, or at the given time, and answers with its number and hash.
    pub async fn mine(&self, at: Option<TimestampMs>) -> Result<BlockId, ControlError> {
        self.ask(|reply| Command::Mine { at, reply }).await
    }

    /// Makes blocks, each `interval` after the one before where there is one, and answers with the last.
    pub async fn mine_many(&self, count: u64, interval: Option<DurationMs>) -> Result<BlockId, ControlError> {
        self.ask(|reply| Command::MineMany { count, interval, reply }).await
    }

    /// Remembers everything as it is now, and answers with a number to go back to it by.
    ///
    /// While there is a snapshot, blocks above it are held in memory: they are lost where the process dies
    /// before it is reverted, given up or stopped.
    pub async fn snapshot(&self) -> Result<u64, ControlError> {
        self.ask(|reply| Command::Snapshot { reply }).await
    }

    /// Goes back to a snapshot: state, blocks, pool and clock are as they were. It and all later ones are used
    /// up.
    pub async fn revert(&self, id: u64) -> Result<BlockId, ControlError> {
        self.ask(|reply| Command::Revert { id, reply }).await
    }

    /// Starts anew from block 0, with an empty pool, no snapshots and the machine's time. A chain that is kept in
    /// a directory cannot.
    pub async fn reset(&self) -> Result<(), ControlError> {
        self.ask(|reply| Command::Reset { reply }).await
    }

    /// When blocks are made.
    pub async fn mode(&self) -> Result<Mode, ControlError> {
        self.ask(|reply| Command::Mode { reply }).await
    }

    /// Makes blocks in another way from now on.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), ControlError> {
        self.ask(|reply| Command::SetMode { mode, reply }).await
    }

    /// Gives the next block this time; the clock goes on from there. A block of edits does not use it up.
    pub async fn set_next_timestamp(&self, at: TimestampMs) -> Result<(), ControlError> {
        self.ask(|reply| Command::SetNextTimestamp { at, reply }).await
    }

    /// Moves the clock forward. What becomes due on the way runs in the very blocks that a waiting chain would
    /// have made for it; by hand, no block is made.
    pub async fn travel_by(&self, by: DurationMs) -> Result<Travel, ControlError> {
        self.ask(|reply| Command::Travel { to: Destination::After(by), reply }).await
    }

    /// Sets the clock, as [`travel_by`](Self::travel_by) does. It may go back as far as the last block.
    pub async fn travel_to(&self, at: TimestampMs) -> Result<Travel, ControlError> {
        self.ask(|reply| Command::Travel { to: Destination::At(at), reply }).await
    }

    /// Makes edits in as few blocks as hold them, at once, with nothing else in those blocks. Answers with the
    /// last. An edit that fails makes no block; blocks before it stand.
    pub async fn edit(&self, edits: Vec<Edit>) -> Result<BlockId, ControlError> {
        self.ask(|reply| Command::Edit { edits, reply }).await
    }

    /// Gives every later block a time this far after the one before it, whatever the clock says; or no longer.
    /// Answers with whether there was such a distance before.
    pub async fn set_distance(&self, distance: Option<DurationMs>) -> Result<bool, ControlError> {
        self.ask(|reply| Command::SetDistance { distance, reply }).await
    }

    /// Sets parameters in the name of whoever governs the chain, as [`edit`](Self::edit) makes edits. They count
    /// from the next block on.
    pub async fn govern(&self, changes: Vec<(Parameter, u64)>) -> Result<BlockId, ControlError> {
        self.ask(|reply| Command::Govern { changes, reply }).await
    }

    /// Gives the tips of later blocks to `to`.
    pub async fn set_fee_recipient(&self, to: Address) -> Result<(), ControlError> {
        self.ask(|reply| Command::SetFeeRecipient { to, reply }).await
    }

    /// Proves values in the state after the last block. While a snapshot holds blocks back, there is no proof.
    pub async fn prove(&self, keys: Vec<StateKey>) -> Result<Proven, ControlError> {
        self.ask(|reply| Command::Prove { keys, reply }).await
    }

    /// Asks it to end.
    pub(super) async fn stop(&self) {
        // A sequencer that has ended already does not hear this.
        let _ = self.commands.send(Command::Stop).await;
    }

    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, ControlError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| ControlError::Stopped)?;
        answer.await.map_err(|_| ControlError::Stopped)?
    }
}

impl fmt::Debug for Controls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controls").field("next_time", &self.next_time()).finish_non_exhaustive()
    }
}
