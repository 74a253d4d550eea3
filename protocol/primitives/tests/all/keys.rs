//! Key trees: what decodes, what is refused where, and which leaves satisfy which tree.

use alloy_primitives::{Address, B256, hex};
use almanac_primitives::{
    addresses::ACCOUNTS,
    keys::{KEY_BYTES_MAX, KEY_LEAVES_MAX, KeyError, KeyFault, KeyTree, Leaf, Unproven},
};
use proptest::prelude::*;

const ED25519: B256 = B256::new(hex!("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"));

fn leaf(n: u8) -> Leaf {
    Leaf::Secp256k1(Address::repeat_byte(n))
}

fn single(n: u8) -> Vec<u8> {
    KeyTree::single(leaf(n)).encoded().to_vec()
}

fn threshold(needed: u8, children: &[Vec<u8>]) -> Vec<u8> {
    let count = u8::try_from(children.len()).unwrap();
    [vec![3, count, needed], children.concat()].concat()
}

fn fault(encoded: &[u8]) -> (usize, KeyFault) {
    let KeyError { offset, fault } = KeyTree::decode(encoded).unwrap_err();
    (offset, fault)
}

#[test]
fn hedera_01_keys_of_both_curves_lists_and_thresholds_nest() {
    let mut ed25519 = vec![2];
    ed25519.extend_from_slice(ED25519.as_slice());
    let list = threshold(2, &[single(1), ed25519.clone()]);
    let nested = threshold(1, &[single(9), threshold(2, &[list.clone(), single(3), single(4)])]);
    for key in [single(1), ed25519, list, nested.clone()] {
        assert_eq!(KeyTree::decode(&key).unwrap().encoded()[..], key[..]);
    }
    let leaves: Vec<_> = KeyTree::decode(&nested).unwrap().leaves().collect();
    assert_eq!(leaves, [leaf(9), leaf(1), Leaf::Ed25519(ED25519), leaf(3), leaf(4)]);
}

#[test]
fn hedera_01_depth_leaves_and_thresholds_on_both_sides() {
    // Levels, the leaf's own included.
    let deep = |levels: usize| (1..levels).fold(single(1), |key, _| threshold(1, &[key]));
    KeyTree::decode(&deep(4)).unwrap();
    assert_eq!(fault(&deep(5)), (12, KeyFault::TooDeep));
    let wide = |count: u8| threshold(1, &(1..=count).map(single).collect::<Vec<_>>());
    KeyTree::decode(&wide(32)).unwrap();
    assert_eq!(fault(&wide(33)), (0, KeyFault::TooManyLeaves));
    let halves = threshold(2, &[wide(31), threshold(1, &[single(100), single(101)])]);
    assert_eq!(fault(&halves).1, KeyFault::TooManyLeaves, "counted over the whole tree");
    for needed in [1, 2] {
        KeyTree::decode(&threshold(needed, &[single(1), single(2)])).unwrap();
    }
    for needed in [0, 3] {
        assert_eq!(fault(&threshold(needed, &[single(1), single(2)])), (0, KeyFault::Threshold));
    }
    assert_eq!(fault(&[3, 0, 0]), (0, KeyFault::Threshold), "an empty list");
    assert_eq!(fault(&threshold(1, &[single(1), single(1)])), (24, KeyFault::DuplicateLeaf));
    let far = threshold(1, &[single(1), threshold(1, &[single(1)])]);
    assert_eq!(fault(&far), (27, KeyFault::DuplicateLeaf), "also in another branch");
}

#[test]
fn hedera_01_what_cannot_be_a_key_is_refused_where_it_is() {
    assert_eq!(fault(&[]), (0, KeyFault::TooShort));
    assert_eq!(fault(&[1, 2, 3]), (3, KeyFault::TooShort));
    assert_eq!(fault(&[0]), (0, KeyFault::UnknownTag));
    assert_eq!(fault(&[4]), (0, KeyFault::UnknownTag));
    let mut trailing = single(1);
    trailing.push(0);
    assert_eq!(fault(&trailing), (21, KeyFault::TrailingBytes));
    assert_eq!(fault(&single(0)), (0, KeyFault::SystemAddress));
    let system = [&[1][..], ACCOUNTS.as_slice()].concat();
    assert_eq!(fault(&system), (0, KeyFault::SystemAddress));
    let mut small_order = vec![2, 1];
    small_order.resize(33, 0);
    assert_eq!(fault(&small_order), (0, KeyFault::UnusableEd25519));
    assert_eq!(fault(&vec![3; KEY_BYTES_MAX + 1]), (KEY_BYTES_MAX, KeyFault::TooLong));
}

/// Bombs: nodes that promise more than there is, nested as deep as bytes allow.
#[test]
fn nested_and_wide_bombs_end_at_their_first_bound() {
    assert_eq!(fault(&[3, 32, 1].repeat(KEY_BYTES_MAX / 3)).1, KeyFault::TooDeep);
    assert_eq!(fault(&[3, 255, 1]).1, KeyFault::TooManyLeaves);
    assert_eq!(fault(&[3, 1, 1].repeat(KEY_BYTES_MAX / 3)).1, KeyFault::TooDeep);
    let widest =
        threshold(1, &(0..32).map(|n| threshold(1, &[threshold(1, &[single(n + 1)])])).collect::<Vec<_>>());
    assert!(widest.len() <= KEY_BYTES_MAX);
    KeyTree::decode(&widest).unwrap();
}

#[test]
fn hedera_01_a_key_needs_its_threshold_and_nothing_beside_it() {
    let two_of_three = KeyTree::decode(&threshold(2, &[single(1), single(2), single(3)])).unwrap();
    for pair in [[1, 2], [1, 3], [2, 3]] {
        assert_eq!(two_of_three.check(&pair.map(leaf)), Ok(()));
    }
    assert_eq!(two_of_three.check(&[leaf(1)]), Err(Unproven::NotSatisfied));
    assert_eq!(two_of_three.check(&[]), Err(Unproven::NotSatisfied));
    assert_eq!(two_of_three.check(&[leaf(8), leaf(9)]), Err(Unproven::NotSatisfied));
    assert_eq!(two_of_three.check(&[leaf(1), leaf(2), leaf(3)]), Err(Unproven::Superfluous(0)));
    assert_eq!(
        two_of_three.check(&[leaf(1), leaf(2), leaf(9)]),
        Err(Unproven::Superfluous(2)),
        "a stranger's"
    );
}

/// A tree as nested data, evaluated the plain way.
#[derive(Clone, Debug)]
enum Plain {
    Leaf(u8),
    Threshold(u8, Vec<Plain>),
}

impl Plain {
    fn encode(&self) -> Vec<u8> {
        self.encode_with(leaf)
    }

    fn encode_with(&self, leaf: fn(u8) -> Leaf) -> Vec<u8> {
        match self {
            Self::Leaf(n) => KeyTree::single(leaf(*n)).encoded().to_vec(),
            Self::Threshold(needed, children) => {
                let children: Vec<_> = children.iter().map(|child| child.encode_with(leaf)).collect();
                threshold(*needed, &children)
            }
        }
    }

    fn is_satisfied(&self, signed: &[u8]) -> bool {
        match self {
            Self::Leaf(n) => signed.contains(n),
            Self::Threshold(needed, children) => {
                children.iter().filter(|child| child.is_satisfied(signed)).count() >= usize::from(*needed)
            }
        }
    }

    /// Gives every leaf a number of its own.
    fn number(&mut self, next: &mut u8) {
        match self {
            Self::Leaf(n) => {
                *next += 1;
                *n = *next;
            }
            Self::Threshold(_, children) => children.iter_mut().for_each(|child| child.number(next)),
        }
    }
}

fn of_either_curve(n: u8) -> Leaf {
    if n.is_multiple_of(2) { Leaf::Ed25519(B256::repeat_byte(n)) } else { leaf(n) }
}

/// What signatures of these leaves show before they are recovered.
fn named(leaves: &[Leaf]) -> Vec<Option<Leaf>> {
    leaves.iter().map(|leaf| Some(*leaf).filter(|leaf| matches!(leaf, Leaf::Ed25519(_)))).collect()
}

/// Signatures that cannot be those of a key are refused by their number, their kind and the keys that they name.
#[test]
fn orderless_12_signatures_that_cannot_satisfy_a_key_are_refused_unrecovered() {
    let [secp, other] = [1, 3].map(of_either_curve);
    let [ed, foreign] = [2, 4].map(of_either_curve);
    let encoded = |leaf: Leaf| KeyTree::single(leaf).encoded().to_vec();
    let key = |needed| {
        let children = [secp, other, ed].map(encoded);
        KeyTree::decode_stored(&threshold(needed, &children)).unwrap()
    };
    let (missing, superfluous) = (Err(Unproven::NotSatisfied), |index| Err(Unproven::Superfluous(index)));
    let (unknown, known, stranger) = (None, Some(ed), Some(foreign));
    let table = [
        (1, vec![], missing),
        (1, vec![unknown], Ok(())),
        (1, vec![known], Ok(())),
        (1, vec![stranger], missing),
        (1, vec![unknown, known], superfluous(1)),
        (2, vec![unknown], missing),
        (2, vec![unknown, known], Ok(())),
        (2, vec![unknown, unknown], Ok(())),
        (2, vec![known, stranger], missing),
        (2, vec![unknown, stranger], superfluous(1)),
        (2, vec![unknown, unknown, known], superfluous(2)),
        (3, vec![unknown, unknown, unknown], missing),
        (3, vec![unknown, unknown, known], Ok(())),
    ];
    for (needed, signatures, expected) in table {
        assert_eq!(key(needed).check_named(&signatures), expected, "{needed} of 3 by {signatures:?}");
    }
}

fn plain() -> impl Strategy<Value = Plain> {
    let leaf = Just(Plain::Leaf(0));
    leaf.prop_recursive(3, KEY_LEAVES_MAX as u32, 4, |inner| {
        (prop::collection::vec(inner, 1..4), any::<u8>()).prop_map(|(children, pick)| {
            let needed = 1 + pick % u8::try_from(children.len()).unwrap();
            Plain::Threshold(needed, children)
        })
    })
}

proptest! {
    #[test]
    fn hedera_01_trees_agree_with_a_plain_evaluation(mut tree in plain(), mask: u64) {
        let mut count = 0;
        tree.number(&mut count);
        prop_assume!(usize::from(count) <= KEY_LEAVES_MAX);
        let key = KeyTree::decode(&tree.encode()).unwrap();
        let signed: Vec<u8> = (1..=count).filter(|n| mask >> n & 1 == 1).collect();
        let proven: Vec<Leaf> = signed.iter().map(|n| leaf(*n)).collect();
        let superfluous = signed.iter().position(|left_out| {
            let rest: Vec<u8> = signed.iter().copied().filter(|n| n != left_out).collect();
            tree.is_satisfied(&rest)
        });
        let expected = match (tree.is_satisfied(&signed), superfluous) {
            (false, _) => Err(Unproven::NotSatisfied),
            (true, Some(index)) => Err(Unproven::Superfluous(index)),
            (true, None) => Ok(()),
        };
        prop_assert_eq!(key.check(&proven), expected);
    }

    #[test]
    fn the_most_signatures_are_those_of_the_largest_set_without_a_superfluous_one(mut tree in plain()) {
        let mut count = 0;
        tree.number(&mut count);
        prop_assume!(count <= 10);
        let key = KeyTree::decode(&tree.encode()).unwrap();
        let sets = (0u32..1 << count).map(|mask| -> Vec<Leaf> {
            (1..=count).filter(|n| mask >> (n - 1) & 1 == 1).map(leaf).collect()
        });
        let largest = sets.filter(|set| key.check(set).is_ok()).map(|set| set.len()).max();
        prop_assert_eq!(Some(usize::from(key.signatures_max())), largest);
    }

    /// What is refused before a signature is recovered would be refused afterwards.
    #[test]
    fn orderless_12_signatures_that_satisfy_a_key_look_like_it(mut tree in plain()) {
        let mut count = 0;
        tree.number(&mut count);
        prop_assume!(count <= 10);
        let key = KeyTree::decode_stored(&tree.encode_with(of_either_curve)).unwrap();
        let mut fewest = usize::MAX;
        for mask in 0u32..1 << count {
            let signed = (1..=count).filter(|n| mask >> (n - 1) & 1 == 1);
            let mut set: Vec<Leaf> = signed.map(of_either_curve).collect();
            set.sort_unstable();
            let refused = key.check(&set);
            if refused.is_ok() {
                fewest = fewest.min(set.len());
                prop_assert_eq!(key.check_named(&named(&set)), Ok(()));
            }
        }
        prop_assert_eq!(usize::from(key.signatures_min()), fewest);
    }

    #[test]
    fn random_bytes_never_panic_and_decode_to_themselves(bytes in prop::collection::vec(0u8..4, 0..60)) {
        if let Ok(key) = KeyTree::decode(&bytes) {
            prop_assert_eq!(&key.encoded()[..], &bytes[..]);
        }
    }
}
