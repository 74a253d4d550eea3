// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICallbackHandler} from "../ICallbackHandler.sol";
import {ICallbackScheduler} from "../ICallbackScheduler.sol";
import {ICronRegistry} from "../ICronRegistry.sol";
import {IScheduledTransactions} from "../IScheduledTransactions.sol";
import {Notes} from "./Notes.sol";

/// What somebody does with scheduled transactions, step by step, alone and beside the other doors. Each step is a block
/// with a base fee of 1 gwei; then time passes, with the base fee that `feeAfter` tells, and blocks.
contract MarketScenarios is ICallbackHandler, Notes {
    ICronRegistry private immutable CRON;
    IScheduledTransactions private constant MARKET =
        IScheduledTransactions(0x000000000000000000000000000000000000a101);
    ICallbackScheduler private constant CALLBACKS = ICallbackScheduler(0x000000000000000000000000000000000000a102);
    uint64 private constant GAS = 500_000;
    uint64 private constant AHEAD_MS = 315_576_000_000;

    uint256 public constant steps = 9;
    IScheduledTransactions.ScheduleMapKey[] private keys;
    uint256 private pings;

    /// The registry is at 0x06, but where that cannot be replaced.
    constructor(ICronRegistry cron) payable {
        CRON = cron;
    }

    receive() external payable {}

    /// Seconds that pass after a step.
    function pause(uint256 step) external pure returns (uint256) {
        return step == 0 ? 10 : 300;
    }

    /// The base fee after a step, in gwei.
    function feeAfter(uint256 step) external pure returns (uint256) {
        return step == 3 ? 50 : 1;
    }

    /// Blocks that are made at the end of a pause.
    function blocksAfter(uint256 step) external pure returns (uint256) {
        return step == 3 ? 3 : 0;
    }

    function act(uint256 step) external {
        if (step == 0) _refused();
        if (step == 1) _prices();
        if (step == 2) _beside();
        if (step == 3) _waiting();
        if (step == 4) _waited();
        if (step == 5) _cancelledAll();
        if (step == 6) _crowd();
        if (step == 7) _statuses();
        if (step == 8) _milliseconds();
    }

    // ---- What is called ----

    function note(uint256 what) external payable {
        _note("run", what, block.timestamp - start);
        bool isDoor = msg.sender == address(MARKET) || msg.sender == address(CRON);
        _note(isDoor ? bytes10("from door") : bytes10("from self"), msg.value, 0);
        require(msg.sender == tx.origin, "who calls");
        require(isDoor || msg.sender == address(this), "in whose name");
    }

    /// Notes the time to the tenth of a second: the next block of the real chain is a millisecond later.
    function noteTenth(uint256 what) external {
        _note("tenth", what, (MARKET.nowMs() - start * 1_000) / 100);
    }

    /// Notes no time: the real chain's goes on while a price is waited for.
    function noteWaited(uint256 what) external {
        _note("waited", what, 0);
    }

    function refuse() external payable {
        revert("refused");
    }

    function burn() external {
        while (true) pings++;
    }

    /// What the door says of the run itself while it runs, and what comes of cancelling it.
    function inside(uint256 nth) external {
        _noteStatus(nth);
        _note("itself", _try(abi.encodeCall(MARKET.cancel, (keys[nth]))), 0);
    }

    function look(uint256 nth) external {
        _noteStatus(nth);
    }

    /// Cancels another one from inside a run.
    function cancelFrom(uint256 nth) external {
        _note("from insid", _try(abi.encodeCall(MARKET.cancel, (keys[nth]))), block.timestamp - start);
    }

    /// Inserts its successor.
    function again(uint256 left) external {
        _note("again", left, block.timestamp - start);
        if (left > 0) _insert(MARKET.nowMs() + 10_000, 3 gwei, 0, abi.encodeCall(this.again, (left - 1)));
    }

    function executeCallback(uint64, bytes calldata data) external {
        _note("callback", uint8(data[0]), block.timestamp - start);
    }

    // ---- Steps ----

    function _refused() private {
        IScheduledTransactions.ScheduledTransaction memory txn = _txn(_soon(), 2 gwei, 0, "");
        txn.senderAddr = address(1);
        _note("sender", _order(txn, 1 ether), 0);
        txn = _txn(_soon(), 2 gwei, 0, "");
        txn.to = address(0);
        _note("no target", _order(txn, 1 ether), 0);
        _note("input", _order(_txn(_soon(), 2 gwei, 0, new bytes(16_385)), 1 ether), 0);
        _note("past", _order(_txn(MARKET.nowMs(), 2 gwei, 0, ""), 1 ether), 0);
        _note("horizon", _order(_txn(MARKET.nowMs() + AHEAD_MS + 1, 2 gwei, 0, ""), 1 ether), 0);
        txn = _txn(_soon(), 2 gwei, 0, hex"0001");
        txn.maxGasAmount = 21_049;
        _note("gas", _order(txn, 1 ether), 0);
        txn.maxGasAmount = 5_000_001;
        _note("much gas", _order(txn, 1 ether), 0);
        _note("price", _order(_txn(_soon(), uint64(block.basefee) - 1, 0, ""), 1 ether), 0);
        txn = _txn(_soon(), 2 gwei, 0, "");
        txn.expiryBlocks = 1_001;
        _note("expiry", _order(txn, 1 ether), 0);
        _note("deposit", _order(_txn(_soon(), 2 gwei, 5, ""), GAS * 2 gwei + 4), 0);
        _note("value", _order(_txn(_soon(), 2 gwei, type(uint256).max, ""), 1 ether), 0);
        IScheduledTransactions.ScheduleMapKey memory key;
        _note("unknown", _try(abi.encodeCall(MARKET.cancel, (key))), _try(abi.encodeCall(MARKET.claim, (key))));
        (, IScheduledTransactions.Status status,,) = MARKET.get(key);
        _note("no key", _try(abi.encodeCall(MARKET.keyOf, (7))), uint256(status));
        _note("now", MARKET.nowMs() - start * 1_000, uint256(MARKET.service()));
    }

    /// The higher price goes first, whatever was inserted first; in whose name, and with what value.
    function _prices() private {
        uint64 soon = _soon();
        _insert(soon, 2 gwei, 0, abi.encodeCall(this.note, (1)));
        _insert(soon, 9 gwei, 7, abi.encodeCall(this.note, (2)));
        _insert(soon, 5 gwei, 0, abi.encodeCall(this.note, (3)));
        _insert(soon, 5 gwei, 0, abi.encodeCall(this.note, (4)));
        _insert(soon, 4 gwei, 3, abi.encodeCall(this.refuse, ()));
        IScheduledTransactions.ScheduledTransaction memory txn =
            _txn(soon, 8 gwei, 11, abi.encodeCall(this.note, (5)));
        txn.passSigner = false;
        _push(txn);
        txn.data = abi.encodeCall(this.refuse, ());
        _push(txn);
        _insert(soon, 3 gwei, 0, abi.encodeCall(this.inside, (7)));
        _noteStatus(0);
        _note("key", keys[1].time - uint64(start) * 10, type(uint64).max - keys[1].gasPriority);
        _insert(soon, 3 gwei, 0, "");
        uint256 before = address(this).balance;
        uint256 refunded = MARKET.cancel(keys[8]);
        _note("cancelled", refunded == GAS * 3 gwei ? 1 : 0, address(this).balance - before == refunded ? 1 : 0);
        _note("twice", _try(abi.encodeCall(MARKET.cancel, (keys[8]))), _try(abi.encodeCall(MARKET.claim, (keys[8]))));
        _note("more", _order(_txn(soon + 900_000, 2 gwei, 0, ""), 3 ether), 0);
        _stranger(soon);
    }

    /// One block of every door: booked callbacks, jobs, scheduled transactions by price, and callbacks that wait.
    function _beside() private {
        for (uint256 i; i < 9; i++) _noteStatus(i);
        uint64 soon = uint64(block.timestamp) + 100;
        _insert(soon * 1_000, 2 gwei, 0, abi.encodeCall(this.note, (10)));
        CALLBACKS.schedule{value: 1 ether}(address(this), hex"01", soon, ICallbackScheduler.Priority.Low, 500);
        CRON.scheduleCalldata{value: 1 ether}(address(this), abi.encodeCall(this.note, (11)), soon, 0, 0, 300_000);
        CALLBACKS.schedule{value: 1 ether}(address(this), hex"02", soon, ICallbackScheduler.Priority.High, 500);
        _insert(soon * 1_000, 6 gwei, 0, abi.encodeCall(this.cancelFrom, (11)));
        _insert(soon * 1_000, 5 gwei, 0, abi.encodeCall(this.note, (12)));
        _insert(soon * 1_000 + 10_000, 2 gwei, 0, abi.encodeCall(this.again, (2)));
    }

    /// The base fee rises above these, and falls again before the second one expires.
    function _waiting() private {
        IScheduledTransactions.ScheduledTransaction memory txn =
            _txn(_soon(), 2 gwei, 0, abi.encodeCall(this.noteWaited, (20)));
        txn.expiryBlocks = 2;
        _push(txn);
        _insert(_soon(), 2 gwei, 0, abi.encodeCall(this.noteWaited, (21)));
        _insert(_soon(), 200 gwei, 0, abi.encodeCall(this.look, (keys.length - 1)));
    }

    function _waited() private {
        for (uint256 i = keys.length - 3; i < keys.length; i++) _noteStatus(i);
    }

    function _cancelledAll() private {
        uint256 first = keys.length;
        _noteStatus(first - 2);
        _insert(_soon(), 2 gwei, 0, abi.encodeCall(this.note, (30)));
        _insert(_soon(), 2 gwei, 0, abi.encodeCall(this.note, (31)));
        _note("all", MARKET.cancelAll(), 0);
        _insert(_soon(), 2 gwei, 0, abi.encodeCall(this.note, (32)));
        _noteStatus(first);
        _note("cancel", _try(abi.encodeCall(MARKET.cancel, (keys[first]))), 0);
        _note("claimed", MARKET.claim(keys[first]), 0);
        _noteStatus(first);
        _note("twice", _try(abi.encodeCall(MARKET.claim, (keys[first]))), 0);
        _note("not", _try(abi.encodeCall(MARKET.claim, (keys[first + 2]))), 0);
    }

    /// More gas than a block has. One that does not fit waits, and cheaper ones that fit go on.
    function _crowd() private {
        _noteStatus(keys.length - 2);
        IScheduledTransactions.ScheduledTransaction memory txn = _txn(_soon(), 9 gwei, 0, abi.encodeCall(this.burn, ()));
        txn.maxGasAmount = 5_000_000;
        for (uint256 i; i < 5; i++) _push(txn);
        txn.maxGasAmount = 2_000_000;
        _push(txn);
        (txn.maxGasAmount, txn.maxGasUnitPrice, txn.data) = (5_000_000, 8 gwei, abi.encodeCall(this.note, (40)));
        _push(txn);
        (txn.maxGasAmount, txn.maxGasUnitPrice, txn.data) = (1_000_000, 7 gwei, abi.encodeCall(this.note, (41)));
        _push(txn);
    }

    function _statuses() private {
        for (uint256 i = keys.length - 8; i < keys.length; i++) _noteStatus(i);
    }

    /// Times are milliseconds, rounded up to steps of 100.
    function _milliseconds() private {
        _insert(MARKET.nowMs() + 1_250, 2 gwei, 0, abi.encodeCall(this.noteTenth, (50)));
        _insert(MARKET.nowMs() + 1_310, 2 gwei, 0, abi.encodeCall(this.noteTenth, (51)));
        _insert(MARKET.nowMs() + 1_400, 3 gwei, 0, abi.encodeCall(this.noteTenth, (52)));
    }

    // ---- Helpers ----

    function _soon() private view returns (uint64) {
        return MARKET.nowMs() + 100_000;
    }

    function _txn(uint64 time, uint64 price, uint256 value, bytes memory data)
        private
        view
        returns (IScheduledTransactions.ScheduledTransaction memory)
    {
        return IScheduledTransactions.ScheduledTransaction(
            address(this), time, GAS, price, true, address(this), value, data, 0
        );
    }

    function _insert(uint64 time, uint64 price, uint256 value, bytes memory data) private {
        _push(_txn(time, price, value, data));
    }

    function _push(IScheduledTransactions.ScheduledTransaction memory txn) private {
        uint256 deposit = uint256(txn.maxGasAmount) * txn.maxGasUnitPrice + txn.value;
        keys.push(MARKET.insert{value: deposit}(txn));
    }

    function _order(IScheduledTransactions.ScheduledTransaction memory txn, uint256 value) private returns (uint256) {
        return _tried(address(MARKET), abi.encodeCall(MARKET.insert, (txn)), value);
    }

    function _try(bytes memory data) private returns (uint256) {
        return _tried(address(MARKET), data, 0);
    }

    /// Somebody else's cannot be cancelled.
    function _stranger(uint64 time) private {
        Stranger stranger = new Stranger{value: GAS * 2 gwei}();
        IScheduledTransactions.ScheduledTransaction memory txn = _txn(time, 2 gwei, 0, "");
        txn.senderAddr = address(stranger);
        _note("stranger", _try(abi.encodeCall(MARKET.cancel, (stranger.insert(txn)))), 0);
    }

    function _noteStatus(uint256 nth) private {
        (IScheduledTransactions.ScheduledTransaction memory txn, IScheduledTransactions.Status status, uint256 id, uint256 deposit) =
            MARKET.get(keys[nth]);
        _note("status", uint256(status), deposit);
        IScheduledTransactions.ScheduleMapKey memory key = MARKET.keyOf(id);
        _note("txn", txn.expiryBlocks, key.txnId == keys[nth].txnId && txn.senderAddr == address(this) ? 1 : 0);
    }
}

/// Schedules in its own name.
contract Stranger {
    constructor() payable {}

    function insert(IScheduledTransactions.ScheduledTransaction calldata txn)
        external
        returns (IScheduledTransactions.ScheduleMapKey memory)
    {
        return IScheduledTransactions(0x000000000000000000000000000000000000a101).insert{value: address(this).balance}(txn);
    }
}
