//! Native transactions: what they cost before they run, whose keys signed them, and how a batch runs.

pub(crate) mod gas;
pub(crate) mod handler;
pub(crate) mod keys;
pub(crate) mod rules;
pub(crate) mod simulated;
