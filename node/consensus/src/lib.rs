#![doc = include_str!("../README.md")]

pub mod admission;
pub mod application;
pub mod clock;
pub mod deadline;
pub mod engine;
mod narrow;
pub mod snapshots;
pub mod solo;
mod spread;

pub use admission::{
    AUTHORIZATIONS_MAX, Admission, Arrival, Effort, SharedPool, SubmitError, Submitted, TipState,
};
pub use application::{Application, ApplicationError, MadeBlock, Proposal, Proven, Tip};
pub use clock::{Clock, ManualClock, SystemClock};
pub use deadline::{Deadline, More};
pub use engine::{Engine, EngineError, Sink, SinkError};
pub use solo::{BlockId, ControlError, Controls, Mode, Solo, SoloConfig, Travel};
