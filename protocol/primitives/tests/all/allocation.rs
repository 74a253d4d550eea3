//! What a decoder allocates is bought with input: a small message cannot make a node reserve much memory.

#![allow(unsafe_code, reason = "an allocator that counts is unsafe by its trait")]

use crate::samples::Kind;
use almanac_primitives::{
    Account, Block, Genesis, Header, Lane, PrologueTransaction, Receipt, RunTransaction, ScheduleId,
    UserTransaction, state::decode_slot,
};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    borrow::Cow,
    cell::Cell,
};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    // Nothing is counted while the thread's own storage is being taken down.
    let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get().saturating_add(bytes)));
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes that may be allocated per byte of input: it is kept decoded and encoded, in vectors that double.
const PER_BYTE: usize = 64;
/// Bytes that may be allocated in any case: the list of a full block is reserved at once.
const FIXED: usize = 80 * 1024;

#[track_caller]
fn assert_modest(name: &str, input: &[u8], is_taken: fn(&[u8]) -> bool) {
    let before = ALLOCATED.get();
    is_taken(input);
    let allocated = ALLOCATED.get() - before;
    let allowed = FIXED + PER_BYTE * input.len();
    assert!(allocated <= allowed, "{name} of {} bytes allocated {allocated}, above {allowed}", input.len());
}

type Decoder = (&'static str, Vec<u8>, fn(&[u8]) -> bool);

fn decoders() -> Vec<Decoder> {
    let genesis = crate::samples::genesis().to_json().into_bytes();
    let mut decoders: Vec<Decoder> = vec![
        ("header", crate::samples::header().encode(), |bytes| Header::decode(bytes).is_ok()),
        ("block", crate::samples::block().encode(), |bytes| Block::decode(bytes).is_ok()),
        ("receipt", crate::samples::receipt_full().encode(), |bytes| Receipt::decode(bytes).is_ok()),
        ("run", crate::samples::run(Lane::Cron).encode(), |bytes| RunTransaction::decode(bytes).is_ok()),
        ("prologue", crate::samples::prologue().encode(), |bytes| PrologueTransaction::decode(bytes).is_ok()),
        ("account", crate::samples::account().encode().to_vec(), |bytes| Account::decode(bytes).is_ok()),
        ("slot", vec![0xff; 32], |bytes| decode_slot(bytes).is_ok()),
        ("schedule id", b"1042-3-0".to_vec(), |bytes| text(bytes).parse::<ScheduleId>().is_ok()),
        ("genesis", genesis, |bytes| Genesis::from_json(&text(bytes)).is_ok()),
    ];
    for kind in Kind::ALL {
        decoders.push(("transaction", crate::samples::signed(kind).encoded().to_vec(), is_transaction));
    }
    decoders
}

fn is_transaction(bytes: &[u8]) -> bool {
    UserTransaction::decode(bytes).is_ok()
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[test]
fn the_allocator_counts() {
    let before = ALLOCATED.get();
    drop(std::hint::black_box(vec![0u8; 1_000_000]));
    assert!(ALLOCATED.get() - before >= 1_000_000);
}

#[test]
fn lengths_that_promise_much_reserve_little() {
    for (name, sample, is_taken) in decoders() {
        assert!(is_taken(&sample), "{name}");
        assert_modest(name, &sample, is_taken);
        for at in 0..sample.len().saturating_sub(3) {
            for promise in [8_192, 1 << 16, 1 << 18, 1 << 21, 1 << 24, 1 << 31, u32::MAX] {
                let mut changed = sample.clone();
                changed[at..at + 4].copy_from_slice(&u32::to_be_bytes(promise));
                assert_modest(name, &changed, is_taken);
                // With nothing behind the promise.
                assert_modest(name, &changed[..at + 4], is_taken);
            }
        }
    }
}

/// RLP writes a length of up to eight bytes after its first.
#[test]
fn rlp_lengths_that_promise_much_reserve_little() {
    for kind in Kind::ALL {
        let sample = crate::samples::signed(kind).encoded().to_vec();
        for at in 0..sample.len() {
            for code in [0xb8u8, 0xb9, 0xbb, 0xbf, 0xf8, 0xf9, 0xfb, 0xff] {
                let promise = [&sample[..at], &[code], &[0x7f; 8], &sample[at..]].concat();
                assert_modest("transaction", &promise, is_transaction);
            }
        }
    }
}
