//! Admits transactions to the pool: checks every rule that needs no block, then local policy.

use crate::application::MadeBlock;
use alloy_primitives::{Address, KECCAK256_EMPTY, TxHash};
use almanac_exec::{
    BlockError, BlockOutput, Executed, Rules, Sender, StateFault, TransactionError, check_enabled,
    check_expiration, check_floor, check_parties, check_signatures, check_static, check_submission,
    environment::read_parameters, recover_sender,
};
use almanac_mempool::{Insertion, Pool, PoolError, SenderState};
use almanac_primitives::{
    Account, Chain, GasPrice, RecoveredTransaction, ReplayProtector, StateDiff, StateKey, StateRead,
    TimestampMs, UserTransaction, Wei,
    addresses::ACCOUNTS,
    keys::KeyRecord,
    params::{BLOCK_GAS_DEFAULT, BLOCK_TRANSACTIONS_MAX},
    transaction::TransactionDecodeError,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::sync::{Notify, broadcast};

/// Pending transactions, shared between submitters and block builders.
#[derive(Debug)]
pub struct SharedPool {
    pool: Mutex<Pool>,
    /// Transactions that are not tried for a while, with the number of blocks left.
    set_aside: Mutex<BTreeMap<TxHash, u32>>,
    /// Gas of the last block.
    block_gas: AtomicU64,
    changed: Notify,
    arrivals: broadcast::Sender<Arrival>,
    is_prompt: AtomicBool,
}

/// Notifications of new transactions that a listener may be behind before it misses some.
const ARRIVALS_HELD: usize = 8_192;

/// A candidate is wide if its gas limit exceeds a block's gas divided by this. A wide transaction that uses
/// little gas still leaves no room for the next wide one, so many of them would be offered to every block and
/// hardly ever run.
const WIDE_PART: u64 = 16;

/// The wide candidates of a proposal may request the gas of this many blocks together. The remaining places are
/// for others.
const WIDE_BLOCKS: u64 = 8;

/// Vouched candidates of a proposal, at most: one account can void all that it stands for with one transaction.
const VOUCHED_MAX: usize = BLOCK_TRANSACTIONS_MAX / 10;

/// Authorizations of a transaction, at most. The largest blocks hold more than twice as many, of a few bytes each: passed
/// on, one such list would cost a node all that its peers bear of it at once.
pub const AUTHORIZATIONS_MAX: usize = 2_000;

/// Final blocks for which a transaction is not tried again after reading the state for it failed. Long enough
/// that a value that stays unreadable does not keep this node's blocks empty, and short enough for a transient
/// failure.
const SET_ASIDE_BLOCKS: u32 = 16;

impl SharedPool {
    /// Shares a pool.
    pub fn new(pool: Pool) -> Arc<Self> {
        let (arrivals, _) = broadcast::channel(ARRIVALS_HELD);
        Arc::new(Self {
            pool: Mutex::new(pool),
            set_aside: Mutex::default(),
            block_gas: AtomicU64::new(BLOCK_GAS_DEFAULT),
            changed: Notify::new(),
            arrivals,
            is_prompt: AtomicBool::new(false),
        })
    }

    /// Locks the pool. Hold it briefly.
    pub fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().expect("nobody panics while holding the pool")
    }

    /// The transactions of a block that are in the pool, with their senders, by hash.
    pub fn known(&self, transactions: &[UserTransaction]) -> BTreeMap<TxHash, RecoveredTransaction> {
        let pool = self.lock();
        let found = transactions.iter().filter_map(|tx| pool.get(tx.hash()));
        found.map(|known| (known.transaction().hash(), known.clone())).collect()
    }

    /// Wakes the engine: there may be something to include.
    pub fn wake(&self) {
        self.changed.notify_one();
    }

    /// Transactions that arrive from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arrival> {
        self.arrivals.subscribe()
    }

    /// Whether ready transactions go into a block at once, so that waiting for their receipts makes sense.
    pub fn is_prompt(&self) -> bool {
        self.is_prompt.load(Ordering::Relaxed)
    }

    /// Sets whether ready transactions go into a block at once.
    pub fn set_prompt(&self, is_prompt: bool) {
        self.is_prompt.store(is_prompt, Ordering::Relaxed);
    }

    /// The candidates of a proposer, best first.
    pub fn candidates(&self) -> Vec<RecoveredTransaction> {
        self.candidates_except(&BTreeSet::new())
    }

    /// Like [`Self::candidates`], without transactions in blocks that the pool does not know yet. Such a
    /// transaction would be rejected, together with the rest of its sender's.
    pub fn candidates_except(&self, included: &BTreeSet<TxHash>) -> Vec<RecoveredTransaction> {
        let (pool, set_aside) = (self.lock(), self.set_aside());
        let block_gas = self.block_gas.load(Ordering::Relaxed);
        let mut wide_gas_left = block_gas.saturating_mul(WIDE_BLOCKS);
        let (mut best, mut open, mut vouched_left) = (pool.best(), Vec::new(), VOUCHED_MAX);
        while open.len() < BLOCK_TRANSACTIONS_MAX
            && let Some(candidate) = best.next()
        {
            if included.contains(&candidate.hash()) {
                continue;
            }
            let gas = candidate.transaction().gas_limit();
            let wide_gas = if gas > block_gas / WIDE_PART { gas } else { 0 };
            let vouched = usize::from(pool.is_vouched(candidate.hash()));
            match wide_gas_left.checked_sub(wide_gas).zip(vouched_left.checked_sub(vouched)) {
                Some(left) if !set_aside.contains_key(&candidate.hash()) => {
                    (wide_gas_left, vouched_left) = left;
                    open.push(candidate.clone());
                }
                // Later ones of the sender would leave a gap.
                _ => best.skip_after(candidate),
            }
        }
        open
    }

    fn set_aside(&self) -> MutexGuard<'_, BTreeMap<TxHash, u32>> {
        self.set_aside.lock().expect("nobody panics while holding the list")
    }

    /// Hears of a final block: what it included and what can never be included goes.
    pub fn on_final_block<B>(&self, made: &MadeBlock<B>, next_base_fee: GasPrice) {
        let mut pool = self.lock();
        let now = made.block.header.timestamp;
        pool.on_block(now, next_base_fee, changed_accounts(&made.output.diff));
        pool.use_nonces(used_nonces(&made.output));
        pool.forget_signed(rotated_accounts(&made.output.diff));
        for (hash, _) in made.refused.iter().filter(|(_, error)| !may_pass_later(error)) {
            pool.remove(*hash);
        }
        drop(pool);
        self.block_gas.store(made.block.header.gas_limit.0, Ordering::Relaxed);
        self.set_aside().retain(|_, blocks| {
            *blocks = blocks.saturating_sub(1);
            *blocks > 0
        });
        self.note_faults(made);
    }

    /// Keeps the next proposal from retrying what caused a fault in this one. A broken invariant is tied to the
    /// transaction, which is dropped. A state that cannot be read may recover soon, so the transaction only
    /// waits.
    pub fn note_faults<B>(&self, made: &MadeBlock<B>) {
        for (hash, error) in &made.faulted {
            match error {
                BlockError::State(_) => {
                    self.set_aside().insert(*hash, SET_ASIDE_BLOCKS);
                }
                _ => {
                    self.lock().remove(*hash);
                }
            }
        }
    }

    fn announce(&self, arrival: Arrival) {
        // There may be no listener.
        let _ = self.arrivals.send(arrival);
        self.wake();
    }

    /// Waits for the next [`wake`](Self::wake), or returns at once after one that nobody has received.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Whether only a full block, a low cap or the order of runs kept a transaction out, so that a later block may include
/// it. Other rules stay broken.
pub(crate) fn may_pass_later(error: &TransactionError) -> bool {
    matches!(
        error,
        TransactionError::DoesNotFit { .. }
            | TransactionError::BlockCountFull { .. }
            | TransactionError::FeeCapBelowBaseFee { .. }
            | TransactionError::BehindRuns { .. }
            // A block's time may be behind the clock that admitted it.
            | TransactionError::ExpirationTooFar { .. }
    )
}

/// The accounts that a block changed, in the pool's form.
fn changed_accounts(diff: &StateDiff) -> impl Iterator<Item = (Address, SenderState)> {
    diff.changes().iter().filter_map(|change| {
        let StateKey::Account(address) = change.key else { return None };
        let account = change.new.as_deref().map_or_else(Account::default, |stored| {
            Account::decode(stored).expect("execution encodes what it changes")
        });
        // Contracts cannot send, so the code of a sender is a delegation.
        let is_delegated = account.code_hash != KECCAK256_EMPTY;
        let state = SenderState { nonce: account.nonce, balance: Wei(account.balance), is_delegated };
        Some((address, state))
    })
}

/// The pairs of sender and nonce that a block's orderless transactions used.
fn used_nonces(output: &BlockOutput) -> impl Iterator<Item = (Address, u64)> {
    output.transactions.iter().filter_map(|executed| match executed {
        Executed::User(user) => match user.transaction().replay_protector() {
            ReplayProtector::Nonce { nonce, .. } => Some((user.sender(), nonce)),
            ReplayProtector::Sequence(_) => None,
        },
        Executed::Prologue(_) | Executed::Run(_) => None,
    })
}

/// The accounts whose keys a block changed.
fn rotated_accounts(diff: &StateDiff) -> impl Iterator<Item = Address> {
    diff.changes().iter().filter_map(|change| match change.key {
        StateKey::Slot(ACCOUNTS, slot) => Some(KeyRecord::account_of(slot)),
        _ => None,
    })
}

/// The time that a block would have if it came now.
type NextTime = Arc<dyn Fn() -> TimestampMs + Send + Sync>;

/// Provides the state after the last final block.
pub trait TipState: Send + Sync {
    /// That state. It does not change while it is held.
    fn tip_state(&self) -> Box<dyn StateRead + Send>;
}

/// Admits transactions from any source to the pool.
#[derive(Clone)]
pub struct Admission {
    chain: Chain,
    pool: Arc<SharedPool>,
    state: Arc<dyn TipState>,
    clock: Arc<OnceLock<NextTime>>,
}

/// Why a transaction is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The bytes do not decode as a transaction of this chain.
    #[error(transparent)]
    Decode(#[from] TransactionDecodeError),
    /// It breaks a rule.
    #[error(transparent)]
    Invalid(#[from] TransactionError),
    /// The pool's policy rejects it.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// It has more authorizations than a node passes on.
    #[error(
        "transaction of {given} authorizations: the pool takes at most {max}, send the others in another one"
    )]
    TooManyAuthorizations {
        /// Their number.
        given: usize,
        /// Most authorizations of a transaction.
        max: usize,
    },
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] StateFault),
}

impl Admission {
    /// Admission to `pool`, based on the state that `state` provides.
    pub fn new(chain: Chain, pool: Arc<SharedPool>, state: Arc<dyn TipState>) -> Self {
        Self { chain, pool, state, clock: Arc::default() }
    }

    /// Judges expirations by this clock from now on. Without one, the pool drops what has expired with each block, and
    /// proposers refuse what expires too late.
    pub fn keep_time(&self, next_time: NextTime) {
        // A second clock would be the same one.
        let _ = self.clock.set(next_time);
    }

    /// The pool behind it.
    pub fn pool(&self) -> &Arc<SharedPool> {
        &self.pool
    }

    /// Adds an encoded, signed transaction to the pool and wakes the engine.
    pub fn submit(&self, encoded: &[u8]) -> Result<TxHash, SubmitError> {
        self.submit_counted(encoded).outcome
    }

    /// Like [`Self::submit`], and counts the effort.
    pub fn submit_counted(&self, encoded: &[u8]) -> Submitted {
        let mut effort = Effort::default();
        let outcome = decode_signed(encoded).and_then(|transaction| self.try_admit(transaction, &mut effort));
        Submitted { outcome, effort }
    }

    /// Adds a transaction to the pool and wakes the engine. Accepts an unsigned one on a developer chain: it
    /// must come from the developer's own tools, never directly from a connection.
    pub fn admit(&self, transaction: UserTransaction) -> Result<TxHash, SubmitError> {
        self.try_admit(transaction, &mut Effort::default())
    }

    /// Checks in the order of their cost, and does no work that the sender cannot fund: the signatures of
    /// authorizations, which can take as long as a block, come last.
    fn try_admit(&self, transaction: UserTransaction, effort: &mut Effort) -> Result<TxHash, SubmitError> {
        let hash = transaction.hash();
        // Peers repeat transactions: a duplicate must not cost a recovery.
        if self.pool.lock().contains(hash) {
            return Err(PoolError::AlreadyKnown { hash }.into());
        }
        let state = self.state.tip_state();
        let parameters = read_parameters(&*state)?;
        let floor = parameters.base_fee_floor();
        check_floor(&transaction, floor)?;
        check_enabled(&transaction, &parameters)?;
        check_authorizations(&transaction)?;
        if let Some(next_time) = self.clock.get() {
            check_expiration(&transaction, next_time())?;
        }
        let rules = Rules::read(self.chain, &*state)?;
        drop(state);
        check_static(&transaction, &rules)?;
        // A native transaction names its sender, who must have the money before up to 64 signatures are recovered. Anyone
        // can name a stranger who has: the signatures must look like those of the stranger's key too. And the pool must
        // have a place for it: a peer that passes on two which conflict is charged for the refused one.
        if let Some(native) = transaction.native() {
            self.account(&transaction, native.sender, floor)?;
            check_signatures(&*self.state.tip_state(), &transaction)??;
            self.check_place(&transaction, native.sender, floor)?;
        }
        effort.recoveries += transaction.signature_count().max(1);
        let signed = recover_sender(transaction, &rules)?;
        // What must come from elsewhere comes before the pool is locked.
        self.state.tip_state().announce(&[StateKey::Account(signed.sender())]);
        let authorizations = signed.authorizations();
        if authorizations > 0 {
            self.check_place(signed.transaction(), signed.sender(), floor)?;
        }
        effort.recoveries += authorizations;
        let recovered = signed.recover_authorities();

        let mut pool = self.pool.lock();
        let account = self.account(recovered.transaction(), recovered.sender(), floor)?;
        let payer = self.check_native(&recovered)?;
        let sender = recovered.sender();
        let sequence =
            Some(recovered.transaction()).filter(|tx| !tx.is_orderless()).map(UserTransaction::nonce);
        let bytes = recovered.transaction().encoded().len();
        let Insertion { replaced, evicted, .. } = pool.insert_paid(recovered, account, payer)?;
        drop(pool);
        effort.has_displaced = replaced.is_some() || !evicted.is_empty();
        self.pool.announce(Arrival { hash, sender, sequence, bytes, effort: *effort });
        Ok(hash)
    }

    /// Whether the pool would take a transaction whose signatures have still to be recovered.
    fn check_place(
        &self,
        transaction: &UserTransaction,
        sender: Address,
        floor: GasPrice,
    ) -> Result<(), SubmitError> {
        let mut pool = self.pool.lock();
        let account = self.account(transaction, sender, floor)?;
        let payer = self.payer(transaction)?;
        Ok(pool.check(transaction, sender, account, payer)?)
    }

    /// What the pool needs to know of a transaction's sender, if the sender may send it.
    ///
    /// Call it under the pool's lock. The engine updates the state first and then the pool, under that lock, so
    /// this is never older than what the pool knows.
    fn account(
        &self,
        transaction: &UserTransaction,
        sender: Address,
        floor: GasPrice,
    ) -> Result<SenderState, SubmitError> {
        let account = Sender::read(&*self.state.tip_state(), sender)?;
        check_submission(transaction, sender, &account, floor)?;
        let Sender { nonce, balance, has_code, .. } = account;
        Ok(SenderState { nonce, balance, is_delegated: has_code })
    }
}

impl Admission {
    /// Checks the keys of a native transaction, its nonce and its fee payer, whose state it returns. Call it under
    /// the pool's lock, as [`account`](Self::account).
    fn check_native(&self, recovered: &RecoveredTransaction) -> Result<SenderState, SubmitError> {
        if recovered.transaction().native().is_none() {
            return Ok(SenderState::default());
        }
        check_parties(&*self.state.tip_state(), recovered)??;
        self.payer(recovered.transaction())
    }

    /// What the pool needs to know of a transaction's fee payer, if it has one.
    fn payer(&self, transaction: &UserTransaction) -> Result<SenderState, SubmitError> {
        let Some(payer) = transaction.fee_payer() else { return Ok(SenderState::default()) };
        let Sender { nonce, balance, has_code, .. } = Sender::read(&*self.state.tip_state(), payer)?;
        Ok(SenderState { nonce, balance, is_delegated: has_code })
    }
}

/// The result of a submission, and its cost.
#[derive(Clone, Debug)]
pub struct Submitted {
    /// Its hash, or why it is rejected.
    pub outcome: Result<TxHash, SubmitError>,
    /// The effort.
    pub effort: Effort,
}

/// The cost of checking a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Recovered signatures, of the transaction and of its authorizations: by far the most expensive part.
    pub recoveries: usize,
    /// Whether it displaced another transaction, so that the pool did not grow.
    pub has_displaced: bool,
}

impl Effort {
    /// Recoveries for an admitted transaction that the pool did not grow by.
    pub fn fruitless(&self) -> usize {
        if self.has_displaced { self.recoveries } else { 0 }
    }
}

/// A transaction that the pool has admitted.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its hash.
    pub hash: TxHash,
    /// Who sent it.
    pub sender: Address,
    /// Its place among its sender's; `None` if it is orderless.
    pub sequence: Option<u64>,
    /// Its length.
    pub bytes: usize,
    /// What admitting it has cost.
    pub effort: Effort,
}

fn check_authorizations(transaction: &UserTransaction) -> Result<(), SubmitError> {
    let given = transaction.authorization_list().map_or(0, <[_]>::len);
    let max = AUTHORIZATIONS_MAX;
    if given > max { Err(SubmitError::TooManyAuthorizations { given, max }) } else { Ok(()) }
}

fn decode_signed(encoded: &[u8]) -> Result<UserTransaction, SubmitError> {
    let transaction = UserTransaction::decode(encoded)?;
    match transaction.impersonated() {
        Some(sender) => Err(TransactionError::NotSigned { sender }.into()),
        None => Ok(transaction),
    }
}
