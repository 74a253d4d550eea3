//! Limits EVM time for one request: an inspector that stops the EVM at the deadline.

use revm::{
    Inspector,
    context_interface::{ContextError, ContextTr},
    interpreter::{CallInputs, CallOutcome, Interpreter, interpreter_types::LoopControl as _},
};
use std::time::{Duration, Instant};

/// The clock is asked every so many steps: often enough to stop within a millisecond.
const STEPS_PER_LOOK: u32 = 1_024;

/// Runs from the moment it is made. One timer can look on at several calls, one after the other.
#[derive(Debug)]
pub struct Timer {
    time_max: Duration,
    deadline: Instant,
    /// The only thing that a step changes: a request that takes no time shall not pay for those that do.
    steps_until_look: u32,
    is_over: bool,
}

impl Timer {
    /// So much time, from now on.
    pub fn start(time_max: Duration) -> Self {
        let deadline = Instant::now() + time_max;
        Self { time_max, deadline, steps_until_look: STEPS_PER_LOOK, is_over: false }
    }

    /// All the time there was.
    pub fn time_max(&self) -> Duration {
        self.time_max
    }

    /// Whether time was over when the clock was asked last.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Asks the clock: also between calls, which may have no steps.
    pub fn look(&mut self) {
        self.is_over |= Instant::now() > self.deadline;
        self.steps_until_look = STEPS_PER_LOOK;
    }

    /// Counts a step, and asks the clock now and then.
    #[inline]
    pub(crate) fn count_step(&mut self) {
        self.steps_until_look -= 1;
        if self.steps_until_look == 0 {
            self.look();
        }
    }

    /// A call can take long without a step of its own: the next step asks the clock.
    pub(crate) fn count_call(&mut self) {
        self.steps_until_look = 1;
    }
}

impl<C: ContextTr> Inspector<C> for Timer {
    #[inline]
    fn step(&mut self, interpreter: &mut Interpreter, context: &mut C) {
        self.count_step();
        if self.is_over {
            stop(interpreter, context, "time is over");
        }
    }

    fn call(&mut self, _: &mut C, _: &mut CallInputs) -> Option<CallOutcome> {
        self.count_call();
        None
    }
}

/// Ends the transaction with an error of its own, which no receipt can hold.
#[cold]
pub(crate) fn stop(interpreter: &mut Interpreter, context: &mut impl ContextTr, reason: &str) {
    if context.error().is_ok() {
        *context.error() = Err(ContextError::Custom(reason.to_owned()));
    }
    interpreter.bytecode.action().take();
    interpreter.bytecode.reset_action();
    interpreter.halt_fatal();
}
