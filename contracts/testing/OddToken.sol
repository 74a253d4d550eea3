// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// A token that keeps books like any other and misbehaves in transferFrom as it is told to.
contract OddToken {
    enum Mode {
        Honest,
        /// Moves nothing and answers false.
        ReturnsFalse,
        /// Moves the money and answers false all the same.
        MovesAndReturnsFalse,
        /// Moves the money and answers 2.
        MovesAndReturnsTwo,
        /// Moves the money and answers nothing, like tokens from before the standard.
        ReturnsNothing,
        /// Moves the money and answers a single byte.
        ReturnsOneByte,
        /// Moves the money and answers as much as its gas allows.
        ReturnsMuch,
        Reverts,
        /// Reverts with as much data as its gas allows.
        RevertsMuch,
        BurnsGas,
        /// Burns 100,000 gas, then moves the money.
        Heavy,
        /// A tenth does not arrive.
        TakesFee,
        /// Moves the money, then makes the call that it was given and needs it to succeed.
        Calls,
        /// Makes the call first, lets it fail, and moves the money.
        Tries,
        /// Answers true and moves nothing.
        Lies,
        /// Burns gas in every view as well.
        BurnsGasEverywhere
    }

    error Refused(uint256 amount);

    mapping(address => uint256) private balances;
    mapping(address => mapping(address => uint256)) private allowances;
    Mode public mode;
    address public callee;
    bytes public input;
    /// Whether the last call of mode Tries succeeded.
    bool public hasReentered;

    constructor(uint256 supply) {
        balances[msg.sender] = supply;
    }

    function set(Mode mode_) external {
        mode = mode_;
    }

    /// What modes Calls and Tries call.
    function setCall(Mode mode_, address callee_, bytes calldata input_) external {
        (mode, callee, input) = (mode_, callee_, input_);
    }

    /// Lets this token be a customer of its own.
    function act(address to, bytes calldata data) external payable returns (bytes memory) {
        (bool done, bytes memory answer) = to.call{value: msg.value}(data);
        if (!done) {
            assembly ("memory-safe") {
                revert(add(answer, 32), mload(answer))
            }
        }
        return answer;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowances[msg.sender][spender] = amount;
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _move(msg.sender, to, amount, amount);
        return true;
    }

    function allowance(address owner, address spender) external view returns (uint256) {
        if (mode == Mode.BurnsGasEverywhere) _burnTo(0);
        return allowances[owner][spender];
    }

    function balanceOf(address account) external view returns (uint256) {
        // Only for those who ask with little gas: tests want to know.
        if (mode == Mode.BurnsGasEverywhere && gasleft() < 100_000) _burnTo(0);
        return balances[account];
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        Mode m = mode;
        if (m == Mode.Reverts) revert Refused(amount);
        if (m == Mode.RevertsMuch) _answer(false, 200_000);
        if (m == Mode.BurnsGas || m == Mode.BurnsGasEverywhere) _burnTo(0);
        if (m == Mode.ReturnsFalse) return false;
        if (m == Mode.Lies) return true;
        if (m == Mode.Heavy) _burnTo(gasleft() - 100_000);
        if (m == Mode.Tries) (hasReentered, ) = callee.call(input);
        allowances[from][msg.sender] -= amount;
        _move(from, to, amount, m == Mode.TakesFee ? amount - amount / 10 : amount);
        if (m == Mode.MovesAndReturnsFalse) return false;
        if (m == Mode.MovesAndReturnsTwo) _answerWord(2);
        if (m == Mode.ReturnsNothing) _answer(true, 0);
        if (m == Mode.ReturnsOneByte) _answer(true, 1);
        if (m == Mode.ReturnsMuch) _answer(true, 100_000);
        if (m == Mode.Calls) {
            (bool done, ) = callee.call(input);
            if (!done) revert Refused(amount);
        }
        return true;
    }

    function _move(address from, address to, uint256 taken, uint256 given) private {
        balances[from] -= taken;
        balances[to] += given;
    }

    /// Burns gas until this much is left; 0 is until the call fails.
    function _burnTo(uint256 left) private view {
        for (uint256 i = 0; gasleft() > left; i++) keccak256(abi.encode(i, block.timestamp));
    }

    function _answer(bool isReturn, uint256 size) private pure {
        assembly ("memory-safe") {
            // The first word says true, as far as it reaches.
            mstore(0, 1)
            if isReturn {
                if gt(size, 32) {
                    let place := mload(0x40)
                    mstore(place, 1)
                    return(place, size)
                }
                return(0, size)
            }
            revert(mload(0x40), size)
        }
    }

    function _answerWord(uint256 word) private pure {
        assembly ("memory-safe") {
            mstore(0, word)
            return(0, 32)
        }
    }
}
