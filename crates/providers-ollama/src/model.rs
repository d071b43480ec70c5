//! The [`ChatModel`]: the mapping joined with the transport.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream;
use switchboard_domain::{
    ChatModel, ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelEvent, ModelId,
    ModelStream,
};
use switchboard_providers_common::{
    ByteStream, HttpAnswer, MAX_FRAME_BYTES, RetryPolicy, SingleAttempt, as_text, decode_ndjson_of,
    read_to_end, stream_with_retry, tallied,
    text_tool_calls::prompted::concerns_tools,
    text_tool_calls::{Recovery, recover},
};

use crate::{
    OllamaClient, OllamaConfig, ShownModel, ToolsByPrompt, capabilities,
    chat::{ChatDecoder, LocalIds, ThinkForm, WireRequest, events_from_body, to_wire},
    error::{THINKING, THINKING_LEVELS, TOOLS},
    offer::Offer,
};

/// A model that an Ollama server runs.
///
/// The reasoning setting is sent in the best form that the model supports. If the server answers
/// that the model does not think, or has no levels, the request is repeated without it, and a
/// [`Warning`](switchboard_domain::Warning) reports this.
///
/// A tool call that the model wrote as text, in one of the forms of [`OllamaConfig::text_calls`],
/// is a tool use. A model without tools gets them in the prompt if
/// [`OllamaConfig::tools_by_prompt`] allows it. Otherwise such a request fails with
/// [`ModelErrorKind::Unsupported`].
///
/// ```no_run
/// use switchboard_domain::{ChatModel, ChatRequest, Message};
/// use switchboard_providers_ollama::OllamaModel;
///
/// # async fn ask() -> Result<(), switchboard_domain::ModelError> {
/// let model = OllamaModel::from_env("qwen3:8b")?;
/// let answer = model.complete(&ChatRequest::new([Message::user("Hello?")])).await?;
/// println!("{}", answer.message.text());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct OllamaModel {
    client: OllamaClient,
    id: ModelId,
    capabilities: ModelCapabilities,
    /// The model's own stop texts, if the server reported them.
    own_stop: Option<Vec<String>>,
}

/// A request in progress: the sent form and the decoding of its answer.
struct Attempt {
    body: Vec<u8>,
    /// Whether the body speaks of thinking.
    thinks: bool,
    decoder: ChatDecoder,
    /// Parser of tool calls in the answer's text. `None` if the text is not searched.
    recovery: Option<Recovery>,
}

impl OllamaModel {
    /// The model of that name on the server that `config` describes. For several models of one
    /// server, make an [`OllamaClient`] and take them from it.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] as [`OllamaClient::new`] does.
    pub fn new(config: OllamaConfig, model: impl Into<String>) -> Result<Self, ModelError> {
        Ok(OllamaClient::new(config)?.model(model))
    }

    /// The model of that name on the server of the environment; see [`OllamaConfig::from_env`].
    pub fn from_env(model: impl Into<String>) -> Result<Self, ModelError> {
        Self::new(OllamaConfig::from_env()?, model)
    }

    /// Replaces the capabilities, for a caller with better information than the server.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: ModelCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Applies the server's description of the model.
    #[must_use]
    pub fn as_shown(mut self, shown: &ShownModel) -> Self {
        self.capabilities = shown.capabilities();
        self.own_stop.clone_from(&shown.stop);
        self
    }

    pub(crate) fn on(client: OllamaClient, id: ModelId) -> Self {
        let capabilities = capabilities(&id.name, client.config().is_cloud());
        Self {
            client,
            id,
            capabilities,
            own_stop: None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.id.name
    }

    /// Returns whether the tools, or the calls of the history, are sent in the prompt.
    fn tells_in_words(&self, request: &ChatRequest) -> bool {
        let in_words = match self.client.config().tools_by_prompt {
            ToolsByPrompt::Never => false,
            ToolsByPrompt::Auto => self.capabilities.tools == Some(false),
            ToolsByPrompt::Always => true,
        };
        in_words && concerns_tools(request)
    }

    fn prepare(
        &self,
        request: &ChatRequest,
        in_words: bool,
        think: ThinkForm,
    ) -> Result<Attempt, ModelError> {
        let offer = if in_words {
            let own_stop = self.own_stop.as_deref();
            Offer::in_words(request, &self.id.provider, &self.capabilities, own_stop)?
        } else {
            Offer::native(request, self.client.config().text_calls)
        };
        let WireRequest {
            body,
            tool_choice,
            warnings,
            form,
            ..
        } = to_wire(&offer.request, &self.id, &self.capabilities, think)?;
        let thinks = body.think.is_some();
        let body = serde_json::to_vec(&body).map_err(|fault| {
            let kind = ModelErrorKind::InvalidRequest { field: None };
            self.error(kind, "the request cannot be written as JSON")
                .with_source(fault)
        })?;
        // From the original request: the prompt form has no ids.
        let ids = LocalIds::after(request);
        // The answer in a form may be any JSON, also such as looks like a call.
        let searched = form.as_ref().is_none_or(|form| !form.may_answer);
        let decoder = ChatDecoder::new(self.id.clone(), tool_choice, tallied(warnings), ids);
        Ok(Attempt {
            body,
            thinks,
            decoder: decoder.with_form(form),
            recovery: searched.then_some(offer.recovery),
        })
    }

    /// Sends the request. Repeats it in a simpler form if the server refuses only the form of the
    /// reasoning setting or of the tools.
    async fn ask(
        &self,
        request: &ChatRequest,
    ) -> Result<(HttpAnswer, ChatDecoder, Option<Recovery>), ModelError> {
        let mut think = ThinkForm::default();
        let mut in_words = self.tells_in_words(request);
        let tries_words = self.client.config().tools_by_prompt == ToolsByPrompt::Auto;
        loop {
            let Attempt {
                body,
                thinks,
                decoder,
                recovery,
            } = self.prepare(request, in_words, think)?;
            match self.client.chat(request.delivery, body).await {
                Ok(answer) => return Ok((answer, decoder, recovery)),
                Err(error) => match poorer(think, &error).filter(|_| thinks) {
                    Some(next) => think = next,
                    None if lacks_tools(&error) && tries_words && !in_words => in_words = true,
                    None => return Err(error),
                },
            }
        }
    }

    /// Reads an answer that came whole.
    async fn whole(
        &self,
        body: ByteStream,
        decoder: ChatDecoder,
    ) -> Result<Vec<ModelEvent>, ModelError> {
        let body = read_to_end(&self.id.provider, body, MAX_FRAME_BYTES).await?;
        events_from_body(decoder, as_text(&self.id.provider, &body)?)
    }

    fn error(&self, kind: ModelErrorKind, message: &str) -> ModelError {
        ModelError::new(&*self.id.provider, kind, message)
    }
}

#[async_trait]
impl ChatModel for OllamaModel {
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
impl SingleAttempt for OllamaModel {
    fn retry_policy(&self) -> &RetryPolicy {
        &self.client.config().transport.retry
    }

    async fn attempt(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let (answer, decoder, recovery) = self.ask(request).await?;
        let context = answer.context();
        let stream: ModelStream = if is_spread(answer.beginning()) {
            let events = self.whole(answer.body, decoder).await;
            let events = events.map_err(|error| context.apply(error))?;
            Box::pin(stream::iter(events.into_iter().map(Ok)))
        } else {
            // A whole answer is a stream of one line.
            decode_ndjson_of(context, &self.id.provider, answer.body, decoder)
        };
        Ok(match recovery {
            Some(recovery) => recover(stream, recovery),
            None => stream,
        })
    }
}

/// Whether the server refused because the model has no tools.
fn lacks_tools(error: &ModelError) -> bool {
    matches!(&error.kind, ModelErrorKind::Unsupported { feature } if feature == TOOLS)
}

/// Returns a simpler form of the reasoning setting if the server refused the current one.
fn poorer(think: ThinkForm, error: &ModelError) -> Option<ThinkForm> {
    let ModelErrorKind::Unsupported { feature } = &error.kind else {
        return None;
    };
    match (think, feature.as_str()) {
        (ThinkForm::Levels, THINKING_LEVELS) => Some(ThinkForm::Switch),
        (ThinkForm::Levels | ThinkForm::Switch, THINKING) => Some(ThinkForm::Never),
        _ => None,
    }
}

/// Whether a body that begins so is one answer spread over several lines, as some proxies and fakes
/// write it, and not a line each.
fn is_spread(first: &Bytes) -> bool {
    let mut visible = first.iter().skip_while(|byte| byte.is_ascii_whitespace());
    visible.next() == Some(&b'{')
        && visible
            .find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'))
            .is_some_and(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pretty_printed_answer_is_distinguished_from_json_lines() {
        for (first, expected) in [
            ("{\"model\":\"m\"}\n{", false),
            ("{\n  \"model\": \"m\"", true),
            ("\n{\r\n", true),
            ("{", false),
            ("[\n", false),
            ("", false),
        ] {
            let first = Bytes::from_static(first.as_bytes());
            assert_eq!(is_spread(&first), expected, "{first:?}");
        }
    }
}
