//! Durations as numbers: seconds in configurations, milliseconds elsewhere.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Serializes a duration as a number of seconds, without a fraction for whole seconds. `None`
/// becomes `null`.
#[expect(clippy::ref_option, reason = "serde hands the field over by reference")]
pub(crate) fn serialize<S: Serializer>(
    span: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match span {
        None => serializer.serialize_none(),
        Some(span) if span.subsec_nanos() == 0 => serializer.serialize_u64(span.as_secs()),
        Some(span) => serializer.serialize_f64(span.as_secs_f64()),
    }
}

/// Deserializes a number of seconds. Negative numbers and numbers that are too large for
/// [`Duration`] return an error.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let seconds: Option<f64> = Option::deserialize(deserializer)?;
    seconds
        .map(|seconds| {
            Duration::try_from_secs_f64(seconds).map_err(|_| {
                D::Error::custom(format!("{seconds} is not a valid number of seconds"))
            })
        })
        .transpose()
}

/// Converts a duration to whole milliseconds, at most `u64::MAX`.
pub(crate) fn to_milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
