//! How a plan becomes signed transactions and runs.

use super::*;

impl Init {
    pub(super) fn code(self) -> Bytes {
        match self {
            Self::Deploy => deploy(&[0x60, 1, 0x5f, 0x55, 0x00]),
            Self::Nothing => Bytes::new(),
            Self::Die(heir) => born_to_die(heir),
            Self::Burn => born_to_burn(),
            Self::Revert => Bytes::from_static(&[0x5f, 0x5f, 0xfd]),
            Self::OutOfGas => Bytes::from_static(&[0x5b, 0x5f, 0x56]),
            Self::Invalid => Bytes::from_static(&[0xfe]),
            Self::BadJump => Bytes::from_static(&[0x5f, 0x56]),
            Self::Underflow => Bytes::from_static(&[0x01]),
            // returndatacopy(0, 0, 1)
            Self::OutOfOffset => Bytes::from_static(&[0x60, 1, 0x5f, 0x5f, 0x3e]),
            // return(0, 24577)
            Self::TooLarge => Bytes::from_static(&[0x61, 0x60, 0x01, 0x5f, 0xf3]),
            Self::StartsWithEf => deploy(&[0xef]),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::Nothing => "nothing",
            Self::Die(_) => "die",
            Self::Burn => "burn",
            Self::Revert => "revert",
            Self::OutOfGas => "out of gas",
            Self::Invalid => "invalid",
            Self::BadJump => "bad jump",
            Self::Underflow => "underflow",
            Self::OutOfOffset => "out of offset",
            Self::TooLarge => "too large",
            Self::StartsWithEf => "starts with ef",
        }
    }
}

/// The signed candidates of a block that keep the rules without state, with a label for each.
pub(super) fn candidates(
    chain: &TestChain,
    plan: &BlockPlan,
    base_fee: GasPrice,
    counts: &mut Counts,
) -> (Vec<UserTransaction>, BTreeMap<TxHash, &'static str>) {
    // The nonces that people think they are at.
    let mut nonces: Vec<u64> = (0..PEOPLE).map(|n| chain.nonce(person(n as u64).address)).collect();
    let mut candidates = Vec::new();
    let mut labels = BTreeMap::new();
    for action in &plan.actions {
        let transaction = action.sign(chain, &mut nonces, base_fee);
        if recover(transaction.clone(), &rules()).is_err() {
            counts.add("refused without state");
            continue;
        }
        labels.insert(transaction.hash(), action.label());
        candidates.extend(std::iter::repeat_n(transaction, 1 + usize::from(action.is_doubled)));
    }
    if plan.is_reversed {
        candidates.reverse();
    }
    (candidates, labels)
}

impl Action {
    pub(super) fn label(&self) -> &'static str {
        match (&self.what, &self.form) {
            (_, Form::Eip7702(_)) => "7702",
            (_, Form::Native(NativeForm { orderless: Some(_), .. })) => "orderless",
            (_, Form::Native(_)) => "native",
            (What::Create(init), _) => init.name(),
            (What::Call(..), Form::Legacy) => "legacy call",
            (What::Call(..), Form::Eip2930(_)) => "2930 call",
            (What::Call(..), Form::Eip1559) => "1559 call",
        }
    }

    pub(super) fn sign(&self, chain: &TestChain, nonces: &mut [u64], base_fee: GasPrice) -> UserTransaction {
        let sender = person(self.sender as u64);
        let nonce = nonces[self.sender].saturating_add_signed(self.nonce);
        let is_orderless = matches!(self.form, Form::Native(NativeForm { orderless: Some(_), .. }));
        if self.nonce == 0 && !is_orderless {
            nonces[self.sender] += 1;
        }
        let (to, input) = match &self.what {
            What::Call(target, input) => (TxKind::Call(*target), input.clone()),
            What::Create(init) => (TxKind::Create, init.code()),
        };
        let least = self.least_gas(&input);
        let gas_limit = match self.gas {
            GasLimit::Least => least,
            GasLimit::Extra(gas) => least + gas,
            GasLimit::Below => least - 1,
        };
        let price = match self.price {
            Price::Above(steps) => step_price(base_fee, steps),
            Price::Base => base_fee.0,
            Price::BelowBase => base_fee.0 - 1,
        };
        let balance = chain.balance(sender.address);
        let value = amount(self.amount, balance, U256::from(gas_limit) * U256::from(price));
        let tip = price;
        match &self.form {
            Form::Legacy => {
                let tx = TxLegacy {
                    chain_id: Some(CHAIN_ID),
                    nonce,
                    gas_price: price,
                    gas_limit,
                    to,
                    value,
                    input,
                };
                sign(tx, sender.secret)
            }
            Form::Eip2930(access_list) => {
                let access_list = access_list.clone();
                let tx = TxEip2930 {
                    chain_id: CHAIN_ID,
                    nonce,
                    gas_price: price,
                    gas_limit,
                    to,
                    value,
                    access_list,
                    input,
                };
                sign(tx, sender.secret)
            }
            Form::Eip1559 => {
                let tx = TxEip1559 {
                    max_fee_per_gas: price,
                    max_priority_fee_per_gas: tip,
                    value,
                    ..eip1559(nonce, to, 0, input, gas_limit)
                };
                sign(tx, sender.secret)
            }
            Form::Native(form) => {
                let call = NativeCall { to: to.to().copied(), value, input };
                self.sign_native(*form, chain, nonce, (price, gas_limit), call)
            }
            Form::Eip7702(delegations) => {
                let list = delegations.iter().map(|delegation| delegation.sign(nonces)).collect();
                // There is no 7702 creation: those who planned one call nobody with their init code.
                let target = to.to().copied().unwrap_or(COUNTER);
                let tx = TxEip7702 {
                    max_fee_per_gas: price,
                    max_priority_fee_per_gas: tip,
                    value,
                    input,
                    ..eip7702(nonce, target, list, gas_limit)
                };
                sign(tx, sender.secret)
            }
        }
    }

    fn sign_native(
        &self,
        form: NativeForm,
        chain: &TestChain,
        nonce: u64,
        (price, gas_limit): (u128, u64),
        call: NativeCall,
    ) -> UserTransaction {
        let sender = person(self.sender as u64);
        let is_creation = call.to.is_none();
        let mut calls = vec![call];
        calls
            .extend(form.further.filter(|_| !is_creation).map(|target| native_call(target, 0, Bytes::new())));
        let payer = form.payer.filter(|payer| *payer != self.sender).map(|payer| person(payer as u64));
        let transaction = match form.orderless {
            Some((nonce, ahead)) => {
                orderless(sender.address, nonce, chain.head.timestamp.seconds() + ahead, calls)
            }
            None => native(sender.address, nonce, calls),
        };
        let transaction = NativeTransaction {
            max_fee_per_gas: price,
            max_priority_fee_per_gas: price,
            gas_limit,
            fee_payer: payer.map(|payer| payer.address),
            ..transaction
        };
        let payer_keys: Vec<Key> = payer.map(Key::from).into_iter().collect();
        sign_native_on(&CHAIN, transaction, &[sender.into()], &payer_keys)
    }

    /// The least gas limit of this form and input.
    pub(super) fn least_gas(&self, input: &[u8]) -> u64 {
        let zeroes = input.iter().filter(|byte| **byte == 0).count() as u64;
        let tokens = zeroes + 4 * (input.len() as u64 - zeroes);
        let is_create =
            matches!((&self.what, &self.form), (What::Create(_), form) if !matches!(form, Form::Eip7702(_)));
        let create = if is_create { 32_000 + 2 * input.len().div_ceil(32) as u64 } else { 0 };
        let listed = match &self.form {
            Form::Eip2930(list) => {
                list.0.iter().map(|item| 2_400 + 1_900 * item.storage_keys.len() as u64).sum::<u64>()
            }
            Form::Eip7702(delegations) => 25_000 * delegations.len() as u64,
            Form::Legacy | Form::Eip1559 | Form::Native(_) => 0,
        };
        21_000 + (4 * tokens + create + listed).max(10 * tokens) + self.native_gas()
    }

    /// What a native transaction pays beyond Ethereum's price.
    fn native_gas(&self) -> u64 {
        let Form::Native(form) = &self.form else { return 0 };
        let is_batch = form.further.is_some() && !matches!(self.what, What::Create(_));
        let is_paid = form.payer.is_some_and(|payer| payer != self.sender);
        2_000 * u64::from(form.orderless.is_some()) + 2_600 * u64::from(is_batch) + 5_600 * u64::from(is_paid)
    }
}

impl Delegation {
    pub(super) fn sign(self, nonces: &mut [u64]) -> SignedAuthorization {
        let authority = person(self.authority as u64);
        let nonce = nonces[self.authority];
        match self.flaw {
            None => {
                nonces[self.authority] += 1;
                authorize(authority, nonce, self.delegate)
            }
            Some(Flaw::Nonce) => authorize(authority, nonce + 3, self.delegate),
            Some(Flaw::Chain) => {
                let mut inner = authorize(authority, nonce, self.delegate).inner().clone();
                inner.chain_id = U256::from(CHAIN_ID + 1);
                let hash = inner.signature_hash();
                let signature =
                    alloy_consensus::crypto::secp256k1::sign_message(authority.secret, hash).unwrap();
                inner.into_signed(signature)
            }
            Some(Flaw::Signature) => {
                let signed = authorize(authority, nonce, self.delegate);
                SignedAuthorization::new_unchecked(signed.inner().clone(), 0, U256::MAX, signed.s())
            }
        }
    }
}

impl RunPlan {
    pub(super) fn run(
        &self,
        chain: &TestChain,
        schedule_ref: ScheduleRef,
        base_fee: GasPrice,
    ) -> RunTransaction {
        let least = 21_000 + self.input.iter().map(|byte| if *byte == 0 { 10 } else { 40 }).sum::<u64>();
        RunTransaction {
            schedule_ref,
            lane: self.lane,
            from: self.from,
            to: self.target,
            value: Wei(amount(self.amount, chain.balance(self.from), U256::ZERO)),
            input: self.input.clone(),
            gas_limit: Gas(least + self.gas),
            gas_price: GasPrice(step_price(base_fee, self.steps)),
        }
    }
}

/// Few steps, so that runs and transactions often have the same price.
pub(super) fn step_price(base_fee: GasPrice, steps: u64) -> u128 {
    base_fee.0 + u128::from(steps) * 10_000_000
}

pub(super) fn amount(amount: Amount, balance: U256, cost: U256) -> U256 {
    match amount {
        Amount::Nothing => U256::ZERO,
        Amount::Little(value) => U256::from(value),
        Amount::Whole => balance.saturating_sub(cost),
        Amount::TooMuch => balance.saturating_add(U256::from(1)),
    }
}
