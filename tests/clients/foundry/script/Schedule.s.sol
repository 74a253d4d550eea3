// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICronRegistry} from "../almanac/ICronRegistry.sol";
import {Doors} from "../almanac/testing/Doors.sol";
import {Counter} from "../src/Counter.sol";

interface Vm {
    function startBroadcast() external;
    function stopBroadcast() external;
}

/// Deploys a counter and schedules calls of it.
contract Schedule {
    Vm private constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);

    function run() external returns (Counter counter) {
        // Before the broadcast, so that it is in forge's own EVM alone.
        Doors.install();
        vm.startBroadcast();
        counter = new Counter(1_000);
        ICronRegistry(address(6)).schedule{value: 0.01 ether}(
            address(counter), "increase(uint256)", abi.encode(5), block.timestamp + 600, 60, 2, 100_000
        );
        vm.stopBroadcast();
    }
}
