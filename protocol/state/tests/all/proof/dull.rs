//! A verifier written from the description of the format alone, with nothing but two hash functions.

use alloy_primitives::keccak256;
use commonware_cryptography::{Hasher as _, Sha256};

type Digest = [u8; 32];

/// Encoded key and value, if the encoded proof proves them under the encoded header.
pub(crate) fn verify(header: &[u8], proof: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut input = Input(proof);
    let is_known = header.len() == 569 && header[0] == 1 && input.take(1)? == [1];
    let is_block = input.take(8)? == &header[33..41] && input.take(32)? == keccak256(header).as_slice();
    if !is_known || !is_block {
        return None;
    }
    let key = input.key()?;
    let value = input.list(65_536)?;
    let path = input.list(4_041)?;
    let state_root = &header[489..521];
    (input.0.is_empty() && root(&key, &value, &path)? == state_root).then_some((key, value))
}

fn root(key: &[u8], value: &[u8], path: &[u8]) -> Option<Digest> {
    let mut path = Input(path);
    let location = path.varint()?;
    let chunk = path.digest()?;
    let leaves = path.varint()?;
    let inactive = path.varint()?;
    let count = path.varint()?;
    let digests = (0..count).map(|_| path.digest()).collect::<Option<Vec<_>>>()?;
    let partial = match path.take(1)? {
        [0] => None,
        [1] => Some(path.digest()?),
        _ => return None,
    };
    let ops_root = path.digest()?;
    if !path.0.is_empty() || location >= leaves || leaves > 1 << 62 || count > 122 {
        return None;
    }
    let bit = usize::try_from(location % 256).unwrap();
    let is_active = chunk[bit / 8] >> (bit % 8) & 1 == 1;
    let is_full = location / 256 < leaves / 256;
    if !is_active || partial.is_some() != (leaves % 256 != 0) || (!is_full && partial? != hash(&[&chunk])) {
        return None;
    }

    let mut climb = Climb { location, chunk, key, value, digests: digests.into_iter() };
    let peaks = climb.peaks(leaves, inactive)?;
    let leaves_bytes = leaves.to_be_bytes();
    let inactive_bytes = inactive.to_be_bytes();
    let inactive_bytes: &[u8] = if inactive == 0 { &[] } else { &inactive_bytes };
    let grafted_root = hash(&[&[0, 1], &leaves_bytes, inactive_bytes, &peaks]);
    Some(match partial {
        None => hash(&[&ops_root, &grafted_root]),
        Some(partial) => hash(&[&ops_root, &grafted_root, &(leaves % 256).to_be_bytes(), &partial]),
    })
}

/// A whole tree of the range: its first leaf, and how many times it was doubled.
#[derive(Clone, Copy)]
struct Tree {
    first: u64,
    height: u32,
}

impl Tree {
    fn has(self, leaf: u64) -> bool {
        leaf >= self.first && leaf - self.first < 1 << self.height
    }

    fn position(self) -> u64 {
        2 * self.first - u64::from(self.first.count_ones()) + (2 << self.height) - 2
    }

    fn halves(self) -> [Self; 2] {
        let height = self.height - 1;
        [Self { first: self.first, height }, Self { first: self.first + (1 << height), height }]
    }
}

struct Climb<'a> {
    location: u64,
    chunk: Digest,
    key: &'a [u8],
    value: &'a [u8],
    digests: std::vec::IntoIter<Digest>,
}

impl Climb<'_> {
    /// All peaks in one digest.
    fn peaks(&mut self, leaves: u64, inactive: u64) -> Option<Digest> {
        let mut first = 0;
        let mut trees = Vec::new();
        for height in (0..63).rev().filter(|height| leaves >> height & 1 == 1) {
            trees.push(Tree { first, height });
            first += 1 << height;
        }
        let inactive = usize::try_from(inactive).ok().filter(|inactive| *inactive <= trees.len())?;
        let own = trees.iter().position(|tree| tree.has(self.location))?;

        // Digests of other peaks stand before those of siblings.
        let folded_left = inactive.min(own);
        let sum_left = if folded_left > 0 { Some(self.digests.next()?) } else { None };
        let mut take = |count: usize| (0..count).map(|_| self.digests.next()).collect::<Option<Vec<_>>>();
        let active_left = take(own - folded_left)?;
        let listed_right = inactive.saturating_sub(own + 1);
        let inactive_right = take(listed_right)?;
        let has_bag = own + 1 + listed_right < trees.len();
        let bag_right = take(usize::from(has_bag))?;
        let own_digest = self.digest(trees[own])?;
        if self.digests.next().is_some() {
            return None;
        }

        let is_own_inactive = own < inactive;
        let folded = sum_left.into_iter().chain(is_own_inactive.then_some(own_digest)).chain(inactive_right);
        let sum = folded.reduce(|sum, peak| hash(&[&sum, &peak]));
        let bagged = active_left.into_iter().chain((!is_own_inactive).then_some(own_digest)).chain(bag_right);
        let bag = bagged.rev().reduce(|bag, peak| hash(&[&peak, &bag]));
        Some(match (sum, bag) {
            (Some(sum), Some(bag)) => hash(&[&sum, &bag]),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => unreachable!("our own peak is in one of them"),
        })
    }

    fn digest(&mut self, tree: Tree) -> Option<Digest> {
        if !tree.has(self.location) {
            return self.digests.next();
        }
        let position = tree.position().to_be_bytes();
        if tree.height == 0 {
            let length = varint(self.value.len());
            return Some(hash(&[&position, &[0xd2], keccak256(self.key).as_slice(), &length, self.value]));
        }
        let [left, right] = tree.halves();
        let node = hash(&[&position, &self.digest(left)?, &self.digest(right)?]);
        // Our bit is set, so the chunk is not all zero.
        Some(if tree.height == 8 { hash(&[&self.chunk, &node]) } else { node })
    }
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn digest(&mut self) -> Option<Digest> {
        Some(self.take(32)?.try_into().unwrap())
    }

    fn list(&mut self, max: usize) -> Option<Vec<u8>> {
        let length = u32::from_be_bytes(self.take(4)?.try_into().unwrap());
        let length = usize::try_from(length).ok().filter(|length| *length <= max)?;
        Some(self.take(length)?.to_vec())
    }

    fn key(&mut self) -> Option<Vec<u8>> {
        let length = match self.0.first()? {
            0 => 21,
            1 => 53,
            2 => 33,
            3 | 4 => 9,
            5 if *self.0.get(1)? == 0 => 2,
            _ => return None,
        };
        Some(self.take(length)?.to_vec())
    }

    /// Seven bits a byte, the lowest first; the last byte has no eighth bit, and is zero only if it is alone.
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take(1)? else { unreachable!("one was asked for") };
            let bits = u64::from(byte & 127);
            if bits << shift >> shift != bits || (*byte == 0 && shift > 0) {
                return None;
            }
            value |= bits << shift;
            if byte & 128 == 0 {
                return Some(value);
            }
        }
        None
    }
}

fn varint(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while value > 127 {
        out.push(u8::try_from(value & 127).unwrap() | 128);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap());
    out
}

fn hash(parts: &[&[u8]]) -> Digest {
    Sha256::hash(&[&parts.concat()]).0
}
