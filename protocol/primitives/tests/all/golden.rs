//! The encodings as they are for good: a change to any of them forks the chain and must be meant.
//!
//! `specs/vectors/encodings.json` holds the encoding of named values (or its keccak-256 where that is long),
//! and per type one hash over thousands of generated values, so that no change of format can go unseen. To
//! change a format on purpose, run `UPDATE_VECTORS=1 cargo test -p almanac-primitives golden` and review the
//! difference like code.

use crate::samples::{Draw, Kind};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, b256, hex, keccak256};
use alloy_rlp::{Encodable, Header as RlpHeader};
use almanac_primitives::{
    Account, Block, Genesis, Header, Lane, Outcome, PrologueTransaction, Receipt, RunTransaction, ScheduleId,
    StateCommitment, StateKey, UserTransaction,
    block::{prev_randao, receipts_root, transactions_root},
    state::{Meta, decode_slot, encode_slot},
};
use std::{collections::BTreeMap, fmt::Write, fs, path::PathBuf};

/// Longer encodings are recorded by their hash.
const VECTOR_BYTES_MAX: usize = 1_024;
const GENERATED_VALUES: usize = 4_096;
const GENERATED_BLOCKS: usize = 1_024;
const GENERATED_GENESES: usize = 256;

#[test]
fn golden_encodings() {
    let vectors = Vectors::collect().0;
    if is_update() {
        fs::create_dir_all(path().parent().unwrap()).unwrap();
        fs::write(path(), serde_json::to_string_pretty(&vectors).unwrap() + "\n").unwrap();
        return;
    }
    let recorded =
        fs::read_to_string(path()).expect("specs/vectors/encodings.json is part of the repository");
    let recorded: BTreeMap<String, String> = serde_json::from_str(&recorded).unwrap();
    let differences = differences(&recorded, &vectors);
    assert!(
        differences.is_empty(),
        "these encodings are not what the chain was built on:\n{differences}\
         A change of format forks the chain. If it is meant, run\n\
         UPDATE_VECTORS=1 cargo test -p almanac-primitives golden\n\
         and review the difference of specs/vectors/encodings.json."
    );
}

fn path() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/vectors/encodings.json").into()
}

#[allow(clippy::disallowed_methods, reason = "decides whether a file is rewritten, never what it says")]
fn is_update() -> bool {
    std::env::var("UPDATE_VECTORS").is_ok_and(|value| value == "1")
}

fn differences(recorded: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    let names: std::collections::BTreeSet<_> = recorded.keys().chain(now.keys()).collect();
    for name in names {
        let of = |vectors: &BTreeMap<String, String>| vectors.get(name).cloned().unwrap_or("nothing".into());
        if recorded.get(name) != now.get(name) {
            writeln!(text, "  {name}\n    recorded {}\n    now      {}", of(recorded), of(now)).unwrap();
        }
    }
    text
}

/// Named encodings. Whatever goes in has been read back first.
#[derive(Default)]
struct Vectors(BTreeMap<String, String>);

impl Vectors {
    fn collect() -> Self {
        let mut vectors = Self::default();
        vectors.add_blocks();
        vectors.add_receipts();
        vectors.add_system_transactions();
        vectors.add_native();
        vectors.add_state();
        vectors.add_genesis();
        vectors.add_roots();
        vectors.add_generated();
        vectors
    }

    fn text(&mut self, name: &str, value: &str) {
        assert_eq!(self.0.insert(name.into(), value.into()), None, "{name} is recorded twice");
    }

    fn hash(&mut self, name: &str, hash: B256) {
        self.text(name, &hash.to_string());
    }

    fn bytes(&mut self, name: &str, encoding: &[u8]) {
        match encoding.len() {
            0..=VECTOR_BYTES_MAX => self.text(name, &hex::encode_prefixed(encoding)),
            length => self.text(name, &format!("keccak256 of {length} bytes: {}", keccak256(encoding))),
        }
    }

    fn add_blocks(&mut self) {
        let (header, block) = (crate::samples::header(), crate::samples::block());
        assert_eq!(Header::decode(&header.encode()), Ok(header.clone()));
        assert_eq!(Block::decode(&block.encode()), Ok(block.clone()));
        self.bytes("header", &header.encode());
        self.hash("header.hash", header.hash());
        self.hash("header.prev_randao", header.prev_randao());
        self.bytes("header.default", &Header::default().encode());
        self.bytes("block", &block.encode());
        self.bytes("block.without_transactions", &Block { transactions: vec![], ..block }.encode());
        for kind in Kind::ALL {
            let (name, transaction) =
                (format!("transaction.{kind:?}").to_lowercase(), crate::samples::signed(kind));
            self.bytes(&name, transaction.encoded());
            self.hash(&format!("{name}.hash"), transaction.hash());
            let impersonated = crate::samples::impersonated(kind);
            self.bytes(&format!("{name}.impersonated"), impersonated.encoded());
            self.hash(&format!("{name}.impersonated.hash"), impersonated.hash());
        }
    }

    fn add_receipts(&mut self) {
        let full = crate::samples::receipt_full();
        let plain = crate::samples::receipt(Outcome::Success);
        self.receipt("success", &plain);
        self.receipt("reverted", &crate::samples::receipt(Outcome::Reverted(Bytes::from_static(b"no"))));
        self.receipt("reverted_in_silence", &crate::samples::receipt(Outcome::Reverted(Bytes::new())));
        for halt in crate::samples::HALTS {
            let name = format!("halted_{halt:?}").to_lowercase();
            self.receipt(&name, &crate::samples::receipt(Outcome::Halted(halt)));
        }
        self.receipt("with_logs", &Receipt { logs: full.logs.clone(), ..plain.clone() });
        let contract_address = full.contract_address;
        self.receipt("with_contract_address", &Receipt { contract_address, ..plain.clone() });
        self.receipt("with_schedule_ref", &Receipt { schedule_ref: full.schedule_ref, ..plain });
        self.receipt("with_everything", &full);
        self.hash("receipt.with_everything.bloom", keccak256(full.bloom()));
    }

    fn receipt(&mut self, name: &str, receipt: &Receipt) {
        assert_eq!(Receipt::decode(&receipt.encode()).as_ref(), Ok(receipt));
        self.bytes(&format!("receipt.{name}"), &receipt.encode());
    }

    fn add_system_transactions(&mut self) {
        for lane in Lane::ALL {
            let (name, run) = (format!("run.{lane:?}").to_lowercase(), crate::samples::run(lane));
            assert_eq!(RunTransaction::decode(&run.encode()).as_ref(), Ok(&run));
            self.bytes(&name, &run.encode());
            self.hash(&format!("{name}.hash"), run.hash());
        }
        let prologue = crate::samples::prologue();
        assert_eq!(PrologueTransaction::decode(&prologue.encode()), Ok(prologue));
        self.bytes("prologue", &prologue.encode());
        self.hash("prologue.hash", prologue.hash());
        for id in [ScheduleId(0), crate::samples::schedule_ref().schedule, ScheduleId(u64::MAX)] {
            assert_eq!(id.to_string().parse(), Ok(id));
            self.text(&format!("schedule_id.{id}"), &id.0.to_string());
        }
    }

    /// `specs/native-transaction.md` explains these byte by byte.
    fn add_native(&mut self) {
        use crate::native::{CHAIN, creation, paid, signed, unsigned};
        use almanac_primitives::native::Kind;
        let kinds = [
            ("sequence", signed(unsigned(Kind::Sequence))),
            ("orderless", signed(unsigned(Kind::Orderless))),
            ("paid", paid()),
            ("creation", creation()),
        ];
        for (name, native) in kinds {
            self.hash(&format!("native.{name}.signing_hash"), native.signing_hash(&CHAIN));
            self.hash(
                &format!("native.{name}.fee_payer_signing_hash"),
                native.fee_payer_signing_hash(&CHAIN),
            );
            let transaction = UserTransaction::native_signed(native).unwrap();
            self.bytes(&format!("native.{name}"), transaction.encoded());
            self.hash(&format!("native.{name}.hash"), transaction.hash());
        }
        let key =
            almanac_primitives::keys::rotation_digest(&CHAIN, unsigned(Kind::Sequence).sender, &[1, 2], 3);
        self.hash("native.rotation_digest", key);
    }

    fn add_state(&mut self) {
        let contract = crate::samples::account();
        let person = Account { code_hash: KECCAK256_EMPTY, ..contract };
        for (name, account) in [("contract", contract), ("person", person), ("empty", Account::default())] {
            assert_eq!(Account::decode(&account.encode()), Ok(account));
            self.bytes(&format!("account.{name}"), &account.encode());
        }
        for slot in [U256::from(1), U256::from(0x100), U256::MAX] {
            let stored = encode_slot(slot).unwrap();
            assert_eq!(decode_slot(&stored), Ok(slot));
            self.bytes(&format!("slot.{slot:#x}"), &stored);
        }
        for (name, key, _) in state_keys() {
            self.hash(&format!("state_key.{name}"), key.hashed());
        }
    }

    fn add_genesis(&mut self) {
        let genesis = crate::samples::genesis();
        let state = genesis.state().unwrap();
        self.bytes("genesis.meta", &state[&StateKey::Meta(Meta::Genesis)]);
        self.hash("genesis.state", state_hash(&genesis));
        let commitment = StateCommitment { state_root: state_hash(&genesis), ..Default::default() };
        self.hash("genesis.block_hash", genesis.header(commitment).unwrap().hash());
        let developer = Genesis { developer: true, validators: vec![], ..genesis };
        self.bytes("genesis.developer.meta", &developer.state().unwrap()[&StateKey::Meta(Meta::Genesis)]);
        self.hash("genesis.developer.state", state_hash(&developer));
    }

    fn add_roots(&mut self) {
        self.hash("transactions_root", transactions_root(&crate::samples::block().transactions));
        self.hash("transactions_root.empty", transactions_root([]));
        let receipts = [crate::samples::receipt_full(), crate::samples::receipt(Outcome::Success)];
        self.hash("receipts_root", receipts_root(&receipts));
        self.hash("receipts_root.empty", receipts_root(&[]));
    }

    fn add_generated(&mut self) {
        self.generated("header", GENERATED_VALUES, |draw| {
            let header = draw.header();
            assert_eq!(Header::decode(&header.encode()).as_ref(), Ok(&header));
            [header.encode(), header.prev_randao().to_vec()].concat()
        });
        self.generated("transaction", GENERATED_VALUES, |draw| {
            let transaction = draw.transaction();
            assert_eq!(transaction.envelope().unwrap().encoded_2718(), transaction.encoded().to_vec());
            transaction.encoded().to_vec()
        });
        self.generated("block", GENERATED_BLOCKS, |draw| {
            let block = draw.block();
            assert_eq!(Block::decode(&block.encode()).as_ref(), Ok(&block));
            [block.encode(), transactions_root(&block.transactions).to_vec()].concat()
        });
        self.generated("receipt", GENERATED_VALUES, |draw| {
            let receipt = draw.receipt();
            assert_eq!(Receipt::decode(&receipt.encode()).as_ref(), Ok(&receipt));
            [receipt.encode(), receipt.bloom().to_vec()].concat()
        });
        self.generated("run", GENERATED_VALUES, |draw| {
            let run = draw.run();
            assert_eq!(RunTransaction::decode(&run.encode()).as_ref(), Ok(&run));
            run.encode()
        });
        self.generated("prologue", GENERATED_VALUES, |draw| {
            let prologue = draw.prologue();
            assert_eq!(PrologueTransaction::decode(&prologue.encode()), Ok(prologue));
            prologue.encode()
        });
        self.generated("account", GENERATED_VALUES, |draw| {
            let account = draw.account();
            assert_eq!(Account::decode(&account.encode()), Ok(account));
            account.encode().to_vec()
        });
        self.generated("slot", GENERATED_VALUES, |draw| {
            let value = draw.u256();
            let stored = encode_slot(value);
            assert_eq!(
                stored.as_ref().map(|stored| decode_slot(stored)),
                (!value.is_zero()).then_some(Ok(value))
            );
            stored.unwrap_or_default().to_vec()
        });
        self.generated("state_key", GENERATED_VALUES, |draw| draw.state_key().hashed().to_vec());
        self.generated("schedule_id", GENERATED_VALUES, |draw| {
            let id = draw.schedule_id();
            assert_eq!(id.to_string().parse(), Ok(id));
            id.to_string().into_bytes()
        });
        self.generated("genesis", GENERATED_GENESES, |draw| {
            let genesis = draw.genesis();
            assert_eq!(Genesis::from_json(&genesis.to_json()).as_ref().ok(), Some(&genesis));
            [state_hash(&genesis).as_slice(), genesis.to_json().as_bytes()].concat()
        });
    }

    /// One hash over the encodings of many values, each behind its length.
    fn generated(&mut self, name: &str, count: usize, mut encode: impl FnMut(&mut Draw) -> Vec<u8>) {
        let mut draw = Draw::new(name);
        let hash = (0..count).fold(B256::ZERO, |hash, _| {
            let encoding = encode(&mut draw);
            let length = u32::try_from(encoding.len()).unwrap();
            keccak256([&hash[..], &length.to_be_bytes(), &encoding].concat())
        });
        self.text(&format!("generated.{name}"), &format!("{count} values: {hash}"));
    }
}

/// Over the values of the state at block 0 in the order in which a store would see them.
fn state_hash(genesis: &Genesis) -> B256 {
    let state = genesis.state().unwrap();
    let by_hash: BTreeMap<B256, &Bytes> = state.iter().map(|(key, value)| (key.hashed(), value)).collect();
    assert_eq!(by_hash.len(), state.len(), "no two keys share a hash");
    let mut bytes = vec![];
    for (key, value) in by_hash {
        bytes.extend_from_slice(key.as_slice());
        bytes.extend_from_slice(&u32::try_from(value.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(value);
    }
    keccak256(bytes)
}

/// A key of each kind, with the bytes that it is the hash of.
fn state_keys() -> [(&'static str, StateKey, String); 10] {
    let (address, word, hash) = (Address::repeat_byte(0x12), U256::from(0x34), B256::repeat_byte(0x56));
    let a = "12".repeat(20);
    let w = format!("{}34", "00".repeat(31));
    let h = "56".repeat(32);
    [
        ("account", StateKey::Account(address), format!("00{a}")),
        ("slot", StateKey::Slot(address, word), format!("01{a}{w}")),
        ("code", StateKey::Code(hash), format!("02{h}")),
        ("body", StateKey::Body(ScheduleId(0x0304)), "030000000000000304".into()),
        ("calendar", StateKey::Calendar(0x0102), "040000000000000102".into()),
        ("meta.genesis", StateKey::Meta(Meta::Genesis), "0500".into()),
        ("meta.nonceSweep", StateKey::Meta(Meta::NonceSweep), "0501".into()),
        ("nonce", StateKey::Nonce(address, 0x0506), format!("06{a}0000000000000506")),
        ("nonceLog", StateKey::NonceLog(7, 8), "0700000000000000070000000000000008".into()),
        ("accountKey", StateKey::AccountKey(address), format!("08{a}")),
    ]
}

// ---- The same bytes, put together by hand: recorded vectors alone would preserve a mistake ----

#[test]
fn golden_header_by_hand() {
    let expected = [
        "01",                               // version
        &"11".repeat(32),                   // parent hash
        "0000000000000412",                 // number 1042
        "0000019b76daa87b",                 // time 1767225600123 ms
        "00000001",                         // protocol version
        "0000000000000002",                 // epoch
        "000000000000004d",                 // view
        &"22".repeat(32),                   // leader
        "000000000000004b",                 // parent view
        &"33".repeat(20),                   // fee recipient
        "0000000001c9c380",                 // gas limit
        "0000000000bc614e",                 // gas used
        "0000000000200b20",                 // reserved gas used
        "0000000000000000000000003b9aca07", // base fee
        &"44".repeat(32),                   // transactions root
        &"55".repeat(32),                   // receipts root
        &"66".repeat(256),                  // logs bloom
        &"77".repeat(32),                   // state root
        &"88".repeat(32),                   // operations root
        "0000000000000005",                 // operations start
        "000000000000270f",                 // operations end
    ]
    .concat();
    assert_eq!(hex::encode(crate::samples::header().encode()), expected);
    assert_eq!(crate::samples::header().hash(), keccak256(hex::decode(&expected).unwrap()));
}

#[test]
fn golden_block_by_hand() {
    let block = crate::samples::block();
    let mut body = vec![];
    for transaction in &block.transactions {
        body.extend_from_slice(&u32::try_from(transaction.encoded().len()).unwrap().to_be_bytes());
        body.extend_from_slice(transaction.encoded());
    }
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let expected = [&block.header.encode()[..], &length, &4u32.to_be_bytes(), &body].concat();
    assert_eq!(block.encode(), expected);
    assert_eq!(block.hash(), block.header.hash());
}

#[test]
fn golden_receipt_by_hand() {
    let log = |topics: &str, data: &str| ["aa".repeat(20).as_str(), topics, data].concat();
    let topics =
        ["00000004", &"01".repeat(32), &"02".repeat(32), &"03".repeat(32), &"04".repeat(32)].concat();
    let data = format!("00000019{}", hex::encode("four topics and some data"));
    let expected = [
        "0102",                             // version, transaction type
        &"99".repeat(32),                   // transaction hash
        "80000000026e6f",                   // reverted, with a reason of two bytes
        "0000000000005208",                 // gas used
        "000000000000f618",                 // cumulative gas used
        "000000000000000000000000b2d05e07", // price
        &format!("01{}", "bb".repeat(20)),  // contract address
        "010000004120000c01",               // schedule 1042-3-1
        "0000000000000006",                 // run
        "00000002",                         // logs
        &log("00000000", "00000000"),
        &log(&topics, &data),
    ]
    .concat();
    assert_eq!(hex::encode(crate::samples::receipt_full().encode()), expected);

    let absent = ["00".repeat(1 + 20), "00".repeat(1 + 16), "00".repeat(4)].concat();
    let plain = hex::encode(crate::samples::receipt(Outcome::Success).encode());
    assert!(plain.ends_with(&absent), "absent parts are zeroes: {plain}");
}

#[test]
fn golden_system_transactions_by_hand() {
    let run = [
        "7101",                                // type, version
        "0000004120000c01",                    // schedule 1042-3-1
        "0000000000000006",                    // run
        "03",                                  // spare lane
        &"cc".repeat(20),                      // from
        &"dd".repeat(20),                      // to
        &format!("{}0f4240", "00".repeat(29)), // value
        "000000000007a120",                    // gas limit
        "00000000000000000000000077359400",    // price
        "00000004deadbeef",                    // input
    ]
    .concat();
    assert_eq!(hex::encode(crate::samples::run(Lane::Spare).encode()), run);
    let prologue = ["7001", "0000000000000412", "0000019b76daa87b", &"11".repeat(32)].concat();
    assert_eq!(hex::encode(crate::samples::prologue().encode()), prologue);
}

#[test]
fn golden_state_by_hand() {
    let account = ["01", "0000000000000007", &"00".repeat(28), "3b9aca07", &"ee".repeat(32)].concat();
    assert_eq!(hex::encode(crate::samples::account().encode()), account);
    let person = Account { code_hash: KECCAK256_EMPTY, ..crate::samples::account() };
    assert_eq!(hex::encode(person.encode()), account[..82], "no code, no code hash");
    for (name, key, bytes) in state_keys() {
        assert_eq!(key.hashed(), keccak256(hex::decode(bytes).unwrap()), "{name}");
    }
    let expected = keccak256(hex::decode(format!("{}0000000000000412", "11".repeat(32))).unwrap());
    assert_eq!(prev_randao(B256::repeat_byte(0x11), 1_042), expected);
}

/// The example of EIP-155, from the document itself.
#[test]
fn golden_transaction_of_eip_155() {
    let encoded = hex::decode(
        "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028\
         ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b38\
         00ccf555c9f3dc64214b297fb1966a3b6d83",
    )
    .unwrap();
    let transaction = UserTransaction::decode(&encoded).unwrap();
    let recovered =
        almanac_primitives::RecoveredTransaction::recover(transaction, &almanac_primitives::Chain::default())
            .unwrap();
    assert_eq!(recovered.sender(), alloy_primitives::address!("0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F"));
    assert_eq!(recovered.hash(), b256!("0x33469b22e9f636356c4160a87eb19df52b7412e8eac32a4a55ffe88ea8350788"));
}

// ---- The roots, from a tree that is built the dull way ----

#[test]
fn golden_roots_agree_with_a_dull_tree() {
    // Known to every Ethereum client as the root of nothing.
    let empty = b256!("0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421");
    assert_eq!((transactions_root([]), receipts_root(&[])), (empty, empty));

    let mut draw = Draw::new("roots");
    let transactions: Vec<_> = (0..300).map(|_| draw.transaction()).collect();
    let receipts: Vec<_> = (0..300).map(|_| draw.receipt()).collect();
    // Around 128 the index takes a second byte; above 255 a third.
    for count in (1..20).chain(126..131).chain(255..258).chain([300]) {
        let encoded: Vec<_> = transactions[..count].iter().map(|tx| tx.encoded().to_vec()).collect();
        assert_eq!(transactions_root(&transactions[..count]), dull_root(&encoded), "{count} transactions");
        let encoded: Vec<_> = receipts[..count].iter().map(Receipt::encode).collect();
        assert_eq!(receipts_root(&receipts[..count]), dull_root(&encoded), "{count} receipts");
    }
}

/// A leaf of the tree: the nibbles of its key, and its value.
type Leaf<'a> = (Vec<u8>, &'a [u8]);

/// Ethereum's trie from RLP of the index to the value, as the yellow paper writes it.
fn dull_root(values: &[Vec<u8>]) -> B256 {
    let nibbles =
        |index| alloy_rlp::encode::<usize>(index).iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
    let leaves: Vec<Leaf<'_>> =
        values.iter().enumerate().map(|(index, value)| (nibbles(index), &value[..])).collect();
    keccak256(dull_node(&leaves, 0))
}

fn dull_node(leaves: &[Leaf<'_>], depth: usize) -> Vec<u8> {
    if let [(key, value)] = leaves {
        return rlp_list(&[rlp_text(&packed(&key[depth..], 2)), rlp_text(value)]);
    }
    let first = &leaves[0].0;
    let shared = (depth..).take_while(|&i| leaves.iter().all(|(key, _)| key.get(i) == first.get(i))).count();
    if shared > 0 {
        let child = reference(dull_node(leaves, depth + shared));
        return rlp_list(&[rlp_text(&packed(&first[depth..depth + shared], 0)), child]);
    }
    let child = |nibble: u8| {
        let below: Vec<_> = leaves.iter().filter(|(key, _)| key[depth] == nibble).cloned().collect();
        if below.is_empty() { rlp_text(&[]) } else { reference(dull_node(&below, depth + 1)) }
    };
    let children: Vec<_> = (0..16).map(child).chain([rlp_text(&[])]).collect();
    rlp_list(&children)
}

/// Nibbles as bytes behind a flag that says whether they are odd in number and end at a leaf.
fn packed(nibbles: &[u8], flag: u8) -> Vec<u8> {
    let odd = nibbles.len() % 2 == 1;
    let head: &[u8] = if odd { &[flag | 1] } else { &[flag, 0] };
    [head, nibbles].concat().chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn reference(node: Vec<u8>) -> Vec<u8> {
    if node.len() < 32 { node } else { rlp_text(keccak256(node).as_slice()) }
}

fn rlp_text(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    bytes.encode(&mut out);
    out
}

fn rlp_list(items: &[Vec<u8>]) -> Vec<u8> {
    let payload = items.concat();
    let mut out = vec![];
    RlpHeader { list: true, payload_length: payload.len() }.encode(&mut out);
    [out, payload].concat()
}
