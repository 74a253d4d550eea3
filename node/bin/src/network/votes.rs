//! Decides whether a node may sign: a validator must know what it has signed before.
//!
//! ```text
//! DIR/chain/voter   the key whose votes are in DIR/chain, and the block that they begin after
//! KEY.views         what the key has signed lately (mark.rs)
//! KEY.unused        the key has never signed
//! ```
//!
//! A validator without the first two has lost its votes, or its directory came from elsewhere: it is silent at first,
//! and follows until it knows a block after which it signed nothing (`almanac_bft::silence`). So it is if they do not
//! agree with each other, or if another validator has a vote that they lack, in a view that is not over. If they
//! only end before the newest final block, it votes after that block (`almanac_bft::standing`).

use super::{
    keys,
    mark::{LEASE, Mark, MarkedVotes, Moment},
};
use crate::{
    datadir::Datadir,
    private_file,
    regular_file::{self, NOTE_BYTES_MAX},
};
use alloy_primitives::B256;
use almanac_bft::{Leave, Namespace, Standing, ValidatorSet, Voice, VotesOnDisk, sync::Floor};
use almanac_primitives::{
    Genesis,
    codec::{DecodeError, Reader, Writer},
};
use anyhow::Context as _;
use commonware_runtime::{Supervisor as _, tokio::Context};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// What a node is in its network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It has no vote.
    Follower,
    /// It has a vote, and does not know what it signed.
    Silent,
    /// It has a vote and its votes, after this block if there is one.
    Voter {
        /// The block.
        after: Option<Box<Floor>>,
    },
}

impl Role {
    /// One word for pages: what it does, as far as that is decided.
    pub(super) fn name(&self, leave: Option<&Leave>) -> &'static str {
        match (self, leave) {
            (Self::Follower, _) => "follower",
            (_, None) => "waiting",
            (_, Some(Leave::Given { .. })) => "validator",
            (_, Some(Leave::Denied { .. })) => "silent",
        }
    }

    /// What it may sign, if nothing speaks against it.
    pub(super) fn voice(&self) -> Voice {
        match self {
            Self::Follower => Voice::None,
            Self::Silent => Voice::Votes { after: None },
            Self::Voter { after } => Voice::Votes { after: after.clone() },
        }
    }
}

/// Finds out what the node with this key is. A key that was never used is used from here on.
pub(super) fn role(datadir: &Datadir, genesis: &Genesis, key: B256, key_file: &Path) -> anyhow::Result<Role> {
    if !genesis.validators.iter().any(|validator| validator.public_key == key) {
        return Ok(Role::Follower);
    }
    let unused = keys::unused(key_file);
    if let Some(votes) = Votes::read(&place(datadir))?.filter(|votes| votes.key == key) {
        // A crash may have left it, and it would be believed when these votes are lost.
        remove(&unused)?;
        return Ok(Role::Voter { after: votes.after.map(Box::new) });
    }
    if !unused.exists() {
        return Ok(Role::Silent);
    }
    // In this order: after a crash in between, the key counts as used, with its votes here. The mark is not believed
    // before the first vote: until then, others are asked.
    Mark::new(key, None).create(&keys::views(key_file))?;
    begin(datadir, key, None)?;
    remove(&unused)?;
    Ok(Role::Voter { after: None })
}

/// The key of a validator, and when it started.
pub(super) struct Signer<'a> {
    pub(super) key: B256,
    pub(super) file: &'a Path,
    pub(super) start: Option<Moment>,
}

/// What a validator knows of its votes, and what keeps those to come.
pub(super) async fn standing(
    context: &Context,
    datadir: &Datadir,
    role: &Role,
    signer: &Signer<'_>,
    validators: &ValidatorSet,
    namespace: &Namespace,
) -> anyhow::Result<(Standing, MarkedVotes)> {
    let views = keys::views(signer.file);
    let mark = Mark::read(&views, signer.key)?;
    let standing = match (role, &mark) {
        (Role::Follower, _) => Standing::Sure,
        (Role::Silent, _) => Standing::Lost,
        (Role::Voter { .. }, None) => {
            tracing::warn!("{} is missing or damaged", views.display());
            Standing::Lost
        }
        (Role::Voter { after }, Some(mark)) => {
            let read = VotesOnDisk::read(context.child("votes"), "", validators, namespace).await;
            let votes = read.with_context(|| {
                let files = datadir.chain().join("consensus-votes");
                format!("cannot read the votes in {}: remove it to be silent first", files.display())
            })?;
            let first = after.as_ref().map_or(0, |floor| floor.header.consensus.view);
            compare(mark, votes.after(first), signer.start.as_ref())
        }
    };
    Ok((standing, MarkedVotes::open(&views, mark, place(datadir))?))
}

/// Compares the mark with the votes on disk.
fn compare(mark: &Mark, votes: VotesOnDisk, start: Option<&Moment>) -> Standing {
    if let Some(missing) = mark.votes().find(|vote| !votes.accounts_for(vote)) {
        tracing::warn!(
            "the votes on disk end at view {} and lack one of view {} ({:?}): they are an older copy, or were truncated",
            votes.newest,
            missing.view,
            missing.kind
        );
        return Standing::Lost;
    }
    let counted = votes.own.iter().filter(|vote| vote.view >= votes.oldest);
    if let Some(newest) = counted.map(|vote| vote.view).max().filter(|view| *view > mark.leased()) {
        let leased = mark.leased();
        tracing::warn!(
            "the file beside the key allows votes up to view {leased}, but there is one of view {newest}"
        );
        return Standing::Lost;
    }
    if mark.is_current(start) {
        return Standing::Sure;
    }
    tracing::info!(
        "the record of votes is older than {LEASE:?}: asking the other validators before this one votes"
    );
    Standing::Ask(votes)
}

/// Removes what says that a key was never used, so that a crash cannot bring it back.
fn remove(unused: &Path) -> anyhow::Result<()> {
    remove_durably(unused).with_context(|| {
        format!("cannot remove {}, which records that the key was never used", unused.display())
    })
}

/// Removes a file, if it is there, so that a crash cannot bring it back.
pub(super) fn remove_durably(path: &Path) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    fs::remove_file(path)?;
    private_file::sync_directory(private_file::parent(path))
}

/// Notes, before the first vote, that a directory has all votes of a key after a block.
pub(super) fn begin(datadir: &Datadir, key: B256, after: Option<Floor>) -> anyhow::Result<()> {
    private_file::create_directories(&datadir.chain())?;
    note(&place(datadir), key, after)
}

/// The same where the directory is there.
pub(super) fn note(place: &Path, key: B256, after: Option<Floor>) -> anyhow::Result<()> {
    private_file::replace(place, &Votes { key, after }.encode())
}

/// The same for a validator that was silent so far: it votes at its next start, which is now.
pub(super) fn begin_again(datadir: &Datadir, key: B256, key_file: &Path, after: Floor) -> anyhow::Result<()> {
    Mark::new(key, Moment::now()).create(&keys::views(key_file))?;
    begin(datadir, key, Some(after))
}

/// The same where an operator decides that the votes which are here are all. Answers with the moment of the decision,
/// which counts as the start: opening a chain may take longer than a mark is believed.
pub(super) fn begin_by_hand(datadir: &Datadir, key: B256, key_file: &Path) -> anyhow::Result<Option<Moment>> {
    let after = Votes::read(&place(datadir))?.filter(|votes| votes.key == key).and_then(|votes| votes.after);
    tracing::warn!(
        "--vote-now: this validator votes at once, although nothing shows what its key has signed"
    );
    let now = Moment::now();
    Mark::by_hand(key, now.clone()).create(&keys::views(key_file))?;
    begin(datadir, key, after)?;
    Ok(now)
}

fn place(datadir: &Datadir) -> PathBuf {
    // Beside the votes themselves: whoever removes those, removes this.
    datadir.chain().join("voter")
}

/// Whose votes a directory has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Votes {
    key: B256,
    after: Option<Floor>,
}

/// The version of the file.
const VERSION: u8 = 1;

impl Votes {
    fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let bytes = regular_file::read(path, NOTE_BYTES_MAX)?;
        Ok(Some(Self::decode(&bytes).with_context(|| format!("{} is damaged", path.display()))?))
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(VERSION, 1_024);
        out.b256(self.key);
        out.bytes(&self.after.as_ref().map(Floor::encode).unwrap_or_default());
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::versioned(bytes, "voter", VERSION)?;
        let key = input.b256("key")?;
        let floor = input.bytes("floor", bytes.len())?;
        input.finish("voter")?;
        let after = if floor.is_empty() { None } else { Some(Floor::decode(&floor)?) };
        Ok(Self { key, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_bft::{OwnVote, VoteBook as _, VoteKind};
    use almanac_primitives::{Header, genesis::Validator, testing};
    use tempfile::TempDir;

    struct Home {
        directory: TempDir,
        datadir: Datadir,
        genesis: Genesis,
        key: B256,
    }

    /// A validator that was never started.
    fn home() -> Home {
        let directory = tempfile::tempdir().unwrap();
        let datadir = Datadir::take(&directory.path().join("data")).unwrap();
        let key = keys::create(&directory.path().join("key")).unwrap().public();
        let validator =
            Validator { name: "v0".to_owned(), public_key: key, fee_recipient: Default::default() };
        let genesis = Genesis { validators: vec![validator], ..testing::genesis() };
        Home { directory, datadir, genesis, key }
    }

    impl Home {
        fn role(&self) -> Role {
            role(&self.datadir, &self.genesis, self.key, &self.directory.path().join("key")).unwrap()
        }

        fn lose(&self) {
            fs::remove_dir_all(self.datadir.chain()).unwrap();
        }
    }

    fn floor(number: u64) -> Floor {
        Floor { header: Header { number, ..Header::default() }, certificate: b"signed".into() }
    }

    #[test]
    fn a_new_key_votes_and_counts_as_used_from_its_first_start_on() {
        let home = home();
        let voter = Role::Voter { after: None };
        assert_eq!(home.role(), voter);
        assert!(!home.directory.path().join("key.unused").exists());
        assert_eq!(home.role(), voter, "its votes are here");
        home.lose();
        assert_eq!(home.role(), Role::Silent);
        assert_eq!(home.role(), Role::Silent, "until it is told otherwise");
        begin(&home.datadir, home.key, Some(floor(7))).unwrap();
        assert_eq!(home.role(), Role::Voter { after: Some(floor(7).into()) });
        home.lose();
        assert_eq!(home.role(), Role::Silent, "lost a second time");
    }

    /// A crash before the note was removed is no reason to believe the note.
    #[test]
    fn votes_that_are_here_count_before_the_note_that_there_are_none() {
        let home = home();
        begin(&home.datadir, home.key, Some(floor(7))).unwrap();
        assert_eq!(home.role(), Role::Voter { after: Some(floor(7).into()) });
        home.lose();
        assert_eq!(home.role(), Role::Silent, "nor later, when the votes are lost");
    }

    #[test]
    fn the_votes_of_another_key_say_nothing() {
        let home = home();
        begin(&home.datadir, B256::repeat_byte(9), None).unwrap();
        fs::remove_file(home.directory.path().join("key.unused")).unwrap();
        assert_eq!(home.role(), Role::Silent);
    }

    #[test]
    fn a_key_that_the_genesis_does_not_name_is_left_as_it_is() {
        let home = Home { genesis: testing::genesis(), ..home() };
        assert_eq!(home.role(), Role::Follower);
        assert!(home.directory.path().join("key.unused").exists());
        assert!(!home.datadir.has_chain());
    }

    #[test]
    fn a_damaged_file_is_an_error_and_no_reason_to_vote() {
        let home = home();
        let whole = Votes { key: home.key, after: Some(floor(7)) }.encode();
        fs::create_dir(home.datadir.chain()).unwrap();
        for length in 0..whole.len() {
            fs::write(place(&home.datadir), &whole[..length]).unwrap();
            let found = role(&home.datadir, &home.genesis, home.key, &home.directory.path().join("key"));
            assert!(found.unwrap_err().to_string().contains("is damaged"), "{length} bytes");
        }
    }

    /// The mark of a validator that has just sent votes in these views.
    fn mark(home: &Home, views: impl IntoIterator<Item = u64>) -> Mark {
        let path = keys::views(&home.directory.path().join("key"));
        let new = Mark::new(home.key, None);
        new.create(&path).unwrap();
        let book = MarkedVotes::open(&path, Some(new), place(&home.datadir)).unwrap();
        for view in views {
            book.sent(OwnVote { view, kind: VoteKind::Notarize }).unwrap();
        }
        Mark::read(&path, home.key).unwrap().unwrap()
    }

    fn on_disk(views: std::ops::RangeInclusive<u64>) -> VotesOnDisk {
        let (oldest, newest) = (*views.start(), *views.end());
        let own = views.map(|view| OwnVote { view, kind: VoteKind::Notarize });
        VotesOnDisk { oldest, newest, own: own.collect() }
    }

    #[test]
    fn votes_that_end_where_the_mark_does_are_believed_for_some_seconds() {
        let home = home();
        let (mark, now) = (mark(&home, 5..=20), Moment::now());
        assert_eq!(compare(&mark, on_disk(1..=20), now.as_ref()), Standing::Sure);
        assert_eq!(
            compare(&mark, on_disk(18..=20), now.as_ref()),
            Standing::Sure,
            "the others are forgotten"
        );
        let old = on_disk(1..=20);
        assert_eq!(compare(&mark, old.clone(), None), Standing::Ask(old), "after a while, others are asked");
    }

    /// A directory from an older copy, a journal that was cut, and one that is gone.
    #[test]
    fn votes_that_lack_what_the_mark_has_are_not_believed() {
        let home = home();
        let (mark, now) = (mark(&home, 5..=20), Moment::now());
        for votes in [on_disk(1..=19), VotesOnDisk::default(), VotesOnDisk { newest: 40, ..on_disk(1..=19) }]
        {
            assert_eq!(compare(&mark, votes, now.as_ref()), Standing::Lost);
        }
        let mut cut = on_disk(1..=20);
        cut.own.remove(&OwnVote { view: 12, kind: VoteKind::Notarize });
        assert_eq!(compare(&mark, cut, now.as_ref()), Standing::Lost, "in the middle as well");
    }

    /// Both sides of the last view that the mark allows: beyond it, the mark is the older copy.
    #[test]
    fn a_mark_that_is_older_than_the_votes_is_not_believed() {
        let home = home();
        let (mark, now) = (mark(&home, [5]), Moment::now());
        let leased = mark.leased();
        let votes = |last: u64| on_disk(5..=last);
        assert_eq!(compare(&mark, votes(leased), now.as_ref()), Standing::Sure);
        assert_eq!(compare(&mark, votes(leased + 1), now.as_ref()), Standing::Lost);
        let after = votes(leased + 1).after(leased + 1);
        assert_eq!(
            compare(&mark, after, now.as_ref()),
            Standing::Sure,
            "those before a silence do not count"
        );
    }

    #[test]
    fn a_validator_that_was_silent_is_believed_at_its_next_start() {
        let home = home();
        let key_file = home.directory.path().join("key");
        home.role();
        begin_again(&home.datadir, home.key, &key_file, floor(7)).unwrap();
        let mark = Mark::read(&keys::views(&key_file), home.key).unwrap().unwrap();
        let seen = on_disk(1..=30).after(30);
        assert_eq!(compare(&mark, seen, Moment::now().as_ref()), Standing::Sure);
        assert_eq!(home.role(), Role::Voter { after: Some(floor(7).into()) });
    }

    /// Where the others show a later block, that is on disk before the first vote, and counts at the next start.
    #[test]
    fn votes_begin_after_a_block_from_the_moment_in_which_it_is_noted() {
        let home = home();
        home.role();
        let views = keys::views(&home.directory.path().join("key"));
        let mark = Mark::read(&views, home.key).unwrap();
        let book = MarkedVotes::open(&views, mark, place(&home.datadir)).unwrap();
        book.begin_after(&floor(7)).unwrap();
        assert_eq!(home.role(), Role::Voter { after: Some(floor(7).into()) });
        book.begin_after(&floor(9)).unwrap();
        assert_eq!(home.role(), Role::Voter { after: Some(floor(9).into()) });
        let unmarked = MarkedVotes::open(&views, None, place(&home.datadir)).unwrap();
        assert!(unmarked.begin_after(&floor(11)).is_err(), "one without a mark does not vote");
    }

    #[test]
    fn an_operator_may_decide_that_nothing_is_lost() {
        let home = home();
        home.role();
        home.lose();
        assert_eq!(home.role(), Role::Silent);
        let key_file = home.directory.path().join("key");
        let decided = begin_by_hand(&home.datadir, home.key, &key_file).unwrap();
        assert_eq!(home.role(), Role::Voter { after: None });
        let mark = Mark::read(&keys::views(&key_file), home.key).unwrap().unwrap();
        // However long it takes from here until the chain is open.
        for votes in [VotesOnDisk::default(), on_disk(1..=5_000)] {
            assert_eq!(compare(&mark, votes, decided.as_ref()), Standing::Sure);
        }
    }
}
