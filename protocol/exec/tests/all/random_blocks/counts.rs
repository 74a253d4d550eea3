//! What happened, counted, so that the generator cannot become boring unnoticed.

use super::*;

/// How often each thing happened.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<String, usize>);

impl Counts {
    pub(super) fn add(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (what, count) in other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    pub(super) fn block(
        &mut self,
        produced: &Produced,
        labels: &BTreeMap<TxHash, &'static str>,
        due: &[RunTransaction],
        (before, after): (&MapState, &MapState),
    ) {
        let output = &produced.output;
        for (_, error) in &produced.refused {
            self.add(format!("refused: {}", refusal(error)));
        }
        for (executed, receipt) in output.transactions.iter().zip(&output.receipts) {
            let outcome = outcome(&receipt.outcome);
            match executed {
                Executed::Prologue(_) => {}
                Executed::Run(run) => self.add(format!("run in {:?}: {outcome}", run.lane)),
                Executed::User(_) => self.add(format!("{}: {outcome}", labels[&receipt.transaction_hash])),
            }
            self.add(outcome);
            if receipt.contract_address.is_some() {
                self.add("created at the top");
            }
        }
        let is_signed = |receipt: &&Receipt| receipt.schedule_ref.is_none();
        let user_gas: u64 = output.receipts.iter().filter(is_signed).map(|receipt| receipt.gas_used.0).sum();
        let fees = U256::from(user_gas) * U256::from(output.environment.base_fee.0);
        assert!(output.burned.0 >= fees);
        if output.burned.0 > fees {
            self.add("burned more than fees");
        }
        for n in 0..PEOPLE {
            let of = |state: &MapState| state.account(person(n as u64).address).code_hash;
            match (of(before) == KECCAK256_EMPTY, of(after) == KECCAK256_EMPTY) {
                (true, false) => self.add("delegated"),
                (false, true) => self.add("delegation taken back"),
                _ => {}
            }
        }
        let creations = after.account(CREATOR).nonce - before.account(CREATOR).nonce;
        (0..creations).for_each(|_| self.add("created by a contract"));
        let ran: BTreeSet<_> = output.receipts.iter().filter_map(|receipt| receipt.schedule_ref).collect();
        if due.iter().any(|run| run.lane == Lane::Market && !ran.contains(&run.schedule_ref)) {
            self.add("a market run had to wait");
        }
        if output.diff.changes().iter().any(|change| matches!(change.key, StateKey::Slot(PARAMETERS, _))) {
            self.add("a parameter changed");
        }
        let cleared = |key: &StateKey| matches!(key, StateKey::Slot(..)) && !after.0.contains_key(key);
        let is_collected = |key: &StateKey| matches!(key, StateKey::Nonce(..)) && !after.0.contains_key(key);
        if before.0.keys().any(is_collected) {
            self.add("history collected");
        }
        if before.0.keys().any(cleared) {
            self.add("a slot was cleared");
        }
    }

    pub(super) fn assert_interesting(&self) {
        let mut expected: Vec<String> = [
            "success",
            "reverted",
            "created at the top",
            "created by a contract",
            "burned more than fees",
            "delegated",
            "delegation taken back",
            "a market run had to wait",
            "a parameter changed",
            "a slot was cleared",
            "refused without state",
            "refused: nonce too low",
            "refused: nonce too high",
            "refused: insufficient funds",
            "refused: fee cap below base fee",
            "refused: does not fit",
            "legacy call: success",
            "2930 call: success",
            "1559 call: success",
            "7702: success",
            "native: success",
            "native: reverted",
            "orderless: success",
            "orderless: reverted",
            "refused: nonce already used",
            "refused: expiration too far",
            "refused: expired",
            "history collected",
            "7702: reverted",
            "deploy: success",
            "nothing: success",
            "die: success",
            "burn: success",
            "revert: reverted",
            "out of gas: halted OutOfGas",
            "invalid: halted InvalidOpcode",
            "bad jump: halted InvalidJump",
            "underflow: halted Stack",
            "out of offset: halted Other",
            "too large: halted Create",
            "starts with ef: halted Create",
        ]
        .map(String::from)
        .to_vec();
        // A static call fails inside a call, and a transaction's value is checked before: a run's is not.
        let halts = [
            Halt::OutOfGas,
            Halt::InvalidOpcode,
            Halt::InvalidJump,
            Halt::Stack,
            Halt::Precompile,
            Halt::Create,
            Halt::InsufficientBalance,
            Halt::Other,
        ];
        expected.extend(halts.map(|halt| format!("halted {halt:?}")));
        for lane in Lane::SERVED {
            expected.extend(
                ["success", "reverted", "halted OutOfGas"].map(|end| format!("run in {lane:?}: {end}")),
            );
        }
        let missing: Vec<_> = expected.iter().filter(|what| !self.0.contains_key(*what)).collect();
        assert!(missing.is_empty(), "never happened: {missing:#?}\nhappened: {:#?}", self.0);
        let (successes, all) = (self.0["success"], self.total());
        assert!(successes * 4 > all, "most of it fails: {successes} of {all} succeed");
    }

    pub(super) fn total(&self) -> usize {
        let ends = self
            .0
            .iter()
            .filter(|(what, _)| *what == "success" || *what == "reverted" || what.starts_with("halted "));
        ends.map(|(_, count)| count).sum()
    }
}

pub(super) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Success => "success".into(),
        Outcome::Reverted(_) => "reverted".into(),
        Outcome::Halted(halt) => format!("halted {halt:?}"),
    }
}

pub(super) fn refusal(error: &TransactionError) -> &'static str {
    match error {
        TransactionError::NonceTooLow { .. } => "nonce too low",
        TransactionError::NonceTooHigh { .. } => "nonce too high",
        TransactionError::InsufficientFunds { .. } => "insufficient funds",
        TransactionError::FeeCapBelowBaseFee { .. } => "fee cap below base fee",
        TransactionError::DoesNotFit { .. } => "does not fit",
        TransactionError::FeePayerFunds { .. } => "fee payer's funds",
        TransactionError::NonceAlreadyUsed { .. } => "nonce already used",
        TransactionError::ExpirationTooFar { .. } => "expiration too far",
        TransactionError::TransactionExpired { .. } => "expired",
        // Runs went ahead of a candidate that they made fail: the proposer leaves the dearer ones for later.
        TransactionError::BehindRuns { .. } => "behind runs",
        other => panic!("no candidate here should be refused for: {other}"),
    }
}
