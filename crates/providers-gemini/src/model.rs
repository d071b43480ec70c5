//! The [`ChatModel`]: the mapping joined with the transport.

use std::borrow::Cow;

use async_trait::async_trait;
use bytes::Bytes;
use switchboard_domain::{
    ChatModel, ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelId, ModelStream,
};
use switchboard_providers_common::{
    RetryPolicy, SingleAttempt, decode_sse_of, stream_with_retry, tallied,
};

use crate::{
    GeminiClient, GeminiConfig, GeminiOptions, capabilities,
    client::Opened,
    continuation::{Continuation, Source, continued},
    generate::{GenerateDecoder, WireRequest, to_wire},
};

/// A model behind the Gemini API.
///
/// ```no_run
/// use switchboard_domain::{ChatModel, ChatRequest, Message};
/// use switchboard_providers_gemini::GeminiModel;
///
/// # async fn ask() -> Result<(), switchboard_domain::ModelError> {
/// let model = GeminiModel::from_env("gemini-3.8-flash")?;
/// let answer = model.complete(&ChatRequest::new([Message::user("Hello?")])).await?;
/// println!("{}", answer.message.text());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct GeminiModel {
    client: GeminiClient,
    id: ModelId,
    capabilities: ModelCapabilities,
}

impl GeminiModel {
    /// The model of that name on the server that `config` describes. For several models of one
    /// server, make a [`GeminiClient`] and take them from it.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] as [`GeminiClient::new`] does.
    pub fn new(config: GeminiConfig, model: impl Into<String>) -> Result<Self, ModelError> {
        Ok(GeminiClient::new(config)?.model(model))
    }

    /// The model of that name with the key and address of the environment; see
    /// [`GeminiConfig::from_env`].
    pub fn from_env(model: impl Into<String>) -> Result<Self, ModelError> {
        Self::new(GeminiConfig::from_env()?, model)
    }

    /// The same with other capabilities, for what the caller knows better of a server's model.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: ModelCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    pub(crate) fn on(client: GeminiClient, id: ModelId) -> Self {
        let capabilities = capabilities(&id.name);
        Self {
            client,
            id,
            capabilities,
        }
    }

    /// Sends a request, and gives back the answer with the body and the decoder.
    ///
    /// A signature that the API does not take, though this model is said to have minted it (another
    /// key or route of a proxy did), is left out with a warning and the rest sent again, once.
    async fn ask(
        &self,
        request: &ChatRequest,
    ) -> Result<(Opened, Bytes, GenerateDecoder), ModelError> {
        let mut options = Cow::Borrowed(&self.client.config().options);
        loop {
            let (body, decoder) = self.prepare(request, &options)?;
            let delivery = request.delivery;
            let opened = self
                .client
                .generate(&self.id.name, delivery, body.clone(), true)
                .await;
            match opened {
                Ok(opened) => return Ok((opened, body, decoder)),
                Err(error) if options.replay_thoughts && is_about_signatures(&error) => {
                    options.to_mut().replay_thoughts = false;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The body of a request and the decoder of its answer.
    fn prepare(
        &self,
        request: &ChatRequest,
        options: &GeminiOptions,
    ) -> Result<(Bytes, GenerateDecoder), ModelError> {
        let WireRequest {
            body,
            tool_choice,
            warnings,
            local_ids,
            declared,
        } = to_wire(request, &self.id, &self.capabilities, options)?;
        let body = serde_json::to_vec(&body).map_err(|fault| {
            let kind = ModelErrorKind::InvalidRequest { field: None };
            let message = "the request cannot be written as JSON";
            ModelError::new(&*self.id.provider, kind, message).with_source(fault)
        })?;
        let warnings = tallied(warnings);
        let decoder = GenerateDecoder::new(self.id.clone(), tool_choice, warnings, local_ids)
            .with_declared(declared);
        Ok((Bytes::from(body), decoder))
    }
}

/// "Function call is missing a `thought_signature`…", "Corrupted thought signature."
fn is_about_signatures(error: &ModelError) -> bool {
    let message = error.message().to_ascii_lowercase();
    matches!(error.kind, ModelErrorKind::InvalidRequest { .. })
        && (message.contains("thought_signature") || message.contains("thought signature"))
}

#[async_trait]
impl ChatModel for GeminiModel {
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
impl SingleAttempt for GeminiModel {
    fn retry_policy(&self) -> &RetryPolicy {
        &self.client.config().transport.retry
    }

    async fn attempt(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let (opened, body, decoder) = self.ask(request).await?;
        let continuation = Continuation::default();
        let decoder = decoder.with_continuation(continuation.clone());
        let decoder = if opened.is_whole {
            decoder.for_whole_answer()
        } else {
            decoder
        };
        let source = Source {
            client: self.client.clone(),
            model: self.id.name.clone(),
            delivery: request.delivery,
            body,
            continuation,
        };
        let events = continued(source, opened.events);
        let provider = &self.id.provider;
        Ok(decode_sse_of(opened.context, provider, events, decoder))
    }
}
