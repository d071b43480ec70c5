//! What is kept and told of what the program does: log lines, an audit file, and spans for an
//! OpenTelemetry collector. `docs/observability.md` describes all of it.
//!
//! [`start`] sets the process up once its configuration is known, [`finish`] sees to it that nothing is
//! lost at its end. Both are the process's own: `tracing` has one subscriber for all.

mod audit;
mod log;
mod otlp;
mod secrets;

use std::sync::OnceLock;

use switchboard_domain::redact;
use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};

pub use audit::{AuditError, AuditLog, Recorder, list_prices};
pub(crate) use secrets::hidden_of;
pub use secrets::{known_secrets, redactor};

use crate::{config::Config, environment::Environment, terminal};

/// What was started and has to be ended.
static EXPORT: OnceLock<otlp::Export> = OnceLock::new();

/// Begins to log and to export spans, as far as configuration and environment say so. Only the first
/// time in a process counts. Spans are exported by a task of the current runtime.
///
/// Log lines show none of `live`.
pub fn start(config: &Config, environment: &Environment, live: &redact::Redactor) {
    let hidden = redactor(config, environment);
    let log = log::layer(&config.observe, environment, hidden, live);
    let spans = otlp::start(config, environment);
    let export = match spans {
        Ok(export) => export,
        Err(why) => {
            terminal::say_warning(&format!("no spans are exported: {why}"));
            None
        }
    };
    if log.is_none() && export.is_none() {
        return;
    }
    let layer = export.as_ref().map(|(layer, _)| layer.clone());
    let subscriber = tracing_subscriber::registry()
        .with(layer.map(otlp::SpanLayer::filtered))
        .with(log);
    if subscriber.try_init().is_ok()
        && let Some((_, export)) = export
    {
        let _ = EXPORT.set(export);
    }
}

/// Begins to log as the environment says, where there is no configuration: a server that this program
/// runs as a process of its own.
pub fn start_log(environment: &Environment) {
    let nothing = Config::default();
    let hidden = redactor(&nothing, environment);
    let live = redact::Redactor::default();
    if let Some(log) = log::layer(&nothing.observe, environment, hidden, &live) {
        // Somebody else's subscriber stays.
        let _ = tracing_subscriber::registry().with(log).try_init();
    }
}

/// Hands over what is left, for three seconds at most, and says what was lost.
pub async fn finish() {
    let Some(export) = EXPORT.get() else { return };
    if let Some(lost) = export.finish().await {
        terminal::say_warning(&lost);
    }
}
