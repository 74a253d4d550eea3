// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICallbackHandler} from "../ICallbackHandler.sol";
import {ICallbackScheduler} from "../ICallbackScheduler.sol";

/// An auction that closes itself in the second that was announced. Nobody has to send a transaction, and nobody can
/// keep it open: the second was booked when the auction began.
contract SelfClosingAuction is ICallbackHandler {
    ICallbackScheduler private constant SCHEDULER = ICallbackScheduler(0x000000000000000000000000000000000000a102);
    uint64 private constant CLOSE_EFFORT = 100;

    address public immutable seller;
    uint64 public immutable closesAt;
    uint64 public immutable callback;
    address public highestBidder;
    uint256 public highestBid;
    bool public isClosed;
    /// What bidders who were outbid, and the seller, may take.
    mapping(address => uint256) public owed;

    event Bid(address indexed bidder, uint256 amount);
    event Closed(address indexed winner, uint256 amount);

    error NotScheduler(address caller);
    error AuctionClosed();
    error BidTooLow(uint256 given, uint256 highest);
    error NothingOwed(address account);
    error TransferFailed(address to, uint256 amount);

    /// The value pays for the callback; what is above its fee is the seller's.
    constructor(uint64 closesAt_) payable {
        seller = msg.sender;
        closesAt = closesAt_;
        ICallbackScheduler.ScheduledCallback memory booked = SCHEDULER.schedule{value: msg.value}(
            address(this), "", closesAt_, ICallbackScheduler.Priority.High, CLOSE_EFFORT
        );
        callback = booked.id;
        owed[seller] = address(this).balance;
    }

    function bid() external payable {
        if (isClosed) revert AuctionClosed();
        if (msg.value <= highestBid) revert BidTooLow(msg.value, highestBid);
        owed[highestBidder] += highestBid;
        (highestBidder, highestBid) = (msg.sender, msg.value);
        emit Bid(msg.sender, msg.value);
    }

    function executeCallback(uint64, bytes calldata) external {
        if (msg.sender != address(SCHEDULER)) revert NotScheduler(msg.sender);
        isClosed = true;
        owed[seller] += highestBid;
        emit Closed(highestBidder, highestBid);
    }

    function withdraw() external {
        uint256 amount = owed[msg.sender];
        if (amount == 0) revert NothingOwed(msg.sender);
        owed[msg.sender] = 0;
        (bool done,) = msg.sender.call{value: amount}("");
        if (!done) revert TransferFailed(msg.sender, amount);
    }
}
