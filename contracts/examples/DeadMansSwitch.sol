// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {IScheduledTransactions} from "../IScheduledTransactions.sol";
import {SelfScheduling} from "../SelfScheduling.sol";

/// Gives everything to an heir when its owner has not been heard of for some time. Each sign of life cancels the
/// scheduled release and schedules a later one.
contract DeadMansSwitch is SelfScheduling {
    uint64 private constant RUN_GAS = 100_000;

    address public immutable owner;
    address payable public immutable heir;
    uint64 public immutable patienceMs;
    uint64 public deadlineMs;
    bool public isReleased;
    IScheduledTransactions.ScheduleMapKey public scheduled;

    event Alive(uint64 deadlineMs);
    event Released(address indexed heir, uint256 amount);

    error NotOwner(address caller);
    error AlreadyReleased();
    error TooEarly(uint64 nowMs, uint64 deadlineMs);
    error TransferFailed(address to, uint256 amount);

    modifier onlyOwner() {
        if (msg.sender != owner) revert NotOwner(msg.sender);
        if (isReleased) revert AlreadyReleased();
        _;
    }

    constructor(address payable heir_, uint64 patienceMs_, uint64 price) payable {
        owner = msg.sender;
        heir = heir_;
        patienceMs = patienceMs_;
        _arm(price);
    }

    /// Sign of life, with the most that the next release pays per gas.
    function alive(uint64 price) external onlyOwner {
        _cancel(scheduled);
        _arm(price);
    }

    function withdraw(uint256 amount) external onlyOwner {
        _pay(payable(owner), amount);
    }

    /// For the scheduled run, and after the deadline for anyone: the run may have expired while the base fee was above
    /// its price, and its unused deposit arrives after it.
    function release() external {
        uint64 nowMs = SCHEDULED.nowMs();
        if (nowMs < deadlineMs) revert TooEarly(nowMs, deadlineMs);
        isReleased = true;
        uint256 amount = address(this).balance;
        _pay(heir, amount);
        emit Released(heir, amount);
    }

    function _arm(uint64 price) private {
        deadlineMs = SCHEDULED.nowMs() + patienceMs;
        scheduled = _scheduleSelf(deadlineMs, abi.encodeCall(this.release, ()), 0, RUN_GAS, price);
        emit Alive(deadlineMs);
    }

    function _pay(address payable to, uint256 amount) private {
        (bool done,) = to.call{value: amount}("");
        if (!done) revert TransferFailed(to, amount);
    }

    receive() external payable {}
}
