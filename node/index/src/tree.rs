//! Ordered rows in memory with versions: a reader keeps its version while others are written.
//!
//! A B-tree whose nodes are shared between versions. A write copies the nodes on its path, unless only this
//! version uses them, and leaves those of older versions unchanged. So readers need no lock, and the writer
//! never waits.

use std::{ops::Bound, sync::Arc};

/// Most entries of a node. Larger nodes make reads faster and copies slower.
const ENTRIES_MAX: usize = 32;

type Bytes = Arc<[u8]>;

/// One version. Cloning is cheap, and a clone never changes.
#[derive(Clone)]
pub(crate) struct Tree {
    root: Arc<Node>,
}

#[derive(Clone)]
enum Node {
    Leaf(Vec<Entry>),
    /// Each child with a key that is at most its smallest key, and above all keys of the child before.
    Inner(Vec<(Bytes, Arc<Node>)>),
}

/// A key and its value.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
}

impl Default for Tree {
    fn default() -> Self {
        Self { root: Arc::new(Node::Leaf(Vec::new())) }
    }
}

impl Tree {
    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let found = entries.binary_search_by(|entry| (*entry.key).cmp(key)).ok()?;
                    return Some(&entries[found].value);
                }
                Node::Inner(children) => node = &children[child_for(children, key)].1,
            }
        }
    }

    pub(crate) fn insert(&mut self, key: Vec<u8>, value: Vec<u8>) {
        let entry = Entry { key: key.into(), value: value.into() };
        if let Some(right) = insert(&mut self.root, entry) {
            let left = std::mem::replace(&mut self.root, Arc::new(Node::Leaf(Vec::new())));
            // The first child's key is never compared, since nothing is below it.
            self.root = Arc::new(Node::Inner(vec![(Bytes::from(&[][..]), left), right]));
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        remove(&mut self.root, key);
        loop {
            let only = match &*self.root {
                Node::Inner(children) if children.len() <= 1 => {
                    children.first().map(|(_, child)| child.clone())
                }
                _ => return,
            };
            self.root = only.unwrap_or_else(|| Arc::new(Node::Leaf(Vec::new())));
        }
    }

    /// The entries between two keys, both included, from either end.
    pub(crate) fn range(&self, first: Vec<u8>, last: Vec<u8>) -> Range<'_> {
        let is_empty = first > last;
        let (low, high) = (Bound::Included(first.into()), Bound::Included(last.into()));
        Range { root: &self.root, low, high, front: &[], back: &[], is_over: is_empty }
    }
}

/// The child that would contain a key.
fn child_for(children: &[(Bytes, Arc<Node>)], key: &[u8]) -> usize {
    children[1..].partition_point(|(lowest, _)| **lowest <= *key)
}

/// Inserts an entry. Returns the upper half of a node that becomes too large.
fn insert(node: &mut Arc<Node>, entry: Entry) -> Option<(Bytes, Arc<Node>)> {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => {
            match entries.binary_search_by(|other| other.key.cmp(&entry.key)) {
                Ok(found) => entries[found] = entry,
                Err(place) => entries.insert(place, entry),
            }
            let upper = upper_half(entries)?;
            Some((upper[0].key.clone(), Arc::new(Node::Leaf(upper))))
        }
        Node::Inner(children) => {
            let place = child_for(children, &entry.key);
            let right = insert(&mut children[place].1, entry)?;
            children.insert(place + 1, right);
            let upper = upper_half(children)?;
            Some((upper[0].0.clone(), Arc::new(Node::Inner(upper))))
        }
    }
}

fn upper_half<T>(entries: &mut Vec<T>) -> Option<Vec<T>> {
    (entries.len() > ENTRIES_MAX).then(|| entries.split_off(ENTRIES_MAX / 2))
}

/// Removes an entry. Returns whether the node is empty.
fn remove(node: &mut Arc<Node>, key: &[u8]) -> bool {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => {
            if let Ok(found) = entries.binary_search_by(|entry| (*entry.key).cmp(key)) {
                entries.remove(found);
            }
            entries.is_empty()
        }
        Node::Inner(children) => {
            let place = child_for(children, key);
            if remove(&mut children[place].1, key) {
                children.remove(place);
            }
            children.is_empty()
        }
    }
}

/// Entries between two keys, read a leaf at a time.
pub(crate) struct Range<'a> {
    root: &'a Node,
    /// The remaining entries lie between these bounds.
    low: Bound<Bytes>,
    high: Bound<Bytes>,
    /// The next entries from either end; they may extend beyond the other bound.
    front: &'a [Entry],
    back: &'a [Entry],
    is_over: bool,
}

impl<'a> Iterator for Range<'a> {
    type Item = &'a Entry;

    fn next(&mut self) -> Option<&'a Entry> {
        if self.front.is_empty() && !self.is_over {
            self.front = leaf_from(self.root, &self.low).unwrap_or(&[]);
        }
        let next = self.front.split_first().filter(|(entry, _)| !self.is_over && is_below(entry, &self.high));
        let Some((entry, rest)) = next else {
            self.is_over = true;
            return None;
        };
        self.front = rest;
        self.low = Bound::Excluded(entry.key.clone());
        Some(entry)
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.back.is_empty() && !self.is_over {
            self.back = leaf_to(self.root, &self.high).unwrap_or(&[]);
        }
        let next = self.back.split_last().filter(|(entry, _)| !self.is_over && is_above(entry, &self.low));
        let Some((entry, rest)) = next else {
            self.is_over = true;
            return None;
        };
        self.back = rest;
        self.high = Bound::Excluded(entry.key.clone());
        Some(entry)
    }
}

fn is_below(entry: &Entry, high: &Bound<Bytes>) -> bool {
    match high {
        Bound::Included(high) => entry.key <= *high,
        Bound::Excluded(high) => entry.key < *high,
        Bound::Unbounded => true,
    }
}

fn is_above(entry: &Entry, low: &Bound<Bytes>) -> bool {
    match low {
        Bound::Included(low) => entry.key >= *low,
        Bound::Excluded(low) => entry.key > *low,
        Bound::Unbounded => true,
    }
}

/// The entries from `low` on of the first leaf that has any.
fn leaf_from<'a>(node: &'a Node, low: &Bound<Bytes>) -> Option<&'a [Entry]> {
    match node {
        Node::Leaf(entries) => {
            let first = entries.partition_point(|entry| !is_above(entry, low));
            Some(&entries[first..]).filter(|entries| !entries.is_empty())
        }
        Node::Inner(children) => {
            let first = bound_key(low).map_or(0, |key| child_for(children, key));
            children[first..].iter().find_map(|(_, child)| leaf_from(child, low))
        }
    }
}

/// The entries up to `high` of the last leaf that has any.
fn leaf_to<'a>(node: &'a Node, high: &Bound<Bytes>) -> Option<&'a [Entry]> {
    match node {
        Node::Leaf(entries) => {
            let end = entries.partition_point(|entry| is_below(entry, high));
            Some(&entries[..end]).filter(|entries| !entries.is_empty())
        }
        Node::Inner(children) => {
            let last = bound_key(high).map_or(children.len() - 1, |key| child_for(children, key));
            children[..=last].iter().rev().find_map(|(_, child)| leaf_to(child, high))
        }
    }
}

fn bound_key(bound: &Bound<Bytes>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Model = BTreeMap<Vec<u8>, Vec<u8>>;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u16, u8),
        Remove(u16),
        /// Removes a number of entries from the first key on.
        RemoveMany(u16, u16),
        /// Keeps this version and checks it again at the end.
        Keep,
    }

    fn key(n: u16) -> Vec<u8> {
        let bytes = n.to_be_bytes();
        // Keys of different lengths, some of them prefixes of others.
        if n.is_multiple_of(3) { bytes[..1].to_vec() } else { bytes.to_vec() }
    }

    fn same(tree: &Tree, model: &Model, first: u16, last: u16) {
        let (first, last) = (key(first), key(last));
        let expected: Vec<_> = if first <= last {
            model.range(first.clone()..=last.clone()).map(|(k, v)| (k.clone(), v.clone())).collect()
        } else {
            Vec::new()
        };
        let pair = |entry: &Entry| (entry.key.to_vec(), entry.value.to_vec());
        let found: Vec<_> = tree.range(first.clone(), last.clone()).map(pair).collect();
        assert_eq!(found, expected);
        let mut back: Vec<_> = tree.range(first.clone(), last.clone()).rev().map(pair).collect();
        back.reverse();
        assert_eq!(back, expected);
        let (mut range, mut front, mut back) = (tree.range(first, last), Vec::new(), Vec::new());
        while let Some(entry) = range.next() {
            front.push(pair(entry));
            back.extend(range.next_back().map(pair));
        }
        assert_eq!(range.next_back().map(pair), None);
        front.extend(back.into_iter().rev());
        assert_eq!(front, expected, "from both ends in turn");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn each_version_is_an_ordered_map(
            steps in prop::collection::vec(prop_oneof![
                12 => (0..2_000u16, any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
                4 => (0..2_000u16).prop_map(Step::Remove),
                1 => (0..2_000u16, 0..600u16).prop_map(|(key, count)| Step::RemoveMany(key, count)),
                1 => Just(Step::Keep),
            ], 0..1_500),
            (first, last) in (0..2_100u16, 0..2_100u16),
        ) {
            let (mut tree, mut model, mut kept) = (Tree::default(), Model::new(), Vec::new());
            for step in steps {
                match step {
                    Step::Insert(n, value) => {
                        tree.insert(key(n), vec![value]);
                        model.insert(key(n), vec![value]);
                    }
                    Step::Remove(n) => {
                        tree.remove(&key(n));
                        model.remove(&key(n));
                    }
                    Step::RemoveMany(n, count) => for n in n..n.saturating_add(count) {
                        tree.remove(&key(n));
                        model.remove(&key(n));
                    },
                    Step::Keep => kept.push((tree.clone(), model.clone())),
                }
            }
            kept.push((tree, model));
            for (tree, model) in &kept {
                same(tree, model, 0, u16::MAX);
                same(tree, model, first, last);
                for n in (0..2_000).step_by(7) {
                    prop_assert_eq!(tree.get(&key(n)), model.get(&key(n)).map(Vec::as_slice));
                }
            }
        }
    }
}
