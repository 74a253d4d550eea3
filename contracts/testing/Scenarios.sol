// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICallbackHandler} from "../ICallbackHandler.sol";
import {ICallbackScheduler} from "../ICallbackScheduler.sol";
import {ICronRegistry} from "../ICronRegistry.sol";
import {Notes} from "./Notes.sol";

/// What somebody does with cron jobs and callbacks, step by step, with a pause after each.
contract Scenarios is ICallbackHandler, Notes {
    ICronRegistry private immutable CRON;
    ICallbackScheduler private constant CALLBACKS = ICallbackScheduler(0x000000000000000000000000000000000000a102);
    uint256 private constant ESCROW = 1 ether;
    /// Ten years of 365.25 days.
    uint64 private constant AHEAD = 315_576_000;

    uint256 public constant steps = 9;
    uint256[] private jobs;
    uint64[] private booked;

    /// The registry is at 0x06, but where that cannot be replaced.
    constructor(ICronRegistry cron) payable {
        CRON = cron;
    }

    receive() external payable {}

    /// Seconds that pass after a step.
    function pause(uint256 step) external pure returns (uint256) {
        if (step == 2) return 400;
        if (step == 4) return 1_000;
        if (step == 8) return 500;
        return 10;
    }

    function act(uint256 step) external {
        if (step == 0) _refusedOrders();
        if (step == 1) _jobs();
        if (step == 2) _endings();
        if (step == 3) _refusedCallbacks();
        if (step == 4) _callbacks();
        if (step == 5) _capacity();
        if (step == 6) _crowd();
        if (step == 7) _cancelledCallbacks();
        if (step == 8) _catchUp();
    }

    // ---- What is called ----

    function note(uint256 what) external {
        _note("run", what, block.timestamp - start);
        require(msg.sender == address(CRON) && tx.origin == address(CRON), "who calls");
    }

    function refuse(uint256 what) external pure {
        revert(what == 1 ? "one" : "other");
    }

    /// Cancels another job from inside a run, and then itself.
    function cancelFrom(uint256 other, uint256 own) external {
        _note("from insid", _try(abi.encodeCall(ICronRegistry.cancel, (jobs[other]))), block.timestamp - start);
        _note("itself", _try(abi.encodeCall(ICronRegistry.cancel, (jobs[own]))), 0);
    }

    function executeCallback(uint64 id, bytes calldata data) external {
        _note("callback", _nth(id), block.timestamp - start);
        _note("status", uint256(CALLBACKS.getStatus(id)), uint256(uint160(msg.sender)));
        if (data.length > 0) revert("refused");
    }

    // ---- Steps ----

    function _refusedOrders() private {
        bytes memory data = abi.encodeCall(this.note, (0));
        uint256 soon = block.timestamp + 100;
        _note("past", _try(_order(data, block.timestamp, 0, 0, 100_000)), 0);
        _note("horizon", _try(_order(data, block.timestamp + AHEAD + 1, 0, 0, 100_000)), 0);
        _note("interval", _try(_order(data, soon, 59, 0, 100_000)), 0);
        _note("long inter", _try(_order(data, soon, AHEAD + 1, 0, 100_000)), 0);
        _note("gas", _try(_order(data, soon, 0, 0, 20_999)), 0);
        _note("much gas", _try(_order(data, soon, 0, 0, 5_000_001)), 0);
        _note("runs", _try(_order(data, soon, 60, type(uint256).max, 100_000)), 0);
        _note("short", _try(_order(hex"010203", soon, 0, 0, 100_000)), 0);
        _note("no target", _tryValue(abi.encodeCall(ICronRegistry.scheduleCalldata, (address(0), data, soon, 0, 0, 100_000)), ESCROW), 0);
        _note("no method", _tryValue(abi.encodeCall(ICronRegistry.schedule, (address(this), "", "", soon, 0, 0, 100_000)), ESCROW), 0);
        _note("method", _tryValue(abi.encodeCall(ICronRegistry.schedule, (address(this), "note", "", soon, 0, 0, 100_000)), ESCROW), 0);
        _note("bare uint", _tryValue(abi.encodeCall(ICronRegistry.schedule, (address(this), "note(uint)", "", soon, 0, 0, 100_000)), ESCROW), 0);
        _note("refund to", _tryValue(abi.encodeCall(ICronRegistry.scheduleWith, (address(this), data, soon, 0, 0, 100_000, address(0), 0)), ESCROW), 0);
        _note("options", _tryValue(abi.encodeCall(ICronRegistry.scheduleWith, (address(this), data, soon, 0, 0, 100_000, address(this), 2)), ESCROW), 0);
        _note("catch-up", _tryValue(abi.encodeCall(ICronRegistry.scheduleWith, (address(this), data, soon, 0, 0, 100_000, address(this), 0x300)), ESCROW), 0);
        _note("poor", _tryValue(abi.encodeCall(ICronRegistry.scheduleCalldata, (address(this), data, soon, 0, 0, 100_000)), 1), 0);
        _note("unknown", _try(abi.encodeCall(ICronRegistry.cancel, (7))), 0);
        _note("unknown to", _tryValue(abi.encodeCall(ICronRegistry.topUp, (7)), 1), 0);
        _note("empty", uint256(uint160(CRON.getJob(7).owner)), 0);
    }

    /// Jobs that run together, in the order of their times and ids.
    function _jobs() private {
        uint256 soon = block.timestamp + 100;
        _schedule(abi.encodeCall(this.note, (1)), soon + 60, 0, 0);
        _schedule(abi.encodeCall(this.note, (2)), soon, 60, 3);
        _schedule(abi.encodeCall(this.refuse, (1)), soon, 60, 2);
        _schedule(abi.encodeCall(this.note, (3)), soon, 0, 5);
        _schedule(abi.encodeCall(this.note, (4)), soon, 60, 0);
        _schedule(abi.encodeCall(this.note, (5)), soon + 1, 0, 0);
        _note("topped up", CRON.topUp{value: 1}(jobs[1]) ? 1 : 0, CRON.getJob(jobs[1]).gasEscrow);
        _noteJob(1);
    }

    function _endings() private {
        uint256 soon = block.timestamp + 200;
        _schedule(abi.encodeCall(this.cancelFrom, (7, 6)), soon, 0, 0);
        _schedule(abi.encodeCall(this.note, (6)), soon, 0, 0);
        _schedule(abi.encodeCall(this.note, (7)), soon, 0, 0);
        uint256 before = address(this).balance;
        _note("cancelled", CRON.cancel(jobs[8]) ? 1 : 0, address(this).balance - before);
        _note("again", _try(abi.encodeCall(ICronRegistry.cancel, (jobs[8]))), 0);
    }

    function _refusedCallbacks() private {
        for (uint256 i; i < jobs.length; i++) _noteJob(i);
        _note("cancelled", CRON.cancel(jobs[4]) ? 1 : 0, 0);
        uint64 soon = uint64(block.timestamp) + 100;
        ICallbackScheduler.Priority high = ICallbackScheduler.Priority.High;
        _note("past", _book(address(this), "", uint64(block.timestamp), high, 100), 0);
        _note("horizon", _book(address(this), "", uint64(block.timestamp) + AHEAD + 1, high, 100), 0);
        _note("effort", _book(address(this), "", soon, high, 10), 0);
        _note("effort of ", _book(address(this), new bytes(100), soon, high, 11), 0);
        _note("much effor", _book(address(this), "", soon, high, 10_000), 0);
        _note("much for l", _book(address(this), "", soon, ICallbackScheduler.Priority.Low, 5_001), 0);
        _note("data", _book(address(this), new bytes(101), soon, high, 100), 0);
        _note("handler", _book(address(CRON), "", soon, high, 100), 0);
        _note("allowed", CALLBACKS.mayScheduleCallback(address(this), address(this)) ? 1 : 0, 0);
        CALLBACKS.setScheduler(address(1), true);
        _note("allowed", CALLBACKS.mayScheduleCallback(address(this), address(1)) ? 1 : 0, 0);
        _note("unknown", uint256(CALLBACKS.getStatus(7)), 0);
    }

    function _callbacks() private {
        uint64 soon = uint64(block.timestamp) + 100;
        _book(address(this), "", soon, ICallbackScheduler.Priority.Low, 500);
        _book(address(this), "", soon, ICallbackScheduler.Priority.Medium, 500);
        _book(address(this), "", soon, ICallbackScheduler.Priority.High, 500);
        _book(address(this), "x", soon, ICallbackScheduler.Priority.High, 500);
        _book(address(this), "", 0, ICallbackScheduler.Priority.High, 500);
        _schedule(abi.encodeCall(this.note, (8)), soon, 0, 0);
    }

    function _capacity() private {
        for (uint256 i; i < booked.length; i++) _note("ended", i, uint256(CALLBACKS.getStatus(booked[i])));
        uint64 soon = uint64(block.timestamp) + 100;
        for (uint256 i; i < 4; i++) _note("high", _book(address(this), "", soon, ICallbackScheduler.Priority.High, 9_000), 0);
        _note("left for h", CALLBACKS.getSlotAvailableEffort(soon, ICallbackScheduler.Priority.High), 0);
        _note("left for m", CALLBACKS.getSlotAvailableEffort(soon, ICallbackScheduler.Priority.Medium), 0);
        _note("low", CALLBACKS.getSlotAvailableEffort(soon, ICallbackScheduler.Priority.Low), 0);
        ICallbackScheduler.EstimatedCallback memory moved =
            CALLBACKS.estimate("", soon, ICallbackScheduler.Priority.Medium, 9_000);
        _note("moved", moved.timestamp - soon, moved.fee / (block.basefee > 1 gwei ? block.basefee : 1 gwei));
        _note("why not", _selector(CALLBACKS.estimate("", soon, ICallbackScheduler.Priority.High, 9_000).reason), 0);
    }

    /// More than a block runs: four jobs of five million gas, three of which fit.
    function _crowd() private {
        uint256 soon = block.timestamp + 100;
        for (uint256 i; i < 4; i++) {
            bytes memory order = _order(abi.encodeCall(this.note, (10 + i)), soon, 0, 0, 5_000_000);
            (bool done, bytes memory id) = address(CRON).call{value: ESCROW}(order);
            require(done, "scheduled");
            jobs.push(abi.decode(id, (uint256)));
        }
    }

    function _cancelledCallbacks() private {
        uint64 soon = uint64(block.timestamp) + 200;
        _book(address(this), "", soon, ICallbackScheduler.Priority.Medium, 500);
        uint64 last = booked[booked.length - 1];
        uint256 before = address(this).balance;
        uint256 refunded = CALLBACKS.cancel(last);
        _note("refunded", address(this).balance - before == refunded ? 1 : 0, uint256(CALLBACKS.getStatus(last)));
        (bool done, bytes memory answer) = address(CALLBACKS).call(abi.encodeCall(ICallbackScheduler.cancel, (last)));
        _note("twice", done ? 1 : _selector(answer), 0);
        (done, answer) = address(CALLBACKS).call(abi.encodeCall(ICallbackScheduler.cancel, (7)));
        _note("unknown", done ? 1 : _selector(answer), 0);
    }

    function _catchUp() private {
        uint256 soon = block.timestamp + 100;
        CRON.scheduleWith{value: ESCROW}(address(this), abi.encodeCall(this.note, (20)), soon, 60, 2, 100_000, address(this), 0x101);
        CRON.scheduleWith{value: ESCROW}(address(this), abi.encodeCall(this.note, (21)), soon, 60, 2, 100_000, address(this), 0x200);
        CRON.scheduleWith{value: ESCROW}(address(this), abi.encodeCall(this.refuse, (2)), soon, 60, 2, 100_000, address(this), 1);
    }

    // ---- Helpers ----

    function _schedule(bytes memory data, uint256 at_, uint256 interval, uint256 runs) private {
        jobs.push(CRON.scheduleCalldata{value: ESCROW}(address(this), data, at_, interval, runs, 500_000));
    }

    function _order(bytes memory data, uint256 at_, uint256 interval, uint256 runs, uint256 gas)
        private
        view
        returns (bytes memory)
    {
        return abi.encodeCall(ICronRegistry.scheduleCalldata, (address(this), data, at_, interval, runs, gas));
    }

    function _book(address handler, bytes memory data, uint64 at_, ICallbackScheduler.Priority priority, uint64 effort)
        private
        returns (uint256)
    {
        bytes memory order = abi.encodeCall(ICallbackScheduler.schedule, (handler, data, at_, priority, effort));
        (bool done, bytes memory answer) = address(CALLBACKS).call{value: ESCROW}(order);
        if (!done) return _selector(answer);
        ICallbackScheduler.ScheduledCallback memory callback =
            abi.decode(answer, (ICallbackScheduler.ScheduledCallback));
        booked.push(callback.id);
        _note("booked", uint256(callback.status), callback.timestamp == 0 ? 0 : callback.timestamp - start);
        return 1;
    }

    /// 1 if it was done, the selector of the error if not.
    function _try(bytes memory data) private returns (uint256) {
        return _tryValue(data, bytes4(data) == ICronRegistry.scheduleCalldata.selector ? ESCROW : 0);
    }

    function _tryValue(bytes memory data, uint256 value) private returns (uint256) {
        return _tried(address(CRON), data, value);
    }

    function _nth(uint64 id) private view returns (uint256) {
        for (uint256 i; i < booked.length; i++) if (booked[i] == id) return i;
        return type(uint256).max;
    }

    function _noteJob(uint256 i) private {
        ICronRegistry.Job memory job = CRON.getJob(jobs[i]);
        if (job.owner == address(0)) return _note("gone", i, 0);
        _note("job", i, job.nextRunAt - start);
        _note("left", job.runsLeft, uint32(job.selector));
    }
}
