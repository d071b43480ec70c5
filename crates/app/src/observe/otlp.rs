//! Spans of runs for an OpenTelemetry collector, by OTLP over HTTP.

mod settings;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use opentelemetry::{Array, KeyValue, StringValue, Value, trace::TracerProvider as _};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter},
};
use switchboard_domain::redact::{Redactor, SizeLimits};
use switchboard_orchestration::observe::trace::{CONTENT, SPANS};
use switchboard_providers_common::{
    HttpRequest, HttpTransport, RetryPolicy, StatusClassifier, TransportConfig, read_to_end,
};
use tokio::runtime::Handle;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use super::secrets::redactor;
use crate::config::{Config, environment::Environment};

/// Time limit for the export of the last spans.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// The name of the collector in errors.
const COLLECTOR: &str = "the OTLP collector";
/// Maximum sizes of attributes. Only attributes with message content are long.
const ATTRIBUTE_LIMITS: SizeLimits = SizeLimits {
    text: 64_000,
    items: 1,
    total: 64_000,
};
/// Attributes that the conventions define as lists. `tracing` has no lists.
const LISTS: [&str; 1] = ["gen_ai.response.finish_reasons"];

/// The exporter of spans. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Export {
    provider: SdkTracerProvider,
    with_content: bool,
    losses: Arc<Mutex<Losses>>,
}

/// Counts of exported and lost spans.
#[derive(Debug, Default)]
struct Losses {
    exported: usize,
    lost: usize,
    reason: String,
}

/// Starts the export if it is configured. Needs a runtime.
pub(super) fn start(config: &Config, environment: &Environment) -> Result<Option<Export>, String> {
    let Some(settings) = settings::read(config, environment)? else {
        return Ok(None);
    };
    let transport = TransportConfig {
        connect_timeout: settings.timeout.min(Duration::from_secs(5)),
        first_byte_timeout: settings.timeout,
        idle_timeout: settings.timeout,
        retry: RetryPolicy {
            max_attempts: 3,
            min_delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(2),
            max_retry_after: Duration::from_secs(30),
        },
        ..TransportConfig::default()
    };
    let transport = HttpTransport::new(COLLECTOR, &transport).map_err(|it| it.to_string())?;
    let headers = settings.headers.check(COLLECTOR);
    headers.map_err(|it| it.to_string())?;
    let client = Client {
        transport,
        request: HttpRequest::new(settings.url.clone()).with_headers(&settings.headers),
        runtime: Handle::try_current().map_err(|it| it.to_string())?,
    };
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(settings.url)
        .with_protocol(settings.protocol)
        .with_timeout(settings.timeout)
        .build()
        .map_err(|error| error.to_string())?;
    let losses = Arc::default();
    let exporter = RedactingExporter {
        exporter,
        redactor: redactor(config, environment).with_limits(ATTRIBUTE_LIMITS),
        losses: Arc::clone(&losses),
    };
    let resource = settings.resource.into_iter();
    let resource = resource.map(|(key, value)| KeyValue::new(key, value));
    let provider = SdkTracerProvider::builder()
        .with_resource(Resource::builder_empty().with_attributes(resource).build())
        .with_sampler(Sampler::AlwaysOn)
        .with_batch_exporter(exporter)
        .build();
    Ok(Some(Export {
        provider,
        with_content: settings.content,
        losses,
    }))
}

impl Export {
    /// Returns a layer that receives the spans of runs, and message content only if configured.
    pub(super) fn spans<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
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

    /// Exports the remaining spans. Returns a message if spans were lost.
    pub(super) async fn finish(&self) -> Option<String> {
        let provider = self.provider.clone();
        // The processor blocks its caller.
        let shutdown =
            tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT));
        let ended = match tokio::time::timeout(SHUTDOWN_TIMEOUT, shutdown).await {
            Ok(Ok(Ok(()))) => true,
            Ok(_) | Err(_) => false,
        };
        let losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        if losses.lost > 0 {
            let all = losses.lost + losses.exported;
            return Some(format!(
                "{} of {all} spans were not exported: {}",
                losses.lost, losses.reason
            ));
        }
        (!ended).then(|| {
            format!(
                "spans were not exported: {COLLECTOR} did not answer within {SHUTDOWN_TIMEOUT:?}"
            )
        })
    }
}

/// A layer without spans. It makes the export reachable from the subscriber.
impl<S: Subscriber> Layer<S> for Export {}

/// Removes secrets from spans and counts the lost ones.
#[derive(Debug)]
struct RedactingExporter {
    exporter: opentelemetry_otlp::SpanExporter,
    redactor: Redactor,
    losses: Arc<Mutex<Losses>>,
}

impl SpanExporter for RedactingExporter {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        for span in &mut batch {
            // Message content is recorded as events, and the conventions have it as attributes.
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
                attribute.value = if LISTS.contains(&attribute.key.as_str()) {
                    Value::Array(Array::String(vec![text]))
                } else {
                    Value::String(text)
                };
            }
        }
        let result = self.exporter.export(batch).await;
        let mut losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        match &result {
            Ok(()) => losses.exported += spans,
            Err(error) => {
                losses.lost += spans;
                losses.reason = error.to_string();
            }
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

/// Sends requests with the HTTP transport of the providers. Ignores the address and the headers of
/// a request except its content type: the headers of the environment belong to an address of the
/// environment.
#[derive(Debug)]
struct Client {
    transport: HttpTransport,
    request: HttpRequest,
    runtime: Handle,
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let content_type = request.headers().get("content-type");
        let content_type = content_type.and_then(|it| it.to_str().ok());
        let content_type = content_type.unwrap_or("application/json").to_owned();
        let request = self.request.clone().with_json(request.into_body());
        let request = request.with_header("content-type", &content_type);
        let transport = self.transport.clone();
        // The caller is a thread without a runtime.
        let sending = self.runtime.spawn(async move {
            let response = transport.post(&request, &StatusClassifier).await?;
            read_to_end(COLLECTOR, response.body, MAX_RESPONSE_BYTES).await
        });
        let body = sending.await??;
        Ok(Response::new(body))
    }
}
