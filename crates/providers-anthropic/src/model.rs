//! The [`ChatModel`]: the mapping joined with the transport.

use std::borrow::Cow;

use async_trait::async_trait;
use futures_util::stream;
use switchboard_domain::{
    ChatModel, ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelEvent, ModelId,
    ModelStream, ToolChoice,
};
use switchboard_providers_common::{
    ByteStream, HttpAnswer, MAX_FRAME_BYTES, RetryPolicy, SingleAttempt, as_text, decode_sse_of,
    read_to_end, stream_with_retry, tallied,
};

use crate::{
    AnthropicClient, AnthropicConfig, MessagesOptions, capabilities,
    error::{is_about_forced_choice, is_about_thinking},
    messages::{MessagesDecoder, WireRequest, events_from_body, to_wire},
};

/// A model behind the Messages API, of Anthropic or of a server that speaks its wire.
///
/// ```no_run
/// use switchboard_domain::{ChatModel, ChatRequest, Message};
/// use switchboard_providers_anthropic::AnthropicModel;
///
/// # async fn ask() -> Result<(), switchboard_domain::ModelError> {
/// let model = AnthropicModel::from_env("claude-haiku-5-5")?;
/// let answer = model.complete(&ChatRequest::new([Message::user("Hello?")])).await?;
/// assert!(!answer.message.text().is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct AnthropicModel {
    client: AnthropicClient,
    id: ModelId,
    capabilities: ModelCapabilities,
}

impl AnthropicModel {
    /// The model of that name on the server that `config` describes. For several models of one
    /// server, make an [`AnthropicClient`] and take them from it.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] as [`AnthropicClient::new`] does.
    pub fn new(config: AnthropicConfig, model: impl Into<String>) -> Result<Self, ModelError> {
        Ok(AnthropicClient::new(config)?.model(model))
    }

    /// The model of that name with the key and address of the environment; see
    /// [`AnthropicConfig::from_env`].
    pub fn from_env(model: impl Into<String>) -> Result<Self, ModelError> {
        Self::new(AnthropicConfig::from_env()?, model)
    }

    /// The same with other capabilities, for what the caller knows better of a server's model.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: ModelCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    pub(crate) fn on(client: AnthropicClient, id: ModelId) -> Self {
        let capabilities = capabilities(&id.name);
        Self {
            client,
            id,
            capabilities,
        }
    }

    /// Sends a request, and gives back the answer with its decoder.
    ///
    /// What the API refuses although nothing was known against it is left out, with a warning, and
    /// the rest is sent again: the model's earlier thinking, when what came before it was trimmed or
    /// changed, and a forced tool choice. Each once.
    async fn ask(
        &self,
        request: &ChatRequest,
    ) -> Result<(HttpAnswer, MessagesDecoder), ModelError> {
        let mut options = Cow::Borrowed(&self.client.config().options);
        let mut capabilities = Cow::Borrowed(&self.capabilities);
        let is_forced = matches!(
            request.tool_choice,
            ToolChoice::Required | ToolChoice::Only(_)
        );
        loop {
            let (body, betas, decoder) = self.prepare(request, &capabilities, &options)?;
            let error = match self.client.ask(body, request.delivery, &betas).await {
                Ok(answer) => return Ok((answer, decoder)),
                Err(error) => error,
            };
            let may_relax = is_forced && capabilities.forced_tool_choice != Some(false);
            if options.replay_reasoning && is_about_thinking(&error) {
                options.to_mut().replay_reasoning = false;
            } else if may_relax && is_about_forced_choice(&error) {
                capabilities.to_mut().forced_tool_choice = Some(false);
            } else {
                return Err(error);
            }
        }
    }

    /// The body of a request, the betas that it needs, and the decoder of its answer.
    fn prepare(
        &self,
        request: &ChatRequest,
        capabilities: &ModelCapabilities,
        options: &MessagesOptions,
    ) -> Result<(Vec<u8>, Vec<String>, MessagesDecoder), ModelError> {
        let WireRequest {
            body,
            betas,
            reshaped,
            tool_choice,
            warnings,
            local_ids,
        } = to_wire(request, &self.id, capabilities, options)?;
        let body = serde_json::to_vec(&body).map_err(|fault| {
            let kind = ModelErrorKind::InvalidRequest { field: None };
            self.error(kind, "the request cannot be written as JSON")
                .with_source(fault)
        })?;
        let warnings = tallied(warnings);
        let decoder = MessagesDecoder::new(self.id.clone(), tool_choice, warnings, local_ids)
            .reshaping(reshaped);
        Ok((body, betas, decoder))
    }

    /// Reads an answer that came whole.
    async fn whole(
        &self,
        body: ByteStream,
        decoder: MessagesDecoder,
    ) -> Result<Vec<ModelEvent>, ModelError> {
        let body = read_to_end(&self.id.provider, body, MAX_FRAME_BYTES).await?;
        events_from_body(decoder, as_text(&self.id.provider, &body)?)
    }

    fn error(&self, kind: ModelErrorKind, message: &str) -> ModelError {
        ModelError::new(&*self.id.provider, kind, message)
    }
}

#[async_trait]
impl ChatModel for AnthropicModel {
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
impl SingleAttempt for AnthropicModel {
    fn retry_policy(&self) -> &RetryPolicy {
        &self.client.config().transport.retry
    }

    async fn attempt(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let (answer, decoder) = self.ask(request).await?;
        let context = answer.context();
        if !answer.is_whole() {
            let provider = &self.id.provider;
            return Ok(decode_sse_of(context, provider, answer.body, decoder));
        }
        match self.whole(answer.body, decoder).await {
            Ok(events) => Ok(Box::pin(stream::iter(events.into_iter().map(Ok)))),
            Err(error) => Err(context.apply(error)),
        }
    }
}
