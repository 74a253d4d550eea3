//! Takes turns on the machine: a test that measures time or load runs alone, other networks two at a time.
//!
//! A turn belongs to the thread of a test and ends with it.

use std::{
    cell::RefCell,
    sync::{Condvar, Mutex},
};

/// Who uses the machine, and who waits to use it alone.
struct Turns {
    shared: usize,
    is_alone: bool,
    waiting_alone: usize,
}

static TURNS: Mutex<Turns> = Mutex::new(Turns { shared: 0, is_alone: false, waiting_alone: 0 });
static CHANGED: Condvar = Condvar::new();

thread_local! {
    static TURN: RefCell<Option<Turn>> = const { RefCell::new(None) };
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Shared,
    Alone,
}

struct Turn(Kind);

impl Drop for Turn {
    fn drop(&mut self) {
        let mut turns = TURNS.lock().unwrap();
        match self.0 {
            Kind::Shared => turns.shared -= 1,
            Kind::Alone => turns.is_alone = false,
        }
        CHANGED.notify_all();
    }
}

/// Waits until no test uses the machine alone.
pub fn share() {
    TURN.with_borrow_mut(|turn| {
        if turn.is_some() {
            return;
        }
        let turns = TURNS.lock().unwrap();
        let mut turns = CHANGED.wait_while(turns, |turns| turns.is_alone || turns.waiting_alone > 0).unwrap();
        turns.shared += 1;
        *turn = Some(Turn(Kind::Shared));
    });
}

/// Waits until no other test uses the machine.
pub fn alone() {
    TURN.with_borrow_mut(|turn| {
        if turn.as_ref().is_some_and(|turn| turn.0 == Kind::Alone) {
            return;
        }
        // The turn of the test before, where tests share a thread.
        drop(turn.take());
        let mut turns = TURNS.lock().unwrap();
        turns.waiting_alone += 1;
        let mut turns = CHANGED.wait_while(turns, |turns| turns.is_alone || turns.shared > 0).unwrap();
        turns.waiting_alone -= 1;
        turns.is_alone = true;
        *turn = Some(Turn(Kind::Alone));
    });
}
