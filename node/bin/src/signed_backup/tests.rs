use super::*;
use crate::backup::BackupWriter;
use alloy_primitives::{Address, B256, Bytes};
use almanac_bft::{BlockDigest, ValidatorKey};
use almanac_primitives::{Block, Genesis, Header, TimestampMs, genesis::Validator, testing};
use almanac_state::SignedBlock;
use commonware_codec::{Copying, DecodeExt as _, Encode as _};
use commonware_consensus::{
    simplex::{
        scheme::ed25519::Scheme,
        types::{Finalization, Finalize, Proposal},
    },
    types::{Epoch, Round, View},
};
use commonware_cryptography::{
    certificate::Signers,
    ed25519::{PrivateKey, certificate::Certificate},
};
use std::{io::Cursor, path::Path};

const VALIDATORS: u8 = 4;

fn key(number: u8) -> ValidatorKey {
    ValidatorKey::from_secret(&B256::repeat_byte(number))
}

/// A chain whose validators have the keys `first` and those after it.
fn genesis(first: u8) -> Genesis {
    let validator = |number: u8| Validator {
        name: format!("v{number}"),
        public_key: key(number).public(),
        fee_recipient: Address::ZERO,
    };
    Genesis { validators: (first..first + VALIDATORS).map(validator).collect(), ..testing::genesis() }
}

/// What so many validators sign about a block.
fn certificate(genesis: &Genesis, first: u8, signers: u8, hash: BlockHash) -> Bytes {
    let set = ValidatorSet::new(genesis).unwrap();
    let namespace = Namespace(chain::origin_of(genesis).unwrap().hash());
    let round = Round::new(Epoch::new(0), View::new(9));
    let proposal = Proposal::new(round, View::new(8), BlockDigest::from(hash));
    let sign = |number| {
        let private = PrivateKey::decode(Copying(&[number; 32][..])).unwrap();
        let scheme = set.signer(&namespace, &private).unwrap();
        Finalize::sign(&scheme, proposal.clone()).unwrap().attestation
    };
    let mut votes: Vec<_> = (first..first + signers).map(sign).collect();
    votes.sort_by_key(|vote| vote.signer);
    let signers = Signers::try_from((set.keys(), votes.iter().map(|vote| vote.signer))).unwrap();
    let signatures = votes.into_iter().map(|vote| vote.signature).collect();
    let signed =
        Finalization::<Scheme, BlockDigest> { proposal, certificate: Certificate { signers, signatures } };
    signed.encode().to_vec().into()
}

/// Three blocks of which the second and the third are signed.
fn blocks(genesis: &Genesis) -> Vec<SignedBlock> {
    let mut parent = chain::origin_of(genesis).unwrap().hash();
    let mut block = |number: u64| {
        let header =
            Header { number, parent_hash: parent, timestamp: TimestampMs(number), ..Header::default() };
        parent = header.hash();
        let certificate = (number > 1).then(|| certificate(genesis, 1, 3, parent));
        SignedBlock { block: Block { header, transactions: Vec::new() }, certificate }
    };
    (1..=3).map(&mut block).collect()
}

fn check_file(genesis: &Genesis, blocks: &[SignedBlock]) -> Result<Checked, SignedBackupError> {
    let mut bytes = Vec::new();
    let mut out = BackupWriter::begin(&mut bytes, genesis, blocks.len() as u64).unwrap();
    blocks.iter().for_each(|block| out.block(block).unwrap());
    out.finish().unwrap();
    check(&mut Backup::read(Cursor::new(bytes), Path::new("backup")).unwrap())
}

#[track_caller]
fn refused(genesis: &Genesis, blocks: &[SignedBlock], reason: &str) {
    let error = anyhow::Error::new(check_file(genesis, blocks).unwrap_err());
    assert!(format!("{error:#}").contains(reason), "{reason:?} is not in: {error:#}");
}

#[test]
fn a_chain_that_its_validators_signed_is_accepted() {
    let genesis = genesis(1);
    let blocks = blocks(&genesis);
    let checked = check_file(&genesis, &blocks).unwrap();
    assert_eq!((checked.last, checked.signers), (blocks[2].block.hash(), Some((3, 4))));
    assert_eq!(check_file(&genesis, &[]).unwrap().last, checked.origin, "nothing but the genesis");
}

/// Whoever changes a block can make the links and the checksum right, and not the signatures.
#[test]
fn a_changed_or_added_block_is_refused() {
    let genesis = genesis(1);
    let good = blocks(&genesis);
    let changed = |index: usize| {
        let mut blocks = good.clone();
        blocks[index].block.header.gas_used.0 ^= 1;
        blocks
    };
    refused(&genesis, &changed(0), "block 2");
    refused(&genesis, &changed(1), "carries the certificate of another block");
    refused(&genesis, &changed(2), "carries the certificate of another block");
    let mut unsigned = changed(2);
    unsigned[2].certificate = None;
    refused(&genesis, &unsigned, "the last block 3");
    refused(&genesis, &good[..1], "carries no certificate of the 4 validators");
    refused(&genesis, &good[1..], "does not follow block 0");
    let twice = [&good[..], &good[2..]].concat();
    refused(&genesis, &twice, "does not follow block 3");
}

#[test]
fn signatures_of_too_few_or_of_others_are_refused() {
    let here = genesis(1);
    let mut blocks = blocks(&here);
    let hash = blocks[2].block.hash();
    for signers in [3, 4] {
        blocks[2].certificate = Some(certificate(&here, 1, signers, hash));
        assert_eq!(check_file(&here, &blocks).unwrap().signers, Some((signers.into(), 4)));
    }
    blocks[2].certificate = Some(certificate(&here, 1, 2, hash));
    refused(&here, &blocks, "3 of the 4 validators are a quorum");
    blocks[2].certificate = Some(certificate(&genesis(11), 11, 4, hash));
    refused(&here, &blocks, "not by the 4 validators of this genesis");
    blocks[2].certificate = Some(Bytes::from_static(b"signed"));
    refused(&here, &blocks, "invalid certificate of 6 bytes");
    // One in the middle would get into the archive, and from there to peers.
    let mut middle = self::blocks(&here);
    middle[1].certificate = Some(certificate(&here, 1, 2, middle[1].block.hash()));
    refused(&here, &middle, "certificate of block 2");
}

#[test]
fn where_nobody_signs_links_are_checked_and_signatures_refused() {
    let genesis = testing::genesis();
    assert!(genesis.validators.is_empty());
    let mut parent = chain::origin_of(&genesis).unwrap().hash();
    let mut block = |number: u64| {
        let header = Header { number, parent_hash: parent, ..Header::default() };
        parent = header.hash();
        SignedBlock { block: Block { header, transactions: Vec::new() }, certificate: None }
    };
    let mut blocks: Vec<_> = (1..=2).map(&mut block).collect();
    assert_eq!(check_file(&genesis, &blocks).unwrap().signers, None);
    blocks[1].certificate = Some(Bytes::from_static(b"signed"));
    refused(&genesis, &blocks, "the genesis has no validators");
    blocks.remove(0);
    refused(&genesis, &blocks, "does not follow block 0");
}
