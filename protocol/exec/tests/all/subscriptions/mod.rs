//! ARC-21 subscriptions as they are deployed: the compiled contract, OpenZeppelin's token, the chain's own cron.
#![allow(clippy::needless_pass_by_value, reason = "calls and errors are written where they are expected")]
#![allow(unreachable_pub, reason = "the modules of one test")]

mod approval;
mod charges;
mod club;
mod ends;
mod market;
mod times;
mod tokens;
