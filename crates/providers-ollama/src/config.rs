//! Configuration of an Ollama server: its address, key and options.

use secrecy::SecretString;
use serde_json::Value;
use switchboard_domain::ModelError;
use switchboard_providers_common::{
    Headers, TransportConfig,
    provider::{ErrorTable, ModelPage, ProviderConfig, is_blank, read_env_var, redacted_address},
    text_tool_calls::TextCallFormats,
};

use crate::{
    error::{ERRORS, find_error_advice, is_connection_failure},
    model::ChatApi,
    server::parse_model_list_page,
    server_address::{CLOUD_HOST, is_loopback, parse_base_url},
};

/// Name of the environment variable with the address of the server.
pub const HOST_VARIABLE: &str = "OLLAMA_HOST";
/// Name of the environment variable with the API key for Ollama's cloud.
pub const API_KEY_VARIABLE: &str = "OLLAMA_API_KEY";
/// Default base address of a server on this machine.
pub const LOCAL_BASE_URL: &str = "http://127.0.0.1:11434";

/// Address, credentials and options of an Ollama server.
///
/// ```
/// use switchboard_providers_ollama::OllamaConfig;
///
/// assert_eq!(OllamaConfig::for_local_server().base_url, "http://127.0.0.1:11434");
/// assert_eq!(OllamaConfig::for_host("gpu:8080")?.base_url, "http://gpu:8080");
/// let cloud = OllamaConfig::for_host("ollama.com")?.with_api_key("secret");
/// assert!(!format!("{cloud:?}").contains("secret"));
/// # Ok::<(), switchboard_domain::ModelError>(())
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct OllamaConfig {
    /// Name of the provider, as in [`ModelId::provider`](switchboard_domain::ModelId::provider).
    pub provider: String,
    /// Base address of the server: scheme, host, port and optional path. [`OllamaConfig::for_host`]
    /// also parses other forms of it.
    #[debug("{:?}", redacted_address(base_url))]
    pub base_url: String,
    /// API key, sent as `Authorization: Bearer`. Only Ollama's cloud requires a key.
    pub api_key: Option<SecretString>,
    /// Time-outs, retry policy and proxy settings. No proxy is used for addresses of this machine.
    pub transport: TransportConfig,
    /// Formats of tool calls that are recognized in the text of an answer. The server parses only
    /// the formats of its own chat templates, and leaves calls in other formats in the text.
    pub text_calls: TextCallFormats,
    /// Selection of the models that get tools described in the prompt instead of in the request
    /// field `tools`.
    pub tools_by_prompt: ToolsByPrompt,
}

/// Selection of the models that get tools described in the prompt. Their calls are parsed from the
/// text of the answer, and earlier calls and results are sent as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolsByPrompt {
    /// No model gets tools in the prompt. Models without tool support refuse requests with tools.
    #[default]
    Never,
    /// Only models without tool support get the tools in the prompt. Such a model is recognized by
    /// the server's description of it ([`described_model`](crate::described_model)), or
    /// by the server's refusal of a request with tools.
    Auto,
    /// All models get tools in the prompt.
    Always,
}

impl From<bool> for ToolsByPrompt {
    fn from(always: bool) -> Self {
        if always { Self::Always } else { Self::Never }
    }
}

impl OllamaConfig {
    /// Returns the configuration for the server on this machine, at the default port, without a
    /// key. Tool calls are recognized in the text of answers, in the formats of local models. Tools
    /// are not described in the prompt.
    pub fn for_local_server() -> Self {
        Self {
            provider: "ollama".to_owned(),
            base_url: LOCAL_BASE_URL.to_owned(),
            api_key: None,
            transport: TransportConfig::default(),
            text_calls: TextCallFormats::LOCAL_SERVERS,
            tools_by_prompt: ToolsByPrompt::Never,
        }
    }

    /// Returns the configuration for the server at `host`, in any form of `OLLAMA_HOST`: `gpu`,
    /// `gpu:8080`, `https://gpu/ollama/`, `0.0.0.0` (this machine) or empty.
    ///
    /// Fails with [`Configuration`](switchboard_domain::ModelErrorKind::Configuration) if the
    /// address is invalid.
    pub fn for_host(host: &str) -> Result<Self, ModelError> {
        let local = Self::for_local_server();
        match parse_base_url(host) {
            Ok(base_url) => Ok(Self { base_url, ..local }),
            Err(fault) => Err(local
                .configuration_error(fault.to_string())
                .with_source(fault)),
        }
    }

    /// Sets the API key. A blank key is treated as no key.
    #[must_use]
    pub fn with_api_key(mut self, api_key: impl Into<SecretString>) -> Self {
        self.api_key = Some(api_key.into()).filter(|key| !is_blank(key));
        self
    }

    /// Returns whether the server is Ollama's own cloud.
    pub fn is_cloud(&self) -> bool {
        self.is_base_url_on_host(CLOUD_HOST)
    }
}

impl ProviderConfig for OllamaConfig {
    type DefaultWire = ChatApi;

    const MODELS_PATH: &'static str = "api/tags";
    const ERROR_TABLE: &'static ErrorTable = &ERRORS;

    /// Creates the configuration from `OLLAMA_HOST` and `OLLAMA_API_KEY`. Fails if the address is
    /// invalid, or if the server is Ollama's cloud and the key is missing.
    fn from_env_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let get = |name: &str| read_env_var(&lookup, name);
        let mut config = Self::for_host(&get(HOST_VARIABLE).unwrap_or_default())?;
        config.api_key = get(API_KEY_VARIABLE).map(SecretString::from);
        config.validate_config()?;
        Ok(config)
    }

    fn provider(&self) -> &str {
        &self.provider
    }

    fn base_url(&self) -> &str {
        &self.base_url
    }

    fn endpoint(&self, path: &str) -> String {
        format!("{}/{path}", self.base_url.trim_end_matches('/'))
    }

    fn headers(&self) -> Headers {
        match self.api_key.as_ref().filter(|key| !is_blank(key)) {
            Some(key) => Headers::new().with_bearer(key),
            None => Headers::new(),
        }
    }

    fn transport_config(&self) -> TransportConfig {
        TransportConfig {
            // Requests to this machine bypass the proxy, because a proxy on another machine cannot
            // reach a loopback address.
            system_proxy: self.transport.system_proxy && !is_loopback(&self.base_url),
            ..self.transport.clone()
        }
    }

    fn validate_config(&self) -> Result<(), ModelError> {
        parse_base_url(&self.base_url).map_err(|fault| {
            self.configuration_error(fault.to_string())
                .with_source(fault)
        })?;
        if self.is_cloud() && self.api_key.as_ref().is_none_or(is_blank) {
            let message = format!("no API key for Ollama's cloud: set {API_KEY_VARIABLE}");
            return Err(self.configuration_error(message));
        }
        Ok(())
    }

    fn parse_model_list(&self, body: &Value) -> Option<ModelPage> {
        parse_model_list_page(body)
    }

    fn add_error_advice(&self, error: ModelError) -> ModelError {
        let message = if is_connection_failure(&error) {
            let address = redacted_address(&self.base_url);
            let start = if self.is_cloud() {
                ""
            } else {
                " Start it with `ollama serve`, or set OLLAMA_HOST."
            };
            format!(
                "is Ollama running at {address}?{start} ({})",
                error.message()
            )
        } else if let Some(remedy) = find_error_advice(&error, self.is_cloud()) {
            format!("{}; {remedy}", error.message())
        } else {
            return error;
        };
        error.with_message(message)
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;
    use switchboard_domain::ModelErrorKind;

    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<OllamaConfig, ModelError> {
        OllamaConfig::from_env_lookup(|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn the_default_is_the_local_server() {
        let config = from(&[]).unwrap();
        assert_eq!(config.base_url, LOCAL_BASE_URL);
        assert!(config.api_key.is_none());
        let blank = from(&[("OLLAMA_HOST", " "), ("OLLAMA_API_KEY", "")]).unwrap();
        assert_eq!(blank.base_url, LOCAL_BASE_URL);
        assert!(blank.api_key.is_none());
    }

    #[test]
    fn the_cloud_needs_a_key_and_the_error_names_the_variable() {
        let error = from(&[("OLLAMA_HOST", "https://ollama.com")]).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Configuration);
        assert!(error.to_string().contains("OLLAMA_API_KEY"), "{error}");
        let config = from(&[
            ("OLLAMA_HOST", "ollama.com"),
            ("OLLAMA_API_KEY", " key-1\n"),
        ])
        .unwrap();
        assert!(config.is_cloud());
        assert_eq!(config.api_key.unwrap().expose_secret(), "key-1");
    }

    #[test]
    fn an_invalid_address_is_reported_when_the_client_is_created() {
        let error = from(&[("OLLAMA_HOST", "ftp://gpu")]).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Configuration);
        assert!(error.to_string().contains("http://"), "{error}");
        let mut config = OllamaConfig::for_local_server();
        config.base_url = "http://me:hunter2@gpu".to_owned();
        let error = config.validate_config().unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn endpoints_are_appended_to_the_base_address() {
        let config = OllamaConfig::for_host("gpu/ollama/").unwrap();
        assert_eq!(
            config.endpoint("api/chat"),
            "http://gpu:11434/ollama/api/chat"
        );
    }
}
