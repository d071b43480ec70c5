//! Exports the spans of runs to an OpenTelemetry collector, by OTLP over HTTP.
//!
//! The exporter reads the variables of the OpenTelemetry specification ("OTLP Exporter
//! Configuration", "SDK environment variables").

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use opentelemetry::{Array, KeyValue, StringValue, Value, trace::TracerProvider as _};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    resource::{EnvResourceDetector, TelemetryResourceDetector},
    trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter},
};
use switchboard_domain::redact::{RedactionLimits, Redactor};
use switchboard_orchestration::observe::trace::{CONTENT, SPANS};
use switchboard_providers_common::{
    Headers, HttpRequest, HttpTransport, StatusClassifier, TransportConfig, read_to_end,
};
use tokio::runtime::Handle;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use super::{OTLP_ENDPOINT, find_otel_collector_setting, secrets::build_redactor};
use crate::config::{Config, environment::Environment};

/// Time limit for exporting the last spans at the end of the program.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum size in bytes of a response that is read from the collector.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// Name that error messages use for the collector.
const COLLECTOR: &str = "the OTLP collector";
/// Size limits of span attributes: at most 64,000 bytes of text. Only attributes with message
/// content are this long.
const ATTRIBUTE_LIMITS: RedactionLimits = RedactionLimits {
    text: 64_000,
    items: 1,
    total: 64_000,
};
/// Span attribute that OpenTelemetry defines as a list. A `tracing` field cannot be a list, so the
/// exporter converts the text of the field to a list with one item.
const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";

/// The running export of spans to a collector. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct SpanExport {
    provider: SdkTracerProvider,
    with_content: bool,
    /// Message of the last failed export request, for the warning at the end.
    last_error: Arc<Mutex<Option<String>>>,
}

/// Starts the export of spans. Returns `None` if no collector is configured. Needs a Tokio runtime.
pub(super) fn start_span_export(
    config: &Config,
    environment: &Environment,
) -> Result<Option<SpanExport>, String> {
    let Some(setting) = find_otel_collector_setting(config, environment) else {
        return Ok(None);
    };
    let address = config.otlp_endpoint.as_deref();
    let address = address.filter(|_| setting == OTLP_ENDPOINT);
    let configured = address.map(|address| build_collector_request(address, config));
    let configured = configured.transpose()?;
    let either = |signal: &str, all: &str| environment.get(signal).or(environment.get(all));
    let timeout = either(
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
        "OTEL_EXPORTER_OTLP_TIMEOUT",
    );
    let timeout = timeout.and_then(|text| text.trim().parse().ok());
    let timeout = Duration::from_millis(timeout.filter(|ms| *ms > 0).unwrap_or(10_000));
    let transport = TransportConfig {
        connect_timeout: timeout.min(Duration::from_secs(5)),
        first_byte_timeout: timeout,
        idle_timeout: timeout,
        ..TransportConfig::default()
    };
    let transport = HttpTransport::new(COLLECTOR, &transport).map_err(|it| it.to_string())?;
    let client = CollectorClient {
        transport,
        configured,
        runtime: Handle::try_current().map_err(|it| it.to_string())?,
    };
    let mut exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_timeout(timeout);
    if let Some(address) = address {
        exporter = exporter.with_endpoint(address);
    }
    let protocol = either(
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
    );
    if protocol.is_none() {
        exporter = exporter.with_protocol(Protocol::HttpJson);
    }
    let exporter = exporter.build().map_err(|error| error.to_string())?;
    let last_error = Arc::default();
    let exporter = RedactingExporter {
        exporter,
        redactor: build_redactor(config, environment).with_limits(ATTRIBUTE_LIMITS),
        last_error: Arc::clone(&last_error),
    };
    // `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME` override this default service name.
    let resource = Resource::builder_empty()
        .with_service_name("switchboard")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_detector(Box::new(EnvResourceDetector::new()));
    let name = environment.get("OTEL_SERVICE_NAME");
    let resource =
        resource.with_attributes(name.map(|name| KeyValue::new("service.name", name.to_owned())));
    let provider = SdkTracerProvider::builder()
        .with_resource(resource.build())
        .with_sampler(Sampler::AlwaysOn)
        .with_batch_exporter(exporter)
        .build();
    let content = environment.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
    let with_content = match content {
        Some(value) => value.eq_ignore_ascii_case("true"),
        None => config.otlp_content.unwrap_or(false),
    };
    Ok(Some(SpanExport {
        provider,
        with_content,
        last_error,
    }))
}

/// Returns an export request without a body for the base address `address`. Appends `/v1/traces` to
/// the path of the address, before a query. Returns an error for an invalid header.
fn build_collector_request(address: &str, config: &Config) -> Result<HttpRequest, String> {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let mark = if query.is_empty() { "" } else { "?" };
    let url = format!("{}/v1/traces{mark}{query}", path.trim_end_matches('/'));
    let headers = config.otlp_headers.iter().flatten();
    let headers = headers.fold(Headers::new(), |headers, (name, value)| {
        headers.with_secret(name, value)
    });
    headers
        .check_headers(COLLECTOR)
        .map_err(|error| error.to_string())?;
    Ok(HttpRequest::new(url).with_headers(&headers))
}

impl SpanExport {
    /// Returns a `tracing` layer that exports the spans of runs. Spans include message content only
    /// if this is configured.
    pub(super) fn span_layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let with_content = self.with_content;
        let is_exported = move |metadata: &Metadata<'_>| match metadata.target() {
            SPANS => metadata.is_span(),
            CONTENT => with_content,
            _ => false,
        };
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("switchboard"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_level(false)
            .with_target(false)
            .with_filter(filter_fn(is_exported))
    }

    /// Exports the remaining spans. Returns a message for the user if spans were lost.
    pub(super) async fn finish_span_export(&self) -> Option<String> {
        let provider = self.provider.clone();
        // The shutdown blocks its thread, so it must not run on a thread for asynchronous tasks.
        let shutdown =
            tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT));
        let ended = tokio::time::timeout(SHUTDOWN_TIMEOUT, shutdown).await;
        let last_error = self.last_error.lock();
        let last_error = last_error.unwrap_or_else(PoisonError::into_inner).take();
        let is_exported = matches!(ended, Ok(Ok(Ok(()))));
        let no_answer = || format!("{COLLECTOR} did not answer within {SHUTDOWN_TIMEOUT:?}");
        let reason = last_error.or_else(|| (!is_exported).then(no_answer))?;
        Some(format!("spans were not exported: {reason}"))
    }
}

/// A layer that records nothing. Its only purpose is to store the export in the global subscriber,
/// where `finish_span_export` finds it.
impl<S: Subscriber> Layer<S> for SpanExport {}

/// An exporter that redacts secrets in spans and stores the error of the last failed request.
#[derive(Debug)]
struct RedactingExporter {
    exporter: opentelemetry_otlp::SpanExporter,
    redactor: Redactor,
    last_error: Arc<Mutex<Option<String>>>,
}

impl SpanExporter for RedactingExporter {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        for span in &mut batch {
            // `tracing` records message content as events of the span. OpenTelemetry defines it as
            // span attributes, so the content is moved there.
            let events = std::mem::take(&mut span.events);
            let events = events.events.into_iter();
            let content = events.flat_map(|event| event.attributes);
            let content = content.filter(|it| it.key.as_str().starts_with("gen_ai."));
            span.attributes.extend(content);
            span.name = self.redactor.redact_text(&span.name).into();
            for attribute in &mut span.attributes {
                let Value::String(text) = &attribute.value else {
                    continue;
                };
                let text = StringValue::from(self.redactor.redact_text(text.as_str()));
                attribute.value = if attribute.key.as_str() == FINISH_REASONS {
                    Value::Array(Array::String(vec![text]))
                } else {
                    Value::String(text)
                };
            }
        }
        let result = self.exporter.export(batch).await;
        if let Err(error) = &result {
            let last_error = self.last_error.lock();
            *last_error.unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// An HTTP client for requests to the collector. It uses the HTTP transport of the model providers.
#[derive(Debug)]
struct CollectorClient {
    transport: HttpTransport,
    /// Request without a body to the address in the configuration, with the configured headers.
    /// Headers from environment variables are not sent to this address. `None` if an environment
    /// variable contains the address of the collector.
    configured: Option<HttpRequest>,
    runtime: Handle,
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let mut request = match &self.configured {
            Some(request) => request.clone(),
            None => HttpRequest::new(parts.uri.to_string()),
        }
        .with_json(body);
        for (name, value) in &parts.headers {
            let value = value.to_str()?;
            if name == "content-type" {
                request = request.with_header(name.as_str(), value);
            } else if self.configured.is_none() {
                request = request.with_secret(name.as_str(), &value.into());
            }
        }
        let transport = self.transport.clone();
        // The exporter calls this function on a thread without a Tokio runtime, so the request runs
        // on `self.runtime`.
        let sending = self.runtime.spawn(async move {
            let response = transport.post(&request, &StatusClassifier).await?;
            read_to_end(COLLECTOR, response.body, MAX_RESPONSE_BYTES).await
        });
        let body = sending.await??;
        Ok(Response::new(body))
    }
}
