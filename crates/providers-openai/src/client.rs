//! One server and its models.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{ModelError, ModelErrorKind, ModelId};
use switchboard_providers_common::{
    Endpoints, Headers, HttpAnswer, HttpRequest, HttpTransport, MAX_FRAME_BYTES, read_to_end,
};

use crate::{
    OpenAiChatModel, OpenAiConfig, OpenAiResponsesModel, ServedModel, error::ApiErrors,
    profile::AuthHeader, served::served,
};

/// A server that speaks the wire: the models on it share one pool of connections. Cloning it is
/// cheap.
#[derive(Debug, Clone)]
pub struct OpenAiClient {
    server: Arc<Server>,
}

#[derive(Debug)]
struct Server {
    config: OpenAiConfig,
    transport: HttpTransport,
    /// Who asks.
    headers: Headers,
    /// Where answers are asked for: by the path, and whether as a stream.
    endpoints: Endpoints<(&'static str, bool)>,
}

impl OpenAiClient {
    /// A client of the server that `config` describes. Nothing is sent yet.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] when the address is none or the key is missing
    /// where one is needed.
    pub fn new(config: OpenAiConfig) -> Result<Self, ModelError> {
        config.check()?;
        let headers = who_asks(&config);
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
    pub fn config(&self) -> &OpenAiConfig {
        &self.server.config
    }

    /// One of its models, by the server's name for it. Whether the server has it shows when it is
    /// asked. Its options are [`OpenAiConfig::chat`].
    pub fn model(&self, name: impl Into<String>) -> OpenAiChatModel {
        let id = ModelId::new(&*self.server.config.provider, name.into());
        OpenAiChatModel::on(self.clone(), id)
    }

    /// The models that the server offers (`GET {base}/models`), in its order.
    pub async fn list_models(&self) -> Result<Vec<ServedModel>, ModelError> {
        let Server {
            config, transport, ..
        } = &*self.server;
        let request = self
            .request("models")
            .expecting(&["application/json", "text/plain"]);
        let answer = transport.get(&request, &ApiErrors).await?;
        let body = read_to_end(&config.provider, answer.body, MAX_FRAME_BYTES).await?;
        let body = serde_json::from_slice::<Value>(&body).ok();
        body.as_ref().and_then(served).ok_or_else(|| {
            let message = "the answer is no list of models: is the base address right?";
            ModelError::new(&config.provider, ModelErrorKind::Protocol, message)
                .with_status(answer.status)
                .with_request_id(answer.request_id)
        })
    }

    /// One of its models over the Responses API. Whether the server has that API shows when it is
    /// asked: OpenAI, Azure, xAI, OpenRouter, vLLM, llama.cpp and LiteLLM do. Its options are
    /// [`OpenAiConfig::responses`].
    pub fn responses_model(&self, name: impl Into<String>) -> OpenAiResponsesModel {
        let id = ModelId::new(&*self.server.config.provider, name.into());
        OpenAiResponsesModel::on(self.clone(), id)
    }

    /// Sends the body of a request for an answer of a model, which is wanted as a stream or whole.
    ///
    /// Some servers answer a request for a stream as a whole, and some give either the wrong name:
    /// what came shows in the body.
    pub(crate) async fn post(
        &self,
        path: &'static str,
        streams: bool,
        body: Vec<u8>,
    ) -> Result<HttpAnswer, ModelError> {
        let Server {
            transport,
            endpoints,
            ..
        } = &*self.server;
        let endpoint = endpoints.get(transport, &(path, streams), || {
            self.request(path).expecting_answer(streams).of_json()
        })?;
        transport.post_once_to(&endpoint, body, &ApiErrors).await
    }

    fn request(&self, path: &str) -> HttpRequest {
        let Server {
            config, headers, ..
        } = &*self.server;
        HttpRequest::new(config.endpoint(path)).with_headers(headers)
    }
}

fn who_asks(config: &OpenAiConfig) -> Headers {
    let mut headers = Headers::new();
    if let Some(key) = config.key() {
        headers = match config.profile.auth {
            AuthHeader::Bearer => headers.with_bearer(key),
            AuthHeader::ApiKey => headers.with_secret("api-key", key),
        };
    }
    if let Some(organization) = &config.organization {
        headers = headers.with("openai-organization", organization);
    }
    if let Some(project) = &config.project {
        headers = headers.with("openai-project", project);
    }
    headers
}
