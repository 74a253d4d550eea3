// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICronRegistry} from "../almanac/ICronRegistry.sol";
import {IScheduledTransactions} from "../almanac/IScheduledTransactions.sol";
import {Doors} from "../almanac/testing/Doors.sol";
import {Counter} from "../src/Counter.sol";

interface Vm {
    function envAddress(string calldata name) external view returns (address);
    function envUint(string calldata name) external view returns (uint256);
    function rollFork(uint256 blockNumber) external;
    function prank(address sender) external;
}

/// Runs on a fork of the node: what is there is what the script left.
contract ForkTest {
    Vm private constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);
    Counter private counter;

    function setUp() public {
        counter = Counter(payable(vm.envAddress("COUNTER")));
    }

    function test_state_of_the_node() public view {
        require(block.chainid == 31337, "chain id");
        require(address(counter).code.length > 0, "code");
        require(counter.value() == 10, "value");
        require(counter.limit() == 50, "limit");
    }

    function test_writes_stay_in_the_fork() public {
        vm.prank(address(0xbeef));
        require(counter.increase(5) == 15, "increase");
        require(counter.stepsBy(address(0xbeef)) == 5, "steps");
    }

    function test_rolls_back_to_an_earlier_block() public {
        vm.rollFork(vm.envUint("BEFORE"));
        require(counter.value() == 7, "value at the earlier block");
    }

    /// The doors of the node are out of reach in a fork; their fakes run contracts of it.
    function test_a_contract_of_the_node_is_scheduled() public {
        Doors.install();
        uint256 start = block.timestamp;
        ICronRegistry(Doors.CRON).schedule{value: 0.01 ether}(
            address(counter), "increase(uint256)", abi.encode(2), start + 60, 60, 2, 100_000
        );
        IScheduledTransactions(Doors.SCHEDULED).insert{value: 0.01 ether}(
            IScheduledTransactions.ScheduledTransaction({
                senderAddr: address(this),
                scheduledTimeMs: uint64(start + 90) * 1_000,
                maxGasAmount: 100_000,
                maxGasUnitPrice: 10 gwei,
                passSigner: true,
                to: address(counter),
                value: 0,
                data: abi.encodeCall(counter.increase, (1)),
                expiryBlocks: 0
            })
        );
        Doors.runUntil(start + 1 hours);
        require(counter.value() == 15, "two jobs of two, and one");
        require(counter.stepsBy(address(this)) == 1, "in this contract's name");
    }

    function test_limit_reverts() public {
        try counter.increase(41) {
            revert("was to revert");
        } catch (bytes memory reason) {
            require(keccak256(reason) == keccak256(abi.encodeWithSelector(Counter.AboveLimit.selector, 51, 50)), "reason");
        }
    }
}
