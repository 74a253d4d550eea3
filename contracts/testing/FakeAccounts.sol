// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {IAccounts} from "../IAccounts.sol";
import {Ed25519} from "./Ed25519.sol";
import {FakeScheduledTransactions} from "./FakeScheduledTransactions.sol";

/// The door of keys for EVMs that do not have it: those of forge and Hardhat. docs/testing-contracts.md says how it gets
/// to its address, and what differs from the real one.
contract FakeAccounts is IAccounts {
    FakeScheduledTransactions private constant SCHEDULED =
        FakeScheduledTransactions(0x000000000000000000000000000000000000a101);
    uint8 private constant SECP256K1 = 1;
    uint8 private constant ED25519 = 2;
    uint8 private constant THRESHOLD = 3;
    uint256 private constant LEAVES_MAX = 32;
    uint256 private constant DEPTH_MAX = 4;
    uint256 private constant KEY_BYTES_MAX = 32 * (33 + 3 * 3);
    /// Half of secp256k1's order: a larger s has a smaller twin.
    uint256 private constant S_MAX = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;
    /// The chain's own accounts, which hold no keys, by the last two bytes of their addresses.
    bytes private constant SYSTEM = hex"0006a101a102a103016ba104a105a1ffa1dea1bb";

    /// A key that can sign. Ordered as its bytes are.
    struct Leaf {
        uint8 tag;
        uint256 value;
    }

    struct Parser {
        bytes key;
        uint256 offset;
        Leaf[] leaves;
        uint256 count;
    }

    /// Empty where the key is the one that the address derives from.
    mapping(address account => bytes) private keys;
    mapping(address account => uint64) private rotations;

    function rotateKey(bytes calldata key, bytes[] calldata proofs) external {
        if (msg.sender != tx.origin || SCHEDULED.isInRun()) revert NotTopLevel();
        Parser memory parsed = _parse(key);
        uint64 rotation = rotations[msg.sender] + 1;
        Leaf[] memory proven = _prove(_digest(msg.sender, key, rotation), proofs);
        if (!_satisfies(key, proven)) revert ProofMissing();
        if (msg.sender.code.length > 0 && bytes3(msg.sender.code) != 0xef0100) revert AccountTaken(msg.sender);
        bool isDefault = parsed.count == 1 && key[0] != bytes1(THRESHOLD) && _account(parsed.leaves[0]) == msg.sender;
        keys[msg.sender] = isDefault ? bytes("") : key;
        rotations[msg.sender] = rotation;
        SCHEDULED.cancelAllOf(msg.sender);
        emit KeyRotated(msg.sender, rotation, key);
    }

    function createAccount(bytes calldata key, bytes32 salt) external returns (address account) {
        _parse(key);
        account = address(uint160(uint256(keccak256(abi.encodePacked("almanac account", msg.sender, salt, keccak256(key))))));
        bool isTaken = account.code.length > 0 || keys[account].length > 0 || rotations[account] > 0;
        if (isTaken) revert AccountTaken(account);
        keys[account] = key;
        emit AccountCreated(account, msg.sender, key);
    }

    function keyOf(address account) external view returns (bytes memory key, uint64 rotation) {
        key = keys[account];
        if (key.length == 0) key = abi.encodePacked(SECP256K1, account);
        return (key, rotations[account]);
    }

    function addressOfKey(bytes32 ed25519) public pure returns (address account) {
        return address(uint160(uint256(keccak256(abi.encodePacked("almanac ed25519", ed25519)))));
    }

    function isSatisfied(address account, bytes32 digest, bytes[] calldata signatures) external view returns (bool) {
        Leaf[] memory proven = _prove(digest, signatures);
        if (keys[account].length > 0) return _satisfies(keys[account], proven);
        for (uint256 i; i < proven.length; i++) if (_account(proven[i]) != account) return false;
        return proven.length > 0;
    }

    function rotationDigest(address account, bytes calldata key) external view returns (bytes32) {
        return _digest(account, key, rotations[account] + 1);
    }

    // ---- Keys ----

    function _parse(bytes memory key) private view returns (Parser memory parser) {
        if (key.length > KEY_BYTES_MAX) revert KeyRefused(KEY_BYTES_MAX, "longer than a key can be");
        (parser.key, parser.leaves) = (key, new Leaf[](LEAVES_MAX));
        _parseNode(parser, 1);
        if (parser.offset < key.length) revert KeyRefused(parser.offset, "bytes follow the key");
    }

    function _parseNode(Parser memory parser, uint256 depth) private view {
        uint256 offset = parser.offset;
        if (depth > DEPTH_MAX) revert KeyRefused(offset, "more than 4 levels");
        uint8 tag = uint8(_take(parser, 1));
        if (tag == SECP256K1) {
            uint256 account = _take(parser, 20);
            if (_isSystem(address(uint160(account)))) revert KeyRefused(offset, "nobody holds a key of this address");
            _addLeaf(parser, offset, Leaf(tag, account));
        } else if (tag == ED25519) {
            uint256 key = _take(parser, 32);
            _addLeaf(parser, offset, Leaf(tag, key));
            if (!Ed25519.isUsable(bytes32(key))) revert KeyRefused(offset, "not a usable Ed25519 key");
        } else if (tag == THRESHOLD) {
            uint256 numbers = _take(parser, 2);
            (uint256 count, uint256 needed) = (numbers >> 8, numbers & 0xff);
            bool isThreshold = needed > 0 && needed <= count;
            if (!isThreshold) {
                revert KeyRefused(offset, "a threshold is at least 1 and at most the number of children");
            }
            if (count > LEAVES_MAX) revert KeyRefused(offset, "more than 32 leaves");
            for (uint256 i; i < count; i++) _parseNode(parser, depth + 1);
        } else {
            revert KeyRefused(offset, "unknown tag; 1 is secp256k1, 2 Ed25519, 3 a threshold");
        }
    }

    function _addLeaf(Parser memory parser, uint256 offset, Leaf memory leaf) private pure {
        if (parser.count == LEAVES_MAX) revert KeyRefused(offset, "more than 32 leaves");
        for (uint256 i; i < parser.count; i++) {
            if (_isSame(parser.leaves[i], leaf)) revert KeyRefused(offset, "a leaf stands twice in the key");
        }
        parser.leaves[parser.count++] = leaf;
    }

    /// The next bytes as a number.
    function _take(Parser memory parser, uint256 length) private pure returns (uint256) {
        uint256 from = parser.offset;
        if (from + length > parser.key.length) revert KeyRefused(parser.key.length, "it ends too early");
        parser.offset = from + length;
        return _number(parser.key, from, length);
    }

    function _isSystem(address account) private pure returns (bool) {
        if (account == 0x0000F90827F1C53a10cb7A02335B175320002935 || account == address(0)) return true;
        for (uint256 i; i < SYSTEM.length; i += 2) if (uint160(account) == _number(SYSTEM, i, 2)) return true;
        return false;
    }

    /// Whether leaves satisfy a key, and none can be left out.
    function _satisfies(bytes memory key, Leaf[] memory proven) private pure returns (bool) {
        (bool isEnough,) = _isMet(key, 0, proven, type(uint256).max);
        if (!isEnough) return false;
        for (uint256 i; i < proven.length; i++) {
            (bool isEnoughWithout,) = _isMet(key, 0, proven, i);
            if (isEnoughWithout) return false;
        }
        return true;
    }

    /// Whether the node at an offset is satisfied without one of the leaves, and where the next one begins.
    function _isMet(bytes memory key, uint256 offset, Leaf[] memory proven, uint256 without)
        private
        pure
        returns (bool isMet, uint256 next)
    {
        uint8 tag = uint8(key[offset]);
        if (tag != THRESHOLD) {
            uint256 length = tag == SECP256K1 ? 20 : 32;
            Leaf memory leaf = Leaf(tag, _number(key, offset + 1, length));
            for (uint256 i; i < proven.length; i++) if (i != without && _isSame(proven[i], leaf)) isMet = true;
            return (isMet, offset + 1 + length);
        }
        uint256 met;
        next = offset + 3;
        for (uint256 i; i < uint8(key[offset + 1]); i++) {
            (isMet, next) = _isMet(key, next, proven, without);
            if (isMet) met++;
        }
        return (met >= uint8(key[offset + 2]), next);
    }

    // ---- Signatures ----

    /// The leaves that signatures over a digest prove; none if one of them is wrong or they do not ascend.
    function _prove(bytes32 digest, bytes[] calldata signatures) private view returns (Leaf[] memory proven) {
        if (signatures.length > LEAVES_MAX) return proven;
        Leaf[] memory leaves = new Leaf[](signatures.length);
        for (uint256 i; i < signatures.length; i++) {
            leaves[i] = _leafOf(digest, signatures[i]);
            bool isInOrder = leaves[i].tag > 0 && (i == 0 || _isBefore(leaves[i - 1], leaves[i]));
            if (!isInOrder) return proven;
        }
        return leaves;
    }

    /// The leaf that a signature proves; one with the tag 0 if it proves nothing.
    function _leafOf(bytes32 digest, bytes calldata signature) private view returns (Leaf memory leaf) {
        if (signature.length == 65) {
            (uint256 s, uint8 parity) = (uint256(bytes32(signature[32:64])), uint8(signature[64]));
            if (parity > 1 || s > S_MAX) return leaf;
            address signer = ecrecover(digest, 27 + parity, bytes32(signature[:32]), bytes32(s));
            if (signer != address(0)) leaf = Leaf(SECP256K1, uint160(signer));
        } else if (signature.length == 96) {
            bytes32 key = bytes32(signature[:32]);
            bool isValid = Ed25519.isValid(key, digest, bytes32(signature[32:64]), bytes32(signature[64:]));
            if (isValid) leaf = Leaf(ED25519, uint256(key));
        }
    }

    /// EIP-712's hash. The chain's has the hash of its block 0 for a salt; a test has no such block.
    function _digest(address account, bytes memory key, uint64 rotation) private view returns (bytes32) {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract,bytes32 salt)"),
                keccak256("Almanac"),
                keccak256("1"),
                block.chainid,
                address(this),
                bytes32(0)
            )
        );
        bytes32 rotationType = keccak256("RotateKey(address account,bytes key,uint64 rotation)");
        bytes32 content = keccak256(abi.encode(rotationType, account, keccak256(key), rotation));
        return keccak256(abi.encodePacked(hex"1901", domain, content));
    }

    /// The account that a key alone controls while the account has no record.
    function _account(Leaf memory leaf) private pure returns (address) {
        return leaf.tag == SECP256K1 ? address(uint160(leaf.value)) : addressOfKey(bytes32(leaf.value));
    }

    function _isSame(Leaf memory a, Leaf memory b) private pure returns (bool) {
        return a.tag == b.tag && a.value == b.value;
    }

    function _isBefore(Leaf memory a, Leaf memory b) private pure returns (bool) {
        return a.tag < b.tag || (a.tag == b.tag && a.value < b.value);
    }

    function _number(bytes memory data, uint256 from, uint256 length) private pure returns (uint256 number) {
        for (uint256 i; i < length; i++) number = (number << 8) | uint8(data[from + i]);
    }
}
