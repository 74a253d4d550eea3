// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICronRegistry} from "../ICronRegistry.sol";
import {FakeAccounts} from "./FakeAccounts.sol";
import {FakeCallbackScheduler} from "./FakeCallbackScheduler.sol";
import {FakeCronRegistry} from "./FakeCronRegistry.sol";
import {FakePayer} from "./FakePayer.sol";
import {FakeScheduledTransactions} from "./FakeScheduledTransactions.sol";

/// The cheatcodes of forge that are used here.
interface DoorVm {
    function mockFunction(address callee, address target, bytes calldata data) external;
    function etch(address target, bytes calldata code) external;
    function prank(address sender, address origin) external;
    function warp(uint256 time) external;
    function roll(uint256 number) external;
    function getBlockTimestamp() external view returns (uint256);
    function getBlockNumber() external view returns (uint256);
}

/// The chain's doors in `forge test` and `forge script`, whose EVM does not have them (docs/testing-contracts.md):
///
///     function setUp() public { Doors.install(); }
///     function test_it_runs() public { …; Doors.runUntil(block.timestamp + 1 hours); … }
library Doors {
    DoorVm private constant vm = DoorVm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);
    address internal constant CRON = 0x0000000000000000000000000000000000000006;
    address internal constant SCHEDULED = 0x000000000000000000000000000000000000a101;
    address internal constant CALLBACKS = 0x000000000000000000000000000000000000a102;
    address private constant PAYER = 0x000000000000000000000000000000000000A1cc;
    address internal constant ACCOUNTS = 0x000000000000000000000000000000000000A104;

    /// Puts the doors at their addresses. In a script: before the broadcast begins, and run it with --skip-simulation.
    function install() internal {
        address cron = address(new FakeCronRegistry());
        bytes4[9] memory methods = [
            ICronRegistry.schedule.selector,
            ICronRegistry.scheduleCalldata.selector,
            ICronRegistry.scheduleWith.selector,
            ICronRegistry.cancel.selector,
            ICronRegistry.topUp.selector,
            ICronRegistry.getJob.selector,
            FakeCronRegistry.nextDue.selector,
            FakeCronRegistry.beginBlock.selector,
            FakeCronRegistry.runAll.selector
        ];
        // A precompile is at this address, whose code cannot be replaced. Everything else that it is sent is ecAdd's.
        for (uint256 i; i < methods.length; i++) vm.mockFunction(CRON, cron, abi.encodePacked(methods[i]));
        vm.etch(PAYER, address(new FakePayer()).code);
        vm.etch(SCHEDULED, address(new FakeScheduledTransactions()).code);
        vm.etch(CALLBACKS, address(new FakeCallbackScheduler()).code);
        vm.etch(ACCOUNTS, address(new FakeAccounts()).code);
    }

    /// Moves the clock to a time. What becomes due on the way runs in the blocks and in the order of the real chain.
    function runUntil(uint256 time) internal {
        for (uint256 due = nextDueMs(); due <= time * 1_000; due = nextDueMs()) {
            uint256 current = FakeScheduledTransactions(SCHEDULED).nowMs();
            if (due < current) due = current;
            if (due / 1_000 > vm.getBlockTimestamp()) vm.warp(due / 1_000);
            vm.roll(vm.getBlockNumber() + 1);
            runBlock(uint64(due % 1_000));
        }
        if (time > vm.getBlockTimestamp()) vm.warp(time);
    }

    /// When something is due next, in seconds; the largest number if nothing waits.
    function nextDue() internal view returns (uint256) {
        uint256 due = nextDueMs();
        return due == type(uint256).max ? due : due / 1_000;
    }

    /// When something is due next, in milliseconds, which scheduled transactions have; the largest number if nothing
    /// waits.
    function nextDueMs() internal view returns (uint256 due) {
        due = FakeCronRegistry(CRON).nextDue();
        uint256 callback = FakeCallbackScheduler(CALLBACKS).nextDue();
        if (callback < due) due = callback;
        if (due != type(uint256).max) due *= 1_000;
        uint256 scheduled = FakeScheduledTransactions(SCHEDULED).nextDue();
        if (scheduled < due) due = scheduled;
    }

    /// Runs what is due in a block of the current number and time.
    function runBlock() internal {
        runBlock(FakeScheduledTransactions(SCHEDULED).nowMs() % 1_000);
    }

    /// The same, at a millisecond of the current second: booked callbacks, jobs, scheduled transactions by price, and
    /// callbacks of low priority.
    function runBlock(uint64 ms) internal {
        (uint64[] memory booked, uint64[] memory low) = FakeCallbackScheduler(CALLBACKS).beginBlock();
        uint256[] memory jobs = FakeCronRegistry(CRON).beginBlock();
        uint256[] memory scheduled = FakeScheduledTransactions(SCHEDULED).beginBlock(ms);
        vm.prank(CALLBACKS, CALLBACKS);
        FakeCallbackScheduler(CALLBACKS).runAll(booked);
        vm.prank(CRON, CRON);
        FakeCronRegistry(CRON).runAll(jobs);
        for (uint256 i; i < scheduled.length; i++) _runScheduled(scheduled[i]);
        vm.prank(CALLBACKS, CALLBACKS);
        FakeCallbackScheduler(CALLBACKS).runAll(low);
        FakeScheduledTransactions(SCHEDULED).endBlock();
    }

    /// A call in the sender's name, as a transaction makes it.
    function _runScheduled(uint256 id) private {
        FakeScheduledTransactions.Run memory run = FakeScheduledTransactions(SCHEDULED).begin(id);
        if (run.from == address(0)) return;
        vm.prank(run.from, run.from);
        uint256 before = gasleft();
        (bool success, bytes memory reason) = run.to.call{gas: run.gas - run.intrinsicGas, value: run.value}(run.data);
        uint256 used = run.intrinsicGas + before - gasleft();
        if (used < run.floorGas) used = run.floorGas;
        if (used > run.gas) used = run.gas;
        FakeScheduledTransactions(SCHEDULED).end(id, success, reason, used);
    }
}
