// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// The keys of accounts, at 0x…a104. A key is one leaf or a tree of them, in preorder:
///
/// - 01 ‖ address: a secp256k1 key, by its Ethereum address
/// - 02 ‖ Ed25519 key
/// - 03 ‖ n ‖ k ‖ n children: satisfied if k of its children are
///
/// At most 4 levels and 32 leaves. A signature is 65 bytes (r ‖ s ‖ yParity, low s) or 96 (Ed25519 key ‖ signature);
/// signatures stand in ascending order of their leaves, and none is superfluous.
interface IAccounts {
    event KeyRotated(address indexed account, uint64 rotation, bytes key);
    event AccountCreated(address indexed account, address indexed creator, bytes key);

    /// Not a key, from this byte on.
    error KeyRefused(uint256 offset, string reason);
    /// The proofs do not satisfy the new key.
    error ProofMissing();
    /// Only a user transaction itself rotates its sender's key: no contract and no scheduled run.
    error NotTopLevel();
    /// The account has code, a nonce or a key already.
    error AccountTaken(address account);

    /// Gives the sender another key, at once. `proofs` satisfy that key over `rotationDigest`, so that nobody rotates
    /// into a key that cannot sign. The account's delegation ends, and ecrecover answers nothing for it.
    function rotateKey(bytes calldata key, bytes[] calldata proofs) external;

    /// Makes an account that has no key of its own. Fund it afterwards.
    function createAccount(bytes calldata key, bytes32 salt) external returns (address account);

    /// An account's key and how often it was changed. Without a record: 01 ‖ account.
    function keyOf(address account) external view returns (bytes memory key, uint64 rotation);

    /// The account of an Ed25519 key.
    function addressOfKey(bytes32 ed25519) external view returns (address account);

    /// Whether signatures over a digest satisfy the account's current key. Bind the digest to chain and contract.
    function isSatisfied(address account, bytes32 digest, bytes[] calldata signatures) external view returns (bool);

    /// What proves a new key for the account's next rotation: EIP-712's hash of
    /// RotateKey(address account,bytes key,uint64 rotation).
    function rotationDigest(address account, bytes calldata key) external view returns (bytes32);
}
