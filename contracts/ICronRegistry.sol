// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// ARC-21: calls that the chain makes at a time, once or every interval, at
/// 0x0000000000000000000000000000000000000006. Times are Unix seconds.
///
/// A run calls the target with msg.sender = tx.origin = this registry and no value. Each run takes
/// gasLimit × base fee from the job's escrow, whatever it uses and whether it succeeds.
interface ICronRegistry {
    struct Job {
        uint256 id;
        address owner;
        address target;
        bytes4 selector;
        bytes args;
        uint256 nextRunAt;
        uint256 intervalSec;
        uint256 maxRuns;
        uint256 runsLeft;
        uint256 gasLimit;
        uint256 gasEscrow;
    }

    event JobScheduled(uint256 indexed id, address indexed owner, address indexed target, uint256 nextRunAt);
    event JobExecuted(uint256 indexed id, bool success, uint256 gasUsed);
    event JobCancelled(uint256 indexed id, address indexed owner, uint256 refunded);
    event JobToppedUp(uint256 indexed id, uint256 amount, uint256 totalEscrow);
    event JobExhausted(uint256 indexed id, string reason);

    /// The registry is switched off or paused by governance; jobs can still be cancelled and topped up.
    error CronDisabled();
    error CronPaused();
    error TargetIsZero();
    error MethodIsEmpty();
    /// The method is not a canonical signature: no spaces, no names, uint256 instead of uint. probable: the one that was
    /// probably meant, empty if that cannot be told.
    error MethodNotCanonical(string probable);
    /// Calldata without a selector of four bytes.
    error InputTooShort(uint256 given, uint256 min);
    error InputTooLong(uint256 given, uint256 max);
    /// A time that is not strictly after the block's.
    error TimeNotInFuture(uint256 given, uint256 blockTime);
    error TimeBeyondHorizon(uint256 given, uint256 max);
    /// An interval is 0 (one run) or at least `min`.
    error IntervalTooShort(uint256 given, uint256 min);
    error IntervalTooLong(uint256 given, uint256 max);
    error GasLimitOutOfBounds(uint256 given, uint256 min, uint256 max);
    error RunsTooMany(uint256 given, uint256 max);
    /// The value does not pay for one run at the current base fee.
    error EscrowTooLow(uint256 given, uint256 needed);
    error RefundToIsZero();
    error UnknownOptions(uint256 given, uint256 known);
    error UnknownCatchUp(uint256 given, uint256 max);
    error UnknownJob(uint256 id);
    error NotJobOwner(uint256 id, address caller, address owner);
    /// A job cannot be cancelled inside its own last run.
    error JobInLastRun(uint256 id);
    /// A fault of the chain's own: the job was put aside and cannot be read.
    error JobUnreadable(string reason);

    /// Schedules a call of `method`, a canonical signature such as "charge(uint256)", with its ABI-encoded arguments.
    /// Read the id from JobScheduled: what eth_call answers is the id that the next block gives, not a promise.
    /// The value is the job's escrow. maxRuns 0: until the escrow runs out. intervalSec 0: one run.
    function schedule(
        address target,
        string calldata method,
        bytes calldata args,
        uint256 nextRunAt,
        uint256 intervalSec,
        uint256 maxRuns,
        uint256 gasLimit
    ) external payable returns (uint256 id);

    /// As schedule, with ready calldata.
    function scheduleCalldata(
        address target,
        bytes calldata data,
        uint256 nextRunAt,
        uint256 intervalSec,
        uint256 maxRuns,
        uint256 gasLimit
    ) external payable returns (uint256 id);

    /// As scheduleCalldata. refundTo gets every refund of this job (the other two: the owner).
    /// options: bit 0 refunds unused gas into the escrow, at most half of the charge;
    /// bits 8–9 after a halt: 0 all, 1 latest, 2 skip.
    function scheduleWith(
        address target,
        bytes calldata data,
        uint256 nextRunAt,
        uint256 intervalSec,
        uint256 maxRuns,
        uint256 gasLimit,
        address refundTo,
        uint256 options
    ) external payable returns (uint256 id);

    /// Ends a job and refunds its escrow. Owner only. In the block in which a job is due it has run already.
    function cancel(uint256 id) external returns (bool);

    /// Adds the value to a job's escrow. Anyone may.
    function topUp(uint256 id) external payable returns (bool);

    /// The job, or an empty one where there is none.
    function getJob(uint256 id) external view returns (Job memory);
}
