//! The schedule service as its callers see it: codes, identity, rounds, throttles (HEDERA-01 … -11, -18, -19).

use crate::{
    keys::rotating,
    support::{contracts::*, native::*, signed::*, *},
};
use alloy_primitives::{Address, Bytes, U256, address};
use alloy_sol_types::{SolCall as _, SolEvent as _};
use almanac_exec::agreement;
use almanac_primitives::{
    Genesis, Outcome, ScheduleId, TimestampMs, UserTransaction,
    addresses::{LEDGER, SCHEDULE_SERVICE},
    params::{SIGNED_BODY_BYTES_MAX, SIGNED_RUN_GAS_MAX},
};
use almanac_schedule::{Record, signed::Code};

/// One call of one person.
fn single(n: u64) -> Wish {
    Wish::new(vec![service_call(person(n).address, COUNTER)])
}

/// One call of each of two persons.
fn both() -> Wish {
    Wish::new(vec![service_call(person(1).address, COUNTER), service_call(person(2).address, COUNTER)])
}

fn count(chain: &TestChain, n: u64) -> u64 {
    runs::count_of(&chain.state, person(n).address).to()
}

/// What creating it answers.
fn answer(chain: &mut TestChain, wish: &Wish, entries: Vec<SignatureEntry>) -> i64 {
    code(chain.serve(person(0), wish.create(entries)).receipt(0))
}

/// HEDERA-03: the id is in the receipt of the creation, and the creator's own signature counts.
#[test]
fn hedera_03_the_creator_signs_by_creating() {
    let mut chain = TestChain::new();
    let wish = both();
    let (id, produced) = chain.create(person(1), &wish, vec![]);
    let receipt = produced.receipt(0);
    let made = ScheduleCreated::decode_log(&receipt.logs[0]).unwrap();
    assert_eq!((receipt.logs[0].address, made.id, made.creator), (SCHEDULE_SERVICE, id.0, person(1).address));
    assert_eq!((made.payer, made.round), (Address::ZERO, 0));
    let signed = ScheduleSigned::decode_log(&receipt.logs[1]).unwrap();
    let caller = [&[4][..], person(1).address.as_slice()].concat();
    assert_eq!(signed.key, Bytes::from(caller.clone()));
    assert_eq!(chain.info(id).1.signers, [Bytes::from(caller)]);
    assert_eq!(run_codes(&chain.serve(person(2), signing(id, vec![]))), [(id.0, 22)], "so does who signs");
}

/// HEDERA-03: whoever only looks sees who is missing, by present keys, as the door judges it.
#[test]
fn hedera_03_who_is_missing_can_be_seen() {
    let mut chain = TestChain::new();
    let wish = both();
    let (id, _) = chain.create(person(0), &wish, vec![wish.signed(person(1))]);
    let seen = |chain: &TestChain| {
        let record = Record::read(&chain.state, id).unwrap().unwrap();
        agreement(&chain.state, &record).unwrap().unwrap()
    };
    let who =
        |chain: &TestChain| seen(chain).parties.into_iter().map(|party| (party.account, party.has_agreed));
    let [one, two] = [1, 2].map(|n| person(n).address);
    assert_eq!(who(&chain).collect::<Vec<_>>(), [(one, true), (two, false)]);
    assert_eq!(seen(&chain).parties[1].key.encoded(), &Key::from(person(2)).encoded());
    assert_eq!(seen(&chain).signers.len(), 1);
    // A rotation voids what the old key signed.
    let key = Key::from(person(7));
    chain.produce(vec![rotating(person(1), 0, &key.encoded(), 1, std::slice::from_ref(&key))]);
    assert_eq!(who(&chain).collect::<Vec<_>>(), [(one, false), (two, false)]);
    assert_eq!((seen(&chain).parties[0].key.encoded(), seen(&chain).signers.len()), (&key.encoded(), 0));
}

/// HEDERA-03: a key that nobody asked for is an error, on create as on sign.
#[test]
fn hedera_03_a_key_that_is_not_required_is_an_error() {
    let mut chain = TestChain::new();
    let wish = both();
    assert_eq!(answer(&mut chain, &wish, vec![wish.signed(person(1)), wish.signed(person(3))]), 208);
    let (id, _) = chain.create(person(0), &wish, vec![]);
    assert_eq!(chain.add(person(0), id, vec![wish.signed(person(3))]), 208);
    assert_eq!(chain.add(person(0), id, vec![wish.signed(ed_person(1))]), 208);
    assert_eq!(chain.info(id).1.signers, [] as [Bytes; 0], "nothing of it was recorded");
}

/// HEDERA-04: the same body, payer and admin key are one schedule while it is pending.
#[test]
fn hedera_04_creating_it_again_adds_signatures() {
    let mut chain = TestChain::new();
    let wish = both();
    let (id, _) = chain.create(person(0), &wish, vec![wish.signed(person(1))]);
    let again = chain.serve(person(3), wish.create(vec![]));
    assert_eq!(code(again.receipt(0)), 22, "nothing new is no error here");
    // Who sends a transaction does not see what it answered: the log has the id.
    let [log] = &again.receipt(0).logs[..] else { panic!("nothing is created") };
    let found = ScheduleFound::decode_log(log).unwrap();
    assert_eq!((found.id, found.creator), (id.0, person(3).address));
    let last = chain.serve(person(4), wish.create(vec![wish.signed(person(2))]));
    assert_eq!(run_codes(&last), [(id.0, 22)]);
    assert_eq!((count(&chain, 1), count(&chain, 2)), (1, 1));
}

/// HEDERA-04 and -10, and attack 40: another admin key, payer or nonce is another schedule, whoever comes first.
#[test]
fn hedera_04_identity_has_payer_admin_key_and_every_byte() {
    let mut chain = TestChain::new();
    let wish = both();
    let mut others = vec![wish.clone(); 5];
    others[0].admin_key = Key::from(person(9)).encoded();
    others[1].payer = Some(person(5).address);
    others[2].body.nonce = 1;
    others[3].body.memo = "a tesu".to_owned();
    others[4].body.gasLimit += 1;
    let mut ids: Vec<ScheduleId> =
        others.iter().map(|other| chain.create(person(9), other, vec![]).0).collect();
    ids.push(chain.create(person(0), &wish, vec![]).0);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 6);
    let front_run = &others[0];
    let (id, _) = (ids[0], ());
    assert_eq!(chain.add(person(0), id, vec![wish.signed(person(1))]), 7, "a signature names the admin key");
    assert_eq!(chain.add(person(0), id, vec![front_run.signed(person(1))]), 22);
}

/// HEDERA-05.
#[test]
fn hedera_05_a_creation_with_all_signatures_executes() {
    let mut chain = TestChain::new();
    let wish = both();
    let (id, produced) = chain.create(person(0), &wish, vec![wish.signed(person(1)), wish.signed(person(2))]);
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
    let triggered = produced.receipt(0).logs.iter().filter_map(|log| ScheduleTriggered::decode_log(log).ok());
    assert_eq!(triggered.map(|log| log.id).collect::<Vec<_>>(), [id.0]);
    assert_eq!((count(&chain, 1), count(&chain, 2)), (1, 1));
    chain.replay();
}

/// HEDERA-06: each reason has its own code.
#[test]
fn hedera_06_every_refused_signature_has_its_code() {
    let mut chain = TestChain::new();
    let wish = both();
    let (id, _) = chain.create(person(0), &wish, vec![wish.signed(person(1))]);
    let good = wish.signed(person(2));
    let unknown = ScheduleId(id.0 + 1);
    assert_eq!(chain.add(person(0), unknown, vec![good.clone()]), 201);
    assert_eq!(chain.add(person(0), id, vec![]), 205);
    assert_eq!(chain.add(person(0), id, vec![wish.signed(person(1))]), 205);
    let swapped = SignatureEntry { key: good.key.clone(), ..wish.signed(person(1)) };
    assert_eq!(chain.add(person(0), id, vec![swapped]), 7);
    let bad_key = SignatureEntry { key: Bytes::from_static(&[9; 21]), ..good.clone() };
    assert_eq!(chain.add(person(0), id, vec![bad_key]), 38);
    let tree = SignatureEntry { key: threshold(1, std::slice::from_ref(&good.key)), ..good.clone() };
    assert_eq!(chain.add(person(0), id, vec![tree]), 38, "a leaf signs, not a tree");
    // The second of the next block is the last one.
    let last = Wish { deadline: chain.input().timestamp.seconds() - 1, ..wish.clone() };
    assert_eq!(chain.add(person(0), id, vec![last.signed(person(2))]), 4);
    let last = Wish { deadline: chain.input().timestamp.seconds(), ..wish.clone() };
    assert_eq!(chain.add(person(0), id, vec![last.signed(person(2))]), 22);
    assert_eq!(chain.add(person(0), id, vec![good]), 213);
}

/// HEDERA-06, attack 35: one signature has one form.
#[test]
fn hedera_06_other_forms_of_a_signature_are_refused() {
    let mut chain = TestChain::new();
    let wish = both();
    let (id, _) = chain.create(person(0), &wish, vec![]);
    let good = wish.signed(person(1));
    let order: U256 = "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141".parse().unwrap();
    let s = U256::from_be_slice(&good.signature[32..64]);
    let with = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut signature = good.signature.to_vec();
        edit(&mut signature);
        SignatureEntry { signature: signature.into(), ..good.clone() }
    };
    let high_s = with(&|bytes| {
        bytes[32..64].copy_from_slice(&(order - s).to_be_bytes::<32>());
        bytes[64] ^= 1;
    });
    let ethereum_v = with(&|bytes| bytes[64] += 27);
    let short = with(&|bytes| bytes.truncate(64));
    let other_parity = with(&|bytes| bytes[64] ^= 1);
    for bad in [high_s, ethereum_v, short, other_parity, with(&|bytes| bytes.push(0))] {
        assert_eq!(chain.add(person(0), id, vec![bad]), 7);
    }
    assert_eq!(chain.add(person(0), id, vec![good]), 22);
}

/// HEDERA-01, attack 36: a signer counts once, however often and in however many ways.
#[test]
fn hedera_01_signing_twice_is_signing_once() {
    let mut chain = TestChain::new();
    let key = threshold(2, &[1, 2, 3].map(|n| Key::from(person(n)).encoded()));
    let keys = [Key::from(person(1)), person(2).into(), person(3).into()];
    chain.produce(vec![rotating(person(4), 0, &key, 1, &keys[..2])]);
    let wish = single(4);
    let (id, _) = chain.create(person(0), &wish, vec![wish.signed(person(1)), wish.signed(person(1))]);
    assert_eq!(chain.info(id).1.signers.len(), 1);
    assert_eq!(chain.add(person(1), id, vec![wish.signed(person(1))]), 22, "it is new that it calls");
    assert_eq!((chain.info(id).0, chain.info(id).1.signers.len()), (22, 2), "and still one leaf of two");
    let last = chain.serve(person(0), signing(id, vec![wish.signed(person(3))]));
    assert_eq!(run_codes(&last), [(id.0, 22)]);
    assert_eq!(count(&chain, 4), 1);
}

/// HEDERA-08.
#[test]
fn hedera_08_only_the_admin_key_deletes() {
    let mut chain = TestChain::new();
    let (id, _) = chain.create(person(0), &both(), vec![]);
    assert_eq!(chain.delete(person(0), id, vec![]), 202, "no admin key");
    assert_eq!(chain.delete(person(0), ScheduleId(7), vec![]), 201);

    let members = [Key::from(person(5)), ed_person(6).into()];
    let wish = Wish { admin_key: threshold(2, &members.map(|key| key.encoded())), ..both() };
    let (id, _) = chain.create(person(0), &wish, vec![]);
    assert_eq!(chain.delete(person(0), id, vec![]), 7, "the creator is not asked");
    assert_eq!(chain.delete(person(5), id, vec![]), 7, "one of two");
    let of = |id, key: Key, deadline| deletion(id, key, deadline);
    assert_eq!(chain.delete(person(5), id, vec![of(id, person(1).into(), u64::MAX)]), 208);
    assert_eq!(
        chain.delete(person(5), id, vec![of(ScheduleId(1), members[1], u64::MAX)]),
        7,
        "of another schedule"
    );
    let past = chain.input().timestamp.seconds() - 1;
    assert_eq!(chain.delete(person(5), id, vec![of(id, members[1], past)]), 4);
    let deleted = chain.serve(person(5), deleting(id, vec![of(id, members[1], past + 9)]));
    assert_eq!(ScheduleDeleted::decode_log(&deleted.receipt(0).logs[0]).unwrap().id, id.0);
    assert_eq!(chain.delete(person(5), id, vec![of(id, members[1], u64::MAX)]), 212);
    assert_eq!(chain.add(person(1), id, vec![]), 212);
    let (code, info) = chain.info(id);
    assert_eq!((code, info.ended, info.endedAt), (212, 2, chain.head.timestamp.seconds() - 2));
}

/// HEDERA-08: executed ones answer so.
#[test]
fn hedera_08_what_was_executed_cannot_be_deleted() {
    let mut chain = TestChain::new();
    let wish = Wish { admin_key: Key::from(person(5)).encoded(), ..single(1) };
    let (id, _) = chain.create(person(1), &wish, vec![]);
    assert_eq!(chain.delete(person(5), id, vec![]), 213);
}

/// HEDERA-09.
#[test]
fn hedera_09_info_shows_what_was_asked_for() {
    let mut chain = TestChain::new();
    let wish =
        Wish { admin_key: Key::from(ed_person(5)).encoded(), payer: Some(person(6).address), ..both() };
    let (id, _) = chain.create(person(0), &wish, vec![wish.signed(person(1))]);
    let (code, info) = chain.info(id);
    let expected = Info {
        scheduleID: id.0,
        creatorAccountID: person(0).address,
        payerAccountID: person(6).address,
        transactionBody: wish.bytes(),
        signers: vec![Key::from(person(1)).encoded()],
        adminKey: wish.admin_key.clone(),
        round: 0,
        expiresAt: (chain.head.timestamp.0 + 1_800_000) / 1_000,
        ended: 0,
        endedAt: 0,
    };
    assert_eq!((code, info), (22, expected));
    assert_eq!(chain.info(ScheduleId(77)).0, 201);
}

/// HEDERA-10: after execution the same body may be created afresh, with new signatures.
#[test]
fn hedera_10_the_same_body_runs_again_with_new_signatures() {
    let mut chain = TestChain::new();
    let wish = both();
    let entries = |wish: &Wish| vec![wish.signed(person(1)), wish.signed(person(2))];
    let (first, _) = chain.create(person(0), &wish, entries(&wish));
    assert_eq!(answer(&mut chain, &wish, entries(&wish)), Code::RoundPassed.number());
    let wish = Wish { round: chain.round_of(&wish), ..wish };
    assert_eq!(wish.round, 1);
    let (second, _) = chain.create(person(0), &wish, entries(&wish));
    assert!(second > first);
    assert_eq!((count(&chain, 1), count(&chain, 2)), (2, 2));
}

/// HEDERA-11, attack 34: in 1 of 2, the signature that was not needed authorises nothing later.
#[test]
fn hedera_11_leftover_signatures_authorise_nothing() {
    let mut chain = TestChain::new();
    let keys = [Key::from(person(1)), person(2).into()];
    let key = threshold(1, &keys.map(|key| key.encoded()));
    chain.produce(vec![rotating(person(4), 0, &key, 1, &keys[..1])]);
    let wish = single(4);
    let (_, produced) = chain.create(person(0), &wish, vec![wish.signed(person(1))]);
    assert_eq!(run_codes(&produced).len(), 1);
    let leftover = wish.signed(person(2));
    assert_eq!(answer(&mut chain, &wish, vec![leftover.clone()]), 10_001);
    let (id, _) = chain.create(person(0), &wish, vec![]);
    assert_eq!(chain.add(person(9), id, vec![leftover]), 10_001);
    assert_eq!(count(&chain, 4), 1);
}

/// HEDERA-11: deletion spends signatures, expiry does not.
#[test]
fn hedera_11_deletion_raises_the_round_and_expiry_does_not() {
    let mut chain = TestChain::new();
    let wish = Wish { admin_key: Key::from(person(5)).encoded(), ..both() };
    let signed = wish.signed(person(1));
    chain.create(person(0), &wish, vec![signed.clone()]);
    let expired = TimestampMs(chain.head.timestamp.0 + 1_800_000);
    let input = chain.input_at(expired);
    chain.produce_with(&input, vec![]);
    assert_eq!(chain.round_of(&wish), 0);
    let slots = chain.state.0.keys().filter(|key| matches!(key, almanac_primitives::StateKey::Slot(LEDGER, slot) if almanac_schedule::signed::is_identity_slot(*slot)));
    assert_eq!(slots.count(), 0, "what was never spent leaves nothing");
    let (id, _) = chain.create(person(0), &wish, vec![signed.clone()]);
    assert_eq!(chain.delete(person(5), id, vec![]), 22);
    assert_eq!(chain.round_of(&wish), 1);
    assert_eq!(answer(&mut chain, &wish, vec![signed]), 10_001);
}

/// HEDERA-11: the chain's id and block 0, the service and the payer are signed.
#[test]
fn hedera_11_signatures_of_other_places_are_invalid() {
    let mut chain = TestChain::new();
    let wish = both();
    let (id, _) = chain.create(person(0), &wish, vec![]);
    let others = [
        Wish { payer: Some(person(5).address), ..wish.clone() },
        Wish { admin_key: Key::from(person(5)).encoded(), ..wish.clone() },
        Wish { round: 1, ..wish.clone() },
    ];
    for other in others {
        assert_eq!(chain.add(person(0), id, vec![other.signed(person(1))]), 7);
    }
    let later = SignatureEntry { deadline: u64::MAX - 1, ..wish.signed(person(1)) };
    assert_eq!(chain.add(person(0), id, vec![later]), 7, "the deadline is signed");
}

/// Recorded signatures are judged by current keys: a rotation voids those of the old key, and the new one signs.
#[test]
fn hedera_07_readiness_is_by_current_keys() {
    let mut chain = TestChain::new();
    let wish = both();
    let (id, _) = chain.create(person(1), &wish, vec![]);
    let old = wish.signed(person(1));
    let key = Key::from(ed_person(1));
    chain.produce(vec![rotating(person(1), 1, &key.encoded(), 1, &[key])]);
    assert_eq!(chain.add(person(0), id, vec![wish.signed(person(2))]), 22);
    assert_eq!(chain.info(id).0, 22, "the call of the old key counts no more");
    assert_eq!(chain.add(person(0), id, vec![old]), 208, "nor is the old key asked for");
    let last = chain.serve(person(0), signing(id, vec![wish.signed(ed_person(1))]));
    assert_eq!(run_codes(&last), [(id.0, 22)]);
}

/// A leaf `01 ‖ address` of another account's key counts while that address has no other key.
#[test]
fn hedera_01_a_leaf_whose_account_has_another_key_signs_for_nobody() {
    let mut chain = TestChain::new();
    let leaves = [Key::from(person(1)), person(2).into()];
    let key = threshold(1, &leaves.map(|key| key.encoded()));
    chain.produce(vec![rotating(person(4), 0, &key, 1, &leaves[..1])]);
    let wish = single(4);
    let (id, _) = chain.create(person(0), &wish, vec![]);
    let own = Key::from(ed_person(1));
    chain.produce(vec![rotating(person(1), 0, &own.encoded(), 1, &[own])]);
    assert_eq!(chain.add(person(0), id, vec![wish.signed(person(1))]), 7);
    assert_eq!(run_codes(&chain.serve(person(2), signing(id, vec![]))), [(id.0, 22)]);
}

fn calls(n: usize, from: impl Fn(usize) -> Address) -> Wish {
    Wish::new((0..n).map(|n| service_call(from(n), COUNTER)).collect())
}

/// Both sides of every limit of a body.
#[test]
fn hedera_03_bodies_are_bounded() {
    let numbered = |n: usize| Address::with_last_byte(0x40 + u8::try_from(n).unwrap());
    let one = |_| person(1).address;
    let memo =
        |length: usize| Wish { body: Body { memo: "m".repeat(length), ..single(1).body }, ..single(1) };
    let gas = |gas| Wish { body: Body { gasLimit: gas, ..single(1).body }, ..single(1) };
    let from = |from| Wish::new(vec![service_call(from, COUNTER)]);
    let cases = [
        (calls(0, one), 50),
        (calls(16, one), 22),
        (calls(17, one), 50),
        (calls(8, numbered), 22),
        (calls(9, numbered), 50),
        (memo(100), 22),
        (memo(101), 8),
        (gas(20_999), 111),
        (gas(21_000), 22),
        (gas(SIGNED_RUN_GAS_MAX.max), 22),
        (gas(SIGNED_RUN_GAS_MAX.max + 1), 111),
        (Wish::new(vec![service_call(person(1).address, Address::ZERO)]), 16),
        (from(Address::ZERO), 50),
        (from(LEDGER), 50),
        (Wish { payer: Some(SCHEDULE_SERVICE), ..single(1) }, 50),
    ];
    let mut chain = TestChain::new();
    for (n, (mut wish, expected)) in (0..).zip(cases) {
        wish.body.nonce = n;
        assert_eq!(answer(&mut chain, &wish, vec![]), expected, "case {n}");
    }
}

/// A body has one encoding and a bounded length.
#[test]
fn hedera_04_a_body_has_one_encoding() {
    let mut chain = TestChain::new();
    let wish = single(1);
    let mut send = |body: Vec<u8>| {
        let input = createScheduleCall {
            transactionBody: body.into(),
            adminKey: Bytes::new(),
            payer: Address::ZERO,
            sigMap: vec![],
        };
        let nonce = chain.nonce(person(0).address);
        let input = input.abi_encode();
        let produced = chain.produce(vec![call(person(0), nonce, SCHEDULE_SERVICE, input, 9_000_000)]);
        code(produced.receipt(0))
    };
    let bytes = wish.bytes().to_vec();
    assert_eq!(send([&bytes[..], &[0; 32]].concat()), 50, "bytes behind it");
    assert_eq!(send(bytes[..bytes.len() - 1].to_vec()), 50, "cut short");
    assert_eq!(send(vec![]), 50);
    assert_eq!(send(vec![0xff; 640]), 50);
    let long = |length: usize| {
        let mut wish = wish.clone();
        wish.body.calls[0].data = vec![7; length].into();
        wish.body.gasLimit = 1_000_000;
        wish
    };
    let spare = SIGNED_BODY_BYTES_MAX - long(0).bytes().len();
    assert_eq!(send(long(spare + 1).bytes().to_vec()), 214);
    assert_eq!(send(long(spare).bytes().to_vec()), 22);
}

/// HEDERA-01, attacks 37 and 38: key trees are bounded and their thresholds sane.
#[test]
fn hedera_01_admin_keys_are_checked() {
    let leaf = |n: u64| Key::from(person(n)).encoded();
    let many = |n: u64| (0..n).map(leaf).collect::<Vec<_>>();
    let nested = |depth: usize| (1..depth).fold(leaf(1), |key, _| threshold(1, &[key]));
    let cases = [
        (Bytes::from_static(&[1]), 38),
        (threshold(0, &many(2)), 38),
        (threshold(3, &many(2)), 38),
        (threshold(1, &[]), 38),
        (threshold(1, &[leaf(1), leaf(1)]), 38),
        (threshold(1, &many(32)), 22),
        (threshold(1, &many(33)), 38),
        (nested(4), 22),
        (nested(5), 38),
        (Bytes::from(vec![1; 2_000]), 38),
    ];
    let mut chain = TestChain::new();
    for (n, (admin_key, expected)) in (0..).zip(cases) {
        let mut wish = Wish { admin_key, ..single(1) };
        wish.body.nonce = n;
        assert_eq!(answer(&mut chain, &wish, vec![]), expected, "case {n}");
    }
}

/// At most 64 leaves are asked for, and at most 32 signatures come at once.
#[test]
fn hedera_01_both_sides_of_leaves_and_entries() {
    let mut chain = TestChain::new();
    let leaves: Vec<Key> = (100..132).map(|n| Key::from(ed_person(n))).collect();
    let key = threshold(32, &leaves.iter().map(Key::encoded).collect::<Vec<_>>());
    for n in [4, 5] {
        chain.produce(vec![rotating(person(n), 0, &key, 1, &leaves)]);
    }
    let two = Wish::new([4, 5].map(|n| service_call(person(n).address, COUNTER)).to_vec());
    let nonce = chain.nonce(person(0).address);
    let send = |wish: &Wish, entries, nonce| {
        call(person(0), nonce, SCHEDULE_SERVICE, wish.create(entries), 5_000_000)
    };
    let entries: Vec<_> = leaves.iter().map(|leaf| two.signed(*leaf)).collect();
    let produced = chain.produce(vec![send(&two, entries.clone(), nonce)]);
    assert_eq!(code(produced.receipt(0)), 22);
    assert_eq!(run_codes(&produced).len(), 1, "32 signatures satisfy two keys of 32 leaves");
    let three = Wish::new([4, 5, 6].map(|n| service_call(person(n).address, COUNTER)).to_vec());
    let produced = chain.produce(vec![send(&three, vec![], nonce + 1)]);
    assert_eq!(code(produced.receipt(0)), 206);
    let mut too_many = entries;
    too_many.push(too_many[0].clone());
    let produced = chain.produce(vec![send(&two, too_many, nonce + 2)]);
    assert_eq!(code(produced.receipt(0)), 50);
}

fn numbered(n: u32) -> Wish {
    let mut wish = single(1);
    wish.body.nonce = n;
    wish
}

/// Creations of one person in one block, which have the time of their block.
fn flood(chain: &TestChain, n: u64, count: u32) -> Vec<UserTransaction> {
    let nonce = chain.nonce(person(n).address);
    let first = u32::try_from(n).unwrap() * 1_000 + u32::try_from(nonce).unwrap();
    (0..count)
        .map(|i| {
            call(
                person(n),
                nonce + u64::from(i),
                SCHEDULE_SERVICE,
                numbered(first + i).create(vec![]),
                900_000,
            )
        })
        .collect()
}

fn codes(produced: &Produced) -> Vec<i64> {
    let users =
        produced.output.receipts.iter().filter(|receipt| !matches!(receipt.transaction_type, 0x70 | 0x71));
    users.map(code).collect()
}

/// HEDERA-18, attack 42: one caller has a fifth of each second, and the others have the rest. Nobody is exempt.
#[test]
fn hedera_18_a_flood_by_one_leaves_room_for_others() {
    let genesis = Genesis { parameters: [("signed_creates_per_second".to_owned(), 25)].into(), ..genesis() };
    let mut chain = TestChain::from_genesis(&genesis);
    let flooded = chain.produce(flood(&chain, 0, 6));
    assert_eq!(codes(&flooded), [22, 22, 22, 22, 22, 12]);
    let pending = ledger::records(&chain.state).len();
    assert_eq!(pending, 5, "what was refused changed nothing");
    // The bucket: 25 in a block, whoever asks, and each block here is a second.
    let crowd: Vec<_> = (0..6).flat_map(|n| flood(&chain, n, 5)).collect();
    let produced = chain.produce(crowd);
    let answers = codes(&produced);
    assert_eq!(answers.iter().filter(|code| **code == 22).count(), 25, "{answers:?}");
    assert_eq!(answers.iter().filter(|code| **code == 12).count(), 5);
    chain.replay();
}

/// HEDERA-18: the bucket fills by its rate, not by blocks.
#[test]
fn hedera_18_the_bucket_fills_with_time() {
    let parameters = [("signed_creates_per_second".to_owned(), 1), ("signed_caller_percent".to_owned(), 100)];
    let mut chain = TestChain::from_genesis(&Genesis { parameters: parameters.into(), ..genesis() });
    let mut at = |ms: u64, n| {
        let input = chain.input_at(TimestampMs(START.0 + ms));
        let wanted = flood(&chain, n, 1);
        codes(&chain.produce_with(&input, wanted))[0]
    };
    assert_eq!([at(1_000, 0), at(1_999, 1), at(2_000, 1), at(2_001, 2)], [22, 12, 22, 12]);
}

/// HEDERA-18: a wrong id hears so although the throttle is empty (Hedera 16959).
#[test]
fn hedera_18_an_unknown_id_answers_before_the_throttle() {
    let parameters = [("signed_signs_per_second".to_owned(), 1), ("signed_deletes_per_second".to_owned(), 1)];
    let mut chain = TestChain::from_genesis(&Genesis { parameters: parameters.into(), ..genesis() });
    let wish = both();
    let (id, _) = chain.create(person(0), &wish, vec![]);
    let inputs = [
        signing(id, vec![wish.signed(person(1))]),
        signing(id, vec![wish.signed(person(2))]),
        signing(ScheduleId(1), vec![]),
    ];
    let nonce = chain.nonce(person(3).address);
    let transactions =
        (nonce..).zip(inputs).map(|(nonce, input)| to_service(person(3), nonce, input)).collect();
    assert_eq!(codes(&chain.produce(transactions)), [22, 12, 201]);
}

/// HEDERA-19: more signatures and larger keys cost more, before they are looked at.
#[test]
fn hedera_19_signatures_and_keys_are_paid_for() {
    let mut chain = TestChain::new();
    let wish = both();
    let gas = |chain: &mut TestChain, wish: &Wish, entries: Vec<SignatureEntry>| {
        let produced = chain.serve(person(0), wish.create(entries));
        assert_eq!(code(produced.receipt(0)), 22);
        produced.receipt(0).gas_used.0
    };
    // The first of all fills slots that the others find filled.
    gas(&mut chain, &single(3), vec![]);
    let none = gas(&mut chain, &wish, vec![]);
    assert!(none > 150_000, "the entity is paid for: {none}");
    let mut other = wish.clone();
    other.body.nonce = 1;
    let one = other.signed(person(1));
    let with_one = gas(&mut chain, &other, vec![one]);
    assert!(with_one > none + 3_000 + 20_000, "{none} {with_one}");
    // With gas for almost all of it, nothing changes.
    let mut third = wish;
    third.body.nonce = 2;
    let (nonce, input) = (chain.nonce(person(0).address), third.create(vec![third.signed(person(1))]));
    let short = call(person(0), nonce, SCHEDULE_SERVICE, input, with_one - 5_000);
    assert_eq!(code(chain.produce(vec![short]).receipt(0)), -1);
    assert_eq!(ledger::records(&chain.state).len(), 3);
}

/// Governance switches it off and on; what is there can still be deleted, and funds withdrawn.
#[test]
fn hedera_18_switched_off_it_takes_nothing() {
    for (name, expected) in [("signed_enabled", 13), ("signed_paused", 12)] {
        let value = u64::from(name == "signed_paused");
        let genesis = Genesis { parameters: [(name.to_owned(), value)].into(), ..genesis() };
        let mut chain = TestChain::from_genesis(&genesis);
        assert_eq!(answer(&mut chain, &both(), vec![]), expected, "{name}");
        chain.produce(vec![funding(person(0), 1, person(0).address, 5)]);
        assert_eq!(chain.fund_of(person(0).address), U256::from(5));
        let back = withdrawCall { amount: U256::from(5) }.abi_encode();
        assert_eq!(code(chain.serve(person(0), back).receipt(0)), 22);
        assert_eq!(chain.fund_of(person(0).address), U256::ZERO);
    }
}

/// Funds: what somebody put in for an account, only that account takes out.
#[test]
fn hedera_15_a_fund_is_its_accounts() {
    let mut chain = TestChain::new();
    chain.produce(vec![funding(person(0), 0, person(1).address, 100)]);
    let take = |amount: u64| withdrawCall { amount: U256::from(amount) }.abi_encode();
    assert_eq!(code(chain.serve(person(0), take(1)).receipt(0)), 10);
    assert_eq!(code(chain.serve(person(1), take(101)).receipt(0)), 10);
    let before = chain.balance(person(1).address);
    let produced = chain.serve(person(1), take(100));
    let fee = produced.receipt(0).gas_used.cost(produced.receipt(0).effective_gas_price);
    assert_eq!(chain.balance(person(1).address) + fee.0, before + U256::from(100));
    assert_eq!(chain.fund_of(person(1).address), U256::ZERO);
    chain.replay();
}

/// What all doors refuse.
#[test]
fn hedera_24_it_answers_like_every_door() {
    let mut chain = TestChain::new();
    let create = single(1).create(vec![]);
    for through in [DELEGATOR, CODE_CALLER, STATIC_CALLER] {
        let nonce = chain.nonce(person(0).address);
        let input = to(SCHEDULE_SERVICE, &create);
        let produced = chain.produce(vec![call(person(0), nonce, through, input, 2_000_000)]);
        assert!(matches!(produced.receipt(0).outcome, Outcome::Reverted(_)), "{through}");
    }
    let nonce = chain.nonce(person(0).address);
    let tx = eip1559(nonce, alloy_primitives::TxKind::Call(SCHEDULE_SERVICE), 9, create, PLENTY_GAS);
    let before = chain.balance(person(0).address);
    let produced = chain.produce(vec![sign(tx, person(0).secret)]);
    assert_eq!(code(produced.receipt(0)), 22);
    let fee = produced.receipt(0).gas_used.cost(produced.receipt(0).effective_gas_price);
    assert_eq!(chain.balance(person(0).address) + fee.0, before, "value that is not needed returns");
    let garbage = address!("0x00000000000000000000000000000000000c9999");
    assert!(!chain.call(garbage, SCHEDULE_SERVICE, vec![1, 2, 3]).outcome.is_success());
}
