//! Finds a small part of a history that goes wrong like the whole.

use super::plan::{ActPlan, BlockPlan, TransactionPlan};

/// How often a part is tried. A failure shall be seen within a minute or two.
const TRIES_MAX: usize = 600;

/// Leaves out blocks, then transactions, then parts of scripts, as long as what is left goes wrong.
pub fn reduce(mut history: Vec<BlockPlan>, goes_wrong: impl Fn(&[BlockPlan]) -> bool) -> Vec<BlockPlan> {
    let mut tries = 0;
    let mut is_wrong = |history: &[BlockPlan]| {
        tries += 1;
        tries <= TRIES_MAX && goes_wrong(history)
    };
    let mut size = history.len();
    while size > 0 {
        leave_out(&mut history, size, |blocks| blocks, &mut is_wrong);
        size /= 2;
    }
    for n in (0..history.len()).rev() {
        leave_out(&mut history, 1, |blocks| &mut blocks[n].transactions, &mut is_wrong);
        for m in 0..history[n].transactions.len() {
            if let TransactionPlan::Script(..) = history[n].transactions[m] {
                leave_out(&mut history, 1, |blocks| acts(&mut blocks[n].transactions[m]), &mut is_wrong);
            }
        }
    }
    history
}

fn acts(plan: &mut TransactionPlan) -> &mut Vec<ActPlan> {
    match plan {
        TransactionPlan::Script(_, acts) => acts,
        other => panic!("{other:?} is no script"),
    }
}

/// Leaves out so many items in a row of one list, from its end to its beginning, wherever that can be done.
fn leave_out<T>(
    history: &mut Vec<BlockPlan>,
    size: usize,
    list: impl for<'h> Fn(&'h mut Vec<BlockPlan>) -> &'h mut Vec<T>,
    is_wrong: &mut impl FnMut(&[BlockPlan]) -> bool,
) {
    let mut end = list(history).len();
    while end > 0 {
        let start = end.saturating_sub(size);
        let mut shorter = history.clone();
        list(&mut shorter).drain(start..end);
        if is_wrong(&shorter) {
            *history = shorter;
        }
        end = start;
    }
}
