// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICallbackHandler} from "./ICallbackHandler.sol";
import {ICallbackScheduler} from "./ICallbackScheduler.sol";

/// A callback that comes back every interval. Inherit, implement onCallback, call _start, and keep enough balance for
/// the next fee.
///
/// Each run books the next one before it does anything else, so a run that fails does not end the series. The series
/// stops when the next run cannot be booked: RecurrenceStopped says why, and _start begins again. High needs room in
/// its very second, so others who fill that second stop a series of High; Medium takes the next second with room.
abstract contract RecurringCallback is ICallbackHandler {
    ICallbackScheduler internal constant SCHEDULER = ICallbackScheduler(0x000000000000000000000000000000000000a102);
    /// Gas that is kept for the end of a run, after onCallback.
    uint256 private constant RESERVE = 20_000;

    /// The callback that comes next; 0 if none does.
    uint64 public nextId;
    /// The time that it is for.
    uint64 public nextAt;
    uint64 public intervalSec;
    uint64 public executionEffort;
    ICallbackScheduler.Priority public priority;

    event RunFailed(uint64 indexed id, uint64 due);
    event RecurrenceStopped(uint64 due, bytes reason);

    error NotScheduler(address caller);
    error NotSelf(address caller);
    error IntervalIsZero();
    error AlreadyRunning(uint64 id);
    error BalanceTooLow(uint256 balance, uint256 fee);

    /// The work of one run, for the time that it was due.
    function onCallback(uint64 due) internal virtual;

    /// Whether another run follows the one that is due at this time.
    function hasNext(uint64) internal view virtual returns (bool) {
        return true;
    }

    /// Whether another run is booked. It is not after a run that had too little effort to book the next.
    function isRunning() public view returns (bool) {
        if (nextId == 0) return false;
        ICallbackScheduler.Status status = SCHEDULER.getStatus(nextId);
        return status == ICallbackScheduler.Status.Scheduled || status == ICallbackScheduler.Status.Processed;
    }

    function executeCallback(uint64 id, bytes calldata) external {
        if (msg.sender != address(SCHEDULER)) revert NotScheduler(msg.sender);
        // A run of a series that was stopped and started again.
        if (id != nextId) return;
        uint64 due = nextAt;
        if (hasNext(due)) _bookAfter(due);
        else nextId = 0;
        // In a call of its own: what fails there takes nothing of this frame along. Its data is not copied, since
        // copying would be paid with the gas that is kept here. Too little for any work is a run that fails: the
        // booking above stays.
        uint256 gas = gasleft() > RESERVE ? gasleft() - RESERVE : 0;
        try this.runOnce{gas: gas}(due) {}
        catch {
            emit RunFailed(id, due);
        }
    }

    /// For executeCallback alone.
    function runOnce(uint64 due) external {
        if (msg.sender != address(this)) revert NotSelf(msg.sender);
        onCallback(due);
    }

    /// Books the first run at `firstAt`, or in the next second if that is 0.
    function _start(
        uint64 firstAt,
        uint64 intervalSec_,
        ICallbackScheduler.Priority priority_,
        uint64 executionEffort_
    ) internal {
        if (isRunning()) revert AlreadyRunning(nextId);
        if (intervalSec_ == 0) revert IntervalIsZero();
        _stop();
        (intervalSec, priority, executionEffort) = (intervalSec_, priority_, executionEffort_);
        uint64 due = firstAt == 0 ? uint64(block.timestamp) + 1 : firstAt;
        (bool isBooked, bytes memory reason) = _book(due);
        if (!isBooked) {
            assembly ("memory-safe") {
                revert(add(reason, 32), mload(reason))
            }
        }
    }

    /// Cancels the run that comes next, or takes the fee of one that was put aside. The refund arrives as a plain
    /// credit.
    function _stop() internal {
        uint64 id = nextId;
        nextId = 0;
        if (id == 0) return;
        ICallbackScheduler.Status status = SCHEDULER.getStatus(id);
        if (status == ICallbackScheduler.Status.Scheduled || status == ICallbackScheduler.Status.Quarantined) {
            SCHEDULER.cancel(id);
        }
    }

    function _bookAfter(uint64 due) private {
        uint64 next = due + intervalSec;
        // After a halt of the chain: the first time of the series that is still to come.
        if (next <= block.timestamp) next += (uint64(block.timestamp) - next) / intervalSec * intervalSec + intervalSec;
        (bool isBooked, bytes memory reason) = _book(next);
        if (!isBooked) {
            nextId = 0;
            emit RecurrenceStopped(due, reason);
        }
    }

    function _book(uint64 due) private returns (bool isBooked, bytes memory reason) {
        ICallbackScheduler.EstimatedCallback memory estimated = SCHEDULER.estimate("", due, priority, executionEffort);
        if (estimated.reason.length > 0) return (false, estimated.reason);
        if (address(this).balance < estimated.fee) {
            return (false, abi.encodeWithSelector(BalanceTooLow.selector, address(this).balance, estimated.fee));
        }
        ICallbackScheduler.ScheduledCallback memory booked =
            SCHEDULER.schedule{value: estimated.fee}(address(this), "", due, priority, executionEffort);
        (nextId, nextAt) = (booked.id, due);
        return (true, "");
    }
}
