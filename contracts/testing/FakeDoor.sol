// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// What fake doors share: credits that call nobody, and runs, as the chain makes them.
abstract contract FakeDoor {
    /// Where burned money goes.
    address internal constant BURN = 0x000000000000000000000000000000000000a1BB;

    /// Gives an account money without running its code: a contract that is gone at once leaves it there.
    function _credit(address to, uint256 amount) internal {
        if (amount == 0) return;
        // PUSH20 to, SELFDESTRUCT.
        bytes memory code = abi.encodePacked(hex"73", to, hex"ff");
        address made;
        assembly ("memory-safe") {
            made := create(amount, add(code, 32), mload(code))
        }
        require(made != address(0), "the fake door does not have what it owes");
    }

    /// A run: a call in the door's name, whose limit has to cover the intrinsic gas of a transaction.
    function _call(address target, bytes memory data, uint256 gas)
        internal
        returns (bool success, bytes memory answer, uint256 used)
    {
        uint256 intrinsic = 21_000;
        for (uint256 i; i < data.length; i++) intrinsic += data[i] == 0 ? 4 : 16;
        if (intrinsic >= gas) return (false, abi.encodeWithSignature("Error(string)", "out of gas"), gas);
        require(gasleft() * 63 / 64 > gas, "give the transaction more gas: it has to cover that of the runs");
        uint256 before = gasleft();
        (success, answer) = target.call{gas: gas - intrinsic}(data);
        used = intrinsic + before - gasleft();
        if (used > gas) used = gas;
    }
}
