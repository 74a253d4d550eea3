//! The validators of a simulation, what is wrong with each, and how to run them.

use crate::{
    clock::Skew,
    disk::{Disk, Unsynced},
    draw::Draw,
    faults::{DiskFailure, Faults, Weather, good},
    jobs,
    liar::{Lie, Proposed},
    machine::Machine,
    marks::Marks,
    node::{self, Node},
    opened, orders,
    twins::Half,
    witness::Log,
    work,
};
use alloy_primitives::{Address, Bytes};
use almanac_bft::{
    CHANNEL_QUOTA, CHANNELS, Namespace, TimeConfig, ValidatorSet, block::key_bytes, message_bytes_max,
};
use almanac_primitives::{
    DurationMs, Genesis, Header, StateKey, TimestampMs,
    genesis::Validator,
    params::CRON_INTERVAL_SECONDS_MIN,
    testing::{genesis, person},
};
use commonware_cryptography::{
    Signer as _,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_glue::simulate::engine::{EngineDefinition, InitContext};
use commonware_runtime::{Handle, Quota, Runner as _, deterministic};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

#[derive(Clone)]
pub struct Network {
    pub keys: Vec<PrivateKey>,
    pub genesis: Genesis,
    pub genesis_header: Header,
    pub state: BTreeMap<StateKey, Bytes>,
    pub validators: Arc<ValidatorSet>,
    pub namespace: Namespace,
    pub time: TimeConfig,
    /// By which each votes.
    pub clocks: Vec<Skew>,
    /// By which each proposes.
    pub proposer_clocks: Vec<Skew>,
    pub lies: Vec<Lie>,
    /// Transfers that the client of each validator gets into the chain.
    pub transfers: u64,
    /// Simulated time that executing a run takes.
    pub run_time: Duration,
    /// What crashes leave of unsynced writes.
    pub unsynced: Unsynced,
    /// The disks of each validator, the second for its twin.
    pub disks: Vec<[Arc<Disk>; 2]>,
    pub disk_failures: Vec<DiskFailure>,
    pub weather: Arc<Weather>,
    /// What went wrong so far.
    pub marks: Marks,
    /// What must never happen and did.
    pub violations: Arc<Mutex<Vec<String>>>,
    pub proposed: Proposed,
    /// What became final, where and when.
    pub log: Log,
}

impl Network {
    pub fn new(size: u64) -> Self {
        let mut keys: Vec<_> = (0..size).map(PrivateKey::from_seed).collect();
        keys.sort_by_key(PrivateKey::public_key);
        let validators = keys.iter().enumerate().map(|(index, key)| Validator {
            name: format!("v{index}"),
            public_key: key_bytes(&key.public_key()),
            fee_recipient: fee_recipient(index),
        });
        // The simulated clock starts at 0.
        let mut genesis =
            Genesis { validators: validators.collect(), timestamp_ms: TimestampMs(0), ..genesis() };
        for client in 0..size {
            let funded = genesis.allocations[&person(client).address].clone();
            genesis.allocations.insert(orders::owner(client).address, funded);
        }
        genesis.parameters.insert(CRON_INTERVAL_SECONDS_MIN.name.to_owned(), 1);
        let marks = Marks::default();
        let disk = Disk::new(marks.clone());
        let genesis_header = deterministic::Runner::default()
            .start(|context| async { opened::genesis_header(Machine::new(context, disk), &genesis).await });
        let disks = keys.iter().map(|_| [Disk::new(marks.clone()), Disk::new(marks.clone())]).collect();
        Self {
            validators: Arc::new(ValidatorSet::new(&genesis).unwrap()),
            state: genesis.state().unwrap(),
            namespace: Namespace(genesis_header.hash()),
            genesis,
            genesis_header,
            time: TimeConfig { block_time: DurationMs(100), tolerance: DurationMs(500) },
            clocks: vec![Skew::Offset(0); keys.len()],
            proposer_clocks: vec![Skew::Offset(0); keys.len()],
            lies: vec![Lie::None; keys.len()],
            keys,
            transfers: 20,
            run_time: Duration::ZERO,
            unsynced: Unsynced::Lost,
            disks,
            disk_failures: Vec::new(),
            weather: Arc::new(Faults::default().weather(0, good())),
            marks,
            violations: Arc::default(),
            proposed: Arc::default(),
            log: Arc::default(),
        }
    }

    /// Makes runs take time, each as long and with as much gas as any.
    pub fn runs_that_take(mut self, run_time: Duration) -> Self {
        self.run_time = run_time;
        self
    }

    /// Gas that each run asks for.
    pub fn run_gas(&self) -> u64 {
        if self.run_time.is_zero() { jobs::RUN_GAS } else { work::RUN_GAS }
    }

    /// Blocks that a due run may wait for: where runs take long, a block holds a part of what is due.
    pub fn late_blocks_max(&self) -> usize {
        if self.run_time.is_zero() { jobs::LATE_BLOCKS_MAX } else { 12 }
    }

    /// Sets a validator's clock.
    pub fn clock(mut self, index: usize, skew: Skew) -> Self {
        self.clocks[index] = skew;
        self.proposer_clocks[index] = skew;
        self
    }

    /// Lets a validator propose by another clock than it votes by.
    pub fn proposer_clock(mut self, index: usize, skew: Skew) -> Self {
        self.proposer_clocks[index] = skew;
        self
    }

    /// The clock that a validator or its twin proposes by: two that share a key do not propose the same block.
    pub fn proposer_clock_of(&self, index: usize, half: Half) -> Skew {
        match (self.proposer_clocks[index], half) {
            (Skew::Offset(ahead), Half::Second) => Skew::Offset(ahead + 1),
            (skew, _) => skew,
        }
    }

    /// Makes a liar of a validator.
    pub fn lie(mut self, index: usize, lie: Lie) -> Self {
        self.lies[index] = lie;
        self
    }

    /// The first thing that must never happen and did.
    pub fn check_violations(&self) -> Result<(), String> {
        self.violations.lock().unwrap().first().map_or(Ok(()), |what| Err(what.clone()))
    }

    /// The validators as a proposer sees them: one who lies about it has its tips go elsewhere.
    pub fn validators_for_proposals(&self, index: usize) -> Arc<ValidatorSet> {
        if self.lies[index] != Lie::FeeRecipient {
            return self.validators.clone();
        }
        let mut genesis = self.genesis.clone();
        for validator in &mut genesis.validators {
            validator.fee_recipient = Address::repeat_byte(0xee);
        }
        Arc::new(ValidatorSet::new(&genesis).unwrap())
    }

    /// How many validators lie, or have a clock that the others have to wait for or that makes it wait for them.
    fn lasting_faults(&self) -> usize {
        let tolerance = self.time.tolerance.0;
        let is_faulty = |index: &usize| {
            let is_late = match self.clocks[*index] {
                Skew::Offset(ahead) => ahead.unsigned_abs() > tolerance,
                Skew::Frozen => true,
            };
            self.lies[*index] != Lie::None || is_late
        };
        (0..self.keys.len()).filter(is_faulty).count()
    }

    /// Whether no more stays wrong than a network of this size is made for.
    pub fn is_bearable(&self) -> bool {
        self.lasting_faults() <= (self.keys.len() - 1) / 3
    }

    /// The validators that run the application, and so have a chain and a client.
    pub fn participants(&self) -> impl Iterator<Item = usize> {
        (0..self.keys.len()).filter(|index| self.has_application(*index))
    }

    /// Whether a validator runs the application, and is one.
    pub fn has_application(&self, index: usize) -> bool {
        self.lies[index] != Lie::Votes && !self.lies[index].is_twin()
    }

    /// The disk of a validator or its twin.
    pub fn disk(&self, index: usize, half: Half) -> &Arc<Disk> {
        &self.disks[index][half as usize]
    }

    /// What becomes of unsynced writes at the restarts of a validator.
    pub fn leftovers(&self, index: usize) -> Draw {
        Draw(self.weather.seed ^ (index as u64) << 48)
    }

    /// Notes what must never happen.
    pub fn violated(&self, what: String) {
        self.violations.lock().unwrap().push(what);
    }

    /// The validator that proposed a block.
    pub fn proposer(&self, header: &Header) -> usize {
        let is_leader = |key: &PrivateKey| key_bytes(&key.public_key()) == header.consensus.leader;
        self.keys.iter().position(is_leader).expect("a validator")
    }
}

/// Who gets the tips of a validator.
pub fn fee_recipient(index: usize) -> Address {
    Address::repeat_byte(0xf0 | u8::try_from(index).unwrap())
}

impl EngineDefinition for Network {
    type PublicKey = PublicKey;
    type Engine = Handle<()>;
    type State = Node;

    fn participants(&self) -> Vec<PublicKey> {
        self.keys.iter().map(|key| key.public_key()).collect()
    }

    fn channels(&self) -> Vec<(u64, Quota)> {
        (0..CHANNELS).map(|channel| (channel, CHANNEL_QUOTA)).collect()
    }

    fn max_message_size(&self) -> u32 {
        message_bytes_max(u32::try_from(self.keys.len()).unwrap())
    }

    async fn init(&self, init: InitContext<'_, PublicKey>) -> (Handle<()>, Node) {
        node::start(self.clone(), init).await
    }

    fn start(engine: Handle<()>) -> Handle<()> {
        engine
    }
}
