//! Versions: the position of a committed transaction in the whole chain, as one number.

use almanac_index::Location;
use serde::{Serialize, Serializer};

/// The height of the block, and the receipt's index in it in the lowest bits. Ascends in the order of execution, and is
/// the same on every node, also on one that knows nothing of earlier blocks: a plain count would not be (decision 0037).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u64);

/// Bits of the index. A block has far fewer receipts: the cheapest takes thousands of gas.
const INDEX_BITS: u32 = 20;
const INDEX_MAX: u64 = (1 << INDEX_BITS) - 1;

impl Version {
    /// The version of what ran at a location.
    pub fn of(location: Location) -> Self {
        let index = u64::try_from(location.index).unwrap_or(u64::MAX).min(INDEX_MAX);
        Self(location.number << INDEX_BITS | index)
    }

    /// The location with this version.
    pub fn location(self) -> Location {
        let index = usize::try_from(self.0 & INDEX_MAX).expect("twenty bits fit");
        Location { number: self.0 >> INDEX_BITS, index }
    }
}

/// In decimal, as a string: it may be above 2^53.
impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_places_in_order() {
        let places = [(0, 0), (1, 0), (1, 1), (1, 0xf_ffff), (2, 0), ((1 << 44) - 1, 0xf_ffff)];
        let places = places.map(|(number, index)| Location { number, index });
        let versions = places.map(Version::of);
        assert!(versions.is_sorted());
        assert_eq!(versions.map(Version::location), places);
        assert_eq!(versions[2], Version(1_048_577));
        assert_eq!(Version(u64::MAX).location(), places[5]);
    }
}
