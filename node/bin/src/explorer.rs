//! The explorer's built files, as part of the binary. `scripts/explorer` builds them from `explorer/src`.

use almanac_rpc::files::StaticFile;

/// All of them. The first is the page.
pub(crate) const FILES: &[StaticFile] = include!("../../../explorer/dist/files.rs");
