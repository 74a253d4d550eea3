//! Runs a native transaction on the EVM: its fees, its calls one after another, all or nothing.

use crate::{
    handler::{open_reserve, refund, tip_for_runs},
    machine::{AlmanacEvm, EvmContext, EvmError},
};
use alloy_primitives::{Address, Bytes, TxHash, U256};
use almanac_primitives::{
    NativeCall, NativeTransaction,
    native::Kind,
    params::{NEW_ACCOUNT_GAS, PARTY_GAS},
};
use revm::{
    Inspector,
    context::{Block as _, Cfg as _, ContextTr, JournalTr, LocalContextTr as _, Transaction as _},
    context_interface::{
        journaled_state::{JournalCheckpoint, account::JournaledAccountTr as _},
        result::{HaltReason, InvalidTransaction},
    },
    handler::{EvmTr, FrameResult, Handler, ItemOrResult},
    inspector::InspectorEvmTr as _,
    interpreter::{
        CallInput, CallInputs, CallOutcome, CallScheme, CallValue, CreateInputs, CreateScheme, FrameInput,
        InitialAndFloorGas, InterpreterResult, SharedMemory, gas::GasTracker, interpreter_action::FrameInit,
    },
    state::Bytecode,
};
use std::marker::PhantomData;

/// Journal depth of a direct call, where the transaction has one.
pub(crate) const DIRECT_DEPTH: usize = 1;
/// The same in a batch, which keeps a checkpoint open around its calls.
const BATCH_DIRECT_DEPTH: usize = 2;

/// The handler of one native transaction.
pub(crate) struct NativeHandler<'t, 'a, I> {
    native: &'t NativeTransaction,
    hash: TxHash,
    gas: InitialAndFloorGas,
    is_watched: bool,
    /// The sender's number before an orderless creation.
    nonce_to_restore: Option<u64>,
    /// Which call failed, if one did.
    pub(crate) failed_call: Option<u8>,
    evm: PhantomData<fn(AlmanacEvm<'a, I>)>,
}

impl<'t, 'a, I: Inspector<EvmContext<'a>>> NativeHandler<'t, 'a, I> {
    /// A handler that charges `gas` before the first call.
    pub(crate) fn new(
        native: &'t NativeTransaction,
        hash: TxHash,
        gas: InitialAndFloorGas,
        is_watched: bool,
    ) -> Self {
        Self { native, hash, gas, is_watched, nonce_to_restore: None, failed_call: None, evm: PhantomData }
    }

    fn payer(&self) -> Address {
        self.native.fee_payer.unwrap_or(self.native.sender)
    }

    /// Runs the only call in a frame of its own, which undoes itself if it fails.
    fn run_single(
        &mut self,
        evm: &mut AlmanacEvm<'a, I>,
        call: &NativeCall,
        gas: &mut GasTracker,
    ) -> Result<FrameResult, EvmError> {
        evm.precompiles.set_direct_depth(Some(DIRECT_DEPTH));
        let input = match call.to {
            Some(target) => {
                call_frame(evm, self.native.sender, target, (call.value, &call.input), gas, false)?
                    .expect("only further calls are charged for their target")
            }
            None => self.creation_frame(evm, call, gas)?,
        };
        let first = frame(evm, input);
        let mut result = self.run_exec_loop(evm, first)?;
        self.last_frame_result(evm, &mut result, gas)?;
        if !result.instruction_result().is_ok() {
            self.restore_nonce(evm)?;
            self.failed_call = Some(0);
        }
        Ok(result)
    }

    /// Runs all calls of a batch within one checkpoint.
    fn run_batch(
        &mut self,
        evm: &mut AlmanacEvm<'a, I>,
        gas: &mut GasTracker,
    ) -> Result<FrameResult, EvmError> {
        evm.precompiles.set_direct_depth(Some(BATCH_DIRECT_DEPTH));
        let root = self.is_watched.then(|| open_root(evm, self.native.sender, self.native.sender, gas));
        let checkpoint = evm.ctx.journal_mut().checkpoint();
        let mut last = None;
        for (index, call) in (0u8..).zip(&self.native.calls) {
            let result = self.run_one(evm, index, call, gas)?;
            let is_ok = result.instruction_result().is_ok();
            last = Some(result);
            if !is_ok {
                self.failed_call = Some(index);
                break;
            }
        }
        let mut result = last.expect("a batch has calls");
        if self.failed_call.is_some() {
            evm.ctx.journal_mut().checkpoint_revert(checkpoint);
            // What earlier calls were to get back was undone with them.
            gas.set_refunded(0);
            *result.gas_mut().tracker_mut() = *gas;
        } else {
            evm.ctx.journal_mut().checkpoint_commit();
        }
        if let Some(root) = root {
            close_root(evm, &root, &result);
        }
        Ok(result)
    }

    fn run_one(
        &mut self,
        evm: &mut AlmanacEvm<'a, I>,
        index: u8,
        call: &NativeCall,
        gas: &mut GasTracker,
    ) -> Result<FrameResult, EvmError> {
        // Each call starts with empty memory.
        evm.ctx.local_mut().clear();
        let target = call.to.expect("a creation stands alone");
        let (sender, sent) = (self.native.sender, (call.value, &call.input));
        let mut result = match call_frame(evm, sender, target, sent, gas, index > 0)? {
            Some(input) => {
                let first = frame(evm, input);
                self.run_exec_loop(evm, first)?
            }
            None => FrameResult::new_call_oog(gas.limit(), 0..0, gas.reservoir()),
        };
        self.last_frame_result(evm, &mut result, gas)?;
        Ok(result)
    }

    /// Of an orderless creation, the address comes from the transaction's hash: its nonce is not the account's, and the
    /// account's number does not move.
    fn creation_frame(
        &mut self,
        evm: &mut AlmanacEvm<'a, I>,
        call: &NativeCall,
        gas: &GasTracker,
    ) -> Result<FrameInput, EvmError> {
        let sender = self.native.sender;
        let scheme = match self.native.kind {
            Kind::Sequence => CreateScheme::Create,
            Kind::Orderless => {
                self.nonce_to_restore = Some(evm.ctx.journal_mut().load_account(sender)?.info.nonce);
                CreateScheme::Create2 { salt: NativeTransaction::creation_salt(self.hash) }
            }
        };
        let inputs = CreateInputs::new(
            sender,
            scheme,
            call.value,
            call.input.clone(),
            gas.remaining(),
            gas.reservoir(),
        );
        Ok(FrameInput::Create(Box::new(inputs)))
    }

    /// The EVM raises the sender's number with every creation. Taken back before the first step of the init code, and
    /// once more if that fails, which undoes the taking back.
    fn restore_nonce(&self, evm: &mut AlmanacEvm<'a, I>) -> Result<(), EvmError> {
        if let Some(nonce) = self.nonce_to_restore {
            evm.ctx.journal_mut().load_account_mut(self.native.sender)?.set_nonce(nonce);
        }
        Ok(())
    }
}

impl<'a, I: Inspector<EvmContext<'a>>> Handler for NativeHandler<'_, 'a, I> {
    type Evm = AlmanacEvm<'a, I>;
    type Error = EvmError;
    type HaltReason = HaltReason;

    fn validate_initial_tx_gas(&self, evm: &mut Self::Evm) -> Result<InitialAndFloorGas, EvmError> {
        let gas_limit = evm.ctx.tx().gas_limit();
        let initial_gas = self.gas.initial_total_gas().max(self.gas.floor_gas());
        if initial_gas > gas_limit {
            return Err(InvalidTransaction::CallGasCostMoreThanGasLimit { initial_gas, gas_limit }.into());
        }
        open_reserve(evm, &self.gas);
        Ok(self.gas)
    }

    fn validate_against_state_and_deduct_caller(
        &self,
        evm: &mut Self::Evm,
        _: &mut InitialAndFloorGas,
    ) -> Result<(), EvmError> {
        let (native, payer) = (self.native, self.payer());
        let base_fee = u128::from(evm.ctx.block().basefee());
        let price = evm.ctx.tx().effective_gas_price(base_fee);
        let fee = U256::from(price) * U256::from(native.gas_limit);
        let is_nonce_checked = !evm.ctx.cfg().is_nonce_check_disabled();
        let journal = evm.ctx.journal_mut();
        let mut sender = journal.load_account_with_code_mut(native.sender)?.data;
        let short = |fee: U256, balance: U256| InvalidTransaction::LackOfFundForMaxFee {
            fee: Box::new(fee),
            balance: Box::new(balance),
        };
        let (value, balance) = (native.value(), *sender.balance());
        if value > balance {
            return Err(short(value, balance).into());
        }
        if native.kind == Kind::Sequence {
            let (tx, state) = (native.nonce, sender.nonce());
            if tx != state && is_nonce_checked {
                return Err(InvalidTransaction::NonceTooLow { tx, state }.into());
            }
            // A creation raises it when its frame is made.
            if !native.is_create() {
                sender.bump_nonce();
            }
        }
        let mut payer = journal.load_account_mut(payer)?.data;
        let balance = *payer.balance();
        if !payer.decr_balance(fee) {
            return Err(short(fee, balance).into());
        }
        Ok(())
    }

    fn execution(
        &mut self,
        evm: &mut Self::Evm,
        _: JournalCheckpoint,
        gas: &mut GasTracker,
    ) -> Result<Option<FrameResult>, EvmError> {
        // Opened for authorisations, of which there are none.
        evm.ctx.journal_mut().checkpoint_commit();
        let native = self.native;
        let result = match native.only_call() {
            Some(call) => self.run_single(evm, call, gas)?,
            None => self.run_batch(evm, gas)?,
        };
        Ok(Some(result))
    }

    fn run_exec_loop(&mut self, evm: &mut Self::Evm, first: FrameInit) -> Result<FrameResult, EvmError> {
        run_frames(evm, first, self.is_watched, |evm| self.restore_nonce(evm))
    }

    fn refund(
        &self,
        evm: &mut Self::Evm,
        result: &mut FrameResult,
        delegations: i64,
    ) -> Result<(), EvmError> {
        refund(evm, result, delegations);
        Ok(())
    }

    fn reimburse_caller(&self, evm: &mut Self::Evm, result: &mut FrameResult) -> Result<(), EvmError> {
        let base_fee = u128::from(evm.ctx.block().basefee());
        let price = evm.ctx.tx().effective_gas_price(base_fee);
        let gas = result.gas();
        let refunded = u64::try_from(gas.refunded()).unwrap_or(0);
        let unused = gas.remaining() + gas.reservoir() + refunded;
        let back = U256::from(price) * U256::from(unused);
        evm.ctx.journal_mut().load_account_mut(self.payer())?.incr_balance(back);
        tip_for_runs(evm, self.payer(), result)
    }
}

/// The default loop, watched or not. Calls `started` before the first step of the first frame.
pub(crate) fn run_frames<'a, I: Inspector<EvmContext<'a>>>(
    evm: &mut AlmanacEvm<'a, I>,
    first: FrameInit,
    is_watched: bool,
    started: impl FnOnce(&mut AlmanacEvm<'a, I>) -> Result<(), EvmError>,
) -> Result<FrameResult, EvmError> {
    let first = if is_watched { evm.inspect_frame_init(first)? } else { evm.frame_init(first)? };
    if let ItemOrResult::Result(result) = first {
        return Ok(result);
    }
    started(evm)?;
    loop {
        let step = if is_watched { evm.inspect_frame_run()? } else { evm.frame_run()? };
        let result = match step {
            ItemOrResult::Item(init) => {
                let next = if is_watched { evm.inspect_frame_init(init)? } else { evm.frame_init(init)? };
                match next {
                    ItemOrResult::Item(_) => continue,
                    ItemOrResult::Result(result) => result,
                }
            }
            ItemOrResult::Result(result) => result,
        };
        if let Some(result) = evm.frame_return_result(result)? {
            return Ok(result);
        }
    }
}

/// A frame with the shared memory of its transaction.
pub(crate) fn frame<'a, I>(evm: &mut AlmanacEvm<'a, I>, frame_input: FrameInput) -> FrameInit {
    let mut memory = SharedMemory::new_with_buffer(evm.ctx.local().shared_memory_buffer().clone());
    memory.set_memory_limit(evm.ctx.cfg().memory_limit());
    FrameInit { depth: 0, memory, frame_input }
}

/// A call of `sender`. A further call of a batch pays for making an account and for looking up a delegation, as
/// CALL does; `None` if its gas does not cover that.
pub(crate) fn call_frame<'a, I>(
    evm: &mut AlmanacEvm<'a, I>,
    sender: Address,
    target: Address,
    (value, input): (U256, &Bytes),
    gas: &mut GasTracker,
    is_further: bool,
) -> Result<Option<FrameInput>, EvmError> {
    let journal = evm.ctx.journal_mut();
    let account = &journal.load_account_with_code(target)?.info;
    let is_new = !value.is_zero() && account.is_empty();
    let delegate = account.code.as_ref().and_then(Bytecode::eip7702_address);
    let mut known_bytecode = (account.code_hash(), account.code.clone().unwrap_or_default());
    if is_further && is_new && !gas.record_regular_cost(NEW_ACCOUNT_GAS) {
        return Ok(None);
    }
    if let Some(delegate) = delegate {
        if is_further && !gas.record_regular_cost(PARTY_GAS) {
            return Ok(None);
        }
        let account = &journal.load_account_with_code(delegate)?.info;
        known_bytecode = (account.code_hash(), account.code.clone().unwrap_or_default());
    }
    Ok(Some(FrameInput::Call(Box::new(CallInputs {
        input: CallInput::Bytes(input.clone()),
        gas_limit: gas.remaining(),
        target_address: target,
        bytecode_address: target,
        known_bytecode,
        caller: sender,
        value: CallValue::Transfer(value),
        scheme: CallScheme::Call,
        is_static: false,
        return_memory_offset: 0..0,
        reservoir: gas.reservoir(),
        charged_new_account_state_gas: false,
    }))))
}

/// Shows a tracer what stands above the calls of a batch: one tree needs one root.
pub(crate) fn open_root<'a, I: Inspector<EvmContext<'a>>>(
    evm: &mut AlmanacEvm<'a, I>,
    caller: Address,
    target: Address,
    gas: &GasTracker,
) -> CallInputs {
    let mut root = root_call(caller, target, gas);
    let _ = evm.inspector.call(&mut evm.ctx, &mut root);
    root
}

/// Shows a tracer how the batch ended.
pub(crate) fn close_root<'a, I: Inspector<EvmContext<'a>>>(
    evm: &mut AlmanacEvm<'a, I>,
    root: &CallInputs,
    result: &FrameResult,
) {
    let result = InterpreterResult {
        result: result.instruction_result(),
        output: result.output().into_data(),
        gas: *result.gas(),
    };
    let mut outcome = CallOutcome::new(result, 0..0);
    evm.inspector.call_end(&mut evm.ctx, root, &mut outcome);
}

fn root_call(caller: Address, target: Address, gas: &GasTracker) -> CallInputs {
    CallInputs {
        input: CallInput::Bytes(Bytes::new()),
        gas_limit: gas.remaining(),
        target_address: target,
        bytecode_address: target,
        known_bytecode: Default::default(),
        caller,
        value: CallValue::Transfer(U256::ZERO),
        scheme: CallScheme::Call,
        is_static: false,
        return_memory_offset: 0..0,
        reservoir: 0,
        charged_new_account_state_gas: false,
    }
}
