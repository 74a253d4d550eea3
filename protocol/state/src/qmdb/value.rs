//! Values and keys of the state in QMDB's types.

use alloy_primitives::Bytes;
use almanac_primitives::{StateKey, params::STATE_VALUE_BYTES_MAX};
use commonware_codec::{Buf, EncodeSize, Error, RangeCfg, Read, Write};
use commonware_runtime::BufMut;
use commonware_utils::sequence::FixedBytes;

/// A hashed [`StateKey`]. Hashing prevents attackers from choosing where keys cluster in the index.
pub(crate) type Key = FixedBytes<32>;

pub(crate) fn key(key: &StateKey) -> Key {
    Key::new(key.hashed().0)
}

/// A stored value. A newtype, so that its size limit is part of the type and needs no configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value(pub Bytes);

impl Write for Value {
    fn write(&self, out: &mut impl BufMut) {
        self.0.0.write(out);
    }
}

impl EncodeSize for Value {
    fn encode_size(&self) -> usize {
        self.0.0.encode_size()
    }
}

impl Read for Value {
    type Cfg = ();

    fn read_cfg(input: &mut impl Buf, (): &()) -> Result<Self, Error> {
        let bytes = Vec::<u8>::read_cfg(input, &(RangeCfg::new(0..=STATE_VALUE_BYTES_MAX), ()))?;
        Ok(Self(bytes.into()))
    }
}
