//! Where the server is and who asks.

use std::fmt;

use http::Uri;
use secrecy::{ExposeSecret, SecretString};
use switchboard_domain::{ModelError, ModelErrorKind};
use switchboard_providers_common::TransportConfig;

use crate::{GeminiOptions, ServerTool, percent};

/// Google's own address.
pub const GEMINI_BASE_URL: &str = "https://generativelanguage.googleapis.com";
/// The version of the API that has all that this crate asks for.
pub const DEFAULT_API_VERSION: &str = "v1beta";
/// The environment variables with the key; the first wins, as in the official SDK.
pub const API_KEY_VARIABLES: [&str; 2] = ["GOOGLE_API_KEY", "GEMINI_API_KEY"];
/// The environment variable with another address.
pub const BASE_URL_VARIABLE: &str = "GOOGLE_GEMINI_BASE_URL";
/// The environment variable with another version of the API.
pub const API_VERSION_VARIABLE: &str = "GOOGLE_GENAI_API_VERSION";

/// How to reach the Gemini API or a server that speaks its wire.
///
/// ```
/// use switchboard_providers_gemini::GeminiConfig;
///
/// let google = GeminiConfig::new("AIza…");
/// assert!(google.is_google());
/// assert!(!format!("{google:?}").contains("AIza"));
/// let proxy = GeminiConfig::compatible("proxy", "http://localhost:4000/gemini");
/// assert!(proxy.api_key.is_none());
/// ```
#[derive(Clone)]
pub struct GeminiConfig {
    /// The name of the entry, as in [`ModelId::provider`](switchboard_domain::ModelId::provider).
    pub provider: String,
    /// The key, sent as `x-goog-api-key`. A server of one's own may need none.
    pub api_key: Option<SecretString>,
    /// The address, up to but without the version; one that ends with a version (`/v1beta`) is taken
    /// as it is.
    pub base_url: String,
    /// The version of the API: `v1beta`, `v1` or `v1alpha`.
    pub api_version: String,
    /// Whether answers are asked for as streams (`:streamGenerateContent`) unless a request wants its
    /// answer whole. Off for servers that give them only as a whole (`:generateContent`).
    pub streaming: bool,
    /// What the mapping is told beside the request.
    pub options: GeminiOptions,
    /// Time-outs, retries and the like.
    pub transport: TransportConfig,
}

impl fmt::Debug for GeminiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeminiConfig")
            .field("provider", &self.provider)
            .field("api_key", &self.api_key)
            .field("base_url", &self.shown())
            .field("api_version", &self.api_version)
            .field("streaming", &self.streaming)
            .field("options", &self.options)
            .field("transport", &self.transport)
            .finish()
    }
}

impl GeminiConfig {
    /// Google itself.
    pub fn new(api_key: impl Into<SecretString>) -> Self {
        Self {
            api_key: Some(api_key.into()),
            ..Self::compatible("gemini", GEMINI_BASE_URL)
        }
    }

    /// Another server that speaks the wire, without a key.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            api_key: None,
            base_url: base_url.into(),
            api_version: DEFAULT_API_VERSION.to_owned(),
            streaming: true,
            options: GeminiOptions::default(),
            transport: TransportConfig::default(),
        }
    }

    /// Reads `GOOGLE_API_KEY` or `GEMINI_API_KEY`, `GOOGLE_GEMINI_BASE_URL` and
    /// `GOOGLE_GENAI_API_VERSION`, as the official SDK does. An empty variable counts as unset.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] when the key is missing for Google's own address;
    /// a server at another address may need none.
    pub fn from_env() -> Result<Self, ModelError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// [`from_env`](Self::from_env) with another source of variables.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let get = |name: &str| {
            let value = lookup(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let base_url = get(BASE_URL_VARIABLE).unwrap_or_else(|| GEMINI_BASE_URL.to_owned());
        let mut config = Self {
            api_key: API_KEY_VARIABLES
                .iter()
                .find_map(|name| get(name))
                .map(SecretString::from),
            ..Self::compatible("gemini", base_url)
        };
        if let Some(version) = get(API_VERSION_VARIABLE) {
            config.api_version = version;
        }
        config.check()?;
        Ok(config)
    }

    /// The same with a key; an empty one counts as none.
    #[must_use]
    pub fn with_api_key(mut self, api_key: impl Into<SecretString>) -> Self {
        let api_key = api_key.into();
        self.api_key = (!api_key.expose_secret().trim().is_empty()).then_some(api_key);
        self
    }

    /// The same with other options.
    #[must_use]
    pub fn with_options(mut self, options: GeminiOptions) -> Self {
        self.options = options;
        self
    }

    /// Whether the address is Google's own.
    pub fn is_google(&self) -> bool {
        let uri = self.base_url.parse::<Uri>();
        uri.is_ok_and(|uri| {
            uri.host()
                .is_some_and(|host| host.eq_ignore_ascii_case("generativelanguage.googleapis.com"))
        })
    }

    /// The address of an endpoint under the base and the version.
    pub(crate) fn endpoint(&self, path: &str) -> String {
        let base = self.base_url.trim_end_matches('/');
        let last = base.rsplit('/').next().unwrap_or_default();
        let digit = last.strip_prefix('v').and_then(|it| it.bytes().next());
        let has_version = digit.is_some_and(|byte| byte.is_ascii_digit());
        match (has_version, self.api_version.trim_matches('/')) {
            (true, _) | (_, "") => format!("{base}/{path}"),
            (false, version) => format!("{base}/{version}/{path}"),
        }
    }

    /// The path of a model: `models/{name}`, or what the name itself says (`tunedModels/…`).
    ///
    /// Fails with [`ModelErrorKind::InvalidRequest`] for a name that would lead elsewhere.
    pub(crate) fn model_path(&self, name: &str) -> Result<String, ModelError> {
        let is_wrong = |segment: &str| matches!(segment, "" | "." | "..");
        if name.split('/').any(is_wrong) {
            let kind = ModelErrorKind::InvalidRequest {
                field: Some("model".to_owned()),
            };
            let message = format!("`{name}` is no name of a model");
            return Err(ModelError::new(&self.provider, kind, message));
        }
        let is_path = name.starts_with("models/") || name.starts_with("tunedModels/");
        let root = if is_path { "" } else { "models/" };
        Ok(format!("{root}{}", percent::encoded(name, b'/')))
    }

    /// The address without what may hold a secret.
    fn shown(&self) -> &str {
        let address = self.base_url.split(['?', '#']).next().unwrap_or_default();
        if address.contains('@') {
            "[hidden]"
        } else {
            address
        }
    }

    /// The key, unless it is blank.
    pub(crate) fn key(&self) -> Option<&SecretString> {
        let key = self.api_key.as_ref();
        key.filter(|key| !key.expose_secret().trim().is_empty())
    }

    /// Whether a server can be asked with it.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        // Addresses are shown in messages and logs.
        if self.base_url.contains(['@', '?', '#']) {
            return Err(self.wrong(
                "the address holds a user, a password or a query: give the key as `api_key`",
            ));
        }
        let uri = self.base_url.parse::<Uri>();
        let is_address = uri.is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
        });
        if !is_address {
            return Err(self.wrong(format!(
                "`{}` is no address: write it with http:// or https://",
                self.shown()
            )));
        }
        let is_version = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'/';
        if !self.api_version.bytes().all(is_version) {
            return Err(self.wrong("the version of the API is a word such as v1beta"));
        }
        if let Some(fault) = self.options.server_tools.iter().find_map(ServerTool::fault) {
            return Err(self.wrong(fault));
        }
        if self.key().is_none() && self.is_google() {
            let [first, second] = API_KEY_VARIABLES;
            return Err(self.wrong(format!("no key for Gemini: set {second} or {first}")));
        }
        Ok(())
    }

    fn wrong(&self, message: impl Into<String>) -> ModelError {
        ModelError::new(&self.provider, ModelErrorKind::Configuration, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<GeminiConfig, ModelError> {
        GeminiConfig::from_lookup(|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        })
    }

    fn key(config: &GeminiConfig) -> &str {
        config.key().map_or("", |key| key.expose_secret())
    }

    #[test]
    fn google_needs_a_key_and_the_error_names_the_variables() {
        for variables in [&[][..], &[("GEMINI_API_KEY", " "), ("GOOGLE_API_KEY", "")]] {
            let error = from(variables).unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration);
            assert!(
                error
                    .to_string()
                    .contains("GEMINI_API_KEY or GOOGLE_API_KEY"),
                "{error}"
            );
        }
        let one = from(&[("GEMINI_API_KEY", "secret-1\n")]).unwrap();
        assert_eq!((key(&one), one.provider.as_str()), ("secret-1", "gemini"));
        let both = from(&[
            ("GEMINI_API_KEY", "secret-1"),
            ("GOOGLE_API_KEY", "secret-2"),
        ])
        .unwrap();
        assert_eq!(key(&both), "secret-2");
        assert!(GeminiConfig::new(" ").check().is_err());
    }

    #[test]
    fn another_server_needs_none_and_may_have_its_own_version() {
        let config = from(&[
            ("GOOGLE_GEMINI_BASE_URL", "http://localhost:4000/gemini/"),
            ("GOOGLE_GENAI_API_VERSION", "v1alpha"),
        ])
        .unwrap();
        assert!(config.api_key.is_none() && !config.is_google());
        assert_eq!(
            config.endpoint("models"),
            "http://localhost:4000/gemini/v1alpha/models"
        );
        assert!(
            !GeminiConfig::compatible(
                "x",
                "https://generativelanguage.googleapis.com.evil.example"
            )
            .is_google()
        );
    }

    #[test]
    fn endpoints_stand_under_the_base_and_one_version() {
        for (base, expected) in [
            ("http://h", "http://h/v1beta/models"),
            ("http://h/", "http://h/v1beta/models"),
            ("http://h/v1", "http://h/v1/models"),
            ("http://h/v1beta/", "http://h/v1beta/models"),
            ("http://h/vertex", "http://h/vertex/v1beta/models"),
        ] {
            assert_eq!(
                GeminiConfig::compatible("x", base).endpoint("models"),
                expected
            );
        }
        let mut plain = GeminiConfig::compatible("x", "http://h/p");
        plain.api_version.clear();
        assert_eq!(plain.endpoint("models"), "http://h/p/models");
    }

    #[test]
    fn the_name_of_a_model_leads_to_it_and_nowhere_else() {
        let config = GeminiConfig::new("k");
        for (name, expected) in [
            ("gemini-3.8-flash", "models/gemini-3.8-flash"),
            ("models/gemini-3.8-flash", "models/gemini-3.8-flash"),
            ("tunedModels/mine", "tunedModels/mine"),
            ("a b?c#d%ü", "models/a%20b%3Fc%23d%25%C3%BC"),
        ] {
            assert_eq!(config.model_path(name).unwrap(), expected);
        }
        for name in ["", "..", "models/../files", "a//b", "/a", "a/."] {
            let error = config.model_path(name).unwrap_err();
            let field = Some("model".to_owned());
            assert_eq!(
                error.kind,
                ModelErrorKind::InvalidRequest { field },
                "{name}"
            );
        }
    }

    #[test]
    fn a_wrong_address_is_told_before_it_is_used() {
        for address in ["", "localhost:8000", "ftp://example.org", "/v1", "http://"] {
            let error = GeminiConfig::compatible("x", address).check().unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration, "{address}");
        }
        for address in [
            "https://user:hunter2@example.org",
            "https://example.org?key=hunter2",
            "user:hunter2@example.org",
        ] {
            let config = GeminiConfig::compatible("x", address);
            let error = config.check().unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
            assert!(!format!("{config:?}").contains("hunter2"), "{config:?}");
        }
        let mut tool = GeminiConfig::new("k");
        let raw = serde_json::json!({"type": "raw", "declaration": {}});
        tool.options.server_tools = vec![serde_json::from_value(raw).unwrap()];
        assert!(tool.check().unwrap_err().to_string().contains("one field"));
        let mut odd = GeminiConfig::new("k");
        odd.api_version = "v1?x".into();
        assert!(odd.check().is_err());
    }
}
