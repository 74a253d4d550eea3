//! Both sides of each node limit, and bytes that do not decode.

use super::*;
use crate::calendar::Queue;
use proptest::{collection::vec, prelude::*};

fn at(time: u64) -> Key {
    Key::at(Queue::Cron, time)
}

fn span(from: u64, until: u64) -> Span {
    Span { from: at(from), until: at(until) }
}

fn leaf(span: Span, times: impl IntoIterator<Item = u64>) -> Node {
    Node { level: 0, span, items: times.into_iter().map(|time| Item { key: at(time), child: 0 }).collect() }
}

fn branch(times: impl IntoIterator<Item = u64>) -> Node {
    let items: Vec<_> = times.into_iter().map(|time| Item { key: at(time), child: time + 1 }).collect();
    let from = items.first().map_or(at(0), |item| item.key);
    Node { level: 1, span: Span { from, until: at(100) }, items }
}

fn refused(node: &Node) -> NodeError {
    Node::decode(&node.encode(), node.level, node.span.until).unwrap_err()
}

fn is_taken(node: &Node) {
    let encoded = node.encode();
    assert_eq!(encoded.len(), node.encoded_len());
    assert!(encoded.len() <= NODE_BYTES_MAX);
    assert_eq!(Node::decode(&encoded, node.level, node.span.until).as_ref(), Ok(node));
}

#[test]
fn both_sides_of_each_length() {
    let (max, min) = (ITEMS_MAX as u64, ITEMS_MIN as u64);
    is_taken(&leaf(span(0, 100), 0..max));
    is_taken(&leaf(span(0, 100), 0..min));
    is_taken(&leaf(Span::ALL, []));
    is_taken(&branch(0..max));
    is_taken(&branch(0..2));
    let too_long = |what| DecodeError::TooLong { what, given: ITEMS_MAX + 1, max: ITEMS_MAX };
    let too_few = |given, min| NodeError::TooFew { given, min };
    assert_eq!(refused(&leaf(span(0, 100), 0..=max)), too_long("entries of a calendar leaf").into());
    assert_eq!(refused(&leaf(span(0, 100), 0..min - 1)), too_few(ITEMS_MIN - 1, ITEMS_MIN));
    assert_eq!(refused(&leaf(Span { until: at(9), ..Span::ALL }, [])), too_few(0, ITEMS_MIN));
    assert_eq!(refused(&leaf(Span { from: at(9), ..Span::ALL }, [])), too_few(0, ITEMS_MIN));
    assert_eq!(refused(&branch(0..=max)), too_long("children of a calendar branch").into());
    assert_eq!(refused(&branch(0..1)), too_few(1, 2));
    assert_eq!(refused(&branch([])), too_few(0, 2));
}

#[test]
fn keys_ascend_within_the_bounds() {
    is_taken(&leaf(span(3, 6), [3, 4, 5]));
    for (bad, index) in [([3, 3, 5], 1), ([4, 3, 5], 1), ([2, 4, 5], 0), ([3, 4, 6], 2), ([3, 5, 4], 2)] {
        assert_eq!(refused(&leaf(span(3, 6), bad)), NodeError::KeyOutOfPlace { index }, "{bad:?}");
    }
    let mut no_queue = leaf(Span::ALL, [1, 2]);
    no_queue.items[1].key.0[0] = 8;
    assert_eq!(refused(&no_queue), NodeError::KeyOutOfPlace { index: 1 });
    assert_eq!(refused(&branch([1, 100])), NodeError::KeyOutOfPlace { index: 1 });
    is_taken(&branch([1, 99]));
}

#[test]
fn bounds_hold_something_and_are_places_of_entries() {
    for bad in [span(3, 3), span(4, 3), Span { from: Key::END, until: Key::END }] {
        assert_eq!(refused(&leaf(bad, [])), NodeError::BadSpan, "{bad:?}");
    }
    let behind_all = Key::end_of(Queue::Signing);
    assert_eq!(refused(&leaf(Span { from: at(0), until: behind_all }, [])), NodeError::BadSpan);
    assert_eq!(refused(&leaf(Span { from: behind_all, until: Key::END }, [])), NodeError::BadSpan);
}

#[test]
fn a_node_is_refused_at_another_place() {
    let (leaf, branch) = (leaf(span(3, 6), [3, 4, 5]), branch([1, 2]));
    let wrong_level = |given, expected| Err(NodeError::WrongLevel { given, expected });
    assert_eq!(Node::decode(&leaf.encode(), 1, at(6)), wrong_level(0, 1));
    assert_eq!(Node::decode(&branch.encode(), 0, at(6)), wrong_level(1, 0));
    assert_eq!(leaf.check_place(0, span(3, 6)), Ok(()));
    assert_eq!(leaf.check_place(1, span(3, 6)), Err(NodeError::WrongLevel { given: 0, expected: 1 }));
    for other in [span(2, 6), span(3, 7)] {
        assert_eq!(leaf.check_place(0, other), Err(NodeError::WrongSpan));
    }
    let mut to_anchor = branch;
    to_anchor.items[1].child = ANCHOR;
    assert_eq!(refused(&to_anchor), NodeError::ChildIsAnchor { index: 1 });
}

#[test]
fn a_key_goes_to_the_child_that_answers_for_it() {
    let branch = branch([10, 20, 30]);
    for (key, child, from, until) in
        [(10, 11, 10, 20), (19, 11, 10, 20), (20, 21, 20, 30), (30, 31, 30, 100), (99, 31, 30, 100)]
    {
        assert_eq!(branch.child(&at(key)), (child, span(from, until)));
    }
}

proptest! {
    #[test]
    fn reading_garbage_never_panics(bytes in vec(any::<u8>(), 0..400), level in 0..3u8) {
        let _ = Node::decode(&bytes, level, Key::END);
    }

    /// Mutates a valid node, so that garbage passes the first checks.
    #[test]
    fn one_node_has_one_encoding(
        is_leaf: bool,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        length in prop::option::of(0..400usize),
    ) {
        let node = if is_leaf { leaf(span(3, 60), 3..9) } else { branch(0..6) };
        let mut bytes = node.encode();
        for (index, byte) in changes {
            *index.get_mut(&mut bytes[..]) = byte;
        }
        bytes.resize(length.unwrap_or(bytes.len()), 0);
        if let Ok(read) = Node::decode(&bytes, node.level, node.span.until) {
            prop_assert_eq!(read.encode(), bytes);
        }
    }
}
