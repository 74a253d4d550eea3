// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {IScheduledTransactions} from "../IScheduledTransactions.sol";
import {SelfScheduling} from "../SelfScheduling.sol";

/// A vault whose payments leave some time after they were ordered. Until then owner and guardian can stop them, so a
/// stolen key alone does not empty it.
contract DelayedPayment is SelfScheduling {
    uint64 private constant RUN_GAS = 100_000;

    address public immutable owner;
    address public immutable guardian;
    uint64 public immutable delayMs;
    uint256 public count;
    mapping(uint256 payment => IScheduledTransactions.ScheduleMapKey) public keys;

    event Ordered(uint256 indexed payment, address indexed to, uint256 amount, uint64 atMs);
    event Stopped(uint256 indexed payment);
    event Paid(uint256 indexed payment, address indexed to, uint256 amount);

    error NotOwner(address caller);
    error NotAllowed(address caller);
    error TransferFailed(address to, uint256 amount);

    constructor(address guardian_, uint64 delayMs_) payable {
        owner = msg.sender;
        guardian = guardian_;
        delayMs = delayMs_;
    }

    /// Orders a payment. The scheduler holds the amount, so no other payment can spend it.
    function order(address payable to, uint256 amount, uint64 price) external returns (uint256 payment) {
        if (msg.sender != owner) revert NotOwner(msg.sender);
        payment = count++;
        uint64 atMs = SCHEDULED.nowMs() + delayMs;
        bytes memory data = abi.encodeCall(this.release, (payment, to, amount));
        keys[payment] = _scheduleSelf(atMs, data, amount, RUN_GAS, price);
        emit Ordered(payment, to, amount, atMs);
    }

    /// Stops a payment that has not left. Amount and deposit return to the vault.
    function stop(uint256 payment) external {
        if (msg.sender != owner && msg.sender != guardian) revert NotAllowed(msg.sender);
        SCHEDULED.cancel(keys[payment]);
        emit Stopped(payment);
    }

    /// For the scheduled run. If the transfer fails, the amount stays in the vault.
    function release(uint256 payment, address payable to, uint256 amount) external payable onlySelf {
        (bool done,) = to.call{value: amount}("");
        if (!done) revert TransferFailed(to, amount);
        emit Paid(payment, to, amount);
    }

    receive() external payable {}
}
