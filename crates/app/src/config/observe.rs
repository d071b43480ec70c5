//! `audit`, `log_file`, `otlp_…`: audit, logs and traces.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use secrecy::SecretString;
use serde_json::Value;

use super::{document::Fields, error::Problem};

/// Audit, logs and traces.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObserveConfig {
    /// The audit file. `None` is not configured.
    pub(crate) audit: Option<AuditPlace>,
    /// Whether the audit includes tool results.
    pub(crate) audit_results: Option<bool>,
    /// The log file. `None` logs to standard error.
    pub(crate) log_file: Option<PathBuf>,
    /// The OpenTelemetry collector of the spans.
    pub(crate) otlp: Option<OtlpEndpoint>,
    /// Whether spans include message content.
    pub(crate) otlp_content: Option<bool>,
}

/// The location of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuditPlace {
    Off,
    /// The default file in the user's state folder.
    Default,
    File(PathBuf),
}

/// A collector with the headers that belong to its address.
#[derive(Clone)]
pub(crate) struct OtlpEndpoint {
    /// The base address, without `/v1/traces`.
    #[cfg_attr(
        not(feature = "otlp"),
        allow(dead_code, reason = "only the export reads it")
    )]
    pub(crate) address: String,
    /// Headers of every request, such as a key.
    pub(crate) headers: Vec<(String, SecretString)>,
}

impl fmt::Debug for OtlpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("OtlpEndpoint")
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

impl ObserveConfig {
    /// Merges `over`, which takes precedence.
    #[must_use]
    pub(super) fn merged_with(self, over: Self) -> Self {
        Self {
            audit: over.audit.or(self.audit),
            audit_results: over.audit_results.or(self.audit_results),
            log_file: over.log_file.or(self.log_file),
            otlp: over.otlp.or(self.otlp),
            otlp_content: over.otlp_content.or(self.otlp_content),
        }
    }
}

/// Reads the keys. Paths are relative to the folder of the configuration `file`.
pub(super) fn read(fields: &Fields<'_>, file: &Path) -> Result<ObserveConfig, Problem> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let place = |name: &str| folder.join(name);
    let audit = fields.read("audit", "true, false or a file", |value| match value {
        Value::Bool(true) => Some(AuditPlace::Default),
        Value::Bool(false) => Some(AuditPlace::Off),
        Value::String(name) if !name.trim().is_empty() => Some(AuditPlace::File(place(name))),
        _ => None,
    })?;
    let headers = fields.read("otlp_headers", "a map of names and texts", |value| {
        let headers = value.as_object()?.iter();
        let headers = headers.map(|(name, value)| {
            let value = SecretString::from(value.as_str()?);
            Some((name.clone(), value))
        });
        headers.collect::<Option<Vec<_>>>()
    })?;
    let address = fields.read(
        "otlp_endpoint",
        "an address with http:// or https://",
        |value| {
            let address = value.as_str()?.trim();
            let is_one = address.starts_with("http://") || address.starts_with("https://");
            is_one.then(|| address.to_owned())
        },
    )?;
    if address.is_none() && headers.is_some() {
        return Err(Problem::wrong("otlp_headers", "beside otlp_endpoint"));
    }
    Ok(ObserveConfig {
        audit,
        audit_results: fields.flag("audit_results")?,
        log_file: fields.text("log_file")?.map(|name| place(&name)),
        otlp: address.map(|address| OtlpEndpoint {
            address,
            headers: headers.unwrap_or_default(),
        }),
        otlp_content: fields.flag("otlp_content")?,
    })
}

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
