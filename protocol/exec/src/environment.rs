//! What a block is executed in: number, time, fees and the parameters in force.

use crate::{
    error::{BlockError, StateFault},
    state::read_slot,
};
use alloy_primitives::{Address, B256, U256};
use almanac_primitives::{
    Block, Chain, ConsensusContext, Gas, GasPrice, Header, Lane, StateRead, TimestampMs,
    addresses::{DEVELOPER_DOOR, LEDGER, PARAMETERS},
    block::prev_randao,
    fees::next_base_fee,
    params::{BASE_FEE_MAX, ENDED_KEPT_BLOCKS, PARAMETERS as ALL_PARAMETERS, PROTOCOL_VERSION, Parameters},
};
use almanac_schedule::{
    capacity::Shares,
    decide::Moment,
    is_held,
    standstill::{self, STANDSTILL_SLOT},
};

/// What a proposer decides about a block, apart from its transactions. Everything else follows from the parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockInput {
    /// The chain that transactions must be signed for.
    pub chain: Chain,
    /// The parent's header.
    pub parent: Header,
    /// The parent's hash.
    pub parent_hash: B256,
    /// The block's time, strictly after the parent's.
    pub timestamp: TimestampMs,
    /// Receives the tips.
    pub fee_recipient: Address,
    /// Where in consensus the block was proposed.
    pub consensus: ConsensusContext,
}

impl BlockInput {
    /// The input from which a given block must have been built, or why none can produce it.
    pub fn of_block(block: &Block, parent: Header, chain: Chain) -> Result<Self, BlockError> {
        let header = &block.header;
        if header.protocol_version != PROTOCOL_VERSION {
            return Err(BlockError::ProtocolVersion {
                given: header.protocol_version,
                known: PROTOCOL_VERSION,
            });
        }
        if parent.number.checked_add(1) != Some(header.number) {
            return Err(BlockError::NumberNotNext { given: header.number, parent: parent.number });
        }
        Ok(Self {
            chain,
            parent,
            parent_hash: header.parent_hash,
            timestamp: header.timestamp,
            fee_recipient: header.fee_recipient,
            consensus: header.consensus,
        })
    }
}

/// Everything that is fixed before the first transaction of a block runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The chain.
    pub chain: Chain,
    /// Height.
    pub number: u64,
    /// Time.
    pub timestamp: TimestampMs,
    /// The parent's hash.
    pub parent_hash: B256,
    /// Receives the tips.
    pub fee_recipient: Address,
    /// Place in consensus.
    pub consensus: ConsensusContext,
    /// Gas that user transactions and the lanes that compete with them share.
    pub gas_limit: Gas,
    /// Base fee per gas.
    pub base_fee: GasPrice,
    /// Parameters in force, read from the parent's state.
    pub parameters: Parameters,
    /// Until when the chain itself kept booked callbacks from running.
    pub held_until: TimestampMs,
    /// Whether this block is the first to know that.
    pub is_held_until_new: bool,
}

impl Environment {
    /// The properties of this block that decisions about schedules depend on.
    pub fn moment(&self) -> Moment {
        Moment {
            block: self.number,
            now: self.timestamp,
            base_fee: self.base_fee,
            fee_recipient: self.fee_recipient,
            held_until: self.held_until,
            shares: Shares::of(&self.parameters),
            ended_kept_until: self.number.saturating_add(self.parameters.get(ENDED_KEPT_BLOCKS)),
        }
    }

    /// Derives the environment of the block on `input.parent`.
    pub fn derive(input: &BlockInput, state: &dyn StateRead) -> Result<Self, BlockError> {
        let parent = &input.parent;
        if input.timestamp <= parent.timestamp {
            return Err(BlockError::TimeNotAfterParent { given: input.timestamp, parent: parent.timestamp });
        }
        let number =
            parent.number.checked_add(1).ok_or(BlockError::NumberExhausted { parent: parent.number })?;
        let parameters = read_parameters(state)?;
        let (stored, is_held) = (read_held_until(state)?, is_held(Lane::Reserved, &parameters));
        let held_until = standstill::after(stored, parent.timestamp, input.timestamp, is_held);
        Ok(Self {
            chain: input.chain,
            number,
            timestamp: input.timestamp,
            parent_hash: input.parent_hash,
            fee_recipient: input.fee_recipient,
            consensus: input.consensus,
            gas_limit: parameters.block_gas_max(),
            base_fee: base_fee_after(parent, &parameters, state)?,
            held_until,
            is_held_until_new: held_until != stored,
            parameters,
        })
    }

    /// The environment of a finished block, as far as its header describes it. For simulating calls "in" that
    /// block on the state after it, which has the parameters and the time of the last standstill.
    pub fn of_header(header: &Header, chain: Chain, parameters: Parameters, held_until: TimestampMs) -> Self {
        Self {
            chain,
            number: header.number,
            timestamp: header.timestamp,
            parent_hash: header.parent_hash,
            fee_recipient: header.fee_recipient,
            consensus: header.consensus,
            gas_limit: header.gas_limit,
            base_fee: header.base_fee,
            parameters,
            held_until,
            is_held_until_new: false,
        }
    }

    /// The result of PREVRANDAO.
    pub fn prev_randao(&self) -> B256 {
        prev_randao(self.parent_hash, self.number)
    }
}

/// Where the developer door stores a base fee for the next block. Zero means none; it is not a valid base fee.
pub(crate) const NEXT_BASE_FEE_SLOT: U256 = U256::ZERO;

/// The base fee of the block on `parent`: by the rule, unless a developer has set another one. `state` is the
/// state after `parent`; only a developer chain can hold such a setting.
pub fn base_fee_after(
    parent: &Header,
    parameters: &Parameters,
    state: &dyn StateRead,
) -> Result<GasPrice, StateFault> {
    if let Some(wanted) = wanted_base_fee(state)? {
        return Ok(wanted);
    }
    let floor = parameters.base_fee_floor();
    Ok(next_base_fee(parent.base_fee, parent.gas_used, parent.gas_limit, floor))
}

/// The base fee that a developer has set for the next block.
pub fn wanted_base_fee(state: &dyn StateRead) -> Result<Option<GasPrice>, StateFault> {
    let wanted = read_slot(state, DEVELOPER_DOOR, NEXT_BASE_FEE_SLOT)?;
    // The door rejects larger values.
    Ok(u128::try_from(wanted)
        .ok()
        .filter(|wanted| *wanted > 0)
        .map(|wanted| GasPrice(wanted.min(BASE_FEE_MAX.0))))
}

/// The parameters in a state. A slot that was never set has the default.
pub fn read_parameters(state: &dyn StateRead) -> Result<Parameters, StateFault> {
    let mut parameters = Parameters::default();
    for parameter in ALL_PARAMETERS {
        let stored = read_slot(state, PARAMETERS, U256::from(parameter.slot))?;
        parameters.load(parameter, parameter.from_slot_value(stored));
    }
    Ok(parameters)
}

/// Until when the chain itself kept booked callbacks from running, by a state.
pub fn read_held_until(state: &dyn StateRead) -> Result<TimestampMs, StateFault> {
    Ok(standstill::from_word(read_slot(state, LEDGER, STANDSTILL_SLOT)?))
}
