// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// A contract that can be called back (FLIP-330).
interface ICallbackHandler {
    /// Called by the chain, with msg.sender = tx.origin = the scheduler at
    /// 0x000000000000000000000000000000000000a102. Check msg.sender: anyone else may call this too.
    function executeCallback(uint64 id, bytes calldata data) external;
}
