// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {IAccounts} from "../IAccounts.sol";
import {Notes} from "./Notes.sol";

/// What somebody does with keys of accounts.
contract AccountScenarios is Notes {
    IAccounts private constant ACCOUNTS = IAccounts(0x000000000000000000000000000000000000A104);
    address private constant ALICE = 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266;
    address private constant BOB = 0x70997970C51812dc3A010C7d01b50e0d17dc79C8;
    bytes32 private constant EDDY = 0xd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a;
    /// Their signatures of this.
    bytes32 private constant DIGEST = keccak256("almanac scenario");
    bytes private constant BY_ALICE =
        hex"c6fb9bade2a5676035d623cd6a73a730fb6347175fb502027326ee195fb60e5407ae72589bad7025cb74a35b8f0b634743259a4e1777b9c25e39e19243005edd01";
    bytes private constant BY_BOB =
        hex"47a367c83073fe5a796cfa6505b6e3dd20a78d8a5b57726083c83063a9561a667336bf30f7d365ccccfd973590d53ce730299c495c2f7494cb7c5019f8837cfb01";
    bytes private constant BY_EDDY =
        hex"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a089da489be127a1fc36436283a36118ba7993bef4411632c61f435348df93b526077a4303c68a8da9a1b0ae2c2b843920a68fbe7eaea47eba54ab5f9720d500e";

    uint256 public constant steps = 3;

    function act(uint256 step) external {
        if (step == 0) _refusedKeys();
        if (step == 1) _made();
        if (step == 2) _satisfied();
    }

    /// After an account has rotated its key to 2 of (Alice, Bob, Eddy).
    function rotated(address account) external {
        _noteKey(account);
        _note("old key", _isSatisfied(ALICE, BY_ALICE) ? 1 : 0, 0);
        _note("new key", _isSatisfied2(account, BY_ALICE, BY_EDDY) ? 1 : 0, _isSatisfied(account, BY_EDDY) ? 1 : 0);
    }

    /// Two of three.
    function key() public pure returns (bytes memory) {
        return abi.encodePacked(hex"030302", hex"01", ALICE, hex"01", BOB, hex"02", EDDY);
    }

    function _refusedKeys() private {
        _refused("empty", "");
        _refused("tag", hex"04");
        _refused("short", hex"01f39f");
        _refused("more", abi.encodePacked(hex"01", ALICE, hex"00"));
        _refused("none of", hex"030000");
        _refused("none", abi.encodePacked(hex"030100", hex"01", ALICE));
        _refused("too many o", abi.encodePacked(hex"030102", hex"01", ALICE));
        _refused("many", abi.encodePacked(hex"032101", hex"01", ALICE));
        _refused("deep", abi.encodePacked(hex"030101030101030101030101", hex"01", ALICE));
        _refused("twice", abi.encodePacked(hex"030201", hex"01", ALICE, hex"01", ALICE));
        _refused("zero", abi.encodePacked(hex"01", address(0)));
        _refused("a door", abi.encodePacked(hex"01", ACCOUNTS));
        _refused("no point", abi.encodePacked(hex"02", bytes32(uint256(7) << 248)));
        _refused("small orde", abi.encodePacked(hex"02", bytes32(uint256(1) << 248)));
        _refused("not canoni", abi.encodePacked(hex"02", type(uint256).max));
        _refused("long", new bytes(1_345));
    }

    function _made() private {
        address made = ACCOUNTS.createAccount(key(), bytes32(uint256(1)));
        bytes32 expected = keccak256(abi.encodePacked("almanac account", address(this), bytes32(uint256(1)), keccak256(key())));
        _note("made", made == address(uint160(uint256(expected))) ? 1 : 0, 0);
        _noteKey(made);
        _noteKey(BOB);
        _note("again", _tried(address(ACCOUNTS), abi.encodeCall(ACCOUNTS.createAccount, (key(), bytes32(uint256(1)))), 0), 0);
        _note("from here", _tried(address(ACCOUNTS), abi.encodeCall(ACCOUNTS.rotateKey, (key(), new bytes[](0))), 0), 0);
        _note("of a key", uint160(ACCOUNTS.addressOfKey(EDDY)), 0);
    }

    function _satisfied() private {
        _note("own", _isSatisfied(ALICE, BY_ALICE) ? 1 : 0, _isSatisfied(BOB, BY_ALICE) ? 1 : 0);
        _note("own ed", _isSatisfied(ACCOUNTS.addressOfKey(EDDY), BY_EDDY) ? 1 : 0, 0);
        _note("too many", _isSatisfied2(ALICE, BY_BOB, BY_ALICE) ? 1 : 0, 0);
        address made = ACCOUNTS.createAccount(key(), 0);
        _note("one", _isSatisfied(made, BY_ALICE) ? 1 : 0, _isSatisfied(made, BY_EDDY) ? 1 : 0);
        _note("two", _isSatisfied2(made, BY_BOB, BY_ALICE) ? 1 : 0, _isSatisfied2(made, BY_ALICE, BY_EDDY) ? 1 : 0);
        _note("unordered", _isSatisfied2(made, BY_ALICE, BY_BOB) ? 1 : 0, _isSatisfied2(made, BY_EDDY, BY_BOB) ? 1 : 0);
        bytes[] memory all = new bytes[](3);
        (all[0], all[1], all[2]) = (BY_BOB, BY_ALICE, BY_EDDY);
        _note("three", ACCOUNTS.isSatisfied(made, DIGEST, all) ? 1 : 0, 0);
        bytes memory bad = BY_EDDY;
        bad[95] = bytes1(uint8(bad[95]) ^ 0x10);
        _note("wrong ed", _isSatisfied2(made, BY_ALICE, bad) ? 1 : 0, 0);
        bad = BY_ALICE;
        bad[64] = 0x1c;
        _note("wrong v", _isSatisfied(ALICE, bad) ? 1 : 0, _isSatisfied(ALICE, hex"00") ? 1 : 0);
        all = new bytes[](0);
        _note("nothing", ACCOUNTS.isSatisfied(ALICE, DIGEST, all) ? 1 : 0, 0);
    }

    function _refused(bytes10 what, bytes memory key_) private {
        (bool done, bytes memory answer) = address(ACCOUNTS).call(abi.encodeCall(ACCOUNTS.createAccount, (key_, 0)));
        // The error with its offset, and what it says.
        _note(what, done ? 1 : _selector(answer), done ? 0 : uint256(keccak256(answer)));
    }

    function _noteKey(address account) private {
        (bytes memory own, uint64 rotation) = ACCOUNTS.keyOf(account);
        _note("key", uint256(keccak256(own)), rotation);
    }

    function _isSatisfied(address account, bytes memory signature) private view returns (bool) {
        bytes[] memory signatures = new bytes[](1);
        signatures[0] = signature;
        return ACCOUNTS.isSatisfied(account, DIGEST, signatures);
    }

    function _isSatisfied2(address account, bytes memory one, bytes memory other) private view returns (bool) {
        bytes[] memory signatures = new bytes[](2);
        (signatures[0], signatures[1]) = (one, other);
        return ACCOUNTS.isSatisfied(account, DIGEST, signatures);
    }
}
