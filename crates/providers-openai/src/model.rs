//! The [`ChatModel`]: the mapping joined with the transport.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use switchboard_domain::{
    ChatModel, ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelId, ModelStream,
};
use switchboard_providers_common::{
    ByteStream, HttpAnswer, MAX_FRAME_BYTES, decode_sse, read_to_end,
};

use crate::{
    OpenAiClient, OpenAiConfig, capabilities,
    chat::{ChatDecoder, WireRequest, events_from_body, to_wire},
};

/// A model behind Chat Completions, of OpenAI or of a server that speaks its wire.
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
}

impl OpenAiChatModel {
    /// The model of that name on the server that `config` describes. For several models of one
    /// server, make an [`OpenAiClient`] and take them from it.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] as [`OpenAiClient::new`] does.
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

    pub(crate) fn on(client: OpenAiClient, id: ModelId) -> Self {
        let capabilities = capabilities(&id.name, &client.config().profile);
        Self {
            client,
            id,
            capabilities,
        }
    }

    /// The body of a request and the decoder of its answer.
    fn prepare(&self, request: &ChatRequest) -> Result<(Vec<u8>, ChatDecoder), ModelError> {
        let profile = &self.client.config().profile;
        let WireRequest {
            body,
            tool_choice,
            warnings,
            local_ids,
        } = to_wire(request, &self.id, &self.capabilities, profile)?;
        let body = serde_json::to_vec(&body).map_err(|fault| {
            let kind = ModelErrorKind::InvalidRequest { field: None };
            self.error(kind, "the request cannot be written as JSON")
                .with_source(fault)
        })?;
        let decoder = ChatDecoder::new(self.id.clone(), tool_choice, warnings, local_ids);
        Ok((body, decoder))
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
        let is_json = answer.media_type().is_some_and(|it| it.ends_with("json"));
        let mut body = answer.body;
        // Here at once: an answer is handed over with its first bytes.
        let first = body.try_next().await?;
        let is_whole = first.as_ref().and_then(is_whole).unwrap_or(is_json);
        let body: ByteStream = Box::pin(stream::iter(first.map(Ok)).chain(body));
        if is_whole {
            self.whole(body, decoder).await
        } else {
            Ok(decode_sse(&self.id.provider, body, decoder))
        }
    }

    fn error(&self, kind: ModelErrorKind, message: &str) -> ModelError {
        ModelError::new(&self.id.provider, kind, message)
    }
}

#[async_trait]
impl ChatModel for OpenAiChatModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let (body, decoder) = self.prepare(request)?;
        let answer = self.client.complete(body).await?;
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

/// Whether a body that begins so is a whole answer, not a stream; `None` if its beginning says
/// nothing (some servers send blank lines while the model works).
fn is_whole(first: &Bytes) -> Option<bool> {
    let visible = first.iter().find(|byte| !byte.is_ascii_whitespace())?;
    Some(matches!(visible, b'{' | b'['))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_visible_byte_tells_a_stream_from_a_whole_answer() {
        for (first, expected) in [
            ("data: {}", Some(false)),
            (": waiting\n\n", Some(false)),
            ("\n{\"id\":", Some(true)),
            ("[{\"error\":", Some(true)),
            ("\r\n\n", None),
            ("", None),
        ] {
            assert_eq!(
                is_whole(&Bytes::from_static(first.as_bytes())),
                expected,
                "{first:?}"
            );
        }
    }
}
