//! The version of the stored form of a run.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

/// The version that is written. A state without a version has the same form: it was written before there were
/// versions.
const VERSION: u64 = 1;

/// The version of a stored run. Reading any other version is an error, so that no state is read in part.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::run) struct StateVersion;

/// A stored run has a version that this program does not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the run was stored in version {version}, and this program reads version {VERSION}: go on with the program \
     that stored it, or give the run up"
)]
pub struct UnknownVersion {
    /// The version, as it is stored.
    pub version: String,
}

impl StateVersion {
    /// Checks the version of a stored run; `None` is a state without one.
    pub(in crate::run) fn check(version: Option<&Value>) -> Result<Self, UnknownVersion> {
        match version {
            None => Ok(Self),
            Some(version) if version.as_u64() == Some(VERSION) => Ok(Self),
            Some(version) => Err(UnknownVersion {
                version: version.to_string(),
            }),
        }
    }
}

impl Serialize for StateVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        VERSION.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StateVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let version = Value::deserialize(deserializer)?;
        Self::check(Some(&version)).map_err(D::Error::custom)
    }
}
