//! The genesis file: initial accounts, validators and rules.

use crate::{
    addresses::{
        BLOCK_HASH_HISTORY, DEVELOPER_DOOR, PARAMETERS, SYSTEM_ACCOUNTS, UNBUILT_ACCOUNTS, is_system,
    },
    block::{Header, StateCommitment, receipts_root, transactions_root},
    codec::{DecodeError, Reader, Writer},
    fork::Fork,
    params::{
        BASE_FEE_INITIAL, CODE_BYTES_MAX, GOVERNANCE_SLOT, PROTOCOL_VERSION, Parameter, ParameterError,
        Parameters, VALIDATORS_MAX,
    },
    state::{Account, Meta, StateKey, encode_slot},
    units::{TimestampMs, Wei},
};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    marker::PhantomData,
};

/// Code of an account that is run natively: STOP. Only an account with an EIP-7702 delegation to it executes this, and
/// then acts as one that delegates to a precompile, whose code is empty.
const SYSTEM_CODE: Bytes = Bytes::from_static(&[0x00]);
/// Code of a contract that is not built yet: INVALID, so that a call keeps its value.
const UNBUILT_CODE: Bytes = Bytes::from_static(&[0xfe]);

const META_VERSION: u8 = 1;

/// Ends the stored facts of a developer's chain; those of other chains end without it.
const DEVELOPER_FLAG: u8 = 1;

/// The same on a forked chain; the block that it stands on follows.
const FORKED_FLAG: u8 = 2;

/// The start of a chain, as its JSON file says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Genesis {
    /// Chain id that transactions are signed for.
    pub chain_id: u64,
    /// Time of block 0.
    pub timestamp_ms: TimestampMs,
    /// Owner of the params contract.
    pub governance: Address,
    /// Parameters that differ from their defaults, by name.
    #[serde(default, deserialize_with = "unique_keys")]
    pub parameters: BTreeMap<String, u64>,
    /// Who may propose and vote. Empty for a chain with one sequencer.
    #[serde(default)]
    pub validators: Vec<Validator>,
    /// Whether a developer may act in anyone's name and edit accounts. Never on a chain with validators.
    #[serde(default, skip_serializing_if = "is_false")]
    pub developer: bool,
    /// The block of another chain whose state lies below a developer's chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
    /// Accounts that exist from the start.
    #[serde(deserialize_with = "unique_keys")]
    pub allocations: BTreeMap<Address, Allocation>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// One validator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Validator {
    /// A name for people.
    pub name: String,
    /// Its ed25519 public key.
    pub public_key: B256,
    /// Gets the tips of the blocks it proposes.
    pub fee_recipient: Address,
}

/// An account at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Allocation {
    /// Its money.
    pub balance: Wei,
    /// Its nonce; a contract's is at least 1.
    #[serde(default)]
    pub nonce: u64,
    /// Its code.
    #[serde(default)]
    pub code: Bytes,
    /// Its storage.
    #[serde(default, deserialize_with = "unique_keys")]
    pub storage: BTreeMap<U256, U256>,
}

impl Allocation {
    /// Whether EIP-161 says that there is no such account.
    fn is_empty(&self) -> bool {
        self.balance == Wei::ZERO && self.nonce == 0 && self.code.is_empty()
    }
}

/// What is wrong with a genesis file.
#[derive(Debug, thiserror::Error)]
pub enum GenesisError {
    /// Not the JSON that is expected.
    #[error("genesis file cannot be read: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Chain ids that clients cannot hold.
    #[error("chain id {given} is not in 1..=9007199254740991, the integers that every client can hold")]
    ChainId {
        /// The refused id.
        given: u64,
    },
    /// A parameter is unknown or out of bounds.
    #[error("parameters: {0}")]
    Parameter(#[from] ParameterError),
    /// More money than 256 bits hold.
    #[error("the allocations add up to more than 2^256 wei")]
    SupplyTooLarge,
    /// The chain's own accounts are not for allocation.
    #[error("{address} belongs to the chain itself and cannot be allocated")]
    SystemAccount {
        /// The refused address.
        address: Address,
    },
    /// Code above the limit of EIP-170.
    #[error("code of {address} has {given} bytes, at most {CODE_BYTES_MAX} are allowed")]
    CodeTooLarge {
        /// Whose code.
        address: Address,
        /// Its size.
        given: usize,
    },
    /// An account that EIP-161 takes for empty, and whose storage it would wipe.
    #[error("{address} has storage, but no balance, nonce or code to keep it alive")]
    StorageOfEmptyAccount {
        /// Whose storage.
        address: Address,
    },
    /// Too many validators.
    #[error("{given} validators are above the limit of {VALIDATORS_MAX}")]
    TooManyValidators {
        /// How many.
        given: usize,
    },
    /// Two validators with one key.
    #[error("validator key {public_key} occurs twice")]
    DuplicateValidator {
        /// The key.
        public_key: B256,
    },
    /// A network whose accounts anyone could edit.
    #[error("a developer's chain has no validators, but {given} are named: leave out one or the other")]
    DeveloperWithValidators {
        /// How many.
        given: usize,
    },
    /// A state that nobody agreed on would lie below a network.
    #[error("only a developer's chain can be a fork, of block {number} here: add \"developer\": true")]
    ForkWithoutDeveloper {
        /// The block.
        number: u64,
    },
}

/// Largest integer that JavaScript holds exactly; wallets refuse chain ids above it.
const CHAIN_ID_MAX: u64 = (1 << 53) - 1;

impl Genesis {
    /// Reads and checks the JSON form.
    pub fn from_json(json: &str) -> Result<Self, GenesisError> {
        let genesis: Self = serde_json::from_str(json)?;
        genesis.check()?;
        Ok(genesis)
    }

    /// The JSON form.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a genesis has only string keys")
    }

    /// Checks what the types cannot.
    pub fn check(&self) -> Result<(), GenesisError> {
        if !(1..=CHAIN_ID_MAX).contains(&self.chain_id) {
            return Err(GenesisError::ChainId { given: self.chain_id });
        }
        if self.validators.len() > VALIDATORS_MAX {
            return Err(GenesisError::TooManyValidators { given: self.validators.len() });
        }
        if self.developer && !self.validators.is_empty() {
            return Err(GenesisError::DeveloperWithValidators { given: self.validators.len() });
        }
        if let Some(Fork { number, .. }) = self.fork.filter(|_| !self.developer) {
            return Err(GenesisError::ForkWithoutDeveloper { number });
        }
        let mut keys = BTreeSet::new();
        if let Some(twice) = self.validators.iter().find(|validator| !keys.insert(validator.public_key)) {
            return Err(GenesisError::DuplicateValidator { public_key: twice.public_key });
        }
        for (address, allocation) in &self.allocations {
            if is_system(*address) {
                return Err(GenesisError::SystemAccount { address: *address });
            }
            if allocation.code.len() > CODE_BYTES_MAX {
                return Err(GenesisError::CodeTooLarge { address: *address, given: allocation.code.len() });
            }
            if allocation.is_empty() && !allocation.storage.is_empty() {
                return Err(GenesisError::StorageOfEmptyAccount { address: *address });
            }
        }
        self.supply()?;
        self.parameters()?;
        Ok(())
    }

    /// All money that the chain starts with.
    pub fn supply(&self) -> Result<Wei, GenesisError> {
        self.allocations
            .values()
            .try_fold(Wei::ZERO, |sum, allocation| sum.checked_add(allocation.balance))
            .ok_or(GenesisError::SupplyTooLarge)
    }

    /// The parameters in force at the start.
    pub fn parameters(&self) -> Result<Parameters, GenesisError> {
        let mut parameters = Parameters::default();
        for (name, &given) in &self.parameters {
            let parameter =
                Parameter::by_name(name).ok_or_else(|| ParameterError::Unknown { given: name.clone() })?;
            if !(parameter.min..=parameter.max).contains(&given) {
                let Parameter { name, min, max, .. } = parameter;
                return Err(ParameterError::OutOfBounds { name, given, min, max }.into());
            }
            // Relations are checked over the finished set: the file has no order.
            parameters.load(parameter, given);
        }
        parameters.check_relations()?;
        Ok(parameters)
    }

    /// Every value of the state at block 0.
    pub fn state(&self) -> Result<BTreeMap<StateKey, Bytes>, GenesisError> {
        self.check()?;
        let mut state = BTreeMap::new();
        state.insert(StateKey::Meta(Meta::Genesis), self.meta());
        let history = alloy_eips::eip2935::HISTORY_STORAGE_CODE.clone();
        write_account(
            &mut state,
            BLOCK_HASH_HISTORY,
            &Allocation { nonce: 1, code: history, ..Default::default() },
        );
        let developer_door = self.developer.then_some(DEVELOPER_DOOR);
        for address in SYSTEM_ACCOUNTS.into_iter().chain(developer_door) {
            let code = if UNBUILT_ACCOUNTS.contains(&address) { UNBUILT_CODE } else { SYSTEM_CODE };
            write_account(&mut state, address, &Allocation { nonce: 1, code, ..Default::default() });
        }
        for (address, allocation) in &self.allocations {
            write_account(&mut state, *address, allocation);
        }
        let mut write_parameter = |slot: u64, value: U256| {
            if let Some(stored) = encode_slot(value) {
                state.insert(StateKey::Slot(PARAMETERS, U256::from(slot)), stored);
            }
        };
        write_parameter(GOVERNANCE_SLOT, U256::from_be_slice(self.governance.as_slice()));
        for (name, value) in &self.parameters {
            let parameter = Parameter::by_name(name).expect("checked above");
            write_parameter(parameter.slot, Parameter::slot_value(*value));
        }
        Ok(state)
    }

    /// What the allocations do not say, for the state root to cover.
    fn meta(&self) -> Bytes {
        let mut out = Writer::versioned(META_VERSION, 64 + 64 * self.validators.len());
        out.u64(self.chain_id);
        out.u64(self.timestamp_ms.0);
        out.count(self.validators.len());
        for validator in &self.validators {
            out.b256(validator.public_key);
            out.address(validator.fee_recipient);
        }
        if let Some(Fork { chain_id, number, hash }) = self.fork {
            out.u8(FORKED_FLAG);
            out.u64(chain_id);
            out.u64(number);
            out.b256(hash);
        } else if self.developer {
            out.u8(DEVELOPER_FLAG);
        }
        out.finish().into()
    }

    /// The header of block 0, given what the store says of the state.
    pub fn header(&self, commitment: StateCommitment) -> Result<Header, GenesisError> {
        let parameters = self.parameters()?;
        Ok(Header {
            timestamp: self.timestamp_ms,
            protocol_version: PROTOCOL_VERSION,
            gas_limit: parameters.block_gas_max(),
            base_fee: BASE_FEE_INITIAL.max(parameters.base_fee_floor()),
            transactions_root: transactions_root([]),
            receipts_root: receipts_root(&[]),
            commitment,
            ..Header::default()
        })
    }
}

/// Whether the stored facts about a genesis ([`Meta::Genesis`]) are those of a developer's chain.
pub fn is_developer(meta: &[u8]) -> Result<bool, DecodeError> {
    Ok(read_flag(meta)?.is_some())
}

/// The block below a forked chain, by the stored facts about its genesis.
pub fn fork_of(meta: &[u8]) -> Result<Option<Fork>, DecodeError> {
    Ok(read_flag(meta)?.flatten())
}

/// `None` for a network; for a developer's chain, the block below it.
fn read_flag(meta: &[u8]) -> Result<Option<Option<Fork>>, DecodeError> {
    let mut input = Reader::versioned(meta, "genesis", META_VERSION)?;
    input.u64("chain id")?;
    input.u64("timestamp")?;
    for _ in 0..input.count("validators", VALIDATORS_MAX)? {
        input.b256("validator key")?;
        input.address("fee recipient")?;
    }
    if input.is_empty() {
        return Ok(None);
    }
    let fork = match input.u8("developer flag")? {
        DEVELOPER_FLAG => None,
        FORKED_FLAG => Some(Fork {
            chain_id: input.u64("chain id of the origin")?,
            number: input.u64("number of the origin's block")?,
            hash: input.b256("hash of the origin's block")?,
        }),
        given => return Err(DecodeError::UnknownValue { what: "developer flag", given: given.into() }),
    };
    input.finish("genesis")?;
    Ok(Some(fork))
}

fn write_account(state: &mut BTreeMap<StateKey, Bytes>, address: Address, allocation: &Allocation) {
    if allocation.is_empty() {
        return;
    }
    let code_hash = if allocation.code.is_empty() { KECCAK256_EMPTY } else { keccak256(&allocation.code) };
    let has_code = code_hash != KECCAK256_EMPTY;
    // EIP-161: a contract starts at nonce 1. Without it, an empty one would lose its storage.
    let nonce = if has_code { allocation.nonce.max(1) } else { allocation.nonce };
    if has_code {
        state.insert(StateKey::Code(code_hash), allocation.code.clone());
    }
    state.insert(
        StateKey::Account(address),
        Account { nonce, balance: allocation.balance.0, code_hash, is_keyed: false }.encode(),
    );
    for (slot, value) in &allocation.storage {
        if let Some(stored) = encode_slot(*value) {
            state.insert(StateKey::Slot(address, *slot), stored);
        }
    }
}

/// Reads a map in which each key occurs once. Left to itself, serde keeps the last of two silently: an
/// account written twice, or once in upper and once in lower case, would lose its first balance.
fn unique_keys<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord + fmt::Display,
    V: Deserialize<'de>,
{
    deserializer.deserialize_map(UniqueKeys(PhantomData))
}

struct UniqueKeys<K, V>(PhantomData<(K, V)>);

impl<'de, K, V> de::Visitor<'de> for UniqueKeys<K, V>
where
    K: Deserialize<'de> + Ord + fmt::Display,
    V: Deserialize<'de>,
{
    type Value = BTreeMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map in which each key occurs once")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some(key) = entries.next_key::<K>()? {
            if map.contains_key(&key) {
                return Err(de::Error::custom(format_args!("{key} occurs twice")));
            }
            map.insert(key, entries.next_value()?);
        }
        Ok(map)
    }
}
