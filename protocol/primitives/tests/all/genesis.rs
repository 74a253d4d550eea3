//! Genesis files as people write them: what is taken, what is refused and how it is named.

use crate::samples::{ALICE, BOB, CAROL, Draw};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, address, keccak256};
use almanac_primitives::{
    Account, Genesis, StateCommitment, StateKey, TimestampMs, Wei,
    addresses::{BLOCK_HASH_HISTORY, DEVELOPER_DOOR, PARAMETERS, SYSTEM_ACCOUNTS},
    block::{receipts_root, transactions_root},
    genesis::{self, Allocation, GenesisError, Validator},
    params::{self, CODE_BYTES_MAX, Parameter, ParameterError, VALIDATORS_MAX},
    state::{Meta, decode_slot},
};
use proptest::prelude::*;
use serde_json::{Value, json};

const CONTRACT: Address = Address::repeat_byte(0xc0);

/// The smallest file that is a genesis.
fn smallest() -> Value {
    json!({ "chainId": 1, "timestampMs": 0, "governance": CAROL.address, "allocations": {} })
}

/// The smallest file with one more field.
fn with(field: &str, value: Value) -> Value {
    let mut file = smallest();
    file[field] = value;
    file
}

fn with_allocation(address: Address, allocation: &Value) -> Value {
    with("allocations", json!({ address.to_string(): allocation }))
}

fn read(file: &Value) -> Result<Genesis, GenesisError> {
    Genesis::from_json(&serde_json::to_string_pretty(file).unwrap())
}

/// The balance that Alice has in a file which says `balance` of hers.
fn balance(balance: &Value) -> Result<Wei, GenesisError> {
    let genesis = read(&with_allocation(ALICE.address, &json!({ "balance": balance })))?;
    Ok(genesis.allocations[&ALICE.address].balance)
}

#[track_caller]
fn message(result: Result<impl std::fmt::Debug, GenesisError>) -> String {
    result.unwrap_err().to_string()
}

// ---- The file ----

#[test]
fn the_smallest_file_is_enough() {
    let genesis = read(&smallest()).unwrap();
    assert_eq!((genesis.chain_id, genesis.timestamp_ms), (1, TimestampMs(0)));
    assert_eq!((genesis.parameters.len(), genesis.validators.len(), genesis.allocations.len()), (0, 0, 0));
    for required in ["chainId", "timestampMs", "governance", "allocations"] {
        let mut file = smallest();
        file.as_object_mut().unwrap().remove(required);
        assert!(message(read(&file)).contains(&format!("missing field `{required}`")), "{required}");
    }
}

#[test]
fn a_file_survives_json() {
    let genesis = crate::samples::genesis();
    assert_eq!(Genesis::from_json(&genesis.to_json()).unwrap(), genesis);
    let mut draw = Draw::new("genesis files");
    for _ in 0..200 {
        let genesis = draw.genesis();
        let again = Genesis::from_json(&genesis.to_json()).unwrap();
        assert_eq!(again, genesis);
        assert_eq!(again.to_json(), genesis.to_json());
    }
}

#[test]
fn unknown_fields_are_refused() {
    let unknown = json!(1);
    assert!(message(read(&with("gasLimit", unknown.clone()))).contains("unknown field `gasLimit`"));
    let allocation = json!({ "balance": "1", "ballance": "2" });
    assert!(message(read(&with_allocation(ALICE.address, &allocation))).contains("unknown field `ballance`"));
    let mut validator = serde_json::to_value(crate::samples::validator(1)).unwrap();
    validator["stake"] = unknown;
    assert!(message(read(&with("validators", json!([validator])))).contains("unknown field `stake`"));
    // Names are exact.
    assert!(message(read(&with("chain_id", json!(1)))).contains("unknown field `chain_id`"));
}

/// Two entries for one key: serde alone keeps the last and says nothing.
#[test]
fn what_occurs_twice_is_refused() {
    let text = serde_json::to_string(&smallest()).unwrap();
    let allocations =
        |entries: &str| text.replace(r#""allocations":{}"#, &format!(r#""allocations":{{{entries}}}"#));
    let (lower, upper) =
        ("0x00000000000000000000000000000000000000aa", "0x00000000000000000000000000000000000000AA");
    let entry = |address: &str| format!(r#""{address}":{{"balance":"1"}}"#);

    assert!(Genesis::from_json(&allocations(&entry(lower))).is_ok());
    for second in [lower, upper, &lower[2..]] {
        let twice = allocations(&[entry(lower), entry(second)].join(","));
        let message = message(Genesis::from_json(&twice));
        assert!(message.contains("0x00000000000000000000000000000000000000AA occurs twice"), "{message}");
        assert!(message.contains("line 1"), "{message}");
    }
    let slots = |slots: &str| allocations(&format!(r#""{lower}":{{"balance":"1","storage":{{{slots}}}}}"#));
    assert!(Genesis::from_json(&slots(r#""0x10":"1","10":"2""#)).is_ok());
    assert!(message(Genesis::from_json(&slots(r#""0x10":"1","16":"2""#))).contains("16 occurs twice"));

    let parameters = r#""parameters":{"base_fee_floor_wei":1,"base_fee_floor_wei":2},"chainId""#;
    let twice = text.replace(r#""chainId""#, parameters);
    assert!(message(Genesis::from_json(&twice)).contains("base_fee_floor_wei occurs twice"));
    let twice = text.replace(r#""chainId""#, r#""chainId":2,"chainId""#);
    assert!(message(Genesis::from_json(&twice)).contains("duplicate field `chainId`"));
}

// ---- Amounts ----

#[test]
fn amounts_are_decimal_or_hexadecimal() {
    let ten_thousand = Wei(U256::from(10).pow(U256::from(22)));
    assert_eq!(balance(&json!("10000000000000000000000")).unwrap(), ten_thousand);
    assert_eq!(balance(&json!("10_000_000_000_000_000_000_000")).unwrap(), ten_thousand);
    assert_eq!(balance(&json!("0x21e19e0c9bab2400000")).unwrap(), ten_thousand);
    assert_eq!(balance(&json!("0x21E19E0C9BAB2400000")).unwrap(), ten_thousand);
    // No prefix, no hexadecimal: ten is not sixteen.
    assert_eq!(balance(&json!("10")).unwrap(), Wei(U256::from(10)));
    assert_eq!(balance(&json!("0x10")).unwrap(), Wei(U256::from(16)));
    for zero in [json!("0"), json!("0x0"), json!("000"), json!(0)] {
        assert_eq!(balance(&zero).unwrap(), Wei::ZERO);
    }
    assert_eq!(balance(&json!(u64::MAX)).unwrap(), Wei(U256::from(u64::MAX)));
}

#[test]
fn both_sides_of_256_bits() {
    let max = Wei(U256::MAX);
    assert_eq!(balance(&json!(U256::MAX.to_string())).unwrap(), max);
    assert_eq!(balance(&json!(format!("{:#x}", U256::MAX))).unwrap(), max);
    let above = "115792089237316195423570985008687907853269984665640564039457584007913129639936";
    for above in [json!(above), json!(format!("0x1{}", "0".repeat(64)))] {
        assert!(matches!(balance(&above), Err(GenesisError::Malformed(_))));
    }
}

#[test]
fn amounts_that_are_none_are_refused_with_their_place() {
    let bad = [
        json!(-1),
        json!("-1"),
        json!("+1"),
        json!(1.5),
        json!("1.5"),
        json!(1e22),
        json!("1e22"),
        json!(""),
        json!(" "),
        json!("_"),
        json!(" 1"),
        json!("0x"),
        json!("0x_"),
        json!("0xg"),
        json!("0b1"),
        json!("ff"),
        json!("1 ether"),
        json!(null),
        json!(true),
    ];
    for bad in bad {
        let message = message(balance(&bad));
        // The order of the file's fields depends on how serde_json was built; the place does not.
        let file = with_allocation(ALICE.address, &json!({ "balance": bad }));
        let text = serde_json::to_string_pretty(&file).unwrap();
        let line = text.lines().position(|line| line.contains("\"balance\"")).unwrap() + 1;
        assert!(message.contains(&format!("line {line} column")), "{bad}: {message}");
        assert!(message.contains("a whole number of wei below 2^256"), "{bad}: {message}");
    }
    for bad in [json!([1]), json!({})] {
        assert!(matches!(balance(&bad), Err(GenesisError::Malformed(_))));
    }
}

proptest! {
    #[test]
    fn any_amount_can_be_written_both_ways(limbs: [u64; 4], shift in 0..256usize) {
        let amount = U256::from_limbs(limbs) >> shift;
        prop_assert_eq!(balance(&json!(amount.to_string())).unwrap(), Wei(amount));
        prop_assert_eq!(balance(&json!(format!("{amount:#x}"))).unwrap(), Wei(amount));
        let json = serde_json::to_string(&Wei(amount)).unwrap();
        prop_assert_eq!(serde_json::from_str::<Wei>(&json).unwrap(), Wei(amount));
    }
}

#[test]
fn other_numbers_are_whole_too() {
    for field in ["chainId", "timestampMs"] {
        for bad in [json!(-1), json!(1.5), json!(1e30), json!("one"), json!(null)] {
            let message = message(read(&with(field, bad.clone())));
            assert!(message.contains("line ") && message.contains("column "), "{field} = {bad}: {message}");
        }
    }
}

#[test]
fn addresses_and_keys_have_their_length() {
    for bad in ["0x", "0x12", &"ab".repeat(19), &"ab".repeat(21), &"zz".repeat(20)] {
        assert!(matches!(read(&with("governance", json!(bad))), Err(GenesisError::Malformed(_))), "{bad}");
        let allocations = json!({ bad: { "balance": "1" } });
        assert!(matches!(read(&with("allocations", allocations)), Err(GenesisError::Malformed(_))), "{bad}");
    }
    let mut validator = serde_json::to_value(crate::samples::validator(1)).unwrap();
    validator["publicKey"] = json!("ab".repeat(31));
    assert!(matches!(read(&with("validators", json!([validator]))), Err(GenesisError::Malformed(_))));
}

// ---- Limits ----

#[test]
fn chain_ids_that_every_client_can_hold() {
    let last = (1 << 53) - 1;
    for good in [1, last] {
        assert_eq!(read(&with("chainId", json!(good))).unwrap().chain_id, good);
    }
    for bad in [0, last + 1, u64::MAX] {
        let result = read(&with("chainId", json!(bad)));
        assert!(matches!(result, Err(GenesisError::ChainId { given }) if given == bad), "{bad}");
    }
}

#[test]
fn parameters_have_bounds() {
    for parameter in params::PARAMETERS {
        let Parameter { name, min, max, .. } = parameter;
        let read_value = |value: u64| {
            // The widest neighbours, so that only this parameter's own bounds decide.
            let mut parameters = json!({
                "block_gas_max": 120_000_000,
                "cron_block_gas_max": 5_000_000,
                "reserved_block_gas_max": 735_000_000,
                "second_effort_high": 0,
                "second_effort_medium": 0,
                "second_effort_shared": 0,
            });
            parameters[name] = json!(value);
            read(&with("parameters", parameters)).map(|genesis| genesis.parameters().unwrap().get(parameter))
        };
        assert_eq!(read_value(min).unwrap(), min, "{name}");
        assert_eq!(read_value(max).unwrap(), max, "{name}");
        for bad in min.checked_sub(1).into_iter().chain([max + 1, u64::MAX]) {
            let message = message(read_value(bad));
            assert_eq!(message, format!("parameters: {name} = {bad} is outside {min}..={max}"));
        }
    }
}

#[test]
fn unknown_parameters_are_refused_with_those_that_exist() {
    let message = message(read(&with("parameters", json!({ "block_gas": 30_000_000 }))));
    assert!(message.contains(r#"no parameter named "block_gas""#), "{message}");
    assert!(message.contains("block_gas_max") && message.contains("spare_block_gas_max"), "{message}");
}

#[test]
fn cron_takes_at_most_half_a_block() {
    let pair = |cron: u64, block: u64| {
        read(&with("parameters", json!({ "cron_block_gas_max": cron, "block_gas_max": block })))
    };
    assert!(pair(20_000_000, 40_000_000).is_ok(), "the file has no order: each is above a default alone");
    assert!(pair(5_000_000, 10_000_000).is_ok());
    let refused = pair(20_000_001, 40_000_000).unwrap_err();
    assert!(matches!(
        refused,
        GenesisError::Parameter(ParameterError::CronAboveHalfBlock { cron: 20_000_001, block: 40_000_000 })
    ));
    // One alone is held against the other's default.
    assert!(read(&with("parameters", json!({ "block_gas_max": 30_000_000 }))).is_ok());
    assert!(read(&with("parameters", json!({ "block_gas_max": 29_999_999 }))).is_err());
}

#[test]
fn the_chains_own_accounts_cannot_be_allocated() {
    for own in SYSTEM_ACCOUNTS.into_iter().chain([BLOCK_HASH_HISTORY, DEVELOPER_DOOR]) {
        let result = read(&with_allocation(own, &json!({ "balance": "1" })));
        assert!(matches!(result, Err(GenesisError::SystemAccount { address }) if address == own), "{own}");
    }
    let neighbour = address!("0x000000000000000000000000000000000000a100");
    assert!(read(&with_allocation(neighbour, &json!({ "balance": "1" }))).is_ok());
}

#[test]
fn both_sides_of_the_code_limit() {
    let of_size = |bytes: usize| {
        read(&with_allocation(CONTRACT, &json!({ "balance": "0", "code": Bytes::from(vec![0x5b; bytes]) })))
    };
    assert!(of_size(CODE_BYTES_MAX).unwrap().state().is_ok());
    let refused = of_size(CODE_BYTES_MAX + 1).unwrap_err();
    assert!(matches!(
        refused,
        GenesisError::CodeTooLarge { address: CONTRACT, given } if given == CODE_BYTES_MAX + 1
    ));
}

#[test]
fn both_sides_of_all_the_money_there_can_be() {
    let two = |first: U256, second: U256| {
        let allocations = json!({
            ALICE.address.to_string(): { "balance": first.to_string() },
            BOB.address.to_string(): { "balance": second.to_string() },
        });
        read(&with("allocations", allocations))
    };
    let one = U256::from(1);
    assert_eq!(two(U256::MAX - one, one).unwrap().supply().unwrap(), Wei(U256::MAX));
    assert!(matches!(two(U256::MAX, one), Err(GenesisError::SupplyTooLarge)));
    assert!(matches!(two(U256::MAX, U256::MAX), Err(GenesisError::SupplyTooLarge)));
}

/// Validators with keys of their own.
fn validators(count: u64) -> Vec<Validator> {
    let with_key =
        |number: u64| Validator { public_key: U256::from(number).into(), ..crate::samples::validator(0) };
    (1..=count).map(with_key).collect()
}

#[test]
fn both_sides_of_the_number_of_validators() {
    let of_count = |count: u64| read(&with("validators", serde_json::to_value(validators(count)).unwrap()));
    assert_eq!(of_count(256).unwrap().validators.len(), VALIDATORS_MAX);
    assert!(matches!(of_count(257), Err(GenesisError::TooManyValidators { given: 257 })));
}

#[test]
fn a_validator_key_occurs_once() {
    let mut list = validators(3);
    list[2].public_key = list[0].public_key;
    let result = read(&with("validators", serde_json::to_value(&list).unwrap()));
    let expected = list[0].public_key;
    assert!(matches!(result, Err(GenesisError::DuplicateValidator { public_key }) if public_key == expected));
    // Names and recipients may be shared.
    assert!(read(&with("validators", serde_json::to_value(validators(3)).unwrap())).is_ok());
}

#[test]
fn a_developers_chain_has_no_validators_and_says_what_it_is() {
    let is_developer = |genesis: &Genesis| {
        genesis::is_developer(&genesis.state().unwrap()[&StateKey::Meta(Meta::Genesis)]).unwrap()
    };
    let developer = read(&with("developer", json!(true))).unwrap();
    assert!(developer.developer && is_developer(&developer));
    assert_eq!(Genesis::from_json(&developer.to_json()).unwrap(), developer);
    let door = &developer.state().unwrap()[&StateKey::Account(DEVELOPER_DOOR)];
    assert_eq!(Account::decode(door).unwrap().nonce, 1);

    for file in [smallest(), with("developer", json!(false))] {
        let network = read(&file).unwrap();
        assert!(!network.developer && !is_developer(&network));
        assert!(!network.to_json().contains("developer"), "absent where it is false");
        assert!(!network.state().unwrap().contains_key(&StateKey::Account(DEVELOPER_DOOR)));
    }
    assert!(!is_developer(&Genesis { validators: validators(3), ..read(&smallest()).unwrap() }));
    let both = Genesis { validators: validators(3), ..developer };
    assert!(matches!(both.check(), Err(GenesisError::DeveloperWithValidators { given: 3 })));
}

/// The root of a fork covers the block that it stands on, and no network can be one.
#[test]
fn fork_09_a_genesis_names_the_block_below() {
    let below = json!({ "chainId": 5, "number": 7, "hash": B256::repeat_byte(9) });
    let mut file = with("developer", json!(true));
    file["fork"] = below;
    let forked = read(&file).unwrap();
    assert_eq!(Genesis::from_json(&forked.to_json()).unwrap(), forked);
    let meta = |genesis: &Genesis| genesis.state().unwrap()[&StateKey::Meta(Meta::Genesis)].to_vec();
    let stored = meta(&forked);
    assert!(genesis::is_developer(&stored).unwrap());
    assert_eq!(genesis::fork_of(&stored).unwrap(), forked.fork);
    for length in 0..stored.len() - 1 {
        // Where the facts of a network would end, there is nothing to miss.
        let is_network = genesis::is_developer(&stored[..length]) == Ok(false);
        assert!(is_network || genesis::fork_of(&stored[..length]).is_err(), "{length}");
    }
    assert!(genesis::fork_of(&[&stored[..], &[0]].concat()).is_err(), "one byte more");
    let plain = Genesis { fork: None, ..forked.clone() };
    assert_eq!(genesis::fork_of(&meta(&plain)), Ok(None));
    assert!(!plain.to_json().contains("fork"), "absent where there is none");
    let network = Genesis { developer: false, ..forked };
    assert!(matches!(network.check(), Err(GenesisError::ForkWithoutDeveloper { number: 7 })));
}

#[test]
fn damaged_facts_about_a_genesis_are_no_facts() {
    let developer = read(&with("developer", json!(true))).unwrap();
    let meta = developer.state().unwrap()[&StateKey::Meta(Meta::Genesis)].to_vec();
    for length in 0..meta.len() - 1 {
        assert!(genesis::is_developer(&meta[..length]).is_err(), "{length}");
    }
    assert!(genesis::is_developer(&[&meta[..], &[1]].concat()).is_err(), "one byte more");
    for flag in [0, 2, 255] {
        let other = [&meta[..meta.len() - 1], &[flag]].concat();
        assert!(genesis::is_developer(&other).is_err(), "{flag}");
    }
}

/// EIP-161 would take such an account for empty and wipe its storage at the first touch.
#[test]
fn storage_needs_an_account_that_is_alive() {
    let with_storage = |mut allocation: Value| {
        allocation["storage"] = json!({ "0x1": "0x2" });
        read(&with_allocation(CONTRACT, &allocation))
    };
    let result = with_storage(json!({ "balance": "0" }));
    assert!(matches!(result, Err(GenesisError::StorageOfEmptyAccount { address: CONTRACT })));
    for alive in [
        json!({ "balance": "1" }),
        json!({ "balance": "0", "nonce": 1 }),
        json!({ "balance": "0", "code": "0x00" }),
    ] {
        assert!(with_storage(alive).is_ok());
    }
}

/// A genesis built in code goes through the same checks as one from a file.
#[test]
fn state_is_checked_first() {
    let bad = Genesis { chain_id: 0, ..crate::samples::genesis() };
    assert!(matches!(bad.state(), Err(GenesisError::ChainId { given: 0 })));
    let parameters = [("block_gas_max".to_owned(), 1)].into();
    let bad = Genesis { parameters, ..crate::samples::genesis() };
    assert!(bad.state().is_err() && bad.header(StateCommitment::default()).is_err());
}

// ---- The state at block 0 ----

fn account(genesis: &Genesis, address: Address) -> Option<Account> {
    genesis.state().unwrap().get(&StateKey::Account(address)).map(|stored| Account::decode(stored).unwrap())
}

#[test]
fn a_contract_starts_at_nonce_1() {
    let with_nonce = |nonce: u64, code: &'static [u8]| {
        let allocation = Allocation {
            balance: Wei(U256::from(5)),
            nonce,
            code: Bytes::from_static(code),
            ..Default::default()
        };
        let genesis = Genesis { allocations: [(CONTRACT, allocation)].into(), ..crate::samples::genesis() };
        account(&genesis, CONTRACT).unwrap()
    };
    let code = b"\x60\x00";
    let expected =
        |nonce| Account { nonce, balance: U256::from(5), code_hash: keccak256(code), is_keyed: false };
    for (given, stored) in [(0, 1), (1, 1), (2, 2), (u64::MAX, u64::MAX)] {
        assert_eq!(with_nonce(given, code), expected(stored));
        assert_eq!(with_nonce(given, b"").nonce, given, "a person's nonce is as given");
    }
    assert_eq!(with_nonce(0, b"").code_hash, KECCAK256_EMPTY);
}

#[test]
fn code_is_stored_under_its_hash() {
    let genesis = crate::samples::genesis();
    let state = genesis.state().unwrap();
    let code = &genesis.allocations[&CONTRACT].code;
    assert_eq!(state[&StateKey::Code(keccak256(code))], *code);
    assert!(!state.contains_key(&StateKey::Code(KECCAK256_EMPTY)), "no code is not stored");
}

#[test]
fn zeroes_are_not_stored() {
    let genesis = crate::samples::genesis();
    let state = genesis.state().unwrap();
    let slot =
        |slot: U256| state.get(&StateKey::Slot(CONTRACT, slot)).map(|stored| decode_slot(stored).unwrap());
    assert_eq!(slot(U256::ZERO), Some(U256::from(5)));
    assert_eq!(slot(U256::MAX), Some(U256::MAX));
    assert_eq!(genesis.allocations[&CONTRACT].storage[&U256::from(2)], U256::ZERO);
    assert_eq!(slot(U256::from(2)), None);
    assert!(state.values().all(|value| !value.is_empty()));

    let nobody = Genesis { allocations: [(BOB.address, Allocation::default())].into(), ..genesis };
    assert_eq!(account(&nobody, BOB.address), None, "an empty account does not exist");
}

#[test]
fn the_chains_own_accounts_are_alive() {
    let genesis = crate::samples::genesis();
    let state = genesis.state().unwrap();
    for own in SYSTEM_ACCOUNTS.into_iter().chain([BLOCK_HASH_HISTORY]) {
        let account = account(&genesis, own).expect("it exists");
        assert_eq!((account.nonce, account.balance), (1, U256::ZERO), "{own}");
        assert_ne!(account.code_hash, KECCAK256_EMPTY, "{own}");
        let code = &state[&StateKey::Code(account.code_hash)];
        assert_eq!(keccak256(code), account.code_hash, "{own}");
    }
    let history = account(&genesis, BLOCK_HASH_HISTORY).unwrap();
    // The hash of the code that EIP-2935 deploys.
    assert_eq!(
        history.code_hash,
        alloy_primitives::b256!("0x6e49e66782037c0555897870e29fa5e552daf4719552131a0abce779daec0a5d")
    );
}

/// What is in state is what the file gave away, and nothing is in state that the file does not explain.
#[test]
fn the_money_in_state_is_the_supply() {
    let mut draw = Draw::new("supplies");
    for genesis in (0..100).map(|_| draw.genesis()).chain([crate::samples::genesis()]) {
        let state = genesis.state().unwrap();
        let mut sum = U256::ZERO;
        let (mut accounts, mut slots) = (0, 0);
        for (key, value) in &state {
            match key {
                StateKey::Account(_) => {
                    accounts += 1;
                    sum += Account::decode(value).unwrap().balance;
                }
                StateKey::Slot(address, _) => slots += usize::from(*address != PARAMETERS),
                StateKey::Code(hash) => assert_eq!(keccak256(value), *hash),
                StateKey::Meta(Meta::Genesis) => {}
                StateKey::Body(_) | StateKey::Calendar(_) => panic!("{key:?} in an empty calendar"),
                StateKey::Meta(Meta::NonceSweep)
                | StateKey::Nonce(..)
                | StateKey::NonceLog(..)
                | StateKey::AccountKey(_) => panic!("{key:?} before any transaction"),
            }
        }
        assert_eq!(Wei(sum), genesis.supply().unwrap());
        assert_eq!(accounts, genesis.allocations.len() + SYSTEM_ACCOUNTS.len() + 1);
        let values = genesis.allocations.values().flat_map(|allocation| allocation.storage.values());
        assert_eq!(slots, values.filter(|value| !value.is_zero()).count());
    }
}

#[test]
fn parameters_and_governance_are_in_state() {
    let genesis = crate::samples::genesis();
    let state = genesis.state().unwrap();
    let slot = |slot: u64| {
        let stored = state.get(&StateKey::Slot(PARAMETERS, U256::from(slot)));
        stored.map_or(U256::ZERO, |stored| decode_slot(stored).unwrap())
    };
    assert_eq!(slot(params::GOVERNANCE_SLOT), U256::from_be_slice(CAROL.address.as_slice()));
    assert_eq!(slot(params::GOVERNANCE_PENDING_SLOT), U256::ZERO);
    let in_force = genesis.parameters().unwrap();
    for parameter in params::PARAMETERS {
        assert_eq!(
            parameter.from_slot_value(slot(parameter.slot)),
            in_force.get(parameter),
            "{}",
            parameter.name
        );
    }
    assert_eq!(in_force.get(params::SECOND_SHARED_EFFORT), 0, "a zero that is meant is kept");
    assert_eq!(in_force.get(params::BASE_FEE_FLOOR_WEI), 7);
}

/// The root covers what the file says beyond its allocations; a validator's name is for people only.
#[test]
fn the_state_tells_chains_apart() {
    let genesis = crate::samples::genesis();
    let state = |genesis: &Genesis| genesis.state().unwrap();
    let base = state(&genesis);
    let mut other_key = genesis.clone();
    other_key.validators[1].public_key = B256::repeat_byte(9);
    let mut other_recipient = genesis.clone();
    other_recipient.validators[1].fee_recipient = Address::repeat_byte(9);
    let mut other_order = genesis.clone();
    other_order.validators.reverse();
    let without_validators = Genesis { validators: vec![], ..genesis.clone() };
    let developer = Genesis { developer: true, ..without_validators.clone() };
    assert_ne!(state(&developer), state(&without_validators));
    for other in [
        Genesis { chain_id: genesis.chain_id + 1, ..genesis.clone() },
        Genesis { timestamp_ms: TimestampMs(genesis.timestamp_ms.0 + 1), ..genesis.clone() },
        Genesis { governance: BOB.address, ..genesis.clone() },
        Genesis { validators: vec![], ..genesis.clone() },
        Genesis { parameters: Default::default(), ..genesis.clone() },
        Genesis { allocations: Default::default(), ..genesis.clone() },
        other_key,
        other_recipient,
        other_order,
    ] {
        assert_ne!(state(&other), base, "{other:?}");
    }
    let mut renamed = genesis;
    renamed.validators[0].name = "somebody".into();
    assert_eq!(state(&renamed), base);
}

#[test]
fn the_first_header_follows_the_file() {
    let genesis = crate::samples::genesis();
    let commitment = StateCommitment { state_root: B256::repeat_byte(7), ..Default::default() };
    let header = genesis.header(commitment).unwrap();
    assert_eq!((header.number, header.parent_hash, header.timestamp), (0, B256::ZERO, genesis.timestamp_ms));
    assert_eq!(header.commitment, commitment);
    assert_eq!((header.transactions_root, header.receipts_root), (transactions_root([]), receipts_root(&[])));
    assert_eq!(header.base_fee, params::BASE_FEE_INITIAL);
    let parameters =
        [("base_fee_floor_wei".to_owned(), 2_000_000_000), ("block_gas_max".to_owned(), 60_000_000)].into();
    let header = Genesis { parameters, ..genesis }.header(commitment).unwrap();
    assert_eq!((header.base_fee.0, header.gas_limit.0), (2_000_000_000, 60_000_000));
}
