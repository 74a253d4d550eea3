// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICronRegistry} from "../almanac/ICronRegistry.sol";
import {Doors} from "../almanac/testing/Doors.sol";
import {Scenarios} from "../almanac/testing/Scenarios.sol";

interface Vm {
    function deal(address account, uint256 balance) external;
    function warp(uint256 time) external;
    function roll(uint256 number) external;
    function fee(uint256 baseFee) external;
    function coinbase(address account) external;
    function writeFile(string calldata path, string calldata text) external;
    function toString(bytes calldata data) external pure returns (string memory);
}

/// The doors of docs/testing-contracts.md in forge's own EVM.
contract DoorsTest {
    Vm private constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);
    ICronRegistry private constant CRON = ICronRegistry(address(6));

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
        vm.writeFile("out/scenarios.txt", vm.toString(abi.encodePacked(scenarios.outcome())));
    }
}
