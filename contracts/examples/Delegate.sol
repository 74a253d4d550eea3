// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// Code that an ordinary account takes on by EIP-7702: several calls in one transaction.
contract Delegate {
    event Batched(address indexed account, uint256 calls);

    error NotSelf(address caller);
    error CallFailed(uint256 index, bytes reason);

    struct Call {
        address to;
        uint256 value;
        bytes data;
    }

    /// Runs the calls in order, all or none. Only the account itself may ask for that.
    function batch(Call[] calldata calls) external payable {
        if (msg.sender != address(this)) revert NotSelf(msg.sender);
        for (uint256 i = 0; i < calls.length; i++) {
            (bool done, bytes memory reason) = calls[i].to.call{value: calls[i].value}(calls[i].data);
            if (!done) revert CallFailed(i, reason);
        }
        emit Batched(address(this), calls.length);
    }

    function self() external view returns (address) {
        return address(this);
    }

    receive() external payable {}
}
