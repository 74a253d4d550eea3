// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// AIP-125: scheduled transactions that compete by price, at 0x000000000000000000000000000000000000a101.
/// Times are Unix milliseconds.
///
/// A run calls `to` with msg.sender = tx.origin = senderAddr (passSigner) or this contract. It pays at most
/// maxGasUnitPrice per gas; the rest of the deposit returns in the block of the run.
interface IScheduledTransactions {
    struct ScheduledTransaction {
        address senderAddr;
        uint64 scheduledTimeMs;
        uint64 maxGasAmount;
        uint64 maxGasUnitPrice;
        bool passSigner;
        address to;
        uint256 value;
        bytes data;
        /// Blocks that it waits for a price at most. 0: the parameter market_expiry_blocks, fixed at insert.
        uint32 expiryBlocks;
    }

    struct ScheduleMapKey {
        /// When it is due, in units of 100 ms, rounded up.
        uint64 time;
        /// type(uint64).max - maxGasUnitPrice.
        uint64 gasPriority;
        bytes32 txnId;
    }

    enum CancelledTxnCode {
        Shutdown,
        Expired,
        Failed
    }

    enum Status {
        Unknown,
        Scheduled,
        /// Due, and waiting for a price or for gas of a block.
        Waiting,
        Running,
        Succeeded,
        Failed,
        /// With a deposit: cancelAll ended it, and it can be claimed.
        Cancelled,
        Expired,
        Shutdown,
        /// A fault of the chain's own put it aside; its sender may cancel it and gets the whole deposit.
        Quarantined
    }

    enum Service {
        Active,
        Paused,
        Disabled,
        ShutdownInProgress,
        ShutdownComplete
    }

    event TransactionScheduledEvent(
        uint256 indexed id, address indexed senderAddr, address indexed to, ScheduleMapKey key
    );
    event TransactionExecutedEvent(
        uint256 indexed id,
        address indexed senderAddr,
        ScheduleMapKey key,
        bool success,
        uint256 gasUsed,
        uint256 gasUnitPriceCharged,
        uint256 refunded
    );
    /// reason: of a failed run its revert data, or Error(string) with what stopped it; at most 256 bytes.
    event TransactionFailedEvent(
        uint256 indexed id,
        address indexed senderAddr,
        ScheduleMapKey key,
        CancelledTxnCode cancelledTxnCode,
        bytes reason
    );
    event TransactionCancelledEvent(
        uint256 indexed id, address indexed senderAddr, ScheduleMapKey key, uint256 refunded
    );
    event AllCancelledEvent(address indexed senderAddr, uint64 epoch);
    event ShutdownEvent(bool complete);

    error NotSender(address caller, address senderAddr);
    error ServiceNotActive(Service service);
    error TimeNotInFuture(uint256 given, uint256 nowMs);
    error TimeBeyondHorizon(uint256 given, uint256 max);
    error GasAmountOutOfBounds(uint256 given, uint256 min, uint256 max);
    error GasUnitPriceTooLow(uint256 given, uint256 baseFee);
    error InputTooLong(uint256 given, uint256 max);
    error ExpiryOutOfBounds(uint256 given, uint256 max);
    error TargetIsZero();
    error DepositTooLow(uint256 given, uint256 needed);
    error UnknownKey(bytes32 txnId);
    error AlreadyExecuted(bytes32 txnId);
    error AlreadyEnded(bytes32 txnId, Status status);
    error NotClaimable(bytes32 txnId, Status status);
    /// A fault of the chain's own: the record cannot be read.
    error Unreadable(string reason);

    /// Schedules a call. Needs maxGasAmount * maxGasUnitPrice + value; what is more returns at once.
    function insert(ScheduledTransaction calldata txn) external payable returns (ScheduleMapKey memory);

    /// Takes back one that has not run, with its whole deposit. Only for its sender.
    function cancel(ScheduleMapKey calldata key) external returns (uint256 refunded);

    /// Cancels everything that the caller has inserted so far. Deposits return as the chain meets them, or with claim.
    function cancelAll() external returns (uint64 epoch);

    /// Refunds one that cancelAll or a shutdown ended. Anyone may call it; the sender is paid.
    function claim(ScheduleMapKey calldata key) external returns (uint256 refunded);

    function get(ScheduleMapKey calldata key)
        external
        view
        returns (ScheduledTransaction memory, Status, uint256 id, uint256 deposit);

    /// The key of the scheduled transaction with this id.
    function keyOf(uint256 id) external view returns (ScheduleMapKey memory);

    /// The time of the block.
    function nowMs() external view returns (uint64);

    function service() external view returns (Service);
}
