// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICallbackScheduler} from "../ICallbackScheduler.sol";
import {ICronRegistry} from "../ICronRegistry.sol";
import {FakeCallbackScheduler} from "./FakeCallbackScheduler.sol";
import {FakeCronRegistry} from "./FakeCronRegistry.sol";

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
    address internal constant CALLBACKS = 0x000000000000000000000000000000000000a102;

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
        vm.etch(CALLBACKS, address(new FakeCallbackScheduler()).code);
    }

    /// Moves the clock to a time. What becomes due on the way runs in the blocks and in the order of the real chain.
    function runUntil(uint256 time) internal {
        for (uint256 due = nextDue(); due <= time; due = nextDue()) {
            if (due > vm.getBlockTimestamp()) vm.warp(due);
            vm.roll(vm.getBlockNumber() + 1);
            runBlock();
        }
        if (time > vm.getBlockTimestamp()) vm.warp(time);
    }

    /// When something is due next; the largest number if nothing waits.
    function nextDue() internal view returns (uint256) {
        uint256 job = FakeCronRegistry(CRON).nextDue();
        uint256 callback = FakeCallbackScheduler(CALLBACKS).nextDue();
        return job < callback ? job : callback;
    }

    /// Runs what is due in a block of the current number and time.
    function runBlock() internal {
        (uint64[] memory booked, uint64[] memory low) = FakeCallbackScheduler(CALLBACKS).beginBlock();
        uint256[] memory jobs = FakeCronRegistry(CRON).beginBlock();
        vm.prank(CALLBACKS, CALLBACKS);
        FakeCallbackScheduler(CALLBACKS).runAll(booked);
        vm.prank(CRON, CRON);
        FakeCronRegistry(CRON).runAll(jobs);
        vm.prank(CALLBACKS, CALLBACKS);
        FakeCallbackScheduler(CALLBACKS).runAll(low);
    }
}
