//! Capacity against a dull version of itself: a map of seconds and a search from one to the next.

mod day;
mod golden;
mod model;
mod parts;
mod random;
