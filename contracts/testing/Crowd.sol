// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// Makes as many schedules as one likes, to see how a chain and its pages bear them.
contract Crowd {
    receive() external payable {}

    /// Makes `count` calls of a door that differ in one word of `data`, at `offset`: it begins at `first` and rises by
    /// `step`. The value is shared among them.
    function repeat(address door, bytes memory data, uint256 offset, uint256 first, uint256 step, uint256 count)
        external
        payable
    {
        uint256 each = msg.value / count;
        require(offset + 32 <= data.length, "offset lies beyond data");
        for (uint256 n = 0; n < count; ++n) {
            uint256 word = first + step * n;
            assembly ("memory-safe") {
                mstore(add(add(data, 32), offset), word)
            }
            (bool done, bytes memory answer) = door.call{value: each}(data);
            if (done) continue;
            assembly ("memory-safe") {
                revert(add(answer, 32), mload(answer))
            }
        }
    }
}
