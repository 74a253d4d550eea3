//! Attacks on transactions that wait for signatures.

use crate::support::{contracts::*, signed::*, *};
use alloy_sol_types::SolEvent as _;
use almanac_primitives::{ScheduleId, addresses::SCHEDULE_SERVICE};

/// Attack 40: a stranger creates what others are about to create, as somebody who has nothing, and so is the one who
/// pays. Their run cannot be paid, and it spent all the signatures that they had collected, for the price of a creation.
#[test]
fn attack_40_a_stranger_who_cannot_pay_spends_no_signatures() {
    let mut chain = TestChain::new();
    let wish = Wish::new(vec![1, 2].into_iter().map(|n| service_call(person(n).address, COUNTER)).collect());
    // Anybody can make the forwarder create it. Its fund is empty.
    let strangers = to(SCHEDULE_SERVICE, &wish.create(vec![]));
    let produced = chain.produce(vec![call(person(6), 0, FORWARDER, strangers, PLENTY_GAS)]);
    let strange = created(produced.receipt(0));
    let entries = || vec![wish.signed(person(1)), wish.signed(person(2))];
    let (id, produced) = chain.serve_created(person(0), &wish, entries());
    assert_eq!((id, run_codes(&produced)), (None, vec![(strange.0, 10)]), "theirs is the stranger's");
    assert_eq!(chain.round_of(&wish), 0);
    let (id, produced) = chain.serve_created(person(0), &wish, entries());
    assert_eq!(run_codes(&produced), [(id.expect("it is made anew").0, 22)]);
    // And once: what has run is spent.
    let produced = chain.serve(person(0), wish.create(entries()));
    assert_eq!((code(produced.receipt(0)), chain.round_of(&wish)), (10_001, 1));
    chain.replay();
}

impl TestChain {
    /// Creates a schedule, or finds that it is there. Answers with its id if it is new.
    fn serve_created(
        &mut self,
        from: Person,
        wish: &Wish,
        entries: Vec<SignatureEntry>,
    ) -> (Option<ScheduleId>, Produced) {
        let produced = self.serve(from, wish.create(entries));
        assert_eq!(code(produced.receipt(0)), 22);
        let logs = &produced.receipt(0).logs;
        let id = logs.iter().find_map(|log| ScheduleCreated::decode_log(log).ok());
        (id.map(|log| ScheduleId(log.id)), produced)
    }
}
