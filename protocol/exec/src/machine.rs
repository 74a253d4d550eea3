//! The EVM of one block: revm with our precompiles over the block's state.

use crate::{
    doors::DoorBlock,
    environment::Environment,
    error::{Fault, StateFault},
    footprint::Footprint,
    handler::UserHandler,
    ledger::SystemLedger,
    native::handler::{DIRECT_DEPTH, NativeHandler},
    place::Place,
    precompiles::Precompiles,
    reserve::Reserve,
    signed::CallsHandler,
    state::{Balances, BlockState},
    validate::SPEC,
};
use alloy_primitives::{Address, TxHash, TxKind, U256};
use almanac_primitives::{
    NativeTransaction, RecoveredTransaction, StateRead, addresses::LEDGER, native::Kind,
};
use almanac_schedule::{life::Event, record::Call};
use revm::{
    Inspector,
    context::{
        BlockEnv, CfgEnv, Context, ContextSetters, ContextTr, Evm, FrameStack, Journal, JournalTr, TxEnv,
    },
    context_interface::{
        block::BlobExcessGasAndPrice,
        either::Either,
        result::{EVMError, ExecutionResult, InvalidTransaction},
        transaction::{RecoveredAuthority, RecoveredAuthorization},
    },
    handler::{EthFrame, Handler, MainnetHandler, instructions::EthInstructions},
    inspector::InspectorHandler,
    interpreter::{InitialAndFloorGas, interpreter::EthInterpreter},
    state::EvmState,
};

/// What the EVM, its precompiles and inspectors see.
pub type EvmContext<'a> = Context<BlockEnv, TxEnv, CfgEnv, BlockState<'a>, Journal<BlockState<'a>>, ()>;

pub(crate) type AlmanacEvm<'a, I> = Evm<
    EvmContext<'a>,
    I,
    EthInstructions<EthInterpreter, EvmContext<'a>>,
    Precompiles,
    EthFrame<EthInterpreter>,
>;

pub(crate) type EvmError = EVMError<StateFault, InvalidTransaction>;

type AlmanacHandler<'a, I> = MainnetHandler<AlmanacEvm<'a, I>, EvmError, EthFrame<EthInterpreter>>;

/// Executes single transactions on the state of a block.
pub(crate) struct Machine<'a, I> {
    evm: AlmanacEvm<'a, I>,
}

/// Which checks of the EVM are disabled: none in a block, some in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// All checks of a block.
    Block,
    /// As in `eth_call`: any address may call, without money for gas.
    Simulation,
}

/// Why a transaction could not be executed.
#[derive(Debug)]
pub(crate) enum MachineError {
    /// The EVM rejected it; nothing changed.
    Refused(InvalidTransaction),
    /// The state failed.
    State(StateFault),
    /// revm reported a condition that our configuration rules out.
    Fault(Fault),
}

/// The effects of one transaction. They enter the block's state only when its changes are committed.
#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) result: ExecutionResult,
    pub(crate) balances: Balances,
    pub(crate) changes: EvmState,
    /// Schedule events that doors reported.
    pub(crate) events: Vec<Event>,
    /// Which call of a list failed, if one did.
    pub(crate) failed_call: Option<u8>,
    /// Gas that it set aside for runs. What it spent contains it only where nobody pays for it.
    pub(crate) set_aside: u64,
    /// What it touched, if it was watched. Large and rare.
    pub(crate) footprint: Option<Box<Footprint>>,
}

/// The effects of an operation of the chain itself. They enter the block's state only when its changes are
/// committed.
#[derive(Debug)]
pub(crate) struct Acted<T> {
    pub(crate) value: T,
    pub(crate) balances: Balances,
    pub(crate) changes: EvmState,
}

impl<'a, I: Inspector<EvmContext<'a>>> Machine<'a, I> {
    pub(crate) fn new(
        state: BlockState<'a>,
        environment: &Environment,
        strictness: Strictness,
        inspector: I,
    ) -> Self {
        let mut ctx: EvmContext<'a> = Context::new(state, SPEC);
        ctx.block = block_env(environment);
        ctx.cfg.chain_id = environment.chain.id;
        // EIP-7825's cap is below what a scheduled batch may need; the block limit applies instead.
        ctx.cfg.tx_gas_limit_cap = Some(u64::MAX);
        if strictness == Strictness::Simulation {
            ctx.cfg.disable_base_fee = true;
            ctx.cfg.disable_block_gas_limit = true;
            ctx.cfg.disable_eip3607 = true;
            ctx.cfg.disable_nonce_check = true;
        }
        let evm = Evm {
            ctx,
            inspector,
            instruction: EthInstructions::new_mainnet_with_spec(SPEC),
            precompiles: Precompiles::new(
                DoorBlock {
                    parameters: environment.parameters.clone(),
                    moment: environment.moment(),
                    chain: environment.chain,
                },
                Place::first_of(environment.number),
            ),
            frame_stack: FrameStack::new_prealloc(8),
        };
        Self { evm }
    }

    pub(crate) fn state(&mut self) -> &mut BlockState<'a> {
        &mut self.evm.ctx.journaled_state.database
    }

    /// The state that the block started from.
    pub(crate) fn parent(&self) -> &'a dyn StateRead {
        self.evm.ctx.journaled_state.database.parent()
    }

    pub(crate) fn inspector(&mut self) -> &mut I {
        &mut self.evm.inspector
    }

    /// Executes a user transaction with its fees, nonce and refunds.
    pub(crate) fn transact_user(
        &mut self,
        recovered: &RecoveredTransaction,
        is_watched: bool,
    ) -> Result<Executed, MachineError> {
        // EIP-3607 rejects senders with code. An impersonated contract has not signed.
        self.evm.ctx.cfg.disable_eip3607 = recovered.transaction().impersonated().is_some();
        let mut tx = tx_env(recovered);
        self.void_authorizations(&mut tx).map_err(MachineError::State)?;
        self.transact(tx, is_watched)
    }

    /// Executes a native transaction that pays `gas` before its first call.
    pub(crate) fn transact_native(
        &mut self,
        hash: TxHash,
        native: &NativeTransaction,
        gas: InitialAndFloorGas,
        is_watched: bool,
    ) -> Result<Executed, MachineError> {
        self.evm.ctx.set_tx(native_tx_env(native));
        let mut handler = NativeHandler::<'_, 'a, I>::new(native, hash, gas, is_watched);
        let result = handler.run(&mut self.evm);
        let failed_call = handler.failed_call;
        Ok(Executed { failed_call, ..self.finish(result, is_watched)? })
    }

    /// An account with a key record gives no delegations by the key that its address derives from (ORDERLESS-14).
    pub(crate) fn void_authorizations(&mut self, tx: &mut TxEnv) -> Result<(), StateFault> {
        for authorization in &mut tx.authorization_list {
            let (inner, authority) = match authorization {
                Either::Left(signed) => (signed.inner().clone(), signed.recover_authority().ok()),
                Either::Right(recovered) => ((**recovered).clone(), recovered.authority()),
            };
            let Some(authority) = authority else { continue };
            if self.state().is_keyed(authority)? {
                let void = RecoveredAuthorization::new_unchecked(inner, RecoveredAuthority::Invalid);
                *authorization = Either::Right(void);
            }
        }
        Ok(())
    }

    /// Executes a transaction with its fees, nonce and refunds.
    pub(crate) fn transact(&mut self, tx: TxEnv, is_watched: bool) -> Result<Executed, MachineError> {
        self.evm.ctx.set_tx(tx);
        self.evm.precompiles.set_direct_depth(Some(DIRECT_DEPTH));
        let mut handler = UserHandler::<'a, I>::default();
        let result = if is_watched { handler.inspect_run(&mut self.evm) } else { handler.run(&mut self.evm) };
        self.finish(result, is_watched)
    }

    /// Executes a call that the chain itself makes: no nonce, no fee, no intrinsic gas. It may set gas aside as `reserve`
    /// allows.
    pub(crate) fn call_as_system(
        &mut self,
        tx: TxEnv,
        reserve: Reserve,
        is_watched: bool,
    ) -> Result<Executed, MachineError> {
        let from = tx.caller;
        self.state().reserve = reserve;
        self.evm.ctx.set_tx(tx);
        self.evm.precompiles.set_direct_depth(None);
        let mut handler = AlmanacHandler::<'a, I>::default();
        // A system call skips the step that loads and touches caller and target. Without it revm panics on
        // value from an unloaded sender, and the changes of a sender that calls itself are lost.
        let result = handler
            .load_accounts(&mut self.evm)
            .and_then(|()| {
                self.evm.ctx.journal_mut().load_account(from)?;
                self.evm.ctx.journal_mut().touch_account(from);
                Ok(())
            })
            .and_then(|()| {
                if is_watched {
                    handler.inspect_run_system_call(&mut self.evm)
                } else {
                    handler.run_system_call(&mut self.evm)
                }
            });
        self.finish(result, is_watched)
    }

    /// The same for a list of calls, all or nothing.
    pub(crate) fn call_list_as_system(
        &mut self,
        tx: TxEnv,
        calls: &[Call],
        reserve: Reserve,
        is_watched: bool,
    ) -> Result<Executed, MachineError> {
        self.state().reserve = reserve;
        self.evm.ctx.set_tx(tx);
        self.evm.precompiles.set_direct_depth(None);
        let mut handler = CallsHandler::<'_, 'a, I>::new(calls, is_watched);
        let result =
            handler.load_accounts(&mut self.evm).and_then(|()| handler.run_system_call(&mut self.evm));
        let failed_call = handler.failed_call;
        Ok(Executed { failed_call, ..self.finish(result, is_watched)? })
    }

    /// Writes slots as the chain itself.
    pub(crate) fn write_slots(
        &mut self,
        slots: &[(Address, U256, U256)],
        is_watched: bool,
    ) -> Result<Option<Box<Footprint>>, StateFault> {
        let journal = self.evm.ctx.journal_mut();
        let written = slots.iter().try_for_each(|(account, slot, value)| {
            journal.load_account(*account)?;
            journal.touch_account(*account);
            journal.sstore(*account, *slot, *value).map(|_| ())
        });
        let changes = journal.finalize();
        written?;
        let footprint = is_watched.then(|| Footprint::of_write(&changes, self.state())).transpose()?;
        self.state().commit(changes)?;
        Ok(footprint)
    }

    /// Runs an operation on the ledger as the chain itself. Discards it if it fails; otherwise the caller
    /// commits its changes.
    pub(crate) fn act<T, E: From<StateFault>>(
        &mut self,
        act: impl FnOnce(&mut SystemLedger<'_, 'a>) -> Result<T, E>,
    ) -> Result<Acted<T>, E> {
        self.evm.ctx.journal_mut().load_account(LEDGER)?;
        let mut ledger = SystemLedger::new(&mut self.evm.ctx);
        let result = act(&mut ledger);
        let changes = self.evm.ctx.journaled_state.finalize();
        let value = result?;
        let balances = self.state().weigh(&changes)?;
        Ok(Acted { value, balances, changes })
    }

    /// Sets the block and receipt index of what runs next, from which the ids of schedules it creates derive.
    pub(crate) fn set_place(&mut self, place: Place) {
        self.evm.precompiles.set_place(place);
    }

    fn finish(
        &mut self,
        result: Result<ExecutionResult, EvmError>,
        is_watched: bool,
    ) -> Result<Executed, MachineError> {
        // Finalize in either case: what a rejected transaction loaded must not stay warm for the next one.
        let mut changes = self.evm.ctx.journaled_state.finalize();
        let events = self.state().told.take(&mut changes);
        match result {
            Ok(result) => {
                let tx = is_watched.then(|| self.evm.ctx.tx.clone());
                let state = self.state();
                let footprint = tx.map(|tx| Footprint::take(tx, &result, &changes, state)).transpose();
                let footprint = footprint.map_err(MachineError::State)?;
                let balances = state.weigh(&changes).map_err(MachineError::State)?;
                let set_aside = state.reserve.taken();
                Ok(Executed { result, balances, changes, events, failed_call: None, set_aside, footprint })
            }
            Err(EVMError::Transaction(reason)) => Err(MachineError::Refused(reason)),
            Err(EVMError::Database(fault)) => Err(MachineError::State(fault)),
            Err(other) => Err(match self.evm.precompiles.take_fault() {
                Some(fault) => MachineError::State(fault),
                None => MachineError::Fault(Fault::RulesDisagree { reason: other.to_string() }),
            }),
        }
    }

    pub(crate) fn into_state(self) -> BlockState<'a> {
        self.evm.ctx.journaled_state.database
    }
}

fn block_env(environment: &Environment) -> BlockEnv {
    BlockEnv {
        number: U256::from(environment.number),
        beneficiary: environment.fee_recipient,
        timestamp: U256::from(environment.timestamp.seconds()),
        gas_limit: environment.gas_limit.0,
        basefee: u64::try_from(environment.base_fee.0).expect("BASE_FEE_MAX has 64 bits"),
        difficulty: U256::ZERO,
        prevrandao: Some(environment.prev_randao()),
        // There are no blobs; BLOBBASEFEE answers 1.
        blob_excess_gas_and_price: Some(BlobExcessGasAndPrice { excess_blob_gas: 0, blob_gasprice: 1 }),
        slot_num: 0,
    }
}

/// A user transaction as revm takes it.
fn tx_env(recovered: &RecoveredTransaction) -> TxEnv {
    let tx = recovered.transaction();
    let signed = tx.authorization_list().unwrap_or_default();
    let authorization_list = signed
        .iter()
        .zip(recovered.authorities())
        .map(|(signed, authority)| {
            let authority = authority.map_or(RecoveredAuthority::Invalid, RecoveredAuthority::Valid);
            Either::Right(RecoveredAuthorization::new_unchecked(signed.inner().clone(), authority))
        })
        .collect();
    TxEnv {
        tx_type: tx.transaction_type(),
        caller: recovered.sender(),
        gas_limit: tx.gas_limit(),
        gas_price: tx.fee_cap().0,
        kind: tx.to().map_or(TxKind::Create, TxKind::Call),
        value: tx.value(),
        data: tx.input().clone(),
        nonce: tx.nonce(),
        chain_id: tx.chain_id(),
        access_list: tx.access_list().cloned().unwrap_or_default(),
        gas_priority_fee: tx.tip_cap().map(|tip| tip.0),
        authorization_list,
        ..TxEnv::default()
    }
}

/// A native transaction as revm takes it, for what the EVM shows of it: prices, origin, and the shape of its only call.
fn native_tx_env(native: &NativeTransaction) -> TxEnv {
    let only = native.only_call();
    TxEnv {
        tx_type: 2,
        caller: native.sender,
        gas_limit: native.gas_limit,
        gas_price: native.max_fee_per_gas,
        kind: match only {
            Some(call) => call.to.map_or(TxKind::Create, TxKind::Call),
            None => TxKind::Call(native.sender),
        },
        value: native.value(),
        data: only.map(|call| call.input.clone()).unwrap_or_default(),
        // The nonce of an orderless one is not the account's.
        nonce: if native.kind == Kind::Sequence { native.nonce } else { 0 },
        chain_id: Some(native.chain_id),
        gas_priority_fee: Some(native.max_priority_fee_per_gas),
        ..TxEnv::default()
    }
}
