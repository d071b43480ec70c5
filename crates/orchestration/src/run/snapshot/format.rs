//! The version number of the stored form of a run.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

/// The version that this program writes and reads.
const FORMAT: u64 = 1;

/// The version of a stored run. Reading any other version is an error.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FormatVersion;

/// A stored run has a form that this program does not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the run is stored in format {format}, and this program reads format {FORMAT}; the stored run is \
     unchanged. To keep it, export it with a program built from commit f008d49 or with the program \
     that stored it; otherwise abandon the run"
)]
pub struct UnsupportedFormat {
    /// The stored version, or `unknown` for a form without a version.
    pub format: String,
}

impl FormatVersion {
    /// Checks the version of a stored run before the rest of it is read.
    pub(super) fn check(stored: Option<&Value>) -> Result<Self, UnsupportedFormat> {
        if stored.and_then(Value::as_u64) == Some(FORMAT) {
            return Ok(Self);
        }
        let format = stored.map_or_else(|| "unknown".to_owned(), ToString::to_string);
        Err(UnsupportedFormat { format })
    }
}

impl Serialize for FormatVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        FORMAT.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FormatVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Option::<Value>::deserialize(deserializer)?;
        Self::check(stored.as_ref()).map_err(D::Error::custom)
    }
}
