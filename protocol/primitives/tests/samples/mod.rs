//! Values to encode: signed transactions of each kind, and a deterministic source of any number of others.

#![allow(dead_code, reason = "each test file uses a part of this")]

use alloy_consensus::{
    EthereumTypedTransaction, SignableTransaction, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy,
    crypto::secp256k1::sign_message,
};
use alloy_eips::{
    eip2718::Encodable2718,
    eip2930::{AccessList, AccessListItem},
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{
    Address, B256, Bloom, Bytes, KECCAK256_EMPTY, Log, LogData, Signature, TxKind, U256, address, b256,
    keccak256,
};
use almanac_primitives::{
    Account, Block, ConsensusContext, Gas, GasPrice, Genesis, Halt, Header, Lane, Outcome,
    PrologueTransaction, Receipt, RunTransaction, ScheduleId, ScheduleRef, StateCommitment, StateKey,
    TimestampMs, UserTransaction, Wei,
    genesis::{Allocation, Validator},
    params::{self, RECEIPT_REASON_BYTES_MAX},
    state::Meta,
    transaction::Envelope,
};

/// The unsigned form of a user transaction.
pub(crate) type Unsigned = EthereumTypedTransaction<TxEip4844>;

pub(crate) const CHAIN_ID: u64 = 7_777;

/// The kinds of transaction that people may sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Legacy,
    Eip2930,
    Eip1559,
    Eip7702,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Legacy, Self::Eip2930, Self::Eip1559, Self::Eip7702];
}

/// A secret key and the address that the rest of the world knows it by.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub(crate) secret: B256,
    pub(crate) address: Address,
}

/// The first accounts of the mnemonic that every Ethereum developer tool shares, so that the addresses come
/// from elsewhere than the code under test.
pub(crate) const ALICE: Key = Key {
    secret: b256!("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"),
    address: address!("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
};
pub(crate) const BOB: Key = Key {
    secret: b256!("0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"),
    address: address!("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"),
};
pub(crate) const CAROL: Key = Key {
    secret: b256!("0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"),
    address: address!("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"),
};

/// A transaction of a kind, with every field that the kind has filled in.
pub(crate) fn unsigned(kind: Kind) -> Unsigned {
    let (nonce, gas_limit, value) = (9, 210_000, U256::from(10).pow(U256::from(18)));
    let (max_fee_per_gas, max_priority_fee_per_gas) = (30_000_000_000, 2_000_000_000);
    let (to, input) = (CAROL.address, Bytes::from_static(b"\x01\x02\x03\x04 calldata"));
    match kind {
        Kind::Legacy => Unsigned::Legacy(TxLegacy {
            chain_id: Some(CHAIN_ID),
            nonce,
            gas_price: max_fee_per_gas,
            gas_limit,
            to: to.into(),
            value,
            input,
        }),
        Kind::Eip2930 => Unsigned::Eip2930(TxEip2930 {
            chain_id: CHAIN_ID,
            nonce,
            gas_price: max_fee_per_gas,
            gas_limit,
            to: to.into(),
            value,
            access_list: access_list(),
            input,
        }),
        Kind::Eip1559 => Unsigned::Eip1559(TxEip1559 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit,
            max_fee_per_gas,
            max_priority_fee_per_gas,
            to: to.into(),
            value,
            access_list: access_list(),
            input,
        }),
        Kind::Eip7702 => Unsigned::Eip7702(TxEip7702 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit,
            max_fee_per_gas,
            max_priority_fee_per_gas,
            to,
            value,
            access_list: access_list(),
            authorization_list: vec![authorise(BOB, 3), authorise(CAROL, 0)],
            input,
        }),
    }
}

fn access_list() -> AccessList {
    AccessList(vec![
        AccessListItem { address: BOB.address, storage_keys: vec![B256::ZERO, B256::repeat_byte(0xab)] },
        AccessListItem { address: CAROL.address, storage_keys: vec![] },
    ])
}

/// An authorisation by `key` for the code of one contract.
pub(crate) fn authorise(key: Key, nonce: u64) -> SignedAuthorization {
    let authorization =
        Authorization { chain_id: U256::from(CHAIN_ID), address: Address::repeat_byte(0xc0), nonce };
    let signature = sign_message(key.secret, authorization.signature_hash()).unwrap();
    authorization.into_signed(signature)
}

/// The signature of `key` over a transaction.
pub(crate) fn signature(unsigned: &Unsigned, key: Key) -> Signature {
    sign_message(key.secret, unsigned.signature_hash()).unwrap()
}

/// The encoding of a transaction with any signature, valid or not.
pub(crate) fn encoded_with(unsigned: Unsigned, signature: Signature) -> Vec<u8> {
    Envelope::new_unhashed(unsigned, signature).encoded_2718()
}

/// A transaction signed by `key`.
pub(crate) fn signed_by(unsigned: Unsigned, key: Key) -> UserTransaction {
    let signature = signature(&unsigned, key);
    UserTransaction::decode(&encoded_with(unsigned, signature)).unwrap()
}

/// A transaction of a kind, signed by Alice.
pub(crate) fn signed(kind: Kind) -> UserTransaction {
    signed_by(unsigned(kind), ALICE)
}

/// A transaction of a kind, made in Bob's name.
pub(crate) fn impersonated(kind: Kind) -> UserTransaction {
    UserTransaction::impersonate(BOB.address, unsigned(kind)).unwrap()
}

/// A deterministic stream of values: keccak-256 over a seed and a counter.
pub(crate) struct Draw {
    seed: B256,
    counter: u64,
}

impl Draw {
    pub(crate) fn new(seed: &str) -> Self {
        Self { seed: keccak256(seed), counter: 0 }
    }

    pub(crate) fn b256(&mut self) -> B256 {
        self.counter += 1;
        keccak256([&self.seed[..], &self.counter.to_be_bytes()].concat())
    }

    fn any_u64(&mut self) -> u64 {
        u64::from_be_bytes(self.b256()[..8].try_into().unwrap())
    }

    /// A number from 0 to `bound`, less one.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.any_u64() % bound as u64).try_into().unwrap()
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 0
    }

    /// A number of any magnitude: zero, one and the largest are as likely as any other length.
    pub(crate) fn u256(&mut self) -> U256 {
        match self.below(8) {
            0 => U256::ZERO,
            1 => U256::MAX,
            _ => U256::from_be_bytes(self.b256().0) >> self.below(256),
        }
    }

    pub(crate) fn u128(&mut self) -> u128 {
        self.u256().wrapping_to()
    }

    pub(crate) fn u64(&mut self) -> u64 {
        self.u256().wrapping_to()
    }

    pub(crate) fn u32(&mut self) -> u32 {
        self.u256().wrapping_to()
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.u256().wrapping_to()
    }

    pub(crate) fn address(&mut self) -> Address {
        Address::from_slice(&self.b256()[12..])
    }

    /// Up to `max` bytes.
    pub(crate) fn bytes(&mut self, max: usize) -> Bytes {
        let length = self.below(max + 1);
        let mut bytes = Vec::with_capacity(length + 32);
        while bytes.len() < length {
            bytes.extend_from_slice(self.b256().as_slice());
        }
        bytes.truncate(length);
        bytes.into()
    }

    /// Up to `max` values.
    pub(crate) fn list<T>(&mut self, max: usize, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(max + 1)).map(|_| item(self)).collect()
    }

    fn option<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flip() { Some(value(self)) } else { None }
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub(crate) fn header(&mut self) -> Header {
        Header {
            parent_hash: self.b256(),
            number: self.u64(),
            timestamp: TimestampMs(self.u64()),
            protocol_version: self.u32(),
            consensus: ConsensusContext {
                epoch: self.u64(),
                view: self.u64(),
                leader: self.b256(),
                parent_view: self.u64(),
            },
            fee_recipient: self.address(),
            gas_limit: Gas(self.u64()),
            gas_used: Gas(self.u64()),
            reserved_gas_used: Gas(self.u64()),
            base_fee: GasPrice(self.u128()),
            transactions_root: self.b256(),
            receipts_root: self.b256(),
            logs_bloom: self.bloom(),
            commitment: StateCommitment {
                state_root: self.b256(),
                ops_root: self.b256(),
                ops_start: self.u64(),
                ops_end: self.u64(),
            },
        }
    }

    fn bloom(&mut self) -> Bloom {
        let words: Vec<u8> = (0..8).flat_map(|_| self.b256().0).collect();
        Bloom::from_slice(&words)
    }

    pub(crate) fn block(&mut self) -> Block {
        Block { header: self.header(), transactions: self.list(5, Self::transaction) }
    }

    /// A transaction with a made-up signature: encodings do not care.
    pub(crate) fn transaction(&mut self) -> UserTransaction {
        let unsigned = self.unsigned();
        let signature = Signature::new(self.u256(), self.u256(), self.flip());
        UserTransaction::decode(&encoded_with(unsigned, signature)).unwrap()
    }

    fn unsigned(&mut self) -> Unsigned {
        let kind = self.pick(&Kind::ALL);
        let to = self.option(Self::address).map_or(TxKind::Create, TxKind::Call);
        match kind {
            Kind::Legacy => Unsigned::Legacy(TxLegacy {
                chain_id: self.option(Self::u64),
                nonce: self.u64(),
                gas_price: self.u128(),
                gas_limit: self.u64(),
                to,
                value: self.u256(),
                input: self.bytes(80),
            }),
            Kind::Eip2930 => Unsigned::Eip2930(TxEip2930 {
                chain_id: self.u64(),
                nonce: self.u64(),
                gas_price: self.u128(),
                gas_limit: self.u64(),
                to,
                value: self.u256(),
                access_list: self.access_list(),
                input: self.bytes(80),
            }),
            Kind::Eip1559 => Unsigned::Eip1559(TxEip1559 {
                chain_id: self.u64(),
                nonce: self.u64(),
                gas_limit: self.u64(),
                max_fee_per_gas: self.u128(),
                max_priority_fee_per_gas: self.u128(),
                to,
                value: self.u256(),
                access_list: self.access_list(),
                input: self.bytes(80),
            }),
            Kind::Eip7702 => Unsigned::Eip7702(TxEip7702 {
                chain_id: self.u64(),
                nonce: self.u64(),
                gas_limit: self.u64(),
                max_fee_per_gas: self.u128(),
                max_priority_fee_per_gas: self.u128(),
                to: self.address(),
                value: self.u256(),
                access_list: self.access_list(),
                authorization_list: self.list(3, Self::authorization),
                input: self.bytes(80),
            }),
        }
    }

    fn access_list(&mut self) -> AccessList {
        AccessList(self.list(2, |draw| AccessListItem {
            address: draw.address(),
            storage_keys: draw.list(2, Self::b256),
        }))
    }

    fn authorization(&mut self) -> SignedAuthorization {
        let authorization =
            Authorization { chain_id: self.u256(), address: self.address(), nonce: self.u64() };
        SignedAuthorization::new_unchecked(authorization, self.u8(), self.u256(), self.u256())
    }

    pub(crate) fn receipt(&mut self) -> Receipt {
        Receipt {
            transaction_type: self.u8(),
            transaction_hash: self.b256(),
            outcome: self.outcome(),
            gas_used: Gas(self.u64()),
            cumulative_gas_used: Gas(self.u64()),
            effective_gas_price: GasPrice(self.u128()),
            contract_address: self.option(Self::address),
            failed_call: None,
            schedule_ref: self.option(Self::schedule_ref),
            logs: self.list(3, Self::log),
        }
    }

    fn outcome(&mut self) -> Outcome {
        match self.below(3) {
            0 => Outcome::Success,
            1 => Outcome::Reverted(self.bytes(RECEIPT_REASON_BYTES_MAX)),
            _ => Outcome::Halted(self.pick(&HALTS)),
        }
    }

    fn log(&mut self) -> Log {
        let topics = self.list(4, Self::b256);
        Log { address: self.address(), data: LogData::new_unchecked(topics, self.bytes(70)) }
    }

    pub(crate) fn schedule_id(&mut self) -> ScheduleId {
        ScheduleId(self.u64())
    }

    fn schedule_ref(&mut self) -> ScheduleRef {
        ScheduleRef { schedule: self.schedule_id(), number: self.u64() }
    }

    pub(crate) fn run(&mut self) -> RunTransaction {
        RunTransaction {
            schedule_ref: self.schedule_ref(),
            lane: self.pick(&Lane::ALL),
            from: self.address(),
            to: self.address(),
            value: Wei(self.u256()),
            input: self.bytes(80),
            gas_limit: Gas(self.u64()),
            gas_price: GasPrice(self.u128()),
        }
    }

    pub(crate) fn prologue(&mut self) -> PrologueTransaction {
        PrologueTransaction {
            number: self.u64(),
            timestamp: TimestampMs(self.u64()),
            parent_hash: self.b256(),
        }
    }

    pub(crate) fn account(&mut self) -> Account {
        Account {
            nonce: self.u64(),
            balance: self.u256(),
            code_hash: self.option(Self::b256).unwrap_or(KECCAK256_EMPTY),
            is_keyed: self.below(2) == 1,
        }
    }

    pub(crate) fn state_key(&mut self) -> StateKey {
        match self.below(10) {
            0 => StateKey::Account(self.address()),
            1 => StateKey::Slot(self.address(), self.u256()),
            2 => StateKey::Code(self.b256()),
            3 => StateKey::Body(ScheduleId(self.u64())),
            4 => StateKey::Calendar(self.u64()),
            5 => StateKey::Meta(Meta::Genesis),
            6 => StateKey::Meta(Meta::NonceSweep),
            7 => StateKey::Nonce(self.address(), self.u64()),
            8 => StateKey::NonceLog(self.u64(), self.u64()),
            _ => StateKey::AccountKey(self.address()),
        }
    }

    pub(crate) fn genesis(&mut self) -> Genesis {
        let parameters = if self.flip() {
            [(params::BASE_FEE_FLOOR_WEI.name.to_owned(), 1 + self.below(1_000) as u64)].into()
        } else {
            [(params::SECOND_SHARED_EFFORT.name.to_owned(), 0)].into()
        };
        Genesis {
            chain_id: 1 + self.below(1 << 40) as u64,
            timestamp_ms: TimestampMs(self.u64()),
            governance: self.address(),
            parameters,
            validators: self.list(4, |draw| Validator {
                name: format!("validator {}", draw.below(100)),
                public_key: draw.b256(),
                fee_recipient: draw.address(),
            }),
            developer: false,
            fork: None,
            allocations: self.list(6, |draw| (draw.address(), draw.allocation())).into_iter().collect(),
        }
    }

    fn allocation(&mut self) -> Allocation {
        Allocation {
            // Six of these never add up to more than 256 bits, and none is an empty account.
            balance: Wei((self.u256() >> 8) + U256::from(1)),
            nonce: self.u64(),
            code: self.bytes(40),
            storage: self.list(3, |draw| (draw.u256(), draw.u256())).into_iter().collect(),
        }
    }
}

/// Every way in which a call can be stopped.
pub(crate) const HALTS: [Halt; 9] = [
    Halt::OutOfGas,
    Halt::InvalidOpcode,
    Halt::InvalidJump,
    Halt::Stack,
    Halt::Precompile,
    Halt::Create,
    Halt::StaticCall,
    Halt::InsufficientBalance,
    Halt::Other,
];

/// A header in which no two fields are alike.
pub(crate) fn header() -> Header {
    Header {
        parent_hash: B256::repeat_byte(0x11),
        number: 1_042,
        timestamp: TimestampMs(1_767_225_600_123),
        protocol_version: 1,
        consensus: ConsensusContext { epoch: 2, view: 77, leader: B256::repeat_byte(0x22), parent_view: 75 },
        fee_recipient: Address::repeat_byte(0x33),
        gas_limit: Gas(30_000_000),
        gas_used: Gas(12_345_678),
        reserved_gas_used: Gas(2_100_000),
        base_fee: GasPrice(1_000_000_007),
        transactions_root: B256::repeat_byte(0x44),
        receipts_root: B256::repeat_byte(0x55),
        logs_bloom: Bloom::repeat_byte(0x66),
        commitment: StateCommitment {
            state_root: B256::repeat_byte(0x77),
            ops_root: B256::repeat_byte(0x88),
            ops_start: 5,
            ops_end: 9_999,
        },
    }
}

/// A block with one transaction of each kind.
pub(crate) fn block() -> Block {
    Block { header: header(), transactions: Kind::ALL.map(signed).to_vec() }
}

/// A receipt without any of its optional parts.
pub(crate) fn receipt(outcome: Outcome) -> Receipt {
    Receipt {
        transaction_type: 2,
        transaction_hash: B256::repeat_byte(0x99),
        outcome,
        gas_used: Gas(21_000),
        cumulative_gas_used: Gas(63_000),
        effective_gas_price: GasPrice(3_000_000_007),
        contract_address: None,
        failed_call: None,
        schedule_ref: None,
        logs: vec![],
    }
}

/// A receipt with all of its optional parts.
pub(crate) fn receipt_full() -> Receipt {
    let log = |topics: Vec<B256>, data: &'static [u8]| Log {
        address: Address::repeat_byte(0xaa),
        data: LogData::new_unchecked(topics, Bytes::from_static(data)),
    };
    Receipt {
        contract_address: Some(Address::repeat_byte(0xbb)),
        failed_call: None,
        schedule_ref: Some(schedule_ref()),
        logs: vec![
            log(vec![], b""),
            log((1..=4).map(B256::repeat_byte).collect(), b"four topics and some data"),
        ],
        ..receipt(Outcome::Reverted(Bytes::from_static(b"no")))
    }
}

pub(crate) fn schedule_ref() -> ScheduleRef {
    ScheduleRef { schedule: ScheduleId::new(1_042, 3, 1).unwrap(), number: 6 }
}

pub(crate) fn run(lane: Lane) -> RunTransaction {
    RunTransaction {
        schedule_ref: schedule_ref(),
        lane,
        from: Address::repeat_byte(0xcc),
        to: Address::repeat_byte(0xdd),
        value: Wei(U256::from(1_000_000)),
        input: Bytes::from_static(b"\xde\xad\xbe\xef"),
        gas_limit: Gas(500_000),
        gas_price: GasPrice(2_000_000_000),
    }
}

pub(crate) fn prologue() -> PrologueTransaction {
    PrologueTransaction { number: 1_042, timestamp: header().timestamp, parent_hash: B256::repeat_byte(0x11) }
}

pub(crate) fn account() -> Account {
    Account {
        nonce: 7,
        balance: U256::from(1_000_000_007),
        code_hash: B256::repeat_byte(0xee),
        is_keyed: false,
    }
}

/// A genesis that uses everything a genesis file can say.
pub(crate) fn genesis() -> Genesis {
    let contract = Allocation {
        code: Bytes::from_static(&[0x60, 0x00, 0x54, 0x00]),
        storage: [(U256::ZERO, U256::from(5)), (U256::MAX, U256::MAX), (U256::from(2), U256::ZERO)].into(),
        ..Allocation::default()
    };
    let ten_thousand = Wei(U256::from(10_000) * U256::from(10).pow(U256::from(18)));
    Genesis {
        chain_id: CHAIN_ID,
        timestamp_ms: TimestampMs(1_767_225_600_000),
        governance: CAROL.address,
        parameters: [
            (params::BASE_FEE_FLOOR_WEI.name.to_owned(), 7),
            (params::SECOND_SHARED_EFFORT.name.to_owned(), 0),
        ]
        .into(),
        validators: vec![validator(1), validator(2)],
        developer: false,
        fork: None,
        allocations: [
            (ALICE.address, Allocation { balance: ten_thousand, ..Allocation::default() }),
            (BOB.address, Allocation { balance: Wei(U256::from(1)), nonce: 5, ..Allocation::default() }),
            (Address::repeat_byte(0xc0), contract),
        ]
        .into(),
    }
}

pub(crate) fn validator(number: u8) -> Validator {
    Validator {
        name: format!("validator {number}"),
        public_key: B256::with_last_byte(number),
        fee_recipient: Address::with_last_byte(number),
    }
}
