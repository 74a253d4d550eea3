//! Whether a validator that starts may vote, by what the others know.
//!
//! Its files tell what it has signed, unless they are an older copy of themselves. Nothing on its own disk shows that;
//! its peers do. Each validator answers one question at any time, also while it waits for its own answers: which is
//! the newest final block, and which is the newest vote of the one who asks?
//!
//! - A final block of a later view than any in the files: the chain went on without these files. Either the validator
//!   was away, or its files were, while it voted. It is silent first (`silence.rs`).
//! - A vote of its own that is not in the files: they are not all that it has signed. The same.
//! - Neither: it votes at once.
//!
//! Where all validators come back at the same time, those who signed the newest final block, a quorum, have its view in
//! their files and vote at once. If one of them is lost for good and the others lag behind, nobody is left to show a
//! new block: an operator decides (`almanac node --vote-now`).

use crate::{
    digest::BlockDigest,
    engine::Marshal,
    evidence::NewestVotes,
    fair::Share,
    ledger::Ledger,
    sync::Floor,
    validators::{Namespace, ValidatorSet},
    votes::{OwnVote, VotesOnDisk},
};
use alloy_primitives::Bytes;
use almanac_primitives::{
    Header,
    codec::{DecodeError, Reader, Writer},
};
use almanac_state::StateStore;
use commonware_codec::{Copying, DecodeExt as _, Encode as _};
use commonware_consensus::{
    marshal::Identifier,
    simplex::{
        scheme::ed25519::Scheme,
        types::{Attributable as _, Vote},
    },
    types::Height,
};
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_parallel::Sequential;
use commonware_runtime::{Clock, Quota};
use commonware_utils::{NZU32, NZUsize};
use rand_core::CryptoRng;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// The channel of questions and answers, after that of state sync.
pub(crate) const CHANNEL: u64 = crate::sync::CHANNEL + 1;

/// Messages that a peer may send: a question each pause, and an answer to each of ours.
pub(crate) const QUOTA: Quota = Quota::per_second(NZU32!(8)).allow_burst(NZU32!(8));

/// What is kept of a peer's messages while others are read: more than it has reason to send.
pub(crate) const SHARE: Share = Share { messages: NZUsize!(8), bytes: 1 << 20 };

/// Time between two questions.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// How long those are waited for who have not answered, when enough have. Connections are dialled meanwhile: an honest
/// peer that knows more must not be late because it is called last.
const STRAGGLERS: Duration = Duration::from_secs(5);

/// Time between two lines about too few answers.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

/// Blocks below the last one that are looked at for a certificate. Without faults each block has its own.
const LOOK_BACK: u64 = 256;

/// The version of both messages.
const VERSION: u8 = 1;

/// What a validator knows of its own votes when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All of them, for sure.
    Sure,
    /// These, unless they are of an older copy.
    Ask(VotesOnDisk),
    /// Not all.
    Lost,
}

/// Whether it may vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leave {
    /// At once.
    Given,
    /// After a while of silence.
    Denied {
        /// Why.
        reason: String,
        /// The newest final block that peers know.
        newest: Option<Box<Header>>,
    },
}

/// What a peer knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    newest: Option<Floor>,
    vote: Option<OwnVote>,
}

/// Asks and answers.
pub(crate) struct Registrar<E, S: StateStore> {
    pub(crate) clock: E,
    pub(crate) own: PublicKey,
    pub(crate) validators: ValidatorSet,
    pub(crate) namespace: Namespace,
    pub(crate) ledger: Arc<Ledger<S>>,
    pub(crate) marshal: Marshal,
    pub(crate) votes: NewestVotes,
}

impl<E, S> Registrar<E, S>
where
    E: Clock + CryptoRng,
    S: StateStore<Batch: Send + 'static>,
{
    /// Answers others until the network ends, and tells `decide` as soon as enough of them have answered.
    pub(crate) async fn run(
        mut self,
        mut sender: impl Sender<PublicKey = PublicKey>,
        mut receiver: impl Receiver<PublicKey = PublicKey>,
        standing: Standing,
        decide: impl FnOnce(Leave) + Send,
    ) {
        let mut asking = Some(Asking::new(standing, self.validators.keys().len(), self.clock.current()));
        let mut decide = Some(decide);
        loop {
            let now = self.clock.current();
            if let Some(leave) = asking.as_mut().and_then(|asking| asking.leave(now)) {
                asking = None;
                if let Some(decide) = decide.take() {
                    decide(leave);
                }
            }
            if asking.as_mut().is_some_and(|asking| asking.is_time_to_ask(now)) {
                sender.send(Recipients::All, question(), false);
            }
            let pause = if asking.is_some() { ASK_EVERY / 4 } else { COMPLAIN_EVERY };
            let received = tokio::select! {
                received = receiver.recv() => received,
                () = self.clock.sleep(pause) => continue,
            };
            let Ok((peer, bytes)) = received else { return };
            let bytes: &[u8] = bytes.as_ref();
            match decode(bytes) {
                Ok(Message::Question) => {
                    if let Some(answer) = self.answer(&peer).await {
                        sender.send(Recipients::One(peer), answer, false);
                    }
                }
                Ok(Message::Answer { newest, vote }) => {
                    // Checking takes long, and nobody has to be heard twice.
                    let Some(asking) = asking.as_mut() else { continue };
                    if let Some(known) = self.check(&peer, newest.map(|newest| *newest), &vote) {
                        asking.heard(peer, known);
                    }
                }
                Err(error) => tracing::debug!("{peer} sent neither question nor answer: {error}"),
            }
        }
    }

    /// `None` where this node does not know itself yet.
    async fn answer(&self, peer: &PublicKey) -> Option<Vec<u8>> {
        let newest = match self.ledger.tip().header.number {
            0 => None,
            height => Some(self.newest(height).await?),
        };
        let vote = self.validators.keys().position(peer).and_then(|index| self.votes.of(index));
        let vote = vote.map(|vote| vote.encode()).unwrap_or_default();
        Some(answer(newest.as_ref(), &vote))
    }

    async fn newest(&self, height: u64) -> Option<Floor> {
        for number in (height.saturating_sub(LOOK_BACK).max(1)..=height).rev().map(Height::new) {
            let Some(signed) = self.marshal.get_finalization(number).await else { continue };
            let block = self.marshal.get_block(Identifier::Height(number)).await?;
            let header = block.inner().block().header.clone();
            return Some(Floor { header, certificate: signed.encode().into() });
        }
        None
    }

    /// Believes what is signed, by validators only.
    fn check(&mut self, peer: &PublicKey, newest: Option<Floor>, vote: &Bytes) -> Option<Known> {
        self.validators.keys().position(peer)?;
        if let Some(floor) = &newest
            && let Err(error) = floor.verify(&self.validators, &self.namespace, &mut self.clock)
        {
            tracing::warn!("{peer} names a final block that is none: {error}");
            return None;
        }
        let vote = (!vote.is_empty()).then(|| self.own_vote(vote)).flatten();
        Some(Known { newest, vote })
    }

    fn own_vote(&mut self, bytes: &Bytes) -> Option<OwnVote> {
        let vote = Vote::<Scheme, BlockDigest>::decode(Copying(&bytes[..])).ok()?;
        let scheme = self.validators.verifier(&self.namespace);
        let own = self.validators.keys().position(&self.own)?;
        let is_own = |signer: u32| usize::try_from(signer).is_ok_and(|signer| signer == own);
        let is_signed = match &vote {
            Vote::Notarize(vote) => {
                is_own(vote.signer().get()) && vote.verify(&mut self.clock, &scheme, &Sequential)
            }
            Vote::Nullify(vote) => {
                is_own(vote.signer().get())
                    && vote.verify::<_, BlockDigest>(&mut self.clock, &scheme, &Sequential)
            }
            Vote::Finalize(vote) => {
                is_own(vote.signer().get()) && vote.verify(&mut self.clock, &scheme, &Sequential)
            }
        };
        is_signed.then(|| OwnVote::of(&vote))
    }
}

/// Gathers answers.
struct Asking {
    standing: Standing,
    peers: usize,
    /// With this validator, so many are a quorum: without them nothing goes on in any case. Fewer may all have been away
    /// when the newest blocks became final.
    needed: usize,
    heard: BTreeMap<PublicKey, Known>,
    begun: SystemTime,
    asked: Option<SystemTime>,
    enough_since: Option<SystemTime>,
    complained: SystemTime,
}

impl Asking {
    fn new(standing: Standing, validators: usize, now: SystemTime) -> Self {
        let (peers, faulty) = (validators.saturating_sub(1), validators.saturating_sub(1) / 3);
        Self {
            standing,
            peers,
            needed: peers - faulty,
            heard: BTreeMap::new(),
            begun: now,
            asked: None,
            enough_since: None,
            complained: now,
        }
    }

    fn heard(&mut self, peer: PublicKey, known: Known) {
        self.heard.insert(peer, known);
    }

    fn is_time_to_ask(&mut self, now: SystemTime) -> bool {
        // A clock that was set back is no reason to wait until it is as late again.
        let is_time = self.asked.is_none_or(|asked| asked > now || since(asked, now) >= ASK_EVERY);
        if is_time {
            self.asked = Some(now);
        }
        self.complained = self.complained.min(now);
        if since(self.complained, now) >= COMPLAIN_EVERY {
            self.complained = now;
            tracing::warn!(
                "this validator waits for the others before it votes: {} of {} have answered for {} s, {} must",
                self.heard.len(),
                self.peers,
                since(self.begun, now).as_secs(),
                self.needed
            );
        }
        is_time
    }

    /// The decision, once there are answers enough.
    fn leave(&mut self, now: SystemTime) -> Option<Leave> {
        if self.standing == Standing::Sure {
            return Some(Leave::Given);
        }
        if self.heard.len() < self.needed {
            return None;
        }
        let enough_since = self.enough_since.map_or(now, |moment| moment.min(now));
        self.enough_since = Some(enough_since);
        if self.heard.len() < self.peers && since(enough_since, now) < STRAGGLERS {
            return None;
        }
        Some(self.decide())
    }

    fn decide(&self) -> Leave {
        let headers =
            self.heard.values().filter_map(|known| known.newest.as_ref()).map(|floor| &floor.header);
        let newest = headers.max_by_key(|header| header.consensus.view);
        let denied = |reason: String| Leave::Denied { reason, newest: newest.cloned().map(Box::new) };
        let votes = match &self.standing {
            Standing::Sure => return Leave::Given,
            Standing::Lost => return denied("some of its votes are lost".to_owned()),
            Standing::Ask(votes) => votes,
        };
        let sent = self.heard.values().filter_map(|known| known.vote.as_ref());
        if let Some(missing) = sent.into_iter().find(|vote| !votes.accounts_for(vote)) {
            let OwnVote { view, kind } = missing;
            return denied(format!(
                "a peer has its vote in view {view} ({kind:?}), which is not on its disk"
            ));
        }
        match newest {
            Some(header) if header.consensus.view > votes.newest => denied(format!(
                "block {} of view {} is final, its votes on disk end at view {}",
                header.number, header.consensus.view, votes.newest
            )),
            _ => Leave::Given,
        }
    }
}

fn since(earlier: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(earlier).unwrap_or_default()
}

/// What is said on the channel.
enum Message {
    Question,
    Answer { newest: Option<Box<Floor>>, vote: Bytes },
}

/// Largest message in a network of so many validators: a header, a certificate and a vote.
pub(crate) fn message_bytes_max(validators: u32) -> usize {
    2 * crate::engine::vote_bytes_max(validators) + (4 << 10)
}

fn question() -> Vec<u8> {
    let mut out = Writer::versioned(VERSION, 2);
    out.u8(0);
    out.finish()
}

fn answer(newest: Option<&Floor>, vote: &[u8]) -> Vec<u8> {
    let mut out = Writer::versioned(VERSION, 2_048);
    out.u8(1);
    out.bytes(&newest.map(Floor::encode).unwrap_or_default());
    out.bytes(vote);
    out.finish()
}

fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
    let mut input = Reader::versioned(bytes, "standing", VERSION)?;
    let message = match input.u8("kind")? {
        0 => Message::Question,
        1 => {
            let floor = input.bytes("newest", bytes.len())?;
            let newest = if floor.is_empty() { None } else { Some(Floor::decode(&floor)?.into()) };
            Message::Answer { newest, vote: input.bytes("vote", bytes.len())? }
        }
        given => return Err(DecodeError::UnknownValue { what: "kind", given: given.into() }),
    };
    input.finish("standing")?;
    Ok(message)
}

/// For fuzz targets: decodes a message, and encodes again what that gives.
#[cfg(feature = "fuzzing")]
pub fn decodes_to_itself(bytes: &[u8]) {
    match decode(bytes) {
        Ok(Message::Question) => assert_eq!(question(), bytes),
        Ok(Message::Answer { newest, vote }) => assert_eq!(answer(newest.as_deref(), &vote), bytes),
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::votes::VoteKind;
    use almanac_primitives::ConsensusContext;
    use commonware_cryptography::{Signer as _, ed25519::PrivateKey};

    /// One message has one encoding: only 0 and 1 name a kind.
    #[test]
    fn both_sides_of_the_kinds_of_messages() {
        let answer = answer(None, b"vote");
        assert!(decode(&question()).is_ok() && decode(&answer).is_ok());
        for given in [2, u8::MAX] {
            let mut other = answer.clone();
            other[1] = given;
            let refused = DecodeError::UnknownValue { what: "kind", given: given.into() };
            assert_eq!(decode(&other).err(), Some(refused));
        }
    }

    fn final_in(view: u64) -> Option<Floor> {
        let consensus = ConsensusContext { view, ..ConsensusContext::default() };
        let header = Header { number: view, consensus, ..Header::default() };
        Some(Floor { header, certificate: Bytes::new() })
    }

    fn votes(newest: u64) -> VotesOnDisk {
        let own = [OwnVote { view: newest, kind: VoteKind::Finalize }].into();
        VotesOnDisk { oldest: newest.saturating_sub(10), newest, own }
    }

    /// What validator 0 of so many may do when the others know this.
    fn leave(standing: Standing, validators: usize, known: &[Known]) -> Option<Leave> {
        let mut asking = Asking::new(standing, validators, SystemTime::UNIX_EPOCH);
        for (seed, known) in (1u64..).zip(known) {
            asking.heard(PrivateKey::from_seed(seed).public_key(), known.clone());
        }
        let early = asking.leave(SystemTime::UNIX_EPOCH);
        early.or_else(|| asking.leave(SystemTime::UNIX_EPOCH + STRAGGLERS))
    }

    fn is_given(standing: Standing, known: &[Known]) -> bool {
        leave(standing, 4, known).expect("enough have answered") == Leave::Given
    }

    fn knows(view: u64) -> Known {
        Known { newest: final_in(view), vote: None }
    }

    /// Both sides of the last view on disk.
    #[test]
    fn a_final_block_beyond_the_disk_means_silence() {
        let ask = || Standing::Ask(votes(100));
        assert!(is_given(ask(), &[knows(100), knows(99), knows(7)]));
        assert!(
            !is_given(ask(), &[knows(101), knows(99), knows(7)]),
            "one is enough: it is signed by a quorum"
        );
        assert!(!is_given(Standing::Lost, &[knows(1), knows(1), knows(1)]));
        assert!(is_given(Standing::Sure, &[]));
    }

    /// A key that was never used votes at once only where nothing is final.
    #[test]
    fn a_fresh_key_votes_at_once_on_a_fresh_chain() {
        let ask = || Standing::Ask(VotesOnDisk::default());
        assert!(is_given(ask(), &[Known::default(), Known::default(), Known::default()]));
        assert!(!is_given(ask(), &[Known::default(), Known::default(), knows(1)]));
    }

    #[test]
    fn a_vote_that_is_not_on_disk_means_silence() {
        let sent = |view, kind| Known { newest: final_in(90), vote: Some(OwnVote { view, kind }) };
        let given = |known| is_given(Standing::Ask(votes(100)), &[known, knows(90), knows(90)]);
        assert!(given(sent(100, VoteKind::Finalize)));
        assert!(given(sent(89, VoteKind::Nullify)), "forgotten, as nobody votes there");
        assert!(!given(sent(100, VoteKind::Nullify)), "another vote in the same view");
        assert!(!given(sent(101, VoteKind::Notarize)), "a later one, although nothing is final there");
    }

    /// Both sides of how many must answer: with this validator, they are a quorum.
    #[test]
    fn no_decision_without_enough_answers() {
        let ask = || Standing::Ask(votes(100));
        for (validators, needed) in [(2, 1), (3, 2), (4, 2), (5, 3), (6, 4), (7, 4), (10, 6)] {
            let known = vec![knows(100); needed];
            assert_eq!(leave(ask(), validators, &known[1..]), None, "{validators}");
            assert_eq!(leave(ask(), validators, &known), Some(Leave::Given), "{validators}");
        }
        assert_eq!(leave(ask(), 1, &[]), Some(Leave::Given), "a validator alone has nobody to ask");
    }

    /// With seven validators, a final block needs five. This one signed it, and lost that; so one Byzantine validator, or
    /// none, and the two honest ones that were away know nothing of it.
    #[test]
    fn answers_of_those_who_were_away_are_not_enough() {
        let away = [knows(50), knows(50), Known::default()];
        assert_eq!(leave(Standing::Ask(votes(60)), 7, &away), None);
        let [a, b, c] = away;
        let decided =
            leave(Standing::Ask(votes(60)), 7, &[a, b, c, knows(100)]).expect("enough have answered");
        assert!(matches!(decided, Leave::Denied { .. }), "{decided:?}");
    }

    /// A clock that is set back by an hour does not stop the questions, nor the wait for stragglers.
    #[test]
    fn a_clock_that_is_set_back_costs_no_time() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let mut asking = Asking::new(Standing::Ask(votes(100)), 4, at(3_600));
        assert!(asking.is_time_to_ask(at(3_600)) && !asking.is_time_to_ask(at(3_600)));
        for seed in 1..=2 {
            asking.heard(PrivateKey::from_seed(seed).public_key(), knows(100));
        }
        assert_eq!(asking.leave(at(3_600)), None, "a third one may answer");
        assert!(asking.is_time_to_ask(at(0)) && !asking.is_time_to_ask(at(0)));
        asking.leave(at(0));
        assert_eq!(asking.leave(at(0) + STRAGGLERS), Some(Leave::Given));
    }

    #[test]
    fn messages_are_read_back() {
        assert!(matches!(decode(&question()), Ok(Message::Question)));
        for (newest, vote) in [(None, &b""[..]), (final_in(7), b"vote")] {
            let whole = answer(newest.as_ref(), vote);
            let Ok(Message::Answer { newest: read, vote: read_vote }) = decode(&whole) else { panic!() };
            assert_eq!((read, &read_vote[..]), (newest.map(Box::new), vote));
            for length in 0..whole.len() {
                assert!(decode(&whole[..length]).is_err(), "{length}");
            }
        }
    }
}
