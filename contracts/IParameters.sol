// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// The chain's parameters and their governance, at 0x000000000000000000000000000000000000a105.
/// A name is ASCII, left-aligned in a bytes32: bytes32("base_fee_floor_wei").
interface IParameters {
    event ParameterSet(bytes32 indexed name, uint256 oldValue, uint256 newValue);
    event OwnershipTransferStarted(address indexed previousOwner, address indexed newOwner);
    event OwnershipTransferred(address indexed previousOwner, address indexed newOwner);

    error UnknownParameter(bytes32 name);
    error IndexOutOfBounds(uint256 given, uint256 count);
    error ParameterOutOfBounds(bytes32 name, uint256 given, uint256 min, uint256 max);
    error CronAboveHalfBlock(uint256 cronBlockGas, uint256 blockGas);
    /// One class could book more effort of a second than its place can count.
    error SecondTooLarge(uint256 own, uint256 shared, uint256 max);
    /// One block could not run all that one second can book.
    error SecondAboveBlock(uint256 secondGas, uint256 blockGas);
    /// reserved_block_gas_max never falls: seconds may be booked up to it.
    error ReservedFalls(uint256 given, uint256 current);
    error NotOwner(address caller, address owner);
    error NotPendingOwner(address caller, address pendingOwner);

    /// The value in force in this block.
    function get(bytes32 name) external view returns (uint256 value);
    /// The value from the next block on, as set so far.
    function next(bytes32 name) external view returns (uint256 value);
    /// The values that may be set.
    function bounds(bytes32 name) external view returns (uint256 min, uint256 max);
    /// How many parameters there are.
    function count() external view returns (uint256 parameters);
    /// The name of the parameter at an index below count().
    function nameAt(uint256 index) external view returns (bytes32 name);

    /// Sets a value from the next block on. Owner only.
    function set(bytes32 name, uint256 value) external;

    function owner() external view returns (address account);
    function pendingOwner() external view returns (address account);
    /// First step: names the next owner. Owner only. The zero address takes a proposal back.
    function transferOwnership(address newOwner) external;
    /// Second step: the named account accepts.
    function acceptOwnership() external;
}
