//! What it costs to keep others out, computed from the parameters in force, against what honest use of the same room
//! costs. `docs/denial-prices.md` holds the table; this test keeps it true.
//!
//! Whoever builds a lane or a door adds its rows to [`rows`].

use crate::attacks::{LEAST_RUN_GAS, NOBODY, cheap_order, flood, largest_chain, wide_chain};
use crate::support::{callbacks, cron::*, market, native::Key, signed as signatures, *};
use alloy_primitives::U256;
use alloy_sol_types::SolEvent as _;
use almanac_primitives::{
    Gas, GasPrice, Lane, Receipt, ScheduleId, TimestampMs,
    params::{
        BASE_FEE_FLOOR_WEI, BLOCK_GAS_MAX, CALLBACK_EFFORT_MIN, CALLBACK_FEE_FLOOR_WEI,
        CALLBACK_HIGH_PERCENT, CALLBACK_LOW_EFFORT_MAX, CALLBACK_LOW_PERCENT, CALLBACK_MEDIUM_PERCENT,
        CALLBACK_REFUND_BPS, CRON_BLOCK_EXHAUSTIONS_MAX, CRON_BLOCK_GAS_MAX, CRON_RUN_GAS_LARGEST,
        CRON_RUN_GAS_MIN, EFFORT_GAS, MARKET_LOOKS_MAX, MARKET_READY_MAX, MARKET_RUN_GAS_LEAST, Parameter,
        Parameters, SECOND_HIGH_EFFORT, SECOND_MEDIUM_EFFORT, SECOND_SHARED_EFFORT,
        SIGNED_CREATES_PER_SECOND, SIGNED_DELETES_PER_SECOND, SIGNED_SIGNS_PER_SECOND, SPARE_BLOCK_GAS_MAX,
        SPARE_BLOCK_LOOKS_MAX,
    },
};
use almanac_schedule::{Budget, looks_max, runs_max, signed::Bucket};
use std::{fs, path::PathBuf};

/// The lowest price that gas can have.
const FLOOR: GasPrice = GasPrice(BASE_FEE_FLOOR_WEI.default as u128);
/// The price of gas in a busy time.
const BUSY: GasPrice = GasPrice(10_000_000_000);

/// Blocks of a day, at the two block times that networks are measured with.
const DAYS: [(&str, u64); 2] = [("500 ms", 2 * 86_400), ("100 ms", 10 * 86_400)];

/// One way to keep others out of a block's room.
struct Row {
    what: String,
    /// Gas that the attacker loses for one blocked block, and at which price, when the block's price is the given one.
    denial: Box<dyn Fn(GasPrice) -> (Gas, GasPrice)>,
    /// Gas of honest users who fill the same room.
    honest: Gas,
    /// What the figures leave out, all of it to the attacker's disadvantage.
    note: String,
}

/// Parameters under which the prices are computed.
struct Case {
    /// Introduces its table.
    title: String,
    parameters: Parameters,
    /// A chain with these parameters.
    chain: fn() -> TestChain,
}

/// The parameters that a chain starts with, and the largest that governance may choose for its lanes.
fn cases() -> [Case; 2] {
    let mut largest = Parameters::default();
    for parameter in [BLOCK_GAS_MAX, CRON_BLOCK_GAS_MAX, CRON_BLOCK_EXHAUSTIONS_MAX] {
        largest.load(parameter, parameter.max);
    }
    [(Parameters::default(), TestChain::new as fn() -> TestChain), (largest, largest_chain)].map(
        |(parameters, chain)| {
            let named = |parameter| parameters.get(parameter) / 1_000_000;
            let title = format!(
                "`block_gas_max` {} M, `cron_block_gas_max` {} M, `cron_block_exhaustions_max` {}:",
                named(BLOCK_GAS_MAX),
                named(CRON_BLOCK_GAS_MAX),
                parameters.get(CRON_BLOCK_EXHAUSTIONS_MAX)
            );
            Case { title, parameters, chain }
        },
    )
}

/// Every way that is known, of every lane that exists.
fn rows(case: &Case, created: Gas) -> Vec<Row> {
    let parameters = &case.parameters;
    let lane = Gas(parameters.get(CRON_BLOCK_GAS_MAX));
    let block = parameters.block_gas_max();
    let (held, paid) = tightest_lane((case.chain)(), lane);
    let small = Gas(lane.0.min(runs_max(Lane::Cron, parameters) * CRON_RUN_GAS_MIN));
    // Series that a block has let skip may be in the way again when they are late again.
    let skipping = parameters.get(CRON_BLOCK_EXHAUSTIONS_MAX);
    let looks = Gas((looks_max(Lane::Cron, parameters, 0, 1) - skipping) * created.0);
    vec![
        Row {
            what: "cron lane: runs that pay for their whole limit".into(),
            denial: Box::new(move |price| (lane, price)),
            honest: lane,
            note: "and the gas of creating them".into(),
        },
        Row {
            what: "cron lane: runs that want their unused gas back".into(),
            denial: Box::new(move |price| (Gas(lane.0 / 2), price)),
            honest: lane,
            note: "and the gas of creating them".into(),
        },
        Row {
            what: "cron lane: runs that are as small as can be".into(),
            denial: Box::new(move |price| (small, price)),
            honest: lane,
            note: "and the gas of creating them".into(),
        },
        Row {
            what: format!("cron lane: runs that want it back, so cut that the lane closes at {} M gas", millions(held)),
            denial: Box::new(move |price| (paid, price)),
            honest: held,
            note: "honest runs of these sizes fill it as soon; the part that stays free is too small for the next".into(),
        },
        Row {
            what: "cron lane: jobs that cannot pay or skip, made at the floor".into(),
            denial: Box::new(move |_| (looks, FLOOR)),
            honest: lane,
            note: format!(
                "and the escrow that is locked until then; each can be used once, but for {skipping} that skip"
            ),
        },
        Row {
            what: "user transactions: a full block".into(),
            denial: Box::new(move |price| (block, price)),
            honest: block,
            note: "one block: each full one raises the price by an eighth, so a day at one price cannot be had"
                .into(),
        },
    ]
}

/// Gas that each of many equal jobs costs whoever makes them in one transaction: the cheapest way.
fn creation_gas() -> Gas {
    let gas = [1, 101].map(|count| {
        let mut chain = wide_chain();
        let order = cheap_order(&chain);
        let transaction = flood(&chain, person(6), count, &order, 100_000_000);
        let receipt = chain.produce(vec![transaction]).receipt(0).clone();
        assert_eq!(events::<JobScheduled>(&receipt.logs).len() as u64, count);
        receipt.gas_used.0
    });
    Gas((gas[1] - gas[0]) / 100)
}

/// The least that closes the lane for the largest job behind it: what it asks for, and what is paid for it by jobs
/// that use next to nothing and want the rest back. Tried out on a chain.
fn tightest_lane(mut chain: TestChain, lane: Gas) -> (Gas, Gas) {
    let due = chain.next_seconds() + HOUR;
    let order = order(&chain).calling(NOBODY, [1, 2, 3, 4]).at(due).refunding(NOBODY).with_options(1);
    let order = order.with_value(U256::from(10u64.pow(17)));
    let giants = (lane.0 / CRON_RUN_GAS_LARGEST) as usize;
    let mut limits = vec![CRON_RUN_GAS_LARGEST; giants + 1];
    limits[giants - 1] = LEAST_RUN_GAS;
    let ids: Vec<_> =
        limits.iter().map(|gas| chain.schedule(person(0), &order.clone().gas(*gas)).unwrap()).collect();
    let produced = chain.at(due);
    assert_eq!(produced.ran(), ids[..giants], "the last is kept out");
    let paid = produced.output.burned.0 / U256::from(base_fee(&produced.output).0);
    (Gas(limits[..giants].iter().sum()), Gas(paid.to()))
}

/// Holding a lane or a block costs at least half of what using it costs, and the page says how much that is.
#[test]
fn denying_a_lane_costs_at_least_half_of_filling_it() {
    let created = creation_gas();
    let mut computed = String::from("\n");
    for case in cases() {
        let rows = rows(&case, created);
        for row in &rows {
            for price in [FLOOR, BUSY] {
                let (gas, paid_at) = (row.denial)(price);
                let (denial, honest) = (gas.cost(paid_at).0, row.honest.cost(price).0);
                let (title, what) = (&case.title, &row.what);
                assert!(denial * U256::from(2) >= honest, "{title} {what}: {denial} of {honest} at {price}");
            }
        }
        computed += &format!("{}\n{}", case.title, table(&rows));
    }
    computed += &closing_table();
    computed += &callback_table();
    computed += &market_table();
    computed += &signatures_table();
    let page = fs::read_to_string(path()).expect("docs/denial-prices.md is part of the repository");
    let (head, rest) = page.split_once(BEGIN).expect("the table has a beginning");
    let (recorded, tail) = rest.split_once(END).expect("the table has an end");
    if is_update() {
        fs::write(path(), format!("{head}{BEGIN}{computed}{END}{tail}")).unwrap();
        return;
    }
    assert_eq!(
        recorded, computed,
        "the table of docs/denial-prices.md is not what the parameters say. Run\n\
         UPDATE_VECTORS=1 cargo test -p almanac-exec --test all denying_a_lane\nand review the difference."
    );
}

const BEGIN: &str = "<!-- computed: begin -->\n";
const END: &str = "<!-- computed: end -->";

fn path() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/denial-prices.md").into()
}

#[allow(clippy::disallowed_methods, reason = "decides whether a file is rewritten, never what it says")]
fn is_update() -> bool {
    std::env::var("UPDATE_VECTORS").is_ok_and(|value| value == "1")
}

fn table(rows: &[Row]) -> String {
    let mut out = String::from("\n| way | base fee | gas lost per block | denial per block");
    DAYS.iter().for_each(|(time, _)| out += &format!(" | per day at {time}"));
    out += " | honest use per block | denial / honest | left out |\n|---|---|---|---|---|---|---|---|---|\n";
    for row in rows {
        for price in [FLOOR, BUSY] {
            let (gas, paid_at) = (row.denial)(price);
            let (denial, honest) = (gas.cost(paid_at).0, row.honest.cost(price).0);
            let days = DAYS.map(|(_, blocks)| coins(denial * U256::from(blocks)));
            let fee = price.0 / 100_000_000;
            out += &format!(
                "| {} | {}.{} gwei | {} M | {} | {} | {} | {} % | {} |\n",
                row.what,
                fee / 10,
                fee % 10,
                millions(gas),
                coins(denial),
                days.join(" | "),
                coins(honest),
                denial * U256::from(100) / honest,
                row.note,
            );
        }
    }
    out + "\n"
}

/// Lanes of these sizes: the smallest, the default and the largest that governance may choose.
const LANES: [u64; 3] = [CRON_BLOCK_GAS_MAX.min, CRON_BLOCK_GAS_MAX.default, CRON_BLOCK_GAS_MAX.max];

/// Blocks over which the use of a lane is averaged.
const BLOCKS: u64 = 1_000;

/// What a lane that stops at the first job that does not fit can be held with, by jobs that are cut for it.
fn closing_table() -> String {
    let mut out = String::from(
        "Jobs so cut that the lane closes early, as a part of the whole lane, on an average of many blocks:\n\n\
         | lane | least gas that closes it | paid where half is given back | rule: what is left is added to the next \
         block | paid |\n|---|---|---|---|---|\n",
    );
    for lane in LANES {
        let [stop, carry] = [false, true].map(|is_carried| mean_held(lane, is_carried));
        let part = |gas: u64| format!("{} M | {} %", millions(Gas(gas)), gas / 2 * 100 / lane);
        out += &format!("| {} M | {} | {} |\n", millions(Gas(lane)), part(stop), part(carry));
    }
    out + "\n"
}

/// Gas that each block of a lane takes on average of a queue that is cut to close it as early as can be: giants, and
/// a dwarf before the last that would have fitted. With `is_carried`, what a block leaves is added to the next.
fn mean_held(lane: u64, is_carried: bool) -> u64 {
    let giants = (lane / CRON_RUN_GAS_LARGEST - 1).max(1);
    let cycle = (0..=giants).map(|n| if n == giants { LEAST_RUN_GAS } else { CRON_RUN_GAS_LARGEST });
    let mut queue = cycle.cycle().peekable();
    let (mut held, mut left) = (0, 0);
    for _ in 0..BLOCKS {
        let gas = lane + if is_carried { left } else { 0 };
        let mut budget = Budget::new(Gas(gas));
        left = gas;
        while let Some(taken) = queue.next_if(|next| budget.take(Gas(*next))) {
            left -= taken;
            held += taken;
        }
    }
    held / BLOCKS
}

/// One way to keep others out of booked seconds, or out of what is left for Low.
struct Hold {
    what: String,
    /// What the attacker pays for one second, in effort times its multiplier in percent.
    denial: u64,
    /// What honest users pay for the same room.
    honest: u64,
    note: String,
}

/// Every way that is known to hold callbacks off, for one second each.
fn holds(parameters: &Parameters) -> Vec<Hold> {
    let [high, medium, shared] =
        [SECOND_HIGH_EFFORT, SECOND_MEDIUM_EFFORT, SECOND_SHARED_EFFORT].map(|part| parameters.get(part));
    let [high_percent, medium_percent, low_percent] =
        [CALLBACK_HIGH_PERCENT, CALLBACK_MEDIUM_PERCENT, CALLBACK_LOW_PERCENT]
            .map(|percent| parameters.get(percent));
    let second = (high + shared) * high_percent + medium * medium_percent;
    // Medium is cheaper, and the shared part is there once.
    let cheapest = high * high_percent + (medium + shared) * medium_percent;
    let kept = 10_000 - parameters.get(CALLBACK_REFUND_BPS);
    let hold = |what: &str, denial, honest, note: &str| Hold {
        what: what.into(),
        denial,
        honest,
        note: note.into(),
    };
    let mut holds = vec![
        hold("one second, all by its own class", second, second, "and the gas of creating them"),
        hold(
            "one second's High, the shared part by way of Medium",
            cheapest,
            second,
            "and the gas of creating them",
        ),
        hold(
            "one second's Medium",
            (medium + shared) * medium_percent,
            (medium + shared) * medium_percent,
            "Medium moves to the next second with room: only a full day keeps it out",
        ),
        hold(
            "one second, filled that way and cancelled",
            cheapest * kept / 10_000,
            cheapest,
            &format!(
                "and the gas of creating and cancelling; then the room is anybody's again; {} % of a second by its own \
                 class",
                cheapest * kept / 100 / second
            ),
        ),
    ];
    holds.push(hold(
        "one second's Medium, by transactions that wait for it and that nobody signs",
        (medium + shared) * medium_percent * kept / 10_000,
        (medium + shared) * medium_percent,
        "and the gas of creating them; unlike a cancelled one, each holds its room until its second",
    ));
    let low = parameters.get(CALLBACK_LOW_EFFORT_MAX);
    let least = parameters.get(CALLBACK_EFFORT_MIN);
    let spare = parameters.get(SPARE_BLOCK_GAS_MAX) / EFFORT_GAS;
    for (time, blocks) in DAYS.map(|(time, blocks)| (time, blocks / 86_400)) {
        // The block that runs the High has no room for them; each of the others takes one.
        holds.push(Hold {
            what: format!(
                "spare lane at {time}: {SPARE_BLOCK_LOOKS_MAX} Lows as large as can be in front, the least High each second"
            ),
            denial: least * high_percent + (blocks - 1) * low * low_percent,
            honest: blocks * spare * low_percent,
            note: format!("the first {SPARE_BLOCK_LOOKS_MAX}, and the gas of creating them"),
        });
    }
    holds
}

/// Prices of the reserved and the spare lane, and that none is below half of honest use.
fn callback_table() -> String {
    let parameters = Parameters::default();
    try_cheapest_second();
    let mut out = String::from(
        "Callbacks, whose price is never below `callback_fee_floor_wei`, for one second and for one hour:\n\n\
         | way | base fee | denial per second | per hour | honest use per second | denial / honest | left out |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for hold in holds(&parameters) {
        let Hold { what, denial, honest, note } = hold;
        assert!(denial * 2 >= honest, "{what}: {denial} of {honest}");
        for base_fee in [FLOOR, BUSY] {
            let price = base_fee.0.max(parameters.get(CALLBACK_FEE_FLOOR_WEI).into());
            let wei = |units: u64| U256::from(units * EFFORT_GAS) * U256::from(price) / U256::from(100);
            let fee = base_fee.0 / 100_000_000;
            out += &format!(
                "| {what} | {}.{} gwei | {} | {} | {} | {} % | {note} |\n",
                fee / 10,
                fee % 10,
                coins(wei(denial)),
                coins(wei(denial) * U256::from(HOUR)),
                coins(wei(honest)),
                denial * 100 / honest,
            );
        }
    }
    out + "\n"
}

/// Closes a second for High the cheap way, on a chain: nothing that could be booked is left, of either class.
fn try_cheapest_second() {
    use callbacks::{Callbacks, Priority, callback};
    let mut chain = Callbacks::new();
    let at = chain.now() + HOUR;
    for (priority, effort) in [
        (Priority::High, 9_999),
        (Priority::High, 9_999),
        (Priority::Medium, 9_999),
        (Priority::Medium, 5_001),
    ] {
        assert_eq!(chain.schedule(&callback(priority, at, effort)).unwrap().timestamp, at);
    }
    assert_eq!([Priority::High, Priority::Medium].map(|priority| chain.available(at, priority)), [2, 0]);
}

/// Prices of the market lane. It has no room of its own: what it does not use is the users'. Holding its places costs at
/// least half of filling them, and so does delaying those that are met later, in a busy time too.
fn market_table() -> String {
    let parameters = Parameters::default();
    let (block, ready) = (parameters.block_gas_max(), parameters.get(MARKET_READY_MAX));
    let places = Gas(ready * MARKET_RUN_GAS_LEAST);
    let made = market_creation_gas();
    let met = Gas(parameters.get(MARKET_LOOKS_MAX) * made.0);
    let stale = Gas((parameters.get(MARKET_LOOKS_MAX) + ready) * made.0);
    let row = |what: &str, denial: Box<dyn Fn(GasPrice) -> (Gas, GasPrice)>, honest, note: &str| Row {
        what: what.into(),
        denial,
        honest,
        note: note.into(),
    };
    let holding = [
        row(
            "a full block of runs that bid most",
            Box::new(move |price| (block, price)),
            block,
            "and the gas of creating them; each full block raises the price by an eighth",
        ),
        row(
            "all places of a block, by the smallest runs",
            Box::new(move |price| (places, price)),
            block,
            "and the gas of creating them; users keep the rest of the block",
        ),
    ];
    let delaying = [
        row(
            "those that are met later: others in front that cannot pay, made at the floor",
            Box::new(move |_| (met, FLOOR)),
            places,
            "and the deposits that are locked until then; a delay by one block, during which nothing expires",
        ),
        row(
            "all of the lane: others in front that cancelAll has ended, made at the floor",
            Box::new(move |_| (stale, FLOOR)),
            places,
            "the same, for those that wait too: their window goes on",
        ),
        row(
            "all of the lane: others in front that the first of them cancels in its block, made at the floor",
            Box::new(move |_| (stale, FLOOR)),
            places,
            "the same: a place that is not used goes to the next, so all that a block looks at are needed",
        ),
    ];
    let rows: Vec<_> = holding.into_iter().chain(delaying).collect();
    for row in &rows {
        for price in [FLOOR, BUSY] {
            let (gas, paid_at) = (row.denial)(price);
            assert!(gas.cost(paid_at).0 * U256::from(2) >= row.honest.cost(price).0, "{}", row.what);
        }
    }
    format!("Scheduled transactions:\n{}", table(&rows))
}

/// Gas that an insert of the smallest run costs, without that of the transaction around it.
fn market_creation_gas() -> Gas {
    use market::{IScheduledTransactions, Market, deposit, sender, txn};
    let mut chain = Market::new();
    let asked = txn(chain.next() + 60_000);
    chain.insert(&asked).unwrap();
    let call = IScheduledTransactions::insertCall { txn: asked.clone() };
    let bytes = alloy_sol_types::SolCall::abi_encode(&call).len() as u64;
    let receipt = chain.send(sender(), deposit(&asked), call);
    // Many in one transaction read the slots of the lane and of the epoch once.
    Gas(receipt.gas_used.0 - 21_000 - 16 * bytes - 3 * 2_100)
}

/// An operation of the schedule service with a rate.
struct Throttled {
    what: &'static str,
    rate: Parameter,
    /// Extra gas when the bucket is short, times what is gone of it to what is left.
    base_gas: u64,
    /// Gas of one, without that of the transaction around it and without the extra.
    gas: Gas,
    note: &'static str,
}

/// Prices of the throttles of the schedule service: all of an operation's rate, for one second and for one day, against
/// others who use as much of it. Nobody gets a place for less gas than anybody else.
fn signatures_table() -> String {
    let mut out = String::from(
        "Transactions that wait for signatures, all operations of a second:\n\n\
         | way | base fee | gas lost per second | denial per second | per day | honest use per second | denial / honest | \
         left out |\n|---|---|---|---|---|---|---|---|\n",
    );
    for Throttled { what, rate, base_gas, gas, note } in throttled() {
        let (count, extra) = drain(rate.default, base_gas);
        let (denial, honest) = (Gas(count * gas.0 + extra), Gas(count * gas.0));
        assert!(count >= rate.default && denial.0 * 2 >= honest.0, "{what}");
        for price in [FLOOR, BUSY] {
            let (fee, cost) = (price.0 / 100_000_000, denial.cost(price).0);
            out += &format!(
                "| {what} | {}.{} gwei | {} M | {} | {} | {} | {} % | {note} |\n",
                fee / 10,
                fee % 10,
                millions(denial),
                coins(cost),
                coins(cost * U256::from(86_400)),
                coins(honest.cost(price).0),
                denial.0 * 100 / honest.0,
            );
        }
    }
    out + "\n"
}

fn throttled() -> [Throttled; 3] {
    let (created, signed, deleted) = signatures_gas();
    [
        Throttled {
            what: "all creations",
            rate: SIGNED_CREATES_PER_SECOND,
            base_gas: 20_000,
            gas: created,
            note: "the gas of the transactions around them; five accounts are needed",
        },
        Throttled {
            what: "all signatures",
            rate: SIGNED_SIGNS_PER_SECOND,
            base_gas: 500,
            gas: signed,
            note: "the same, and the gas of creating what is signed",
        },
        Throttled {
            what: "all deletions",
            rate: SIGNED_DELETES_PER_SECOND,
            base_gas: 5_000,
            gas: Gas(created.0 + deleted.0),
            note: "the same; what is deleted was created",
        },
    ]
}

/// Takes all that a bucket gives in a second of two blocks, after it was empty. Returns how many there were, and the extra
/// gas. Shorter blocks are dearer: the bucket is never half full.
fn drain(rate: u64, base_gas: u64) -> (u64, u64) {
    let empty = U256::from_limbs([0, 1_000, 0, 0]);
    let (mut word, mut count, mut extra) = (empty, 0, 0);
    for now in [1_500, 2_000].map(TimestampMs) {
        loop {
            let bucket = Bucket::at(word, now, rate);
            let Ok(taken) = bucket.take() else { break };
            extra += bucket.surcharge(base_gas, rate);
            (word, count) = (taken.to_word(), count + 1);
        }
    }
    (count, extra)
}

/// Gas of creating, signing and deleting the smallest schedule, without that of the transaction around it.
fn signatures_gas() -> (Gas, Gas, Gas) {
    use signatures::{Wish, code, created, deleting, service_call, signing};
    let mut chain = TestChain::new();
    let wish = |nonce| {
        let mut wish =
            Wish::new(vec![service_call(person(1).address, NOBODY), service_call(person(2).address, NOBODY)]);
        (wish.body.nonce, wish.body.memo) = (nonce, String::new());
        Wish { admin_key: Key::from(person(0)).encoded(), ..wish }
    };
    // The second of each: shares of callers are slots that are written once.
    let mut serve = |from: Person, input: Vec<u8>| {
        let bytes = input.len() as u64;
        let receipt = chain.serve(from, input).receipt(0).clone();
        assert_eq!(code(&receipt), 22);
        let id = created_or_none(&receipt);
        (Gas(receipt.gas_used.0 - 21_000 - 16 * bytes), id)
    };
    let (_, first) = serve(person(0), wish(0).create(vec![]));
    let (creating, second) = serve(person(0), wish(1).create(vec![]));
    let [first, second] = [first, second].map(|id| id.expect("it was created"));
    serve(person(1), signing(first, vec![]));
    let (signing, _) = serve(person(1), signing(second, vec![]));
    serve(person(0), deleting(first, vec![]));
    let (deleting, _) = serve(person(0), deleting(second, vec![]));
    return (creating, signing, deleting);

    fn created_or_none(receipt: &Receipt) -> Option<ScheduleId> {
        let is_creation = receipt.logs.iter().any(|log| signatures::ScheduleCreated::decode_log(log).is_ok());
        is_creation.then(|| created(receipt))
    }
}

/// Gas in millions, to a hundredth.
fn millions(gas: Gas) -> String {
    format!("{}.{:02}", gas.0 / 1_000_000, gas.0 % 1_000_000 / 10_000)
}

/// An amount in coins, to a hundred-thousandth; whole ones from a thousand on.
fn coins(wei: U256) -> String {
    let parts: u64 = (wei / U256::from(10u64.pow(13))).to();
    match parts / 100_000 {
        whole if whole >= 1_000 => format!("{whole}"),
        whole => format!("{whole}.{:05}", parts % 100_000),
    }
}
