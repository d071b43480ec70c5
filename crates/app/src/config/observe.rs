//! `audit`, `log_file`, `otlp_…`: what is kept and told of runs.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use secrecy::SecretString;
use serde_json::Value;

use super::{document::Fields, error::Problem};

/// What is kept and told of runs.
#[derive(Debug, Clone, Default)]
pub struct ObserveConfig {
    /// Where the audit goes; `None` if no file says anything about it.
    pub audit: Option<AuditPlace>,
    /// Whether the audit also holds what tools gave.
    pub audit_results: Option<bool>,
    /// Log lines go to this file instead of standard error.
    pub log_file: Option<PathBuf>,
    /// The OpenTelemetry collector that gets the spans.
    pub otlp: Option<OtlpEndpoint>,
    /// Whether spans hold what was said.
    pub otlp_content: Option<bool>,
}

/// Where the audit goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditPlace {
    /// Nowhere.
    Off,
    /// To the file in the user's state folder.
    Default,
    /// To this file.
    File(PathBuf),
}

/// A collector with the headers for it: they belong to this address and to no other.
#[derive(Clone)]
pub struct OtlpEndpoint {
    /// The base address, without `/v1/traces`.
    pub address: String,
    /// Headers of every request, such as a key.
    pub headers: Vec<(String, SecretString)>,
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
    /// Lays `over` on top: what it says wins.
    #[must_use]
    pub(super) fn overlaid_by(self, over: Self) -> Self {
        Self {
            audit: over.audit.or(self.audit),
            audit_results: over.audit_results.or(self.audit_results),
            log_file: over.log_file.or(self.log_file),
            otlp: over.otlp.or(self.otlp),
            otlp_content: over.otlp_content.or(self.otlp_content),
        }
    }
}

/// Reads the keys. Files are named relative to the folder of the configuration `file`.
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
