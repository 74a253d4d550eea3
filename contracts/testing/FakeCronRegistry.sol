// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICronRegistry} from "../ICronRegistry.sol";
import {FakeDoor} from "./FakeDoor.sol";

/// The ARC-21 cron registry for EVMs that do not have it: those of forge and Hardhat. docs/testing-contracts.md says how
/// it gets to its address, and what differs from the real one.
///
/// A test's clock drives it: beginBlock chooses what runs in a block, and runAll runs it.
contract FakeCronRegistry is ICronRegistry, FakeDoor {
    uint256 private constant BLOCK_GAS = 15_000_000;
    /// Ten years of 365.25 days.
    uint256 private constant AHEAD = 315_576_000;
    uint256 private constant INPUT_BYTES_MAX = 16 * 1024;
    uint256 private constant OPTIONS_KNOWN = 0x301;

    struct Terms {
        address refundTo;
        uint256 options;
        bool isInLastRun;
        uint256 scheduledIn;
    }

    /// The charge of a run that is under way.
    struct Charge {
        uint256 amount;
        address refundTo;
        bool returnsUnused;
    }

    mapping(uint256 id => Job) private jobs;
    mapping(uint256 id => Terms) private terms;
    mapping(uint256 id => Charge) private charges;
    uint256[] private live;
    uint256 private birthBlock;
    uint256 private births;

    function schedule(
        address target,
        string calldata method,
        bytes calldata args,
        uint256 nextRunAt,
        uint256 intervalSec,
        uint256 maxRuns,
        uint256 gasLimit
    ) external payable returns (uint256) {
        if (bytes(method).length == 0) revert MethodIsEmpty();
        if (!_isCanonical(bytes(method))) revert MethodNotCanonical("");
        bytes memory data = abi.encodePacked(bytes4(keccak256(bytes(method))), args);
        return _schedule(Job(0, msg.sender, target, 0, data, nextRunAt, intervalSec, maxRuns, 0, gasLimit, 0), msg.sender, 0);
    }

    function scheduleCalldata(
        address target,
        bytes calldata data,
        uint256 nextRunAt,
        uint256 intervalSec,
        uint256 maxRuns,
        uint256 gasLimit
    ) external payable returns (uint256) {
        return _schedule(Job(0, msg.sender, target, 0, data, nextRunAt, intervalSec, maxRuns, 0, gasLimit, 0), msg.sender, 0);
    }

    function scheduleWith(
        address target,
        bytes calldata data,
        uint256 nextRunAt,
        uint256 intervalSec,
        uint256 maxRuns,
        uint256 gasLimit,
        address refundTo,
        uint256 options
    ) external payable returns (uint256) {
        return _schedule(
            Job(0, msg.sender, target, 0, data, nextRunAt, intervalSec, maxRuns, 0, gasLimit, 0), refundTo, options
        );
    }

    function cancel(uint256 id) external returns (bool) {
        Job storage job = jobs[id];
        if (job.owner == address(0)) revert UnknownJob(id);
        if (job.owner != msg.sender) revert NotJobOwner(id, msg.sender, job.owner);
        if (terms[id].isInLastRun) revert JobInLastRun(id);
        (address owner, uint256 refunded) = (job.owner, job.gasEscrow);
        _remove(id);
        emit JobCancelled(id, owner, refunded);
        return true;
    }

    function topUp(uint256 id) external payable returns (bool) {
        Job storage job = jobs[id];
        if (job.owner == address(0)) revert UnknownJob(id);
        job.gasEscrow += msg.value;
        emit JobToppedUp(id, msg.value, job.gasEscrow);
        return true;
    }

    function getJob(uint256 id) external view returns (Job memory) {
        return jobs[id];
    }

    // ---- For tests alone ----

    /// When something is due next; the largest number if nothing waits.
    function nextDue() external view returns (uint256 due) {
        due = type(uint256).max;
        for (uint256 i; i < live.length; i++) {
            uint256 next = jobs[live[i]].nextRunAt;
            if (next < due) due = next;
        }
    }

    /// The jobs that this block runs, in order. Those that cannot pay end; those that skip what they missed move on.
    function beginBlock() public returns (uint256[] memory runs) {
        uint256[] memory due = _due();
        runs = new uint256[](due.length);
        uint256 count;
        uint256 gas;
        for (uint256 i; i < due.length; i++) {
            uint256 id = due[i];
            Job storage job = jobs[id];
            if (!_catchUp(job, terms[id].options >> 8)) continue;
            if (job.gasEscrow < job.gasLimit * block.basefee) {
                _remove(id);
                emit JobExhausted(id, "insufficient escrow");
                continue;
            }
            // Order never inverts: the first that does not fit ends the block.
            if (gas + job.gasLimit > BLOCK_GAS) break;
            gas += job.gasLimit;
            runs[count++] = id;
        }
        assembly ("memory-safe") {
            mstore(runs, count)
        }
    }

    /// Runs them. Called in this door's own name, so that tx.origin is right too. It answers, because Solidity looks for
    /// code before a call without an answer, and a precompile has none.
    function runAll(uint256[] memory runs) public returns (bool) {
        for (uint256 i; i < runs.length; i++) {
            // Another run may have cancelled it.
            if (jobs[runs[i]].owner == address(0)) continue;
            (address target, bytes memory data, uint256 gas) = _begin(runs[i]);
            (bool success,, uint256 used) = _call(target, data, gas);
            _settle(runs[i], success, used);
        }
        return true;
    }

    /// A whole block.
    function runDue() external returns (bool) {
        return runAll(beginBlock());
    }

    /// Takes the charge and arms the next run.
    function _begin(uint256 id) private returns (address target, bytes memory data, uint256 gas) {
        Job storage job = jobs[id];
        uint256 charge = job.gasLimit * block.basefee;
        job.gasEscrow -= charge;
        charges[id] = Charge(charge, terms[id].refundTo, terms[id].options & 1 == 1);
        (target, data, gas) = (job.target, abi.encodePacked(job.selector, job.args), job.gasLimit);
        bool isLast = job.intervalSec == 0 || (job.maxRuns > 0 && job.runsLeft <= 1);
        if (job.runsLeft > 0) job.runsLeft--;
        if (isLast) terms[id].isInLastRun = true;
        else job.nextRunAt += job.intervalSec;
    }

    /// Ends a run.
    function _settle(uint256 id, bool success, uint256 gasUsed) private {
        Charge memory charge = charges[id];
        delete charges[id];
        uint256 cost = charge.amount;
        if (charge.returnsUnused) {
            // At least half is paid.
            (uint256 used, uint256 least) = (gasUsed * block.basefee, (charge.amount + 1) / 2);
            cost = used < least ? least : used > charge.amount ? charge.amount : used;
        }
        _credit(BURN, cost);
        if (jobs[id].owner == address(0)) _credit(charge.refundTo, charge.amount - cost);
        else jobs[id].gasEscrow += charge.amount - cost;
        emit JobExecuted(id, success, gasUsed);
        if (!terms[id].isInLastRun) return;
        bool isSeries = jobs[id].intervalSec > 0;
        _remove(id);
        if (isSeries) emit JobExhausted(id, "max runs reached");
    }

    // ---- Rules ----

    function _schedule(Job memory job, address refundTo, uint256 options) private returns (uint256 id) {
        _check(job, refundTo, options);
        id = _nextId();
        bytes memory data = job.args;
        job.id = id;
        job.selector = bytes4(data);
        job.args = _after4(data);
        job.runsLeft = job.maxRuns;
        job.gasEscrow = msg.value;
        jobs[id] = job;
        terms[id] = Terms(refundTo, options, false, block.number);
        live.push(id);
        emit JobScheduled(id, job.owner, job.target, job.nextRunAt);
    }

    function _check(Job memory job, address refundTo, uint256 options) private view {
        uint256 length = job.args.length;
        if (job.target == address(0)) revert TargetIsZero();
        if (refundTo == address(0)) revert RefundToIsZero();
        if (length < 4) revert InputTooShort(length, 4);
        if (length > INPUT_BYTES_MAX) revert InputTooLong(length, INPUT_BYTES_MAX);
        if (job.nextRunAt <= block.timestamp) revert TimeNotInFuture(job.nextRunAt, block.timestamp);
        if (job.nextRunAt > block.timestamp + AHEAD) revert TimeBeyondHorizon(job.nextRunAt, block.timestamp + AHEAD);
        if (job.intervalSec > 0 && job.intervalSec < 60) revert IntervalTooShort(job.intervalSec, 60);
        if (job.intervalSec > AHEAD) revert IntervalTooLong(job.intervalSec, AHEAD);
        if (job.maxRuns > type(uint64).max) revert RunsTooMany(job.maxRuns, type(uint64).max);
        if (job.gasLimit < 21_000 || job.gasLimit > 5_000_000) revert GasLimitOutOfBounds(job.gasLimit, 21_000, 5_000_000);
        if (options & ~OPTIONS_KNOWN != 0) revert UnknownOptions(options, OPTIONS_KNOWN);
        if (options >> 8 > 2) revert UnknownCatchUp(options >> 8, 2);
        uint256 needed = job.gasLimit * block.basefee;
        if (msg.value < needed) revert EscrowTooLow(msg.value, needed);
    }

    /// Applies the policy for missed times; false if the job does not run now.
    function _catchUp(Job storage job, uint256 policy) private returns (bool) {
        if (policy == 0 || job.intervalSec == 0) return true;
        uint256 missed = (block.timestamp - job.nextRunAt) / job.intervalSec;
        if (missed == 0) return true;
        if (policy == 1) job.nextRunAt += missed * job.intervalSec;
        else job.nextRunAt += (missed + 1) * job.intervalSec;
        return policy == 1;
    }

    /// What is due and was not scheduled in this very block, by (nextRunAt, id).
    function _due() private view returns (uint256[] memory due) {
        due = new uint256[](live.length);
        uint256 count;
        for (uint256 i; i < live.length; i++) {
            uint256 id = live[i];
            if (jobs[id].nextRunAt > block.timestamp || terms[id].scheduledIn == block.number) continue;
            uint256 place = count++;
            while (place > 0 && _isBefore(id, due[place - 1])) {
                due[place] = due[place - 1];
                place--;
            }
            due[place] = id;
        }
        assembly ("memory-safe") {
            mstore(due, count)
        }
    }

    function _isBefore(uint256 a, uint256 b) private view returns (bool) {
        (uint256 one, uint256 other) = (jobs[a].nextRunAt, jobs[b].nextRunAt);
        return one < other || (one == other && a < b);
    }

    /// As on the chain: block, index of the transaction, n-th of it. A test is one transaction.
    function _nextId() private returns (uint256) {
        if (birthBlock != block.number) (birthBlock, births) = (block.number, 0);
        return (block.number << 28) | (1 << 10) | births++;
    }

    function _remove(uint256 id) private {
        (address to, uint256 rest) = (terms[id].refundTo, jobs[id].gasEscrow);
        delete jobs[id];
        delete terms[id];
        for (uint256 i; i < live.length; i++) {
            if (live[i] != id) continue;
            live[i] = live[live.length - 1];
            live.pop();
            break;
        }
        _credit(to, rest);
    }

    function _after4(bytes memory data) private pure returns (bytes memory rest) {
        rest = new bytes(data.length - 4);
        for (uint256 i; i < rest.length; i++) rest[i] = data[i + 4];
    }

    /// A rough check: name(types) without spaces, and no bare uint or int. The real registry parses, and shows in the
    /// error what was probably meant.
    function _isCanonical(bytes calldata text) private pure returns (bool) {
        uint256 open;
        while (open < text.length && text[open] != "(") open++;
        if (open == 0 || open >= text.length || text[text.length - 1] != ")") return false;
        for (uint256 i; i < text.length; i++) {
            if (text[i] == " ") return false;
            bool isBare = i >= 3 && (text[i] == "," || text[i] == ")" || text[i] == "[") && text[i - 3] == "i"
                && text[i - 2] == "n" && text[i - 1] == "t";
            if (isBare) return false;
        }
        return true;
    }
}
