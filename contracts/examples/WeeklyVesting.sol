// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICallbackScheduler} from "../ICallbackScheduler.sol";
import {RecurringCallback} from "../RecurringCallback.sol";

/// Pays a beneficiary a part of a grant every week. A transfer that fails is not lost: the next week pays it too.
contract WeeklyVesting is RecurringCallback {
    uint64 private constant EFFORT = 300;

    address payable public immutable beneficiary;
    uint256 public immutable weekly;
    uint256 public weeksLeft;
    /// Weeks that have come and are not paid yet.
    uint256 public weeksDue;

    event Released(uint256 amount);

    error TransferFailed(address to, uint256 amount);

    /// The value is the grant and, above it, the fees of all callbacks.
    constructor(address payable beneficiary_, uint256 weekly_, uint256 weeks_) payable {
        beneficiary = beneficiary_;
        weekly = weekly_;
        weeksLeft = weeks_;
        _start(uint64(block.timestamp) + 1 weeks, 1 weeks, ICallbackScheduler.Priority.Medium, EFFORT);
    }

    function onCallback(uint64) internal override {
        weeksLeft -= 1;
        weeksDue += 1;
        try this.release() {} catch {}
    }

    function hasNext(uint64) internal view override returns (bool) {
        return weeksLeft > 1;
    }

    /// Pays what is due. Anyone may call.
    function release() external {
        uint256 amount = weeksDue * weekly;
        weeksDue = 0;
        (bool done,) = beneficiary.call{value: amount}("");
        if (!done) revert TransferFailed(beneficiary, amount);
        emit Released(amount);
    }

    receive() external payable {}
}
