//! Lets synchronous code read a view that has to be awaited.
//!
//! The work runs on a stack of its own. Where it reads a key that is not at hand, that stack is suspended with
//! the key, the future awaits the view, and the work goes on with the answer. Nothing is run twice, no
//! thread is blocked, and any number of such futures may be interleaved.

use crate::{
    fiber::{Asker, Fiber, Step},
    view::StateView,
};
use alloy_primitives::Bytes;
use almanac_primitives::{StateKey, StateRead, StateReadError};
use std::{cell::RefCell, collections::BTreeMap};

type Answer = Result<Option<Bytes>, StateReadError>;

/// Runs `work` over the state of `view`.
///
/// The `prefetch` keys are read first, with one call; every other key when `work` first reads it. Each key is
/// asked of the view at most once, whatever the answer was. Where the view fails on a key that was not
/// prefetched, `work` gets the error as the answer to its read and goes on with it.
///
/// A panic of `work` becomes a panic of this future. Dropping the future in the middle drops everything that
/// `work` has on its stack; reads from destructors then fail instead of waiting.
///
/// Work between two reads is not interrupted: it keeps its executor's thread for as long as it takes.
///
/// # Contract
/// A future may be resumed by another thread than before, and `work` with it, in the middle of a read. So
/// while it reads, `work` must hold nothing that is tied to its thread: no lock guard, no reference from a
/// thread-local (nor its address, kept by the compiler because one function uses it before and after a read),
/// no entered tracing span, no `std::thread::scope`. On a task that never changes its thread, as on a blocking
/// pool or in a simulator, all of that is allowed; prefer one where the work calls much foreign code.
///
/// # Errors
/// Where the view fails on the `prefetch` keys; `work` has not run then.
///
/// # Panics
/// If the system has no memory left for a stack.
pub async fn with_reader<V: StateView, T: Send + 'static>(
    view: &V,
    prefetch: &[StateKey],
    work: impl FnOnce(&dyn StateRead) -> T + Send + 'static,
) -> Result<T, StateReadError> {
    let known = load(view, prefetch).await?;
    let mut fiber = Fiber::new(move |asker: &Asker<'_, StateKey, Answer>| {
        work(&SuspendingState { asker, known: RefCell::new(known) })
    });
    let mut step = fiber.start();
    loop {
        match step {
            Step::Done(output) => return Ok(output),
            Step::Asks(key) => step = fiber.answer(load_one(view, key).await),
        }
    }
}

async fn load<V: StateView>(
    view: &V,
    prefetch: &[StateKey],
) -> Result<BTreeMap<StateKey, Answer>, StateReadError> {
    let mut keys = prefetch.to_vec();
    keys.sort_unstable();
    keys.dedup();
    if keys.is_empty() {
        return Ok(BTreeMap::new());
    }
    let values = view.get_many(&keys).await?;
    assert_eq!(values.len(), keys.len(), "a view answers every key");
    Ok(keys.into_iter().zip(values.into_iter().map(Ok)).collect())
}

async fn load_one<V: StateView>(view: &V, key: StateKey) -> Answer {
    let values = view.get_many(&[key]).await?;
    let [value] = <[_; 1]>::try_from(values).expect("a view answers every key");
    Ok(value)
}

/// The state as the work sees it. It lives on the fiber, and so does all that it remembers.
struct SuspendingState<'fiber> {
    asker: &'fiber Asker<'fiber, StateKey, Answer>,
    known: RefCell<BTreeMap<StateKey, Answer>>,
}

impl StateRead for SuspendingState<'_> {
    fn read(&self, key: StateKey) -> Answer {
        if let Some(answer) = self.known.borrow().get(&key) {
            return answer.clone();
        }
        let answer = self.asker.ask(key).map_err(|_| StateReadError {
            key,
            reason: "the code that reads it is being unwound and cannot wait".to_owned(),
        })?;
        self.known.borrow_mut().insert(key, answer.clone());
        answer
    }
}
