//! Settings of the export.
//!
//! The variables are those of the OpenTelemetry specification ("OTLP Exporter Configuration", "SDK
//! environment variables") for spans over HTTP.

use std::time::Duration;

use opentelemetry_otlp::Protocol;
use secrecy::SecretString;
use switchboard_providers_common::Headers;

use crate::config::{Config, environment::Environment};

/// Settings of the export.
#[derive(Debug)]
pub(super) struct Settings {
    /// The complete URL.
    pub(super) url: String,
    pub(super) headers: Headers,
    /// Attributes of the program.
    pub(super) resource: Vec<(String, String)>,
    pub(super) protocol: Protocol,
    /// Time limit of one request.
    pub(super) timeout: Duration,
    /// Whether spans include message content.
    pub(super) content: bool,
}

const TRACES: &str = "/v1/traces";

/// Reads the settings. `None` if no export is configured. Headers of the environment are sent only
/// to an address of the environment.
pub(super) fn read(config: &Config, environment: &Environment) -> Result<Option<Settings>, String> {
    if is_true(environment.get("OTEL_SDK_DISABLED"))
        || environment.get("OTEL_TRACES_EXPORTER") == Some("none")
    {
        return Ok(None);
    }
    let traces = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let all = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT");
    let of_environment = traces.map(str::to_owned).or(all.map(with_path));
    let (url, headers) = match (of_environment, &config.otlp_endpoint) {
        (Some(url), _) => (url, headers_of(environment)?),
        (None, Some(address)) => {
            let headers = config.otlp_headers.iter().flatten();
            let headers = headers.fold(Headers::new(), |headers, (name, value)| {
                headers.with_secret(name, value)
            });
            (with_path(address), headers)
        }
        (None, None) => return Ok(None),
    };
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err("the address of the collector must begin with http:// or https://".to_owned());
    }
    let either = |one: &str, other: &str| environment.get(one).or(environment.get(other));
    let name = either(
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
    );
    let protocol = match name.map(str::trim) {
        None | Some("http/json") => Protocol::HttpJson,
        Some("http/protobuf") => Protocol::HttpBinary,
        Some("grpc") => {
            return Err(
                "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and only HTTP is spoken here: take \
                 http/protobuf or http/json, and the collector's address for HTTP, usually port 4318"
                    .to_owned(),
            );
        }
        Some(_) => {
            return Err(
                "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json".to_owned(),
            );
        }
    };
    let timeout = either(
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
        "OTEL_EXPORTER_OTLP_TIMEOUT",
    );
    let timeout = timeout.and_then(|text| text.trim().parse().ok());
    let content = environment.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
    Ok(Some(Settings {
        url,
        headers,
        protocol,
        resource: resource(environment)?,
        timeout: Duration::from_millis(timeout.filter(|ms| *ms > 0).unwrap_or(10_000)),
        content: match content {
            Some(value) => is_true(Some(value)),
            None => config.otlp_content.unwrap_or(false),
        },
    }))
}

fn is_true(value: Option<&str>) -> bool {
    value.is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// Appends the path of spans to a base address and keeps its query.
fn with_path(base: &str) -> String {
    let (path, query) = base
        .split_once('?')
        .map_or((base, ""), |(path, query)| (path, query));
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}{TRACES}{mark}{query}", path.trim_end_matches('/'))
}

fn headers_of(environment: &Environment) -> Result<Headers, String> {
    let mut headers = Headers::new();
    for name in [
        "OTEL_EXPORTER_OTLP_HEADERS",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    ] {
        for (key, value) in pairs(environment, name)? {
            headers = headers.with_secret(&key, &SecretString::from(value));
        }
    }
    Ok(headers)
}

fn resource(environment: &Environment) -> Result<Vec<(String, String)>, String> {
    let own = [
        ("service.name", "switchboard"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("telemetry.sdk.name", "switchboard"),
        ("telemetry.sdk.language", "rust"),
        ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
    ];
    let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let mut resource = Vec::from(own);
    let named = environment.get("OTEL_SERVICE_NAME");
    let named = named.map(|name| ("service.name".to_owned(), name.to_owned()));
    let given = pairs(environment, "OTEL_RESOURCE_ATTRIBUTES")?;
    for (key, value) in given.into_iter().chain(named) {
        match resource.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => resource.push((key, value)),
        }
    }
    Ok(resource)
}

/// Parses `key=value,key=value` with percent-encoded values, as in W3C baggage. An error names the
/// variable and not its value, which may be a key.
fn pairs(environment: &Environment, name: &str) -> Result<Vec<(String, String)>, String> {
    let text = environment.get(name).unwrap_or_default();
    let pairs = text
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty());
    let read = pairs.map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let key = decoded(key.trim())?;
        (!key.is_empty()).then_some((key, decoded(value.trim())?))
    });
    read.collect::<Option<_>>()
        .ok_or_else(|| format!("{name} must be written key=value,key=value"))
}

/// Decodes percent-encoding. `None` if it is invalid.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            u8::try_from(high * 16 + low).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
