//! Runs the calls of a scheduled transaction on the EVM: from several accounts, one after another, all or nothing.

use crate::{
    machine::{AlmanacEvm, EvmContext, EvmError},
    native::handler::{call_frame, close_root, frame, open_root, run_frames},
};
use almanac_primitives::addresses::SCHEDULE_SERVICE;
use almanac_schedule::record::Call;
use revm::{
    Inspector,
    context::{ContextTr as _, JournalTr as _, LocalContextTr as _},
    context_interface::{journaled_state::JournalCheckpoint, result::HaltReason},
    handler::{FrameResult, Handler},
    interpreter::{gas::GasTracker, interpreter_action::FrameInit},
};
use std::marker::PhantomData;

/// The handler of one list of calls.
pub(crate) struct CallsHandler<'t, 'a, I> {
    calls: &'t [Call],
    is_watched: bool,
    /// Which call failed, if one did.
    pub(crate) failed_call: Option<u8>,
    evm: PhantomData<fn(AlmanacEvm<'a, I>)>,
}

impl<'t, 'a, I: Inspector<EvmContext<'a>>> CallsHandler<'t, 'a, I> {
    /// A handler for these calls, of which there is at least one.
    pub(crate) fn new(calls: &'t [Call], is_watched: bool) -> Self {
        Self { calls, is_watched, failed_call: None, evm: PhantomData }
    }

    fn run_one(
        &mut self,
        evm: &mut AlmanacEvm<'a, I>,
        call: &Call,
        gas: &mut GasTracker,
        is_further: bool,
    ) -> Result<FrameResult, EvmError> {
        // Each call starts with empty memory, and with its own origin.
        evm.ctx.local_mut().clear();
        evm.ctx.tx.caller = call.from;
        let journal = evm.ctx.journal_mut();
        journal.load_account(call.from)?;
        journal.touch_account(call.from);
        let mut result =
            match call_frame(evm, call.from, call.to, (call.value.0, &call.input), gas, is_further)? {
                Some(input) => {
                    let first = frame(evm, input);
                    self.run_exec_loop(evm, first)?
                }
                None => FrameResult::new_call_oog(gas.limit(), 0..0, gas.reservoir()),
            };
        self.last_frame_result(evm, &mut result, gas)?;
        Ok(result)
    }
}

impl<'a, I: Inspector<EvmContext<'a>>> Handler for CallsHandler<'_, 'a, I> {
    type Evm = AlmanacEvm<'a, I>;
    type Error = EvmError;
    type HaltReason = HaltReason;

    fn execution(
        &mut self,
        evm: &mut Self::Evm,
        checkpoint: JournalCheckpoint,
        gas: &mut GasTracker,
    ) -> Result<Option<FrameResult>, EvmError> {
        let calls = self.calls;
        let first = calls.first().expect("a schedule has a call");
        // One call is its own root.
        let root =
            (self.is_watched && calls.len() > 1).then(|| open_root(evm, first.from, SCHEDULE_SERVICE, gas));
        let mut result = self.run_one(evm, first, gas, false)?;
        for (index, call) in (1u8..).zip(&calls[1..]) {
            if !result.instruction_result().is_ok() {
                break;
            }
            result = self.run_one(evm, call, gas, true)?;
            self.failed_call = (!result.instruction_result().is_ok()).then_some(index);
        }
        if result.instruction_result().is_ok() {
            evm.ctx.journal_mut().checkpoint_commit();
        } else {
            if calls.len() > 1 {
                self.failed_call.get_or_insert(0);
            }
            evm.ctx.journal_mut().checkpoint_revert(checkpoint);
            // What earlier calls were to get back was undone with them.
            gas.set_refunded(0);
            *result.gas_mut().tracker_mut() = *gas;
        }
        if let Some(root) = root {
            close_root(evm, &root, &result);
        }
        Ok(Some(result))
    }

    fn run_exec_loop(&mut self, evm: &mut Self::Evm, first: FrameInit) -> Result<FrameResult, EvmError> {
        run_frames(evm, first, self.is_watched, |_| Ok(()))
    }
}
