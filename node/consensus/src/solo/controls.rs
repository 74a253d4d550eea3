//! Requests from a developer to a running sequencer.

use super::{
    BlockId, Mode,
    time::{NextTime, TIME_MAX},
};
use crate::application::{ApplicationError, Proven};
use alloy_primitives::Address;
use almanac_exec::{Edit, EditError, TransactionError};
use almanac_primitives::{
    DurationMs, StateKey, TimestampMs, params::Parameter, transaction::TransactionDecodeError,
};
use almanac_state::ProveError;
use std::fmt;
use tokio::sync::{mpsc, oneshot};

/// Most blocks per request. Empty ones take 9 seconds in memory and two minutes on disk in an unoptimized
/// build. Clients wait that long, and the sequencer does nothing else meanwhile.
pub const REQUEST_BLOCKS_MAX: u64 = 20_000;

/// A handle to a sequencer. Clones use the same one.
#[derive(Clone)]
pub struct Controls {
    commands: mpsc::Sender<Command>,
    next_time: NextTime,
}

/// The channel of an answer. The client may have gone; the effects stay.
pub(super) type Reply<T> = oneshot::Sender<Result<T, ControlError>>;

#[derive(Debug)]
pub(super) enum Command {
    Mine { at: Option<TimestampMs>, reply: Reply<BlockId> },
    MineMany { mining: Mining, reply: Reply<BlockId> },
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

/// Blocks to build at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mining {
    /// How many.
    pub count: u64,
    /// The time between each and the one before.
    pub interval: Option<DurationMs>,
    /// Whether that also passes before the first of them.
    pub is_led: bool,
}

/// The target of a move in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    After(DurationMs),
    At(TimestampMs),
}

/// What happened while time was moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Travel {
    /// The blocks built, in order.
    pub blocks: Vec<BlockId>,
    /// Number of runs in them.
    pub runs: u64,
    /// How far the chain's clock is ahead of the machine's now.
    pub offset_ms: i64,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The sequencer has ended, perhaps because of this request; its owner gets the reason.
    #[error("the chain has stopped")]
    Stopped,
    /// Time cannot go back. The message uses seconds, as tools do.
    #[error(
        "timestamp {} is lower than or equal to previous block's timestamp {}", .given.seconds(), .tip.seconds()
    )]
    NotAfterTip {
        /// The requested time.
        given: TimestampMs,
        /// The time of the last block.
        tip: TimestampMs,
    },
    /// A time that clients cannot represent.
    #[error("that is later than {TIME_MAX}, the latest time that every client can hold")]
    TooLate,
    /// Too many blocks for one request.
    #[error("{given} blocks are above the limit of {max} per request: ask several times")]
    TooManyBlocks {
        /// The requested number.
        given: u64,
        /// The most per request.
        max: u64,
    },
    /// More becomes due on the way than one request can run.
    #[error(
        "{made} blocks were made on the way and more is due: the chain is now at {reached}, send the same \
         request again to go on to {asked}"
    )]
    TravelTooLong {
        /// Blocks made on the way.
        made: u64,
        /// The time that was reached.
        reached: TimestampMs,
        /// The requested time.
        asked: TimestampMs,
    },
    /// There is no such snapshot.
    #[error("there is no snapshot {given}: it was used, dropped by an earlier revert, or is too old")]
    UnknownSnapshot {
        /// The given id.
        given: u64,
    },
    /// The state of that block has been pruned.
    #[error(
        "the chain cannot go back to block {height}: its state is no longer kept; give a larger --history"
    )]
    HistoryGone {
        /// The requested height.
        height: u64,
    },
    /// Committed blocks cannot be reverted.
    #[error("a chain with a data directory cannot be reset: stop it and choose another --datadir")]
    KeptForGood,
    /// The edit is too large for a transaction.
    #[error(transparent)]
    NotATransaction(#[from] TransactionDecodeError),
    /// The edit was rejected as a transaction, for example because this is not a developer chain.
    #[error(transparent)]
    NotIncluded(#[from] TransactionError),
    /// The edit failed. No block was built for it.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A value of the state could not be read. What the request did before that stays.
    #[error("{0}: repeat the request when it can be read")]
    Unread(Box<ApplicationError>),
    /// A value cannot be proven.
    #[error(transparent)]
    Prove(#[from] ProveError),
}

impl Controls {
    pub(super) fn new(next_time: NextTime) -> (Self, mpsc::Receiver<Command>) {
        let (commands, inbox) = mpsc::channel(16);
        (Self { commands, next_time }, inbox)
    }

    /// The time of a block that is built now, if that is after the tip.
    pub fn next_time(&self) -> TimestampMs {
        (self.next_time)()
    }

    /// Builds a block now or at the given time. Returns its number and hash.
    pub async fn mine(&self, at: Option<TimestampMs>) -> Result<BlockId, ControlError> {
        self.ask(|reply| Command::Mine { at, reply }).await
    }

    /// Builds blocks, `interval` apart if it is given. Returns the last one.
    pub async fn mine_many(&self, count: u64, interval: Option<DurationMs>) -> Result<BlockId, ControlError> {
        self.mine_all(Mining { count, interval, is_led: false }).await
    }

    /// Builds blocks. Returns the last one.
    pub async fn mine_all(&self, mining: Mining) -> Result<BlockId, ControlError> {
        self.ask(|reply| Command::MineMany { mining, reply }).await
    }

    /// Takes a snapshot. Returns its id.
    ///
    /// While there is a snapshot, blocks above it are held in memory. They are lost if the process dies before
    /// the snapshot is reverted or dropped, or the sequencer is stopped.
    pub async fn snapshot(&self) -> Result<u64, ControlError> {
        self.ask(|reply| Command::Snapshot { reply }).await
    }

    /// Reverts state, blocks, pool and clock to a snapshot. Removes that snapshot and all later ones.
    pub async fn revert(&self, id: u64) -> Result<BlockId, ControlError> {
        self.ask(|reply| Command::Revert { id, reply }).await
    }

    /// Restarts from block 0, with an empty pool, no snapshots and the machine's time. Fails for a chain with a
    /// data directory.
    pub async fn reset(&self) -> Result<(), ControlError> {
        self.ask(|reply| Command::Reset { reply }).await
    }

    /// When blocks are built.
    pub async fn mode(&self) -> Result<Mode, ControlError> {
        self.ask(|reply| Command::Mode { reply }).await
    }

    /// Sets when blocks are built from now on.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), ControlError> {
        self.ask(|reply| Command::SetMode { mode, reply }).await
    }

    /// Sets the time of the next block; the clock continues from there. Blocks of edits do not use it.
    pub async fn set_next_timestamp(&self, at: TimestampMs) -> Result<(), ControlError> {
        self.ask(|reply| Command::SetNextTimestamp { at, reply }).await
    }

    /// Moves the clock forward. What becomes due on the way runs in the same blocks that a waiting chain would
    /// have built. In manual mode, no block is built. The same request again, while its client has no answer or one
    /// that it stopped on the way, continues it instead of adding to it.
    pub async fn travel_by(&self, by: DurationMs) -> Result<Travel, ControlError> {
        self.ask(|reply| Command::Travel { to: Destination::After(by), reply }).await
    }

    /// Sets the clock, as [`travel_by`](Self::travel_by) does. It may go back to the time of the last block.
    pub async fn travel_to(&self, at: TimestampMs) -> Result<Travel, ControlError> {
        self.ask(|reply| Command::Travel { to: Destination::At(at), reply }).await
    }

    /// Applies edits at once, in as few blocks as possible, with nothing else in those blocks. Returns the last
    /// block. A failed edit gives no block; earlier blocks stay.
    pub async fn edit(&self, edits: Vec<Edit>) -> Result<BlockId, ControlError> {
        self.ask(|reply| Command::Edit { edits, reply }).await
    }

    /// Sets the distance in time between every later block and its parent, whatever the clock shows; `None`
    /// removes it. Returns whether a distance was set before.
    pub async fn set_distance(&self, distance: Option<DurationMs>) -> Result<bool, ControlError> {
        self.ask(|reply| Command::SetDistance { distance, reply }).await
    }

    /// Sets parameters as the chain's governor, in the way that [`edit`](Self::edit) applies edits. They are in
    /// force from the next block on.
    pub async fn govern(&self, changes: Vec<(Parameter, u64)>) -> Result<BlockId, ControlError> {
        self.ask(|reply| Command::Govern { changes, reply }).await
    }

    /// Sets the recipient of the tips of later blocks.
    pub async fn set_fee_recipient(&self, to: Address) -> Result<(), ControlError> {
        self.ask(|reply| Command::SetFeeRecipient { to, reply }).await
    }

    /// Proves values in the state after the last block. Fails while a snapshot holds blocks.
    pub async fn prove(&self, keys: Vec<StateKey>) -> Result<Proven, ControlError> {
        self.ask(|reply| Command::Prove { keys, reply }).await
    }

    /// Stops the sequencer.
    pub(super) async fn stop(&self) {
        // Ignore the error: the sequencer may have ended already.
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
