//! One server and its models.

use std::{error::Error as _, iter, sync::Arc, time::Duration};

use serde_json::{Value, json};
use switchboard_domain::{Delivery, ModelError, ModelErrorKind, ModelId, TimeoutPhase};
use switchboard_providers_common::{
    ByteStream, Endpoints, Headers, HttpAnswer, HttpRequest, HttpTransport, MAX_FRAME_BYTES,
    RetryPolicy, TransportConfig, read_to_end,
};

use crate::{
    InstalledModel, OllamaConfig, OllamaModel, ShownModel,
    address::is_loopback,
    error::OllamaErrors,
    installed::{installed, shown},
};

/// Time-out of the check that a server is running.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// A server: the models on it share one pool of connections. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct OllamaClient {
    server: Arc<Server>,
}

#[derive(Debug)]
struct Server {
    config: OllamaConfig,
    transport: HttpTransport,
    /// Who asks.
    headers: Headers,
    /// Where answers are asked for: by the way they are wanted.
    endpoints: Endpoints<Delivery>,
    errors: OllamaErrors,
}

impl OllamaClient {
    /// Creates a client of the server that `config` describes. Does not send a request.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] if the address is invalid, or if it is the
    /// cloud's and the key is missing.
    pub fn new(mut config: OllamaConfig) -> Result<Self, ModelError> {
        config.check()?;
        if is_loopback(&config.base_url) {
            // A proxy of the environment knows nothing of this machine's own servers.
            config.transport.system_proxy = false;
        }
        let headers = config
            .key()
            .map_or_else(Headers::new, |key| Headers::new().with_bearer(key));
        headers.check(&config.provider)?;
        let transport = HttpTransport::new(&config.provider, &config.transport)?;
        let errors = OllamaErrors {
            cloud: config.is_cloud(),
        };
        let server = Server {
            config,
            transport,
            headers,
            endpoints: Endpoints::default(),
            errors,
        };
        Ok(Self {
            server: Arc::new(server),
        })
    }

    /// How the server is reached.
    pub fn config(&self) -> &OllamaConfig {
        &self.server.config
    }

    /// Returns a model by the server's name for it. Does not check that the server has the model.
    pub fn model(&self, name: impl Into<String>) -> OllamaModel {
        let id = ModelId::new(&*self.server.config.provider, name.into());
        OllamaModel::on(self.clone(), id)
    }

    /// Returns a model with the capabilities that the server reports. Fails like
    /// [`show`](Self::show).
    pub async fn model_as_shown(&self, name: impl Into<String>) -> Result<OllamaModel, ModelError> {
        let model = self.model(name);
        let shown = self.show(model.name()).await?;
        Ok(model.as_shown(&shown))
    }

    /// The models that the server has (`GET /api/tags`), in its order: the newest first.
    pub async fn list_models(&self) -> Result<Vec<InstalledModel>, ModelError> {
        let answer = self.get(&self.server.transport, "api/tags").await?;
        self.read(answer, "the answer is not a list of models", installed)
            .await
    }

    /// Returns the server's description of one model (`POST /api/show`).
    ///
    /// Fails with [`ModelErrorKind::NotFound`], and the command that downloads the model, if the
    /// server does not have it.
    pub async fn show(&self, name: &str) -> Result<ShownModel, ModelError> {
        let body = json!({ "model": name }).to_string();
        let request = self.request("api/show").with_json(body).expecting(JSON);
        let answer = self.post(&request).await?;
        self.read(answer, "the answer describes no model", |body| {
            shown(name, body)
        })
        .await
    }

    /// The server's version (`GET /api/version`), asked once and for at most a second.
    pub async fn version(&self) -> Result<String, ModelError> {
        let config = TransportConfig {
            connect_timeout: PROBE_TIMEOUT,
            first_byte_timeout: PROBE_TIMEOUT,
            idle_timeout: PROBE_TIMEOUT,
            retry: RetryPolicy::never(),
            ..self.server.config.transport.clone()
        };
        let transport = HttpTransport::new(&self.server.config.provider, &config)?;
        let answer = self.get(&transport, "api/version").await?;
        self.read(answer, "the answer has no version", |body| {
            Some(body.get("version")?.as_str()?.to_owned())
        })
        .await
    }

    /// Whether an Ollama server answers at the address: `false` within a second or so if none does.
    pub async fn is_there(&self) -> bool {
        self.version().await.is_ok()
    }

    /// Sends the body of a request for an answer of a model.
    pub(crate) async fn chat(
        &self,
        delivery: Delivery,
        body: Vec<u8>,
    ) -> Result<HttpAnswer, ModelError> {
        let Server {
            transport,
            endpoints,
            errors,
            ..
        } = &*self.server;
        let endpoint = endpoints.get(transport, &delivery, || {
            let accept = match delivery {
                Delivery::Whole => "application/json",
                _ => "application/x-ndjson",
            };
            self.request("api/chat")
                .with_header("accept", accept)
                .expecting(&[
                    "application/x-ndjson",
                    "application/ndjson",
                    "application/jsonl",
                    "application/json",
                    "text/plain",
                    "application/octet-stream",
                ])
                .of_json()
        })?;
        let answer = transport.post_once_to(&endpoint, body, errors).await;
        answer.map_err(|error| self.with_way_out(error))
    }

    async fn post(&self, request: &HttpRequest) -> Result<HttpAnswer, ModelError> {
        let Server {
            transport, errors, ..
        } = &*self.server;
        let answer = transport.post(request, errors).await;
        answer.map_err(|error| self.with_way_out(error))
    }

    async fn get(&self, transport: &HttpTransport, path: &str) -> Result<HttpAnswer, ModelError> {
        let request = self.request(path).expecting(JSON);
        let answer = transport.get(&request, &self.server.errors).await;
        answer.map_err(|error| self.with_way_out(error))
    }

    fn request(&self, path: &str) -> HttpRequest {
        let Server {
            config, headers, ..
        } = &*self.server;
        HttpRequest::new(config.endpoint(path)).with_headers(headers)
    }

    async fn read<T>(
        &self,
        answer: HttpAnswer,
        otherwise: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, ModelError> {
        let HttpAnswer {
            status,
            request_id,
            body,
            ..
        } = answer;
        let provider = &self.server.config.provider;
        let body = json_of(provider, body).await?;
        body.as_ref().and_then(read).ok_or_else(|| {
            let message = format!(
                "{otherwise}: is {} an Ollama server's address?",
                self.server.config.shown()
            );
            ModelError::new(provider, ModelErrorKind::Protocol, message)
                .with_status(status)
                .with_request_id(request_id)
        })
    }

    /// Adds advice to connection errors: usually the server is not running.
    fn with_way_out(&self, error: ModelError) -> ModelError {
        if !is_unreached(&error) {
            return error;
        }
        let config = &self.server.config;
        let start = if config.is_cloud() {
            ""
        } else {
            " Start it with `ollama serve`, or set OLLAMA_HOST."
        };
        let message = format!(
            "is Ollama running at {}?{start} ({})",
            config.shown(),
            error.message()
        );
        ModelError::new(&config.provider, error.kind.clone(), message)
            .with_retry_hint_of(&error)
            .with_source(error)
    }
}

/// Whether no connection came about. A server that hung up was reached.
fn is_unreached(error: &ModelError) -> bool {
    match error.kind {
        ModelErrorKind::Timeout {
            phase: TimeoutPhase::Connect,
            ..
        } => true,
        ModelErrorKind::Connection => {
            let mut causes = iter::successors(error.source(), |&cause| cause.source());
            // The HTTP client reports the stage only in its text.
            causes.any(|cause| cause.to_string().contains("(Connect)"))
        }
        _ => false,
    }
}

const JSON: &[&str] = &["application/json", "text/plain"];

async fn json_of(provider: &str, body: ByteStream) -> Result<Option<Value>, ModelError> {
    let body = read_to_end(provider, body, MAX_FRAME_BYTES).await?;
    Ok(serde_json::from_slice(&body).ok())
}
