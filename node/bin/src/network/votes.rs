//! Whether a node may sign: a validator does only where it knows what it has signed before.
//!
//! ```text
//! DIR/chain/voter   the key whose votes are in DIR/chain, and the block that they begin after
//! KEY.unused        the key has signed nothing yet
//! ```
//!
//! A validator with neither has lost its votes, or its directory came from elsewhere: it is silent at first, and
//! follows until it knows a block that it signed nothing after (`almanac_bft::silence`).

use super::keys;
use crate::datadir::{Datadir, write_durably};
use alloy_primitives::B256;
use almanac_bft::{Voice, sync::Floor};
use almanac_primitives::{
    Genesis,
    codec::{DecodeError, Reader, Writer},
};
use anyhow::Context as _;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

/// What a node is in its network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It has no vote.
    Follower,
    /// It has a vote, and does not know what it signed.
    Silent,
    /// It votes, after this block if there is one.
    Voter {
        /// The block.
        after: Option<Box<Floor>>,
    },
}

impl Role {
    /// One word for pages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Follower => "follower",
            Self::Silent => "silent",
            Self::Voter { .. } => "validator",
        }
    }

    /// What it may sign.
    pub(super) fn voice(&self) -> Voice {
        match self {
            Self::Follower | Self::Silent => Voice::None,
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
    // In this order: after a crash in between, the key counts as used, with its votes here.
    begin(datadir, key, None)?;
    remove(&unused)?;
    Ok(Role::Voter { after: None })
}

/// Removes what says that a key was never used, so that a crash cannot bring it back.
fn remove(unused: &Path) -> anyhow::Result<()> {
    if !unused.exists() {
        return Ok(());
    }
    let directory = unused.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    fs::remove_file(unused).and_then(|()| File::open(directory)?.sync_all()).with_context(|| {
        format!("cannot remove {}, which says that the key was never used", unused.display())
    })
}

/// Notes, before the first vote, that a directory has all votes of a key after a block.
pub(super) fn begin(datadir: &Datadir, key: B256, after: Option<Floor>) -> anyhow::Result<()> {
    let chain = datadir.chain();
    fs::create_dir_all(&chain).with_context(|| format!("cannot make {}", chain.display()))?;
    write_durably(&place(datadir), &Votes { key, after }.encode())
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
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
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
}
