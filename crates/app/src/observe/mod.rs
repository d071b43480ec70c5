//! Log lines, the audit file, and spans for an OpenTelemetry collector. See
//! `docs/observability.md`.
//!
//! [`start`] sets up the process when its configuration is known. [`finish`] exports the remaining
//! spans at its end. The subscriber of `tracing` owns the export.

mod audit;
mod log;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(not(feature = "otlp"))]
#[path = "otlp_disabled.rs"]
mod otlp;
mod secrets;

use anyhow::anyhow;
use switchboard_domain::redact::Redactor;
use tracing_subscriber::{
    Layer as _, filter::LevelFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

pub(crate) use audit::{AuditLog, Recorder, list_prices};
pub(crate) use secrets::{hidden_of, redactor};

use crate::{
    config::{Config, environment::Environment},
    terminal,
};

/// The key of the collector in the configuration.
const OTLP_ENDPOINT: &str = "otlp_endpoint";

/// Starts logging and the export of spans, as configured. Only the first call in a process has an
/// effect. Log lines contain none of `live`. Needs a runtime.
///
/// Returns an error if a configuration file names a collector and the export cannot start.
pub(crate) fn start(
    config: &Config,
    environment: &Environment,
    live: &Redactor,
) -> anyhow::Result<()> {
    let hidden = redactor(config, environment);
    let log = log::layer(config, environment, hidden, live);
    let export = match otlp::start(config, environment) {
        Ok(export) => export,
        Err(reason) if config.otlp_endpoint.is_some() => return Err(anyhow!(reason)),
        Err(reason) => {
            terminal::print_warning(&format!("no spans are exported: {reason}"));
            None
        }
    };
    if log.is_none() && export.is_none() {
        return Ok(());
    }
    let spans = export.as_ref().map(otlp::Export::spans);
    let subscriber = tracing_subscriber::registry()
        .with(spans)
        .with(export.map(|export| export.with_filter(LevelFilter::OFF)))
        .with(log);
    // A second call keeps the first subscriber.
    let _ = subscriber.try_init();
    Ok(())
}

/// Returns the setting that names a collector, unless the export is disabled. A variable takes
/// precedence over the configuration.
fn collector_setting(config: &Config, environment: &Environment) -> Option<&'static str> {
    let disabled = environment.get("OTEL_SDK_DISABLED").unwrap_or_default();
    let exporter = environment.get("OTEL_TRACES_EXPORTER");
    if disabled.eq_ignore_ascii_case("true") || exporter == Some("none") {
        return None;
    }
    let variables = [
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ];
    let mut variables = variables.into_iter();
    let variable = variables.find(|name| environment.get(name).is_some());
    variable.or(config.otlp_endpoint.as_ref().map(|_| OTLP_ENDPOINT))
}

/// Starts logging as the environment says, for a command without configuration.
pub(crate) fn start_log(environment: &Environment) {
    let nothing = Config::default();
    let hidden = redactor(&nothing, environment);
    let live = Redactor::default();
    if let Some(log) = log::layer(&nothing, environment, hidden, &live) {
        // A second call keeps the first subscriber.
        let _ = tracing_subscriber::registry().with(log).try_init();
    }
}

/// Exports the remaining spans and prints a warning if some were lost.
pub(crate) async fn finish() {
    let export = tracing::dispatcher::get_default(|dispatch| {
        dispatch.downcast_ref::<otlp::Export>().cloned()
    });
    if let Some(export) = export
        && let Some(warning) = export.finish().await
    {
        terminal::print_warning(&warning);
    }
}
