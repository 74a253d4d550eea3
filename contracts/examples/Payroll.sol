// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// Holds the money for salaries, which leave by the word of the CFO alone, once a month.
///
/// Somebody else prepares the list and schedules `pay` from the CFO's account with IScheduleService: executionTime is
/// payday, waitForExpiry is true. The CFO signs the list, from wherever, until then. A list that is not signed in time
/// expires, and nobody is paid by it.
contract Payroll {
    struct Salary {
        address payable employee;
        uint256 amount;
    }

    address public immutable cfo;
    mapping(uint256 month => bool) public isPaid;

    event Paid(uint256 indexed month, uint256 employees, uint256 total);

    error NotCfo(address caller);
    error AlreadyPaid(uint256 month);
    error TransferFailed(address employee, uint256 amount);

    constructor(address cfo_) payable {
        cfo = cfo_;
    }

    /// Pays everybody, or nobody.
    function pay(uint256 month, Salary[] calldata salaries) external {
        if (msg.sender != cfo) revert NotCfo(msg.sender);
        if (isPaid[month]) revert AlreadyPaid(month);
        isPaid[month] = true;
        uint256 total;
        for (uint256 i = 0; i < salaries.length; i++) {
            (address payable employee, uint256 amount) = (salaries[i].employee, salaries[i].amount);
            (bool done,) = employee.call{value: amount}("");
            if (!done) revert TransferFailed(employee, amount);
            total += amount;
        }
        emit Paid(month, salaries.length, total);
    }

    receive() external payable {}
}
