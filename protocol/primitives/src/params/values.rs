//! The values of parameters in one block, and which changes of them are allowed.

use super::*;
use crate::units::Gas;
use std::collections::BTreeMap;

/// Why a parameter cannot take a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// No parameter has this name.
    #[error("there is no parameter named {given:?}; known: {}", known_names())]
    Unknown {
        /// The name that was given.
        given: String,
    },
    /// The value is outside the parameter's bounds.
    #[error("{name} = {given} is outside {min}..={max}")]
    OutOfBounds {
        /// The parameter.
        name: &'static str,
        /// The refused value.
        given: u64,
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// The value would break a relation with another parameter.
    #[error("cron_block_gas_max = {cron} is above half of block_gas_max = {block}")]
    CronAboveHalfBlock {
        /// The cron lane's gas.
        cron: u64,
        /// The block's gas.
        block: u64,
    },
    /// One class could book more of a second than a slot can count.
    #[error("{own_name} = {own} and second_effort_shared = {shared} are more than {max} together")]
    SecondTooLarge {
        /// The class's own part.
        own_name: &'static str,
        /// Its effort.
        own: u64,
        /// The shared part.
        shared: u64,
        /// Most that both may be.
        max: u64,
    },
    /// One block could not run all that one second can book.
    #[error("{booked} gas of one second is more than reserved_block_gas_max = {block}")]
    SecondAboveBlock {
        /// What one second can book.
        booked: u64,
        /// What one block can run of it.
        block: u64,
    },
    /// What is booked could no longer run in one block.
    #[error(
        "reserved_block_gas_max = {given} is below {current}, and it never falls: seconds may be booked up to it"
    )]
    ReservedFalls {
        /// The refused value.
        given: u64,
        /// The value in force.
        current: u64,
    },
}

fn known_names() -> String {
    PARAMETERS.map(|p| p.name).join(", ")
}

/// The values in force in one block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(BTreeMap<u64, u64>);

impl Parameters {
    /// The value of a parameter.
    pub fn get(&self, parameter: Parameter) -> u64 {
        self.0.get(&parameter.slot).copied().unwrap_or(parameter.default)
    }

    /// Takes a value as stored, without checks: what is in state was checked when it was written.
    pub fn load(&mut self, parameter: Parameter, value: u64) {
        self.0.insert(parameter.slot, value);
    }

    /// Changes a value, or says why not. Nothing changes on an error.
    pub fn set(&mut self, parameter: Parameter, given: u64) -> Result<(), ParameterError> {
        let Parameter { name, min, max, .. } = parameter;
        if !(min..=max).contains(&given) {
            return Err(ParameterError::OutOfBounds { name, given, min, max });
        }
        let current = self.get(parameter);
        if parameter == RESERVED_BLOCK_GAS_MAX && given < current {
            return Err(ParameterError::ReservedFalls { given, current });
        }
        let mut changed = self.clone();
        changed.load(parameter, given);
        changed.check_relations()?;
        *self = changed;
        Ok(())
    }

    /// Checks what must hold between parameters.
    pub fn check_relations(&self) -> Result<(), ParameterError> {
        let (cron, block) = (self.get(CRON_BLOCK_GAS_MAX), self.get(BLOCK_GAS_MAX));
        if cron > block / 2 {
            return Err(ParameterError::CronAboveHalfBlock { cron, block });
        }
        self.check_second()
    }

    /// What one second can book fits its place in the state, and one block.
    fn check_second(&self) -> Result<(), ParameterError> {
        let shared = self.get(SECOND_SHARED_EFFORT);
        let sums =
            [(SECOND_HIGH_EFFORT, SECOND_EFFORT_HIGH_MAX), (SECOND_MEDIUM_EFFORT, SECOND_EFFORT_MEDIUM_MAX)];
        for (own, max) in sums {
            let (own_name, own, max) = (own.name, self.get(own), u64::from(max));
            if own.saturating_add(shared) > max {
                return Err(ParameterError::SecondTooLarge { own_name, own, shared, max });
            }
        }
        let effort = self.get(SECOND_HIGH_EFFORT) + self.get(SECOND_MEDIUM_EFFORT) + shared;
        let (booked, block) = (effort * EFFORT_GAS, self.get(RESERVED_BLOCK_GAS_MAX));
        if booked > block {
            return Err(ParameterError::SecondAboveBlock { booked, block });
        }
        Ok(())
    }

    /// Gas shared by user transactions and the lanes that compete with them.
    pub fn block_gas_max(&self) -> Gas {
        Gas(self.get(BLOCK_GAS_MAX))
    }

    /// The lowest base fee.
    pub fn base_fee_floor(&self) -> GasPrice {
        GasPrice(self.get(BASE_FEE_FLOOR_WEI).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::B256;

    #[test]
    fn both_sides_of_every_bound() {
        for p in PARAMETERS {
            // The widest neighbours, so that only the bound under test decides.
            let mut values = Parameters::default();
            values.load(BLOCK_GAS_MAX, BLOCK_GAS_MAX.max);
            values.load(CRON_BLOCK_GAS_MAX, CRON_BLOCK_GAS_MAX.min);
            for part in [SECOND_HIGH_EFFORT, SECOND_MEDIUM_EFFORT, SECOND_SHARED_EFFORT] {
                values.load(part, 0);
            }
            // It never falls, so it is tried from its least value.
            if p != RESERVED_BLOCK_GAS_MAX {
                values.load(RESERVED_BLOCK_GAS_MAX, RESERVED_BLOCK_GAS_MAX.max);
            }
            assert_eq!(values.clone().set(p, p.min), Ok(()), "{}", p.name);
            assert_eq!(values.clone().set(p, p.max), Ok(()), "{}", p.name);
            let too_much = values.clone().set(p, p.max + 1);
            assert!(matches!(too_much, Err(ParameterError::OutOfBounds { .. })), "{}", p.name);
            if let Some(below) = p.min.checked_sub(1) {
                let too_little = values.clone().set(p, below);
                assert!(matches!(too_little, Err(ParameterError::OutOfBounds { .. })), "{}", p.name);
            }
        }
    }

    #[test]
    fn cron_never_takes_more_than_half_a_block() {
        let mut values = Parameters::default();
        assert_eq!(values.set(CRON_BLOCK_GAS_MAX, 15_000_000), Ok(()));
        assert_eq!(
            values.set(CRON_BLOCK_GAS_MAX, 15_000_001),
            Err(ParameterError::CronAboveHalfBlock { cron: 15_000_001, block: 30_000_000 })
        );
        assert_eq!(
            values.set(BLOCK_GAS_MAX, 29_999_999),
            Err(ParameterError::CronAboveHalfBlock { cron: 15_000_000, block: 29_999_999 })
        );
        assert_eq!(values.get(BLOCK_GAS_MAX), 30_000_000, "a refused change leaves the value");
    }

    #[test]
    fn zero_can_be_stored() {
        assert_eq!(SECOND_SHARED_EFFORT.from_slot_value(U256::ZERO), SECOND_SHARED_EFFORT.default);
        assert_eq!(SECOND_SHARED_EFFORT.from_slot_value(Parameter::slot_value(0)), 0);
        assert_eq!(SECOND_SHARED_EFFORT.from_slot_value(Parameter::slot_value(u64::MAX)), u64::MAX);
    }

    #[test]
    fn names_find_their_parameter() {
        for p in PARAMETERS {
            assert_eq!(Parameter::by_name(p.name), Some(p));
            assert_eq!(Parameter::by_name_word(p.name_word()), Some(p));
        }
        assert_eq!(Parameter::by_name_word(B256::ZERO), None);
    }
}
