//! A [`ChatModel`] that joins the mapping of a wire protocol with the HTTP transport.

use std::{borrow::Cow, fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{TryStreamExt as _, stream};
use serde::Serialize;
use switchboard_domain::{
    ChatModel, ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelEvent, ModelId,
    ModelStream,
};

use super::{HttpClient, ProviderConfig};
use crate::{
    Headers, HttpAnswer, HttpRequest, MAX_FRAME_BYTES, RetryPolicy, SingleAttemptModel,
    WireDecoder, decode_body_text, decode_ndjson, decode_sse_with_context, read_to_end,
    schema::ToolSchemas,
    stream_with_retry,
    text_tool_calls::{CallRecoverySettings, recover_tool_calls},
};

/// Mapping between domain types and one wire protocol of a provider.
pub trait WireProtocol: fmt::Debug + Sized + 'static {
    /// The provider's configuration.
    type Config: ProviderConfig;
    /// Options of one model. A model without its own options has those of the configuration.
    type Options: fmt::Debug + Clone + Send + Sync;
    /// Adjustments to a request after the server refused an earlier attempt, such as the omission
    /// of an unsupported field. The default value has no adjustments.
    type Adaptation: Default + Send;
    /// State machine that converts the frames of an answer into events.
    type Decoder: WireDecoder + 'static;

    /// Framing of a streamed answer in this protocol.
    const FORMAT: StreamFormat = StreamFormat::ServerSentEvents;

    /// Returns the model options that `config` contains.
    fn options(config: &Self::Config) -> Self::Options;

    /// Returns the capabilities of the model `name` that are known without a request.
    fn capabilities(config: &Self::Config, name: &str) -> ModelCapabilities;

    /// Returns the names of the tools in `options` that the provider runs itself, such as
    /// `web_search`. The default returns no names.
    fn server_tool_names(_options: &Self::Options) -> Vec<Cow<'_, str>> {
        Vec::new()
    }

    /// Maps a chat request to an HTTP request of this protocol, with the adjustments in
    /// `adaptation`.
    fn prepare_request(
        model: &HttpModel<Self>,
        request: &ChatRequest,
        adaptation: &mut Self::Adaptation,
    ) -> Result<PreparedRequest<Self::Decoder>, ModelError>;

    /// Changes `adaptation` after the server refused an attempt with `error`, so that the next
    /// attempt avoids the cause. Returns `false` if there is nothing to change; the caller then
    /// gets `error`. Each change is made only once, so that the attempts end. The default changes
    /// nothing.
    fn adapt_retry_to_error(
        _model: &HttpModel<Self>,
        _request: &ChatRequest,
        _adaptation: &mut Self::Adaptation,
        _error: &ModelError,
    ) -> bool {
        false
    }

    /// Converts an answer that is one JSON document into the events of an equivalent stream.
    fn decode_json(decoder: Self::Decoder, body: &str) -> Result<Vec<ModelEvent>, ModelError>;

    /// Reads the answer to the request `sent` as a stream of events.
    fn read_answer_stream(
        model: &HttpModel<Self>,
        _sent: SentRequest,
        decoder: Self::Decoder,
        answer: HttpAnswer,
    ) -> impl Future<Output = Result<ModelStream, ModelError>> + Send {
        open_stream::<Self>(model.provider(), decoder, answer)
    }
}

/// Framing of a streamed answer, which differs between the protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFormat {
    /// The answer is a stream of server-sent events.
    ServerSentEvents,
    /// The answer has one JSON document per line.
    JsonLines,
}

impl StreamFormat {
    /// Adds the accepted media types to a request. Servers send streams with the media types of
    /// documents and vice versa, so both kinds of media types are accepted.
    pub(super) fn accept_media_types(self, request: HttpRequest, streams: bool) -> HttpRequest {
        let accept = match (streams, self) {
            (false, _) => "application/json",
            (true, Self::ServerSentEvents) => "text/event-stream",
            (true, Self::JsonLines) => "application/x-ndjson",
        };
        request.with_header("accept", accept).expect_media_types(&[
            "text/event-stream",
            "application/x-ndjson",
            "application/ndjson",
            "application/jsonl",
            "application/json",
            "text/plain",
            "application/octet-stream",
        ])
    }

    /// Returns whether the body of an answer is one document, and not a stream of frames.
    fn is_single_document(self, answer: &HttpAnswer) -> bool {
        match self {
            Self::ServerSentEvents => answer.is_json_document(),
            // A document on one line is also a valid stream of JSON lines, so it is decoded as a
            // stream.
            Self::JsonLines => is_multiline_object(answer.first_body_bytes()),
        }
    }
}

/// Returns whether a body begins with a JSON object that is written over several lines.
fn is_multiline_object(beginning: &[u8]) -> bool {
    let mut visible = beginning.iter().skip_while(|it| it.is_ascii_whitespace());
    visible.next() == Some(&b'{')
        && visible
            .find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'))
            .is_some_and(|byte| *byte == b'\n')
}

/// A request that is ready to be sent, and the decoder of its answer.
#[derive(Debug)]
pub struct PreparedRequest<D> {
    /// HTTP request to send.
    pub request: SentRequest,
    /// State machine that reads the answer.
    pub decoder: D,
    /// Settings of the search for tool calls in the answer's text. `None` disables the search.
    pub recovery: Option<CallRecoverySettings>,
}

/// An HTTP request to a model, without the base address and headers of the configuration.
#[derive(Debug, Clone)]
pub struct SentRequest {
    /// Path of the request, relative to [`ProviderConfig::endpoint`].
    pub path: Cow<'static, str>,
    /// Headers of this request, in addition to the headers of the configuration.
    pub headers: Headers,
    /// Whether the body requests a streamed answer.
    pub streams: bool,
    /// Request body as JSON text.
    pub body: Bytes,
}

impl SentRequest {
    /// Creates a request and serializes its `body` as JSON.
    ///
    /// Fails with [`ModelErrorKind::InvalidRequest`] if `body` cannot be written as JSON.
    pub fn new(
        provider: &str,
        path: impl Into<Cow<'static, str>>,
        streams: bool,
        body: &impl Serialize,
    ) -> Result<Self, ModelError> {
        let body = serde_json::to_vec(body).map_err(|fault| {
            let kind = ModelErrorKind::InvalidRequest { field: None };
            ModelError::new(provider, kind, "the request cannot be serialized as JSON")
                .with_source(fault)
        })?;
        Ok(Self {
            path: path.into(),
            headers: Headers::new(),
            streams,
            body: Bytes::from(body),
        })
    }
}

/// A model on an HTTP server, with the wire protocol `W`.
#[derive(Debug)]
pub struct HttpModel<W: WireProtocol> {
    client: HttpClient<W::Config>,
    id: ModelId,
    capabilities: Arc<ModelCapabilities>,
    options: Arc<W::Options>,
}

impl<W: WireProtocol> HttpModel<W> {
    /// Creates the model `name` of the server that `config` describes. For several models of one
    /// server, create an [`HttpClient`] and call [`HttpClient::model`].
    ///
    /// Fails with [`ModelErrorKind::Configuration`] as [`HttpClient::new`] does.
    pub fn new(config: W::Config, name: impl Into<String>) -> Result<Self, ModelError> {
        Ok(HttpClient::new(config)?.model_with_protocol(name))
    }

    /// Creates the model `name` with the configuration from environment variables
    /// ([`ProviderConfig::from_env`]).
    pub fn from_env(name: impl Into<String>) -> Result<Self, ModelError> {
        Self::new(W::Config::from_env()?, name)
    }

    /// Replaces the model's capabilities, for example with those that the server reports.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: ModelCapabilities) -> Self {
        self.capabilities = Arc::new(capabilities);
        self
    }

    /// Replaces the options of this model, which default to those of the configuration.
    #[must_use]
    pub fn with_options(mut self, options: W::Options) -> Self {
        self.options = Arc::new(options);
        self
    }

    /// Returns the client that sends the requests.
    pub fn client(&self) -> &HttpClient<W::Config> {
        &self.client
    }

    /// Returns the configuration of the client.
    pub fn config(&self) -> &W::Config {
        self.client.config()
    }

    /// Returns the options of this model.
    pub fn options(&self) -> &W::Options {
        &self.options
    }

    /// Returns the cache of compiled tool schemas, which all models of a client share.
    pub fn tool_schemas(&self) -> &ToolSchemas {
        self.client.tool_schemas()
    }

    /// Returns the provider's name.
    pub fn provider(&self) -> &str {
        &self.id.provider
    }

    /// Sends another request as a part of an answer that has already begun, for example to continue
    /// the answer. Failed attempts are repeated as the retry policy allows.
    pub async fn send_follow_up(&self, request: &SentRequest) -> Result<HttpAnswer, ModelError> {
        self.client.send_chat_request::<W>(request, true).await
    }

    /// Adds advice to an error if the server may have refused a tool of
    /// [`WireProtocol::server_tool_names`].
    fn add_server_tool_advice(&self, error: ModelError) -> ModelError {
        let is_invalid_request = matches!(error.kind, ModelErrorKind::InvalidRequest { .. });
        // Providers name a tool in different ways, such as `web_search_preview` or "Search
        // Grounding". The message must therefore contain only the last word of the configured name.
        let text = error.message();
        let lowercase = text.to_lowercase();
        let is_mentioned = |name: &Cow<'_, str>| {
            let word = name.rsplit('_').next().unwrap_or_default();
            is_invalid_request && !word.is_empty() && lowercase.contains(word)
        };
        let mut names = W::server_tool_names(&self.options).into_iter();
        let Some(tool) = names.find(is_mentioned) else {
            return error;
        };
        let advice = format!(
            "{text}; if model `{}` does not support the provider's tool `{tool}`, remove the tool \
             from `server_tools` or use another model",
            self.id
        );
        error.with_message(advice)
    }

    pub(super) fn with_client(client: HttpClient<W::Config>, id: ModelId) -> Self {
        let config = client.config();
        let (options, capabilities) = (W::options(config), W::capabilities(config, &id.name));
        Self {
            client,
            id,
            capabilities: Arc::new(capabilities),
            options: Arc::new(options),
        }
    }
}

impl<W: WireProtocol> Clone for HttpModel<W> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            id: self.id.clone(),
            capabilities: self.capabilities.clone(),
            options: self.options.clone(),
        }
    }
}

#[async_trait]
impl<W: WireProtocol> ChatModel for HttpModel<W> {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        stream_with_retry(self, request).await
    }
}

#[async_trait]
impl<W: WireProtocol> SingleAttemptModel for HttpModel<W> {
    fn retry_policy(&self) -> &RetryPolicy {
        self.client.retry_policy()
    }

    async fn send_once(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let mut adaptation = W::Adaptation::default();
        loop {
            let prepared = W::prepare_request(self, request, &mut adaptation)?;
            let error = match self
                .client
                .send_chat_request::<W>(&prepared.request, false)
                .await
            {
                Ok(answer) => {
                    let (sent, decoder) = (prepared.request, prepared.decoder);
                    let stream = W::read_answer_stream(self, sent, decoder, answer).await?;
                    return Ok(match prepared.recovery {
                        Some(recovery) => recover_tool_calls(stream, recovery),
                        None => stream,
                    });
                }
                Err(error) => error,
            };
            if !W::adapt_retry_to_error(self, request, &mut adaptation, &error) {
                return Err(self.add_server_tool_advice(error));
            }
        }
    }
}

/// Converts a response into a stream of model events. The body may be a stream in the format
/// [`WireProtocol::FORMAT`] or one JSON document, whichever the server sent.
pub async fn open_stream<W: WireProtocol>(
    provider: &str,
    decoder: W::Decoder,
    answer: HttpAnswer,
) -> Result<ModelStream, ModelError> {
    let context = answer.error_context();
    if !W::FORMAT.is_single_document(&answer) {
        return Ok(match W::FORMAT {
            StreamFormat::ServerSentEvents => {
                decode_sse_with_context(context, provider, answer.body, decoder)
            }
            StreamFormat::JsonLines => {
                let events = decode_ndjson(provider, answer.body, decoder);
                Box::pin(events.map_err(move |error| context.add_context_to_error(error)))
            }
        });
    }
    let read = async {
        let body = read_to_end(provider, answer.body, MAX_FRAME_BYTES).await?;
        W::decode_json(decoder, decode_body_text(provider, &body)?)
    };
    match read.await {
        Ok(events) => Ok(Box::pin(stream::iter(events.into_iter().map(Ok)))),
        Err(error) => Err(context.add_context_to_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::is_multiline_object;

    #[test]
    fn a_document_over_several_lines_is_distinguished_from_one_per_line() {
        for (beginning, expected) in [
            ("{\"model\":\"m\"}\n{", false),
            ("{\n  \"model\": \"m\"", true),
            ("\n{\r\n", true),
            ("{", false),
            ("[\n", false),
            ("", false),
        ] {
            assert_eq!(
                is_multiline_object(beginning.as_bytes()),
                expected,
                "{beginning:?}"
            );
        }
    }
}
