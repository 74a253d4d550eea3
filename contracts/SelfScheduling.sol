// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {IScheduledTransactions} from "./IScheduledTransactions.sol";

/// A contract that schedules calls of itself (AIP-125). Inherit, mark what is scheduled with onlySelf, and keep enough
/// balance for deposits.
///
/// A run may schedule the next one. Its own deposit returns at the end of the block, so the next deposit must be there
/// before: hold two. Refunds arrive as plain credits; no code of this contract runs.
abstract contract SelfScheduling {
    IScheduledTransactions internal constant SCHEDULED =
        IScheduledTransactions(0x000000000000000000000000000000000000a101);

    error NotSelf(address caller);
    error BalanceTooLow(uint256 balance, uint256 deposit);

    /// For runs, whose msg.sender is this contract, and for its own calls.
    modifier onlySelf() {
        if (msg.sender != address(this)) revert NotSelf(msg.sender);
        _;
    }

    /// Schedules a call of this contract. Its balance pays the deposit: gas × price, and the value.
    function _scheduleSelf(uint64 atMs, bytes memory data, uint256 value, uint64 gas, uint64 price)
        internal
        returns (IScheduledTransactions.ScheduleMapKey memory key)
    {
        bytes memory reason;
        (key, reason) = _tryScheduleSelf(atMs, data, value, gas, price);
        if (reason.length > 0) {
            assembly ("memory-safe") {
                revert(add(reason, 32), mload(reason))
            }
        }
    }

    /// The same, but a refusal is an answer: the reason is empty if the call is scheduled.
    function _tryScheduleSelf(uint64 atMs, bytes memory data, uint256 value, uint64 gas, uint64 price)
        internal
        returns (IScheduledTransactions.ScheduleMapKey memory key, bytes memory reason)
    {
        uint256 deposit = uint256(gas) * price + value;
        if (address(this).balance < deposit) {
            return (key, abi.encodeWithSelector(BalanceTooLow.selector, address(this).balance, deposit));
        }
        IScheduledTransactions.ScheduledTransaction memory txn = IScheduledTransactions.ScheduledTransaction({
            senderAddr: address(this),
            scheduledTimeMs: atMs,
            maxGasAmount: gas,
            maxGasUnitPrice: price,
            passSigner: true,
            to: address(this),
            value: value,
            data: data,
            expiryBlocks: 0
        });
        try SCHEDULED.insert{value: deposit}(txn) returns (IScheduledTransactions.ScheduleMapKey memory inserted) {
            key = inserted;
        } catch (bytes memory refused) {
            // Out of gas leaves no data.
            reason = refused.length > 0 ? refused : abi.encodeWithSignature("Error(string)", "insert ran out of gas");
        }
    }

    /// Whether a run is still to come, or under way.
    function _isPending(IScheduledTransactions.ScheduleMapKey memory key) internal view returns (bool) {
        (, IScheduledTransactions.Status status,,) = SCHEDULED.get(key);
        return status == IScheduledTransactions.Status.Scheduled || status == IScheduledTransactions.Status.Waiting
            || status == IScheduledTransactions.Status.Running;
    }

    /// Cancels a run that has not begun; does nothing if there is none.
    function _cancel(IScheduledTransactions.ScheduleMapKey memory key) internal returns (uint256 refunded) {
        (, IScheduledTransactions.Status status,,) = SCHEDULED.get(key);
        bool canCancel = status == IScheduledTransactions.Status.Scheduled
            || status == IScheduledTransactions.Status.Waiting || status == IScheduledTransactions.Status.Quarantined;
        return canCancel ? SCHEDULED.cancel(key) : 0;
    }
}
