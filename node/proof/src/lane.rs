//! Names of lanes.

use almanac_primitives::Lane;
use serde::{Deserialize, Serialize};

/// A lane by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each is named as its lane")]
pub enum LaneName {
    Reserved,
    Cron,
    Market,
    Spare,
    Signed,
}

impl From<Lane> for LaneName {
    fn from(lane: Lane) -> Self {
        match lane {
            Lane::Reserved => Self::Reserved,
            Lane::Cron => Self::Cron,
            Lane::Market => Self::Market,
            Lane::Spare => Self::Spare,
            Lane::Signed => Self::Signed,
        }
    }
}

impl From<LaneName> for Lane {
    fn from(name: LaneName) -> Self {
        match name {
            LaneName::Reserved => Self::Reserved,
            LaneName::Cron => Self::Cron,
            LaneName::Market => Self::Market,
            LaneName::Spare => Self::Spare,
            LaneName::Signed => Self::Signed,
        }
    }
}
