//! `almanac schedule`: makes schedules from dates and words, and shows, watches, cancels and tops them up; collects
//! signatures for those that wait for them (`signed`).
//!
//! ```text
//! words ──> Plan ──> Order ──> read back ──> native transaction ──> ids
//! ```

mod calls;
mod cancel;
mod create;
mod describe;
mod list;
mod order;
mod show;
mod signed;
mod topup;
mod watch;

use clap::Subcommand;

use calls::{CALLBACKS, CRON, MARKET};
use signed::SIGNED;

/// What to do about schedules.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// Schedule a call for one moment.
    At(Box<create::AtArgs>),
    /// Schedule a call that repeats.
    Every(Box<create::EveryArgs>),
    /// Make a transaction that waits for the signatures of several accounts.
    Create(Box<signed::create::CreateArgs>),
    /// Sign a transaction that waits for signatures, here or elsewhere.
    Sign(Box<signed::sign::SignArgs>),
    /// List what waits for your signature.
    Waiting(signed::waiting::WaitingArgs),
    /// List schedules.
    List(list::ListArgs),
    /// Show one schedule: its terms, its money, who has signed, what it did and what it will do.
    #[command(visible_alias = "info")]
    Show(show::ShowArgs),
    /// Follow a schedule until it ends.
    Watch(watch::WatchArgs),
    /// End a schedule and get back what is left of its escrow; delete one that waits for signatures.
    #[command(visible_alias = "delete")]
    Cancel(cancel::CancelArgs),
    /// Add to the escrow of a cron job.
    Topup(topup::TopupArgs),
}

/// Does what the command says.
pub(crate) fn run(command: &ScheduleCommand) -> anyhow::Result<()> {
    match command {
        ScheduleCommand::At(args) => create::at(args),
        ScheduleCommand::Every(args) => create::every(args),
        ScheduleCommand::Create(args) => signed::create::run(args),
        ScheduleCommand::Sign(args) => signed::sign::run(args),
        ScheduleCommand::Waiting(args) => signed::waiting::run(args),
        ScheduleCommand::List(args) => list::run(args),
        ScheduleCommand::Show(args) => show::run(args),
        ScheduleCommand::Watch(args) => watch::run(args),
        ScheduleCommand::Cancel(args) => cancel::run(args),
        ScheduleCommand::Topup(args) => topup::run(args),
    }
}
