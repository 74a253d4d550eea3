//! The wires between validators: they lose, repeat and delay messages, are cut, and serve those who mean ill.

use crate::sim::{
    answers::Answers,
    disk::Disk,
    draw::Draw,
    false_answers::falsified,
    faults::Weather,
    liar::Lie,
    marks::{Mark, Marks},
    network::Network,
    run::milliseconds,
    twins::Half,
};
use almanac_bft::{ConsensusBlock, Voice, sync::message::Question, wiring::CHANNEL_COUNT};
use almanac_primitives::{
    Block,
    testing::{person, transfer},
};
use almanac_state::qmdb::sync::SyncRequest;
use commonware_codec::{DecodeExt as _, Encode as _};
use commonware_cryptography::{Signer as _, ed25519::PublicKey};
use commonware_p2p::{Message, Recipients};
use commonware_runtime::{Clock as _, IoBuf, deterministic::Context};
use commonware_utils::NZU64;
use std::{
    num::NonZeroU64,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// What messages are about, in the order of the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Votes,
    Certificates,
    Resolver,
    Backfill,
    Blocks,
    Transactions,
    State,
    Standing,
}

impl Subject {
    pub const ALL: [Self; CHANNEL_COUNT] = [
        Self::Votes,
        Self::Certificates,
        Self::Resolver,
        Self::Backfill,
        Self::Blocks,
        Self::Transactions,
        Self::State,
        Self::Standing,
    ];
}

/// Time from the failure of a disk after which nothing may be signed: what was durable before may be on its way.
const SILENT_AFTER: Duration = Duration::from_millis(50);

/// So few that a copy takes many answers.
const OPERATIONS_PER_ANSWER: NonZeroU64 = NZU64!(8);

/// One end of a channel.
pub struct Line {
    pub index: usize,
    pub half: Half,
    pub subject: Subject,
    pub lie: Lie,
    /// What each of the others does wrong.
    pub lies: Vec<Lie>,
    pub keys: Vec<PublicKey>,
    pub weather: Arc<Weather>,
    pub clock: Arc<Context>,
    pub disk: Arc<Disk>,
    pub marks: Marks,
    /// What was asked and answered on it, where it is a follower's for copying the state.
    pub answers: Answers,
    network: Network,
    draw: Mutex<Draw>,
}

/// What happens to a message.
pub enum Fate {
    Drop,
    Deliver,
    /// Now, and again later.
    Twice(SystemTime),
    Late(SystemTime),
}

impl Line {
    pub fn new(
        network: &Network,
        (index, half): (usize, Half),
        subject: Subject,
        clock: Arc<Context>,
        disk: Arc<Disk>,
    ) -> Arc<Self> {
        let now = clock.current().duration_since(UNIX_EPOCH).unwrap();
        let place = (index * 2 + half as usize) * Subject::ALL.len() + subject as usize;
        let seed = Draw(network.weather.seed ^ (place as u64) << 32 ^ milliseconds(now).0).next();
        Arc::new(Self {
            index,
            half,
            subject,
            lie: network.lies[index],
            lies: network.lies.clone(),
            keys: network.keys.iter().map(|key| key.public_key()).collect(),
            weather: network.weather.clone(),
            clock,
            disk,
            marks: network.marks.clone(),
            answers: Answers::default(),
            network: network.clone(),
            draw: Mutex::new(Draw(seed)),
        })
    }

    fn now(&self) -> Duration {
        self.clock.current().duration_since(UNIX_EPOCH).unwrap()
    }

    fn position(&self, key: &PublicKey) -> usize {
        self.keys.iter().position(|known| known == key).expect("a validator")
    }

    /// To whom a message goes in fact.
    pub fn route(&self, recipients: Recipients<PublicKey>) -> Recipients<PublicKey> {
        self.note_signature();
        if !self.lie.is_twin() && self.lie != Lie::Withhold {
            return recipients;
        }
        let mut recipients = match recipients {
            Recipients::All => self.keys.clone(),
            Recipients::Some(keys) => keys,
            Recipients::One(key) => vec![key],
        };
        recipients.retain(|key| *key != self.keys[self.index] && self.is_served(self.position(key)));
        Recipients::Some(recipients)
    }

    fn is_served(&self, peer: usize) -> bool {
        if self.lie == Lie::Withhold {
            let is_block = matches!(self.subject, Subject::Blocks | Subject::Backfill);
            let is_withheld = is_block && self.draw.lock().unwrap().chance(400);
            if is_withheld {
                self.marks.add(Mark::Told(Lie::Withhold));
            }
            return !is_withheld;
        }
        let is_served = self.lie.speaks(self.half, &self.weather, self.index, peer, self.now());
        if !is_served {
            self.marks.add(Mark::TwinSplit);
        }
        is_served
    }

    /// `silent_after_disk_failure`: whoever cannot write down what it signs signs nothing.
    fn note_signature(&self) {
        if self.subject != Subject::Votes {
            return;
        }
        if self.lie == Lie::Votes {
            self.marks.add(Mark::Told(Lie::Votes));
        }
        let since = self.disk.dead_since().and_then(|since| self.clock.current().duration_since(since).ok());
        if since.is_some_and(|since| since > SILENT_AFTER) {
            let text = format!("validator {} voted {since:?} after its disk had failed", self.index);
            self.network.violated(text);
        }
    }

    /// Looks at what is sent: votes for `one_vote_in_a_view`, questions for `liars_are_cut_off`.
    pub fn note_sent(&self, message: &[u8]) {
        if self.is_asking() {
            return self.answers.asked(message, self.now());
        }
        if self.subject != Subject::Votes || !self.network.votes_once(self.index) {
            return;
        }
        if let Err(conflict) = self.network.votes.note(self.index, message) {
            self.network.violated(conflict);
        }
        if matches!(self.network.voice(self.index), Voice::Votes { after: Some(_) }) {
            self.marks.add(Mark::VotedAgain);
        }
    }

    /// Whether messages have to be looked at.
    pub fn is_watched(&self) -> bool {
        self.subject == Subject::Votes || self.is_asking()
    }

    /// Whether it is a follower's for copying the state.
    fn is_asking(&self) -> bool {
        self.subject == Subject::State && self.network.is_follower(self.index)
    }

    /// Looks at what arrives in the end.
    pub fn note_received(&self, (from, bytes): &Message<PublicKey>) {
        if self.is_asking() && self.answers.arrived(self.position(from), bytes.as_ref(), self.now()) {
            self.marks.add(Mark::Unproven);
        }
    }

    /// What a peer has sent in fact, where it means ill.
    pub fn receive(&self, (from, bytes): Message<PublicKey>) -> Message<PublicKey> {
        if self.subject == Subject::State {
            return if self.is_asking() {
                self.receive_answer((from, bytes))
            } else {
                (from, few_asked(bytes))
            };
        }
        let is_lie = self.lies[self.position(&from)] == Lie::OtherBody && self.subject == Subject::Blocks;
        if !is_lie || !self.draw.lock().unwrap().chance(400) {
            return (from, bytes);
        }
        self.marks.add(Mark::Told(Lie::OtherBody));
        let sent = ConsensusBlock::decode(bytes).expect("a block");
        let mut block = Block::clone(sent.block());
        if block.transactions.pop().is_none() {
            block.transactions.push(transfer(person(0), 0, person(1).address, 1));
        }
        (from, ConsensusBlock::new(Arc::new(block)).expect("the same header").encode().into())
    }

    /// Whoever means ill also answers wrongly to followers that copy the state.
    fn receive_answer(&self, (from, bytes): Message<PublicKey>) -> Message<PublicKey> {
        let sender = self.position(&from);
        if self.lies[sender] == Lie::None {
            return (from, bytes);
        }
        let liar = self.weather.seed ^ (sender as u64) << 32;
        let lie = falsified(&mut self.draw.lock().unwrap(), liar, &self.marks, bytes.as_ref());
        let Some(lie) = lie else { return (from, bytes) };
        self.answers.changed(sender, bytes.as_ref());
        (from, lie.into())
    }

    pub fn fate(&self, from: &PublicKey) -> Fate {
        let (from, now) = (self.position(from), self.now());
        if let Some(is_one_way) = self.weather.is_cut(from, self.index, now) {
            self.marks.add(if is_one_way { Mark::OneWayCut } else { Mark::Partition });
            return Fate::Drop;
        }
        if !self.lie.hears(self.half, &self.weather, self.index, from, now) {
            self.marks.add(Mark::TwinSplit);
            return Fate::Drop;
        }
        let links = &self.weather.links;
        let mut draw = self.draw.lock().unwrap();
        if draw.chance(links.loss) {
            self.marks.add(Mark::Loss);
            return Fate::Drop;
        }
        if draw.chance(links.duplicates) {
            self.marks.add(Mark::Duplicate);
            return Fate::Twice(self.clock.current() + draw.millis(0, 500));
        }
        if draw.chance(links.delays) {
            self.marks.add(Mark::Delay);
            return Fate::Late(self.clock.current() + draw.millis(50, 1_000));
        }
        Fate::Deliver
    }
}

/// Makes a question for operations one for few of them. Peers give few at once where operations are large; here they are
/// small, so that a copy would take two questions, and hardly any to a liar.
fn few_asked(question: IoBuf) -> IoBuf {
    match Question::decode(question.as_ref()) {
        Ok((number, Question::Operations(SyncRequest::Operations { size, start, max_ops }))) => {
            let max_ops = max_ops.min(OPERATIONS_PER_ANSWER);
            Question::Operations(SyncRequest::Operations { size, start, max_ops }).encode(number).into()
        }
        _ => question,
    }
}
