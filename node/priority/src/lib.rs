#![doc = include_str!("../README.md")]

use rustix::{
    process::setpriority_process,
    thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity},
};

/// Below block production, but not so far that a busy machine would leave requests unanswered.
const NICENESS: i32 = 10;

/// Lowers the priority of the calling thread. Best effort: a system that refuses runs it at the priority of blocks.
pub fn lower_thread() {
    // On Linux, a thread has its own priority under its own id.
    let _ = setpriority_process(Some(gettid()), NICENESS);
}

/// Runs long work off the first processor, unless there is only one.
pub fn off_first_processor<T>(work: impl FnOnce() -> T) -> T {
    let _restricted = Restricted::begin();
    work()
}

/// While it lives, its thread stays off the first processor. Best effort, as above.
struct Restricted(Option<CpuSet>);

impl Restricted {
    fn begin() -> Self {
        let before = sched_getaffinity(None).ok();
        if let Some(all) = &before {
            let _ = sched_setaffinity(None, &without_first(all));
        }
        Self(before)
    }
}

impl Drop for Restricted {
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
    fn two_processors_leave_one_to_blocks() {
        assert_eq!(without_first(&set(&[0, 1])), set(&[1]));
        assert_eq!(without_first(&set(&[3, 5, 9])), set(&[5, 9]));
        assert_eq!(without_first(&set(&[4])), set(&[4]));
    }

    #[test]
    fn long_work_is_restricted_and_then_is_not() {
        let before = sched_getaffinity(None).unwrap();
        assert_eq!(off_first_processor(|| sched_getaffinity(None).unwrap()), without_first(&before));
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        let panicked = std::panic::catch_unwind(|| off_first_processor(|| panic!("on purpose")));
        assert!(panicked.is_err());
        assert_eq!(sched_getaffinity(None).unwrap(), before, "also after a panic");
    }

    #[test]
    fn only_one_thread_is_lowered() {
        let priority = || rustix::process::getpriority_process(Some(gettid())).unwrap();
        let before = priority();
        let inside = std::thread::spawn(move || {
            lower_thread();
            priority()
        });
        assert!(inside.join().unwrap() >= NICENESS);
        assert_eq!(priority(), before);
    }
}
