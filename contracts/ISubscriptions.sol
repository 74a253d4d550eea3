// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// ARC-21: recurring payments in an ERC-20 token, charged by the chain itself.
interface ISubscriptions {
    event SubscriptionApproved(uint256 indexed id, address indexed customer, address indexed merchant);
    event SubscriptionCharged(uint256 indexed id, uint256 amount, uint256 chargesLeft);
    event SubscriptionFailed(uint256 indexed id, string reason);
    event SubscriptionCancelled(uint256 indexed id);

    /// The caller will pay `amount` of the token to the merchant every interval, the first time after one
    /// interval. maxCharges 0: until cancelled. The value pays for the gas of the charges.
    function approveSubscription(
        address token,
        address merchant,
        uint256 amount,
        uint256 intervalSec,
        uint256 maxCharges
    ) external payable returns (uint256 id);

    /// Charges once, if it is time. For the cron registry.
    function chargeSubscription(uint256 id) external returns (bool);

    /// Ends a subscription. Customer only.
    function cancelSubscription(uint256 id) external returns (bool);

    /// Ends the cron job of a subscription that has ended; what is left of the value goes to the customer.
    function reclaim(uint256 id) external returns (bool);
}
