//! A chain with the subscriptions contract, a token, a customer who has all of it, and a merchant.

use crate::support::{Person, TestChain, person};
use alloy_primitives::{Address, U256};
use alloy_sol_types::{SolCall, SolError, SolEventInterface as _, SolValue as _};
use almanac_primitives::{Outcome, Receipt};

alloy_sol_types::sol!(
    #![sol(all_derives = true)]
    "../../contracts/ISubscriptions.sol"
);
alloy_sol_types::sol!(
    #![sol(all_derives = true)]
    "../../contracts/Subscriptions.sol"
);
alloy_sol_types::sol!(
    #![sol(all_derives = true)]
    "../../contracts/testing/OddToken.sol"
);
pub use crate::support::{artifacts::deploy, cron::ICronRegistry};
pub use ISubscriptions::{
    ISubscriptionsEvents as Event, SubscriptionCancelled, SubscriptionCharged, SubscriptionFailed,
};
pub use OddToken::Mode;
pub use Subscriptions::*;
pub use almanac_primitives::addresses::CRON_REGISTRY as CRON;

pub const MERCHANT: Address = Address::repeat_byte(0x3e);
pub const MONTH: u64 = 30 * 24 * 60 * 60;
/// What a charge costs, unless a test says otherwise.
pub const PRICE: U256 = U256::from_limbs([25, 0, 0, 0]);
/// Pays for the gas of some hundred charges.
pub const ESCROW: U256 = U256::from_limbs([1_000_000_000_000_000_000, 0, 0, 0]);
pub const SUPPLY: U256 = U256::from_limbs([1_000_000, 0, 0, 0]);
pub const UNLIMITED: U256 = U256::MAX;

pub struct Market {
    pub chain: TestChain,
    pub subscriptions: Address,
    pub token: Address,
}

impl Market {
    /// With OpenZeppelin's token.
    pub fn new() -> Self {
        Self::with_token("PlainToken")
    }

    pub fn with_token(name: &str) -> Self {
        let mut chain = TestChain::new();
        let subscriptions = deploy(&mut chain, customer(), "Subscriptions", U256::ZERO, &[]);
        let token = deploy(&mut chain, customer(), name, U256::ZERO, &SUPPLY.abi_encode());
        Self { chain, subscriptions, token }
    }

    /// The customer subscribes for `PRICE` a month and gives the allowance.
    pub fn subscribe(&mut self, charges_max: u64, allowance: U256) -> U256 {
        self.allow(allowance);
        self.approve(self.order(charges_max))
    }

    /// An order to fill in: `PRICE` a month.
    pub fn order(&self, charges_max: u64) -> approveSubscriptionCall {
        approveSubscriptionCall {
            token: self.token,
            merchant: MERCHANT,
            amount: PRICE,
            intervalSec: u(MONTH),
            maxCharges: u(charges_max),
        }
    }

    pub fn approve(&mut self, call: approveSubscriptionCall) -> U256 {
        let receipt = self.pay(customer(), self.subscriptions, ESCROW, call);
        assert_eq!(receipt.outcome, Outcome::Success);
        match &self.events(&receipt)[..] {
            [Event::SubscriptionApproved(event)] => event.id,
            other => panic!("one approval, not {other:?}"),
        }
    }

    /// Sets the customer's allowance for the subscriptions contract.
    pub fn allow(&mut self, amount: U256) {
        let call = OddToken::approveCall { spender: self.subscriptions, amount };
        assert_eq!(self.send(customer(), self.token, call).outcome, Outcome::Success);
    }

    pub fn send(&mut self, from: Person, to: Address, call: impl SolCall) -> Receipt {
        self.pay(from, to, U256::ZERO, call)
    }

    /// Sends a transaction in a block of its own.
    pub fn pay(&mut self, from: Person, to: Address, value: U256, call: impl SolCall) -> Receipt {
        self.chain.send(from, to, value, call.abi_encode())
    }

    /// Calls the subscriptions contract, as the customer.
    pub fn act(&mut self, call: impl SolCall) -> Receipt {
        self.send(customer(), self.subscriptions, call)
    }

    /// Has a stranger make the registry call the subscriptions contract every minute, from `at` on.
    pub fn schedule_by_stranger(&mut self, call: impl SolCall, at: u64, gas: u64) {
        let call = ICronRegistry::scheduleCalldataCall {
            target: self.subscriptions,
            data: call.abi_encode().into(),
            nextRunAt: u(at),
            intervalSec: u(60),
            maxRuns: u(0),
            gasLimit: u(gas),
        };
        assert_eq!(self.pay(person(5), CRON, ESCROW, call).outcome, Outcome::Success);
    }

    /// What a view answers.
    pub fn read<C: SolCall>(&self, to: Address, call: C) -> C::Return {
        let result = self.chain.call(person(9).address, to, call.abi_encode());
        assert_eq!(result.outcome, Outcome::Success);
        C::abi_decode_returns(&result.output).unwrap()
    }

    pub fn subscription(&self, id: U256) -> Subscription {
        self.read(self.subscriptions, getSubscriptionCall { id })
    }

    pub fn job(&self, id: U256) -> ICronRegistry::Job {
        self.chain.job(self.subscription(id).jobId)
    }

    pub fn tokens_of(&self, account: Address) -> U256 {
        self.read(self.token, OddToken::balanceOfCall { account })
    }

    /// The head's time in seconds.
    pub fn now(&self) -> u64 {
        self.chain.head.timestamp.0 / 1_000
    }

    /// Makes one block at this second; answers with what subscriptions said in it.
    pub fn block_at(&mut self, second: u64) -> Vec<Event> {
        self.chain.at(second);
        self.last_events()
    }

    /// What subscriptions said in the last block.
    pub fn last_events(&self) -> Vec<Event> {
        let receipts = &self.chain.outputs.last().unwrap().receipts;
        receipts.iter().flat_map(|receipt| self.events(receipt)).collect()
    }

    /// Makes one block this long after the last.
    pub fn wait(&mut self, seconds: u64) -> Vec<Event> {
        self.block_at(self.now() + seconds)
    }

    /// What the subscriptions contract said in a receipt.
    pub fn events(&self, receipt: &Receipt) -> Vec<Event> {
        let own = receipt.logs.iter().filter(|log| log.address == self.subscriptions);
        own.map(|log| Event::decode_log(log).unwrap().data).collect()
    }

    /// The runs of the last block.
    pub fn runs(&self) -> Vec<Receipt> {
        let receipts = &self.chain.outputs.last().unwrap().receipts;
        receipts.iter().filter(|receipt| receipt.schedule_ref.is_some()).cloned().collect()
    }
}

pub fn u(number: u64) -> U256 {
    U256::from(number)
}

#[track_caller]
pub fn reverts(receipt: &Receipt, error: &impl SolError) {
    assert_eq!(receipt.outcome, Outcome::Reverted(error.abi_encode().into()));
}

/// What a transaction cost whoever paid for it.
pub fn fee(receipt: &Receipt) -> U256 {
    U256::from(u128::from(receipt.gas_used.0) * receipt.effective_gas_price.0)
}

/// Whether a receipt is that of a run.
pub fn is_run(receipt: &Receipt) -> bool {
    receipt.schedule_ref.is_some()
}

/// What a run costs the escrow of a job that gets unused gas back: at least half of its limit (ARC21-14).
pub fn run_fee(receipt: &Receipt, gas_limit: u64) -> U256 {
    let gas = receipt.gas_used.0.max(gas_limit / 2);
    U256::from(u128::from(gas) * receipt.effective_gas_price.0)
}

/// Who deploys everything, has all tokens and subscribes.
pub fn customer() -> Person {
    person(0)
}

pub fn charged(id: U256, left: U256) -> Event {
    Event::SubscriptionCharged(SubscriptionCharged { id, amount: PRICE, chargesLeft: left })
}

pub fn failed(id: U256, reason: &str) -> Event {
    Event::SubscriptionFailed(SubscriptionFailed { id, reason: reason.into() })
}
