//! Conflicting votes: two signatures of one validator that the protocol does not allow together.
//!
//! Anyone who has the genesis can verify them, at any later time.

use crate::{
    block::key_bytes,
    digest::BlockDigest,
    engine,
    validators::{Namespace, ValidatorSet},
    votes::{OwnVote, read_journal},
};
use alloy_primitives::{B256, BlockHash, Bytes};
use commonware_actor::Feedback;
use commonware_codec::{Copying, Decode as _, Encode as _, Error, ReadExt as _};
use commonware_consensus::{
    Reporter, Viewable as _,
    simplex::{
        scheme::ed25519::Scheme,
        types::{
            Activity, Artifact, Attributable as _, Finalization, Finalize, Notarization, Notarize,
            Nullification, Nullify, Vote,
        },
    },
};
use commonware_cryptography::{
    certificate::{Attestation, Verifier as _},
    ed25519::certificate::Certificate,
};
use commonware_parallel::Sequential;
use commonware_storage::Context;
use rand_core::CryptoRng;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::sync::mpsc;

/// Evidence waiting to be verified and stored. Further evidence is dropped: one pair of votes is enough to
/// convict a validator.
const WAITING_MAX: usize = 64;

/// Stores verified evidence.
pub trait EvidenceStore: Send + Sync {
    /// A validator signed two conflicting votes.
    fn conflict(&self, conflict: &Conflict, evidence: &Bytes);
}

/// Two conflicting votes of one validator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The validator's public key.
    pub validator: B256,
    /// The view.
    pub view: u64,
    /// The kind of conflict.
    pub kind: ConflictKind,
}

/// How two votes conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    /// Notarized two blocks.
    Notarize(BlockHash, BlockHash),
    /// Finalized two blocks.
    Finalize(BlockHash, BlockHash),
    /// Finalized a block and nullified its view.
    NullifyFinalize(BlockHash),
}

/// Why evidence is invalid.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// It does not decode as two votes.
    #[error("invalid evidence of {length} bytes: {error}")]
    Malformed {
        /// Number of bytes given.
        length: usize,
        /// What is wrong with them.
        error: Error,
    },
    /// The votes are allowed together.
    #[error("the votes in these {length} bytes do not conflict")]
    NoConflict {
        /// Number of bytes given.
        length: usize,
    },
    /// Not signed by a validator of this genesis, or for another chain.
    #[error("the votes of view {view} are not signed by validator {signer} of this genesis")]
    NotSigned {
        /// The view.
        view: u64,
        /// The validator's index.
        signer: u32,
    },
}

impl Conflict {
    /// Verifies evidence with the validators of a genesis, and nothing else.
    pub fn verify(
        evidence: &[u8],
        validators: &ValidatorSet,
        namespace: &Namespace,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, EvidenceError> {
        let (scheme, length) = (validators.verifier(namespace), evidence.len());
        let config = scheme.certificate_codec_config();
        let activity = Activity::<Scheme, BlockDigest>::decode_cfg(Copying(evidence), &config)
            .map_err(|error| EvidenceError::Malformed { length, error })?;
        let (signer, kind) = describe(&activity).ok_or(EvidenceError::NoConflict { length })?;
        let view = activity.view().get();
        let not_signed = EvidenceError::NotSigned { view, signer };
        let place = usize::try_from(signer).unwrap_or(usize::MAX);
        let Some(key) = validators.keys().get(place) else { return Err(not_signed) };
        if !activity.verify(rng, &scheme, &Sequential) {
            return Err(not_signed);
        }
        Ok(Self { validator: key_bytes(key), view, kind })
    }
}

/// The alleged signer and conflict.
fn describe(activity: &Activity<Scheme, BlockDigest>) -> Option<(u32, ConflictKind)> {
    // The library keeps the two votes private. They are adjacent in the encoding of their pair.
    match activity {
        Activity::ConflictingNotarize(pair) => {
            let mut votes = pair.encode();
            let mut block =
                || Some(Notarize::<Scheme, BlockDigest>::read(&mut votes).ok()?.proposal.payload.into());
            Some((pair.signer().get(), ConflictKind::Notarize(block()?, block()?)))
        }
        Activity::ConflictingFinalize(pair) => {
            let mut votes = pair.encode();
            let mut block =
                || Some(Finalize::<Scheme, BlockDigest>::read(&mut votes).ok()?.proposal.payload.into());
            Some((pair.signer().get(), ConflictKind::Finalize(block()?, block()?)))
        }
        Activity::NullifyFinalize(pair) => {
            let mut votes = pair.encode();
            Nullify::<Scheme>::read(&mut votes).ok()?;
            let finalize = Finalize::<Scheme, BlockDigest>::read(&mut votes).ok()?;
            Some((pair.signer().get(), ConflictKind::NullifyFinalize(finalize.proposal.payload.into())))
        }
        _ => None,
    }
}

/// Listens to consensus: keeps the newest vote of each validator, and passes conflicts on.
#[derive(Clone)]
pub(crate) struct VoteWatch {
    newest: NewestVotes,
    conflicts: mpsc::Sender<Bytes>,
}

/// The newest known vote of each validator, by its index: received directly, or part of a certificate.
#[derive(Clone, Default)]
pub(crate) struct NewestVotes(Arc<Mutex<BTreeMap<usize, Vote<Scheme, BlockDigest>>>>);

impl NewestVotes {
    pub(crate) fn of(&self, validator: usize) -> Option<Vote<Scheme, BlockDigest>> {
        self.lock().get(&validator).cloned()
    }

    fn note(&self, vote: Vote<Scheme, BlockDigest>) {
        let signer = match &vote {
            Vote::Notarize(vote) => vote.signer(),
            Vote::Nullify(vote) => vote.signer(),
            Vote::Finalize(vote) => vote.signer(),
        };
        let mut newest = self.lock();
        let known = newest.entry(usize::from(signer)).or_insert_with(|| vote.clone());
        // Within a view, a vote to notarize precedes the others, whatever the order of arrival.
        if OwnVote::of(&vote) > OwnVote::of(known) {
            *known = vote;
        }
    }

    /// Notes the votes of a certificate, or a single vote.
    fn note_all(&self, artifact: Artifact<Scheme, BlockDigest>) {
        match artifact {
            Artifact::Notarize(vote) => self.note(Vote::Notarize(vote)),
            Artifact::Nullify(vote) => self.note(Vote::Nullify(vote)),
            Artifact::Finalize(vote) => self.note(Vote::Finalize(vote)),
            Artifact::Notarization(Notarization { proposal, certificate }) => {
                for attestation in attestations(certificate) {
                    self.note(Vote::Notarize(Notarize { proposal: proposal.clone(), attestation }));
                }
            }
            Artifact::Nullification(Nullification { round, certificate }) => {
                for attestation in attestations(certificate) {
                    self.note(Vote::Nullify(Nullify { round, attestation }));
                }
            }
            Artifact::Finalization(Finalization { proposal, certificate }) => {
                for attestation in attestations(certificate) {
                    self.note(Vote::Finalize(Finalize { proposal: proposal.clone(), attestation }));
                }
            }
            Artifact::Certification(..) => {}
        }
    }

    /// Loads votes from the files of consensus after a restart. They contain the certificates of unfinished
    /// views, but no votes of others that were never part of one.
    pub(crate) async fn remember(
        &self,
        context: impl Context,
        prefix: &str,
        validators: &ValidatorSet,
        namespace: &Namespace,
    ) {
        let [voted, heard] = [engine::votes_partition(prefix), engine::heard_partition(prefix)];
        for (context, partition) in [(context.child("voted"), voted), (context.child("heard"), heard)] {
            let read = |artifact| self.note_all(artifact);
            if let Err(error) = read_journal(context, partition, validators, namespace, read).await {
                // Only peers miss this. Consensus reads its files again, and stops if it cannot.
                tracing::warn!("cannot read the journal of votes: {error}");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Vote<Scheme, BlockDigest>>> {
        self.0.lock().expect("nothing panics while it holds this")
    }
}

/// The signers of a certificate with their signatures.
fn attestations(certificate: Certificate) -> Vec<Attestation<Scheme>> {
    let Certificate { signers, signatures } = certificate;
    let attestation = |(signer, signature)| Attestation { signer, signature };
    signers.iter().zip(signatures).map(attestation).collect()
}

impl VoteWatch {
    /// Returns a listener, the newest votes that it receives, and the conflicts.
    pub(crate) fn new() -> (Self, NewestVotes, mpsc::Receiver<Bytes>) {
        let (conflicts, receiver) = mpsc::channel(WAITING_MAX);
        let newest = NewestVotes::default();
        (Self { newest: newest.clone(), conflicts }, newest, receiver)
    }
}

impl Reporter for VoteWatch {
    type Activity = Activity<Scheme, BlockDigest>;

    fn report(&mut self, activity: Self::Activity) -> Feedback {
        match activity {
            Activity::Notarize(vote) => self.newest.note_all(Artifact::Notarize(vote)),
            Activity::Nullify(vote) => self.newest.note_all(Artifact::Nullify(vote)),
            Activity::Finalize(vote) => self.newest.note_all(Artifact::Finalize(vote)),
            Activity::Notarization(signed) => self.newest.note_all(Artifact::Notarization(signed)),
            Activity::Nullification(signed) => self.newest.note_all(Artifact::Nullification(signed)),
            Activity::Finalization(signed) => self.newest.note_all(Artifact::Finalization(signed)),
            Activity::ConflictingNotarize(_)
            | Activity::ConflictingFinalize(_)
            | Activity::NullifyFinalize(_) => {
                // Drop it if the queue is full: the waiting evidence is as good.
                let _ = self.conflicts.try_send(activity.encode().into());
            }
            Activity::Certification(_) => {}
        }
        Feedback::Ok
    }
}

/// Verifies and stores conflicts as they arrive. Votes are reported before their signatures are verified.
pub(crate) async fn keep(
    mut conflicts: mpsc::Receiver<Bytes>,
    validators: ValidatorSet,
    namespace: Namespace,
    mut rng: impl CryptoRng,
    store: Arc<dyn EvidenceStore>,
) {
    while let Some(evidence) = conflicts.recv().await {
        match Conflict::verify(&evidence, &validators, &namespace, &mut rng) {
            Ok(conflict) => store.conflict(&conflict, &evidence),
            Err(error) => tracing::debug!("invalid evidence: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        keys::ValidatorKey,
        votes::{VoteKind, journal_config},
    };
    use alloy_primitives::Address;
    use almanac_primitives::{Genesis, genesis::Validator, testing};
    use commonware_consensus::{
        simplex::types::{ConflictingFinalize, ConflictingNotarize, NullifyFinalize, Proposal},
        types::{Epoch, Round, View},
    };
    use commonware_cryptography::certificate::Signers;
    use commonware_runtime::{Runner as _, Supervisor as _, deterministic};
    use commonware_storage::journal::segmented::variable::Journal;
    use commonware_utils::test_rng;

    const HERE: Namespace = Namespace(B256::repeat_byte(0xaa));

    fn key(index: u8) -> ValidatorKey {
        ValidatorKey::from_secret(&B256::repeat_byte(index + 1))
    }

    fn validators() -> ValidatorSet {
        let validator = |index: u8| Validator {
            name: format!("v{index}"),
            public_key: key(index).public(),
            fee_recipient: Address::ZERO,
        };
        ValidatorSet::new(&Genesis { validators: (0..4).map(validator).collect(), ..testing::genesis() })
            .unwrap()
    }

    fn signer(namespace: &Namespace) -> Scheme {
        validators().signer(namespace, key(2).private()).unwrap()
    }

    fn round() -> Round {
        Round::new(Epoch::zero(), View::new(9))
    }

    fn proposal(block: u8) -> Proposal<BlockDigest> {
        Proposal::new(round(), View::new(8), BlockHash::repeat_byte(block).into())
    }

    fn notarize(namespace: &Namespace, block: u8) -> Notarize<Scheme, BlockDigest> {
        Notarize::sign(&signer(namespace), proposal(block)).unwrap()
    }

    fn conflicts(namespace: &Namespace) -> [Activity<Scheme, BlockDigest>; 3] {
        let finalize = |block| Finalize::sign(&signer(namespace), proposal(block)).unwrap();
        let nullify = Nullify::sign::<BlockDigest>(&signer(namespace), round()).unwrap();
        [
            Activity::ConflictingNotarize(ConflictingNotarize::new(
                notarize(namespace, 1),
                notarize(namespace, 2),
            )),
            Activity::ConflictingFinalize(ConflictingFinalize::new(finalize(1), finalize(2))),
            Activity::NullifyFinalize(NullifyFinalize::new(nullify, finalize(1))),
        ]
    }

    fn verify(evidence: &[u8]) -> Result<Conflict, EvidenceError> {
        Conflict::verify(evidence, &validators(), &HERE, &mut test_rng())
    }

    #[test]
    fn two_signed_votes_tell_who_when_and_what() {
        let [one, two] = [1, 2].map(BlockHash::repeat_byte);
        let kinds = [
            ConflictKind::Notarize(one, two),
            ConflictKind::Finalize(one, two),
            ConflictKind::NullifyFinalize(one),
        ];
        for (conflict, kind) in conflicts(&HERE).iter().zip(kinds) {
            let expected = Conflict { validator: key(2).public(), view: 9, kind };
            let evidence = conflict.encode();
            assert_eq!(verify(&evidence).unwrap(), expected);
            assert!(evidence.len() < 1_024, "{} bytes", evidence.len());
        }
    }

    #[test]
    fn what_shows_nothing_is_refused() {
        let elsewhere = Namespace(B256::repeat_byte(0xbb));
        for conflict in conflicts(&elsewhere) {
            let refused = verify(&conflict.encode()).unwrap_err();
            assert!(matches!(refused, EvidenceError::NotSigned { view: 9, .. }), "{refused}");
        }
        let honest = Activity::<Scheme, BlockDigest>::Notarize(notarize(&HERE, 1)).encode();
        assert!(matches!(verify(&honest).unwrap_err(), EvidenceError::NoConflict { .. }));
        for conflict in conflicts(&HERE) {
            let whole = conflict.encode();
            for length in 0..whole.len() {
                assert!(verify(&whole[..length]).is_err(), "{length} bytes");
            }
            let forged = (0..whole.len()).filter(|place| {
                let mut bytes = whole.to_vec();
                bytes[*place] ^= 1;
                verify(&bytes).is_ok()
            });
            assert_eq!(forged.count(), 0, "every byte counts");
        }
    }

    fn certificate(votes: &[Attestation<Scheme>]) -> Certificate {
        let mut votes = votes.to_vec();
        votes.sort_by_key(|vote| vote.signer);
        let signers = votes.iter().map(|vote| vote.signer);
        let signers = Signers::try_from((validators().keys(), signers)).unwrap();
        Certificate { signers, signatures: votes.into_iter().map(|vote| vote.signature).collect() }
    }

    /// Each signature of a certificate is a vote that can be shown to its signer, even if it was never received
    /// directly.
    #[test]
    fn a_certificate_shows_the_votes_of_its_signers() {
        let schemes = [0, 1, 3].map(|index| validators().signer(&HERE, key(index).private()).unwrap());
        let (proposal, round) = (proposal(1), round());
        let notarizes =
            schemes.each_ref().map(|scheme| Notarize::sign(scheme, proposal.clone()).unwrap().attestation);
        let nullifies =
            schemes.each_ref().map(|scheme| Nullify::sign::<BlockDigest>(scheme, round).unwrap().attestation);
        let finalizes =
            schemes.each_ref().map(|scheme| Finalize::sign(scheme, proposal.clone()).unwrap().attestation);
        let check = |signed: Activity<Scheme, BlockDigest>,
                     vote: &dyn Fn(Attestation<Scheme>) -> Vote<Scheme, BlockDigest>,
                     attestations: &[Attestation<Scheme>]| {
            let (mut watch, newest, _conflicts) = VoteWatch::new();
            watch.report(signed);
            for attestation in attestations {
                let kept = newest.of(usize::from(attestation.signer)).expect("a signer's vote is known");
                assert_eq!(kept.encode(), vote(attestation.clone()).encode(), "as it was signed");
            }
            assert_eq!((0..4).filter(|place| newest.of(*place).is_some()).count(), 3, "of nobody else");
        };
        let signed = Notarization { proposal: proposal.clone(), certificate: certificate(&notarizes) };
        let vote = |attestation| Vote::Notarize(Notarize { proposal: proposal.clone(), attestation });
        check(Activity::Notarization(signed), &vote, &notarizes);
        let signed = Nullification { round, certificate: certificate(&nullifies) };
        let vote = |attestation| Vote::Nullify(Nullify { round, attestation });
        check(Activity::Nullification(signed), &vote, &nullifies);
        let signed = Finalization { proposal: proposal.clone(), certificate: certificate(&finalizes) };
        let vote = |attestation| Vote::Finalize(Finalize { proposal: proposal.clone(), attestation });
        check(Activity::Finalization(signed), &vote, &finalizes);
    }

    /// From the files of votes, and from those of a validator that does not vote.
    #[test]
    fn votes_in_certificates_on_disk_are_remembered_after_a_restart() {
        let certificate = certificate(&[notarize(&HERE, 1).attestation]);
        let signed = Artifact::<Scheme, _>::Notarization(Notarization { proposal: proposal(1), certificate });
        for partition in [engine::votes_partition, engine::heard_partition] {
            let signed = signed.clone();
            deterministic::Runner::default().start(|context| async move {
                let config = journal_config(partition("a-"), &validators(), &HERE);
                let journal = Journal::init(context.child("before"), config).await.unwrap();
                let journal = journal.append(9, &signed).await.unwrap().0;
                journal.sync(9).await.unwrap();
                let newest = NewestVotes::default();
                newest.remember(context.child("after"), "a-", &validators(), &HERE).await;
                let kept = newest.of(usize::from(notarize(&HERE, 1).signer())).map(|vote| vote.encode());
                assert_eq!(kept, Some(Vote::Notarize(notarize(&HERE, 1)).encode()));
            });
        }
    }

    #[test]
    fn the_newest_vote_of_each_validator_is_kept() {
        let (mut watch, newest, mut conflicting) = VoteWatch::new();
        watch.report(Activity::Notarize(notarize(&HERE, 1)));
        let signer = usize::from(notarize(&HERE, 1).signer());
        let kept = newest.of(signer).map(|vote| vote.encode());
        assert_eq!(kept, Some(Vote::Notarize(notarize(&HERE, 1)).encode()));
        assert!(newest.of(signer + 1).is_none());
        let finalize = Finalize::sign(&self::signer(&HERE), proposal(1)).unwrap();
        watch.report(Activity::Finalize(finalize));
        watch.report(Activity::Notarize(notarize(&HERE, 1)));
        let kept = newest.of(signer).map(|vote| OwnVote::of(&vote).kind);
        assert_eq!(
            kept,
            Some(VoteKind::Finalize),
            "it was signed after the other, whenever that is heard of"
        );
        for _ in 0..=WAITING_MAX {
            watch.report(conflicts(&HERE)[0].clone());
        }
        let mut waiting = 0;
        while conflicting.try_recv().is_ok() {
            waiting += 1;
        }
        assert_eq!(waiting, WAITING_MAX, "more are dropped");
    }
}
