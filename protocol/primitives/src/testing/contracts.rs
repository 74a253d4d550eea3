//! Small contracts in raw bytecode, one behaviour each.

use alloy_primitives::{Address, Bytes, U256, address};

/// `storage[caller] += 1`, then stops.
pub const COUNTER: Address = address!("0x00000000000000000000000000000000000c0001");
/// Writes slot 1, logs, then reverts with the word 0x2a.
pub const REVERTER: Address = address!("0x00000000000000000000000000000000000c0002");
/// Loops until its gas is gone.
pub const BURNER: Address = address!("0x00000000000000000000000000000000000c0003");
/// Calls the address in the first word with the rest of the calldata and all value; returns what that returned.
pub const FORWARDER: Address = address!("0x00000000000000000000000000000000000c0004");
/// As the forwarder, then reverts with what it got.
pub const FORWARD_AND_REVERT: Address = address!("0x00000000000000000000000000000000000c0005");
/// Creates a contract from its calldata with all value; returns the address.
pub const CREATOR: Address = address!("0x00000000000000000000000000000000000c0006");
/// LOG2 with two fixed topics and its calldata.
pub const LOGGER: Address = address!("0x00000000000000000000000000000000000c0007");
/// Writes `n` slots from `start` (words of calldata) with the value `start + i + 1`.
pub const WRITER: Address = address!("0x00000000000000000000000000000000000c0008");
/// DELEGATECALLs the address in the first word with the rest of the calldata; reverts where that did.
pub const DELEGATOR: Address = address!("0x00000000000000000000000000000000000c0009");
/// As the delegator, with STATICCALL.
pub const STATIC_CALLER: Address = address!("0x00000000000000000000000000000000000c000a");
/// As the delegator, with CALLCODE.
pub const CODE_CALLER: Address = address!("0x00000000000000000000000000000000000c000b");
/// Follows a chain of slots: reads slot `start`, takes its value as the next slot, `n` times.
pub const CHASER: Address = address!("0x00000000000000000000000000000000000c000c");
/// SELFDESTRUCTs to the address in its first word.
pub const DESTRUCTIBLE: Address = address!("0x00000000000000000000000000000000000c000d");
/// Returns BLOCKHASH of the number in its first word.
pub const HASHER: Address = address!("0x00000000000000000000000000000000000c000e");
/// Returns NUMBER, TIMESTAMP, PREVRANDAO, BLOBBASEFEE, BASEFEE, GASLIMIT, COINBASE, CHAINID as words.
pub const TELLER: Address = address!("0x00000000000000000000000000000000000c000f");
/// INVALID: uses up its gas at once.
pub const FAILER: Address = address!("0x00000000000000000000000000000000000c0010");
/// Stores CALLER, ORIGIN, CALLVALUE and GASPRICE in slots 0 to 3.
pub const WITNESS: Address = address!("0x00000000000000000000000000000000000c0011");
/// Clears `n` slots behind `start` (words of calldata: n, start).
pub const CLEARER: Address = address!("0x00000000000000000000000000000000000c0012");
/// Calls the address in the first word with the rest of the calldata and logs what that returned, without topics.
pub const ECHO: Address = address!("0x00000000000000000000000000000000000c0013");

pub fn all() -> Vec<(Address, Bytes)> {
    vec![
        (COUNTER, Bytes::from_static(&[0x33, 0x54, 0x60, 1, 0x01, 0x33, 0x55, 0x00])),
        (REVERTER, reverter()),
        (BURNER, Bytes::from_static(&[0x5b, 0x5f, 0x56])),
        (FORWARDER, forwarder(0xf1, true, false)),
        (FORWARD_AND_REVERT, forwarder(0xf1, true, true)),
        (CREATOR, creator()),
        (LOGGER, logger()),
        (WRITER, writer()),
        (DELEGATOR, forwarder(0xf4, false, false)),
        (STATIC_CALLER, forwarder(0xfa, false, false)),
        (CODE_CALLER, forwarder(0xf2, true, false)),
        (CHASER, chaser()),
        (DESTRUCTIBLE, Bytes::from_static(&[0x5f, 0x35, 0xff])),
        (HASHER, Bytes::from_static(&[0x5f, 0x35, 0x40, 0x5f, 0x52, 0x60, 32, 0x5f, 0xf3])),
        (TELLER, teller()),
        (FAILER, Bytes::from_static(&[0xfe])),
        (WITNESS, witness()),
        (CLEARER, clearer()),
        (ECHO, echo()),
    ]
}

/// Calldata of the forwarding contracts.
pub fn to(target: Address, input: &[u8]) -> Bytes {
    let mut data = target.into_word().to_vec();
    data.extend_from_slice(input);
    data.into()
}

/// Two words of calldata.
pub fn words(a: u64, b: u64) -> Bytes {
    let mut data = U256::from(a).to_be_bytes_vec();
    data.extend(U256::from(b).to_be_bytes_vec());
    data.into()
}

/// Init code that deploys `code`.
pub fn deploy(code: &[u8]) -> Bytes {
    let length = u8::try_from(code.len()).expect("a small program");
    let mut init = vec![0x60, length, 0x60, 11, 0x5f, 0x39, 0x60, length, 0x5f, 0xf3, 0x00];
    init.extend_from_slice(code);
    init.into()
}

/// Init code that writes a slot and destroys itself in favour of `heir`.
pub fn born_to_die(heir: Address) -> Bytes {
    let mut init = vec![0x60, 7, 0x60, 3, 0x55, 0x73];
    init.extend_from_slice(heir.as_slice());
    init.push(0xff);
    init.into()
}

/// Init code that destroys itself in favour of itself: what it holds is burned.
pub fn born_to_burn() -> Bytes {
    Bytes::from_static(&[0x30, 0xff])
}

fn reverter() -> Bytes {
    // sstore(1, 9); log0(0, 0); mstore(0, 42); revert(0, 32)
    Bytes::from_static(&[
        0x60, 9, 0x60, 1, 0x55, 0x5f, 0x5f, 0xa0, 0x60, 42, 0x5f, 0x52, 0x60, 32, 0x5f, 0xfd,
    ])
}

fn forwarder(opcode: u8, has_value: bool, ends_in_revert: bool) -> Bytes {
    let mut code = forwarding(opcode, has_value);
    // Where the call failed or we revert by design: revert(0, returndatasize), else return.
    if ends_in_revert {
        code.extend([0x50, 0x3d, 0x5f, 0xfd]);
    } else {
        let success = u8::try_from(code.len() + 6).expect("a small program");
        code.extend([0x60, success, 0x57, 0x3d, 0x5f, 0xfd, 0x5b, 0x3d, 0x5f, 0xf3]);
    }
    code.into()
}

fn echo() -> Bytes {
    let mut code = forwarding(0xf1, true);
    // log0(0, returndatasize)
    code.extend([0x3d, 0x5f, 0xa0, 0x00]);
    code.into()
}

/// Forwards a call; what it returned is at 0 in memory, whether it succeeded on the stack.
fn forwarding(opcode: u8, has_value: bool) -> Vec<u8> {
    // calldatacopy(0, 32, calldatasize - 32)
    let mut code = vec![0x60, 32, 0x36, 0x03, 0x60, 32, 0x5f, 0x37];
    // opcode(gas, target, [value], 0, calldatasize - 32, 0, 0)
    code.extend([0x5f, 0x5f, 0x60, 32, 0x36, 0x03, 0x5f]);
    if has_value {
        code.push(0x34);
    }
    code.extend([0x5f, 0x35, 0x5a, opcode]);
    // returndatacopy(0, 0, returndatasize)
    code.extend([0x3d, 0x5f, 0x5f, 0x3e]);
    code
}

fn creator() -> Bytes {
    // calldatacopy(0, 0, calldatasize); mstore(0, create(callvalue, 0, calldatasize)); return(0, 32)
    Bytes::from_static(&[0x36, 0x5f, 0x5f, 0x37, 0x36, 0x5f, 0x34, 0xf0, 0x5f, 0x52, 0x60, 32, 0x5f, 0xf3])
}

fn logger() -> Bytes {
    // calldatacopy(0, 0, calldatasize); log2(0, calldatasize, 0x11, 0x22)
    Bytes::from_static(&[0x36, 0x5f, 0x5f, 0x37, 0x60, 0x22, 0x60, 0x11, 0x36, 0x5f, 0xa2, 0x00])
}

fn writer() -> Bytes {
    // start + n, +1, swap: sstore(start + n, start + n + 1)
    for_each_slot(&[0x80, 0x60, 32, 0x35, 0x01, 0x80, 0x60, 1, 0x01, 0x90, 0x55])
}

fn clearer() -> Bytes {
    // sstore(start + n, 0)
    for_each_slot(&[0x5f, 0x81, 0x60, 32, 0x35, 0x01, 0x55])
}

/// [n]: loop { if n == 0 stop; body; n -= 1 }
fn for_each_slot(body: &[u8]) -> Bytes {
    let mut code = vec![0x5f, 0x35];
    let head = u8::try_from(code.len()).expect("a small program");
    code.extend([0x5b, 0x80, 0x15]);
    let patch = code.len() + 1;
    code.extend([0x60, 0, 0x57]);
    code.extend(body);
    code.extend([0x60, 1, 0x90, 0x03, 0x60, head, 0x56]);
    code[patch] = u8::try_from(code.len()).expect("a small program");
    code.extend([0x5b, 0x00]);
    code.into()
}

fn chaser() -> Bytes {
    // [slot n]: while n != 0 { slot = sload(slot); n -= 1 }; return slot. Calldata: n, start.
    let mut code = vec![0x60, 32, 0x35, 0x5f, 0x35];
    let head = u8::try_from(code.len()).expect("a small program");
    code.extend([0x5b, 0x80, 0x15]);
    let patch = code.len() + 1;
    code.extend([0x60, 0, 0x57]);
    code.extend([0x90, 0x54, 0x90, 0x60, 1, 0x90, 0x03, 0x60, head, 0x56]);
    code[patch] = u8::try_from(code.len()).expect("a small program");
    code.extend([0x5b, 0x50, 0x5f, 0x52, 0x60, 32, 0x5f, 0xf3]);
    code.into()
}

fn witness() -> Bytes {
    let opcodes = [0x33, 0x32, 0x34, 0x3a].into_iter().zip(0..);
    opcodes.flat_map(|(opcode, slot)| [opcode, 0x60, slot, 0x55]).collect::<Vec<u8>>().into()
}

fn teller() -> Bytes {
    let mut code = Vec::new();
    for (index, opcode) in [0x43, 0x42, 0x44, 0x4a, 0x48, 0x45, 0x41, 0x46].into_iter().enumerate() {
        code.extend([opcode, 0x60, u8::try_from(index * 32).expect("a small program"), 0x52]);
    }
    code.extend([0x61, 1, 0, 0x5f, 0xf3]);
    code.into()
}
