// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// HIP-1215: Hedera's schedule service for contracts, at 0x000000000000000000000000000000000000016b. Contracts written
/// for it run unmodified: they get a response code and never a revert, but for static and delegate calls. 22 is success.
///
/// Fees and value come from the caller's fund, which IScheduleService fills. A schedule's address is its id; the facades
/// deleteSchedule() and signSchedule() answer there.
interface IHederaScheduleService {
    /// Calls `to` from the caller at a second.
    function scheduleCall(address to, uint256 expirySecond, uint256 gasLimit, uint64 value, bytes memory callData)
        external
        returns (int64 responseCode, address scheduleAddress);

    /// Calls `to` from `payer` at a second, if the payer has signed by then.
    function scheduleCallWithPayer(
        address to,
        address payer,
        uint256 expirySecond,
        uint256 gasLimit,
        uint64 value,
        bytes memory callData
    ) external returns (int64 responseCode, address scheduleAddress);

    /// Calls `to` from `payer` as soon as the payer has signed, or never after that second.
    function executeCallOnPayerSignature(
        address to,
        address payer,
        uint256 expirySecond,
        uint256 gasLimit,
        uint64 value,
        bytes memory callData
    ) external returns (int64 responseCode, address scheduleAddress);

    /// Deletes a schedule that the caller created.
    function deleteSchedule(address scheduleAddress) external returns (int64 responseCode);

    /// The same, at the schedule's address.
    function deleteSchedule() external returns (int64 responseCode);

    /// Whether scheduleCall would find room.
    function hasScheduleCapacity(uint256 expirySecond, uint256 gasLimit) external view returns (bool hasCapacity);

    /// Signs a schedule for the caller.
    function authorizeSchedule(address schedule) external returns (int64 responseCode);

    /// The same, at the schedule's address.
    function signSchedule() external returns (int64 responseCode);

    /// Not supported: 13.
    function signSchedule(address schedule, bytes memory signatureMap) external returns (int64 responseCode);

    /// Not supported: 13.
    function scheduleNative(address systemContractAddress, bytes memory callData, address payer)
        external
        returns (int64 responseCode, address scheduleAddress);
}
