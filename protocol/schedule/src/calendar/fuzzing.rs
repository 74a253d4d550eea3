//! Entry point for fuzz targets: decodes what the calendar stores.

use super::{
    anchor::Anchor,
    entry::{Entry, Key},
    leaf::Leaf,
    node::Node,
};

/// Decodes bytes as each stored type and checks that each success encodes back to the same bytes.
pub fn decodes_to_itself(encoded: &[u8]) {
    if let Ok(entry) = Entry::decode(encoded) {
        assert_eq!(entry.encode()[..], *encoded);
    }
    if let Ok(anchor) = Anchor::decode(encoded) {
        assert_eq!(anchor.encode()[..], *encoded);
    }
    for level in 0..3 {
        if let Ok(node) = Node::decode(encoded, level, Key::END) {
            assert_eq!(node.encode()[..], *encoded);
        }
    }
    let _ = Leaf::decode(encoded);
}
