//! What the commands that talk to a running node share: questions, times, amounts, and how they print.

pub(crate) mod address;
pub(crate) mod amount;
pub(crate) mod call_data;
pub(crate) mod call_words;
pub(crate) mod moment;
pub(crate) mod network;
pub(crate) mod node;
pub(crate) mod output;
pub(crate) mod prompt;
pub(crate) mod rhythm;
pub(crate) mod sending;
pub(crate) mod words;
