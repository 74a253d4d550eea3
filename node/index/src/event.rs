//! What doors say of schedules, read from their logs.
//!
//! Nobody else can log in a door's name: no contract has its address.

use alloy_primitives::{Address, Log, U256};
use alloy_sol_types::SolEventInterface as _;
use almanac_primitives::{
    Gas, Lane, ScheduleId, TimestampMs, Wei,
    addresses::{CRON_REGISTRY, LEDGER},
};

mod interfaces {
    #![allow(missing_docs, unreachable_pub, reason = "contracts/ has the words")]
    alloy_sol_types::sol!("../../contracts/ICronRegistry.sol");
    alloy_sol_types::sol!("../../contracts/ILedger.sol");
}
use interfaces::{ICronRegistry::ICronRegistryEvents as Cron, ILedger::ILedgerEvents as Chain};

/// Something that happened to a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleEvent {
    /// Somebody made it.
    Created {
        /// Its name.
        id: ScheduleId,
        /// Who may cancel it.
        owner: Address,
        /// The contract that it calls.
        target: Address,
        /// How its runs get into a block.
        lane: Lane,
        /// When its first run is due.
        due: TimestampMs,
    },
    /// Somebody added money.
    ToppedUp {
        /// Which schedule.
        id: ScheduleId,
        /// How much.
        amount: Wei,
        /// What it has now.
        escrow: Wei,
    },
    /// A run is over.
    Executed {
        /// Which schedule.
        id: ScheduleId,
        /// Whether the call returned.
        is_success: bool,
        /// Gas that it used.
        gas_used: Gas,
    },
    /// Its owner ended it.
    Cancelled {
        /// Which schedule.
        id: ScheduleId,
        /// What was paid back.
        refunded: Wei,
    },
    /// It has come to its end by itself.
    Exhausted {
        /// Which schedule.
        id: ScheduleId,
        /// Why.
        reason: String,
    },
    /// A fault of the chain's own put it aside.
    Quarantined {
        /// Which schedule.
        id: ScheduleId,
        /// What is wrong.
        reason: String,
    },
}

impl ScheduleEvent {
    /// What a log says of a schedule, if it says anything.
    pub fn of_log(log: &Log) -> Option<Self> {
        match log.address {
            CRON_REGISTRY => of_cron(Cron::decode_raw_log(log.topics(), &log.data.data).ok()?),
            LEDGER => match Chain::decode_raw_log(log.topics(), &log.data.data).ok()? {
                Chain::ScheduleQuarantined(said) => {
                    Some(Self::Quarantined { id: id(said.id)?, reason: said.reason })
                }
                Chain::LanePaused(_) | Chain::CalendarContradicted(_) => None,
            },
            _ => None,
        }
    }

    /// What a log says of a fault of the chain's own, in words.
    pub fn fault(log: &Log) -> Option<String> {
        if log.address != LEDGER {
            return None;
        }
        Some(match Chain::decode_raw_log(log.topics(), &log.data.data).ok()? {
            Chain::ScheduleQuarantined(said) => match id(said.id) {
                Some(id) => format!("schedule {id} was put aside: {}", said.reason),
                None => format!("a schedule was put aside: {}", said.reason),
            },
            Chain::LanePaused(said) => format!("lane {} is paused: {}", said.lane, said.reason),
            Chain::CalendarContradicted(said) => format!("the calendar was contradicted: {}", said.reason),
        })
    }

    /// The schedule.
    pub fn id(&self) -> ScheduleId {
        match self {
            Self::Created { id, .. }
            | Self::ToppedUp { id, .. }
            | Self::Executed { id, .. }
            | Self::Cancelled { id, .. }
            | Self::Exhausted { id, .. }
            | Self::Quarantined { id, .. } => *id,
        }
    }
}

fn of_cron(event: Cron) -> Option<ScheduleEvent> {
    Some(match event {
        Cron::JobScheduled(said) => ScheduleEvent::Created {
            id: id(said.id)?,
            owner: said.owner,
            target: said.target,
            lane: Lane::Cron,
            due: TimestampMs::from_seconds(u64::try_from(said.nextRunAt).ok()?)?,
        },
        Cron::JobToppedUp(said) => ScheduleEvent::ToppedUp {
            id: id(said.id)?,
            amount: Wei(said.amount),
            escrow: Wei(said.totalEscrow),
        },
        Cron::JobExecuted(said) => ScheduleEvent::Executed {
            id: id(said.id)?,
            is_success: said.success,
            gas_used: Gas(said.gasUsed.saturating_to()),
        },
        Cron::JobCancelled(said) => {
            ScheduleEvent::Cancelled { id: id(said.id)?, refunded: Wei(said.refunded) }
        }
        Cron::JobExhausted(said) => ScheduleEvent::Exhausted { id: id(said.id)?, reason: said.reason },
    })
}

fn id(word: U256) -> Option<ScheduleId> {
    u64::try_from(word).ok().map(ScheduleId)
}
