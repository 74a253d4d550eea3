//! Limits on the time and memory of a trace, enforced by a second inspector beside the tracer's own.

use crate::{
    error::TraceError,
    timer::{Timer, stop},
    tracer::Keeps,
};
use alloy_primitives::{Address, U256};
use revm::{
    Inspector,
    bytecode::opcode::{SLOAD, SSTORE},
    context_interface::ContextTr,
    interpreter::{
        CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter,
        interpreter_types::{InputsTr as _, Jumps as _},
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Memory of one step, without the EVM's stack and memory.
const STEP_BYTES: u64 = 256;

/// Memory of one stack word, which is copied once while the answer is built.
const STACK_WORD_BYTES: u64 = 64;

/// Memory of one byte of EVM memory, which becomes text.
const MEMORY_BYTE_BYTES: u64 = 4;

/// Memory of one slot in a list of slots.
const SLOT_BYTES: u64 = 96;

/// Memory of one call, without input and output.
const CALL_BYTES: u64 = 512;

/// The limits of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Total time.
    pub time_max: Duration,
    /// Approximate bytes that the tracer holds.
    pub bytes_max: u64,
}

impl Limits {
    /// For a whole block, or a transaction including those before it.
    pub const BLOCK: Self = Self { time_max: Duration::from_secs(10), bytes_max: 64 << 20 };
    /// For a simulated call.
    pub const CALL: Self = Self { time_max: Duration::from_secs(2), bytes_max: 64 << 20 };
}

/// Counts time and bytes, and stops the EVM when a limit is exceeded.
#[derive(Debug)]
pub(crate) struct Limiter {
    limits: Limits,
    keeps: Keeps,
    timer: Timer,
    bytes: u64,
    steps: u64,
    slots: BTreeMap<Address, BTreeSet<U256>>,
}

impl Limiter {
    pub(crate) fn new(limits: Limits, keeps: Keeps) -> Self {
        let timer = Timer::start(limits.time_max);
        Self { limits, keeps, timer, bytes: 0, steps: 0, slots: BTreeMap::new() }
    }

    /// The limit that was exceeded, if any.
    pub(crate) fn error(&self) -> Option<TraceError> {
        if self.bytes > self.limits.bytes_max {
            Some(TraceError::TooLarge { max_bytes: self.limits.bytes_max })
        } else if self.timer.is_over() {
            Some(TraceError::TooLong { max_ms: self.limits.time_max.as_millis() })
        } else {
            None
        }
    }

    /// Adds what the tracer's inspector counted itself.
    pub(crate) fn add(&mut self, counted: Option<usize>) {
        self.hold(counted.map_or(u64::MAX, length));
    }

    fn hold(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn hold_step(&mut self, interpreter: &Interpreter) {
        let stack = if self.keeps.stack { interpreter.stack.len() } else { 0 };
        let memory = if self.keeps.memory { interpreter.memory.len() } else { 0 };
        let slots = if self.keeps.storage { self.slots_at(interpreter) } else { 0 };
        let lists = length(stack) * STACK_WORD_BYTES + length(slots) * SLOT_BYTES;
        self.hold(STEP_BYTES + lists + length(memory) * MEMORY_BYTE_BYTES);
    }

    /// How many slots are listed with a step.
    fn slots_at(&mut self, interpreter: &Interpreter) -> usize {
        if !matches!(interpreter.bytecode.opcode(), SLOAD | SSTORE) {
            return 0;
        }
        let Ok(slot) = interpreter.stack.peek(0) else { return 0 };
        let slots = self.slots.entry(interpreter.input.target_address()).or_default();
        slots.insert(slot);
        slots.len()
    }

    /// Checks the clock. Also called between transactions, which may have no steps.
    pub(crate) fn look_at_clock(&mut self) {
        self.timer.look();
    }

    fn stop_if_passed(&self, interpreter: &mut Interpreter, context: &mut impl ContextTr) {
        if self.timer.is_over() || self.bytes > self.limits.bytes_max {
            stop(interpreter, context, "the trace passed a limit");
        }
    }
}

impl<C: ContextTr> Inspector<C> for Limiter {
    fn initialize_interp(&mut self, interpreter: &mut Interpreter, context: &mut C) {
        self.look_at_clock();
        self.stop_if_passed(interpreter, context);
    }

    fn step(&mut self, interpreter: &mut Interpreter, context: &mut C) {
        if self.steps < self.keeps.steps_max {
            self.steps += 1;
            self.hold_step(interpreter);
        }
        self.timer.count_step();
        self.stop_if_passed(interpreter, context);
    }

    fn call(&mut self, _: &mut C, inputs: &mut CallInputs) -> Option<CallOutcome> {
        self.timer.count_call();
        self.hold(CALL_BYTES + length(inputs.input.len()));
        None
    }

    fn call_end(&mut self, _: &mut C, _: &CallInputs, outcome: &mut CallOutcome) {
        self.hold(length(outcome.result.output.len()));
    }

    fn create(&mut self, _: &mut C, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        self.hold(CALL_BYTES + length(inputs.init_code().len()));
        None
    }

    fn create_end(&mut self, _: &mut C, _: &CreateInputs, outcome: &mut CreateOutcome) {
        self.hold(length(outcome.result.output.len()));
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
