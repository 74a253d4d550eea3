//! The errors of the chain's own contracts, in words.
//!
//! Every error has its sentence here, so that a reader needs no ABI: the compiler lists those that lack one.

use alloy_primitives::{Address, U256, hex};
use alloy_sol_types::SolInterface as _;
use almanac_primitives::{
    TimestampMs,
    addresses::{
        ACCOUNTS, CALLBACKS, CRON_REGISTRY, DEVELOPER_DOOR, HIP1215_SERVICE, LEDGER, PARAMETERS,
        SCHEDULE_SERVICE, SCHEDULED_TRANSACTIONS,
    },
    params::{SECOND_MS, SIGNED_CALLS_MAX, SIGNED_SENDERS_MAX},
};
use almanac_proof::time::iso;
use interfaces::{
    IAccounts::IAccountsErrors as Accounts,
    ICallbackScheduler::ICallbackSchedulerErrors as Callback,
    ICronRegistry::ICronRegistryErrors as Cron,
    IDeveloper::IDeveloperErrors as Developer,
    IDoor::IDoorErrors as Door,
    IParameters::IParametersErrors as Parameters,
    IScheduleService::IScheduleServiceErrors as Signed,
    IScheduledTransactions::{IScheduledTransactionsErrors as Market, Service, Status},
};

/// Their interfaces.
pub(crate) mod interfaces {
    alloy_sol_types::sol!("../../contracts/IAccounts.sol");
    alloy_sol_types::sol!("../../contracts/ICronRegistry.sol");
    alloy_sol_types::sol!(
        #![sol(all_derives = true)]
        "../../contracts/ICallbackScheduler.sol"
    );
    alloy_sol_types::sol!(
        #![sol(all_derives = true)]
        "../../contracts/IScheduledTransactions.sol"
    );
    alloy_sol_types::sol!("../../contracts/IParameters.sol");
    alloy_sol_types::sol!("../../contracts/IScheduleService.sol");
    alloy_sol_types::sol!("../../contracts/IDeveloper.sol");
    alloy_sol_types::sol!("../../contracts/IDoor.sol");
}

/// An error of the chain's own contracts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnError {
    /// Its name in Solidity.
    pub(crate) name: &'static str,
    /// What it says.
    pub(crate) words: String,
}

/// The error in revert data, if it is one of the chain's own.
pub(crate) fn own_error(output: &[u8]) -> Option<OwnError> {
    let selector = *output.first_chunk()?;
    let found = |name: Option<&'static str>, words| Some(OwnError { name: name?, words });
    if let Ok(error) = Cron::abi_decode(output) {
        return found(Cron::name_by_selector(selector), cron(error));
    }
    if let Ok(error) = Callback::abi_decode(output) {
        return found(Callback::name_by_selector(selector), callback(error));
    }
    if let Ok(error) = Market::abi_decode(output) {
        return found(Market::name_by_selector(selector), market(error));
    }
    if let Ok(error) = Accounts::abi_decode(output) {
        return found(Accounts::name_by_selector(selector), accounts(error));
    }
    if let Ok(error) = Signed::abi_decode(output) {
        return found(Signed::name_by_selector(selector), signed(error));
    }
    if let Ok(error) = Door::abi_decode(output) {
        return found(Door::name_by_selector(selector), door(error));
    }
    if let Ok(error) = Parameters::abi_decode(output) {
        return found(Parameters::name_by_selector(selector), parameters(error));
    }
    let error = Developer::abi_decode(output).ok()?;
    found(Developer::name_by_selector(selector), developer(error))
}

/// What the chain's own contract at an address is called, and the file with its interface.
pub(crate) fn own_contract(address: Address) -> Option<&'static str> {
    Some(match address {
        CRON_REGISTRY => "the cron registry (contracts/ICronRegistry.sol)",
        CALLBACKS => "the callback scheduler (contracts/ICallbackScheduler.sol)",
        SCHEDULED_TRANSACTIONS => "the door of scheduled transactions (contracts/IScheduledTransactions.sol)",
        ACCOUNTS => "the door of account keys (contracts/IAccounts.sol)",
        SCHEDULE_SERVICE => "the schedule service (contracts/IScheduleService.sol)",
        HIP1215_SERVICE => "the schedule service (contracts/IHederaScheduleService.sol)",
        PARAMETERS => "the parameters (contracts/IParameters.sol)",
        LEDGER => "the ledger, which answers no call",
        DEVELOPER_DOOR => "the developer's edits (contracts/IDeveloper.sol)",
        _ => return None,
    })
}

/// Why a call of the registry's address ended in ecAdd, which is there too: no method has its selector.
pub(crate) fn taken_for_ec_add(to: Option<Address>, input: &[u8]) -> Option<String> {
    let selector: [u8; 4] = *input.first_chunk()?;
    let is_call = to == Some(CRON_REGISTRY) && input.len() % 32 == 4;
    (is_call && !interfaces::ICronRegistry::ICronRegistryCalls::valid_selector(selector)).then(|| {
        format!(
            "no method of {} has the selector {}, so the precompile ecAdd at the same address got the call",
            own_contract(CRON_REGISTRY).expect("it has a name"),
            hex::encode_prefixed(selector)
        )
    })
}

fn cron(error: Cron) -> String {
    match error {
        Cron::CronDisabled(_) => "governance has switched the cron registry off".to_owned(),
        Cron::CronPaused(_) => "governance has paused the cron registry".to_owned(),
        Cron::TargetIsZero(_) => "the target is the zero address".to_owned(),
        Cron::MethodIsEmpty(_) => "the method is empty: give a signature such as charge(uint256)".to_owned(),
        Cron::MethodNotCanonical(e) => match &e.probable[..] {
            "" => "the method is not a canonical signature such as charge(uint256)".to_owned(),
            probable => format!("the method is not a canonical signature: did you mean {probable}?"),
        },
        Cron::InputTooShort(e) => {
            format!("calldata of {} bytes has no selector: at least {} are needed", e.given, e.min)
        }
        Cron::InputTooLong(e) => format!("calldata of {} bytes is above the limit of {}", e.given, e.max),
        Cron::TimeNotInFuture(e) => format!("{} is not after the block's {}", e.given, e.blockTime),
        Cron::TimeBeyondHorizon(e) => too_late(e.given, e.max, SECOND_MS),
        Cron::IntervalTooShort(e) => {
            format!("an interval of {} s is neither 0 (one run) nor at least {} s", e.given, e.min)
        }
        Cron::IntervalTooLong(e) => format!("an interval of {} s is above the limit of {} s", e.given, e.max),
        Cron::GasLimitOutOfBounds(e) => format!("gas limit {} is not in {}..={}", e.given, e.min, e.max),
        Cron::RunsTooMany(e) => format!("{} runs are above the limit of {}", e.given, e.max),
        Cron::EscrowTooLow(e) => {
            format!("{} wei were sent, and one run at the current base fee costs {}", e.given, e.needed)
        }
        Cron::RefundToIsZero(_) => "the recipient of refunds is the zero address".to_owned(),
        Cron::UnknownOptions(e) => format!("options {:#x} has bits other than {:#x}", e.given, e.known),
        Cron::UnknownCatchUp(e) => format!("catch-up policy {} is not in 0..={}", e.given, e.max),
        Cron::UnknownJob(e) => format!("there is no job {}, or it has ended", id(e.id)),
        Cron::NotJobOwner(e) => format!("job {} belongs to {}, not to {}", id(e.id), e.owner, e.caller),
        Cron::JobInLastRun(e) => format!("job {} cannot be cancelled inside its own last run", id(e.id)),
        Cron::JobUnreadable(e) => format!("a fault of the chain's own put the job aside: {}", e.reason),
    }
}

fn too_late(given: U256, max: U256, unit_ms: u64) -> String {
    format!("{} is later than {}, the latest allowed", dated(given, unit_ms), dated(max, unit_ms))
}

/// A time with its date, if it has one: of ten digits nobody sees the year.
fn dated(time: U256, unit_ms: u64) -> String {
    let ms = u64::try_from(time).ok().and_then(|time| time.checked_mul(unit_ms));
    ms.map_or_else(|| time.to_string(), |ms| format!("{time} ({})", iso(TimestampMs(ms))))
}

fn callback(error: Callback) -> String {
    match error {
        Callback::SchedulerDisabled(_) => "governance has switched the callback scheduler off".to_owned(),
        Callback::SchedulerPaused(_) => "governance has paused the callback scheduler".to_owned(),
        Callback::HandlerNotAllowed(e) => {
            format!("handler {} is not {} and has not allowed it: call setScheduler", e.handler, e.caller)
        }
        Callback::DataTooLong(e) => format!("data of {} bytes is above the limit of {}", e.given, e.max),
        Callback::TimestampNotInFuture(e) => {
            format!("{} is neither 0 (the next second) nor after the block's {}", e.given, e.blockTime)
        }
        Callback::TimestampBeyondHorizon(e) => too_late(e.given, e.max, SECOND_MS),
        Callback::EffortTooLow(e) => {
            format!("effort {} is below {}, which the call with its data needs at least", e.given, e.min)
        }
        Callback::EffortTooHigh(e) => format!("effort {} is above the limit of {}", e.given, e.max),
        Callback::FeeTooLow(e) => format!("costs {} wei, and {} were sent", e.needed, e.given),
        Callback::NoCapacity(e) => {
            format!("will not fit: second {} has {} effort left, not {}", e.timestamp, e.available, e.effort)
        }
        Callback::UnknownCallback(e) => format!("there is no callback {}", id(e.id)),
        Callback::NotOwner(e) => format!("callback {} belongs to {}, not to {}", id(e.id), e.owner, e.caller),
        Callback::NotScheduled(e) => format!("callback {} cannot be cancelled: {:?}", id(e.id), e.status),
        Callback::Unreadable(e) => format!("a fault of the chain's own put it aside: {}", e.reason),
    }
}

fn market(error: Market) -> String {
    match error {
        Market::NotSender(e) => {
            format!(
                "{} may not act for {}: only the sender itself inserts and cancels",
                e.caller, e.senderAddr
            )
        }
        Market::ServiceNotActive(e) => match e.service {
            Service::Paused => "governance has paused scheduled transactions".to_owned(),
            Service::Disabled => "governance has switched scheduled transactions off".to_owned(),
            _ => "scheduled transactions are shut down: none is taken any more".to_owned(),
        },
        Market::TimeNotInFuture(e) => format!("{} is not after the block's {}", e.given, e.nowMs),
        Market::TimeBeyondHorizon(e) => too_late(e.given, e.max, 1),
        Market::GasAmountOutOfBounds(e) => format!("{} gas is not in {}..={}", e.given, e.min, e.max),
        Market::GasUnitPriceTooLow(e) => {
            format!("a maximum of {} wei per gas is below the base fee of {}", e.given, e.baseFee)
        }
        Market::InputTooLong(e) => format!("calldata of {} bytes is above the limit of {}", e.given, e.max),
        Market::ExpiryOutOfBounds(e) => {
            format!("an expiry of {} blocks is above the limit of {}", e.given, e.max)
        }
        Market::TargetIsZero(_) => "the target is the zero address".to_owned(),
        Market::DepositTooLow(e) => format!("needs a deposit of {} wei, and {} were sent", e.needed, e.given),
        Market::UnknownKey(e) => format!("there is no scheduled transaction {}", e.txnId),
        Market::AlreadyExecuted(e) => format!("the scheduled transaction {} has run", e.txnId),
        Market::AlreadyEnded(e) => {
            format!("the scheduled transaction {} has ended: {}", e.txnId, market_status(e.status))
        }
        Market::NotClaimable(e) => {
            let status = market_status(e.status);
            format!("nothing of the scheduled transaction {} can be claimed: it is {status}", e.txnId)
        }
        Market::Unreadable(e) => format!("a fault of the chain's own put it aside: {}", e.reason),
    }
}

fn market_status(status: Status) -> &'static str {
    match status {
        Status::Scheduled => "scheduled",
        Status::Waiting => "waiting for a price",
        Status::Running => "running",
        Status::Succeeded => "succeeded",
        Status::Failed => "failed",
        Status::Cancelled => "cancelled",
        Status::Expired => "expired",
        Status::Shutdown => "refunded by the shutdown",
        Status::Quarantined => "put aside by a fault of the chain's own",
        Status::Unknown | Status::__Invalid => "unknown",
    }
}

const _: () = assert!(SIGNED_CALLS_MAX == 16 && SIGNED_SENDERS_MAX == 8, "the words of code 50 name them");

/// Hedera's numbers, in words (`specs/hedera.md`).
fn signed(error: Signed) -> String {
    let Signed::Refused(refused) = error;
    let words = match refused.responseCode {
        4 => "the deadline of a signature has passed",
        7 => "a signature is not one of its key over this schedule, or the admin key has not signed",
        8 => "the memo is longer than 100 bytes",
        9 => {
            "the value does not cover the price of a schedule with a time, or its other payer would return more than \
             maxFeePerGas × gasLimit"
        }
        10 => "the payer cannot pay",
        12 => "too many in this second, or triggered by one transaction: try again",
        13 => "not supported, or switched off",
        16 => "a call has no target",
        38 => "a key is malformed",
        50 => {
            "the body is malformed, or beyond its limits: 1 to 16 calls from up to 8 accounts, none of them the zero \
             address or the chain's own"
        }
        111 => "the gas limit is outside its bounds",
        201 => "there is no such schedule",
        202 => "it has no admin key, so nobody deletes it",
        205 => {
            "it has these signatures already, or waits for its creator, who replaced its key and has to call once more"
        }
        206 => "the keys that have to sign have more than 64 leaves",
        208 => "a key signed that does not have to",
        212 => "it was deleted",
        213 => "it was executed",
        214 => "the body is too large",
        306 => "the time is too far ahead",
        307 => "the time is not after the block's",
        314 => "it has expired",
        370 => "its second has no room left",
        10_001 => "the signature is for an earlier round: ask roundOf and sign again",
        _ => "a fault of the chain's own",
    };
    format!("{words} (code {})", refused.responseCode)
}

fn accounts(error: Accounts) -> String {
    match error {
        Accounts::KeyRefused(e) => format!("not a key, from byte {} on: {}", e.offset, e.reason),
        Accounts::ProofMissing(_) => {
            "the proofs do not satisfy the new key: they are signatures over rotationDigest(account, key), in ascending \
             order of their keys, none of them superfluous"
                .to_owned()
        }
        Accounts::NotTopLevel(_) => {
            "only a user transaction itself rotates its sender's key: no contract and no scheduled run".to_owned()
        }
        Accounts::AccountTaken(e) => format!("account {} has code, a nonce or a key already", e.account),
    }
}

fn door(error: Door) -> String {
    match error {
        Door::DelegateCallRefused(_) => {
            "a system contract was reached by delegatecall or callcode: use call".to_owned()
        }
        Door::CallerIsSystem(e) => format!("the system account {} may not call here", e.caller),
        Door::StaticCallRefused(_) => "the method changes state, and this is a static call".to_owned(),
        Door::NotPayable(e) => format!("the method takes no value, and {} wei were sent", e.value),
        Door::UnknownMethod(e) => {
            format!("no method of this system contract has the selector {}", e.selector)
        }
        Door::MalformedArguments(e) => {
            format!("the arguments of {} are not the ABI encoding that the method has", e.selector)
        }
        Door::LedgerAnswersNoCall(_) => "the ledger answers no call".to_owned(),
        Door::LedgerShort(e) => {
            format!("a fault of the chain's own: the ledger does not have the {} wei that it owes", e.owed)
        }
        Door::TooManySchedules(e) => {
            format!("{} schedules in one transaction are above the limit of {}", e.given, e.max)
        }
        Door::NoScheduleId(_) => "the chain has grown beyond what an id can name".to_owned(),
    }
}

fn parameters(error: Parameters) -> String {
    match error {
        Parameters::UnknownParameter(e) => format!("there is no parameter {}", text(&e.name.0)),
        Parameters::IndexOutOfBounds(e) => {
            format!("index {} is not below the number of parameters, {}", e.given, e.count)
        }
        Parameters::ParameterOutOfBounds(e) => {
            format!("{} = {} is not in {}..={}", text(&e.name.0), e.given, e.min, e.max)
        }
        Parameters::CronAboveHalfBlock(e) => {
            format!("{} gas of the cron lane are above half of a block's {}", e.cronBlockGas, e.blockGas)
        }
        Parameters::SecondTooLarge(e) => {
            format!(
                "{} and {} effort of one second are more than the {} that can be counted",
                e.own, e.shared, e.max
            )
        }
        Parameters::SecondAboveBlock(e) => {
            format!("{} gas of one second are above the {} that a block has for it", e.secondGas, e.blockGas)
        }
        Parameters::ReservedFalls(e) => {
            format!("{} is below the current {}: seconds may be booked up to it", e.given, e.current)
        }
        Parameters::NotOwner(e) => format!("{} does not govern the chain, {} does", e.caller, e.owner),
        Parameters::NotPendingOwner(e) => {
            format!("{} was not named as the next owner, {} was", e.caller, e.pendingOwner)
        }
    }
}

fn developer(error: Developer) -> String {
    match error {
        Developer::NotDeveloper(e) => format!("{} is not the developer account {}", e.caller, e.developer),
        Developer::NotEditable(e) => format!("account {} belongs to the chain itself", e.account),
        Developer::TreasuryTooSmall(e) => {
            format!("{} wei are more than the developer's treasury has, {}", e.needed, e.available)
        }
        Developer::NonceTooLow(e) => format!("nonce {} is below the current {}", e.given, e.current),
        Developer::BaseFeeOutOfBounds(e) => format!("base fee {} is not in {}..={}", e.given, e.min, e.max),
        Developer::CodeTooLarge(e) => format!("code of {} bytes is above the limit of {}", e.given, e.max),
    }
}

/// An id in both of its forms, as far as a schedule can have it.
fn id(given: U256) -> String {
    match u64::try_from(given).map(almanac_primitives::ScheduleId) {
        Ok(id) => format!("{id} ({given})"),
        Err(_) => given.to_string(),
    }
}

/// ASCII in a word, without the zeroes behind it.
fn text(word: &[u8]) -> String {
    let end = word.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    format!("{:?}", String::from_utf8_lossy(&word[..end]))
}

#[cfg(test)]
mod tests {
    use super::{interfaces::*, *};
    use alloy_sol_types::{SolError as _, SolInterface};
    use almanac_primitives::addresses::{SYSTEM_ACCOUNTS, UNBUILT_ACCOUNTS};
    use std::collections::BTreeSet;

    fn shown(data: &[u8]) -> String {
        let OwnError { name, words } = own_error(data).unwrap();
        format!("{name}: {words}")
    }

    #[test]
    fn errors_are_told_with_their_numbers() {
        let (given, block) = (U256::from(1_794_798_275), U256::from(1_794_798_566));
        let late = ICronRegistry::TimeNotInFuture { given, blockTime: block };
        assert_eq!(
            shown(&late.abi_encode()),
            "TimeNotInFuture: 1794798275 is not after the block's 1794798566"
        );
        let far = ICronRegistry::TimeBeyondHorizon { given: U256::from(4_070_941_200u64), max: block };
        assert_eq!(
            shown(&far.abi_encode()),
            "TimeBeyondHorizon: 4070941200 (2099-01-01T09:00:00.000Z) is later than 1794798566 \
             (2026-11-16T03:09:26.000Z), the latest allowed"
        );
        assert_eq!(dated(U256::from(u64::MAX), SECOND_MS), "18446744073709551615", "beyond all dates");
        let unknown = ICronRegistry::UnknownJob { id: U256::from(0x2000_0400) };
        assert_eq!(
            shown(&unknown.abi_encode()),
            "UnknownJob: there is no job 2-1-0 (536871936), or it has ended"
        );
        let low = IScheduledTransactions::GasUnitPriceTooLow { given, baseFee: block };
        assert_eq!(
            shown(&low.abi_encode()),
            "GasUnitPriceTooLow: a maximum of 1794798275 wei per gas is below the base fee of 1794798566"
        );
        let paused = IScheduledTransactions::ServiceNotActive { service: Service::Paused };
        assert_eq!(
            shown(&paused.abi_encode()),
            "ServiceNotActive: governance has paused scheduled transactions"
        );
        let refused =
            IAccounts::KeyRefused { offset: U256::from(3), reason: "more than 4 levels".to_owned() };
        assert_eq!(shown(&refused.abi_encode()), "KeyRefused: not a key, from byte 3 on: more than 4 levels");
        let mut name = [0; 32];
        name[..4].copy_from_slice(b"cron");
        let unknown = IParameters::UnknownParameter { name: name.into() };
        assert_eq!(shown(&unknown.abi_encode()), "UnknownParameter: there is no parameter \"cron\"");
    }

    #[test]
    fn what_is_not_ours_has_no_words() {
        for data in [&[][..], &[1, 2, 3], &[1, 2, 3, 4], &ICronRegistry::TimeNotInFuture::SELECTOR] {
            assert_eq!(own_error(data), None, "{data:02x?}");
        }
    }

    /// The door of account keys had no name and no words here.
    #[test]
    fn every_contract_that_answers_has_a_name() {
        let answers = |address: &&Address| !UNBUILT_ACCOUNTS.contains(address);
        let nameless = |address: &&Address| own_contract(**address).is_none();
        let missing: Vec<_> = SYSTEM_ACCOUNTS.iter().filter(answers).filter(nameless).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    /// Two contracts may have the same error; then it has the same name, so that either sentence is right.
    #[test]
    fn no_selector_means_two_things() {
        fn named<E: SolInterface>(name: fn([u8; 4]) -> Option<&'static str>) -> Vec<([u8; 4], &'static str)> {
            E::selectors().map(|selector| (selector, name(selector).unwrap())).collect()
        }
        let all = [
            named::<Cron>(Cron::name_by_selector),
            named::<Callback>(Callback::name_by_selector),
            named::<Market>(Market::name_by_selector),
            named::<Accounts>(Accounts::name_by_selector),
            named::<Door>(Door::name_by_selector),
            named::<Parameters>(Parameters::name_by_selector),
            named::<Developer>(Developer::name_by_selector),
        ];
        let selectors: BTreeSet<_> = all.iter().flatten().map(|(selector, _)| *selector).collect();
        let names: BTreeSet<_> = all.iter().flatten().collect();
        assert_eq!(selectors.len(), names.len());
    }

    #[test]
    fn a_call_that_ec_add_got_names_the_registry() {
        let call = [&[0x12, 0x34, 0x56, 0x78][..], &[0; 32]].concat();
        let told = taken_for_ec_add(Some(CRON_REGISTRY), &call).unwrap();
        assert!(told.contains("0x12345678") && told.contains("ICronRegistry.sol"), "{told}");
        assert_eq!(taken_for_ec_add(Some(CALLBACKS), &call), None);
        assert_eq!(taken_for_ec_add(Some(CRON_REGISTRY), &call[..35]), None, "ecAdd takes any length");
        let known = [&ICronRegistry::cancelCall::SELECTOR[..], &[0; 32]].concat();
        assert_eq!(taken_for_ec_add(Some(CRON_REGISTRY), &known), None);
    }

    use alloy_sol_types::SolCall as _;
}
