//! A validator's own votes: those in the files of consensus, and a record of each that is written before it is
//! sent.

use crate::{
    digest::BlockDigest,
    engine,
    sync::Floor,
    validators::{Namespace, ValidatorSet},
};
use commonware_actor::{Feedback, Unreliable};
use commonware_codec::DecodeExt as _;
use commonware_consensus::{
    Viewable as _,
    simplex::{
        scheme::ed25519::Scheme,
        types::{Artifact, Vote},
    },
};
use commonware_cryptography::certificate::Verifier as _;
use commonware_p2p::{CheckedSender, LimitedSender, Recipients};
use commonware_runtime::{IoBufs, ReadOptions};
use commonware_storage::{
    Context,
    journal::{
        Error as JournalError,
        segmented::variable::{Config, Journal},
    },
};
use std::{collections::BTreeSet, io, sync::Arc, time::SystemTime};

/// The kind of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VoteKind {
    /// This block may come next.
    Notarize,
    /// The view has failed.
    Nullify,
    /// This block is final.
    Finalize,
}

/// A vote of this validator, without its block: there is at most one of each kind per view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnVote {
    /// The view.
    pub view: u64,
    /// Its kind.
    pub kind: VoteKind,
}

impl OwnVote {
    pub(crate) fn of(vote: &Vote<Scheme, BlockDigest>) -> Self {
        let kind = match vote {
            Vote::Notarize(_) => VoteKind::Notarize,
            Vote::Nullify(_) => VoteKind::Nullify,
            Vote::Finalize(_) => VoteKind::Finalize,
        };
        Self { view: vote.view().get(), kind }
    }
}

/// Records what a validator has signed, separately from the files of consensus.
pub trait VoteBook: Send + Sync {
    /// Called before a vote is sent. The files of consensus contain it already.
    fn sent(&self, vote: OwnVote) -> io::Result<()>;

    /// From now on the validator votes only after the view of this block, and its files contain all votes from
    /// there on.
    fn begin_after(&self, floor: &Floor) -> io::Result<()>;

    /// The validator continues without voting: from now on, its files do not show what it has signed.
    fn distrust(&self) -> io::Result<()>;
}

/// The votes of a validator that are on its disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VotesOnDisk {
    /// The first view that is not pruned.
    pub oldest: u64,
    /// The last view in the files.
    pub newest: u64,
    /// Votes in those views.
    pub own: BTreeSet<OwnVote>,
}

impl VotesOnDisk {
    /// Reads the files of consensus. Truncates torn writes at their ends, as consensus itself does.
    pub async fn read(
        context: impl Context,
        partition: &str,
        validators: &ValidatorSet,
        namespace: &Namespace,
    ) -> Result<Self, JournalError> {
        let mut votes = Self { oldest: u64::MAX, ..Self::default() };
        let read = |artifact: Artifact<Scheme, BlockDigest>| {
            let view = artifact.view().get();
            (votes.oldest, votes.newest) = (votes.oldest.min(view), votes.newest.max(view));
            let vote = match artifact {
                Artifact::Notarize(vote) => Vote::Notarize(vote),
                Artifact::Nullify(vote) => Vote::Nullify(vote),
                Artifact::Finalize(vote) => Vote::Finalize(vote),
                Artifact::Notarization(_)
                | Artifact::Certification(..)
                | Artifact::Nullification(_)
                | Artifact::Finalization(_) => return,
            };
            votes.own.insert(OwnVote::of(&vote));
        };
        read_journal(context, engine::votes_partition(partition), validators, namespace, read).await?;
        if votes.newest == 0 {
            votes.oldest = 0;
        }
        Ok(votes)
    }

    /// The same for a validator that never votes up to a view, whatever it did there.
    #[must_use]
    pub fn after(mut self, view: u64) -> Self {
        self.oldest = self.oldest.max(view.saturating_add(1));
        self.newest = self.newest.max(view);
        self
    }

    /// Whether a sent vote is in the files, or in a view that is over.
    pub fn accounts_for(&self, vote: &OwnVote) -> bool {
        vote.view < self.oldest || self.own.contains(vote)
    }
}

/// Reads files of consensus from beginning to end.
pub(crate) async fn read_journal(
    context: impl Context,
    partition: String,
    validators: &ValidatorSet,
    namespace: &Namespace,
    mut read: impl FnMut(Artifact<Scheme, BlockDigest>),
) -> Result<(), JournalError> {
    let config = journal_config(partition, validators, namespace);
    let journal = Journal::<_, Artifact<Scheme, BlockDigest>>::init(context, config).await?;
    let mut replay = journal.replay(0, 0, engine::BUFFER_BYTES, ReadOptions::DONT_CACHE).await?;
    while let Some(found) = replay.next().await {
        let (_, _, _, artifact) = found?;
        read(artifact);
    }
    replay.finish()?;
    Ok(())
}

/// The configuration of consensus's journal.
pub(crate) fn journal_config(
    partition: String,
    validators: &ValidatorSet,
    namespace: &Namespace,
) -> Config<usize> {
    Config {
        partition,
        compression: None,
        codec_config: validators.verifier(namespace).certificate_codec_config(),
        page_cache: engine::page_cache(),
        write_buffer: engine::BUFFER_BYTES,
    }
}

/// A sender that records votes before it sends them.
#[derive(Clone)]
pub(crate) struct NotingSender<S> {
    pub(crate) sender: S,
    /// The record; `None` on channels other than votes.
    pub(crate) book: Option<Arc<dyn VoteBook>>,
}

impl<S: std::fmt::Debug> std::fmt::Debug for NotingSender<S> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("NotingSender").field(&self.sender).finish()
    }
}

impl<S: LimitedSender> LimitedSender for NotingSender<S> {
    type PublicKey = S::PublicKey;
    type Checked<'a> = Noting<'a, S>;

    fn check(&mut self, recipients: Recipients<S::PublicKey>) -> Result<Noting<'_, S>, SystemTime> {
        Ok(Noting { checked: self.sender.check(recipients)?, book: self.book.as_deref() })
    }
}

/// A message to be sent.
pub(crate) struct Noting<'a, S: LimitedSender + 'a> {
    checked: S::Checked<'a>,
    book: Option<&'a dyn VoteBook>,
}

impl<S: LimitedSender> CheckedSender for Noting<'_, S> {
    type PublicKey = S::PublicKey;

    fn recipients(&self) -> Vec<S::PublicKey> {
        self.checked.recipients()
    }

    fn send(self, message: impl Into<IoBufs> + Send, priority: bool) -> Unreliable<Feedback> {
        let mut message = message.into();
        if let Some(book) = self.book {
            let bytes = message.coalesce();
            let vote = Vote::<Scheme, BlockDigest>::decode(bytes.clone()).expect("consensus sends votes");
            // Panic as consensus does on a failed write: a vote that is not recorded must not be sent.
            book.sent(OwnVote::of(&vote)).unwrap_or_else(|error| panic!("io error: {error}"));
            message = bytes.into();
        }
        self.checked.send(message, priority)
    }
}
