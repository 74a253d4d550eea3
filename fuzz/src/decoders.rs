//! What decodes is encoded as it was, and what does not is an error.

use crate::backup::{Backup, BackupWriter};
use alloy_primitives::{B256, U256, keccak256};
use almanac_bft::{
    Conflict, ConsensusBlock, Namespace, ValidatorSet, certificate as finality_certificate,
    standing::decodes_to_itself,
    sync::{
        Floor,
        message::{Answer, Question},
    },
};
use almanac_primitives::{
    Account, Block, Genesis, Header, PrologueTransaction, Receipt, ReceiptProof, RunTransaction,
    UserTransaction, params::TRANSACTION_BYTES_MAX,
};
use almanac_proof::ProofJson;
use almanac_schedule::record::{Body, Head};
use almanac_state::StateProof;
use commonware_codec::{Copying, Decode as _, Encode as _, RangeCfg};
use commonware_utils::test_rng;
use std::{io::Cursor, path::Path, sync::LazyLock};

/// A user's transaction, and who signed it.
pub fn transaction(input: &[u8]) {
    if let Ok(found) = UserTransaction::decode(input) {
        assert_eq!(found.encoded()[..], *input);
    }
}

/// A header.
pub fn header(input: &[u8]) {
    if let Ok(found) = Header::decode(input) {
        assert_eq!(found.encode()[..], *input);
    }
}

/// A block.
pub fn block(input: &[u8]) {
    if let Ok(found) = Block::decode(input) {
        assert_eq!(found.encode()[..], *input);
    }
}

/// A receipt.
pub fn receipt(input: &[u8]) {
    if let Ok(found) = Receipt::decode(input) {
        assert_eq!(found.encode()[..], *input);
    }
}

/// A run of a schedule.
pub fn run(input: &[u8]) {
    if let Ok(found) = RunTransaction::decode(input) {
        assert_eq!(found.encode()[..], *input);
    }
}

/// The transaction that every block begins with.
pub fn prologue(input: &[u8]) {
    if let Ok(found) = PrologueTransaction::decode(input) {
        assert_eq!(found.encode()[..], *input);
    }
}

/// An account in the state.
pub fn account(input: &[u8]) {
    if let Ok(found) = Account::decode(input) {
        assert_eq!(found.encode()[..], *input);
    }
}

/// The fixed part of a schedule.
pub fn schedule_body(input: &[u8]) {
    if let Ok(found) = Body::decode(input) {
        assert_eq!(found.encode()[..], *input);
    }
}

/// The part of a schedule that changes.
pub fn schedule_head(input: &[u8]) {
    let Some(word) = U256::try_from_be_slice(input) else { return };
    if let Ok(found) = Head::from_word(word) {
        assert_eq!(found.to_word(), word);
    }
}

/// What the calendar stores: entries, leaves, branches and its head.
pub fn calendar(input: &[u8]) {
    almanac_schedule::calendar::fuzzing::decodes_to_itself(input);
}

/// The proof of a value.
pub fn state_proof(input: &[u8]) {
    if let Ok(found) = StateProof::decode(input) {
        assert_eq!(found.encode()[..], *input);
        assert!(almanac_state::verify(&Header::default(), &found).is_err(), "nobody finds a preimage");
    }
}

/// The proof that something ran: a header, and nodes that end with it.
pub fn receipt_proof(input: &[u8]) {
    let mut parts = input.split(|byte| *byte == 0xfe).map(|part| part.to_vec().into());
    let Some(receipt) = parts.next() else { return };
    let Some(transaction) = parts.next() else { return };
    let proof = ReceiptProof { index: input.len() as u32, receipt, transaction, nodes: parts.collect() };
    assert!(proof.verify(&Header::default()).is_err(), "nobody finds a preimage");
}

/// A file that `almanac proof verify` reads.
pub fn proof_file(input: &[u8]) {
    let Ok(found) = serde_json::from_slice::<ProofJson>(input) else { return };
    let _ = found.decode_finality();
    if let Ok(header) = found.decode_header() {
        let _ = found.check(&header);
    }
    let again = serde_json::to_vec(&found).expect("it was JSON before");
    serde_json::from_slice::<ProofJson>(&again).expect("what is written is read");
}

/// A genesis file.
pub fn genesis(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(found) = Genesis::from_json(text) {
        assert_eq!(Genesis::from_json(&found.to_json()).expect("what is written is read"), found);
        let _ = found.state();
        let _ = ValidatorSet::new(&found);
    }
}

/// A record of the archive of blocks.
pub fn archive(input: &[u8]) {
    almanac_state::archive::fuzzing::decodes_to_itself(input);
}

/// A backup, whose checksum is made right: a forger does the same.
pub fn backup(input: &[u8]) {
    let summed = [input, keccak256(input).as_slice()].concat();
    let Ok(mut found) = Backup::read(Cursor::new(&summed), Path::new("backup")) else { return };
    let mut blocks = Vec::new();
    loop {
        match found.next_block() {
            Ok(Some(block)) => blocks.push(block),
            Ok(None) => break,
            Err(_) => return,
        }
    }
    let mut again = Vec::new();
    let mut out =
        BackupWriter::begin(&mut again, &found.genesis, found.count).expect("it was written before");
    for block in &blocks {
        out.block(block).expect("it was written before");
    }
    out.finish().expect("it was written before");
    // The text of the genesis may be another, the blocks are not.
    let mut read = Backup::read(Cursor::new(&again), Path::new("again")).expect("what is written is read");
    for block in blocks {
        assert_eq!(read.next_block().expect("what is written is read"), Some(block));
    }
}

/// The block whose state is copied.
pub fn floor(input: &[u8]) {
    if let Ok(found) = Floor::decode(input) {
        assert_eq!(found.encode()[..], *input);
    }
}

/// What a peer asks about the state.
pub fn sync_question(input: &[u8]) {
    if let Ok((number, found)) = Question::decode(input) {
        assert_eq!(found.encode(number)[..], *input);
    }
}

/// What a peer answers about the state.
pub fn sync_answer(input: &[u8]) {
    if let Ok((number, found)) = Answer::decode(input) {
        assert_eq!(found.encode(number)[..], *input);
    }
}

/// What validators tell each other at a start.
pub fn standing(input: &[u8]) {
    decodes_to_itself(input);
}

/// Transactions that a peer passes on.
pub fn gossip(input: &[u8]) {
    let list = (RangeCfg::new(0..=1_024), (RangeCfg::new(0..=TRANSACTION_BYTES_MAX), ()));
    if let Ok(found) = Vec::<Vec<u8>>::decode_cfg(Copying(input), &list) {
        found.iter().for_each(|encoded| transaction(encoded));
        assert_eq!(found.encode()[..], *input);
    }
}

/// A block that a peer proposes.
pub fn consensus_block(input: &[u8]) {
    if let Ok(found) = ConsensusBlock::decode_cfg(Copying(input), &()) {
        assert_eq!(found.encode()[..], *input);
    }
}

/// Four validators, and what keeps their signatures apart.
static NETWORK: LazyLock<(ValidatorSet, Namespace)> = LazyLock::new(|| {
    let set = ValidatorSet::new(&crate::seeds::genesis()).expect("a set");
    (set, Namespace(B256::repeat_byte(7)))
});

/// What a quorum signed.
pub fn certificate(input: &[u8]) {
    let (validators, namespace) = &*NETWORK;
    let refused = finality_certificate::verify(input, validators, namespace, &mut test_rng());
    assert!(refused.is_err(), "nobody forges signatures");
}

/// Two votes that conflict.
pub fn evidence(input: &[u8]) {
    let (validators, namespace) = &*NETWORK;
    let refused = Conflict::verify(input, validators, namespace, &mut test_rng());
    assert!(refused.is_err(), "nobody forges signatures");
}
