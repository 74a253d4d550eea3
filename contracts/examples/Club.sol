// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {Subscriptions} from "../Subscriptions.sol";

/// A merchant: whoever pays its price every period is a member. The first period is free, since a subscription is
/// charged after it; an account gets that once.
contract Club {
    event Joined(address indexed member, uint256 indexed subscription);

    error NotSubscriber(address caller, address customer);
    error PaysOther(address merchant, address token);
    error PaysTooLittle(uint256 amount, uint256 price);
    error PaysTooSeldom(uint256 intervalSec, uint256 periodSec);
    error NotActive(uint256 subscription);
    error NotOwner(address caller, address owner);
    error TransferRefused(address to, uint256 amount);

    Subscriptions public immutable subscriptions;
    address public immutable token;
    uint256 public immutable price;
    uint256 public immutable periodSec;
    address public immutable owner;
    /// The subscription that a member joined with.
    mapping(address => uint256) public subscriptionOf;
    mapping(address => uint256) public freeUntil;

    constructor(Subscriptions subscriptions_, address token_, uint256 price_, uint256 periodSec_) {
        subscriptions = subscriptions_;
        token = token_;
        price = price_;
        periodSec = periodSec_;
        owner = msg.sender;
    }

    /// For the customer of a subscription that pays this club.
    function join(uint256 id) external {
        Subscriptions.Subscription memory given = subscriptions.getSubscription(id);
        if (given.customer != msg.sender) revert NotSubscriber(msg.sender, given.customer);
        bool isForUs = given.merchant == address(this) && given.token == token;
        if (!isForUs) revert PaysOther(given.merchant, given.token);
        if (given.amount < price) revert PaysTooLittle(given.amount, price);
        if (given.intervalSec > periodSec) revert PaysTooSeldom(given.intervalSec, periodSec);
        if (given.state != Subscriptions.State.Active) revert NotActive(id);
        subscriptionOf[msg.sender] = id;
        if (freeUntil[msg.sender] == 0) freeUntil[msg.sender] = given.nextChargeAt;
        emit Joined(msg.sender, id);
    }

    function isMember(address account) external view returns (bool) {
        uint256 id = subscriptionOf[account];
        if (id == 0) return false;
        return block.timestamp < freeUntil[account] || block.timestamp < subscriptions.paidUntil(id);
    }

    /// Charges arrive as plain transfers; this moves them on.
    function withdraw(address to, uint256 amount) external {
        if (msg.sender != owner) revert NotOwner(msg.sender, owner);
        bytes memory input = abi.encodeWithSignature("transfer(address,uint256)", to, amount);
        (bool done, bytes memory answer) = token.call(input);
        if (!done || (answer.length != 0 && !abi.decode(answer, (bool)))) revert TransferRefused(to, amount);
    }
}
