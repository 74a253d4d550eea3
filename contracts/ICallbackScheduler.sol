// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// FLIP-330: callbacks with priorities and booked capacity, at 0x000000000000000000000000000000000000a102.
/// Timestamps are whole Unix seconds. One unit of execution effort is 2,100 gas and covers intrinsic gas.
///
/// A callback calls executeCallback(id, data) of its handler with msg.sender = tx.origin = this scheduler and no value.
/// High and Medium run in the first block at or after their second, before user transactions. Low runs when there is room.
interface ICallbackScheduler {
    enum Priority {
        /// Runs in its second, or is not taken.
        High,
        /// Runs in its second, or in the next one with room, which the answer names.
        Medium,
        /// Runs after its second, when a block has room.
        Low
    }

    enum Status {
        /// No callback has this id, or it ended so long ago that its status is no longer stored.
        Unknown,
        Scheduled,
        /// The start of this block has taken it up; its run follows in the same block.
        Processed,
        Executed,
        /// Its run reverted or ran out of effort.
        Failed,
        Canceled,
        /// A fault of the chain's own put it aside; its owner may cancel it and gets the whole fee.
        Quarantined
    }

    struct ScheduledCallback {
        uint64 id;
        /// When it runs; 0 for Low, which has no prediction.
        uint64 timestamp;
        Status status;
    }

    struct EstimatedCallback {
        uint256 fee;
        /// When it would run; 0 for Low.
        uint64 timestamp;
        /// The data that schedule would revert with; empty if it would take the callback.
        bytes reason;
    }

    event CallbackScheduled(
        uint64 indexed id,
        address indexed owner,
        address indexed handler,
        uint64 timestamp,
        Priority priority,
        uint64 executionEffort
    );
    event CallbackProcessed(uint64 indexed id, uint64 executionEffort);
    event CallbackExecuted(uint64 indexed id);
    /// reason: revert data of the handler, or Error(string) with what stopped it; at most 256 bytes.
    event CallbackFailed(uint64 indexed id, bytes reason);
    event CallbackCanceled(uint64 indexed id, uint256 refunded);
    /// The chain itself was late: the callback ran, and its owner has the fee back.
    event CallbackRefunded(uint64 indexed id, uint256 amount);
    event SchedulerSet(address indexed handler, address indexed scheduler, bool allowed);

    /// Switched off or paused by governance; callbacks can still be cancelled.
    error SchedulerDisabled();
    error SchedulerPaused();
    /// The handler is neither the caller nor has it allowed the caller.
    error HandlerNotAllowed(address handler, address caller);
    error DataTooLong(uint256 given, uint256 max);
    /// A timestamp is 0 (the next second) or strictly after the block's.
    error TimestampNotInFuture(uint256 given, uint256 blockTime);
    error TimestampBeyondHorizon(uint256 given, uint256 max);
    /// The least effort covers the intrinsic gas of the call with its data.
    error EffortTooLow(uint256 given, uint256 min);
    error EffortTooHigh(uint256 given, uint256 max);
    error FeeTooLow(uint256 given, uint256 needed);
    /// High: the second has less effort left. Medium: no second within the search has enough.
    error NoCapacity(uint256 timestamp, uint256 effort, uint256 available);
    error UnknownCallback(uint256 id);
    error NotOwner(uint256 id, address caller, address owner);
    /// Only what is scheduled, or quarantined, can be cancelled.
    error NotScheduled(uint256 id, Status status);
    /// A fault of the chain's own: the callback was put aside and cannot be read.
    error Unreadable(string reason);

    /// Books a callback. The value pays the fee: effort × 2,100 × max(base fee, floor) × the priority's multiplier;
    /// what is above it returns at once. timestamp 0: the next second.
    function schedule(
        address handler,
        bytes calldata data,
        uint64 timestamp,
        Priority priority,
        uint64 executionEffort
    ) external payable returns (ScheduledCallback memory callback);

    /// What schedule would answer in this block, given the fee and an allowed handler.
    function estimate(bytes calldata data, uint64 timestamp, Priority priority, uint64 executionEffort)
        external
        view
        returns (EstimatedCallback memory callback);

    /// Ends a callback that has not begun. Owner only. Half of the fee returns, all of it if the chain was late.
    function cancel(uint64 id) external returns (uint256 refunded);

    function getStatus(uint64 id) external view returns (Status status);

    /// The effort that a callback of this priority could still book in a second; of Low: the most that one may ask for.
    function getSlotAvailableEffort(uint64 timestamp, Priority priority) external view returns (uint64 effort);

    /// Lets `scheduler` book callbacks of the caller, or no longer.
    function setScheduler(address scheduler, bool allowed) external;

    function mayScheduleCallback(address handler, address scheduler) external view returns (bool allowed);
}
