//! The validators of a simulation, what is wrong with each, and how to run them.

use crate::sim::{
    book::Book,
    client::Admissions,
    clock::Skew,
    disk::{Disk, Unsynced},
    draw::Draw,
    faults::{Faults, Weather, good},
    host::Host,
    jobs,
    liar::{Lie, Proposed},
    machine::Machine,
    market,
    marks::{Mark, Marks},
    node::{self, Node},
    opened, orderless, orders, signed,
    twins::Half,
    votes::Votes,
    witness::Log,
    work,
};
use alloy_primitives::{Address, Bytes};
use almanac_bft::{Namespace, TimeConfig, ValidatorSet, Voice, block::key_bytes, message_bytes_max, wiring};
use almanac_index::Index;
use almanac_primitives::{
    DurationMs, Genesis, Header, RecoveredTransaction, StateKey, TimestampMs,
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

pub type Indexes = Arc<Mutex<BTreeMap<(usize, bool), Arc<Index>>>>;

#[derive(Clone)]
pub struct Network {
    /// Of the validators, then of the followers.
    pub keys: Vec<PrivateKey>,
    /// How many of them are validators.
    pub size: usize,
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
    /// How many of them are under way at a time.
    pub transfers_ahead: u64,
    /// Whether clients have scheduled transactions, beside their jobs.
    pub has_market: bool,
    /// Whether clients have schedules that wait for signatures.
    pub has_signed: bool,
    /// Orderless transactions that every pool gets again and again.
    pub orderless: Arc<Vec<RecoveredTransaction>>,
    /// Simulated time that a transaction takes to execute.
    pub transaction_time: Duration,
    /// Simulated time that executing a run takes.
    pub run_time: Duration,
    /// Nanoseconds per gas that timeouts have room for.
    pub ns_per_gas: u64,
    /// Most milliseconds that a sync takes.
    pub sync_ms_max: u64,
    /// What crashes leave of unsynced writes.
    pub unsynced: Unsynced,
    /// The disks of each validator, the second for its twin.
    pub disks: Vec<[Arc<Disk>; 2]>,
    pub faults: Arc<Faults>,
    pub weather: Arc<Weather>,
    pub indexes: Indexes,
    /// The last block that each has acknowledged.
    pub acknowledged: Arc<Mutex<BTreeMap<(usize, bool), u64>>>,
    /// What each has noted of its votes, the second for its twin.
    pub books: Vec<[Arc<Book>; 2]>,
    /// What each validator may sign.
    pub voices: Arc<Mutex<Vec<Voice>>>,
    /// The same in the copies of directories.
    pub copied_voices: Arc<Mutex<BTreeMap<usize, Voice>>>,
    /// The ways into the pools of those who do not lie.
    pub admissions: Admissions,
    /// What each has signed.
    pub votes: Votes,
    /// Whether those who may vote twice are held to one vote, too.
    pub trusts_everyone: bool,
    /// What went wrong so far.
    pub marks: Marks,
    /// What must never happen and did.
    pub violations: Arc<Mutex<Vec<String>>>,
    pub proposed: Proposed,
    /// What became final, where and when.
    pub log: Log,
    /// Who lost blocks by a restored directory, and where the log was then.
    pub restored: Arc<Mutex<Vec<(usize, usize)>>>,
    /// What the runtime had seen when all was done, and how long the log was. Looking at what the nodes have in common comes
    /// after it, while blocks go on, and is not the same each time.
    pub end: Arc<Mutex<Option<(String, usize)>>>,
}

impl Network {
    pub fn chain(&self) -> almanac_primitives::Chain {
        almanac_primitives::Chain { id: self.genesis.chain_id, genesis: self.namespace.0 }
    }

    pub fn new(size: u64) -> Self {
        Self::with(size, false)
    }

    /// One whose clients have scheduled transactions too.
    pub fn with_market(size: u64) -> Self {
        Self::with(size, true)
    }

    /// One whose validators have orderless transactions in their pools too, again and again.
    pub fn with_orderless(size: u64) -> Self {
        let network = Self::new(size);
        let orderless = orderless::signed(&network.chain());
        Self { orderless, ..network }
    }

    fn with(size: u64, has_market: bool) -> Self {
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
            genesis.allocations.insert(orders::owner(client).address, funded.clone());
            genesis.allocations.insert(signed::relay(client as usize).address, funded.clone());
            if has_market {
                genesis.allocations.insert(market::owner(client).address, funded);
            }
        }
        let funded = genesis.allocations[&person(0).address].clone();
        for account in [signed::treasury(), signed::creator()] {
            genesis.allocations.insert(account.address, funded.clone());
        }
        genesis.parameters.insert(CRON_INTERVAL_SECONDS_MIN.name.to_owned(), 1);
        let marks = Marks::default();
        let disk = Disk::new(marks.clone());
        let genesis_header = deterministic::Runner::default().start(|context| async {
            opened::genesis_header(Machine::new(context, Host::plain(disk)), &genesis).await
        });
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
            voices: Arc::new(Mutex::new(vec![Voice::Votes { after: None }; keys.len()])),
            copied_voices: Arc::default(),
            size: keys.len(),
            keys,
            transfers: 20,
            transfers_ahead: 3,
            has_market,
            has_signed: false,
            orderless: Arc::default(),
            transaction_time: Duration::ZERO,
            run_time: Duration::ZERO,
            ns_per_gas: 0,
            sync_ms_max: 0,
            unsynced: Unsynced::Lost,
            disks,
            faults: Arc::default(),
            indexes: Arc::default(),
            acknowledged: Arc::default(),
            books: (0..size).map(|_| Default::default()).collect(),
            admissions: Arc::default(),
            votes: Votes::default(),
            trusts_everyone: false,
            weather: Arc::new(Faults::default().weather(0, good())),
            marks,
            violations: Arc::default(),
            proposed: Arc::default(),
            log: Arc::default(),
            restored: Arc::default(),
            end: Arc::default(),
        }
    }

    /// Adds a node without a vote, which copies the state.
    pub fn with_follower(mut self) -> Self {
        self.keys.push(PrivateKey::from_seed(1_000 + self.keys.len() as u64));
        self.clocks.push(Skew::Offset(0));
        self.proposer_clocks.push(Skew::Offset(0));
        self.lies.push(Lie::None);
        self.books.push(Default::default());
        self.disks.push([Disk::new(self.marks.clone()), Disk::new(self.marks.clone())]);
        self
    }

    pub fn is_follower(&self, index: usize) -> bool {
        index >= self.size
    }

    /// The index of a validator or its twin, which survives crashes.
    pub fn index(&self, index: usize, half: Half) -> Arc<Index> {
        let place = (index, half == Half::Second);
        let mut indexes = self.indexes.lock().unwrap();
        indexes.entry(place).or_insert_with(|| opened::new_index(self)).clone()
    }

    /// Notes that a node has acknowledged a block: it will not be delivered again.
    pub fn acknowledged(&self, (index, half): (usize, Half), number: u64) {
        self.acknowledged.lock().unwrap().insert((index, half == Half::Second), number);
    }

    /// Forgets that, with a copy of the files from earlier on.
    pub fn forget_acknowledged(&self, index: usize) {
        self.acknowledged.lock().unwrap().remove(&(index, false));
    }

    /// What was acknowledged must be on disk after any crash.
    pub fn check_acknowledged(&self, (index, half): (usize, Half), what: &str, height: u64) {
        let acknowledged = self.acknowledged.lock().unwrap().get(&(index, half == Half::Second)).copied();
        if acknowledged.is_some_and(|acknowledged| acknowledged > height) {
            self.violated(format!(
                "node {index} has acknowledged block {acknowledged:?}, and after a restart its {what} ends at {height}"
            ));
        }
    }

    /// What a node may sign.
    pub fn voice(&self, index: usize) -> Voice {
        if self.is_follower(index) { Voice::None } else { self.voices.lock().unwrap()[index].clone() }
    }

    pub fn set_voice(&self, index: usize, voice: Voice) {
        self.voices.lock().unwrap()[index] = voice;
    }

    /// Copies what a directory has about it.
    pub fn copy_voice(&self, index: usize) {
        self.copied_voices.lock().unwrap().insert(index, self.voice(index));
    }

    /// Puts that back with the rest of the copy.
    pub fn put_voice_back(&self, index: usize) {
        let copied = self.copied_voices.lock().unwrap().remove(&index);
        self.set_voice(index, copied.expect("a copy was made"));
    }

    /// What a validator or its twin has noted of its votes.
    pub fn book(&self, index: usize, half: Half) -> &Arc<Book> {
        &self.books[index][half as usize]
    }

    /// Whether one that started on older files has not voted again.
    pub fn is_anyone_silent(&self) -> bool {
        self.faults.restores.iter().any(|restore| {
            let book = self.book(restore.validator, Half::First);
            book.is_silent() || (book.has_begun_again() && self.marks.count(Mark::VotedAgain) == 0)
        })
    }

    /// Whether a validator is held to one vote in a view.
    pub fn votes_once(&self, index: usize) -> bool {
        self.trusts_everyone || (!self.lies[index].is_twin() && self.lies[index] != Lie::Votes)
    }

    /// The machine of a validator or its twin.
    pub fn host(&self, index: usize, half: Half) -> Arc<Host> {
        let (pauses, clock) = (self.faults.pauses_of(index), self.faults.clock_of(index));
        Host::new(self.disk(index, half).clone(), pauses, clock, self.marks.clone())
    }

    /// Makes runs take time, each as long and with as much gas as any.
    pub fn runs_that_take(mut self, run_time: Duration) -> Self {
        self.run_time = run_time;
        self
    }

    /// Gives the timeouts room for the work of a full block, as validators of a real network do.
    pub fn with_room_in_timeouts(mut self, ns_per_gas: u64) -> Self {
        self.ns_per_gas = ns_per_gas;
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
        (0..self.size).filter(is_faulty).count()
    }

    /// Whether no more stays wrong than a network of this size is made for.
    pub fn is_bearable(&self) -> bool {
        self.lasting_faults() <= (self.size - 1) / 3
    }

    /// The validators that run the application, and so have a chain and a client.
    pub fn participants(&self) -> impl Iterator<Item = usize> {
        (0..self.size).filter(|index| self.has_application(*index))
    }

    /// Whether a validator runs the application, and is one.
    pub fn has_application(&self, index: usize) -> bool {
        !matches!(self.lies[index], Lie::Votes | Lie::Absent) && !self.lies[index].is_twin()
    }

    /// The nodes that run the application, in the order of their numbers.
    pub fn in_order<'n>(&self, nodes: &[&'n Node]) -> Vec<&'n Node> {
        let mut nodes: Vec<_> =
            nodes.iter().copied().filter(|node| self.has_application(node.index)).collect();
        nodes.sort_by_key(|node| node.index);
        nodes
    }

    /// All is done.
    pub fn note_end(&self) {
        let mut disks = self.disks.iter().flatten();
        let seen = disks.find_map(|disk| disk.seen_by_runtime()).expect("a validator has started");
        *self.end.lock().unwrap() = Some((seen, self.log.lock().unwrap().len()));
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
        wiring::quotas(Duration::from_millis(self.time.block_time.0)).to_vec()
    }

    fn max_message_size(&self) -> u32 {
        message_bytes_max(u32::try_from(self.size).unwrap())
    }

    async fn init(&self, init: InitContext<'_, PublicKey>) -> (Handle<()>, Node) {
        node::start(self.clone(), init).await
    }

    fn start(engine: Handle<()>) -> Handle<()> {
        engine
    }
}
