//! Runs synchronous code on its own stack, so that it can pause in the middle of a call.

use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};

#[cfg(panic = "abort")]
compile_error!("dropping a suspended fiber unwinds its stack: build with panic=unwind");

/// Size of a fiber's stack: twice that of an ordinary Rust thread, so that whatever fits on the threads that
/// tests run on fits here. Nested EVM calls do not add to it (revm keeps their frames on the heap);
/// precompiles, inspectors and unoptimised builds do.
///
/// It is address space, not memory: only pages that are touched are ever backed, and a larger stack measured
/// no slower. Below it lies a guard page, so that an overflow ends the process instead of corrupting it.
///
/// Stacks are not kept for reuse. Mapping and unmapping one takes 11 µs and each page that is touched about
/// 1.5 µs more, once per block or simulated call, against 2 ns for each switch.
const STACK_BYTES: usize = 4 * 1024 * 1024;

/// Code that is suspended between a question and its answer, not started, or finished.
///
/// Dropping a suspended fiber unwinds its stack, so everything on it is dropped, and without calling the
/// panic hook. As in any unwinding, a destructor that panics in the course of it aborts the process.
pub(crate) struct Fiber<Question, Answer, Output>(Coroutine<Option<Answer>, Question, Output, DefaultStack>);

/// The progress of a fiber.
pub(crate) enum Step<Question, Output> {
    /// It waits for the answer to this.
    Asks(Question),
    /// It has returned.
    Done(Output),
}

/// The handle through which code on a fiber asks its questions.
pub(crate) struct Asker<'fiber, Question, Answer>(&'fiber Yielder<Option<Answer>, Question>);

/// The stack is being unwound, so it cannot wait for an answer.
pub(crate) struct Unwinding;

// SAFETY: To send a fiber is to let another thread run, or drop, what is on its stack. That is sound because
//
// 1. the stack starts with nothing but the closure, which `new` requires to be `Send` and `'static`;
// 2. questions, answers and the output cross between stacks by value, and are `Send` by the bounds below;
// 3. the `Asker` points to the link at the base of this very stack, which corosensei sets anew at every
//    resume, so that it always leads back to the thread that resumed last. It is not `Send` and lives no
//    longer than the call of the closure, so no other thread and no static can get hold of it;
// 4. the stack itself is mapped memory that does not move, and any thread may unmap it;
// 5. whatever else the closure makes, it makes on this stack or in memory owned from it. Only `start`,
//    `answer` and drop run it, and they need the fiber exclusively: one thread at a time, and handing the
//    fiber over orders what one did before what the next does. So an `Rc` or a `RefCell` that stays on the
//    fiber moves together with all its clones and borrows, and nobody else touches it meanwhile;
// 6. no unwinding is left half done on a thread: `ask` refuses to suspend while the stack unwinds, so that
//    a thread's count of panics goes up and down on that same thread.
//
// What 5 cannot exclude is a value on the fiber that is half on the fiber and half with the thread: a
// reference into a thread-local, an `Rc` of which a clone is kept in one, the guard of a lock that must be
// released where it was taken, `std::thread::scope`. The compiler does not see these, so they are the
// contract of `new`: the closure holds no such thing while it asks.
#[allow(unsafe_code)]
unsafe impl<Question: Send, Answer: Send, Output: Send> Send for Fiber<Question, Answer, Output> {}

impl<Question, Answer, Output> Fiber<Question, Answer, Output>
where
    Question: 'static,
    Answer: 'static,
    Output: 'static,
{
    /// A fiber that will run `work`.
    ///
    /// # Contract
    /// While `work` asks, it holds nothing that is tied to the thread it runs on. A fiber that is only ever
    /// resumed by one thread meets this whatever `work` does.
    ///
    /// # Panics
    /// If the system has no memory left for a stack.
    pub(crate) fn new<Work>(work: Work) -> Self
    where
        Work: FnOnce(&Asker<'_, Question, Answer>) -> Output + Send + 'static,
    {
        let stack = DefaultStack::new(STACK_BYTES)
            .unwrap_or_else(|error| panic!("no memory for a stack of {STACK_BYTES} bytes: {error}"));
        // On the heap: corosensei moves at most 1,024 bytes to a new stack, and panics above.
        let work = Box::new(work);
        Self(Coroutine::with_stack(stack, move |yielder: &Yielder<_, _>, _: Option<Answer>| {
            work(&Asker(yielder))
        }))
    }

    /// Runs it up to its first question. Propagates a panic of the work.
    pub(crate) fn start(&mut self) -> Step<Question, Output> {
        self.resume(None)
    }

    /// Answers its question and runs it up to the next. A panic of the work comes out of here.
    pub(crate) fn answer(&mut self, answer: Answer) -> Step<Question, Output> {
        self.resume(Some(answer))
    }

    fn resume(&mut self, input: Option<Answer>) -> Step<Question, Output> {
        match self.0.resume(input) {
            CoroutineResult::Yield(question) => Step::Asks(question),
            CoroutineResult::Return(output) => Step::Done(output),
        }
    }
}

impl<Question, Answer> Asker<'_, Question, Answer> {
    /// Suspends the fiber until the answer is there.
    pub(crate) fn ask(&self, question: Question) -> Result<Answer, Unwinding> {
        // A destructor asks. The unwinding is counted on this thread and has to end on it, and a fiber that
        // is being dropped would be unwound a second time from inside a destructor, which aborts.
        if std::thread::panicking() {
            return Err(Unwinding);
        }
        Ok(self.0.suspend(question).expect("a fiber that asked is resumed with an answer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        rc::Rc,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    type TestFiber = Fiber<u64, u64, u64>;
    type TestAsker<'a> = Asker<'a, u64, u64>;

    /// Counts how often it was dropped.
    struct Witness(Arc<AtomicUsize>);

    impl Drop for Witness {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn witness() -> (Witness, impl Fn() -> usize) {
        let count = Arc::new(AtomicUsize::new(0));
        (Witness(Arc::clone(&count)), move || count.load(Ordering::SeqCst))
    }

    fn ask(asker: &TestAsker<'_>, question: u64) -> u64 {
        asker.ask(question).unwrap_or_else(|_| panic!("nothing unwinds here"))
    }

    fn question(step: &Step<u64, u64>) -> u64 {
        match step {
            Step::Asks(question) => *question,
            Step::Done(output) => panic!("returned {output} instead of asking"),
        }
    }

    fn output(step: &Step<u64, u64>) -> u64 {
        match step {
            Step::Done(output) => *output,
            Step::Asks(question) => panic!("asked {question} instead of returning"),
        }
    }

    fn message(panic: &(dyn std::any::Any + Send)) -> &str {
        panic.downcast_ref::<&str>().expect("a panic with a literal message")
    }

    #[test]
    fn work_may_bring_as_much_along_as_it_likes() {
        let much = [7u64; 1_000];
        let mut fiber = TestFiber::new(move |asker| ask(asker, 1) + much.iter().sum::<u64>());
        assert_eq!(question(&fiber.start()), 1);
        assert_eq!(output(&fiber.answer(5)), 7_005);
    }

    #[test]
    fn questions_go_out_and_answers_come_in_in_order() {
        let mut fiber = TestFiber::new(|asker| (0..9).fold(0, |digits, n| digits * 10 + ask(asker, n)));
        let mut step = fiber.start();
        for n in 0..9 {
            assert_eq!(question(&step), n);
            step = fiber.answer(9 - n);
        }
        assert_eq!(output(&step), 987_654_321);
    }

    #[test]
    fn a_fiber_that_never_started_drops_its_captures() {
        let (captured, dropped) = witness();
        let fiber = TestFiber::new(move |asker| ask(asker, captured.0.load(Ordering::SeqCst) as u64));
        assert_eq!(dropped(), 0);
        drop(fiber);
        assert_eq!(dropped(), 1);
    }

    #[test]
    fn a_cancelled_fiber_drops_captures_and_locals_once() {
        let (captured, captured_dropped) = witness();
        let (local, local_dropped) = witness();
        let count = Arc::clone(&local.0);
        drop(local);
        let mut fiber = TestFiber::new(move |asker| {
            let on_stack = Witness(count);
            let on_heap = Box::new(&captured);
            let answer = ask(asker, 1) + ask(asker, 2);
            drop((on_heap, on_stack));
            answer
        });
        question(&fiber.start());
        question(&fiber.answer(0));
        assert_eq!((captured_dropped(), local_dropped()), (0, 1));
        drop(fiber);
        assert_eq!((captured_dropped(), local_dropped()), (1, 2));
    }

    #[test]
    fn a_panic_comes_out_of_the_resume_that_met_it() {
        let (captured, dropped) = witness();
        let mut fiber = TestFiber::new(move |asker| {
            let _held = captured;
            ask(asker, 1);
            panic!("the work is wrong")
        });
        question(&fiber.start());
        let panic = catch_unwind(AssertUnwindSafe(|| fiber.answer(0))).err().expect("it panics");
        assert_eq!(message(&*panic), "the work is wrong");
        assert_eq!(dropped(), 1);
        drop(fiber);
        assert_eq!(dropped(), 1);
    }

    /// Asks when it is dropped, and writes down what came of it: 1 for an answer, 2 for a refusal.
    struct AsksOnDrop<'a>(&'a TestAsker<'a>, Arc<AtomicUsize>);

    impl Drop for AsksOnDrop<'_> {
        fn drop(&mut self) {
            let result = self.0.ask(99).map_or(2, |_| 1);
            self.1.store(result, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_destructor_that_asks_is_answered_normally_and_refused_while_unwinding() {
        let result = Arc::new(AtomicUsize::new(0));
        let asks_on_drop = |end: fn(&TestAsker<'_>) -> u64| {
            let result = Arc::clone(&result);
            TestFiber::new(move |asker| {
                let _guard = AsksOnDrop(asker, result);
                end(asker)
            })
        };

        let mut returns = asks_on_drop(|_| 7);
        assert_eq!(question(&returns.start()), 99);
        assert_eq!(output(&returns.answer(0)), 7);
        assert_eq!(result.swap(0, Ordering::SeqCst), 1);

        let mut cancelled = asks_on_drop(|asker| ask(asker, 1));
        question(&cancelled.start());
        drop(cancelled);
        assert_eq!(result.swap(0, Ordering::SeqCst), 2);

        let mut panics = asks_on_drop(|_| panic!("unwinds past the guard"));
        let panic = catch_unwind(AssertUnwindSafe(|| panics.start())).err().expect("it panics");
        assert_eq!(message(&*panic), "unwinds past the guard");
        assert_eq!(result.swap(0, Ordering::SeqCst), 2);
    }

    #[test]
    fn a_fiber_can_be_dropped_by_a_thread_that_panics() {
        let (captured, dropped) = witness();
        let mut fiber = TestFiber::new(move |asker| {
            let _held = captured;
            ask(asker, 1)
        });
        question(&fiber.start());
        let panic = catch_unwind(AssertUnwindSafe(move || {
            let _fiber = fiber;
            panic!("of the thread, not of the fiber")
        }));
        assert_eq!(message(&*panic.expect_err("it panics")), "of the thread, not of the fiber");
        assert_eq!(dropped(), 1);
        assert!(!std::thread::panicking(), "every unwinding was counted to its end");
    }

    #[test]
    fn work_that_catches_the_cancellation_is_cancelled_again() {
        let (captured, dropped) = witness();
        let caught = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&caught);
        let mut fiber = TestFiber::new(move |asker| {
            let _held = captured;
            for n in 0..5 {
                if catch_unwind(AssertUnwindSafe(|| ask(asker, n))).is_err() {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            }
            0
        });
        question(&fiber.start());
        question(&fiber.answer(0));
        drop(fiber);
        assert_eq!((caught.load(Ordering::SeqCst), dropped()), (4, 1));
    }

    #[test]
    fn a_fiber_goes_on_where_another_thread_resumes_it() {
        let mut fiber = TestFiber::new(|asker| {
            let shared = Rc::new(ask(asker, 1));
            let clone = Rc::clone(&shared);
            let second = ask(asker, 2);
            *shared + *clone + second
        });
        assert_eq!(question(&fiber.start()), 1);
        let mut fiber = std::thread::spawn(move || {
            assert_eq!(question(&fiber.answer(10)), 2);
            fiber
        })
        .join()
        .expect("the first thread");
        assert_eq!(output(&fiber.answer(5)), 25);

        let (captured, dropped) = witness();
        let mut fiber = TestFiber::new(move |asker| {
            let held = Rc::new(captured);
            let _clone = Rc::clone(&held);
            ask(asker, 1)
        });
        question(&fiber.start());
        std::thread::spawn(move || drop(fiber)).join().expect("cancelled elsewhere");
        assert_eq!(dropped(), 1);
    }

    #[test]
    fn the_stack_is_deeper_than_that_of_a_thread() {
        fn deep(asker: &TestAsker<'_>, frames: u64) -> u64 {
            let mut frame = [0u8; 4096];
            std::hint::black_box(&mut frame);
            let below = if frames == 0 { ask(asker, 0) } else { deep(asker, frames - 1) };
            below + u64::from(std::hint::black_box(&frame)[0]) + 1
        }
        // 3 MiB in frames alone; an unoptimised build needs somewhat more.
        let mut fiber = TestFiber::new(|asker| deep(asker, 3 * 256));
        question(&fiber.start());
        assert_eq!(output(&fiber.answer(0)), 3 * 256 + 1);
    }

    #[test]
    fn a_thousand_fibers_can_wait_at_once() {
        let start = |n: u64| {
            let mut fiber = TestFiber::new(move |asker| ask(asker, n) + n);
            assert_eq!(question(&fiber.start()), n);
            fiber
        };
        let mut fibers: Vec<_> = (0..1_000).map(start).collect();
        for (n, fiber) in (0..).zip(&mut fibers) {
            assert_eq!(output(&fiber.answer(1)), n + 1);
        }
    }
}
