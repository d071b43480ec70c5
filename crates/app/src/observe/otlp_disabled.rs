//! Rejects the address of an OpenTelemetry collector in a build without the feature `otlp`.

use tracing_subscriber::layer::Identity;

use super::find_otel_collector_setting;
use crate::config::{Config, environment::Environment};

/// Type without values that replaces the span export in a build without the feature `otlp`.
#[derive(Debug, Clone)]
pub(super) enum SpanExport {}

impl SpanExport {
    pub(super) fn span_layer(&self) -> Identity {
        match *self {}
    }

    #[expect(
        clippy::unused_async,
        reason = "the same signature as with the feature"
    )]
    pub(super) async fn finish_span_export(&self) -> Option<String> {
        match *self {}
    }
}

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for SpanExport {}

/// Returns an error if a collector is configured, because this build cannot export spans.
pub(super) fn start_span_export(
    config: &Config,
    environment: &Environment,
) -> Result<Option<SpanExport>, String> {
    match find_otel_collector_setting(config, environment) {
        Some(name) => Err(format!(
            "`{name}` is set, but this program was built without the feature `otlp`: build it \
             with `--features otlp`, or remove the setting"
        )),
        None => Ok(None),
    }
}
