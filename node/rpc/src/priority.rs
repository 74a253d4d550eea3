//! Whoever serves requests steps back for whoever makes blocks.
//!
//! Priority alone does not do: a thread that makes a block sleeps a dozen times per block, for the disk, and each
//! time has to get a processor back from readers who never sleep. So one processor is left free of them.

use rustix::{
    process::setpriority_process,
    thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity},
};

/// Behind others, but not so far that a busy machine would leave requests unanswered.
const NICENESS: i32 = 10;

/// Makes the calling thread one that serves requests: at a lower priority, and never on the first processor, unless
/// it is the only one. Best effort: a system that refuses serves requests side by side with blocks.
pub fn yield_to_blocks() {
    // On Linux, a thread has its own priority under its own id.
    let _ = setpriority_process(Some(gettid()), NICENESS);
    if let Ok(all) = sched_getaffinity(None) {
        let _ = sched_setaffinity(None, &without_first(&all));
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
    fn it_takes_effect_on_the_calling_thread_alone() {
        let before = sched_getaffinity(None).unwrap();
        let inside = std::thread::spawn(|| {
            yield_to_blocks();
            (sched_getaffinity(None).unwrap(), rustix::process::getpriority_process(Some(gettid())).unwrap())
        });
        let (processors, niceness) = inside.join().unwrap();
        assert_eq!(processors, without_first(&before));
        assert!(niceness >= NICENESS, "{niceness}");
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
