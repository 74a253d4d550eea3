// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// What scenarios write down, so that a fake door can be compared with the real one: each gives the same notes.
///
/// Times are noted from the start, ids by their order. Amounts that depend on the base fee are left out: it differs.
abstract contract Notes {
    uint256 internal immutable start = block.timestamp;
    bytes32[] private notes;

    /// Everything that happened, in order.
    function outcome() external view returns (bytes32[] memory) {
        return notes;
    }

    /// What, and the low parts of two numbers, in one word: runs have to pay for it.
    function _note(bytes10 what, uint256 one, uint256 other) internal {
        notes.push(bytes32(abi.encodePacked(what, uint88(one), uint88(other))));
    }

    /// 1 if a call was done, the selector of its error if not.
    function _tried(address door, bytes memory data, uint256 value) internal returns (uint256) {
        (bool done, bytes memory answer) = door.call{value: value}(data);
        return done ? 1 : _selector(answer);
    }

    function _selector(bytes memory answer) internal pure returns (uint256) {
        return uint32(bytes4(answer));
    }
}
