// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICallbackHandler} from "../ICallbackHandler.sol";
import {ICallbackScheduler} from "../ICallbackScheduler.sol";

/// A handler for tests. The first byte of its data says what it does.
contract CallbackProbe is ICallbackHandler {
    ICallbackScheduler private constant SCHEDULER = ICallbackScheduler(0x000000000000000000000000000000000000a102);

    error Refused(uint64 id);

    /// The callbacks that came, in order.
    uint64[] public came;
    /// What the scheduler said of the callback while it ran.
    ICallbackScheduler.Status public statusInside;
    /// What came of the last attempt to do something from inside.
    bool public wasDone;
    bytes public answer;

    constructor(address scheduler) payable {
        if (scheduler != address(0)) SCHEDULER.setScheduler(scheduler, true);
    }

    function count() external view returns (uint256) {
        return came.length;
    }

    function allow(address scheduler, bool allowed) external {
        SCHEDULER.setScheduler(scheduler, allowed);
    }

    function book(bytes calldata data, uint64 timestamp, ICallbackScheduler.Priority priority, uint64 effort)
        external
        payable
        returns (uint64)
    {
        return SCHEDULER.schedule{value: msg.value}(address(this), data, timestamp, priority, effort).id;
    }

    function executeCallback(uint64 id, bytes calldata data) external {
        came.push(id);
        if (data.length == 0) return;
        bytes1 what = data[0];
        if (what == "r") revert Refused(id);
        if (what == "g") while (true) {}
        if (what == "s") statusInside = SCHEDULER.getStatus(id);
        // Cancels the callback whose id follows.
        if (what == "c") {
            uint64 other = uint64(bytes8(data[1:9]));
            (wasDone, answer) = address(SCHEDULER).call(abi.encodeCall(SCHEDULER.cancel, (other)));
        }
        // Books as much High effort in the second that follows as the number behind it says, again and again.
        if (what == "b") {
            (uint64 second, uint64 effort) = (uint64(bytes8(data[1:9])), uint64(bytes8(data[9:17])));
            for (uint256 i; i < 3; i++) {
                (wasDone, answer) = address(SCHEDULER).call{value: address(this).balance}(
                    abi.encodeCall(
                        SCHEDULER.schedule,
                        (address(this), "", second, ICallbackScheduler.Priority.High, effort)
                    )
                );
            }
        }
    }

    receive() external payable {}
}
