//! The rules of transactions, checked at submission and again in the block.

use crate::{
    environment::read_parameters,
    error::StateFault,
    native::gas,
    state::{BlockState, is_developer},
};
use alloy_primitives::{Address, U256};
use almanac_primitives::{
    Chain, Gas, GasPrice, StateRead, TimestampMs, UserTransaction, Wei,
    addresses::is_system,
    native::AuthenticatorError,
    params::INIT_CODE_BYTES_MAX,
    transaction::{RecoverError, SignatureError},
};
use revm::{
    Database, context_interface::cfg::GasParams, interpreter::InitialAndFloorGas,
    primitives::hardfork::SpecId,
};
use std::sync::LazyLock;

/// The fork whose rules the EVM follows.
pub(crate) const SPEC: SpecId = SpecId::OSAKA;

/// Its gas prices, computed once.
static GAS_PARAMS: LazyLock<GasParams> = LazyLock::new(|| GasParams::new_spec(SPEC));

/// The inputs of the stateless checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The chain that it must be signed for.
    pub chain: Chain,
    /// Largest gas limit that any block could hold.
    pub gas_max: Gas,
    /// Whether unsigned (impersonated) transactions are allowed.
    pub is_developer: bool,
}

impl Rules {
    /// The rules for transactions of the next block on a state.
    pub fn read(chain: Chain, state: &dyn StateRead) -> Result<Self, StateFault> {
        let gas_max = read_parameters(state)?.block_gas_max();
        Ok(Self { chain, gas_max, is_developer: is_developer(state)? })
    }
}

/// Which rule a transaction breaks. Messages contain the phrases that Ethereum clients look for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// Signed for another chain.
    #[error("invalid chain id: signed for {given}, this chain is {chain}")]
    WrongChain {
        /// The chain it is for.
        given: u64,
        /// This chain.
        chain: u64,
    },
    /// Asks for more gas than a block has.
    #[error("exceeds block gas limit: {given} gas asked for, at most {max} allowed")]
    GasLimitAboveBlock {
        /// Its gas limit.
        given: u64,
        /// The block's.
        max: u64,
    },
    /// The gas limit is below the minimum cost.
    #[error("intrinsic gas too low: {given} gas given, {needed} needed")]
    IntrinsicGasTooLow {
        /// Its gas limit.
        given: u64,
        /// The least that is needed (intrinsic gas, or the calldata floor of EIP-7623).
        needed: u64,
    },
    /// The tip exceeds the fee cap.
    #[error("max priority fee per gas higher than max fee per gas: tip {tip}, cap {cap}")]
    TipAboveFeeCap {
        /// Its tip.
        tip: GasPrice,
        /// Its cap.
        cap: GasPrice,
    },
    /// Init code above EIP-3860's limit.
    #[error("max initcode size exceeded: {given} bytes, at most {max} allowed")]
    InitCodeTooLarge {
        /// Its size.
        given: usize,
        /// The largest allowed.
        max: usize,
    },
    /// An EIP-7702 transaction without authorizations.
    #[error("EIP-7702 transaction with empty auth list")]
    EmptyAuthorizationList,
    /// EIP-2681: the last nonce is never used.
    #[error("nonce has max value: {given}")]
    NonceAtMaximum {
        /// Its nonce.
        given: u64,
    },
    /// It is not signed, and this is not a developer chain.
    #[error(
        "invalid sender: {sender} did not sign, and only a developer chain accepts unsigned transactions"
    )]
    NotSigned {
        /// The impersonated sender.
        sender: Address,
    },
    /// It impersonates an account of the chain itself.
    #[error("invalid sender: {sender} belongs to the chain itself and cannot be impersonated")]
    SystemSender {
        /// The impersonated sender.
        sender: Address,
    },
    /// No valid signature.
    #[error("invalid sender: {0}")]
    Signature(#[from] SignatureError),
    /// The signatures of a native transaction prove nothing.
    #[error("invalid sender: {0}")]
    Authenticator(#[from] AuthenticatorError),
    /// The keys that signed are not those of the account.
    #[error("KeyNotSatisfied: the signatures do not satisfy the key of {account}")]
    KeyNotSatisfied {
        /// The sender or the fee payer.
        account: Address,
    },
    /// The key is satisfied without one of the signatures.
    #[error("SignatureSuperfluous: the key of {account} needs no signature {index}")]
    SignatureSuperfluous {
        /// The sender or the fee payer.
        account: Address,
        /// The signature.
        index: usize,
    },
    /// The account's key is no longer the one that its address derives from.
    #[error("KeyRotated: {sender} has another key since; send type 0x72")]
    KeyRotated {
        /// The sender.
        sender: Address,
    },
    /// The fee payer cannot pay for the gas.
    #[error("FeePayerFunds: insufficient funds for gas * price: needs {needed}, {payer} has {balance}")]
    FeePayerFunds {
        /// The fee payer.
        payer: Address,
        /// Gas limit times fee cap.
        needed: Wei,
        /// What is there.
        balance: Wei,
    },
    /// Orderless transactions are switched off.
    #[error("OrderlessDisabled: orderless transactions are switched off; send one with a sequence number")]
    OrderlessDisabled,
    /// Another transaction of the sender has this nonce.
    #[error("NonceAlreadyUsed: nonce {nonce} was used by a transaction that expires at {expiration}")]
    NonceAlreadyUsed {
        /// Its nonce.
        nonce: u64,
        /// The second at which the other one expires.
        expiration: u64,
    },
    /// It expires later than an orderless transaction may.
    #[error("ExpirationTooFar: it expires at second {given}, more than {max_ms} ms after {now}")]
    ExpirationTooFar {
        /// When it expires, in seconds.
        given: u64,
        /// The block's time.
        now: TimestampMs,
        /// How far ahead it may expire.
        max_ms: u64,
    },
    /// Its time is over.
    #[error("TransactionExpired: it expired at second {given}, and it is {now}")]
    TransactionExpired {
        /// When it expired, in seconds.
        given: u64,
        /// The block's time.
        now: TimestampMs,
    },
    /// The sender has used this nonce before.
    #[error("nonce too low: transaction has {given}, the account is at {account}")]
    NonceTooLow {
        /// Its nonce.
        given: u64,
        /// The account's.
        account: u64,
    },
    /// Earlier nonces are missing.
    #[error("nonce too high: transaction has {given}, the account is at {account}")]
    NonceTooHigh {
        /// Its nonce.
        given: u64,
        /// The account's.
        account: u64,
    },
    /// The sender cannot pay for the worst case.
    #[error("insufficient funds for gas * price + value: needs {needed}, {sender} has {balance}")]
    InsufficientFunds {
        /// The sender.
        sender: Address,
        /// Value plus gas limit times fee cap.
        needed: Wei,
        /// What is there.
        balance: Wei,
    },
    /// The maximum cost overflows: 128 bits for gas, 256 bits with the value.
    #[error("gas * price overflows 128 bits, or together with value 256 bits")]
    CostOverflow,
    /// The cap is below the block's base fee.
    #[error("max fee per gas less than block base fee: cap {cap}, base fee {base_fee}")]
    FeeCapBelowBaseFee {
        /// Its cap.
        cap: GasPrice,
        /// The block's.
        base_fee: GasPrice,
    },
    /// The cap is below the lowest possible base fee.
    #[error("transaction underpriced: fee cap {cap} is below the lowest base fee, {floor}")]
    Underpriced {
        /// Its cap.
        cap: GasPrice,
        /// The floor of the base fee.
        floor: GasPrice,
    },
    /// EIP-3607: contracts cannot sign.
    #[error("sender not an eoa: {sender} has code")]
    SenderHasCode {
        /// The sender.
        sender: Address,
    },
    /// The block has no room for it.
    #[error(
        "does not fit the block: asks for {gas} and {bytes} bytes, {gas_left} and {bytes_left} bytes are left"
    )]
    DoesNotFit {
        /// Its gas limit.
        gas: Gas,
        /// Its size.
        bytes: usize,
        /// Shared gas left.
        gas_left: Gas,
        /// Body bytes left.
        bytes_left: usize,
    },
    /// Runs went ahead of a transaction that was then left out, and this one would have to precede them.
    #[error("pays {price}, and a run that bids {ahead} has already run: it can only be in a later block")]
    BehindRuns {
        /// Its price.
        price: GasPrice,
        /// The lowest bid of the runs.
        ahead: GasPrice,
    },
    /// The block has the maximum number of transactions.
    #[error("the block has its full number of transactions, {max}")]
    BlockCountFull {
        /// The most allowed.
        max: usize,
    },
}

/// Rules that need no state: chain, gas bounds, fee caps, sizes. Decoding has already checked type and size.
pub fn check_static(transaction: &UserTransaction, rules: &Rules) -> Result<(), TransactionError> {
    if let Some(sender) = transaction.impersonated() {
        check_impersonation(sender, rules)?;
    }
    let tx = transaction;
    if let Some(given) = tx.chain_id()
        && given != rules.chain.id
    {
        return Err(TransactionError::WrongChain { given, chain: rules.chain.id });
    }
    if tx.nonce() == u64::MAX && !tx.is_orderless() {
        return Err(TransactionError::NonceAtMaximum { given: tx.nonce() });
    }
    if tx.gas_limit() > rules.gas_max.0 {
        return Err(TransactionError::GasLimitAboveBlock { given: tx.gas_limit(), max: rules.gas_max.0 });
    }
    if tx.is_create() && tx.input().len() > INIT_CODE_BYTES_MAX {
        return Err(TransactionError::InitCodeTooLarge { given: tx.input().len(), max: INIT_CODE_BYTES_MAX });
    }
    if tx.authorization_list().is_some_and(|list| list.is_empty()) {
        return Err(TransactionError::EmptyAuthorizationList);
    }
    if let Some(tip) = tx.tip_cap()
        && tip > tx.fee_cap()
    {
        return Err(TransactionError::TipAboveFeeCap { tip, cap: tx.fee_cap() });
    }
    let needed = intrinsic_gas(transaction);
    if tx.gas_limit() < needed {
        return Err(TransactionError::IntrinsicGasTooLow { given: tx.gas_limit(), needed });
    }
    Ok(())
}

fn check_impersonation(sender: Address, rules: &Rules) -> Result<(), TransactionError> {
    if !rules.is_developer {
        return Err(TransactionError::NotSigned { sender });
    }
    // The ledger's balance is owed to others, and must cover it on every chain.
    if is_system(sender) {
        return Err(TransactionError::SystemSender { sender });
    }
    Ok(())
}

/// Rules at submission that need the sender's account. A transaction that breaks one can never be included.
pub fn check_submission(
    transaction: &UserTransaction,
    sender: Address,
    account: &Sender,
    floor: GasPrice,
) -> Result<(), TransactionError> {
    check_floor(transaction, floor)?;
    check_sender(transaction, sender, account)
}

/// Whether the base fee can ever fall low enough for a transaction.
pub fn check_floor(transaction: &UserTransaction, floor: GasPrice) -> Result<(), TransactionError> {
    let cap = transaction.fee_cap();
    if cap < floor { Err(TransactionError::Underpriced { cap, floor }) } else { Ok(()) }
}

/// Rules of inclusion in a block, which need the sender's account and the base fee. All must hold now.
pub fn check_inclusion(
    transaction: &UserTransaction,
    sender: Address,
    account: &Sender,
    base_fee: GasPrice,
) -> Result<(), TransactionError> {
    check_sender(transaction, sender, account)?;
    let (given, expected) = (transaction.nonce(), account.nonce);
    if given > expected && !transaction.is_orderless() {
        return Err(TransactionError::NonceTooHigh { given, account: expected });
    }
    let cap = transaction.fee_cap();
    if cap < base_fee {
        return Err(TransactionError::FeeCapBelowBaseFee { cap, base_fee });
    }
    Ok(())
}

fn check_sender(
    transaction: &UserTransaction,
    sender: Address,
    account: &Sender,
) -> Result<(), TransactionError> {
    // An impersonated transaction is not signed, and contracts are what tools impersonate most.
    if !account.may_sign && transaction.impersonated().is_none() {
        return Err(TransactionError::SenderHasCode { sender });
    }
    if account.is_keyed && transaction.native().is_none() && transaction.impersonated().is_none() {
        return Err(TransactionError::KeyRotated { sender });
    }
    let (given, expected) = (transaction.nonce(), account.nonce);
    if given < expected && !transaction.is_orderless() {
        return Err(TransactionError::NonceTooLow { given, account: expected });
    }
    check_funds(transaction, sender, account)
}

/// Whether the sender has what the transaction can cost it.
pub(crate) fn check_funds(
    transaction: &UserTransaction,
    sender: Address,
    account: &Sender,
) -> Result<(), TransactionError> {
    let (needed, balance) = (cost_max(transaction)?, account.balance);
    if balance < needed {
        return Err(TransactionError::InsufficientFunds { sender, needed, balance });
    }
    Ok(())
}

/// What the rules need to know about a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Next nonce.
    pub nonce: u64,
    /// Money.
    pub balance: Wei,
    /// Has no code, or only an EIP-7702 delegation.
    pub may_sign: bool,
    /// Has code, a delegation included.
    pub has_code: bool,
    /// Has a key record.
    pub is_keyed: bool,
}

impl Sender {
    /// Reads a sender from a state.
    pub fn read(state: &dyn StateRead, address: Address) -> Result<Self, StateFault> {
        Self::of(&mut BlockState::new(state), address)
    }

    /// Reads a sender from a block's state.
    pub(crate) fn of(state: &mut BlockState<'_>, address: Address) -> Result<Self, StateFault> {
        let Some(info) = state.basic(address)? else {
            return Ok(Self {
                nonce: 0,
                balance: Wei::ZERO,
                may_sign: true,
                has_code: false,
                is_keyed: false,
            });
        };
        let is_keyed = state.is_keyed(address)?;
        let has_code = !info.is_empty_code_hash();
        let may_sign = !has_code || state.code_by_hash(info.code_hash)?.is_eip7702();
        Ok(Self { nonce: info.nonce, balance: Wei(info.balance), may_sign, has_code, is_keyed })
    }
}

/// The most that a transaction can cost its sender: value plus gas limit times fee cap, unless another pays the fee.
pub fn cost_max(transaction: &UserTransaction) -> Result<Wei, TransactionError> {
    if transaction.fee_payer().is_some() {
        return Ok(Wei(transaction.value()));
    }
    // The EVM computes the cost of gas in 128 bits and rejects what overflows, whatever the sender's balance.
    u128::from(transaction.gas_limit())
        .checked_mul(transaction.fee_cap().0)
        .and_then(|gas| U256::from(gas).checked_add(transaction.value()))
        .map(Wei)
        .ok_or(TransactionError::CostOverflow)
}

/// The most that a transaction can cost its fee payer, and who that is, if another than the sender.
pub fn payer_cost_max(transaction: &UserTransaction) -> Result<Option<(Address, Wei)>, TransactionError> {
    let Some(payer) = transaction.fee_payer() else { return Ok(None) };
    let gas = u128::from(transaction.gas_limit()).checked_mul(transaction.fee_cap().0);
    gas.map(|gas| Some((payer, Wei(U256::from(gas))))).ok_or(TransactionError::CostOverflow)
}

/// The lowest gas limit that a transaction may have, key records apart.
pub(crate) fn intrinsic_gas(transaction: &UserTransaction) -> u64 {
    let tx = transaction;
    if let Some(native) = tx.native() {
        return least_gas(&gas::intrinsic(native));
    }
    let (accounts, slots) = tx.access_list().map_or((0, 0), |list| {
        (list.len() as u64, list.iter().map(|item| item.storage_keys.len() as u64).sum())
    });
    let authorizations = tx.authorization_list().map_or(0, |list| list.len() as u64);
    let gas = GAS_PARAMS.initial_tx_gas(tx.input(), tx.is_create(), accounts, slots, authorizations, None);
    least_gas(&gas)
}

/// Intrinsic and floor gas of a call that carries `input`.
pub(crate) fn call_gas(input: &[u8]) -> InitialAndFloorGas {
    GAS_PARAMS.initial_tx_gas(input, false, 0, 0, 0, None)
}

/// The lowest gas limit of a call that carries `input`.
pub fn call_gas_min(input: &[u8]) -> Gas {
    Gas(least_gas(&call_gas(input)))
}

/// Intrinsic and floor gas of a creation with this init code.
pub(crate) fn creation_gas(init_code: &[u8]) -> InitialAndFloorGas {
    GAS_PARAMS.initial_tx_gas(init_code, true, 0, 0, 0, None)
}

/// The lowest gas limit that satisfies both the intrinsic gas and the calldata floor.
pub(crate) fn least_gas(gas: &InitialAndFloorGas) -> u64 {
    gas.initial_total_gas().max(gas.floor_gas())
}

impl From<RecoverError> for TransactionError {
    fn from(error: RecoverError) -> Self {
        match error {
            RecoverError::Signature(error) => error.into(),
            RecoverError::Authenticator(error) => error.into(),
        }
    }
}
