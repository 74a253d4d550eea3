//! A client that has a job and sends transfers to one validator until they are final.

use crate::sim::{
    machine::Machine,
    market,
    opened::Store,
    orderless,
    orders::Orders,
    signed::{self, Party},
};
use alloy_primitives::{Address, Bytes, U256};
use almanac_bft::Replica;
use almanac_consensus::Admission;
use almanac_primitives::{
    Account, RecoveredTransaction, StateKey, UserTransaction,
    testing::{person, transfer},
};
use almanac_state::{BlockJournal, StateView as _};
use commonware_runtime::Clock as _;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, UNIX_EPOCH},
};

/// Gets the transfers of all clients, so that one transfer lost or done twice shows in its balance.
pub const RECEIVER: Address = Address::repeat_byte(0xcc);

/// What arrives when each client has sent so many transfers: each one of the n-th client is worth n + 1.
pub fn expected_balance(clients: impl Iterator<Item = usize>, transfers: u64) -> U256 {
    clients.map(|client| U256::from((client as u64 + 1) * transfers)).sum()
}

/// The ways into the pools of validators that do not lie, as far as they have run.
pub type Admissions = Arc<Mutex<BTreeMap<usize, Admission>>>;

/// Rounds after which a client sends to another validator.
const ROUNDS: usize = 20;

/// One client and the validator that it talks to.
pub struct Client {
    pub index: usize,
    pub admission: Admission,
    /// Where else it sends what does not get in: the blocks of a validator that lies are refused, and gossip goes
    /// out once, also where nobody hears it.
    pub elsewhere: Option<Admissions>,
    pub replica: Arc<Replica<Store>>,
    pub archive: Arc<BlockJournal<Machine>>,
    /// Transfers that it gets into the chain.
    pub transfers: u64,
    /// How many of them it has under way.
    pub ahead: u64,
    /// Gas that the runs of its job ask for.
    pub run_gas: u64,
    /// Whether it has scheduled transactions too.
    pub has_market: bool,
    /// Orderless transactions that its validator's pool gets again and again.
    pub orderless: Arc<Vec<RecoveredTransaction>>,
    /// Who makes and signs schedules that wait for signatures, if anybody does.
    pub signed: Option<Arc<signed::Group>>,
}

impl Client {
    pub async fn run(self, context: Machine) {
        let mut orders = Orders::new(self.index, self.run_gas);
        let mut signed = BTreeMap::new();
        let mut party = self.signed.clone().map(|group| Party::new(self.index, group));
        for round in 1.. {
            let elsewhere = self.elsewhere(round);
            if let Some(order) = orders.next(&context, &self.replica, &self.archive).await {
                self.submit(order, elsewhere.as_ref());
            }
            if self.has_market {
                for order in market::orders(self.index, &self.replica).await {
                    self.submit(&order, elsewhere.as_ref());
                }
            }
            if let Some(party) = &mut party {
                let next = party.next(&context, &self.replica, &self.archive).await;
                next.iter().flatten().for_each(|transaction| self.submit(transaction, elsewhere.as_ref()));
            }
            self.transfer(&mut signed, elsewhere.as_ref()).await;
            let now = context.current().duration_since(UNIX_EPOCH).expect("simulated time starts there");
            orderless::add_again(&self.orderless, &self.admission, now);
            context.sleep(Duration::from_millis(150)).await;
        }
    }

    /// Another validator, each time the next one.
    fn elsewhere(&self, round: usize) -> Option<Admission> {
        let others = self.elsewhere.as_ref()?.lock().unwrap();
        round.is_multiple_of(ROUNDS).then(|| others.values().nth(round / ROUNDS % others.len()).cloned())?
    }

    async fn transfer(&self, signed: &mut BTreeMap<u64, UserTransaction>, elsewhere: Option<&Admission>) {
        let sender = person(self.index as u64);
        let Some(account) = account(&self.replica, sender.address).await else { return };
        for nonce in account.nonce..(account.nonce + self.ahead).min(self.transfers) {
            let sign = || transfer(sender, nonce, RECEIVER, self.index as u64 + 1);
            self.submit(signed.entry(nonce).or_insert_with(sign), elsewhere);
        }
    }

    fn submit(&self, transaction: &UserTransaction, elsewhere: Option<&Admission>) {
        for admission in [Some(&self.admission), elsewhere].into_iter().flatten() {
            // Known already, most of the time.
            let _ = admission.submit(transaction.encoded());
        }
    }
}

/// An account after the last final block. `None` where the node has stopped.
pub async fn account(replica: &Replica<Store>, address: Address) -> Option<Account> {
    Some(decode_account(final_value(replica, StateKey::Account(address)).await?))
}

/// A value after the last final block. `None` where the node has stopped.
pub async fn final_value(replica: &Replica<Store>, key: StateKey) -> Option<Option<Bytes>> {
    loop {
        let tip = replica.tip();
        match tip.state.get_many(&[key]).await {
            Ok(mut found) => return Some(found.remove(0)),
            Err(error) if error.is_closed => return None,
            // The next block is being committed: the store is ahead of the replica until its sync has ended.
            Err(_) => replica.wait_for(tip.header.number + 1).await,
        }
    }
}

pub fn decode_account(stored: Option<Bytes>) -> Account {
    stored.map_or_else(Account::default, |bytes| Account::decode(&bytes).unwrap())
}
