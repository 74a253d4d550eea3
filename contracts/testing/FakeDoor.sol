// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {FakePayer} from "./FakePayer.sol";

/// What fake doors share: credits that call nobody, and runs, as the chain makes them.
abstract contract FakeDoor {
    /// Where burned money goes.
    address internal constant BURN = 0x000000000000000000000000000000000000a1BB;
    FakePayer private constant PAYER = FakePayer(0x000000000000000000000000000000000000A1cc);

    /// Gives an account money without running its code.
    function _credit(address to, uint256 amount) internal {
        if (amount > 0) PAYER.pay{value: amount}(to);
    }

    /// A run: a call in the door's name, whose limit has to cover the intrinsic gas of a transaction.
    function _call(address target, bytes memory data, uint256 gas)
        internal
        returns (bool success, bytes memory answer, uint256 used)
    {
        uint256 intrinsic = _intrinsicGas(data);
        if (intrinsic >= gas) return (false, abi.encodeWithSignature("Error(string)", "out of gas"), gas);
        require(gasleft() * 63 / 64 > gas, "give the transaction more gas: it has to cover that of the runs");
        uint256 before = gasleft();
        (success, answer) = target.call{gas: gas - intrinsic}(data);
        used = intrinsic + before - gasleft();
        if (used > gas) used = gas;
    }

    /// What a call with this input costs before its first step.
    function _intrinsicGas(bytes memory data) internal pure returns (uint256) {
        return 21_000 + 4 * _tokens(data);
    }

    /// The least gas that it can have, and uses (EIP-7623).
    function _floorGas(bytes memory data) internal pure returns (uint256) {
        return 21_000 + 10 * _tokens(data);
    }

    /// Calldata as Ethereum counts it: 1 for a zero, 4 for any other byte.
    function _tokens(bytes memory data) private pure returns (uint256 tokens) {
        for (uint256 i; i < data.length; i++) tokens += data[i] == 0 ? 1 : 4;
    }

    /// The first 256 bytes.
    function _front(bytes memory reason) internal pure returns (bytes memory) {
        if (reason.length > 256) {
            assembly ("memory-safe") {
                mstore(reason, 256)
            }
        }
        return reason;
    }
}
