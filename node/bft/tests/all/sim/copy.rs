//! A follower copies the state while things go wrong, before it runs.

use crate::sim::{
    line::{Line, Subject},
    machine::Machine,
    marks::Mark,
    names::CopiedNames,
    node::Surroundings,
    opened::Place,
    twins::Half,
};
use almanac_bft::sync::{self, Floor, Session, SyncError, ask::Asker};
use almanac_state::BlockJournal;
use commonware_cryptography::{Signer as _, ed25519::PublicKey};
use commonware_p2p::{Blocker, Sender};
use commonware_runtime::{Clock as _, Spawner as _, Supervisor as _, deterministic::Context};
use commonware_utils::NZU32;
use std::{num::NonZeroU32, sync::Arc, time::Duration};

/// So few that a copy takes many pages.
const NAMES_PER_PAGE: NonZeroU32 = NZU32!(8);

/// When followers begin: some blocks are final, and something is wrong already.
const BEGIN: Duration = Duration::from_millis(2_500);

impl Surroundings {
    /// Copies the state, as often as it takes, and notes where it is.
    pub async fn copy_state(&self, machine: Machine, clock: &Arc<Context>, place: &mut Place) {
        machine.sleep(BEGIN).await;
        loop {
            match self.copy_once(&machine, clock, place).await {
                Ok(copied) => {
                    place.copied = Some(copied);
                    return self.network.marks.add(Mark::Copied);
                }
                // Too few answered, or what was copied is gone from them: begin anew.
                Err(error) if error.is_for_want_of_answers() => place.copies += 1,
                // `lies_cost_no_copy`: a wrong answer is another peer's turn, and nothing else.
                Err(error) => {
                    self.network.violated(format!("a follower gave up a copy: {error}"));
                    place.copies += 1;
                }
            }
        }
    }

    async fn copy_once(
        &self,
        machine: &Machine,
        clock: &Arc<Context>,
        place: &Place,
    ) -> Result<(Floor, Arc<CopiedNames>), SyncError> {
        let network = &self.network;
        let ends = self.control.register(sync::CHANNEL, sync::QUOTA).await.expect("the network runs");
        let wire = self.wire(clock, Half::First, Subject::State, ends);
        let line = wire.0.line.clone();
        let peers = network.keys[..network.size].iter().map(|key| key.public_key()).collect();
        let (asker, listener) = Asker::new(machine.child("patience"), peers, self.control.clone(), wire);
        let listening = machine.child("answers").spawn(|_| listener);
        let session = Session {
            asker: asker.into(),
            validators: (*network.validators).clone(),
            namespace: network.namespace,
            progress: Arc::default(),
            names_per_page: NAMES_PER_PAGE,
        };
        let copied = self.copy_in(&session, machine, place).await;
        // Also where it failed: a lie that is believed may be what it failed by.
        self.check_cut_off(&line).await;
        listening.abort();
        copied
    }

    async fn copy_in<S: Sender<PublicKey = PublicKey>, B: Blocker<PublicKey = PublicKey> + Sync>(
        &self,
        session: &Session<Machine, S, B>,
        machine: &Machine,
        place: &Place,
    ) -> Result<(Floor, Arc<CopiedNames>), SyncError> {
        let network = &self.network;
        let floor = session.find_floor(&mut machine.child("weights")).await?;
        let config = place.config();
        let store = session.fetch_state(machine.child("state"), &config, &network.state, &floor).await?;
        let names = CopiedNames::default();
        session.fetch_values(&store, &floor, &mut &names, &mut machine.child("names")).await?;
        let live = store.live_values().await?;
        if names.count() != live {
            network.violated(format!("a follower has the names of {} of {live} values", names.count()));
        }
        BlockJournal::begin_after(machine.child("begin"), &config, floor.header.number).await.unwrap();
        Ok((floor, Arc::new(names)))
    }

    /// `liars_are_cut_off`.
    async fn check_cut_off(&self, line: &Line) {
        let cut_off = self.control.clone().blocked().recv().await.expect("the network runs");
        for liar in line.answers.liars() {
            let key = self.network.keys[liar].public_key();
            if !cut_off.iter().any(|peer| *peer == key) {
                let text = format!("a follower keeps validator {liar}, whose operations were not proven");
                self.network.violated(text);
            }
        }
    }
}
