// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// Hedera's schedule service: transactions that wait for signatures, at 0x000000000000000000000000000000000000a103.
/// Times are Unix seconds, response codes Hedera's numbers (specs/hedera.md).
///
/// A schedule is a list of calls that run together, or not at all, once every account they come from has signed, and
/// the payer too if it is not the creator. The calls run directly after the transaction that brings the last signature,
/// inside its gas limit, with msg.sender = tx.origin = each call's `from`.
///
/// A key is one leaf or a tree of them, as in IAccounts. A caller signs for itself by calling, without an entry.
interface IScheduleService {
    struct Call {
        address from;
        address to;
        uint256 value;
        bytes data;
    }

    /// What is signed. `transactionBody` is abi.encode(Body), and only that.
    struct Body {
        /// 1 to 16, from at most 8 accounts.
        Call[] calls;
        uint64 gasLimit;
        /// The base fee above which it does not run.
        uint256 maxFeePerGas;
        /// At most 100 bytes.
        string memo;
        /// Makes equal bodies different schedules.
        uint32 nonce;
        /// The second at which it runs (waitForExpiry) or expires. 0: it expires after signed_expiry_seconds.
        uint64 executionTime;
        /// true: runs at executionTime if all have signed by then. false: runs as soon as all have signed.
        bool waitForExpiry;
    }

    struct SignatureEntry {
        /// The leaf that signs: 01 ‖ address or 02 ‖ Ed25519 key.
        bytes key;
        /// 65 bytes (r ‖ s ‖ yParity, low s) or 96 (Ed25519 key ‖ signature) over EIP-712 typed data:
        /// Schedule(Call[] calls,uint64 gasLimit,uint256 maxFeePerGas,string memo,uint32 nonce,uint64 executionTime,
        /// bool waitForExpiry,address payer,bytes adminKey,uint32 round,uint64 deadline)
        /// or, to delete, Delete(uint64 scheduleID,uint64 deadline).
        bytes signature;
        /// The last second at which the signature is accepted.
        uint64 deadline;
    }

    struct Info {
        uint64 scheduleID;
        address creatorAccountID;
        /// Zero: the creator pays.
        address payerAccountID;
        bytes transactionBody;
        /// Leaves that signed, and 04 ‖ account for accounts that called.
        bytes[] signers;
        bytes adminKey;
        uint32 round;
        /// When it expires, or runs if it waits for its time.
        uint64 expiresAt;
        /// 0 pending, 1 executed, 2 deleted, 3 expired.
        uint8 ended;
        uint64 endedAt;
    }

    event ScheduleCreated(uint64 indexed id, address indexed creator, address payer, uint32 round);
    /// createSchedule found this one pending already: the same body, adminKey and payer.
    event ScheduleFound(uint64 indexed id, address indexed creator);
    event ScheduleSigned(uint64 indexed id, bytes key);
    /// All have signed: it runs directly after this transaction.
    event ScheduleTriggered(uint64 indexed id);
    /// 22 success, 33 reverted, 30 out of gas, 10 the payer could not pay.
    event ScheduleExecuted(uint64 indexed id, int64 code);
    event ScheduleDeleted(uint64 indexed id);
    event ScheduleExpired(uint64 indexed id);

    /// Why nothing changed, by Hedera's number.
    error Refused(int64 responseCode);

    /// Stores a transaction until it is signed. A pending schedule of the same body, adminKey and payer takes the
    /// signatures instead, and its id is returned. Without adminKey (empty) it cannot be deleted; without payer (zero)
    /// the creator pays.
    function createSchedule(
        bytes calldata transactionBody,
        bytes calldata adminKey,
        address payer,
        SignatureEntry[] calldata sigMap
    ) external payable returns (uint64 scheduleID);

    /// Adds signatures. With none that is new, it runs a schedule that became ready by a rotated key or a lower base fee.
    function signSchedule(uint64 scheduleID, SignatureEntry[] calldata sigMap) external;

    /// Deletes a pending schedule, signed by its adminKey.
    function deleteSchedule(uint64 scheduleID, SignatureEntry[] calldata sigMap) external;

    /// 22 while pending, 212 after every end, 201 once the record is gone.
    function getScheduleInfo(uint64 scheduleID) external view returns (int64 responseCode, Info memory info);

    /// The round that signatures of this schedule name: how often it was executed or deleted.
    function roundOf(bytes calldata transactionBody, bytes calldata adminKey, address payer)
        external
        view
        returns (uint32 round);

    /// Whether a schedule that waits for this second and uses this gas would be taken.
    function hasScheduleCapacity(uint256 second, uint256 gasLimit) external view returns (bool hasCapacity);

    /// Money from which an account pays for schedules that it agreed to in a nested call.
    function fund(address account) external payable;

    function fundOf(address account) external view returns (uint256 amount);

    /// Returns money of the caller's fund to it.
    function withdraw(uint256 amount) external;
}
