//! Decides at start whether a validator may vote, by what the other validators know.
//!
//! Its files contain all its votes, unless they are an older copy. Nothing on its own disk can show that, but its
//! peers can. Every validator answers one question at any time, also while it waits for its own answers: which is the
//! newest final block, and which is the newest vote of the asking validator?
//!
//! - A peer has a vote of this validator that its files lack, in a later view than the newest final block: the files
//!   are incomplete. The validator is silent first (`lost_votes.rs`).
//! - A peer has a final block of a later view than any in the files: the validator was away, or its files are older
//!   than its last votes. It votes at once, but only in views after that block: the earlier views are over.
//! - Otherwise it votes at once.
//!
//! An honest validator with its own files needs no new block to vote: the chain continues as soon as a quorum is up,
//! however long each of them was away.

use crate::{
    digest::BlockDigest,
    evidence::NewestVotes,
    fair::Share,
    newest::Newest,
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
use commonware_consensus::simplex::{
    scheme::ed25519::Scheme,
    types::{Attributable as _, Vote},
};
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_parallel::Sequential;
use commonware_runtime::{Clock, Quota};
use commonware_utils::{NZU32, NZUsize};
use rand_core::CryptoRng;
use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

/// The channel of this protocol, after that of state sync.
pub(crate) const CHANNEL: u64 = crate::sync::CHANNEL + 1;

/// Messages that a peer may send: a question per interval, and an answer to each of ours.
pub(crate) const QUOTA: Quota = Quota::per_second(NZU32!(8)).allow_burst(NZU32!(8));

/// Queue of a peer's messages: more than an honest one sends.
pub(crate) const SHARE: Share = Share { messages: NZUsize!(8), bytes: 1 << 20 };

/// Time between two questions.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// How long to wait for further peers when enough have answered. Connections are still being dialled: an honest
/// peer that knows more must not be missed because it is dialled last.
const STRAGGLERS: Duration = Duration::from_secs(5);

/// Time between two log lines about too few answers.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

/// The version of both messages.
const VERSION: u8 = 1;

/// What a validator knows of its own votes when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All of them, certainly.
    Sure,
    /// These, unless the files are an older copy.
    Ask(VotesOnDisk),
    /// Some are missing.
    Lost,
}

/// Whether it may vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leave {
    /// At once.
    Given {
        /// Only in views after that of this final block. `None` allows every view that its files allow.
        after: Option<Box<Floor>>,
    },
    /// After a period without voting.
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

/// Sends questions and answers.
pub(crate) struct Registrar<E, S: StateStore> {
    pub(crate) clock: E,
    pub(crate) own: PublicKey,
    pub(crate) validators: ValidatorSet,
    pub(crate) namespace: Namespace,
    pub(crate) newest: Newest<S>,
    pub(crate) votes: NewestVotes,
}

impl<E, S> Registrar<E, S>
where
    E: Clock + CryptoRng,
    S: StateStore<Batch: Send + 'static>,
{
    /// Answers peers until the network ends, and calls `decide` as soon as enough have answered.
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
                // A fixed order, so that a simulation can be replayed.
                biased;
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
                    // Verifying takes long, and each peer needs to be heard only once.
                    let Some(asking) = asking.as_mut() else { continue };
                    if let Some(known) = self.check(&peer, newest.map(|newest| *newest), &vote) {
                        asking.heard(peer, known);
                    }
                }
                Err(error) => tracing::debug!("{peer} sent neither question nor answer: {error}"),
            }
        }
    }

    /// `None` while this node does not know its own state yet.
    async fn answer(&mut self, peer: &PublicKey) -> Option<Vec<u8>> {
        let newest = match self.newest.height() {
            0 => None,
            _ => Some(self.newest.find().await?),
        };
        let vote = self.validators.keys().position(peer).and_then(|index| self.votes.of(index));
        let vote = vote.map(|vote| vote.encode()).unwrap_or_default();
        Some(answer(newest, &vote))
    }

    /// Accepts only what validators have signed.
    fn check(&mut self, peer: &PublicKey, newest: Option<Floor>, vote: &Bytes) -> Option<Known> {
        self.validators.keys().position(peer)?;
        if let Some(floor) = &newest
            && let Err(error) = floor.verify(&self.validators, &self.namespace, &mut self.clock)
        {
            tracing::warn!("{peer} names a block that is not final: {error}");
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
    /// Number of answers that, together with this validator, form a quorum: without it the chain cannot
    /// continue in any case. A smaller group may all have been away when the newest blocks became final.
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
        // Ask again if the clock was set back, instead of waiting until it catches up.
        let is_time = self.asked.is_none_or(|asked| asked > now || since(asked, now) >= ASK_EVERY);
        if is_time {
            self.asked = Some(now);
        }
        self.complained = self.complained.min(now);
        if since(self.complained, now) >= COMPLAIN_EVERY {
            self.complained = now;
            tracing::warn!(
                "waiting for other validators before voting: {} of {} have answered in {} s, {} must",
                self.heard.len(),
                self.peers,
                since(self.begun, now).as_secs(),
                self.needed
            );
        }
        is_time
    }

    /// The decision, once there are enough answers.
    fn leave(&mut self, now: SystemTime) -> Option<Leave> {
        if self.standing == Standing::Sure {
            return Some(Leave::Given { after: None });
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
        let floors = self.heard.values().filter_map(|known| known.newest.as_ref());
        let newest = floors.max_by_key(|floor| floor.header.consensus.view);
        let denied = |reason: String| {
            let newest = newest.map(|floor| Box::new(floor.header.clone()));
            Leave::Denied { reason, newest }
        };
        let votes = match &self.standing {
            Standing::Sure => return Leave::Given { after: None },
            Standing::Lost => return denied("some of its votes are lost".to_owned()),
            Standing::Ask(votes) => votes,
        };
        let final_view = newest.map_or(0, |floor| floor.header.consensus.view);
        let sent = self.heard.values().filter_map(|known| known.vote.as_ref());
        let missing = sent.filter(|vote| !votes.accounts_for(vote)).max();
        match missing {
            Some(OwnVote { view, kind }) if *view > final_view => {
                denied(format!("a peer has its vote in view {view} ({kind:?}), which is not on its disk"))
            }
            None if final_view <= votes.newest => Leave::Given { after: None },
            // Missing votes, if any, are in views that are over.
            _ => Leave::Given { after: newest.cloned().map(Box::new) },
        }
    }
}

fn since(earlier: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(earlier).unwrap_or_default()
}

/// The messages of the channel.
enum Message {
    Question,
    Answer { newest: Option<Box<Floor>>, vote: Bytes },
}

/// Largest message in a network of this many validators: a header, a certificate and a vote.
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

/// Entry point for fuzz targets: decodes a message and checks that a success encodes back to the same bytes.
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

    /// The rights of validator 0 when the others know this.
    fn leave(standing: Standing, validators: usize, known: &[Known]) -> Option<Leave> {
        let mut asking = Asking::new(standing, validators, SystemTime::UNIX_EPOCH);
        for (seed, known) in (1u64..).zip(known) {
            asking.heard(PrivateKey::from_seed(seed).public_key(), known.clone());
        }
        let early = asking.leave(SystemTime::UNIX_EPOCH);
        early.or_else(|| asking.leave(SystemTime::UNIX_EPOCH + STRAGGLERS))
    }

    /// Voting at once: in views after this one only, or in every view its files allow.
    fn given(after: Option<u64>) -> Leave {
        Leave::Given { after: after.and_then(final_in).map(Box::new) }
    }

    fn decided(standing: Standing, known: &[Known]) -> Leave {
        leave(standing, 4, known).expect("enough have answered")
    }

    fn is_denied(standing: Standing, known: &[Known]) -> bool {
        matches!(decided(standing, known), Leave::Denied { .. })
    }

    fn knows(view: u64) -> Known {
        Known { newest: final_in(view), vote: None }
    }

    /// Both sides of the last view on disk.
    #[test]
    fn where_the_disk_ends_before_the_newest_final_block_votes_begin_after_it() {
        let ask = || Standing::Ask(votes(100));
        assert_eq!(decided(ask(), &[knows(100), knows(99), knows(7)]), given(None));
        assert_eq!(
            decided(ask(), &[knows(7), knows(101), knows(99)]),
            given(Some(101)),
            "one is enough: it is signed by a quorum"
        );
        assert_eq!(
            decided(ask(), &[knows(102), knows(101), knows(103)]),
            given(Some(103)),
            "the newest counts"
        );
        assert!(is_denied(Standing::Lost, &[knows(1), knows(1), knows(1)]));
        assert_eq!(decided(Standing::Sure, &[]), given(None));
    }

    /// A key that was never used votes at once: after the newest final block, where there is one.
    #[test]
    fn a_fresh_key_votes_at_once() {
        let ask = || Standing::Ask(VotesOnDisk::default());
        let nothing = Known::default;
        assert_eq!(decided(ask(), &[nothing(), nothing(), nothing()]), given(None));
        assert_eq!(decided(ask(), &[nothing(), nothing(), knows(1)]), given(Some(1)));
        let used = |view| Known { vote: Some(OwnVote { view, kind: VoteKind::Nullify }), ..knows(5) };
        assert_eq!(decided(ask(), &[used(5), nothing(), nothing()]), given(Some(5)), "that view is over");
        assert!(is_denied(ask(), &[used(6), nothing(), nothing()]), "it is not fresh");
        let unsettled = Known { newest: None, ..used(1) };
        assert!(is_denied(ask(), &[unsettled, nothing(), nothing()]), "nothing is over");
    }

    /// Both sides of the newest final view, whoever knows it, and of what is on disk.
    #[test]
    fn a_vote_that_is_not_on_disk_means_silence_unless_its_view_is_over() {
        let sent = |view, kind| Known { newest: final_in(90), vote: Some(OwnVote { view, kind }) };
        let decided = |known, others| decided(Standing::Ask(votes(100)), &[known, knows(90), knows(others)]);
        let is_denied = |known, others| matches!(decided(known, others), Leave::Denied { .. });
        assert_eq!(decided(sent(100, VoteKind::Finalize), 90), given(None));
        assert_eq!(decided(sent(89, VoteKind::Nullify), 90), given(None), "forgotten, as nobody votes there");
        assert!(is_denied(sent(100, VoteKind::Nullify), 90), "another vote in the same view");
        assert!(is_denied(sent(100, VoteKind::Nullify), 99));
        assert_eq!(decided(sent(100, VoteKind::Nullify), 100), given(Some(100)), "the view is over");
        assert!(is_denied(sent(101, VoteKind::Notarize), 90), "a later one");
        assert!(is_denied(sent(120, VoteKind::Notarize), 119), "although the disk ends long before");
        assert_eq!(decided(sent(120, VoteKind::Notarize), 120), given(Some(120)));
    }

    /// Both sides of how many must answer: with this validator, they are a quorum.
    #[test]
    fn no_decision_without_enough_answers() {
        let ask = || Standing::Ask(votes(100));
        for (validators, needed) in [(2, 1), (3, 2), (4, 2), (5, 3), (6, 4), (7, 4), (10, 6)] {
            let known = vec![knows(100); needed];
            assert_eq!(leave(ask(), validators, &known[1..]), None, "{validators}");
            assert_eq!(leave(ask(), validators, &known), Some(given(None)), "{validators}");
        }
        assert_eq!(leave(ask(), 1, &[]), Some(given(None)), "a validator alone has nobody to ask");
    }

    /// With seven validators, a final block needs five. This one signed it and lost that vote; so one Byzantine
    /// validator and the two honest ones that were away may know nothing of it.
    #[test]
    fn answers_of_those_who_were_away_are_not_enough() {
        let away = [knows(50), knows(50), Known::default()];
        assert_eq!(leave(Standing::Ask(votes(60)), 7, &away), None);
        let [a, b, c] = away;
        let decided = leave(Standing::Ask(votes(60)), 7, &[a, b, c, knows(100)]);
        assert_eq!(decided, Some(given(Some(100))), "it votes in no view that it may have voted in");
    }

    /// Setting the clock back by an hour stops neither the questions nor the wait for stragglers.
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
        assert_eq!(asking.leave(at(0) + STRAGGLERS), Some(given(None)));
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
