//! The state transition on revm: one function for propose, verify, replay, simulate and trace
