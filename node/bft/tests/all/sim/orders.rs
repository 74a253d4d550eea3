//! The orders of jobs. One that gets into the chain after the job should have begun is refused; then its client
//! orders again, with twice the time ahead, until it has its job.

use crate::sim::{client::account, jobs, machine::Machine, opened::Store, run::milliseconds};
use alloy_primitives::Address;
use almanac_bft::Replica;
use almanac_primitives::{
    TimestampMs, UserTransaction,
    testing::{Person, person},
};
use almanac_state::BlockJournal;
use std::time::UNIX_EPOCH;

/// Time from the first order to the first run, in seconds: the furthest that a clock is ahead, and a block or two.
const LEAD_SECONDS: u64 = 3;

/// Clients whose jobs begin one second after the other; the next one's begins with the first one's.
const STAGGERED: u64 = 3;

/// Simulated time by which all jobs have ended where nothing delays their first orders.
pub const ENDED_BY: TimestampMs = TimestampMs((LEAD_SECONDS + STAGGERED - 1 + jobs::RUNS) * 1_000);

/// The orders of one client, which have an account of their own.
pub struct Orders {
    client: u64,
    run_gas: u64,
    /// The last one, and its nonce.
    signed: Option<(u64, UserTransaction)>,
    /// Blocks that were searched for the job.
    searched: u64,
    has_job: bool,
}

/// Who orders and owns the job of a client.
pub fn owner(client: u64) -> Person {
    person(client + 1_000)
}

impl Orders {
    pub fn new(client: usize, run_gas: u64) -> Self {
        Self { client: client as u64, run_gas, signed: None, searched: 0, has_job: false }
    }

    /// The order to submit now. `None` where there is a job, or where the chain moves on while it is read.
    pub async fn next(
        &mut self,
        context: &Machine,
        replica: &Replica<Store>,
        archive: &BlockJournal<Machine>,
    ) -> Option<&UserTransaction> {
        let owner = owner(self.client);
        // Before the search: the archive has all blocks that the state has, so an order that counts is found.
        let nonce = account(replica, owner.address).await?.nonce;
        self.search(archive, owner.address).await?;
        if self.has_job {
            return None;
        }
        if self.signed.as_ref().is_none_or(|(of, _)| *of != nonce) {
            // By a clock that is right: that of the machine may be an hour ahead, and nothing would run for so long.
            let now = milliseconds(context.true_time().duration_since(UNIX_EPOCH).unwrap()).seconds();
            let first_run = now + (LEAD_SECONDS << nonce) + self.client % STAGGERED;
            self.signed = Some((nonce, jobs::schedule(owner, nonce, first_run, self.run_gas)));
        }
        self.signed.as_ref().map(|(_, order)| order)
    }

    /// Looks for the job in blocks that it has not looked at.
    async fn search(&mut self, archive: &BlockJournal<Machine>, owner: Address) -> Option<()> {
        while !self.has_job && self.searched < archive.height().await.ok()? {
            let archived = archive.get(self.searched + 1).await.ok()??;
            self.has_job = jobs::scheduled(&[archived]).values().any(|job| job.owner == owner);
            self.searched += 1;
        }
        Some(())
    }
}
