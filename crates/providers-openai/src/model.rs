//! The [`ChatModel`]s: a mapping joined with the transport.

use std::pin::Pin;

use async_trait::async_trait;
use switchboard_domain::{
    ChatModel, ChatRequest, ModelCapabilities, ModelError, ModelId, ModelStream, Part, Warning,
};
use switchboard_providers_common::{
    RetryPolicy, SingleAttempt, stream_with_retry, tallied,
    text_tool_calls::prompted::PromptedTools,
    text_tool_calls::{Recovery, recover},
    tool_names::ToolNames,
};

use crate::{
    OpenAiClient, OpenAiConfig,
    answer::{ask, written},
    capabilities,
    chat::{self, ChatDecoder, ChatOptions},
    responses::{
        self, ResponsesDecoder, ResponsesOptions,
        again::{refuses_reasoning, without_reasoning},
    },
    tools::{NAME_RULE, forced},
};

/// Room for a request of the Responses API, in bytes; it grows.
const ROOM: usize = 1024;

/// A model behind Chat Completions, of OpenAI or of a server that speaks its wire.
///
/// Where the [`Profile`](crate::Profile) names forms of it, a tool call that the model wrote as text
/// becomes a tool use. A model that is known to have no tools is offered them in its instructions, and
/// so is every model of a profile that says `tools_by_prompt`.
///
/// ```no_run
/// use switchboard_domain::{ChatModel, ChatRequest, Message};
/// use switchboard_providers_openai::OpenAiChatModel;
///
/// # async fn ask() -> Result<(), switchboard_domain::ModelError> {
/// let model = OpenAiChatModel::from_env("gpt-6-luna")?;
/// let answer = model.complete(&ChatRequest::new([Message::user("Hello?")])).await?;
/// println!("{}", answer.message.text());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct OpenAiChatModel {
    client: OpenAiClient,
    id: ModelId,
    capabilities: ModelCapabilities,
    options: ChatOptions,
}

impl OpenAiChatModel {
    /// The model of that name on the server that `config` describes. For several models of one
    /// server, make an [`OpenAiClient`] and take them from it.
    ///
    /// Fails with [`ModelErrorKind::Configuration`](switchboard_domain::ModelErrorKind::Configuration)
    /// as [`OpenAiClient::new`] does.
    pub fn new(config: OpenAiConfig, model: impl Into<String>) -> Result<Self, ModelError> {
        Ok(OpenAiClient::new(config)?.model(model))
    }

    /// The model of that name with the key and address of the environment; see
    /// [`OpenAiConfig::from_env`].
    pub fn from_env(model: impl Into<String>) -> Result<Self, ModelError> {
        Self::new(OpenAiConfig::from_env()?, model)
    }

    /// The same with other capabilities, for what the caller knows better of a server's model.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: ModelCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The same with other options than those of the client's configuration.
    #[must_use]
    pub fn with_options(mut self, options: ChatOptions) -> Self {
        self.options = options;
        self
    }

    pub(crate) fn on(client: OpenAiClient, id: ModelId) -> Self {
        let capabilities = capabilities(&id.name, &client.config().profile);
        let options = client.config().chat;
        Self {
            client,
            id,
            capabilities,
            options,
        }
    }

    /// Whether the tools, or the calls of the history, are to be said in text.
    fn prompts(&self, request: &ChatRequest) -> bool {
        let profile = &self.client.config().profile;
        let in_text = profile.tools_by_prompt || self.capabilities.tools == Some(false);
        let is_of_tools = |part: &Part| matches!(part, Part::ToolUse(_) | Part::ToolResult(_));
        let mut parts = request.messages.iter().flat_map(|it| &it.parts);
        in_text && (!request.tools.is_empty() || parts.any(is_of_tools))
    }

    /// What is sent, whether it asks for a stream, and who reads the answer. By itself, so that nothing of the
    /// way there is kept while the answer is waited for.
    fn prepared(
        &self,
        request: &ChatRequest,
    ) -> Result<(Vec<u8>, bool, Box<ChatDecoder>), ModelError> {
        let profile = self.options.over(&self.client.config().profile);
        let wire = chat::to_wire(request, &self.id, &self.capabilities, &profile)?;
        let body = written(&self.id.provider, &wire.body, wire.body.room())?;
        let decoder = ChatDecoder::new(
            self.id.clone(),
            wire.tool_choice,
            tallied(wire.warnings),
            wire.local_ids,
        )
        .reshaping(wire.reshaped);
        Ok((body, wire.body.stream, Box::new(decoder)))
    }

    async fn ask(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let (body, streams, decoder) = self.prepared(request)?;
        ask(&self.client, "chat/completions", streams, body, decoder).await
    }

    async fn answer(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let profile = &self.client.config().profile;
        if self.prompts(request) {
            // Boxed what is rare: all who wait for an answer would have room for it.
            return Box::pin(self.ask_in_text(request)).await;
        }
        let stream = self.ask(request).await?;
        if profile.recovery.is_empty() {
            return Ok(stream);
        }
        let names = ToolNames::of(request, NAME_RULE);
        let recovery = Recovery::of(request, profile.recovery).with_wire_names(&names);
        Ok(recover(stream, recovery))
    }

    /// Asks a model whose tools, or the calls of the history, are said in text.
    async fn ask_in_text(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let profile = &self.client.config().profile;
        forced(request, &self.id.provider)?;
        // The schema of a call has its alternatives at the root.
        let constrained =
            self.capabilities.structured_output == Some(true) && profile.root_combinators;
        let prepared = PromptedTools { constrained }.prepare(request);
        let stream = self.ask(&prepared.request).await?;
        Ok(recover(stream, prepared.recovery))
    }
}

impl ChatModel for OpenAiChatModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    // As `async_trait` would write it, but with the box made before the future, which the compiler then makes in its
    // place. Else it moves all of it there, some kilobytes, of which nearly nothing is in use yet.
    fn stream<'model, 'request, 'answer>(
        &'model self,
        request: &'request ChatRequest,
    ) -> Pin<Box<dyn Future<Output = Result<ModelStream, ModelError>> + Send + 'answer>>
    where
        'model: 'answer,
        'request: 'answer,
        Self: 'answer,
    {
        let room = Box::new_uninit();
        let answer = Box::write(room, stream_with_retry(self, request));
        Box::into_pin(answer)
    }
}

impl SingleAttempt for OpenAiChatModel {
    fn retry_policy(&self) -> &RetryPolicy {
        &self.client.config().transport.retry
    }

    // Written out for the same reason.
    fn attempt<'model, 'request, 'answer>(
        &'model self,
        request: &'request ChatRequest,
    ) -> Pin<Box<dyn Future<Output = Result<ModelStream, ModelError>> + Send + 'answer>>
    where
        'model: 'answer,
        'request: 'answer,
        Self: 'answer,
    {
        let room = Box::new_uninit();
        let answer = Box::write(room, self.answer(request));
        Box::into_pin(answer)
    }
}

/// A model behind the Responses API, which keeps the reasoning of OpenAI's models from one step to
/// the next.
///
/// ```no_run
/// use switchboard_domain::{ChatModel, ChatRequest, Message};
/// use switchboard_providers_openai::{
///     OpenAiResponsesModel,
///     responses::{ReasoningSummary, ResponsesOptions},
/// };
///
/// # async fn ask() -> Result<(), switchboard_domain::ModelError> {
/// let options = ResponsesOptions {
///     reasoning_summary: Some(ReasoningSummary::Auto),
///     ..ResponsesOptions::default()
/// };
/// let model = OpenAiResponsesModel::from_env("gpt-6-luna")?.with_options(options);
/// let answer = model.complete(&ChatRequest::new([Message::user("Hello?")])).await?;
/// println!("{}", answer.message.text());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct OpenAiResponsesModel {
    client: OpenAiClient,
    id: ModelId,
    capabilities: ModelCapabilities,
    options: ResponsesOptions,
}

impl OpenAiResponsesModel {
    /// The model of that name on the server that `config` describes. For several models of one
    /// server, make an [`OpenAiClient`] and take them from it.
    ///
    /// Fails with [`ModelErrorKind::Configuration`](switchboard_domain::ModelErrorKind::Configuration)
    /// as [`OpenAiClient::new`] does.
    pub fn new(config: OpenAiConfig, model: impl Into<String>) -> Result<Self, ModelError> {
        Ok(OpenAiClient::new(config)?.responses_model(model))
    }

    /// The model of that name with the key and address of the environment; see
    /// [`OpenAiConfig::from_env`].
    pub fn from_env(model: impl Into<String>) -> Result<Self, ModelError> {
        Self::new(OpenAiConfig::from_env()?, model)
    }

    /// The same with other capabilities, for what the caller knows better of a server's model.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: ModelCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The same with other options than those of the client's configuration.
    #[must_use]
    pub fn with_options(mut self, options: ResponsesOptions) -> Self {
        self.options = options;
        self
    }

    pub(crate) fn on(client: OpenAiClient, id: ModelId) -> Self {
        let capabilities = capabilities(&id.name, &client.config().profile);
        let options = client.config().responses.clone();
        Self {
            client,
            id,
            capabilities,
            options,
        }
    }

    async fn ask(
        &self,
        request: &ChatRequest,
        warning: Option<Warning>,
    ) -> Result<ModelStream, ModelError> {
        let profile = &self.client.config().profile;
        let (capabilities, options) = (&self.capabilities, &self.options);
        let mut wire = responses::to_wire(request, &self.id, capabilities, profile, options)?;
        wire.warnings.extend(warning);
        let streams = wire.body.stream;
        let body = written(&self.id.provider, &wire.body, ROOM)?;
        let decoder = ResponsesDecoder::new(
            self.id.clone(),
            wire.tool_choice,
            tallied(wire.warnings),
            wire.local_ids,
        )
        .with_silent_limit(wire.silent_limit)
        .reshaping(wire.reshaped);
        ask(&self.client, "responses", streams, body, Box::new(decoder)).await
    }
}

#[async_trait]
impl ChatModel for OpenAiResponsesModel {
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
impl SingleAttempt for OpenAiResponsesModel {
    fn retry_policy(&self) -> &RetryPolicy {
        &self.client.config().transport.retry
    }

    async fn attempt(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let error = match self.ask(request, None).await {
            Err(error) if refuses_reasoning(&error) => error,
            outcome => return outcome,
        };
        match without_reasoning(request) {
            Some((request, warning)) => self.ask(&request, Some(warning)).await,
            None => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_domain::Message;

    use super::*;

    #[test]
    fn an_answer_that_is_waited_for_takes_little_room() {
        let model = OpenAiChatModel::new(OpenAiConfig::new("sk-test"), "m").unwrap();
        let request = ChatRequest::new([Message::user("Hello?")]);
        // reqwest has the most of it. What the request was made of is not kept, and what is rare is in a box.
        let size = size_of_val(&model.answer(&request));
        assert!(size < 2500, "{size} bytes");
    }
}
