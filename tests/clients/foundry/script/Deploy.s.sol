// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {Counter} from "../src/Counter.sol";

interface Vm {
    function startBroadcast() external;
    function stopBroadcast() external;
}

/// Deploys a counter and uses it, in three transactions.
contract Deploy {
    Vm private constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);

    function run() external returns (Counter counter) {
        vm.startBroadcast();
        counter = new Counter(50);
        counter.increase(7);
        counter.increase(3);
        vm.stopBroadcast();
    }
}
