//! A note of how a developer set the time, so that a restarted chain continues where its clock was.

use crate::{
    private_file,
    regular_file::{self, NOTE_BYTES_MAX},
};
use almanac_consensus::solo::{KeepTime, TimeSetting};
use almanac_primitives::{DurationMs, TimestampMs};
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// The file in a data directory.
pub(crate) struct ClockNote {
    path: PathBuf,
}

/// Its content.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    offset_ms: i64,
    next_block_ms: Option<u64>,
    block_distance_ms: Option<u64>,
}

impl ClockNote {
    /// The note of a data directory.
    pub(crate) fn new(directory: &Path) -> Self {
        Self { path: directory.join("clock.json") }
    }

    /// The settings of the last start, if they were noted.
    pub(crate) fn read(&self) -> anyhow::Result<Option<TimeSetting>> {
        if !self.path.exists() {
            return Ok(None);
        }
        let text = regular_file::read_text(&self.path, NOTE_BYTES_MAX)?;
        let written: Written = serde_json::from_str(&text).with_context(|| {
            format!(
                "{} is not a note of the clock: remove it to continue at the machine's time",
                self.path.display()
            )
        })?;
        Ok(Some(TimeSetting {
            offset_ms: written.offset_ms,
            next: written.next_block_ms.map(TimestampMs),
            distance: written.block_distance_ms.map(DurationMs),
        }))
    }

    /// Notes every change.
    pub(crate) fn into_keep(self) -> KeepTime {
        Arc::new(move |setting| {
            // Without it, a restart continues from the last block, which is no reason to stop now.
            if let Err(error) = self.write(setting) {
                tracing::warn!("the time that was set is not noted: {error:#}");
            }
        })
    }

    fn write(&self, setting: TimeSetting) -> anyhow::Result<()> {
        let TimeSetting { offset_ms, next, distance } = setting;
        let written = Written {
            offset_ms,
            next_block_ms: next.map(|next| next.0),
            block_distance_ms: distance.map(|distance| distance.0),
        };
        private_file::replace(&self.path, (serde_json::to_string(&written)? + "\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let note = ClockNote::new(directory.path());
        assert_eq!(note.read().unwrap(), None, "nothing was noted");
        for (offset_ms, next, distance) in [(-5, None, None), (i64::MAX, Some(7), Some(9))] {
            let (next, distance) = (next.map(TimestampMs), distance.map(DurationMs));
            let setting = TimeSetting { offset_ms, next, distance };
            note.write(setting).unwrap();
            assert_eq!(note.read().unwrap(), Some(setting));
        }
        std::fs::write(directory.path().join("clock.json"), "{}").unwrap();
        assert!(note.read().unwrap_err().to_string().contains("remove it"));
    }
}
