//! Lets synchronous code read an asynchronous view.
//!
//! The code runs on its own stack. When it reads a key that is not cached, that stack is suspended with the key, the
//! future awaits the view, and the code continues with the value. Nothing is executed twice, no thread is blocked, and
//! any number of such futures may interleave.

use crate::{
    fiber::{Asker, Fiber, Step},
    view::StateView,
};
use alloy_primitives::Bytes;
use almanac_primitives::{StateKey, StateRead, StateReadError};
use std::{cell::RefCell, collections::BTreeMap};

type Answer = Result<Option<Bytes>, StateReadError>;
/// The answers to several keys, in their order.
type Answers = Result<Vec<Option<Bytes>>, StateReadError>;

/// Runs `work` over the state of `view`.
///
/// Reads the `prefetch` keys first, in one call, and likewise the keys that `work` announces. Reads every other
/// key when `work` first needs it. Reads each key at most once, with one exception: announced keys on which the
/// view failed are read again, one by one. If the view fails on a key that was not prefetched, `work` gets the
/// error as the result of its read and continues.
///
/// A panic of `work` becomes a panic of this future. Dropping the future in the middle drops everything that
/// `work` has on its stack; reads from destructors then fail instead of waiting.
///
/// Work between two reads is not interrupted: it occupies its executor's thread until the next read.
///
/// # Contract
/// Another thread may resume the future, and `work` with it, in the middle of a read. So while it reads, `work`
/// must hold nothing that is tied to its thread: no lock guard, no reference from a thread-local (nor its
/// address, which the compiler may keep if one function uses it before and after a read), no entered tracing
/// span, no `std::thread::scope`. On a task that never changes its thread, as on a blocking pool or in a
/// simulator, all of that is allowed; prefer one if the work calls much foreign code.
///
/// # Errors
/// If the view fails on the `prefetch` keys. `work` has not run then.
///
/// # Panics
/// If the system has no memory for a stack.
pub async fn with_reader<V: StateView, T: Send + 'static>(
    view: &V,
    prefetch: &[StateKey],
    work: impl FnOnce(&dyn StateRead) -> T + Send + 'static,
) -> Result<T, StateReadError> {
    let known = load(view, prefetch).await?;
    let mut fiber = Fiber::new(move |asker: &Asker<'_, Vec<StateKey>, Answers>| {
        work(&SuspendingState { asker, known: RefCell::new(known) })
    });
    let mut step = fiber.start();
    loop {
        match step {
            Step::Done(output) => return Ok(output),
            Step::Asks(keys) => step = fiber.answer(ask(view, &keys).await),
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
    let values = ask(view, &keys).await?;
    Ok(keys.into_iter().zip(values.into_iter().map(Ok)).collect())
}

async fn ask<V: StateView>(view: &V, keys: &[StateKey]) -> Answers {
    let values = view.get_many(keys).await?;
    assert_eq!(values.len(), keys.len(), "a view answers every key");
    Ok(values)
}

/// The state as the work sees it. It lives on the fiber, with its cache.
struct SuspendingState<'fiber> {
    asker: &'fiber Asker<'fiber, Vec<StateKey>, Answers>,
    known: RefCell<BTreeMap<StateKey, Answer>>,
}

impl StateRead for SuspendingState<'_> {
    fn read(&self, key: StateKey) -> Answer {
        if let Some(answer) = self.known.borrow().get(&key) {
            return answer.clone();
        }
        let answers = self.asker.ask(vec![key]).map_err(|_| {
            StateReadError::failed(key, "the code that reads it is being unwound and cannot wait")
        })?;
        let answer = answers.map(|values| values.into_iter().next().expect("every key is answered"));
        self.known.borrow_mut().insert(key, answer.clone());
        answer
    }

    fn announce(&self, keys: &[StateKey]) {
        let mut unknown = keys.to_vec();
        unknown.retain(|key| !self.known.borrow().contains_key(key));
        unknown.sort_unstable();
        unknown.dedup();
        if unknown.is_empty() {
            return;
        }
        // Ignore errors here: a failing key fails again when it is read, and is reported then.
        if let Ok(Ok(values)) = self.asker.ask(unknown.clone()) {
            self.known.borrow_mut().extend(unknown.into_iter().zip(values.into_iter().map(Ok)));
        }
    }
}
