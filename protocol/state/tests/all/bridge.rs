//! Synchronous work over views that really pend: in the deterministic simulator and on tokio's threads.

use alloy_primitives::Bytes;
use almanac_primitives::{StateKey, StateRead, StateReadError};
use almanac_state::{StateView, with_reader};
use commonware_runtime::{Clock as _, Runner as _, Spawner as _, Supervisor as _, deterministic};
use futures::{FutureExt as _, future::BoxFuture};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

type Pause = Arc<dyn Fn(u64) -> BoxFuture<'static, ()> + Send + Sync>;
type Spawn = Box<dyn Fn(BoxFuture<'static, u64>) -> BoxFuture<'static, Result<u64, String>> + Send + Sync>;

/// A runtime: how to wait, and how to run a task and learn that it panicked.
struct Host {
    pause: Pause,
    spawn: Spawn,
}

fn in_simulator<F: Future>(seed: u64, scenario: impl FnOnce(Host) -> F) -> (F::Output, String) {
    let config = deterministic::Config::new().with_seed(seed).with_catch_panics(true);
    deterministic::Runner::new(config).start(|context| async move {
        let (clock, tasks) = (context.child("clock"), context.child("tasks"));
        let host = Host {
            pause: Arc::new(move |ms| clock.sleep(Duration::from_millis(ms)).boxed()),
            spawn: Box::new(move |task| {
                let handle = tasks.child("bridge").spawn(move |_| task);
                async move { handle.await.map_err(|error| error.to_string()) }.boxed()
            }),
        };
        let output = scenario(host).await;
        (output, context.auditor().state())
    })
}

fn on_tokio<F: Future>(scenario: impl FnOnce(Host) -> F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .expect("a runtime");
    let host = Host {
        pause: Arc::new(|ms| {
            async move {
                tokio::task::yield_now().await;
                tokio::time::sleep(Duration::from_micros(100 * ms)).await;
            }
            .boxed()
        }),
        spawn: Box::new(|task| {
            let handle = tokio::spawn(task);
            async move { handle.await.map_err(|error| error.to_string()) }.boxed()
        }),
    };
    runtime.block_on(scenario(host))
}

/// Runs a scenario on both runtimes.
fn everywhere<F: Future<Output = ()>>(scenario: impl Fn(Host) -> F) {
    in_simulator(1, &scenario);
    on_tokio(&scenario);
}

/// Waits before every answer, and writes down what it was asked.
struct PendingView {
    values: BTreeMap<StateKey, Bytes>,
    failing: BTreeSet<StateKey>,
    asked: Mutex<Vec<Vec<StateKey>>>,
    pause: Pause,
}

impl PendingView {
    fn new(pause: &Pause, values: impl IntoIterator<Item = (u64, u64)>) -> Arc<Self> {
        Self::failing(pause, values, [])
    }

    fn failing(
        pause: &Pause,
        values: impl IntoIterator<Item = (u64, u64)>,
        failing: impl IntoIterator<Item = u64>,
    ) -> Arc<Self> {
        Arc::new(Self {
            values: values.into_iter().map(|(key, value)| (node(key), stored(value))).collect(),
            failing: failing.into_iter().map(node).collect(),
            asked: Mutex::default(),
            pause: Arc::clone(pause),
        })
    }

    fn asked(&self) -> Vec<Vec<StateKey>> {
        self.asked.lock().expect("unpoisoned").clone()
    }
}

impl StateView for PendingView {
    async fn get_many(&self, keys: &[StateKey]) -> Result<Vec<Option<Bytes>>, StateReadError> {
        self.asked.lock().expect("unpoisoned").push(keys.to_vec());
        let first = keys.first().map_or(0, |key| u64::from(key.hashed()[0]));
        (self.pause)(1 + first % 5).await;
        if let Some(&key) = keys.iter().find(|key| self.failing.contains(key)) {
            return Err(StateReadError::failed(key, "the disk is gone"));
        }
        Ok(keys.iter().map(|key| self.values.get(key).cloned()).collect())
    }
}

fn node(number: u64) -> StateKey {
    StateKey::Calendar(number)
}

fn stored(value: u64) -> Bytes {
    value.to_be_bytes().into()
}

fn read(state: &dyn StateRead, number: u64) -> Option<u64> {
    let value = state.read(node(number)).expect("this key can be read")?;
    Some(u64::from_be_bytes(value[..].try_into().expect("eight bytes")))
}

/// Follows the pointers from a node on, and digests what it saw.
fn chase(state: &dyn StateRead, start: u64) -> u64 {
    let (mut at, mut seen) = (start, 0u64);
    while let Some(next) = read(state, at) {
        seen = seen.wrapping_mul(31).wrapping_add(next);
        at = next;
    }
    seen
}

/// `lanes` lists of `length` nodes each, whose nodes lie among each other.
fn lists(lanes: u64, length: u64) -> BTreeMap<u64, u64> {
    (0..lanes).flat_map(|lane| (0..length).map(move |n| (lane + n * lanes, lane + (n + 1) * lanes))).collect()
}

/// The dull version of a view: answers at once.
struct Map(BTreeMap<u64, u64>);

impl StateRead for Map {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        let StateKey::Calendar(number) = key else {
            return Ok(None);
        };
        Ok(self.0.get(&number).map(|value| stored(*value)))
    }
}

/// Counts how often it was dropped.
struct Witness(Arc<AtomicUsize>);

impl Drop for Witness {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn prefetched_keys_are_asked_together_and_every_other_key_once() {
    everywhere(async |host| {
        let view = PendingView::new(&host.pause, [(1, 10), (2, 20), (3, 30), (4, 40)]);
        let prefetch = [3, 1, 3, 8, 1].map(node);
        let read_all = |state: &dyn StateRead| -> Vec<_> {
            [4, 1, 2, 3, 8, 9, 4, 9, 2, 8].into_iter().map(|number| read(state, number)).collect()
        };

        let values = with_reader(&*view, &prefetch, read_all).await.expect("the view works");

        let expected = [Some(40), Some(10), Some(20), Some(30), None, None, Some(40), None, Some(20), None];
        assert_eq!(values, expected);
        let asked = [vec![1, 3, 8], vec![4], vec![2], vec![9]];
        assert_eq!(view.asked(), asked.map(|keys| keys.into_iter().map(node).collect::<Vec<_>>()));
    });
}

#[test]
fn announced_keys_are_asked_together_and_not_again() {
    everywhere(async |host| {
        let view = PendingView::new(&host.pause, [(1, 10), (2, 20), (3, 30)]);
        let work = |state: &dyn StateRead| {
            // What is known already, or announced twice, is asked for once.
            state.announce(&[3, 1, 3, 9].map(node));
            state.announce(&[1, 9].map(node));
            state.announce(&[]);
            [1, 2, 3, 9, 1].map(|number| read(state, number))
        };
        let values = with_reader(&*view, &[node(1)], work).await;
        assert_eq!(values, Ok([Some(10), Some(20), Some(30), None, Some(10)]));
        let asked = [vec![1], vec![3, 9], vec![2]];
        assert_eq!(view.asked(), asked.map(|keys| keys.into_iter().map(node).collect::<Vec<_>>()));
    });
}

#[test]
fn an_error_of_an_announced_key_is_told_where_that_key_is_read() {
    everywhere(async |host| {
        let view = PendingView::failing(&host.pause, [(1, 10)], [5]);
        let work = |state: &dyn StateRead| {
            state.announce(&[1, 5].map(node));
            (read(state, 1), state.read(node(5)))
        };
        let (good, bad) = with_reader(&*view, &[], work).await.expect("nothing was prefetched");
        assert_eq!(good, Some(10));
        assert_eq!(bad.expect_err("its disk is gone").key, node(5));
    });
}

#[test]
fn nothing_is_asked_where_nothing_is_read() {
    everywhere(async |host| {
        let view = PendingView::new(&host.pause, []);
        assert_eq!(with_reader(&*view, &[], |_| 7).await, Ok(7));
        assert_eq!(view.asked(), Vec::<Vec<StateKey>>::new());
    });
}

#[test]
fn each_call_asks_for_itself() {
    everywhere(async |host| {
        let view = PendingView::new(&host.pause, [(1, 10)]);
        for _ in 0..2 {
            assert_eq!(with_reader(&*view, &[], |state| read(state, 1)).await, Ok(Some(10)));
        }
        assert_eq!(view.asked(), [[node(1)], [node(1)]]);
    });
}

#[test]
fn an_error_of_the_view_is_the_answer_to_the_read() {
    everywhere(async |host| {
        let view = PendingView::failing(&host.pause, [(1, 10), (2, 20)], [5]);
        let outcome = with_reader(&*view, &[node(1)], |state| {
            let first = state.read(node(5));
            let after = read(state, 2);
            (first, after, state.read(node(5)))
        })
        .await
        .expect("the prefetch works");

        let failed = Err(StateReadError::failed(node(5), "the disk is gone"));
        assert_eq!(outcome, (failed.clone(), Some(20), failed));
        assert_eq!(view.asked(), [[node(1)], [node(5)], [node(2)]]);
    });
}

#[test]
fn an_error_of_the_prefetch_comes_before_the_work() {
    everywhere(async |host| {
        let view = PendingView::failing(&host.pause, [(1, 10)], [5]);
        let drops = Arc::new(AtomicUsize::new(0));
        let captured = Witness(Arc::clone(&drops));

        let outcome: Result<(), _> = with_reader(&*view, &[node(1), node(5)], move |_| {
            let _captured = captured;
            panic!("the work must not run")
        })
        .await;

        assert_eq!(outcome.expect_err("the view fails").key, node(5));
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_panic_of_the_work_reaches_its_task_and_no_other() {
    everywhere(async |host| {
        let view = PendingView::new(&host.pause, lists(2, 20));
        let drops = Arc::new(AtomicUsize::new(0));
        let bridge = |start: u64, is_wrong: bool| {
            let (view, captured) = (Arc::clone(&view), Witness(Arc::clone(&drops)));
            async move {
                with_reader(&*view, &[], move |state| {
                    let _captured = captured;
                    let seen = chase(state, start);
                    assert!(!is_wrong, "the work is wrong");
                    seen
                })
                .await
                .expect("the view works")
            }
        };
        let good = (host.spawn)(bridge(0, false).boxed());
        let bad = (host.spawn)(bridge(1, true).boxed());

        assert!(bad.await.is_err());
        assert_eq!(good.await, Ok(chase(&Map(lists(2, 20)), 0)));
        assert_eq!(drops.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn a_panic_keeps_its_message() {
    everywhere(async |host| {
        let view = PendingView::new(&host.pause, [(1, 10)]);
        let work = |state: &dyn StateRead| -> u64 { panic!("found {:?}", read(state, 1)) };
        let bridge = std::panic::AssertUnwindSafe(with_reader(&*view, &[], work));
        let panic = bridge.catch_unwind().await.expect_err("it panics");
        assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some("found Some(10)"));
    });
}

#[test]
fn dropping_the_future_drops_the_work_wherever_it_is() {
    let pause: Pause = Arc::new(|_| yield_once().boxed());
    // Polls: with 0 it has not begun, with 1 it waits for the prefetch, then for one read after the other.
    for polls in 0..8usize {
        let view = PendingView::new(&pause, lists(1, 100));
        let drops = Arc::new(AtomicUsize::new(0));
        let (captured, local) = (Witness(Arc::clone(&drops)), Arc::clone(&drops));
        let reads = Arc::new(AtomicUsize::new(0));
        let done = Arc::clone(&reads);
        let prefetch = [node(50)];
        let mut bridge = Box::pin(with_reader(&*view, &prefetch, move |state| {
            let _captured = captured;
            let _local = Witness(local);
            for number in 0..20 {
                read(state, number);
                done.fetch_add(1, Ordering::SeqCst);
            }
        }));
        for _ in 0..polls {
            assert!(bridge.as_mut().now_or_never().is_none());
        }
        assert_eq!(drops.load(Ordering::SeqCst), 0);
        assert_eq!(reads.load(Ordering::SeqCst), polls.saturating_sub(2));
        drop(bridge);
        // The local exists from the moment that the work has begun.
        assert_eq!(drops.load(Ordering::SeqCst), if polls < 2 { 1 } else { 2 });
        assert_eq!(reads.load(Ordering::SeqCst), polls.saturating_sub(2), "the work did not go on");
    }
}

#[test]
fn a_bridge_that_loses_a_race_is_dropped() {
    everywhere(async |host| {
        let view = PendingView::new(&host.pause, lists(1, 1_000));
        let drops = Arc::new(AtomicUsize::new(0));
        let captured = Witness(Arc::clone(&drops));
        let bridge = with_reader(&*view, &[], move |state| {
            let _captured = captured;
            chase(state, 0)
        });
        let race = futures::future::select(Box::pin(bridge), (host.pause)(20)).await;

        assert!(matches!(race, futures::future::Either::Right(_)), "a thousand reads take longer");
        assert_eq!(drops.load(Ordering::SeqCst), 0, "the race gives the loser back");
        drop(race);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        assert!((1..1_000).contains(&view.asked().len()), "it had begun");
    });
}

async fn yield_once() {
    let mut is_polled = false;
    std::future::poll_fn(move |context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut is_polled, true) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

#[test]
fn a_view_that_panics_takes_the_suspended_work_with_it() {
    struct PanickingView;
    impl StateView for PanickingView {
        async fn get_many(&self, _: &[StateKey]) -> Result<Vec<Option<Bytes>>, StateReadError> {
            yield_once().await;
            panic!("the view is wrong")
        }
    }
    everywhere(async |_| {
        let drops = Arc::new(AtomicUsize::new(0));
        let captured = Witness(Arc::clone(&drops));
        let bridge = std::panic::AssertUnwindSafe(with_reader(&PanickingView, &[], move |state| {
            let _captured = captured;
            read(state, 1)
        }));
        let panic = bridge.catch_unwind().await.expect_err("it panics");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the view is wrong"));
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}

const LANES: u64 = 32;
const LENGTH: u64 = 40;

/// As many bridges as lanes, each a task of its own, over one view. Returns what they saw and were asked.
async fn interleaved(host: Host) -> (Vec<u64>, Vec<Vec<StateKey>>) {
    let view = PendingView::new(&host.pause, lists(LANES, LENGTH));
    let bridges: Vec<_> = (0..LANES)
        .map(|lane| {
            let view = Arc::clone(&view);
            let bridge = async move {
                with_reader(&*view, &[node(lane)], move |state| chase(state, lane))
                    .await
                    .expect("the view works")
            };
            (host.spawn)(bridge.boxed())
        })
        .collect();
    let seen = futures::future::join_all(bridges).await;
    (seen.into_iter().map(|seen| seen.expect("no task panics")).collect(), view.asked())
}

fn assert_interleaved((seen, asked): (Vec<u64>, Vec<Vec<StateKey>>)) {
    let map = Map(lists(LANES, LENGTH));
    assert_eq!(seen, (0..LANES).map(|lane| chase(&map, lane)).collect::<Vec<_>>());

    let lanes: Vec<_> = asked
        .iter()
        .map(|keys| match keys[..] {
            [StateKey::Calendar(number)] => number % LANES,
            ref other => panic!("asked {other:?}"),
        })
        .collect();
    assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), asked.len(), "no key twice");
    assert_eq!(asked.len() as u64, LANES * (LENGTH + 1));
    let switches = lanes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(switches > asked.len() / 2, "{switches} switches between bridges in {} reads", asked.len());
}

#[test]
fn interleaved_bridges_do_not_mix_in_the_simulator() {
    for seed in 0..5 {
        let (output, run) = in_simulator(seed, interleaved);
        let (again, rerun) = in_simulator(seed, interleaved);
        assert_eq!((&output, &run), (&again, &rerun), "seed {seed} replays");
        assert_interleaved(output);
    }
}

#[test]
fn interleaved_bridges_do_not_mix_on_threads() {
    for _ in 0..5 {
        assert_interleaved(on_tokio(interleaved));
    }
}

#[test]
fn tasks_that_are_aborted_leave_the_others_alone() {
    const LIST: u64 = 20_000;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let pause: Pause = Arc::new(|ms| tokio::time::sleep(Duration::from_micros(50 * ms)).boxed());
        let view = PendingView::new(&pause, lists(1, LIST));
        let drops = Arc::new(AtomicUsize::new(0));
        let bridge = |start| {
            let (view, captured) = (Arc::clone(&view), Witness(Arc::clone(&drops)));
            tokio::spawn(async move {
                let work = move |state: &dyn StateRead| {
                    let _captured = captured;
                    chase(state, start)
                };
                with_reader(&*view, &[], work).await
            })
        };
        // The long ones would take minutes.
        let (long, short) = (0..16).map(|n| (bridge(n), bridge(LIST - 10 - n))).collect::<(Vec<_>, Vec<_>)>();
        (pause)(20).await;
        long.iter().for_each(tokio::task::JoinHandle::abort);

        for task in long {
            assert!(task.await.expect_err("it was aborted").is_cancelled());
        }
        let map = Map(lists(1, LIST));
        for (n, task) in (0..).zip(short) {
            assert_eq!(task.await.expect("it was left alone"), Ok(chase(&map, LIST - 10 - n)));
        }
        assert_eq!(drops.load(Ordering::SeqCst), 32);
    });
}

#[test]
fn a_bridge_moves_between_threads_in_the_middle_of_its_work() {
    let pause: Pause = Arc::new(|_| yield_once().boxed());
    let view = PendingView::new(&pause, lists(1, 50));
    let mut bridge = async move {
        with_reader(&*view, &[], |state| {
            let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
            (0..50).for_each(|number| std::rc::Rc::clone(&seen).borrow_mut().push(read(state, number)));
            seen.take()
        })
        .await
    }
    .boxed();
    let values = loop {
        // A new thread for every read.
        let turn = std::thread::spawn(move || {
            let outcome = bridge.as_mut().now_or_never();
            (bridge, outcome)
        });
        let (rest, outcome) = turn.join().expect("no panic");
        bridge = rest;
        if let Some(values) = outcome {
            break values;
        }
    };
    assert_eq!(values, Ok((1..=50).map(Some).collect::<Vec<_>>()));
}
