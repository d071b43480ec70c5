//! Reports the setting of an OpenTelemetry collector in a build without the feature `otlp`.

use tracing_subscriber::layer::Identity;

use super::collector_setting;
use crate::config::{Config, environment::Environment};

/// The exporter of spans, which this build does not have.
#[derive(Debug, Clone)]
pub(super) enum Export {}

impl Export {
    pub(super) fn spans(&self) -> Identity {
        match *self {}
    }

    #[expect(
        clippy::unused_async,
        reason = "the same signature as with the feature"
    )]
    pub(super) async fn finish(&self) -> Option<String> {
        match *self {}
    }
}

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Export {}

/// Returns an error if a collector is configured.
pub(super) fn start(config: &Config, environment: &Environment) -> Result<Option<Export>, String> {
    match collector_setting(config, environment) {
        Some(name) => Err(format!(
            "`{name}` is set, and this program was built without the feature `otlp`: build it \
             with `--features otlp`, or remove the setting"
        )),
        None => Ok(None),
    }
}
