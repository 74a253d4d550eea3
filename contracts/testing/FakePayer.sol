// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// Gives accounts money without running their code: a contract that is gone at once leaves it there. It is a contract of
/// its own, so that the nonces of fake doors stay: Hardhat's network numbers their transactions by them.
contract FakePayer {
    function pay(address to) external payable {
        // PUSH20 to, SELFDESTRUCT.
        bytes memory code = abi.encodePacked(hex"73", to, hex"ff");
        address made;
        assembly ("memory-safe") {
            made := create(callvalue(), add(code, 32), mload(code))
        }
        require(made != address(0), "the fake door does not have what it owes");
    }
}
