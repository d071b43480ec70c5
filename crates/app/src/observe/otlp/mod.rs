//! Spans for an OpenTelemetry collector, by OTLP over HTTP, in its JSON or its binary form.
//!
//! The layer takes spans of the run (`switchboard::genai`) as they end and puts them into a bounded queue
//! without ever waiting; a task sends them in batches. What does not fit, or is not taken, is counted.

mod encode;
mod layer;
mod protobuf;
mod send;
mod settings;

pub(super) use layer::SpanLayer;
pub(super) use send::Export;

use crate::{config::Config, environment::Environment};

use super::secrets::redactor;

/// Starts the export if it is configured.
pub(super) fn start(
    config: &Config,
    environment: &Environment,
) -> Result<Option<(SpanLayer, Export)>, String> {
    let Some(settings) = settings::read(&config.observe, environment)? else {
        return Ok(None);
    };
    let content = settings.content;
    let (queue, export) = Export::start(settings, redactor(config, environment))?;
    Ok(Some((SpanLayer::new(queue, content), export)))
}
