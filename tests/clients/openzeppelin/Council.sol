// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {Governor} from "@openzeppelin/contracts/governance/Governor.sol";
import {TimelockController} from "@openzeppelin/contracts/governance/TimelockController.sol";
import {GovernorCountingSimple} from "@openzeppelin/contracts/governance/extensions/GovernorCountingSimple.sol";
import {GovernorTimelockControl} from "@openzeppelin/contracts/governance/extensions/GovernorTimelockControl.sol";
import {GovernorVotes} from "@openzeppelin/contracts/governance/extensions/GovernorVotes.sol";
import {IVotes} from "@openzeppelin/contracts/governance/utils/IVotes.sol";
import {VestingWallet} from "@openzeppelin/contracts/finance/VestingWallet.sol";

/// Token holders decide, a timelock carries out: votes begin after 5 blocks and last 20.
contract Council is Governor, GovernorCountingSimple, GovernorVotes, GovernorTimelockControl {
    constructor(IVotes token, TimelockController timelock)
        Governor("Council")
        GovernorVotes(token)
        GovernorTimelockControl(timelock)
    {}

    function votingDelay() public pure override returns (uint256) {
        return 5;
    }

    function votingPeriod() public pure override returns (uint256) {
        return 20;
    }

    function quorum(uint256) public pure override returns (uint256) {
        return 100 ether;
    }

    function state(uint256 id) public view override(Governor, GovernorTimelockControl) returns (ProposalState) {
        return super.state(id);
    }

    function proposalNeedsQueuing(uint256 id) public view override(Governor, GovernorTimelockControl) returns (bool) {
        return super.proposalNeedsQueuing(id);
    }

    function _queueOperations(uint256 id, address[] memory to, uint256[] memory values, bytes[] memory data, bytes32 text)
        internal
        override(Governor, GovernorTimelockControl)
        returns (uint48)
    {
        return super._queueOperations(id, to, values, data, text);
    }

    function _executeOperations(uint256 id, address[] memory to, uint256[] memory values, bytes[] memory data, bytes32 text)
        internal
        override(Governor, GovernorTimelockControl)
    {
        super._executeOperations(id, to, values, data, text);
    }

    function _cancel(address[] memory to, uint256[] memory values, bytes[] memory data, bytes32 text)
        internal
        override(Governor, GovernorTimelockControl)
        returns (uint256)
    {
        return super._cancel(to, values, data, text);
    }

    function _executor() internal view override(Governor, GovernorTimelockControl) returns (address) {
        return super._executor();
    }
}
