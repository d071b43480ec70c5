//! One server and its models.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use serde_json::Value;
use switchboard_domain::{Delivery, ModelError, ModelErrorKind, ModelId};
use switchboard_providers_common::{
    AnswerContext, ByteStream, Endpoints, Headers, HttpAnswer, HttpRequest, HttpTransport,
    MAX_FRAME_BYTES, read_to_end,
};

use crate::{
    GeminiConfig, GeminiModel, ServedModel,
    error::GeminiErrors,
    percent,
    served::{Page, page},
};

/// Pages of the list of models that are read at most.
const MAX_PAGES: usize = 20;

/// A server that speaks the wire: the models on it share one pool of connections. Cloning it is
/// cheap.
#[derive(Debug, Clone)]
pub struct GeminiClient {
    server: Arc<Server>,
}

#[derive(Debug)]
struct Server {
    config: GeminiConfig,
    transport: HttpTransport,
    /// Who asks.
    headers: Headers,
    /// Where answers are asked for: by the model's path, and whether as a stream.
    endpoints: Endpoints<(String, bool)>,
}

/// An answer that has begun.
pub(crate) struct Opened {
    /// Its events; an answer that came whole is one.
    pub(crate) events: ByteStream,
    pub(crate) is_whole: bool,
    pub(crate) context: AnswerContext,
}

impl GeminiClient {
    /// A client of the server that `config` describes. Nothing is sent yet.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] when the address is none or the key is missing
    /// where one is needed.
    pub fn new(config: GeminiConfig) -> Result<Self, ModelError> {
        config.check()?;
        let mut headers = Headers::new();
        if let Some(key) = config.key() {
            headers = headers.with_secret("x-goog-api-key", key);
        }
        headers.check(&config.provider)?;
        let transport = HttpTransport::new(&config.provider, &config.transport)?;
        let server = Server {
            config,
            transport,
            headers,
            endpoints: Endpoints::default(),
        };
        Ok(Self {
            server: Arc::new(server),
        })
    }

    /// How the server is reached.
    pub fn config(&self) -> &GeminiConfig {
        &self.server.config
    }

    /// One of its models, by the server's name for it, with or without `models/`. Whether the server
    /// has it shows when it is asked.
    pub fn model(&self, name: impl Into<String>) -> GeminiModel {
        let id = ModelId::new(&*self.server.config.provider, name.into());
        GeminiModel::on(self.clone(), id)
    }

    /// The models that the server offers (`GET {base}/{version}/models`) and that generate content,
    /// in its order.
    pub async fn list_models(&self) -> Result<Vec<ServedModel>, ModelError> {
        let Server {
            config, transport, ..
        } = &*self.server;
        let mut models = Vec::new();
        let mut next: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let query = match &next {
                Some(token) => format!(
                    "models?pageSize=1000&pageToken={}",
                    percent::encoded(token, b'-')
                ),
                None => "models?pageSize=1000".to_owned(),
            };
            let request = self
                .request(&query)
                .expecting(&["application/json", "text/plain"]);
            let answer = transport.get(&request, &GeminiErrors).await?;
            let body = read_to_end(&config.provider, answer.body, MAX_FRAME_BYTES).await?;
            let body = serde_json::from_slice::<Value>(&body).ok();
            let Some(mut found) = body.as_ref().and_then(page) else {
                let message = "the answer is no list of models: is the base address right?";
                return Err(
                    ModelError::new(&config.provider, ModelErrorKind::Protocol, message)
                        .with_status(answer.status)
                        .with_request_id(answer.request_id),
                );
            };
            models.append(&mut found.models);
            let Page { next: token, .. } = found;
            if token.is_none() || token == next {
                break;
            }
            next = token;
        }
        Ok(models)
    }

    /// Sends the body of a request for an answer of the model of that name, which is wanted as a stream or
    /// whole.
    ///
    /// Some servers answer a request for a stream as a whole, and some give either the wrong name:
    /// what came shows in the body.
    ///
    /// Makes one attempt if `once`, which the caller repeats, else several.
    pub(crate) async fn generate(
        &self,
        model: &str,
        delivery: Delivery,
        body: Bytes,
        once: bool,
    ) -> Result<Opened, ModelError> {
        let Server {
            config,
            transport,
            endpoints,
            ..
        } = &*self.server;
        let streams = config.streaming && delivery != Delivery::Whole;
        let key = (config.model_path(model)?, streams);
        let endpoint = endpoints.get(transport, &key, || {
            let method = if streams {
                "streamGenerateContent?alt=sse"
            } else {
                "generateContent"
            };
            self.request(&format!("{}:{method}", key.0))
                .expecting_answer(streams)
                .of_json()
        })?;
        let answer = if once {
            transport.post_once_to(&endpoint, body, &GeminiErrors).await
        } else {
            transport.post_to(&endpoint, body, &GeminiErrors).await
        }?;
        let context = answer.context();
        let opened = opened(&config.provider, answer).await;
        let (events, is_whole) = opened.map_err(|error| context.apply(error))?;
        Ok(Opened {
            events,
            is_whole,
            context,
        })
    }

    fn request(&self, path: &str) -> HttpRequest {
        let Server {
            config, headers, ..
        } = &*self.server;
        HttpRequest::new(config.endpoint(path)).with_headers(headers)
    }
}

/// The events of an answer, and whether it came whole.
async fn opened(provider: &str, answer: HttpAnswer) -> Result<(ByteStream, bool), ModelError> {
    if !answer.is_whole() {
        return Ok((answer.body, false));
    }
    let whole = read_to_end(provider, answer.body, MAX_FRAME_BYTES).await?;
    let event = Bytes::from(as_event(&whole));
    Ok((Box::pin(stream::iter([Ok(event)])), true))
}

/// A whole answer as the one event of a stream.
fn as_event(body: &[u8]) -> Vec<u8> {
    let mut event = Vec::with_capacity(body.len() + 64);
    // Line ends between the values of JSON; within a text they are escaped.
    let lines = body.split(|byte| matches!(byte, b'\n' | b'\r'));
    for line in lines.filter(|line| !line.is_empty()) {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.push(b'\n');
    }
    event.push(b'\n');
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_answer_is_one_event() {
        let event = as_event(b"[{\r\n  \"a\": 1\n\n}]\n");
        assert_eq!(event, b"data: [{\ndata:   \"a\": 1\ndata: }]\n\n");
    }
}
