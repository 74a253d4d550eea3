//! One validator of the simulation: the real application, state, archive, pool, gossip and engine.

use crate::{
    client::Client,
    clock::{SimClock, Skew},
    durable::Durable,
    liar::{Liar, Lie},
    line::{Line, Subject},
    machine::Machine,
    network::Network,
    opened::{Opened, SimTip, Store, files},
    twins::Half,
    wire::{WireReceiver, WireSender},
    witness::Witness,
};
use almanac_bft::{
    Channels, ConsensusBlock, Finalizer, History, Ledger, RuntimeClock, Timeouts, Validator, ValidatorSet,
    Voter, engine, finalizer::Deliveries, gossip::Gossip,
};
use almanac_consensus::{Admission, Sink};
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
    num::NonZeroU64,
    sync::{Arc, Weak},
    time::{Duration, UNIX_EPOCH},
};
use tokio::sync::oneshot;

/// Blocks that marshal keeps beside the archive: so few that a short run prunes, and asks the archive.
const RECENT_BLOCKS: NonZeroU64 = NZU64!(8);

/// What properties can see of a validator. It does not keep files open after a crash.
#[derive(Clone)]
pub struct Node {
    pub index: usize,
    ledger: Weak<Ledger<Store>>,
    archive: Weak<BlockJournal<Machine>>,
}

impl Node {
    /// Its ledger, if it runs.
    pub fn ledger(&self) -> Option<Arc<Ledger<Store>>> {
        self.ledger.upgrade()
    }

    /// All its blocks.
    pub async fn chain(&self) -> Result<Vec<ArchivedBlock>, String> {
        let archive = self.archive.upgrade().ok_or("a validator does not run")?;
        let height = archive.height().await.map_err(|error| error.to_string())?;
        let mut chain = Vec::new();
        for number in 1..=height {
            let archived = archive.get(number).await.map_err(|error| error.to_string())?;
            chain.push(archived.ok_or_else(|| format!("block {number} is missing"))?);
        }
        Ok(chain)
    }
}

impl ProcessedHeight for Node {
    async fn processed_height(&self) -> u64 {
        self.ledger().map_or(0, |ledger| ledger.tip().header.number)
    }
}

/// What both halves of a twin have in common.
#[derive(Clone)]
struct Surroundings {
    network: Network,
    index: usize,
    peers: Manager<PublicKey, Context>,
    blocker: Control<PublicKey, Context>,
    monitor: mpsc::UnboundedSender<FinalizationUpdate<PublicKey>>,
}

/// Starts a validator under one task: a crash ends that task, and everything that hangs on it.
pub async fn start(network: Network, init: InitContext<'_, PublicKey>) -> (Handle<()>, Node) {
    let (ready, started) = oneshot::channel();
    let InitContext { context, index, oracle, channels, monitor, .. } = init;
    let (peers, blocker) = (oracle.manager(), oracle.control(network.keys[index].public_key()));
    let is_twin = network.lies[index].is_twin();
    let surroundings = Surroundings { network, index, peers, blocker, monitor };
    let root = context.spawn(move |context| async move {
        if !is_twin {
            return surroundings.run(context, Half::First, channels, ready).await;
        }
        let (first, second) = split(&context, channels);
        let twin = surroundings.clone();
        let (other, _) = oneshot::channel();
        let context_of_twin = context.child("twin");
        let twin = context_of_twin
            .spawn(|context| async move { twin.run(context, Half::Second, second, other).await });
        surroundings.run(context.child("first"), Half::First, first, ready).await;
        let _ = twin.await;
    });
    (root, started.await.expect("the validator starts"))
}

type ChannelEnds = Vec<ChannelPair<PublicKey>>;

/// Gives every message to both halves; what each of them hears is the wires' business.
fn split(context: &Context, channels: ChannelEnds) -> (ChannelEnds, ChannelEnds) {
    let halves = channels.into_iter().map(|(sender, receiver)| {
        let (first, second) = receiver.split_with(context.child("split"), |_| SplitTarget::Both);
        ((sender.clone(), first), (sender, second))
    });
    halves.unzip()
}

impl Surroundings {
    /// Runs one validator until its disk fails.
    async fn run(self, context: Context, half: Half, channels: ChannelEnds, ready: oneshot::Sender<Node>) {
        let Self { network, index, .. } = &self;
        let disk = network.disk(*index, half).clone();
        let clock = Arc::new(context.child("wires"));
        disk.restart(&clock, network.unsynced, &mut network.leftovers(*index)).await;
        let wires = channels.into_iter().zip(Subject::ALL).map(|((sender, receiver), subject)| {
            let line = Line::new(network, (*index, half), subject, clock.clone(), disk.clone());
            (WireSender { inner: sender, line: line.clone() }, WireReceiver::new(receiver, line))
        });
        let wires = <[_; 6]>::try_from(wires.collect::<Vec<_>>()).expect("six channels");
        self.fail_disk(&context);
        let machine = Machine::new(context.child("machine"), disk.clone());
        let validator = machine.spawn(move |context| self.validate(context, half, wires, ready));
        tokio::select! {
            biased;
            () = disk.stopped() => {}
            _ = validator => {}
        }
    }

    /// Lets the disk fail when its time has come.
    fn fail_disk(&self, context: &Context) {
        for failure in self.network.disk_failures.iter().filter(|failure| failure.validator == self.index) {
            let (failure, disk) = (*failure, self.network.disk(self.index, Half::First).clone());
            let at = UNIX_EPOCH + failure.at;
            if at > context.current() {
                context.child("disk_failure").spawn(move |context| async move {
                    context.sleep_until(at).await;
                    disk.fail(failure.failure, failure.after);
                });
            }
        }
    }

    async fn validate(
        self,
        context: Machine,
        half: Half,
        wires: [(WireSender, WireReceiver); 6],
        ready: oneshot::Sender<Node>,
    ) {
        let Self { network, index, peers, blocker, monitor } = self;
        let opened = Opened::open(&context, &network, index, half).await;
        let (ledger, pool) = (opened.ledger, opened.pool);
        let key = network.keys[index].public_key();
        let node = Node { index, ledger: Arc::downgrade(&ledger), archive: Arc::downgrade(&opened.archive) };
        let _ = ready.send(node);
        let [votes, certificates, resolver, backfill, blocks, transactions] = wires;
        let scheme = network.validators.signer(&network.namespace, &network.keys[index]).unwrap();
        if network.lies[index] == Lie::Votes {
            // A digest is a digest on the wire, whatever made it.
            let context = context.child("conflicter");
            let conflicter = Conflicter::<_, _, Sha256>::new(context, conflicter::Config { scheme });
            let _ = conflicter.start(votes).await;
            return;
        }
        let clock = RuntimeClock::new(context.child("clock"));
        let voter = |skew, validators: Arc<ValidatorSet>| Voter {
            ledger: ledger.clone(),
            pool: pool.clone(),
            clock: SimClock::new(clock.clone(), skew),
            time: network.time,
            validators,
        };
        let proposer_clock = network.proposer_clock_of(index, half);
        let voter = Liar {
            voter: voter(network.clocks[index], network.validators.clone()),
            proposer: voter(proposer_clock, network.validators_for_proposals(index)),
            tampered: opened.tampered,
            index,
            lie: network.lies[index],
            is_skewed: network.proposer_clocks[index] != Skew::Offset(0),
            proposed: network.proposed.clone(),
            marks: network.marks.clone(),
        };
        let validator = Validator {
            scheme,
            public_key: key.clone(),
            partition: format!("{}-", files(index, half)),
            peers,
            blocker,
            genesis: ConsensusBlock::genesis(network.genesis_header.clone()),
            floor: None,
            votes_after: None,
            timeouts: Timeouts::for_block_time(Duration::from_millis(network.time.block_time.0)),
            history: History { archive: opened.archive.clone(), numbers: opened.numbers.clone() },
            recent_blocks: RECENT_BLOCKS,
        };
        let (deliveries, inbox) = Deliveries::channel();
        let durable = Durable::new(&context, &network, &ledger, &opened.archive, deliveries);
        let reporter = MonitorReporter::new(key, monitor, durable);
        let channels = Channels { votes, certificates, resolver, backfill, blocks };
        let (engine, marshal) =
            engine::start(context.child("engine"), validator, voter, channels, reporter).await;
        let witness = Witness { validator: index, clock, log: network.log.clone() };
        let mut sinks: Vec<Arc<dyn Sink>> = vec![opened.numbers];
        if network.has_application(index) {
            sinks.push(Arc::new(witness));
        }
        let finalizer =
            Finalizer { ledger: ledger.clone(), pool: pool.clone(), sinks, recent_blocks: RECENT_BLOCKS };
        let watched = network.clone();
        context.child("finalizer").spawn(|context| async move {
            let Err(error) = finalizer.run(context.child("pauses"), marshal, inbox).await else { return };
            if context.disk().has_failed() {
                context.disk().stop();
            } else {
                watched.violated(format!("final blocks can be committed: {error}"));
            }
        });
        let admission = Admission::new(network.genesis.chain_id, pool, Arc::new(SimTip(ledger.clone())));
        let gossip = Gossip::new(admission.clone(), RuntimeClock::new(context.child("gossip_clock")));
        if network.has_application(index) {
            let (archive, transfers) = (opened.archive, network.transfers);
            let run_gas = network.run_gas();
            let client = Client { index, admission, ledger, archive, transfers, run_gas };
            context.child("client").spawn(|context| client.run(context));
        }
        let (sender, receiver) = transactions;
        context.child("gossip").spawn(|_| gossip.run(sender, receiver));
        let _ = engine.await;
    }
}
