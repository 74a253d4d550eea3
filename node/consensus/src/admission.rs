//! The way of a transaction into the pool: every rule that needs no block, then local policy.

use crate::application::MadeBlock;
use alloy_primitives::{Address, TxHash};
use almanac_exec::{
    Rules, Sender, StateFault, TransactionError, check_submission, environment::read_parameters, recover,
};
use almanac_mempool::{Pool, PoolError, SenderState};
use almanac_primitives::{
    Account, GasPrice, RecoveredTransaction, StateDiff, StateKey, StateRead, UserTransaction, Wei,
    params::BLOCK_TRANSACTIONS_MAX, transaction::TransactionDecodeError,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::{Notify, broadcast};

/// Pending transactions, shared between those who submit and those who make blocks.
#[derive(Debug)]
pub struct SharedPool {
    pool: Mutex<Pool>,
    changed: Notify,
    arrivals: broadcast::Sender<TxHash>,
    is_prompt: AtomicBool,
}

/// Arrivals that a listener may be behind before it misses some.
const ARRIVALS_HELD: usize = 8_192;

impl SharedPool {
    /// Shares a pool.
    pub fn new(pool: Pool) -> Arc<Self> {
        let (arrivals, _) = broadcast::channel(ARRIVALS_HELD);
        Arc::new(Self {
            pool: Mutex::new(pool),
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
        let pool = self.lock();
        let open = pool.best().filter(|candidate| !included.contains(&candidate.hash()));
        open.take(BLOCK_TRANSACTIONS_MAX).cloned().collect()
    }

    /// Hears of a final block: what it included and what can never be included goes.
    pub fn settle<B>(&self, made: &MadeBlock<B>, next_base_fee: GasPrice) {
        let mut pool = self.lock();
        pool.on_block(next_base_fee, changed_accounts(&made.output.diff));
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
        self.drop_faulted(made);
    }

    /// Drops what met a fault when it was tried, so that the next proposal does not try it again.
    pub fn drop_faulted<B>(&self, made: &MadeBlock<B>) {
        if made.faulted.is_empty() {
            return;
        }
        let mut pool = self.lock();
        for (hash, _) in &made.faulted {
            pool.remove(*hash);
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
        Some((address, SenderState { nonce: account.nonce, balance: Wei(account.balance) }))
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
        let transaction = UserTransaction::decode(encoded)?;
        if let Some(sender) = transaction.impersonated() {
            return Err(TransactionError::NotSigned { sender }.into());
        }
        self.admit(transaction)
    }

    /// Takes a transaction into the pool and wakes the engine. One that nobody signed passes on a developer's
    /// chain: it must come from the developer's own tools, never from a connection as it is.
    pub fn admit(&self, transaction: UserTransaction) -> Result<TxHash, SubmitError> {
        let hash = transaction.hash();
        // Peers send what others sent already: that must not cost a recovery each time.
        if self.pool.lock().contains(hash) {
            return Err(PoolError::AlreadyKnown { hash }.into());
        }
        let state = self.state.tip_state();
        let floor = read_parameters(&*state)?.base_fee_floor();
        let recovered = recover(transaction, &Rules::read(self.chain_id, &*state)?)?;

        // The account is read under the pool's lock: the engine updates the pool under it after the state, so
        // what we tell the pool of the account is never older than what it knows.
        let mut pool = self.pool.lock();
        let sender = Sender::read(&*self.state.tip_state(), recovered.sender())?;
        check_submission(recovered.transaction(), recovered.sender(), &sender, floor)?;
        pool.insert(recovered, SenderState { nonce: sender.nonce, balance: sender.balance })?;
        drop(pool);
        self.pool.announce(hash);
        Ok(hash)
    }
}
