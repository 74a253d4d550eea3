//! Request threads run below block production.
//!
//! All threads that serve requests have a lower priority. For long work that is not enough: a thread that makes a
//! block sleeps a dozen times per block, for the disk, and must each time win a processor back from readers that never
//! sleep. So long work stays off one processor.

use rustix::{
    process::setpriority_process,
    thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity},
};

/// Behind others, but not so far that a busy machine would leave requests unanswered.
const NICENESS: i32 = 10;

/// Makes the calling thread one that serves requests. Best effort: a system that refuses serves requests at the same
/// priority as blocks.
pub fn step_back() {
    // On Linux, a thread has its own priority under its own id.
    let _ = setpriority_process(Some(gettid()), NICENESS);
}

/// Does long work, never on the first processor, unless it is the only one.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    let _elsewhere = Elsewhere::go();
    work()
}

/// As long as it lives, its thread keeps off the first processor. Best effort, as above.
struct Elsewhere(Option<CpuSet>);

impl Elsewhere {
    fn go() -> Self {
        let before = sched_getaffinity(None).ok();
        if let Some(all) = &before {
            let _ = sched_setaffinity(None, &without_first(all));
        }
        Self(before)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = sched_setaffinity(None, before);
        }
    }
}

fn without_first(all: &CpuSet) -> CpuSet {
    let mut rest = *all;
    let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu));
    if let Some(first) = first.filter(|_| all.count() > 1) {
        rest.unset(first);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cpus: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu));
        set
    }

    #[test]
    fn one_processor_is_left_to_blocks_if_there_are_two() {
        assert_eq!(without_first(&set(&[0, 1])), set(&[1]));
        assert_eq!(without_first(&set(&[3, 5, 9])), set(&[5, 9]));
        assert_eq!(without_first(&set(&[4])), set(&[4]));
    }

    #[test]
    fn long_work_keeps_aside_and_then_comes_back() {
        let before = sched_getaffinity(None).unwrap();
        assert_eq!(aside(|| sched_getaffinity(None).unwrap()), without_first(&before));
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        let panicked = std::panic::catch_unwind(|| aside(|| panic!("on purpose")));
        assert!(panicked.is_err());
        assert_eq!(sched_getaffinity(None).unwrap(), before, "also after a panic");
    }

    #[test]
    fn priority_is_that_of_one_thread() {
        let priority = || rustix::process::getpriority_process(Some(gettid())).unwrap();
        let before = priority();
        let inside = std::thread::spawn(move || {
            step_back();
            priority()
        });
        assert!(inside.join().unwrap() >= NICENESS);
        assert_eq!(priority(), before);
    }
}
