//! Schedules as a pure state machine: lanes, runs and what is due
