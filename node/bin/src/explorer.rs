//! Files that are part of the binary: the explorer, which `scripts/explorer` builds from `explorer/src`, and the
//! documentation, which the explorer shows.

use almanac_rpc::files::StaticFile;
use std::sync::LazyLock;

/// The explorer. The first is the page.
const PAGE: &[StaticFile] = include!("../../../explorer/dist/files.rs");

/// Documents as they are written, and the interfaces that they name; see `build.rs`.
const DOCUMENTS: &[StaticFile] = include!(concat!(env!("OUT_DIR"), "/documents.rs"));

/// All files that are served.
pub(crate) static FILES: LazyLock<Vec<StaticFile>> = LazyLock::new(|| [PAGE, DOCUMENTS].concat());
