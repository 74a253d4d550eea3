//! One node of the simulation: what production wires, with a liar between consensus and voter, and a look at every
//! block that is acknowledged.

use crate::sim::{
    accuser::Accuser,
    book::Keeper,
    client::Client,
    clock::{SimClock, Skew},
    disk::{Pace, Unsynced},
    durable::Durable,
    faults::Notice,
    liar::{Liar, Lie},
    line::{Line, Subject},
    machine::Machine,
    marks::Mark,
    network::Network,
    opened::{Opened, Place, Store},
    run::milliseconds,
    signed,
    twins::Half,
    wire::{WireReceiver, WireSender},
    witness::Witness,
};
use almanac_bft::{
    FinalityReader, History, Leave, Parts, Replica, RuntimeClock, Silence, Standing, ValidatorSet, Voice,
    Voter, VotesOnDisk,
    sync::Floor,
    wiring::{self, CHANNEL_COUNT, Identity, Links, Signals},
};
use almanac_consensus::{Admission, Sink};
use almanac_primitives::TimestampMs;
use almanac_state::{ArchivedBlock, BlockJournal};
use commonware_consensus::simplex::mocks::conflicter::{self, Conflicter};
use commonware_cryptography::{Sha256, Signer as _, ed25519::PublicKey};
use commonware_glue::simulate::{
    engine::{ChannelPair, InitContext},
    processed::ProcessedHeight,
    reporter::MonitorReporter,
    tracker::FinalizationUpdate,
};
use commonware_p2p::simulated::{Control, Manager, SplitTarget};
use commonware_runtime::{Clock as _, Handle, Spawner as _, Supervisor as _, deterministic::Context};
use commonware_utils::{NZU64, channel::mpsc};
use std::{
    future::pending,
    num::NonZeroU64,
    sync::{Arc, Mutex, Weak},
    time::{Duration, UNIX_EPOCH},
};
use tokio::sync::watch;

/// Blocks that marshal keeps beside the archive: so few that a short run prunes, and asks the archive.
const RECENT_BLOCKS: NonZeroU64 = NZU64!(8);

/// What properties can see of a node. It does not keep files open after a crash.
#[derive(Clone)]
pub struct Node {
    pub index: usize,
    running: Arc<Mutex<Option<Running>>>,
}

struct Running {
    replica: Weak<Replica<Store>>,
    archive: Weak<BlockJournal<Machine>>,
    /// The block behind which its chain begins.
    floor: u64,
}

impl Node {
    fn new(index: usize) -> Self {
        Self { index, running: Arc::default() }
    }

    /// Its replica, if it runs.
    pub fn replica(&self) -> Option<Arc<Replica<Store>>> {
        self.running.lock().unwrap().as_ref()?.replica.upgrade()
    }

    fn archive(&self) -> Option<(Arc<BlockJournal<Machine>>, u64)> {
        let running = self.running.lock().unwrap();
        let running = running.as_ref()?;
        Some((running.archive.upgrade()?, running.floor))
    }

    /// All its blocks.
    pub async fn chain(&self) -> Result<Vec<ArchivedBlock>, String> {
        let (archive, floor) = self.archive().ok_or("a node does not run")?;
        let height = archive.height().await.map_err(|error| error.to_string())?;
        let mut chain = Vec::new();
        for number in floor + 1..=height {
            let archived = archive.get(number).await.map_err(|error| error.to_string())?;
            chain.push(archived.ok_or_else(|| format!("block {number} is missing"))?);
        }
        Ok(chain)
    }

    /// Its last block, if it has a certificate.
    async fn newest_certified(&self) -> Option<Floor> {
        let (archive, _) = self.archive()?;
        let archived = archive.get(archive.height().await.ok()?).await.ok()??;
        Some(Floor { certificate: archived.certificate?, header: archived.block.header })
    }
}

impl ProcessedHeight for Node {
    async fn processed_height(&self) -> u64 {
        self.replica().map_or(0, |replica| replica.tip().header.number)
    }
}

/// What both halves of a twin have in common.
#[derive(Clone)]
pub struct Surroundings {
    pub network: Network,
    pub index: usize,
    peers: Manager<PublicKey, Context>,
    pub control: Control<PublicKey, Context>,
    monitor: mpsc::UnboundedSender<FinalizationUpdate<PublicKey>>,
    node: Node,
}

/// Starts a node under one task: a crash ends that task, and everything that hangs on it.
pub async fn start(network: Network, init: InitContext<'_, PublicKey>) -> (Handle<()>, Node) {
    let InitContext { context, index, oracle, channels, monitor, .. } = init;
    let (peers, control) = (oracle.manager(), oracle.control(network.keys[index].public_key()));
    let (is_twin, node) = (network.lies[index].is_twin(), Node::new(index));
    let surroundings = Surroundings { network, index, peers, control, monitor, node: node.clone() };
    let root = context.spawn(move |context| async move {
        if !is_twin {
            return Box::pin(surroundings.live(context, Half::First, channels)).await;
        }
        let (first, second) = split(&context, channels);
        let twin = Surroundings { node: Node::new(index), ..surroundings.clone() };
        let context_of_twin = context.child("twin");
        let twin = context_of_twin.spawn(|context| Box::pin(twin.live(context, Half::Second, second)));
        Box::pin(surroundings.live(context.child("first"), Half::First, first)).await;
        let _ = twin.await;
    });
    (root, node)
}

pub type ChannelEnds = Vec<ChannelPair<PublicKey>>;

/// Gives every message to both halves; what each of them hears is the wires' business.
fn split(context: &Context, channels: ChannelEnds) -> (ChannelEnds, ChannelEnds) {
    let halves = channels.into_iter().map(|(sender, receiver)| {
        let (first, second) = receiver.split_with(context.child("split"), |_| SplitTarget::Both);
        ((sender.clone(), first), (sender, second))
    });
    halves.unzip()
}

impl Surroundings {
    /// One life of a node: until its disk fails.
    async fn live(self, context: Context, half: Half, mut channels: ChannelEnds) {
        let Self { network, index, .. } = &self;
        if network.lies[*index] == Lie::Absent {
            network.marks.add(Mark::Told(Lie::Absent));
            return pending().await;
        }
        let disk = network.disk(*index, half).clone();
        let clock = Arc::new(context.child("wires"));
        disk.restart(&clock, network.unsynced, &mut network.leftovers(*index)).await;
        network.book(*index, half).restart(network.unsynced);
        self.restore(&clock).await;
        disk.set_pace(Pace {
            slow: network.faults.slowness_of(*index),
            sync_ms_max: network.sync_ms_max,
            seed: network.leftovers(*index).0,
            ..Pace::default()
        });
        self.plan_disk_faults(&context);
        let host = network.host(*index, half);
        let mut place = Place::new(*index, half);
        if network.is_follower(*index) {
            let machine = Machine::new(context.child("copy"), host.clone());
            Box::pin(self.copy_state(machine, &clock, &mut place)).await;
            channels = self.register().await;
        }
        loop {
            let machine = Machine::new(context.child("machine"), host.clone());
            let wires = self.wires(&clock, half, channels);
            let (this, its_place, its_clock) = (self.clone(), place.clone(), clock.clone());
            let (leave, left) = watch::channel(None);
            let begin = milliseconds(now(&clock));
            let mut running =
                machine.spawn(move |context| Box::pin(this.run(context, its_clock, its_place, wires, leave)));
            tokio::select! {
                biased;
                () = disk.stopped() => return,
                _ = &mut running => return,
                floor = self.end_of_silence(begin, left, &clock) => {
                    let after = Some(Box::new(floor));
                    network.set_voice(*index, Voice::Votes { after });
                    network.book(*index, half).begin_again(now(&clock));
                }
            }
            // The process becomes itself again: what it wrote stays.
            running.abort();
            let _ = running.await;
            clock.sleep(Duration::from_millis(300)).await;
            disk.restart(&clock, Unsynced::Kept, &mut network.leftovers(*index)).await;
            channels = self.register().await;
        }
    }

    /// All channels anew: what was on its way to the process before is gone.
    async fn register(&self) -> ChannelEnds {
        let block_time = Duration::from_millis(self.network.time.block_time.0);
        let mut channels = Vec::new();
        for (number, quota) in wiring::quotas(block_time) {
            channels.push(self.control.register(number, quota).await.expect("the network runs"));
        }
        channels
    }

    fn wires(
        &self,
        clock: &Arc<Context>,
        half: Half,
        channels: ChannelEnds,
    ) -> [(WireSender, WireReceiver); CHANNEL_COUNT] {
        let wires = channels.into_iter().zip(Subject::ALL);
        let wires = wires.map(|(ends, subject)| self.wire(clock, half, subject, ends)).collect::<Vec<_>>();
        <[_; CHANNEL_COUNT]>::try_from(wires).expect("one for each channel")
    }

    pub fn wire(
        &self,
        clock: &Arc<Context>,
        half: Half,
        subject: Subject,
        (sender, receiver): ChannelPair<PublicKey>,
    ) -> (WireSender, WireReceiver) {
        let disk = self.network.disk(self.index, half).clone();
        let line = Line::new(&self.network, (self.index, half), subject, clock.clone(), disk);
        (WireSender { inner: sender, line: line.clone() }, WireReceiver::new(receiver, line))
    }

    /// Puts the older copy of the files in their place, where that is what this start is about.
    async fn restore(&self, clock: &Context) {
        let Self { network, index, .. } = self;
        let restore = network.faults.restores.iter().find(|restore| restore.is_due(*index, now(clock)));
        let is_done = network.restored.lock().unwrap().iter().any(|(restored, _)| restored == index);
        let Some(restore) = restore.filter(|_| !is_done) else { return };
        network.disk(*index, Half::First).put_copy_back(clock).await;
        network.put_voice_back(*index);
        let seen = network.log.lock().unwrap().len();
        network.restored.lock().unwrap().push((*index, seen));
        network.forget_acknowledged(*index);
        let book = network.book(*index, Half::First);
        match restore.notice {
            Notice::Note => {}
            Notice::Peers => book.put_copy_back(),
            Notice::Nobody => book.believe_by_hand(),
        }
    }

    /// Lets the disk fail, and be copied, when the time has come.
    fn plan_disk_faults(&self, context: &Context) {
        let (faults, index) = (&self.network.faults, self.index);
        let disk = self.network.disk(index, Half::First);
        for failure in faults.disks.iter().filter(|failure| failure.validator == index) {
            let (failure, disk, at) = (*failure, disk.clone(), UNIX_EPOCH + failure.at);
            if at > context.current() {
                context.child("disk_failure").spawn(move |context| async move {
                    context.sleep_until(at).await;
                    disk.fail(failure.failure, failure.after);
                });
            }
        }
        for restore in faults.restores.iter().filter(|restore| restore.validator == index) {
            let (disk, at) = (disk.clone(), UNIX_EPOCH + restore.copied_at);
            let network = self.network.clone();
            if at > context.current() {
                context.child("copy").spawn(move |context| async move {
                    context.sleep_until(at).await;
                    disk.copy(&context).await;
                    network.copy_voice(index);
                    network.book(index, Half::First).copy();
                });
            }
        }
    }

    /// The block that ends a silence, once this node has it; never where there is no silence to end.
    async fn end_of_silence(
        &self,
        begin: TimestampMs,
        leave: watch::Receiver<Option<Leave>>,
        clock: &Context,
    ) -> Floor {
        // Not by waiting: whom a watch wakes first among many is left to chance.
        let newest = loop {
            clock.sleep(Duration::from_millis(100)).await;
            let decided = leave.borrow().clone();
            match decided {
                None => {}
                Some(Leave::Given { .. }) => return pending().await,
                Some(Leave::Denied { newest, .. }) => break newest,
            }
        };
        self.network.marks.add(Mark::Silent);
        let tip = || self.node.replica().map(|replica| replica.tip().header).unwrap_or_default();
        let silence = Silence::new(begin, &newest.map_or_else(tip, |newest| *newest));
        loop {
            clock.sleep(Duration::from_millis(100)).await;
            let newest = self.node.newest_certified().await;
            if let Some(floor) = newest.filter(|floor| silence.ends_with(&floor.header)) {
                return floor;
            }
        }
    }

    /// What a node knows of its votes when it starts. Twins do not ask.
    async fn standing(&self, context: &Machine, place: &Place, now: Duration) -> Standing {
        let Self { network, index, .. } = self;
        if network.is_follower(*index) || network.lies[*index].is_twin() {
            return Standing::Sure;
        }
        let prefix = format!("{}-", place.files());
        let (validators, namespace) = (&network.validators, &network.namespace);
        let votes = VotesOnDisk::read(context.child("votes"), &prefix, validators, namespace).await.unwrap();
        let first = match network.voice(*index) {
            Voice::Votes { after: Some(floor) } => floor.header.consensus.view,
            _ => 0,
        };
        let standing = network.book(*index, place.half).standing(votes.after(first), now);
        if matches!(standing, Standing::Ask(_)) {
            network.marks.add(Mark::Asked);
        }
        standing
    }

    async fn run(
        self,
        context: Machine,
        clock: Arc<Context>,
        place: Place,
        wires: [(WireSender, WireReceiver); CHANNEL_COUNT],
        leave: watch::Sender<Option<Leave>>,
    ) {
        let standing = Box::pin(self.standing(&context, &place, now(&clock))).await;
        let Self { network, index, peers, control, monitor, node } = self;
        let opened = Box::pin(Opened::open(&context, &network, &place)).await;
        let Opened { replica, archive, numbers, pool, tampered, names, feed, tip } = opened;
        let floor = place.copied.as_ref().map(|(floor, _)| floor.clone());
        *node.running.lock().unwrap() = Some(Running {
            replica: Arc::downgrade(&replica),
            archive: Arc::downgrade(&archive),
            floor: floor.as_ref().map_or(0, |floor| floor.header.number),
        });
        if network.lies[index] == Lie::Votes {
            let scheme = network.validators.signer(&network.namespace, &network.keys[index]).unwrap();
            let [votes, ..] = wires;
            // A digest is a digest on the wire, whatever made it.
            let context = context.child("conflicter");
            let conflicter = Conflicter::<_, _, Sha256>::new(context, conflicter::Config { scheme });
            let _ = conflicter.start(votes).await;
            return;
        }
        let admission = Admission::new(network.chain(), pool, tip);
        let witness =
            Witness { validator: index, machine: context.child("witness"), log: network.log.clone() };
        let mut sinks: Vec<Arc<dyn Sink>> = vec![feed, numbers.clone()];
        if network.has_application(index) {
            sinks.push(Arc::new(witness));
        }
        let is_honest = network.lies[index] == Lie::None;
        if network.has_application(index) && !network.is_follower(index) {
            if is_honest {
                network.admissions.lock().unwrap().insert(index, admission.clone());
            }
            let client = Client {
                index,
                admission: admission.clone(),
                elsewhere: (!is_honest).then(|| network.admissions.clone()),
                replica: replica.clone(),
                archive: archive.clone(),
                transfers: network.transfers,
                ahead: network.transfers_ahead,
                run_gas: network.run_gas(),
                has_market: network.has_market,
                orderless: network.orderless.clone(),
                signed: network.has_signed.then(|| Arc::new(signed::Group::of(&network))),
            };
            context.child("client").spawn(|context| client.run(context));
        }
        let identity = Identity {
            private: network.keys[index].clone(),
            time: network.time,
            ns_per_gas: network.ns_per_gas,
            partition: format!("{}-", place.files()),
            recent_blocks: RECENT_BLOCKS,
        };
        let parts = Parts {
            replica: replica.clone(),
            history: History { archive: archive.clone(), numbers },
            genesis: network.genesis_header.clone(),
            floor,
            voice: network.voice(index),
            standing,
            book: Arc::new(Keeper {
                network: network.clone(),
                index,
                book: network.book(index, place.half).clone(),
                clock,
            }),
            evidence: Arc::new(Accuser(network.clone())),
            validators: ValidatorSet::clone(&network.validators),
            admission,
            keys: names,
            sinks,
        };
        let links = Links { ends: wires, peers, blocker: control };
        let key = network.keys[index].public_key();
        let seat = (index, place.half);
        let durable = |next| Durable::new(&context, &network, &replica, &archive, seat, next);
        let reporter = |deliveries| MonitorReporter::new(key, monitor, durable(deliveries));
        let application = |voter| liar(&network, index, place.half, voter, tampered);
        let (signals, machine) =
            (Signals { finality: FinalityReader::default(), leave }, context.child("node"));
        let run = wiring::run(machine, identity, links, parts, signals, application, reporter);
        let error = Box::pin(run).await;
        if context.disk().has_failed() {
            context.disk().stop();
        } else {
            network.violated(format!("node {index} ended: {error}"));
        }
    }
}

/// Puts the simulation's clocks and lies around a voter.
fn liar(
    network: &Network,
    index: usize,
    half: Half,
    voter: Voter<Store, RuntimeClock<Machine>>,
    tampered: Option<Arc<almanac_consensus::Application<Store>>>,
) -> Liar {
    let Voter { replica, pool, clock, time, validators } = voter;
    let with =
        |clock, validators| Voter { replica: replica.clone(), pool: pool.clone(), clock, time, validators };
    let (votes_by, proposes_by) = (network.clocks[index], network.proposer_clock_of(index, half));
    let choosing = SimClock::while_choosing(clock.clone(), proposes_by, network.transaction_time);
    Liar {
        network: network.clone(),
        voter: with(SimClock::new(clock, votes_by), validators),
        proposer: with(choosing, network.validators_for_proposals(index)),
        tampered,
        index,
        lie: network.lies[index],
        is_skewed: network.proposer_clocks[index] != Skew::Offset(0),
        proposed: network.proposed.clone(),
        marks: network.marks.clone(),
    }
}

pub fn now(clock: &Context) -> Duration {
    clock.current().duration_since(UNIX_EPOCH).unwrap()
}
