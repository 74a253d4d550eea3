// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// What subscriptions use of ERC-20.
interface IERC20 {
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function allowance(address owner, address spender) external view returns (uint256);
    function balanceOf(address account) external view returns (uint256);
}
