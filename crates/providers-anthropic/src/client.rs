//! One server and its models.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{Delivery, ModelError, ModelErrorKind, ModelId};
use switchboard_providers_common::{
    Endpoints, Headers, HttpAnswer, HttpRequest, HttpTransport, MAX_FRAME_BYTES, read_to_end,
};

use crate::{AnthropicConfig, AnthropicErrors, AnthropicModel, config::BETAS};

/// Models asked for at once; the API allows no more and has far fewer.
const MODELS_AT_ONCE: &str = "models?limit=1000";

/// A server that speaks the wire: the models on it share one pool of connections. Cloning it is
/// cheap.
#[derive(Debug, Clone)]
pub struct AnthropicClient {
    server: Arc<Server>,
}

#[derive(Debug)]
struct Server {
    config: AnthropicConfig,
    transport: HttpTransport,
    /// Who asks, and for which version.
    headers: Headers,
    /// Where answers are asked for: by the way they are wanted, and the betas that they need.
    endpoints: Endpoints<(Delivery, Option<String>)>,
}

/// A model that a server says it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedModel {
    /// The server's name for it.
    pub name: String,
    /// Its name for people, where the server says one.
    pub title: Option<String>,
    /// Tokens of the prompt at most, where the server says so.
    pub context_window: Option<u64>,
    /// Tokens of the answer at most, where the server says so.
    pub max_output_tokens: Option<u64>,
}

impl AnthropicClient {
    /// A client of the server that `config` describes. Nothing is sent yet.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] when the address is none, a header cannot be
    /// sent or the key is missing where one is needed.
    pub fn new(config: AnthropicConfig) -> Result<Self, ModelError> {
        config.check()?;
        let transport = HttpTransport::new(&config.provider, &config.transport)?;
        let server = Server {
            headers: config.all_headers(),
            config,
            transport,
            endpoints: Endpoints::default(),
        };
        Ok(Self {
            server: Arc::new(server),
        })
    }

    /// How the server is reached.
    pub fn config(&self) -> &AnthropicConfig {
        &self.server.config
    }

    /// One of its models, by the server's name for it. Whether the server has it shows when it is
    /// asked.
    pub fn model(&self, name: impl Into<String>) -> AnthropicModel {
        let id = ModelId::new(&*self.server.config.provider, name.into());
        AnthropicModel::on(self.clone(), id)
    }

    /// The models that the server offers (`GET {base}/v1/models`), in its order, the newest first.
    pub async fn list_models(&self) -> Result<Vec<ServedModel>, ModelError> {
        let Server {
            config, transport, ..
        } = &*self.server;
        let request = self
            .request(MODELS_AT_ONCE)
            .expecting(&["application/json"]);
        let answer = transport.get(&request, &AnthropicErrors).await?;
        let body = read_to_end(&config.provider, answer.body, MAX_FRAME_BYTES).await?;
        let body = serde_json::from_slice::<Value>(&body).ok();
        body.as_ref().and_then(served).ok_or_else(|| {
            let message = "the answer is no list of models: is the base address right?";
            ModelError::new(&config.provider, ModelErrorKind::Protocol, message)
                .with_status(answer.status)
                .with_request_id(answer.request_id)
        })
    }

    /// Sends the body of a request for an answer of a model.
    ///
    /// Some servers answer a request for a stream as a whole, and some give either the wrong name:
    /// what came shows in the body.
    pub(crate) async fn ask(
        &self,
        body: Vec<u8>,
        delivery: Delivery,
        betas: &[String],
    ) -> Result<HttpAnswer, ModelError> {
        let Server {
            config,
            transport,
            endpoints,
            ..
        } = &*self.server;
        let needs = !betas.is_empty() && !config.headers.contains(BETAS);
        let key = (delivery, needs.then(|| config.betas_with(betas)));
        let endpoint = endpoints.get(transport, &key, || {
            let mut request = self.request("messages");
            if let (_, Some(betas)) = &key {
                request = request.with_header(BETAS, betas);
            }
            request
                .expecting_answer(delivery != Delivery::Whole)
                .of_json()
        })?;
        transport
            .post_once_to(&endpoint, body, &AnthropicErrors)
            .await
    }

    fn request(&self, path: &str) -> HttpRequest {
        let Server {
            config, headers, ..
        } = &*self.server;
        HttpRequest::new(config.endpoint(path)).with_headers(headers)
    }
}

/// Reads `{"data": [{id, display_name, max_input_tokens, max_tokens}, …]}`.
fn served(body: &Value) -> Option<Vec<ServedModel>> {
    let list = body.get("data")?.as_array()?.iter();
    let models = list.filter_map(|model| {
        let text = |name: &str| model.get(name)?.as_str().map(str::to_owned);
        let count = |name: &str| model.get(name)?.as_u64();
        Some(ServedModel {
            name: text("id")?,
            title: text("display_name"),
            context_window: count("max_input_tokens"),
            max_output_tokens: count("max_tokens"),
        })
    });
    Some(models.collect())
}
