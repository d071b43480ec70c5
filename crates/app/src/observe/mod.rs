//! Log lines, the audit, and spans for an OpenTelemetry collector. See
//! `docs/observability.md`.
//!
//! [`start_observability`] sets up the process when its configuration is known.
//! [`finish_span_export`] exports the remaining spans at the end of the process. The subscriber of
//! `tracing` owns the export.

mod audit;
mod audit_queue;
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

pub(crate) use audit::{AuditLog, AuditRecorder, build_cost_function};
pub(crate) use secrets::build_redactor;

use crate::{
    config::{Config, environment::Environment},
    terminal,
};

/// Configuration key with the address of the OpenTelemetry collector.
const OTLP_ENDPOINT: &str = "otlp_endpoint";

/// Starts logging and the export of spans, as configured. Log lines are redacted, also with secrets
/// that are added to `live` later. Needs a Tokio runtime. A call has no effect if an earlier call
/// in this process has started logging or the export.
///
/// Returns an error if a configuration file names a collector and the export cannot start.
pub(crate) fn start_observability(
    config: &Config,
    environment: &Environment,
    live: &Redactor,
) -> anyhow::Result<()> {
    let hidden = build_redactor(config, environment);
    let log = log::build_log_layer(config, environment, hidden, live);
    let export = match otlp::start_span_export(config, environment) {
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
    let spans = export.as_ref().map(otlp::SpanExport::span_layer);
    let subscriber = tracing_subscriber::registry()
        .with(spans)
        .with(export.map(|export| export.with_filter(LevelFilter::OFF)))
        .with(log);
    // An error means that an earlier call has already set the subscriber, which then stays.
    let _ = subscriber.try_init();
    Ok(())
}

/// Returns the name of the setting or variable that configures an OpenTelemetry collector. `None`
/// if the export is disabled or not configured. Variables take precedence over the configuration.
fn find_otel_collector_setting(config: &Config, environment: &Environment) -> Option<&'static str> {
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

/// Exports the remaining spans at the end of the process. Prints a warning if spans were lost.
pub(crate) async fn finish_span_export() {
    let export = tracing::dispatcher::get_default(|dispatch| {
        dispatch.downcast_ref::<otlp::SpanExport>().cloned()
    });
    if let Some(export) = export
        && let Some(warning) = export.finish_span_export().await
    {
        terminal::print_warning(&warning);
    }
}
