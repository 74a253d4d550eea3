//! Finds the final block whose state to copy: a recent one that an honest peer has.
//!
//! Every block that a peer names is certified, so it is final; but a Byzantine peer may name an old block, or one
//! whose state only it has. Of f Byzantine peers among 2f + 1, the (f + 1)-th highest block has neither problem: at
//! least one of the f + 1 peers that name it or a newer one is honest, and it is not older than the block that some
//! honest peer names.

use super::{
    Floor, Phase, Session, SyncError,
    message::{Answer, Question},
};
use crate::validators::ValidatorSet;
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Blocker, Sender};
use commonware_runtime::Clock;
use commonware_utils::{Faults as _, N3f1};
use futures::future::join_all;
use rand_core::CryptoRng;
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

/// How long a node searches for a final block before it fails.
pub(super) const TIP_PATIENCE: Duration = Duration::from_secs(60);

/// How long it waits for enough peers once one has answered.
const ENOUGH_PATIENCE: Duration = Duration::from_secs(10);

/// Time between two rounds.
const TIP_PAUSE: Duration = Duration::from_secs(1);

impl<E, S, B> Session<E, S, B>
where
    E: Clock,
    S: Sender<PublicKey = PublicKey>,
    B: Blocker<PublicKey = PublicKey> + Sync,
{
    /// The newest final block that f + 1 peers have reached. Waits if there is none yet. If too few peers
    /// answer to decide, the newest that any of them names.
    pub async fn find_floor(&self, rng: &mut impl CryptoRng) -> Result<Floor, SyncError> {
        self.find_floor_within(TIP_PATIENCE, rng).await
    }

    /// Like [`Self::find_floor`], with another timeout if nobody answers.
    pub async fn find_floor_within(
        &self,
        patience: Duration,
        rng: &mut impl CryptoRng,
    ) -> Result<Floor, SyncError> {
        self.progress.begin(Phase::Certificate, 0);
        let clock = self.asker.clock();
        let begin = clock.current();
        let since = |moment: SystemTime| clock.current().duration_since(moment).unwrap_or_default();
        let mut reports = Reports::new(&self.validators);
        let mut first_answer = None;
        while first_answer.is_some() || since(begin) < patience {
            self.ask_tips(&mut reports, rng).await;
            let peers = self.asker.peers().len();
            if reports.are_enough(peers) {
                return reports.choose().ok_or(SyncError::NoTip { patience });
            }
            if !reports.0.is_empty() {
                let moment = *first_answer.get_or_insert_with(|| clock.current());
                if since(moment) >= ENOUGH_PATIENCE {
                    return reports.choose().ok_or(SyncError::NoTip { patience });
                }
            }
            clock.sleep(TIP_PAUSE).await;
        }
        Err(SyncError::NoTip { patience })
    }

    /// Asks all peers at once, and records what they name.
    async fn ask_tips(&self, reports: &mut Reports, rng: &mut impl CryptoRng) {
        let peers = self.asker.peers();
        let asked = peers.iter().map(|peer| self.asker.ask(peer, &Question::Tip, Ok));
        let answers = join_all(asked).await;
        for (peer, answer) in peers.into_iter().zip(answers) {
            match answer.map_err(|error| error.to_string()).and_then(|answer| {
                self.check_tip(answer, rng).inspect_err(|reason| self.asker.cut_off(&peer, reason))
            }) {
                Ok(floor) => reports.take(peer, floor),
                Err(error) => tracing::debug!("{peer} names no final block: {error}"),
            }
        }
    }

    /// The newest final block that one peer has reached.
    pub(super) async fn ask_tip(&self, peer: &PublicKey, rng: &mut impl CryptoRng) -> Option<Floor> {
        self.asker.ask(peer, &Question::Tip, |answer| self.check_tip(answer, rng)).await.ok()
    }

    fn check_tip(&self, answer: Answer, rng: &mut impl CryptoRng) -> Result<Floor, String> {
        let Answer::Tip { header, certificate } = answer else { return Err("not a tip".to_owned()) };
        let floor = Floor { header: *header, certificate };
        floor.verify(&self.validators, &self.namespace, rng).map_err(|error| error.to_string())?;
        Ok(floor)
    }
}

/// The newest final block that each peer has named, and how many of the peers may be Byzantine.
struct Reports(BTreeMap<PublicKey, Floor>, usize);

impl Reports {
    fn new(validators: &ValidatorSet) -> Self {
        let faults = N3f1::max_faults(validators.keys().len());
        Self(BTreeMap::new(), usize::try_from(faults).expect("VALIDATORS_MAX is small"))
    }

    fn take(&mut self, peer: PublicKey, floor: Floor) {
        let number = floor.header.number;
        let kept = self.0.entry(peer).or_insert_with(|| floor.clone());
        if kept.header.number < number {
            *kept = floor;
        }
    }

    /// Whether no further peers need to answer. If there are fewer peers than needed, all must answer.
    fn are_enough(&self, peers: usize) -> bool {
        !self.0.is_empty() && self.0.len() >= self.enough().min(peers)
    }

    fn enough(&self) -> usize {
        2 * self.1 + 1
    }

    fn choose(self) -> Option<Floor> {
        let (enough, faults, given) = (self.enough(), self.1, self.0.len());
        let mut floors: Vec<Floor> = self.0.into_values().collect();
        floors.sort_by_key(|floor| Reverse(floor.header.number));
        let place = if given >= enough {
            faults
        } else {
            tracing::warn!(
                "only {given} peers named a final block, and a safe choice needs {enough}: taking the newest"
            );
            0
        };
        (place < given).then(|| floors.swap_remove(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::Header;
    use commonware_cryptography::{Signer as _, ed25519::PrivateKey};

    fn reports(faults: usize, heights: &[u64]) -> Reports {
        let mut reports = Reports(BTreeMap::new(), faults);
        for (seed, number) in (0..).zip(heights) {
            let header = Header { number: *number, ..Header::default() };
            let floor = Floor { header, certificate: Default::default() };
            reports.take(PrivateKey::from_seed(seed).public_key(), floor);
        }
        reports
    }

    fn chosen(faults: usize, heights: &[u64]) -> Option<u64> {
        reports(faults, heights).choose().map(|floor| floor.header.number)
    }

    #[test]
    fn f_peers_can_name_neither_an_old_block_nor_one_that_nobody_else_has() {
        assert_eq!(chosen(0, &[7]), Some(7));
        assert_eq!(chosen(1, &[100, 99, 3]), Some(99), "an old one");
        assert_eq!(chosen(1, &[500, 99, 98]), Some(99), "one that the others do not have yet");
        assert_eq!(chosen(1, &[100, 99, 98, 3]), Some(99));
        assert_eq!(chosen(2, &[3, 3, 100, 99, 98]), Some(98));
        assert_eq!(chosen(2, &[500, 500, 100, 99, 98]), Some(100));
    }

    #[test]
    fn of_too_few_the_newest_counts() {
        assert_eq!(chosen(1, &[3, 100]), Some(100));
        assert_eq!(chosen(1, &[3]), Some(3));
        assert_eq!(chosen(1, &[]), None);
    }

    #[test]
    fn both_sides_of_enough() {
        for (faults, least) in [(0, 1), (1, 3), (2, 5)] {
            let heights: Vec<u64> = (1..=least).collect();
            assert!(reports(faults, &heights).are_enough(10), "{least} of 10");
            assert!(!reports(faults, &heights[1..]).are_enough(10), "{least} - 1 of 10");
        }
        assert!(reports(1, &[1, 2]).are_enough(2), "there are no more");
        assert!(!reports(1, &[]).are_enough(0), "nobody is not enough");
    }

    #[test]
    fn a_peer_counts_once_with_its_newest_block() {
        let mut reports = reports(1, &[5, 6]);
        let first = PrivateKey::from_seed(0).public_key();
        for number in [9, 8] {
            let header = Header { number, ..Header::default() };
            reports.take(first.clone(), Floor { header, certificate: Default::default() });
        }
        assert_eq!(reports.0.len(), 2);
        assert_eq!(reports.0[&first].header.number, 9);
    }
}
