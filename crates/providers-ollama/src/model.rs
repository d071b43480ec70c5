//! The [`ChatModel`]: the mapping joined with the transport.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use switchboard_domain::{
    ChatModel, ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelId, ModelStream,
};
use switchboard_providers_common::{
    ByteStream, HttpAnswer, MAX_FRAME_BYTES, decode_ndjson, read_to_end,
};

use crate::{
    OllamaClient, OllamaConfig, capabilities,
    chat::{ChatDecoder, ThinkForm, WireRequest, events_from_body, to_wire},
    error::{THINKING, THINKING_LEVELS},
};

/// A model that an Ollama server runs.
///
/// A wish for reasoning is said as well as the model takes it: if the server answers that the model
/// does not think, or takes no level, the request is sent once more without, and a
/// [`Warning`](switchboard_domain::Warning) says so.
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

    /// The same with other capabilities: those that the server says
    /// ([`ShownModel::capabilities`](crate::ShownModel::capabilities)), or what the caller knows
    /// better.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: ModelCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    pub(crate) fn on(client: OllamaClient, id: ModelId) -> Self {
        let capabilities = capabilities(&id.name, client.config().is_cloud());
        Self {
            client,
            id,
            capabilities,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.id.name
    }

    /// The body of a request, whether it speaks of thinking, and the decoder of its answer.
    fn prepare(
        &self,
        request: &ChatRequest,
        think: ThinkForm,
    ) -> Result<(Vec<u8>, bool, ChatDecoder), ModelError> {
        let WireRequest {
            body,
            tool_choice,
            warnings,
            local_ids,
            form,
        } = to_wire(request, &self.id, &self.capabilities, think)?;
        let thinks = body.think.is_some();
        let body = serde_json::to_vec(&body).map_err(|fault| {
            let kind = ModelErrorKind::InvalidRequest { field: None };
            self.error(kind, "the request cannot be written as JSON")
                .with_source(fault)
        })?;
        let decoder = ChatDecoder::new(self.id.clone(), tool_choice, warnings, local_ids);
        Ok((body, thinks, decoder.with_form(form)))
    }

    /// Asks, and asks again where only the way in which reasoning was wished for is refused.
    async fn ask(&self, request: &ChatRequest) -> Result<(HttpAnswer, ChatDecoder), ModelError> {
        let mut think = ThinkForm::default();
        loop {
            let (body, thinks, decoder) = self.prepare(request, think)?;
            match self.client.chat(body).await {
                Ok(answer) => return Ok((answer, decoder)),
                Err(error) => match poorer(think, &error).filter(|_| thinks) {
                    Some(next) => think = next,
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
    ) -> Result<ModelStream, ModelError> {
        let body = read_to_end(&self.id.provider, body, MAX_FRAME_BYTES).await?;
        let body = std::str::from_utf8(&body).map_err(|fault| {
            self.error(ModelErrorKind::Protocol, "the answer is no text")
                .with_source(fault)
        })?;
        let events = events_from_body(decoder, body)?;
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }

    async fn read(
        &self,
        answer: HttpAnswer,
        decoder: ChatDecoder,
    ) -> Result<ModelStream, ModelError> {
        let mut body = answer.body;
        // Here at once: an answer is handed over with its first bytes.
        let first = body.try_next().await?;
        let is_spread = first.as_ref().is_some_and(is_spread);
        let body: ByteStream = Box::pin(stream::iter(first.map(Ok)).chain(body));
        if is_spread {
            self.whole(body, decoder).await
        } else {
            Ok(decode_ndjson(&self.id.provider, body, decoder))
        }
    }

    fn error(&self, kind: ModelErrorKind, message: &str) -> ModelError {
        ModelError::new(&self.id.provider, kind, message)
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
        let (answer, decoder) = self.ask(request).await?;
        let (status, request_id) = (answer.status, answer.request_id.clone());
        // An error within the answer does not know which request it is about.
        let about = move |error: ModelError| match error.status() {
            Some(_) => error,
            None => error
                .with_status(status)
                .with_request_id(request_id.clone()),
        };
        match self.read(answer, decoder).await {
            Ok(stream) => Ok(Box::pin(stream.map_err(about))),
            Err(error) => Err(about(error)),
        }
    }
}

/// A poorer form of a wish for reasoning, if its form is what the server refused.
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
    fn an_answer_over_several_lines_is_told_from_one_a_line() {
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
