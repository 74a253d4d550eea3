// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICallbackHandler} from "../ICallbackHandler.sol";
import {ICallbackScheduler} from "../ICallbackScheduler.sol";
import {FakeDoor} from "./FakeDoor.sol";

/// The FLIP-330 callback scheduler for EVMs that do not have it: those of forge and Hardhat. docs/testing-contracts.md
/// says how it gets to its address, and what differs from the real one.
///
/// A test's clock drives it: beginBlock chooses what runs in a block, and runAll runs it.
contract FakeCallbackScheduler is ICallbackScheduler, FakeDoor {
    uint256 private constant EFFORT_GAS = 2_100;
    uint256 private constant PRICE_FLOOR = 1 gwei;
    /// Ten years of 365.25 days.
    uint256 private constant AHEAD = 315_576_000;
    uint256 private constant DATA_BYTES_MAX = 100;
    uint64 private constant EFFORT_MIN = 11;
    uint64 private constant EFFORT_MAX = 9_999;
    uint64 private constant LOW_EFFORT_MAX = 5_000;
    uint64 private constant SEARCH_SECONDS = 1 days;
    uint64 private constant LATE = 60;
    /// Effort of a second that only High, only Medium, and both may book.
    uint64 private constant HIGH = 20_000;
    uint64 private constant MEDIUM = 5_000;
    uint64 private constant SHARED = 10_000;

    struct Callback {
        address owner;
        address handler;
        bytes data;
        uint64 second;
        Priority priority;
        uint64 effort;
        uint256 fee;
        uint256 basePart;
        Status status;
        uint256 scheduledIn;
    }

    struct Booked {
        uint64 high;
        uint64 medium;
    }

    mapping(uint64 id => Callback) private callbacks;
    mapping(uint64 second => Booked) private booked;
    mapping(address handler => mapping(address scheduler => bool)) private allowance;
    uint64[] private live;
    uint64[] private lowOfBlock;
    uint256 private birthBlock;
    uint64 private births;

    function schedule(
        address handler,
        bytes calldata data,
        uint64 timestamp,
        Priority priority,
        uint64 executionEffort
    ) external payable returns (ScheduledCallback memory) {
        if (!mayScheduleCallback(handler, msg.sender)) revert HandlerNotAllowed(handler, msg.sender);
        (uint64 second, uint256 fee, uint256 basePart) = _plan(data, timestamp, priority, executionEffort);
        if (msg.value < fee) revert FeeTooLow(msg.value, fee);
        if (priority == Priority.High) booked[second].high += executionEffort;
        if (priority == Priority.Medium) booked[second].medium += executionEffort;
        uint64 id = _nextId();
        callbacks[id] = Callback(
            msg.sender, handler, data, second, priority, executionEffort, fee, basePart, Status.Scheduled, block.number
        );
        live.push(id);
        uint64 told = priority == Priority.Low ? 0 : second;
        emit CallbackScheduled(id, msg.sender, handler, told, priority, executionEffort);
        _credit(msg.sender, msg.value - fee);
        return ScheduledCallback(id, told, Status.Scheduled);
    }

    function estimate(bytes calldata data, uint64 timestamp, Priority priority, uint64 executionEffort)
        external
        view
        returns (EstimatedCallback memory estimated)
    {
        try this.plan(data, timestamp, priority, executionEffort) returns (uint64 second, uint256 fee, uint256) {
            return EstimatedCallback(fee, priority == Priority.Low ? 0 : second, "");
        } catch (bytes memory reason) {
            estimated.reason = reason;
        }
    }

    function cancel(uint64 id) external returns (uint256 refunded) {
        Callback storage callback = callbacks[id];
        if (callback.owner == address(0)) revert UnknownCallback(id);
        if (callback.owner != msg.sender) revert NotOwner(id, msg.sender, callback.owner);
        if (callback.status != Status.Scheduled) revert NotScheduled(id, callback.status);
        callback.status = Status.Canceled;
        _release(callback);
        _forget(id);
        refunded = _isLate(callback) ? callback.fee : callback.fee / 2;
        emit CallbackCanceled(id, refunded);
        _credit(callback.owner, refunded);
        _credit(BURN, callback.fee - refunded);
    }

    function getStatus(uint64 id) external view returns (Status) {
        return callbacks[id].status;
    }

    function getSlotAvailableEffort(uint64 timestamp, Priority priority) external view returns (uint64) {
        if (priority == Priority.Low) return LOW_EFFORT_MAX;
        return timestamp <= block.timestamp ? 0 : _available(timestamp, priority);
    }

    function setScheduler(address scheduler, bool allowed) external {
        allowance[msg.sender][scheduler] = allowed;
        emit SchedulerSet(msg.sender, scheduler, allowed);
    }

    function mayScheduleCallback(address handler, address scheduler) public view returns (bool) {
        return handler == scheduler || allowance[handler][scheduler];
    }

    // ---- For tests alone ----

    /// When something is due next; the largest number if nothing waits.
    function nextDue() external view returns (uint256 due) {
        due = type(uint256).max;
        for (uint256 i; i < live.length; i++) {
            uint256 next = callbacks[live[i]].second;
            if (next < due) due = next;
        }
    }

    /// The callbacks that this block runs: High and Medium before transactions, Low after them.
    function beginBlock() public returns (uint64[] memory booked_, uint64[] memory low) {
        (booked_, low) = (_due(false), _due(true));
        uint64 left = LOW_EFFORT_MAX;
        for (uint256 i; i < booked_.length; i++) {
            uint64 effort = _process(booked_[i]);
            left = effort < left ? left - effort : 0;
        }
        uint256 count;
        for (uint256 i; i < low.length; i++) {
            uint64 effort = callbacks[low[i]].effort;
            if (effort > left) continue;
            left -= effort;
            _process(low[i]);
            low[count++] = low[i];
        }
        assembly ("memory-safe") {
            mstore(low, count)
        }
    }

    /// Runs them. Called in this door's own name, so that tx.origin is right too.
    function runAll(uint64[] memory ids) public {
        for (uint256 i; i < ids.length; i++) {
            Callback storage callback = callbacks[ids[i]];
            bytes memory data = abi.encodeCall(ICallbackHandler.executeCallback, (ids[i], callback.data));
            (bool success, bytes memory reason,) = _call(callback.handler, data, callback.effort * EFFORT_GAS);
            _settle(ids[i], success, reason);
        }
    }

    /// The start of a block, for networks where each part is a transaction. runLow is its end.
    function runBooked() external {
        (uint64[] memory booked_, uint64[] memory low) = beginBlock();
        lowOfBlock = low;
        runAll(booked_);
    }

    function runLow() external {
        uint64[] memory low = lowOfBlock;
        delete lowOfBlock;
        runAll(low);
    }

    /// Ends a run.
    function _settle(uint64 id, bool success, bytes memory reason) private {
        Callback storage callback = callbacks[id];
        callback.status = success ? Status.Executed : Status.Failed;
        if (success) emit CallbackExecuted(id);
        else emit CallbackFailed(id, _front(reason));
        if (_isLate(callback)) {
            emit CallbackRefunded(id, callback.fee);
            _credit(callback.owner, callback.fee);
        } else {
            _credit(block.coinbase, callback.basePart);
            _credit(BURN, callback.fee - callback.basePart);
        }
    }

    /// For estimate alone.
    function plan(bytes calldata data, uint64 timestamp, Priority priority, uint64 effort)
        external
        view
        returns (uint64 second, uint256 fee, uint256 basePart)
    {
        return _plan(data, timestamp, priority, effort);
    }

    // ---- Rules ----

    function _plan(bytes calldata data, uint64 timestamp, Priority priority, uint64 effort)
        private
        view
        returns (uint64 second, uint256 fee, uint256 basePart)
    {
        if (data.length > DATA_BYTES_MAX) revert DataTooLong(data.length, DATA_BYTES_MAX);
        second = timestamp == 0 ? uint64(block.timestamp) + 1 : timestamp;
        if (second <= block.timestamp) revert TimestampNotInFuture(timestamp, block.timestamp);
        if (second > block.timestamp + AHEAD) revert TimestampBeyondHorizon(timestamp, block.timestamp + AHEAD);
        // What the call costs before the handler's first step, whatever its id is.
        bytes memory input = abi.encodeCall(ICallbackHandler.executeCallback, (type(uint64).max, data));
        uint64 least = uint64((_floorGas(input) + EFFORT_GAS - 1) / EFFORT_GAS);
        if (least < EFFORT_MIN) least = EFFORT_MIN;
        if (effort < least) revert EffortTooLow(effort, least);
        uint64 most = priority == Priority.Low ? LOW_EFFORT_MAX : EFFORT_MAX;
        if (effort > most) revert EffortTooHigh(effort, most);
        basePart = effort * EFFORT_GAS * (block.basefee > PRICE_FLOOR ? block.basefee : PRICE_FLOOR);
        fee = basePart * (priority == Priority.High ? 10 : priority == Priority.Medium ? 5 : 2);
        second = _findRoom(second, priority, effort);
    }

    function _findRoom(uint64 second, Priority priority, uint64 effort) private view returns (uint64) {
        if (priority == Priority.Low) return second;
        uint64 end = priority == Priority.Medium ? second + SEARCH_SECONDS : second;
        for (uint64 found = second; found <= end; found++) {
            if (effort <= _available(found, priority)) return found;
        }
        revert NoCapacity(second, effort, _available(second, priority));
    }

    /// A class has its own part of a second, and what the other leaves of the shared one.
    function _available(uint64 second, Priority priority) private view returns (uint64) {
        Booked memory taken = booked[second];
        (uint64 high, uint64 medium) = (taken.high, taken.medium);
        if (priority == Priority.High) {
            uint64 beyond = medium > MEDIUM ? medium - MEDIUM : 0;
            return _less(HIGH + SHARED, high + beyond);
        }
        uint64 over = high > HIGH ? high - HIGH : 0;
        return _less(MEDIUM + SHARED, medium + over);
    }

    function _less(uint64 all, uint64 taken) private pure returns (uint64) {
        return taken > all ? 0 : all - taken;
    }

    function _process(uint64 id) private returns (uint64 effort) {
        Callback storage callback = callbacks[id];
        callback.status = Status.Processed;
        effort = callback.effort;
        _release(callback);
        _forget(id);
        emit CallbackProcessed(id, effort);
    }

    function _release(Callback storage callback) private {
        if (callback.priority == Priority.High) booked[callback.second].high -= callback.effort;
        if (callback.priority == Priority.Medium) booked[callback.second].medium -= callback.effort;
    }

    function _isLate(Callback storage callback) private view returns (bool) {
        return callback.priority != Priority.Low && block.timestamp > callback.second + LATE;
    }

    /// What is due and was not scheduled in this very block, by (second, priority, id).
    function _due(bool isLow) private view returns (uint64[] memory due) {
        due = new uint64[](live.length);
        uint256 count;
        for (uint256 i; i < live.length; i++) {
            Callback storage callback = callbacks[live[i]];
            bool isOther = (callback.priority == Priority.Low) != isLow;
            if (isOther || callback.second > block.timestamp || callback.scheduledIn == block.number) continue;
            uint256 place = count++;
            while (place > 0 && _isBefore(live[i], due[place - 1])) {
                due[place] = due[place - 1];
                place--;
            }
            due[place] = live[i];
        }
        assembly ("memory-safe") {
            mstore(due, count)
        }
    }

    function _isBefore(uint64 a, uint64 b) private view returns (bool) {
        Callback storage one = callbacks[a];
        Callback storage other = callbacks[b];
        if (one.second != other.second) return one.second < other.second;
        if (one.priority != other.priority) return one.priority < other.priority;
        return a < b;
    }

    function _nextId() private returns (uint64) {
        if (birthBlock != block.number) (birthBlock, births) = (block.number, 0);
        return uint64(block.number << 28) | (1 << 10) | births++;
    }

    function _forget(uint64 id) private {
        for (uint256 i; i < live.length; i++) {
            if (live[i] != id) continue;
            live[i] = live[live.length - 1];
            live.pop();
            return;
        }
    }
}
