//! Admits transactions to the pool: every rule that needs no block, then local policy.

use crate::application::MadeBlock;
use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, KECCAK256_EMPTY, TxHash};
use almanac_exec::{
    BlockError, Rules, Sender, StateFault, TransactionError, check_floor, check_submission,
    environment::read_parameters, recover_sender,
};
use almanac_mempool::{Insertion, Pool, PoolError, SenderState};
use almanac_primitives::{
    Account, GasPrice, RecoveredTransaction, StateDiff, StateKey, StateRead, UserTransaction, Wei,
    params::{BLOCK_GAS_DEFAULT, BLOCK_TRANSACTIONS_MAX},
    transaction::TransactionDecodeError,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::sync::{Notify, broadcast};

/// Pending transactions, shared between those who submit and those who make blocks.
#[derive(Debug)]
pub struct SharedPool {
    pool: Mutex<Pool>,
    /// Transactions that are not tried for a while, with the blocks to go.
    set_aside: Mutex<BTreeMap<TxHash, u32>>,
    /// Gas of the last block.
    block_gas: AtomicU64,
    changed: Notify,
    arrivals: broadcast::Sender<TxHash>,
    is_prompt: AtomicBool,
}

/// Arrivals that a listener may be behind before it misses some.
const ARRIVALS_HELD: usize = 8_192;

/// A candidate is wide if it asks for more than this part of a block's gas. One that uses little of it leaves no room
/// for the next wide one, so that a crowd of them would be offered to every block and hardly ever run.
const WIDE_PART: u64 = 16;

/// Blocks whose gas the wide candidates of a proposal may ask for together. The rest of the places are for others.
const WIDE_BLOCKS: u64 = 8;

/// Final blocks for which a transaction is not tried again after the state could not be read for it. Long enough
/// that a value which stays unreadable does not keep this node's blocks empty, and short enough for one that does not.
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

    /// The pool itself, for a moment.
    pub fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().expect("nobody panics while holding the pool")
    }

    /// Those of a block's transactions that are in the pool, with their senders, by hash.
    pub fn known(&self, transactions: &[UserTransaction]) -> BTreeMap<TxHash, RecoveredTransaction> {
        let pool = self.lock();
        let found = transactions.iter().filter_map(|tx| pool.get(tx.hash()));
        found.map(|known| (known.transaction().hash(), known.clone())).collect()
    }

    /// Wakes the engine: there may be something to include.
    pub fn wake(&self) {
        self.changed.notify_one();
    }

    /// Hashes of transactions that come in from here on.
    pub fn listen(&self) -> broadcast::Receiver<TxHash> {
        self.arrivals.subscribe()
    }

    /// Whether whatever is ready goes into a block at once, so that it is worth waiting for.
    pub fn is_prompt(&self) -> bool {
        self.is_prompt.load(Ordering::Relaxed)
    }

    /// Says whether whatever is ready goes into a block at once.
    pub fn set_prompt(&self, is_prompt: bool) {
        self.is_prompt.store(is_prompt, Ordering::Relaxed);
    }

    /// What a proposer may choose from, best first.
    pub fn candidates(&self) -> Vec<RecoveredTransaction> {
        self.candidates_except(&BTreeSet::new())
    }

    /// The same without transactions that are in blocks which the pool has not heard of yet. One of them would be
    /// refused, and everything of its sender with it.
    pub fn candidates_except(&self, included: &BTreeSet<TxHash>) -> Vec<RecoveredTransaction> {
        let (pool, set_aside) = (self.lock(), self.set_aside());
        let block_gas = self.block_gas.load(Ordering::Relaxed);
        let mut wide_gas_left = block_gas.saturating_mul(WIDE_BLOCKS);
        let (mut best, mut open) = (pool.best(), Vec::new());
        while open.len() < BLOCK_TRANSACTIONS_MAX
            && let Some(candidate) = best.next()
        {
            if included.contains(&candidate.hash()) {
                continue;
            }
            let gas = candidate.transaction().envelope().gas_limit();
            let wide_gas = if gas > block_gas / WIDE_PART { gas } else { 0 };
            match wide_gas_left.checked_sub(wide_gas) {
                Some(left) if !set_aside.contains_key(&candidate.hash()) => {
                    wide_gas_left = left;
                    open.push(candidate.clone());
                }
                // Those after it would meet a gap.
                _ => best.skip_sender(candidate.sender()),
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
        // What a full block or a low cap keeps out may come later; any other rule will not change its mind.
        for (hash, error) in &made.refused {
            if !matches!(
                error,
                TransactionError::DoesNotFit { .. }
                    | TransactionError::BlockCountFull { .. }
                    | TransactionError::FeeCapBelowBaseFee { .. }
            ) {
                pool.remove(*hash);
            }
        }
        drop(pool);
        self.block_gas.store(made.block.header.gas_limit.0, Ordering::Relaxed);
        self.set_aside().retain(|_, blocks| {
            *blocks = blocks.saturating_sub(1);
            *blocks > 0
        });
        self.note_faults(made);
    }

    /// Sees to it that the next proposal does not try again what met a fault in this one. A broken invariant is about
    /// the transaction, which is dropped. A state that cannot be read may be readable again soon: the transaction
    /// only waits.
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

    fn announce(&self, hash: TxHash) {
        // Nobody may be listening.
        let _ = self.arrivals.send(hash);
        self.wake();
    }

    /// Waits for the next [`wake`](Self::wake), or for one that nobody has heard yet.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// The accounts that a block changed, as the pool needs to know them.
fn changed_accounts(diff: &StateDiff) -> impl Iterator<Item = (Address, SenderState)> {
    diff.changes().iter().filter_map(|change| {
        let StateKey::Account(address) = change.key else { return None };
        let account = change.new.as_deref().map_or_else(Account::default, |stored| {
            Account::decode(stored).expect("execution encodes what it changes")
        });
        // Contracts send nothing, so the code of a sender is a delegation.
        let is_delegated = account.code_hash != KECCAK256_EMPTY;
        let state = SenderState { nonce: account.nonce, balance: Wei(account.balance), is_delegated };
        Some((address, state))
    })
}

/// Where the state after the last final block can be read.
pub trait TipState: Send + Sync {
    /// That state. It does not change while it is held.
    fn tip_state(&self) -> Box<dyn StateRead + Send>;
}

/// Takes transactions from anywhere into the pool.
#[derive(Clone)]
pub struct Admission {
    chain_id: u64,
    pool: Arc<SharedPool>,
    state: Arc<dyn TipState>,
}

/// Why a transaction is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The bytes are no transaction of this chain.
    #[error(transparent)]
    Decode(#[from] TransactionDecodeError),
    /// It breaks a rule.
    #[error(transparent)]
    Invalid(#[from] TransactionError),
    /// The pool's policy is against it.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] StateFault),
}

impl Admission {
    /// Admission to `pool` by the state that `state` has.
    pub fn new(chain_id: u64, pool: Arc<SharedPool>, state: Arc<dyn TipState>) -> Self {
        Self { chain_id, pool, state }
    }

    /// The pool behind it.
    pub fn pool(&self) -> &Arc<SharedPool> {
        &self.pool
    }

    /// Takes an encoded transaction that someone signed into the pool and wakes the engine.
    pub fn submit(&self, encoded: &[u8]) -> Result<TxHash, SubmitError> {
        self.submit_counted(encoded).outcome
    }

    /// The same, and counts what it took.
    pub fn submit_counted(&self, encoded: &[u8]) -> Submitted {
        let mut effort = Effort::default();
        let outcome = decode_signed(encoded).and_then(|transaction| self.try_admit(transaction, &mut effort));
        Submitted { outcome, effort }
    }

    /// Takes a transaction into the pool and wakes the engine. One that nobody signed passes on a developer's
    /// chain: it must come from the developer's own tools, never from a connection as it is.
    pub fn admit(&self, transaction: UserTransaction) -> Result<TxHash, SubmitError> {
        self.try_admit(transaction, &mut Effort::default())
    }

    /// In order of what a check costs us, and never more than what the sender has to have: the signatures of
    /// authorisations, which take as long as a block if there are many, come last.
    fn try_admit(&self, transaction: UserTransaction, effort: &mut Effort) -> Result<TxHash, SubmitError> {
        let hash = transaction.hash();
        // Peers send what others sent already: that must not cost a recovery each time.
        if self.pool.lock().contains(hash) {
            return Err(PoolError::AlreadyKnown { hash }.into());
        }
        let state = self.state.tip_state();
        let floor = read_parameters(&*state)?.base_fee_floor();
        check_floor(&transaction, floor)?;
        let rules = Rules::read(self.chain_id, &*state)?;
        drop(state);
        effort.recoveries += 1;
        let signed = recover_sender(transaction, &rules)?;
        let authorizations = signed.authorizations();
        if authorizations > 0 {
            let (mut pool, sender) = (self.pool.lock(), signed.sender());
            let account = self.account(signed.transaction(), sender, floor)?;
            pool.check(signed.transaction(), sender, account)?;
        }
        effort.recoveries += authorizations;
        let recovered = signed.recover_authorities();

        let mut pool = self.pool.lock();
        let account = self.account(recovered.transaction(), recovered.sender(), floor)?;
        let Insertion { replaced, evicted, .. } = pool.insert(recovered, account)?;
        drop(pool);
        effort.has_displaced = replaced.is_some() || !evicted.is_empty();
        self.pool.announce(hash);
        Ok(hash)
    }

    /// What the pool needs to know of a transaction's sender, if the sender may send it.
    ///
    /// Call it under the pool's lock: the engine updates the pool under it after the state, so what we tell the pool of
    /// the account is never older than what it knows.
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

/// What became of a transaction, and what that took.
#[derive(Clone, Debug)]
pub struct Submitted {
    /// Its hash, or why it is not taken.
    pub outcome: Result<TxHash, SubmitError>,
    /// What it took.
    pub effort: Effort,
}

/// What looking at a transaction took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Signatures that were recovered, of the transaction and of its authorisations, by far the most expensive part.
    pub recoveries: usize,
    /// Whether another transaction left for it, so that the pool holds no more than before.
    pub has_displaced: bool,
}

fn decode_signed(encoded: &[u8]) -> Result<UserTransaction, SubmitError> {
    let transaction = UserTransaction::decode(encoded)?;
    match transaction.impersonated() {
        Some(sender) => Err(TransactionError::NotSigned { sender }.into()),
        None => Ok(transaction),
    }
}
