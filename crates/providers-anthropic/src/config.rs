//! Configuration of a server: its address, credentials and options.

use secrecy::SecretString;
use serde_json::Value;
use switchboard_domain::ModelError;
use switchboard_providers_common::{
    Headers, TransportConfig,
    provider::{ErrorTable, ModelPage, ProviderConfig, ServedModel, is_blank, read_env_var},
};

use crate::{MessagesOptions, ServerTool, error::ERRORS, model::MessagesApi};

/// Base URL of Anthropic's own API.
pub const ANTHROPIC_BASE_URL: &str = "https://api.anthropic.com";
/// Name of the environment variable that contains the API key.
pub const API_KEY_VARIABLE: &str = "ANTHROPIC_API_KEY";
/// Name of the environment variable with a bearer token. It is used only if no API key is set.
pub const AUTH_TOKEN_VARIABLE: &str = "ANTHROPIC_AUTH_TOKEN";
/// Name of the environment variable with a base URL that replaces [`ANTHROPIC_BASE_URL`].
pub const BASE_URL_VARIABLE: &str = "ANTHROPIC_BASE_URL";
/// Name of the environment variable with additional headers, one `name: value` per line.
pub const CUSTOM_HEADERS_VARIABLE: &str = "ANTHROPIC_CUSTOM_HEADERS";

/// Name of the HTTP header that enables beta features of the API.
pub(crate) const BETAS: &str = "anthropic-beta";

/// The configuration of Anthropic's API or of a compatible server.
///
/// ```
/// use switchboard_providers_anthropic::AnthropicConfig;
///
/// let anthropic = AnthropicConfig::new("sk-ant-…");
/// assert!(anthropic.is_anthropic_host());
/// let local = AnthropicConfig::for_compatible_server("gateway", "http://localhost:4000");
/// assert!(local.credential.is_none());
/// assert!(!format!("{anthropic:?}").contains("sk-ant"));
/// ```
#[derive(Debug, Clone)]
pub struct AnthropicConfig {
    /// Name of the provider, as in [`ModelId::provider`](switchboard_domain::ModelId::provider).
    pub provider: String,
    /// API key or token. Anthropic's own address requires one.
    pub credential: Option<Credential>,
    /// Base URL without `/v1`, as in the official SDK. A trailing slash or `/v1` is accepted.
    pub base_url: String,
    /// Values of the `anthropic-beta` header, besides those that options and request fields
    /// require. The latter are added automatically, see [`MessagesOptions::automatic_betas`].
    pub betas: Vec<String>,
    /// Additional HTTP headers of every request. A header here replaces every other header of the
    /// same name.
    pub headers: Headers,
    /// Options of the mapping between requests and the Messages API.
    pub options: MessagesOptions,
    /// Time-outs and retry policy of HTTP requests.
    pub transport: TransportConfig,
}

/// An API key or token. The variant decides which header carries it.
#[derive(Debug, Clone)]
pub enum Credential {
    /// An API key, sent as `x-api-key`.
    ApiKey(SecretString),
    /// A token for OAuth or a gateway, sent as `Authorization: Bearer`.
    AuthToken(SecretString),
}

impl Credential {
    fn is_blank(&self) -> bool {
        match self {
            Self::ApiKey(secret) | Self::AuthToken(secret) => is_blank(secret),
        }
    }
}

impl AnthropicConfig {
    /// Creates the configuration for Anthropic's own API.
    pub fn new(api_key: impl Into<SecretString>) -> Self {
        Self::for_compatible_server("anthropic", ANTHROPIC_BASE_URL).with_api_key(api_key)
    }

    /// Creates the configuration for a compatible server, without an API key.
    pub fn for_compatible_server(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            credential: None,
            base_url: base_url.into(),
            betas: Vec::new(),
            headers: Headers::new(),
            options: MessagesOptions::default(),
            transport: TransportConfig::default(),
        }
    }

    /// Sets the API key. A blank key removes the credential.
    #[must_use]
    pub fn with_api_key(mut self, api_key: impl Into<SecretString>) -> Self {
        self.credential = Some(Credential::ApiKey(api_key.into())).filter(|it| !it.is_blank());
        self
    }

    /// Sets a bearer token instead of an API key. A blank token removes the credential.
    #[must_use]
    pub fn with_auth_token(mut self, token: impl Into<SecretString>) -> Self {
        self.credential = Some(Credential::AuthToken(token.into())).filter(|it| !it.is_blank());
        self
    }

    /// Adds a value of the `anthropic-beta` header.
    #[must_use]
    pub fn with_beta(mut self, beta: impl Into<String>) -> Self {
        self.betas.push(beta.into());
        self
    }

    /// Adds an HTTP header whose value is not a secret. It overrides other headers of that name.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers = self.headers.with_header(name, value);
        self
    }

    /// Returns whether the host of the base URL is `api.anthropic.com` or a subdomain.
    pub fn is_anthropic_host(&self) -> bool {
        self.is_base_url_on_host("api.anthropic.com")
    }

    /// Returns the value of `anthropic-beta`: the configured values and `more`, without duplicates.
    pub(crate) fn merge_betas(&self, more: &[String]) -> String {
        let mut names: Vec<&str> = Vec::with_capacity(self.betas.len() + more.len());
        for name in self.betas.iter().chain(more).map(|name| name.trim()) {
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(",")
    }
}

impl ProviderConfig for AnthropicConfig {
    type DefaultWire = MessagesApi;

    const MODELS_PATH: &'static str = "models?limit=1000";
    const ERROR_TABLE: &'static ErrorTable = &ERRORS;

    /// Creates the configuration from the environment variables `ANTHROPIC_API_KEY` or
    /// `ANTHROPIC_AUTH_TOKEN`, `ANTHROPIC_BASE_URL` (base URL) and `ANTHROPIC_CUSTOM_HEADERS` (HTTP
    /// headers).
    ///
    /// Fails with `ModelErrorKind::Configuration` if the base URL is invalid, or if Anthropic's own
    /// API has neither a key nor a token.
    fn from_env_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let get = |name: &str| read_env_var(&lookup, name);
        let base_url = get(BASE_URL_VARIABLE).unwrap_or_else(|| ANTHROPIC_BASE_URL.to_owned());
        let mut config = Self::for_compatible_server("anthropic", base_url);
        config.credential = match (get(API_KEY_VARIABLE), get(AUTH_TOKEN_VARIABLE)) {
            (Some(key), _) => Some(Credential::ApiKey(key.into())),
            (None, token) => token.map(|token| Credential::AuthToken(token.into())),
        };
        for line in get(CUSTOM_HEADERS_VARIABLE).unwrap_or_default().lines() {
            if let Some((name, value)) = line.split_once(':') {
                // The value is stored as a secret, because it may be the key of a gateway.
                let value = SecretString::from(value.trim());
                config.headers = config.headers.with_secret(name.trim(), &value);
            }
        }
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
        let base = self.base_url.trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base);
        format!("{base}/v1/{path}")
    }

    fn headers(&self) -> Headers {
        let mut headers =
            Headers::new().with_header("anthropic-version", &self.options.api_version);
        if !self.betas.is_empty() {
            headers = headers.with_header(BETAS, &self.merge_betas(&[]));
        }
        let headers = match self.credential.as_ref().filter(|it| !it.is_blank()) {
            Some(Credential::ApiKey(key)) => headers.with_secret("x-api-key", key),
            Some(Credential::AuthToken(token)) => headers.with_bearer(token),
            None => headers,
        };
        headers.with_all_headers(&self.headers)
    }

    fn transport_config(&self) -> TransportConfig {
        self.transport.clone()
    }

    fn validate_config(&self) -> Result<(), ModelError> {
        self.check_base_url(
            "it must begin with http:// or https:// and must not include /v1/messages",
        )?;
        let is_authenticated = ["x-api-key", "authorization"]
            .iter()
            .any(|name| self.headers().contains(name));
        if !is_authenticated && self.is_anthropic_host() {
            return Err(self.configuration_error(format!(
                "no API key for Anthropic: set {API_KEY_VARIABLE} (or {AUTH_TOKEN_VARIABLE})"
            )));
        }
        let tools = &self.options.server_tools;
        if let Some(message) = tools.iter().find_map(ServerTool::find_configuration_error) {
            return Err(self.configuration_error(message));
        }
        let betas: Vec<String> = tools
            .iter()
            .flat_map(ServerTool::required_betas)
            .cloned()
            .collect();
        let headers = Headers::new().with_header(BETAS, &self.merge_betas(&betas));
        headers.check_headers(&self.provider)
    }

    fn parse_model_list(&self, body: &Value) -> Option<ModelPage> {
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
        Some(ModelPage {
            models: models.collect(),
            next: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use switchboard_domain::ModelErrorKind;

    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<AnthropicConfig, ModelError> {
        AnthropicConfig::from_env_lookup(|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn anthropic_requires_a_key_and_the_error_names_the_variable() {
        for variables in [&[][..], &[("ANTHROPIC_API_KEY", " ")]] {
            let error = from(variables).unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration);
            assert!(error.to_string().contains("ANTHROPIC_API_KEY"), "{error}");
        }
        assert!(AnthropicConfig::new("").validate_config().is_err());
        assert!(
            AnthropicConfig::new("")
                .with_header("x-api-key", "k")
                .validate_config()
                .is_ok()
        );
    }

    #[test]
    fn the_key_takes_precedence_over_the_token() {
        let both = [
            ("ANTHROPIC_API_KEY", "sk-1\n"),
            ("ANTHROPIC_AUTH_TOKEN", "token-1"),
        ];
        let headers = from(&both).unwrap().headers();
        assert!(headers.contains("x-api-key") && !headers.contains("authorization"));
        let headers = from(&both[1..]).unwrap().headers();
        assert!(!headers.contains("x-api-key") && headers.contains("authorization"));
    }

    #[test]
    fn headers_contain_the_version_the_betas_and_the_configured_headers() {
        let mut config = AnthropicConfig::new("sk")
            .with_beta("a-1")
            .with_beta("b-2")
            .with_header("x-team", "weather");
        config.options.api_version = "2026-10-21".into();
        let headers = config.headers();
        assert_eq!(headers.get("anthropic-version"), Some("2026-10-21"));
        assert_eq!(headers.get("anthropic-beta"), Some("a-1,b-2"));
        assert_eq!(headers.get("x-team"), Some("weather"));
        let default = AnthropicConfig::new("sk").headers();
        assert_eq!(default.get("anthropic-version"), Some("2023-06-01"));
        assert!(!default.contains("anthropic-beta"));
        let custom = from(&[
            ("ANTHROPIC_API_KEY", "sk"),
            (
                "ANTHROPIC_CUSTOM_HEADERS",
                "x-gateway-key: hidden-1\nnonsense\nx-b:2",
            ),
        ]);
        let custom = custom.unwrap();
        assert!(custom.headers.contains("x-gateway-key") && custom.headers.contains("x-b"));
        assert!(!format!("{custom:?}").contains("hidden-1"));
    }

    #[test]
    fn a_compatible_server_needs_no_key() {
        let config = from(&[("ANTHROPIC_BASE_URL", "http://localhost:4000/")]).unwrap();
        assert!(config.credential.is_none());
        for base in [
            "http://localhost:4000",
            "http://localhost:4000/",
            "http://localhost:4000/v1/",
        ] {
            let config = AnthropicConfig::for_compatible_server("x", base);
            assert_eq!(
                config.endpoint("messages"),
                "http://localhost:4000/v1/messages"
            );
        }
        let evil =
            AnthropicConfig::for_compatible_server("x", "https://api.anthropic.com.evil.example");
        assert!(!evil.is_anthropic_host());
    }

    #[test]
    fn an_invalid_server_tool_is_reported_when_the_configuration_is_checked() {
        let with = |tool: ServerTool| {
            let mut config = AnthropicConfig::new("sk");
            config.options.server_tools = vec![ServerTool::web_search(), tool];
            config.validate_config()
        };
        let raw = |kind: &str, beta: &str| {
            let mut declaration = switchboard_domain::JsonObject::new();
            declaration.insert("type".into(), kind.into());
            let betas = vec![beta.to_owned()];
            ServerTool::Raw(crate::server_tool::RawServerTool { declaration, betas })
        };
        assert!(with(raw("memory_20250818", "b-1")).is_ok());
        for tool in [raw("", "b-1"), raw("memory_20250818", "b\n1")] {
            let error = with(tool).unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration);
        }
    }

    #[test]
    fn betas_are_sent_once_each() {
        let config = AnthropicConfig::new("sk")
            .with_beta("a-1")
            .with_beta(" b-2");
        let more = ["b-2".to_owned(), "c-3".to_owned(), String::new()];
        assert_eq!(config.merge_betas(&more), "a-1,b-2,c-3");
    }

    #[test]
    fn an_invalid_address_is_reported_when_the_configuration_is_checked() {
        for address in ["", "localhost:4000", "ftp://example.org", "/v1", "http://"] {
            let error = AnthropicConfig::for_compatible_server("x", address)
                .validate_config()
                .unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration, "{address}");
        }
        let error = AnthropicConfig::for_compatible_server("x", "https://user:hunter2@example.org")
            .validate_config()
            .unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn the_key_is_never_printed() {
        let config = AnthropicConfig::new("sk-secret");
        assert!(!format!("{config:?}").contains("sk-secret"));
        let config = AnthropicConfig::new("x").with_auth_token("token-secret");
        assert!(!format!("{config:?}").contains("token-secret"));
    }
}
