// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// Speaks to the developer through the console address that Hardhat made customary: a static call
/// to an address without code, whose input is the message.
contract Console {
    address private constant CONSOLE = 0x000000000000000000636F6e736F6c652e6c6f67;

    uint256 public said;

    function say(string calldata text, uint256 number) external {
        said++;
        _log(abi.encodeWithSignature("log(string,uint256)", text, number));
    }

    function show(address who, bool flag) external view {
        _log(abi.encodeWithSignature("log(address,bool)", who, flag));
    }

    function _log(bytes memory message) private view {
        (bool sent, ) = CONSOLE.staticcall(message);
        // Nothing depends on whether somebody listens.
        sent;
    }
}
