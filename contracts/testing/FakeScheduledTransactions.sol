// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {IScheduledTransactions} from "../IScheduledTransactions.sol";
import {FakeDoor} from "./FakeDoor.sol";

/// The AIP-125 door for EVMs that do not have it: those of forge and Hardhat. docs/testing-contracts.md says how it gets
/// to its address, and what differs from the real one.
///
/// A test's clock drives it: beginBlock chooses what runs in a block, then begin and end stand around each call, which
/// only the test can make in the sender's name, and endBlock settles.
contract FakeScheduledTransactions is IScheduledTransactions, FakeDoor {
    /// The door of keys, whose rotations cancel what the old key scheduled.
    address private constant ACCOUNTS = 0x000000000000000000000000000000000000A104;
    uint64 private constant BLOCK_GAS = 30_000_000;
    uint64 private constant RUN_GAS_MAX = 5_000_000;
    uint256 private constant INPUT_BYTES_MAX = 16 * 1024;
    /// Ten years of 365.25 days.
    uint256 private constant AHEAD_MS = 315_576_000_000;
    uint64 private constant STEP_MS = 100;
    uint32 private constant EXPIRY_BLOCKS = 100;
    uint32 private constant EXPIRY_BLOCKS_MAX = 1_000;

    struct Bid {
        ScheduledTransaction txn;
        Status status;
        bytes32 txnId;
        uint256 deposit;
        uint64 epoch;
        uint256 scheduledIn;
        /// The block that first let it wait.
        uint256 waitsFrom;
    }

    /// A call that the test makes for a run.
    struct Run {
        address from;
        address to;
        uint256 value;
        bytes data;
        /// Its gas limit, of which a transaction takes this much before its first step.
        uint256 gas;
        uint256 intrinsicGas;
        /// The least that a transaction uses.
        uint256 floorGas;
    }

    /// What endBlock settles.
    struct Owed {
        uint256 id;
        uint256 held;
        bool success;
        bytes reason;
        uint256 gasUsed;
    }

    mapping(uint256 id => Bid) private bids;
    mapping(bytes32 txnId => uint256 id) private ids;
    mapping(address sender => uint64) private epochs;
    uint256[] private live;
    Owed[] private owed;
    uint256[] private chosen;
    uint256 private birthBlock;
    uint256 private births;
    uint64 private gasLeft;
    /// The millisecond of the block in this second.
    uint256 private msSecond;
    uint64 private ms;
    /// Whether a run is under way.
    bool public isInRun;

    function insert(ScheduledTransaction calldata txn) external payable returns (ScheduleMapKey memory key) {
        if (msg.sender != txn.senderAddr) revert NotSender(msg.sender, txn.senderAddr);
        _check(txn);
        uint256 deposit = uint256(txn.maxGasAmount) * txn.maxGasUnitPrice;
        // A value that overflows needs more than there is.
        unchecked {
            deposit = deposit + txn.value < deposit ? type(uint256).max : deposit + txn.value;
        }
        if (msg.value < deposit) revert DepositTooLow(msg.value, deposit);
        uint256 id = _nextId();
        Bid storage bid = bids[id];
        bid.txn = txn;
        if (txn.expiryBlocks == 0) bid.txn.expiryBlocks = EXPIRY_BLOCKS;
        bid.status = Status.Scheduled;
        bid.txnId = keccak256(abi.encode(id, bid.txn));
        bid.deposit = deposit;
        bid.epoch = epochs[msg.sender];
        bid.scheduledIn = block.number;
        ids[bid.txnId] = id;
        live.push(id);
        key = _key(bid);
        emit TransactionScheduledEvent(id, msg.sender, txn.to, key);
        _credit(msg.sender, msg.value - deposit);
    }

    function cancel(ScheduleMapKey calldata key) external returns (uint256 refunded) {
        uint256 id = _find(key);
        Bid storage bid = bids[id];
        if (msg.sender != bid.txn.senderAddr) revert NotSender(msg.sender, bid.txn.senderAddr);
        Status status = _shown(bid);
        if (_isOpen(status)) return _cancel(id);
        bool hasBegun = status == Status.Running || status == Status.Succeeded || status == Status.Failed;
        if (hasBegun) revert AlreadyExecuted(key.txnId);
        revert AlreadyEnded(key.txnId, status);
    }

    function cancelAll() external returns (uint64) {
        return _cancelAll(msg.sender);
    }

    function claim(ScheduleMapKey calldata key) external returns (uint256 refunded) {
        uint256 id = _find(key);
        if (!_isStale(bids[id])) revert NotClaimable(key.txnId, bids[id].status);
        return _cancel(id);
    }

    function get(ScheduleMapKey calldata key)
        external
        view
        returns (ScheduledTransaction memory txn, Status status, uint256 id, uint256 deposit)
    {
        id = _look(key);
        if (id == 0) return (txn, Status.Unknown, 0, 0);
        Bid storage bid = bids[id];
        return (bid.txn, _shown(bid), id, bid.deposit);
    }

    function keyOf(uint256 id) external view returns (ScheduleMapKey memory) {
        if (bids[id].status == Status.Unknown) revert UnknownKey(bytes32(id));
        return _key(bids[id]);
    }

    function nowMs() public view returns (uint64) {
        return uint64(block.timestamp * 1_000) + (msSecond == block.timestamp ? ms : 0);
    }

    function service() external pure returns (Service) {
        return Service.Active;
    }

    // ---- For tests alone ----

    /// When something is due next, in milliseconds; the largest number if nothing waits.
    function nextDue() external view returns (uint256 due) {
        due = type(uint256).max;
        for (uint256 i; i < live.length; i++) {
            Bid storage bid = bids[live[i]];
            uint256 next = _due(bid);
            // One that waits is met when it can pay, or when it has waited for too long.
            if (bid.status == Status.Waiting) {
                bool isMet = bid.txn.maxGasUnitPrice >= block.basefee || _isOver(bid, block.number + 1);
                next = isMet ? nowMs() : type(uint256).max;
            }
            if (next < due) due = next;
        }
    }

    /// What this block runs, the highest price first. What expired or was cancelled ends. The block is at this
    /// millisecond of its second.
    function beginBlock(uint64 ms_) external returns (uint256[] memory runs) {
        (msSecond, ms, gasLeft) = (block.timestamp, ms_, BLOCK_GAS);
        uint256[] memory due = _met();
        runs = new uint256[](due.length);
        uint256 count;
        for (uint256 i; i < due.length; i++) {
            Bid storage bid = bids[due[i]];
            if (_isStale(bid)) _cancel(due[i]);
            else if (_isOver(bid, block.number)) _expire(due[i]);
            else if (bid.txn.maxGasUnitPrice < block.basefee) _wait(bid);
            else runs[count++] = due[i];
        }
        assembly ("memory-safe") {
            mstore(runs, count)
        }
        chosen = runs;
    }

    /// What beginBlock chose last, for networks where it is a transaction.
    function lastChosen() external view returns (uint256[] memory) {
        return chosen;
    }

    /// The call of a run, and whether it has begun and not ended.
    function runOf(uint256 id) public view returns (Run memory run, bool isUnderWay) {
        Bid storage bid = bids[id];
        ScheduledTransaction memory txn = bid.txn;
        address from = txn.passSigner ? txn.senderAddr : address(this);
        run = Run(from, txn.to, txn.value, txn.data, txn.maxGasAmount, _intrinsicGas(txn.data), _floorGas(txn.data));
        return (run, bid.status == Status.Running);
    }

    /// Begins a run. Its call is from nobody if it does not take place: something of this block cancelled it, or its gas
    /// does not fit.
    function begin(uint256 id) external returns (Run memory run) {
        Bid storage bid = bids[id];
        if (!_isOpen(bid.status) || _isStale(bid)) return run;
        if (bid.txn.maxGasAmount > gasLeft) {
            _wait(bid);
            return run;
        }
        (isInRun, bid.status, bid.deposit) = (true, Status.Running, 0);
        (run,) = runOf(id);
        if (bid.txn.passSigner) _credit(run.from, run.value);
    }

    /// Ends it, with the gas that it used, intrinsic gas included.
    function end(uint256 id, bool success, bytes calldata reason, uint256 gasUsed) external {
        Bid storage bid = bids[id];
        (isInRun, bid.status) = (false, success ? Status.Succeeded : Status.Failed);
        uint64 used = uint64(gasUsed);
        gasLeft = used < gasLeft ? gasLeft - used : 0;
        _forget(id);
        uint256 held = uint256(bid.txn.maxGasAmount) * bid.txn.maxGasUnitPrice;
        // The door was to give the value, and has it still.
        if (!success && !bid.txn.passSigner) held += bid.txn.value;
        owed.push(Owed(id, held, success, reason, gasUsed));
    }

    /// Settles the runs of the block at its base fee: no user transaction is in it that could pay more.
    function endBlock() external {
        for (uint256 i; i < owed.length; i++) {
            Owed memory one = owed[i];
            Bid storage bid = bids[one.id];
            uint256 cost = one.gasUsed * block.basefee;
            (address sender, ScheduleMapKey memory key) = (bid.txn.senderAddr, _key(bid));
            _credit(BURN, cost);
            _credit(sender, one.held - cost);
            emit TransactionExecutedEvent(
                one.id, sender, key, one.success, one.gasUsed, block.basefee, one.held - cost
            );
            if (one.success) continue;
            emit TransactionFailedEvent(one.id, sender, key, CancelledTxnCode.Failed, _front(one.reason));
        }
        delete owed;
    }

    /// A rotation of the sender's key cancels what the old one scheduled.
    function cancelAllOf(address sender) external {
        require(msg.sender == ACCOUNTS, "for the door of keys");
        _cancelAll(sender);
    }

    // ---- Rules ----

    function _check(ScheduledTransaction calldata txn) private view {
        uint256 length = txn.data.length;
        if (txn.to == address(0)) revert TargetIsZero();
        if (length > INPUT_BYTES_MAX) revert InputTooLong(length, INPUT_BYTES_MAX);
        (uint256 given, uint256 current) = (txn.scheduledTimeMs, nowMs());
        if (given <= current) revert TimeNotInFuture(given, current);
        if (given > current + AHEAD_MS) revert TimeBeyondHorizon(given, current + AHEAD_MS);
        uint256 least = _floorGas(txn.data);
        bool fits = txn.maxGasAmount >= least && txn.maxGasAmount <= RUN_GAS_MAX;
        if (!fits) revert GasAmountOutOfBounds(txn.maxGasAmount, least, RUN_GAS_MAX);
        if (txn.maxGasUnitPrice < block.basefee) revert GasUnitPriceTooLow(txn.maxGasUnitPrice, block.basefee);
        if (txn.expiryBlocks > EXPIRY_BLOCKS_MAX) revert ExpiryOutOfBounds(txn.expiryBlocks, EXPIRY_BLOCKS_MAX);
    }

    /// When it is due: its time, rounded up to the step.
    function _due(Bid storage bid) private view returns (uint256) {
        return uint256(_step(bid)) * STEP_MS;
    }

    function _step(Bid storage bid) private view returns (uint64) {
        return (bid.txn.scheduledTimeMs + STEP_MS - 1) / STEP_MS;
    }

    function _key(Bid storage bid) private view returns (ScheduleMapKey memory) {
        return ScheduleMapKey(_step(bid), type(uint64).max - bid.txn.maxGasUnitPrice, bid.txnId);
    }

    /// The id of a key; 0 if there is none.
    function _look(ScheduleMapKey calldata key) private view returns (uint256 id) {
        id = ids[key.txnId];
        if (id == 0) return 0;
        ScheduleMapKey memory own = _key(bids[id]);
        return own.time == key.time && own.gasPriority == key.gasPriority ? id : 0;
    }

    function _find(ScheduleMapKey calldata key) private view returns (uint256 id) {
        id = _look(key);
        if (id == 0) revert UnknownKey(key.txnId);
    }

    function _isOpen(Status status) private pure returns (bool) {
        return status == Status.Scheduled || status == Status.Waiting;
    }

    /// Whether cancelAll has cancelled it.
    function _isStale(Bid storage bid) private view returns (bool) {
        return _isOpen(bid.status) && bid.epoch < epochs[bid.txn.senderAddr];
    }

    function _shown(Bid storage bid) private view returns (Status) {
        return _isStale(bid) ? Status.Cancelled : bid.status;
    }

    /// Whether it has waited for too many blocks in a block with this number.
    function _isOver(Bid storage bid, uint256 number) private view returns (bool) {
        return bid.status == Status.Waiting && number > bid.waitsFrom + bid.txn.expiryBlocks;
    }

    function _wait(Bid storage bid) private {
        if (bid.status == Status.Scheduled) (bid.status, bid.waitsFrom) = (Status.Waiting, block.number);
    }

    function _cancelAll(address sender) private returns (uint64 epoch) {
        epoch = ++epochs[sender];
        emit AllCancelledEvent(sender, epoch);
    }

    function _cancel(uint256 id) private returns (uint256 refunded) {
        refunded = _end(id, Status.Cancelled);
        emit TransactionCancelledEvent(id, bids[id].txn.senderAddr, _key(bids[id]), refunded);
    }

    function _expire(uint256 id) private {
        _end(id, Status.Expired);
        emit TransactionFailedEvent(id, bids[id].txn.senderAddr, _key(bids[id]), CancelledTxnCode.Expired, "");
    }

    /// Ends one that has not run, and refunds all of it.
    function _end(uint256 id, Status status) private returns (uint256 refunded) {
        Bid storage bid = bids[id];
        refunded = bid.deposit;
        (bid.status, bid.deposit) = (status, 0);
        _forget(id);
        _credit(bid.txn.senderAddr, refunded);
    }

    /// What this block meets: due or waiting, and not scheduled in this very block, by (price, time, id).
    function _met() private view returns (uint256[] memory met) {
        met = new uint256[](live.length);
        uint256 count;
        for (uint256 i; i < live.length; i++) {
            Bid storage bid = bids[live[i]];
            if (_due(bid) > nowMs() || bid.scheduledIn == block.number) continue;
            uint256 place = count++;
            while (place > 0 && _isBefore(live[i], met[place - 1])) {
                met[place] = met[place - 1];
                place--;
            }
            met[place] = live[i];
        }
        assembly ("memory-safe") {
            mstore(met, count)
        }
    }

    function _isBefore(uint256 a, uint256 b) private view returns (bool) {
        Bid storage one = bids[a];
        Bid storage other = bids[b];
        (uint64 price, uint64 otherPrice) = (one.txn.maxGasUnitPrice, other.txn.maxGasUnitPrice);
        if (price != otherPrice) return price > otherPrice;
        (uint256 due, uint256 otherDue) = (_due(one), _due(other));
        return due < otherDue || (due == otherDue && a < b);
    }

    function _nextId() private returns (uint256) {
        if (birthBlock != block.number) (birthBlock, births) = (block.number, 0);
        return (block.number << 28) | (1 << 10) | births++;
    }

    function _forget(uint256 id) private {
        for (uint256 i; i < live.length; i++) {
            if (live[i] != id) continue;
            live[i] = live[live.length - 1];
            live.pop();
            return;
        }
    }
}
