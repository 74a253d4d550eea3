// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICallbackScheduler} from "../ICallbackScheduler.sol";
import {RecurringCallback} from "../RecurringCallback.sol";

/// A game whose world moves by itself, at the lowest price: a tick may be late when the chain is busy, and then counts
/// for all the time that has passed.
contract GameTick is RecurringCallback {
    uint64 private constant EFFORT = 250;

    uint64 public ticks;
    uint64 public lastTickAt;
    uint256 public gold;

    event Tick(uint64 indexed number, uint64 seconds_);

    constructor(uint64 everySec) payable {
        lastTickAt = uint64(block.timestamp);
        _start(0, everySec, ICallbackScheduler.Priority.Low, EFFORT);
    }

    /// Starts the ticks again after they stopped, for want of money or otherwise. Anyone may.
    function restart() external {
        _start(0, intervalSec, priority, executionEffort);
    }

    function onCallback(uint64) internal override {
        uint64 passed = uint64(block.timestamp) - lastTickAt;
        lastTickAt = uint64(block.timestamp);
        ticks += 1;
        gold += passed;
        emit Tick(ticks, passed);
    }

    receive() external payable {}
}
