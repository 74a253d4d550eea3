//! The params contract: every runtime parameter, readable by anyone, settable within bounds by its owner.

use super::{
    call::{DoorCall, DoorError, revert},
    storage::Slot,
};
use alloy_primitives::{Address, B256, Bytes, U256};
use almanac_primitives::params::{
    GOVERNANCE_PENDING_SLOT, GOVERNANCE_SLOT, PARAMETERS, Parameter, ParameterError, Parameters,
};

alloy_sol_types::sol!("../../contracts/IParameters.sol");
use IParameters::IParametersCalls as Method;

fn owner_slot() -> Slot<Address> {
    Slot::at(GOVERNANCE_SLOT)
}

fn pending_owner_slot() -> Slot<Address> {
    Slot::at(GOVERNANCE_PENDING_SLOT)
}

fn value_slot(parameter: Parameter) -> Slot<U256> {
    Slot::at(parameter.slot)
}

/// Answers one call.
pub(super) fn call(call: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    match call.decode::<Method>()? {
        Method::get(args) => {
            let parameter = find(args.name)?;
            let value = U256::from(call.parameters().get(parameter));
            call.answer(&value)
        }
        Method::next(args) => {
            let parameter = find(args.name)?;
            let stored = call.load(value_slot(parameter))?;
            call.answer(&U256::from(parameter.from_slot_value(stored)))
        }
        Method::bounds(args) => {
            let parameter = find(args.name)?;
            call.answer(&(U256::from(parameter.min), U256::from(parameter.max)))
        }
        Method::count(_) => call.answer(&U256::from(PARAMETERS.len())),
        Method::nameAt(args) => call.answer(&name_at(args.index)?),
        Method::set(args) => set(call, args.name, args.value),
        Method::owner(_) => {
            let owner = call.load(owner_slot())?;
            call.answer(&owner)
        }
        Method::pendingOwner(_) => {
            let pending = call.load(pending_owner_slot())?;
            call.answer(&pending)
        }
        Method::transferOwnership(args) => transfer_ownership(call, args.newOwner),
        Method::acceptOwnership(_) => accept_ownership(call),
    }
}

fn find(name: B256) -> Result<Parameter, DoorError> {
    Parameter::by_name_word(name).ok_or_else(|| revert(IParameters::UnknownParameter { name }))
}

fn name_at(index: U256) -> Result<B256, DoorError> {
    usize::try_from(index)
        .ok()
        .and_then(|index| PARAMETERS.get(index))
        .map(|parameter| parameter.name_word())
        .ok_or_else(|| {
            revert(IParameters::IndexOutOfBounds { given: index, count: U256::from(PARAMETERS.len()) })
        })
}

fn set(call: &mut DoorCall<'_, '_>, name: B256, value: U256) -> Result<Bytes, DoorError> {
    require_owner(call)?;
    let parameter = find(name)?;
    let out_of_bounds = || {
        revert(IParameters::ParameterOutOfBounds {
            name,
            given: value,
            min: U256::from(parameter.min),
            max: U256::from(parameter.max),
        })
    };
    let given = u64::try_from(value).map_err(|_| out_of_bounds())?;
    // Check against the values of the next block, so that two changes in one block cannot break a relation.
    let mut upcoming = load_upcoming(call)?;
    let old = upcoming.get(parameter);
    upcoming.set(parameter, given).map_err(|error| match error {
        ParameterError::CronAboveHalfBlock { cron, block } => revert(IParameters::CronAboveHalfBlock {
            cronBlockGas: U256::from(cron),
            blockGas: U256::from(block),
        }),
        ParameterError::SecondTooLarge { own, shared, max, .. } => revert(IParameters::SecondTooLarge {
            own: U256::from(own),
            shared: U256::from(shared),
            max: U256::from(max),
        }),
        ParameterError::SecondAboveBlock { booked, block } => revert(IParameters::SecondAboveBlock {
            secondGas: U256::from(booked),
            blockGas: U256::from(block),
        }),
        ParameterError::ReservedFalls { given, current } => {
            revert(IParameters::ReservedFalls { given: U256::from(given), current: U256::from(current) })
        }
        ParameterError::OutOfBounds { .. } | ParameterError::Unknown { .. } => out_of_bounds(),
    })?;
    call.store(value_slot(parameter), Parameter::slot_value(given))?;
    call.emit(&IParameters::ParameterSet { name, oldValue: U256::from(old), newValue: value })?;
    Ok(Bytes::new())
}

fn load_upcoming(call: &mut DoorCall<'_, '_>) -> Result<Parameters, DoorError> {
    let mut upcoming = Parameters::default();
    for parameter in PARAMETERS {
        let stored = call.load(value_slot(parameter))?;
        upcoming.load(parameter, parameter.from_slot_value(stored));
    }
    Ok(upcoming)
}

fn require_owner(call: &mut DoorCall<'_, '_>) -> Result<Address, DoorError> {
    let (caller, owner) = (call.caller(), call.load(owner_slot())?);
    if caller == owner { Ok(owner) } else { Err(revert(IParameters::NotOwner { caller, owner })) }
}

fn transfer_ownership(call: &mut DoorCall<'_, '_>, new_owner: Address) -> Result<Bytes, DoorError> {
    let owner = require_owner(call)?;
    call.store(pending_owner_slot(), new_owner)?;
    call.emit(&IParameters::OwnershipTransferStarted { previousOwner: owner, newOwner: new_owner })?;
    Ok(Bytes::new())
}

fn accept_ownership(call: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    let (caller, pending) = (call.caller(), call.load(pending_owner_slot())?);
    // An empty proposal is the zero address, which nobody owns.
    if caller != pending || pending.is_zero() {
        return Err(revert(IParameters::NotPendingOwner { caller, pendingOwner: pending }));
    }
    let previous = call.load(owner_slot())?;
    call.store(owner_slot(), caller)?;
    call.store(pending_owner_slot(), Address::ZERO)?;
    call.emit(&IParameters::OwnershipTransferred { previousOwner: previous, newOwner: caller })?;
    Ok(Bytes::new())
}
