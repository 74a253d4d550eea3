// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// OpenZeppelin's ERC-20 as it comes from npm; whoever deploys it has all of it.
contract PlainToken is ERC20 {
    constructor(uint256 supply) ERC20("Plain", "PLN") {
        _mint(msg.sender, supply);
    }
}
