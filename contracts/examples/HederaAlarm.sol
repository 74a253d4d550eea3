// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {IHederaScheduleService} from "../IHederaScheduleService.sol";

/// Rings at a second, by Hedera's schedule service (HIP-1215): nothing here knows of another chain than Hedera. It takes
/// no money; its owner fills its fund with IScheduleService.fund.
///
/// The service answers with codes, so each function reports one instead of reverting.
contract HederaAlarm {
    IHederaScheduleService private constant SERVICE = IHederaScheduleService(address(0x16b));

    address public immutable owner;
    /// The schedule that rings next; zero if there is none.
    address public next;
    uint256 public rings;

    event Answered(int64 responseCode, address schedule);
    event Rang(uint256 count, uint256 second);

    error NotOwner(address caller);
    error NotSelf(address caller);

    modifier onlyOwner() {
        if (msg.sender != owner) revert NotOwner(msg.sender);
        _;
    }

    constructor() {
        owner = msg.sender;
    }

    /// Rings at a second, if that has room.
    function set(uint256 second, uint256 gasLimit) external onlyOwner returns (int64 code) {
        (code, next) = SERVICE.scheduleCall(address(this), second, gasLimit, 0, abi.encodeCall(this.ring, ()));
        emit Answered(code, next);
    }

    /// Rings as soon as `payer` has signed, until a second; the payer pays, and the call comes from it.
    function setFor(address payer, uint256 second, uint256 gasLimit) external onlyOwner returns (int64 code) {
        (code, next) = SERVICE.executeCallOnPayerSignature(
            address(this), payer, second, gasLimit, 0, abi.encodeCall(this.knock, ())
        );
        emit Answered(code, next);
    }

    /// Takes the next ring back, at the service.
    function stop() external onlyOwner returns (int64 code) {
        code = SERVICE.deleteSchedule(next);
        emit Answered(code, next);
    }

    /// The same at the schedule's own address.
    function stopThere() external onlyOwner returns (int64 code) {
        code = IHederaScheduleService(next).deleteSchedule();
        emit Answered(code, next);
    }

    /// What Hedera has and this chain does not: transactions of Hedera's own kinds.
    function native() external onlyOwner returns (int64 code) {
        (code,) = SERVICE.scheduleNative(address(0x167), "", address(this));
        emit Answered(code, address(0));
    }

    /// The first second after `second`, among `tries`, that has room; zero if none does.
    function free(uint256 second, uint256 gasLimit, uint256 tries) external view returns (uint256) {
        for (uint256 i = 1; i <= tries; i++) {
            if (SERVICE.hasScheduleCapacity(second + i, gasLimit)) return second + i;
        }
        return 0;
    }

    /// For the run of `set`.
    function ring() external {
        if (msg.sender != address(this)) revert NotSelf(msg.sender);
        emit Rang(++rings, block.timestamp);
    }

    /// For the run of `setFor`: anybody may knock.
    function knock() external {
        emit Rang(++rings, block.timestamp);
    }
}
