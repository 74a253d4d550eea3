//! Key trees: one leaf, or thresholds over them.

use super::{ED25519_TAG, Leaf, SECP256K1_TAG, ed25519};
use crate::addresses::is_system;
use alloy_primitives::{Address, B256, Bytes};
use std::collections::BTreeSet;

/// Levels of a key, the leaves' own included (HEDERA-01).
pub const KEY_DEPTH_MAX: usize = 4;

/// Leaves of a key (HEDERA-01).
pub const KEY_LEAVES_MAX: usize = 32;

const THRESHOLD_TAG: u8 = 3;

/// Longest encoding: every leaf an Ed25519 key under thresholds of its own.
pub const KEY_BYTES_MAX: usize = KEY_LEAVES_MAX * (33 + 3 * (KEY_DEPTH_MAX - 1));

/// A decoded key, in preorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTree {
    nodes: Vec<Node>,
    encoded: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Leaf(Leaf),
    Threshold { count: u8, needed: u8 },
}

/// Why bytes are not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key refused at byte {offset}: {fault}")]
pub struct KeyError {
    /// Where.
    pub offset: usize,
    /// Why.
    pub fault: KeyFault,
}

/// What is wrong with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// Longer than any key.
    #[error("longer than a key can be")]
    TooLong,
    /// It ends inside a node.
    #[error("it ends too early")]
    TooShort,
    /// Bytes follow the key.
    #[error("bytes follow the key")]
    TrailingBytes,
    /// A tag that stands for nothing.
    #[error("unknown tag; 1 is secp256k1, 2 Ed25519, 3 a threshold")]
    UnknownTag,
    /// A threshold of 0, above its children, or without children.
    #[error("a threshold is at least 1 and at most the number of children")]
    Threshold,
    /// Nested too deep.
    #[error("more than 4 levels")]
    TooDeep,
    /// Too many leaves.
    #[error("more than 32 leaves")]
    TooManyLeaves,
    /// A leaf that is there twice: it would count twice.
    #[error("a leaf stands twice in the key")]
    DuplicateLeaf,
    /// The zero address, or one of the chain's own.
    #[error("nobody holds a key of this address")]
    SystemAddress,
    /// Not a point, not canonical, or of small order.
    #[error("not a usable Ed25519 key")]
    UnusableEd25519,
}

/// Why proven leaves do not satisfy a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// Signatures are missing, or of other keys.
    NotSatisfied,
    /// The key is satisfied without the signature at this position.
    Superfluous(usize),
}

impl KeyTree {
    /// The key of a single leaf.
    pub fn single(leaf: Leaf) -> Self {
        let mut encoded = Vec::with_capacity(33);
        leaf.write(&mut encoded);
        Self { nodes: vec![Node::Leaf(leaf)], encoded: encoded.into() }
    }

    /// Reads a key. Looks at no more than [`KEY_BYTES_MAX`] bytes.
    pub fn decode(encoded: &[u8]) -> Result<Self, KeyError> {
        Self::parse(encoded, ed25519::is_usable)
    }

    /// Reads a key from the state, whose points were checked before it was stored.
    pub fn decode_stored(encoded: &[u8]) -> Result<Self, KeyError> {
        Self::parse(encoded, |_| true)
    }

    fn parse(encoded: &[u8], is_usable: fn(&[u8; 32]) -> bool) -> Result<Self, KeyError> {
        if encoded.len() > KEY_BYTES_MAX {
            return Err(KeyError { offset: KEY_BYTES_MAX, fault: KeyFault::TooLong });
        }
        let mut parser = Parser { encoded, offset: 0, nodes: Vec::new(), leaves: BTreeSet::new(), is_usable };
        parser.node(1)?;
        if parser.offset < encoded.len() {
            return Err(KeyError { offset: parser.offset, fault: KeyFault::TrailingBytes });
        }
        Ok(Self { nodes: parser.nodes, encoded: Bytes::copy_from_slice(encoded) })
    }

    /// Its bytes.
    pub fn encoded(&self) -> &Bytes {
        &self.encoded
    }

    /// Its leaves, in the order of its bytes.
    pub fn leaves(&self) -> impl Iterator<Item = Leaf> + '_ {
        self.nodes.iter().filter_map(|node| match node {
            Node::Leaf(leaf) => Some(*leaf),
            Node::Threshold { .. } => None,
        })
    }

    /// How many leaves it has.
    pub fn leaf_count(&self) -> u8 {
        u8::try_from(self.leaves().count()).expect("at most 32")
    }

    /// Whether it is the key that an account has without a record: the one that its address derives from.
    pub fn is_default_of(&self, account: Address) -> bool {
        matches!(self.nodes[..], [Node::Leaf(leaf)] if leaf.account() == account)
    }

    /// Checks that ascending leaves satisfy the key, and that none of them can be left out: otherwise anyone could
    /// drop a signature and so give a transaction a second hash.
    pub fn check(&self, proven: &[Leaf]) -> Result<(), Unproven> {
        if !self.is_satisfied(|leaf| proven.binary_search(&leaf).is_ok()) {
            return Err(Unproven::NotSatisfied);
        }
        // At most 32 walks over at most 32 leaves.
        let superfluous = proven.iter().position(|left_out| {
            self.is_satisfied(|leaf| leaf != *left_out && proven.binary_search(&leaf).is_ok())
        });
        superfluous.map_or(Ok(()), |index| Err(Unproven::Superfluous(index)))
    }

    /// Checks whether signatures could satisfy the key, without the price of recovering them. Each is the leaf that it
    /// names, or `None` for one of secp256k1, which may be any of those leaves.
    pub fn check_named(&self, named: &[Option<Leaf>]) -> Result<(), Unproven> {
        let is_secp256k1 = |leaf: &Leaf| matches!(leaf, Leaf::Secp256k1(_));
        let has_unnamed = named.contains(&None);
        let could_prove =
            |leaf: Leaf| if is_secp256k1(&leaf) { has_unnamed } else { named.contains(&Some(leaf)) };
        if named.len() < usize::from(self.signatures_min()) || !self.is_satisfied(could_prove) {
            return Err(Unproven::NotSatisfied);
        }
        let most = usize::from(self.signatures_max());
        if named.len() > most {
            return Err(Unproven::Superfluous(most));
        }
        let mut unnamed_left = self.leaves().filter(is_secp256k1).count();
        let stranger = named.iter().position(|leaf| match leaf {
            Some(leaf) => !self.leaves().any(|known| known == *leaf),
            None => unnamed_left.checked_sub(1).map(|left| unnamed_left = left).is_none(),
        });
        stranger.map_or(Ok(()), |index| Err(Unproven::Superfluous(index)))
    }

    /// The most signatures that satisfy the key without one that can be left out.
    pub fn signatures_max(&self) -> u8 {
        self.node_signatures(&mut 0, |children| children.sort_unstable_by(|a, b| b.cmp(a)))
    }

    /// The fewest signatures that satisfy the key.
    pub fn signatures_min(&self) -> u8 {
        self.node_signatures(&mut 0, <[u8]>::sort_unstable)
    }

    /// How many signatures satisfy a node if its first children do, in this order. The depth is bounded by the decoder.
    fn node_signatures(&self, next: &mut usize, order: fn(&mut [u8])) -> u8 {
        let node = self.nodes[*next];
        *next += 1;
        match node {
            Node::Leaf(_) => 1,
            Node::Threshold { count, needed } => {
                let mut children: Vec<u8> = (0..count).map(|_| self.node_signatures(next, order)).collect();
                order(&mut children);
                // No more than the leaves, of which there are at most 32.
                children.iter().take(usize::from(needed)).sum()
            }
        }
    }

    /// Whether the leaves that are proven satisfy the key, whatever else is proven.
    pub fn is_satisfied(&self, is_proven: impl Fn(Leaf) -> bool) -> bool {
        self.is_node_satisfied(&mut 0, &is_proven)
    }

    /// The depth is bounded by the decoder.
    fn is_node_satisfied(&self, next: &mut usize, is_proven: &impl Fn(Leaf) -> bool) -> bool {
        let node = self.nodes[*next];
        *next += 1;
        match node {
            Node::Leaf(leaf) => is_proven(leaf),
            Node::Threshold { count, needed } => {
                let mut satisfied = 0u8;
                for _ in 0..count {
                    satisfied += u8::from(self.is_node_satisfied(next, is_proven));
                }
                satisfied >= needed
            }
        }
    }
}

struct Parser<'a> {
    encoded: &'a [u8],
    offset: usize,
    nodes: Vec<Node>,
    leaves: BTreeSet<Leaf>,
    is_usable: fn(&[u8; 32]) -> bool,
}

impl Parser<'_> {
    fn node(&mut self, depth: usize) -> Result<(), KeyError> {
        let offset = self.offset;
        let refused = |fault| KeyError { offset, fault };
        if depth > KEY_DEPTH_MAX {
            return Err(refused(KeyFault::TooDeep));
        }
        let [tag] = self.take()?;
        match tag {
            SECP256K1_TAG => {
                let address = Address::from(self.take::<20>()?);
                if address.is_zero() || is_system(address) {
                    return Err(refused(KeyFault::SystemAddress));
                }
                self.leaf(offset, Leaf::Secp256k1(address))
            }
            ED25519_TAG => {
                let key = self.take::<32>()?;
                // Counted before the point is decoded, which is the expensive part.
                self.leaf(offset, Leaf::Ed25519(B256::from(key)))?;
                if (self.is_usable)(&key) { Ok(()) } else { Err(refused(KeyFault::UnusableEd25519)) }
            }
            THRESHOLD_TAG => {
                let [count, needed] = self.take()?;
                if needed == 0 || needed > count {
                    return Err(refused(KeyFault::Threshold));
                }
                if usize::from(count) > KEY_LEAVES_MAX {
                    return Err(refused(KeyFault::TooManyLeaves));
                }
                self.nodes.push(Node::Threshold { count, needed });
                (0..count).try_for_each(|_| self.node(depth + 1))
            }
            _ => Err(refused(KeyFault::UnknownTag)),
        }
    }

    fn leaf(&mut self, offset: usize, leaf: Leaf) -> Result<(), KeyError> {
        if self.leaves.len() == KEY_LEAVES_MAX {
            return Err(KeyError { offset, fault: KeyFault::TooManyLeaves });
        }
        if !self.leaves.insert(leaf) {
            return Err(KeyError { offset, fault: KeyFault::DuplicateLeaf });
        }
        self.nodes.push(Node::Leaf(leaf));
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], KeyError> {
        let rest = &self.encoded[self.offset..];
        let found = rest.first_chunk::<N>().copied();
        self.offset += N.min(rest.len());
        found.ok_or(KeyError { offset: self.offset, fault: KeyFault::TooShort })
    }
}
