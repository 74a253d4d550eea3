// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {IScheduledTransactions} from "../IScheduledTransactions.sol";
import {SelfScheduling} from "../SelfScheduling.sol";

/// Adds interest to all accounts of a bank, which is more work than one transaction can do. Each run does as much as its
/// gas allows and schedules the next one, 100 ms later, until all are done.
contract SlicedWork is SelfScheduling {
    uint64 private constant PAUSE_MS = 100;
    /// The most that one account costs.
    uint256 private constant STEP_GAS = 20_000;
    /// Kept for scheduling the next run.
    uint256 private constant NEXT_GAS = 300_000;

    address public immutable owner;
    address[] public accounts;
    mapping(address account => uint256) public balanceOf;
    /// The first account that this round has not reached, and where it ends.
    uint256 public reached;
    uint256 public end;
    uint64 public sliceGas;
    uint64 public price;
    IScheduledTransactions.ScheduleMapKey public nextRun;

    event Sliced(uint256 from, uint256 to);
    event RoundStopped(uint256 reached, bytes reason);
    event RoundDone(uint256 accounts);

    error NotOwner(address caller);
    error RoundUnderWay(uint256 reached, uint256 end);
    error NothingLeft();

    modifier onlyOwner() {
        if (msg.sender != owner) revert NotOwner(msg.sender);
        _;
    }

    constructor() payable {
        owner = msg.sender;
    }

    function open(address account, uint256 balance) external onlyOwner {
        accounts.push(account);
        balanceOf[account] += balance;
    }

    /// Begins a round over all accounts of this moment.
    function start(uint64 sliceGas_, uint64 price_) external onlyOwner {
        if (reached < end) revert RoundUnderWay(reached, end);
        (reached, end) = (0, accounts.length);
        _go(sliceGas_, price_);
    }

    /// Goes on with a round that stopped: for want of money, of gas, or because the base fee rose above the price.
    function resume(uint64 sliceGas_, uint64 price_) external onlyOwner {
        if (_isPending(nextRun)) revert RoundUnderWay(reached, end);
        if (reached == end) revert NothingLeft();
        _go(sliceGas_, price_);
    }

    /// For the scheduled run.
    function slice() external onlySelf {
        uint256 from = reached;
        uint256 to = from;
        while (to < end && gasleft() > STEP_GAS + NEXT_GAS) {
            address account = accounts[to++];
            balanceOf[account] += balanceOf[account] / 100;
        }
        reached = to;
        emit Sliced(from, to);
        if (to == end) {
            emit RoundDone(end);
            return;
        }
        // What this run did must stay, so a refusal stops the round and reverts nothing.
        (IScheduledTransactions.ScheduleMapKey memory key, bytes memory reason) =
            _tryScheduleSelf(SCHEDULED.nowMs() + PAUSE_MS, abi.encodeCall(this.slice, ()), 0, sliceGas, price);
        if (reason.length > 0) emit RoundStopped(to, reason);
        else nextRun = key;
    }

    function _go(uint64 sliceGas_, uint64 price_) private {
        (sliceGas, price) = (sliceGas_, price_);
        nextRun = _scheduleSelf(SCHEDULED.nowMs() + PAUSE_MS, abi.encodeCall(this.slice, ()), 0, sliceGas_, price_);
    }

    receive() external payable {}
}
