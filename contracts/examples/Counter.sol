// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// A number that goes up. Its owner may set it; nobody may pass the limit.
contract Counter {
    event Increased(address indexed by, uint256 indexed step, uint256 value);
    event Noted(string text);

    error AboveLimit(uint256 wanted, uint256 limit);
    error NotOwner(address caller);

    address public immutable owner;
    uint256 public immutable limit;
    uint256 public value;
    mapping(address => uint256) public stepsBy;

    constructor(uint256 limit_) payable {
        owner = msg.sender;
        limit = limit_;
    }

    function increase(uint256 step) external returns (uint256) {
        uint256 wanted = value + step;
        if (wanted > limit) revert AboveLimit(wanted, limit);
        value = wanted;
        stepsBy[msg.sender] += step;
        emit Increased(msg.sender, step, wanted);
        return wanted;
    }

    function set(uint256 wanted) external {
        if (msg.sender != owner) revert NotOwner(msg.sender);
        value = wanted;
    }

    function note(string calldata text) external {
        emit Noted(text);
    }

    function refuse(string calldata why) external pure {
        revert(why);
    }

    function fail() external pure {
        assert(false);
    }

    function time() external view returns (uint256) {
        return block.timestamp;
    }

    function payBack(address payable to, uint256 amount) external {
        (bool paid, ) = to.call{value: amount}("");
        require(paid, "payment refused");
    }

    receive() external payable {}
}
