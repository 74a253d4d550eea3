//! Takes turns on the machine: a test that measures time or load runs alone, other networks two at a time.
//!
//! A turn belongs to the thread of a test and ends with it.

use std::{
    cell::RefCell,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
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

/// Longest time that a machine is kept busy, whatever becomes of the test.
const BUSY_MAX: Duration = Duration::from_secs(600);

/// Keeps the processors busy until it is dropped.
pub struct Busy(Arc<AtomicBool>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes the machine slow: so many threads for each processor compute without end beside the test.
pub fn busy(threads_per_processor: usize) -> Busy {
    let (begin, is_over) = (Instant::now(), Arc::new(AtomicBool::new(false)));
    let processors = thread::available_parallelism().map_or(1, usize::from);
    for _ in 0..threads_per_processor * processors {
        let is_over = is_over.clone();
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) && begin.elapsed() < BUSY_MAX {
                std::hint::spin_loop();
            }
        });
    }
    Busy(is_over)
}
