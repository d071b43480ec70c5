//! Where the server is and who asks.

use http::Uri;
use secrecy::{ExposeSecret as _, SecretString};
use switchboard_domain::{ModelError, ModelErrorKind};
use switchboard_providers_common::{Headers, TransportConfig};

use crate::{CachePolicy, MessagesOptions, ServerTool};

/// Anthropic's own address.
pub const ANTHROPIC_BASE_URL: &str = "https://api.anthropic.com";
/// The environment variable with the key.
pub const API_KEY_VARIABLE: &str = "ANTHROPIC_API_KEY";
/// The environment variable with a token in place of a key.
pub const AUTH_TOKEN_VARIABLE: &str = "ANTHROPIC_AUTH_TOKEN";
/// The environment variable with another address.
pub const BASE_URL_VARIABLE: &str = "ANTHROPIC_BASE_URL";
/// The environment variable with further headers, `name: value` a line.
pub const CUSTOM_HEADERS_VARIABLE: &str = "ANTHROPIC_CUSTOM_HEADERS";
/// The version of the API that is asked for. Later ones refuse temperature and the like to all models;
/// this one is still served, and every compatible server knows it.
pub const DEFAULT_API_VERSION: &str = "2023-06-01";

/// The header with features that are not in the API for everyone.
pub(crate) const BETAS: &str = "anthropic-beta";

/// How to reach Anthropic or a server that speaks its wire.
///
/// ```
/// use switchboard_providers_anthropic::AnthropicConfig;
///
/// let anthropic = AnthropicConfig::new("sk-ant-…");
/// assert!(anthropic.is_anthropic());
/// let own = AnthropicConfig::compatible("gateway", "http://localhost:4000");
/// assert!(own.credential.is_none());
/// assert!(!format!("{anthropic:?}").contains("sk-ant"));
/// ```
#[derive(Debug, Clone)]
pub struct AnthropicConfig {
    /// The name of the entry, as in [`ModelId::provider`](switchboard_domain::ModelId::provider):
    /// `anthropic`, …
    pub provider: String,
    /// Who asks. A server of one's own may need nobody.
    pub credential: Option<Credential>,
    /// The address without `/v1`, as the official SDK has it; a slash, or `/v1`, at its end does not
    /// matter.
    pub base_url: String,
    /// `anthropic-beta`: features that are not in the API for everyone. What options and fields of a
    /// request need is added by itself; see [`MessagesOptions::automatic_betas`].
    pub betas: Vec<String>,
    /// Further headers. They win over all others.
    pub headers: Headers,
    /// What the mapping is told, the version of the API among it.
    pub options: MessagesOptions,
    /// Time-outs, retries and the like.
    pub transport: TransportConfig,
}

/// Who asks, and in which header it is said.
#[derive(Debug, Clone)]
pub enum Credential {
    /// `x-api-key`, as the API's documentation has it; compatible servers know it best.
    ApiKey(SecretString),
    /// `Authorization: Bearer`, for OAuth tokens and gateways.
    AuthToken(SecretString),
}

impl Credential {
    fn secret(&self) -> &SecretString {
        match self {
            Self::ApiKey(secret) | Self::AuthToken(secret) => secret,
        }
    }
}

impl AnthropicConfig {
    /// Anthropic itself.
    pub fn new(api_key: impl Into<SecretString>) -> Self {
        Self::compatible("anthropic", ANTHROPIC_BASE_URL).with_api_key(api_key)
    }

    /// Another server that speaks the wire, without a key.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
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

    /// Reads `ANTHROPIC_API_KEY`, else `ANTHROPIC_AUTH_TOKEN`, and `ANTHROPIC_BASE_URL` and
    /// `ANTHROPIC_CUSTOM_HEADERS`, as the official SDK does. An empty variable counts as unset.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] when there is neither key nor token for
    /// Anthropic's own address; a server at another address may need none.
    pub fn from_env() -> Result<Self, ModelError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// [`from_env`](Self::from_env) with another source of variables.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let get = |name: &str| {
            let value = lookup(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let base_url = get(BASE_URL_VARIABLE).unwrap_or_else(|| ANTHROPIC_BASE_URL.to_owned());
        let mut config = Self::compatible("anthropic", base_url);
        config.credential = match (get(API_KEY_VARIABLE), get(AUTH_TOKEN_VARIABLE)) {
            (Some(key), _) => Some(Credential::ApiKey(key.into())),
            (None, token) => token.map(|token| Credential::AuthToken(token.into())),
        };
        for line in get(CUSTOM_HEADERS_VARIABLE).unwrap_or_default().lines() {
            if let Some((name, value)) = line.split_once(':') {
                // What a person puts there may be a key of a gateway.
                let value = SecretString::from(value.trim());
                config.headers = config.headers.with_secret(name.trim(), &value);
            }
        }
        config.check()?;
        Ok(config)
    }

    /// The same with a key; an empty one counts as none.
    #[must_use]
    pub fn with_api_key(mut self, api_key: impl Into<SecretString>) -> Self {
        self.credential = Some(Credential::ApiKey(api_key.into())).filter(is_given);
        self
    }

    /// The same with a token in place of a key; an empty one counts as none.
    #[must_use]
    pub fn with_auth_token(mut self, token: impl Into<SecretString>) -> Self {
        self.credential = Some(Credential::AuthToken(token.into())).filter(is_given);
        self
    }

    /// The same with another version of the API, such as `2026-10-21`.
    #[must_use]
    pub fn with_api_version(mut self, version: impl Into<String>) -> Self {
        self.options.api_version = version.into();
        self
    }

    /// The same with one more feature of the `anthropic-beta` header.
    #[must_use]
    pub fn with_beta(mut self, beta: impl Into<String>) -> Self {
        self.betas.push(beta.into());
        self
    }

    /// The same with one more tool that the API runs itself.
    #[must_use]
    pub fn with_server_tool(mut self, tool: ServerTool) -> Self {
        self.options.server_tools.push(tool);
        self
    }

    /// The same with another use of the provider's prompt cache.
    #[must_use]
    pub fn with_cache(mut self, policy: CachePolicy) -> Self {
        self.options.cache = policy;
        self
    }

    /// The same with another header, which is no secret. It wins over what is sent otherwise.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers = self.headers.with(name, value);
        self
    }

    /// Whether the address is Anthropic's own.
    pub fn is_anthropic(&self) -> bool {
        let uri = self.base_url.parse::<Uri>();
        uri.is_ok_and(|uri| {
            uri.host()
                .map(str::to_ascii_lowercase)
                .is_some_and(|host| host == "api.anthropic.com")
        })
    }

    /// The address of an endpoint under the base.
    pub(crate) fn endpoint(&self, path: &str) -> String {
        let base = self.base_url.trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base);
        format!("{base}/v1/{path}")
    }

    /// The headers of every request.
    pub(crate) fn all_headers(&self) -> Headers {
        let mut headers = Headers::new().with("anthropic-version", &self.options.api_version);
        if !self.betas.is_empty() {
            headers = headers.with(BETAS, &self.betas_with(&[]));
        }
        let headers = match self.credential.as_ref().filter(|it| is_given(it)) {
            Some(Credential::ApiKey(key)) => headers.with_secret("x-api-key", key),
            Some(Credential::AuthToken(token)) => headers.with_bearer(token),
            None => headers,
        };
        headers.with_all(&self.headers)
    }

    /// The features asked for and `more`, each once.
    pub(crate) fn betas_with(&self, more: &[String]) -> String {
        let mut names: Vec<&str> = Vec::with_capacity(self.betas.len() + more.len());
        for name in self.betas.iter().chain(more).map(|name| name.trim()) {
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(",")
    }

    /// Whether a server can be asked with it.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        let uri = self.base_url.parse::<Uri>().ok();
        let authority = uri
            .as_ref()
            .filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")))
            .and_then(Uri::authority);
        let Some(authority) = authority else {
            return Err(self.wrong(format!(
                "`{}` is no address: write it with http:// or https://, without /v1/messages",
                self.base_url
            )));
        };
        // Addresses are shown in messages and logs.
        if authority.as_str().contains('@') {
            return Err(
                self.wrong("the address holds a user or password: give the key as `api_key`")
            );
        }
        let says_who = self.credential.as_ref().is_some_and(is_given)
            || ["x-api-key", "authorization"]
                .iter()
                .any(|name| self.headers.contains(name));
        if !says_who && self.is_anthropic() {
            return Err(self.wrong(format!(
                "no key for Anthropic: set {API_KEY_VARIABLE} (or {AUTH_TOKEN_VARIABLE})"
            )));
        }
        let mut tools = self.options.server_tools.iter();
        if let Some(fault) = tools.find_map(ServerTool::fault) {
            return Err(self.wrong(fault));
        }
        let raw = self
            .options
            .server_tools
            .iter()
            .flat_map(|tool| match tool {
                ServerTool::Raw(raw) => raw.betas.as_slice(),
                _ => &[],
            });
        let raw: Vec<String> = raw.cloned().collect();
        let mut headers = self.all_headers();
        if !raw.is_empty() {
            headers = headers.with(BETAS, &self.betas_with(&raw));
        }
        headers.check(&self.provider)
    }

    fn wrong(&self, message: impl Into<String>) -> ModelError {
        ModelError::new(&self.provider, ModelErrorKind::Configuration, message)
    }
}

fn is_given(credential: &Credential) -> bool {
    !credential.secret().expose_secret().trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<AnthropicConfig, ModelError> {
        AnthropicConfig::from_lookup(|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn anthropic_needs_a_key_and_the_error_names_the_variable() {
        for variables in [&[][..], &[("ANTHROPIC_API_KEY", " ")]] {
            let error = from(variables).unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration);
            assert!(error.to_string().contains("ANTHROPIC_API_KEY"), "{error}");
        }
        assert!(AnthropicConfig::new("").check().is_err());
        assert!(
            AnthropicConfig::new("")
                .with_header("x-api-key", "k")
                .check()
                .is_ok()
        );
    }

    #[test]
    fn the_key_beats_the_token() {
        let both = [
            ("ANTHROPIC_API_KEY", "sk-1\n"),
            ("ANTHROPIC_AUTH_TOKEN", "token-1"),
        ];
        let headers = from(&both).unwrap().all_headers();
        assert!(headers.contains("x-api-key") && !headers.contains("authorization"));
        let headers = from(&both[1..]).unwrap().all_headers();
        assert!(!headers.contains("x-api-key") && headers.contains("authorization"));
    }

    #[test]
    fn headers_say_version_betas_and_what_is_wished_beside() {
        let config = AnthropicConfig::new("sk")
            .with_api_version("2026-10-21")
            .with_beta("a-1")
            .with_beta("b-2")
            .with_header("x-team", "weather");
        let headers = config.all_headers();
        assert_eq!(headers.get("anthropic-version"), Some("2026-10-21"));
        assert_eq!(headers.get("anthropic-beta"), Some("a-1,b-2"));
        assert_eq!(headers.get("x-team"), Some("weather"));
        let default = AnthropicConfig::new("sk").all_headers();
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
        let broken = AnthropicConfig::new("sk").with_header("bad name", "1");
        assert_eq!(
            broken.check().unwrap_err().kind,
            ModelErrorKind::Configuration
        );
    }

    #[test]
    fn another_server_needs_no_key() {
        let config = from(&[("ANTHROPIC_BASE_URL", "http://localhost:4000/")]).unwrap();
        assert!(config.credential.is_none());
        for base in [
            "http://localhost:4000",
            "http://localhost:4000/",
            "http://localhost:4000/v1/",
        ] {
            let config = AnthropicConfig::compatible("x", base);
            assert_eq!(
                config.endpoint("messages"),
                "http://localhost:4000/v1/messages"
            );
        }
        let evil = AnthropicConfig::compatible("x", "https://api.anthropic.com.evil.example");
        assert!(!evil.is_anthropic());
    }

    #[test]
    fn a_server_tool_that_would_be_refused_is_told_before_it_is_used() {
        let with = |tool: ServerTool| {
            AnthropicConfig::new("sk")
                .with_server_tool(ServerTool::web_search())
                .with_server_tool(tool)
                .check()
        };
        assert!(with(ServerTool::code_execution()).is_ok());
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
    fn betas_are_said_once() {
        let config = AnthropicConfig::new("sk")
            .with_beta("a-1")
            .with_beta(" b-2");
        let more = ["b-2".to_owned(), "c-3".to_owned(), String::new()];
        assert_eq!(config.betas_with(&more), "a-1,b-2,c-3");
    }

    #[test]
    fn a_wrong_address_is_told_before_it_is_used() {
        for address in ["", "localhost:4000", "ftp://example.org", "/v1", "http://"] {
            let error = AnthropicConfig::compatible("x", address)
                .check()
                .unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration, "{address}");
        }
        let error = AnthropicConfig::compatible("x", "https://user:hunter2@example.org")
            .check()
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
