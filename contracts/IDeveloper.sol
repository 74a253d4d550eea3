// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// Edits of the state, at 0x000000000000000000000000000000000000a1de on a developer's chain and nowhere else.
/// Only the developer account, 0x000000000000000000000000000000000000a1d0, may call it.
interface IDeveloper {
    /// Anyone else called.
    error NotDeveloper(address caller, address developer);
    /// The chain's own accounts, and the developer account, stay as they are.
    error NotEditable(address account);
    /// The developer account pays what a balance gains, and keeps a reserve for its gas.
    error TreasuryTooSmall(uint256 needed, uint256 available);
    /// A nonce only grows: a transaction that was included must never be valid again.
    error NonceTooLow(uint64 given, uint64 current);
    /// No block could have this base fee.
    error BaseFeeOutOfBounds(uint256 given, uint256 min, uint256 max);
    /// Above the limit of EIP-170.
    error CodeTooLarge(uint256 given, uint256 max);

    /// Gives the account this balance; the developer account pays or gets the difference.
    function setBalance(address account, uint256 balance) external;
    /// Gives the account this code, and a nonce of at least 1, as every contract has.
    function setCode(address account, bytes calldata code) external;
    /// Gives the account this nonce.
    function setNonce(address account, uint64 nonce) external;
    /// Writes one slot, and gives the account a nonce of at least 1, so that it does not count as empty.
    function setStorageAt(address account, uint256 slot, uint256 value) external;
    /// Gives the next block this base fee; those after it follow from it as always.
    function setNextBaseFee(uint256 baseFee) external;
}
