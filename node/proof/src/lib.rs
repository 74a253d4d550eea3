#![doc = include_str!("../README.md")]

pub mod check;
pub mod decode;
pub mod json;
mod lane;
pub mod plan;
mod schedule_id;
pub mod time;

pub use check::{CheckError, Proven};
pub use decode::{FinalHeaders, MalformedProof, ParseError};
pub use json::{BlockFinality, ClaimJson, EntryJson, HeaderJson, PROOF_FORMAT, ProofJson, ValueJson};
pub use lane::LaneName;
pub use plan::{PROOF_LEAVES_MAX, Plan, PlanError, StateSubject, Subject, plan};
pub use schedule_id::RpcScheduleId;
pub use time::RpcTime;
