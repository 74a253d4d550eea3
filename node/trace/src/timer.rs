//! Limits EVM time for one request: an inspector that stops the EVM at the deadline.

use revm::{
    Inspector,
    context_interface::{ContextError, ContextTr},
    interpreter::{CallInputs, CallOutcome, Interpreter, interpreter_types::LoopControl as _},
};
use std::time::{Duration, Instant};

/// Steps between two reads of the clock: few enough to stop within a millisecond.
const STEPS_PER_LOOK: u32 = 1_024;

/// Runs from its creation. One timer can cover several calls, one after the other.
#[derive(Debug)]
pub struct Timer {
    time_max: Duration,
    deadline: Instant,
    /// The only field that a step changes, to keep steps cheap.
    steps_until_look: u32,
    is_over: bool,
}

impl Timer {
    /// Starts a timer with this limit.
    pub fn start(time_max: Duration) -> Self {
        let deadline = Instant::now() + time_max;
        Self { time_max, deadline, steps_until_look: STEPS_PER_LOOK, is_over: false }
    }

    /// The limit.
    pub fn time_max(&self) -> Duration {
        self.time_max
    }

    /// Whether time was up when the clock was last read.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Reads the clock. Also called between calls, which may have no steps.
    pub fn look(&mut self) {
        self.is_over |= Instant::now() > self.deadline;
        self.steps_until_look = STEPS_PER_LOOK;
    }

    /// Counts a step, and reads the clock at intervals.
    #[inline]
    pub(crate) fn count_step(&mut self) {
        self.steps_until_look -= 1;
        if self.steps_until_look == 0 {
            self.look();
        }
    }

    /// Makes the next step read the clock, because a call can take long without a step.
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

/// Ends the transaction with a custom error, which no receipt can contain.
#[cold]
pub(crate) fn stop(interpreter: &mut Interpreter, context: &mut impl ContextTr, reason: &str) {
    if context.error().is_ok() {
        *context.error() = Err(ContextError::Custom(reason.to_owned()));
    }
    interpreter.bytecode.action().take();
    interpreter.bytecode.reset_action();
    interpreter.halt_fatal();
}
