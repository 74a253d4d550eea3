// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {IAccounts} from "../almanac/IAccounts.sol";
import {ICronRegistry} from "../almanac/ICronRegistry.sol";
import {IScheduledTransactions} from "../almanac/IScheduledTransactions.sol";
import {AccountScenarios} from "../almanac/testing/AccountScenarios.sol";
import {Doors} from "../almanac/testing/Doors.sol";
import {MarketScenarios} from "../almanac/testing/MarketScenarios.sol";
import {Scenarios} from "../almanac/testing/Scenarios.sol";

interface Vm {
    function deal(address account, uint256 balance) external;
    function warp(uint256 time) external;
    function roll(uint256 number) external;
    function fee(uint256 baseFee) external;
    function coinbase(address account) external;
    function prank(address sender, address origin) external;
    function sign(uint256 key, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function addr(uint256 key) external pure returns (address);
    function writeFile(string calldata path, string calldata text) external;
    function toString(bytes calldata data) external pure returns (string memory);
}

/// The doors of docs/testing-contracts.md in forge's own EVM.
contract DoorsTest {
    Vm private constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);
    ICronRegistry private constant CRON = ICronRegistry(address(6));
    IScheduledTransactions private constant SCHEDULED = IScheduledTransactions(Doors.SCHEDULED);
    IAccounts private constant ACCOUNTS = IAccounts(Doors.ACCOUNTS);

    uint256 private ticks;
    address private caller;
    address private origin;

    receive() external payable {}

    function setUp() public {
        vm.warp(1_800_000_000);
        vm.roll(1_000);
        vm.fee(1 gwei);
        vm.coinbase(address(0xc01b));
        vm.deal(address(this), 1_000 ether);
        Doors.install();
    }

    function tick() external {
        ticks++;
        (caller, origin) = (msg.sender, tx.origin);
    }

    function test_a_scheduled_job_runs_when_time_passes() public {
        uint256 start = block.timestamp;
        uint256 id = CRON.schedule{value: 0.01 ether}(address(this), "tick()", "", start + 60, 60, 3, 100_000);
        require(CRON.getJob(id).gasEscrow == 0.01 ether, "escrow");
        Doors.runUntil(start + 59);
        require(ticks == 0, "not early");
        Doors.runUntil(start + 60);
        require(ticks == 1 && caller == address(6) && origin == address(6), "from the registry");
        uint256 before = address(this).balance;
        Doors.runUntil(start + 1 days);
        require(ticks == 3 && CRON.getJob(id).owner == address(0), "three runs, then gone");
        require(address(this).balance == before + 0.01 ether - 3 * 100_000 gwei, "the rest is refunded");
    }

    function test_ecadd_is_still_there() public view {
        (bool done, bytes memory sum) = address(6).staticcall(abi.encode(1, 2, 1, 2));
        require(done && sum.length == 64, "ecAdd of a point with itself");
    }

    function test_a_scheduled_transaction_runs_in_its_senders_name() public {
        uint256 start = block.timestamp;
        uint256 before = address(this).balance;
        IScheduledTransactions.ScheduleMapKey memory key = _insert(uint64(start + 60) * 1_000);
        Doors.runUntil(start + 59);
        require(ticks == 0, "not early");
        Doors.runUntil(start + 60);
        require(ticks == 1 && caller == address(this) && origin == address(this), "from the sender");
        (, IScheduledTransactions.Status status,,) = SCHEDULED.get(key);
        require(status == IScheduledTransactions.Status.Succeeded, "status");
        uint256 paid = before - address(this).balance;
        require(paid > 21_000 gwei && paid < 100_000 gwei, "the gas that it used, at the base fee");
    }

    /// A rotation needs the account itself, and cancels what the old key scheduled.
    function test_a_rotated_key_cancels_what_was_scheduled() public {
        (uint256 secret, uint256 next) = (0xa11ce, 0xb0b);
        address account = vm.addr(secret);
        vm.deal(account, 1 ether);
        IScheduledTransactions.ScheduledTransaction memory txn = _txn(account, uint64(block.timestamp + 60) * 1_000);
        vm.prank(account, account);
        IScheduledTransactions.ScheduleMapKey memory scheduled = SCHEDULED.insert{value: 100_000 * 2 gwei}(txn);
        bytes memory key = abi.encodePacked(hex"01", vm.addr(next));
        bytes[] memory proofs = new bytes[](1);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(next, ACCOUNTS.rotationDigest(account, key));
        proofs[0] = abi.encodePacked(r, s, v - 27);
        vm.prank(account, account);
        ACCOUNTS.rotateKey(key, proofs);
        (bytes memory now_, uint64 rotation) = ACCOUNTS.keyOf(account);
        require(keccak256(now_) == keccak256(key) && rotation == 1, "the new key");
        Doors.runUntil(block.timestamp + 1 hours);
        (, IScheduledTransactions.Status status,,) = SCHEDULED.get(scheduled);
        require(ticks == 0 && status == IScheduledTransactions.Status.Cancelled, "cancelled");
        require(account.balance == 1 ether, "refunded");
    }

    function _insert(uint64 timeMs) private returns (IScheduledTransactions.ScheduleMapKey memory) {
        return SCHEDULED.insert{value: 100_000 * 2 gwei}(_txn(address(this), timeMs));
    }

    function _txn(address sender, uint64 timeMs) private view returns (IScheduledTransactions.ScheduledTransaction memory) {
        return IScheduledTransactions.ScheduledTransaction({
            senderAddr: sender,
            scheduledTimeMs: timeMs,
            maxGasAmount: 100_000,
            maxGasUnitPrice: 2 gwei,
            passSigner: true,
            to: address(this),
            value: 0,
            data: abi.encodeCall(this.tick, ()),
            expiryBlocks: 0
        });
    }

    /// The same scenarios as on the real chain; what they came to is compared outside.
    function test_scenarios() public {
        Scenarios scenarios = new Scenarios{value: 100 ether}(CRON);
        uint256 time = block.timestamp;
        uint256 number = block.number;
        for (uint256 step; step < scenarios.steps(); step++) {
            time += 1;
            number += 1_000;
            vm.warp(time);
            vm.roll(number);
            scenarios.act(step);
            time += scenarios.pause(step);
            Doors.runUntil(time);
        }
        _write("Scenarios", scenarios.outcome());
    }

    function test_market_scenarios() public {
        MarketScenarios scenarios = new MarketScenarios{value: 100 ether}(CRON);
        uint256 time = block.timestamp;
        uint256 number = block.number;
        for (uint256 step; step < scenarios.steps(); step++) {
            time += 1;
            number += 1_000;
            vm.warp(time);
            vm.roll(number);
            scenarios.act(step);
            time += scenarios.pause(step);
            vm.fee(scenarios.feeAfter(step) * 1 gwei);
            Doors.runUntil(time);
            for (uint256 i; i < scenarios.blocksAfter(step); i++) {
                vm.roll(block.number + 1);
                Doors.runBlock();
            }
            vm.fee(1 gwei);
            Doors.runUntil(time);
        }
        _write("MarketScenarios", scenarios.outcome());
    }

    function test_account_scenarios() public {
        AccountScenarios scenarios = new AccountScenarios();
        for (uint256 step; step < scenarios.steps(); step++) scenarios.act(step);
        uint256 alice = 0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80;
        uint256 bob = 0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d;
        bytes memory key = scenarios.key();
        address account = vm.addr(0xa11ce);
        bytes32 digest = ACCOUNTS.rotationDigest(account, key);
        bytes[] memory proofs = new bytes[](2);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(bob, digest);
        proofs[0] = abi.encodePacked(r, s, v - 27);
        (v, r, s) = vm.sign(alice, digest);
        proofs[1] = abi.encodePacked(r, s, v - 27);
        vm.prank(account, account);
        ACCOUNTS.rotateKey(key, proofs);
        scenarios.rotated(account);
        _write("AccountScenarios", scenarios.outcome());
    }

    function _write(string memory name, bytes32[] memory outcome) private {
        vm.writeFile(string.concat("out/", name, ".txt"), vm.toString(abi.encodePacked(outcome)));
    }
}
