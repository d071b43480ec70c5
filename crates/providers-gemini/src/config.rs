//! Configuration of a server: its address, key and options.

use secrecy::SecretString;
use serde_json::Value;
use switchboard_domain::ModelError;
use switchboard_providers_common::{
    Headers, TransportConfig,
    provider::{ErrorTable, ModelPage, ProviderConfig, is_blank, read_env_var, redacted_address},
    request::invalid_request,
};

use crate::{
    GeminiOptions, ServerTool,
    error::ERRORS,
    model::GenerateContentApi,
    model_list::{MODELS_PATH, parse_model_list_page},
    percent_encoding::percent_encode,
};

/// Base URL of Google's own API.
pub const GEMINI_BASE_URL: &str = "https://generativelanguage.googleapis.com";
/// The default API version. It is a beta version, because `v1` lacks features that this crate uses.
pub const DEFAULT_API_VERSION: &str = "v1beta";
/// Names of the environment variables with the API key. The first one that is set is used, as in
/// the official SDK.
pub const API_KEY_VARIABLES: [&str; 2] = ["GOOGLE_API_KEY", "GEMINI_API_KEY"];
/// Name of the environment variable that overrides the base URL.
pub const BASE_URL_VARIABLE: &str = "GOOGLE_GEMINI_BASE_URL";
/// Name of the environment variable that overrides the API version.
pub const API_VERSION_VARIABLE: &str = "GOOGLE_GENAI_API_VERSION";

/// The configuration for the Gemini API or a compatible server.
///
/// ```
/// use switchboard_providers_gemini::GeminiConfig;
///
/// let google = GeminiConfig::new("AIza…");
/// assert!(google.is_google_host());
/// assert!(!format!("{google:?}").contains("AIza"));
/// let proxy = GeminiConfig::for_compatible_server("proxy", "http://localhost:4000/gemini");
/// assert!(proxy.api_key.is_none());
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct GeminiConfig {
    /// Name of the provider, as in [`ModelId::provider`](switchboard_domain::ModelId::provider).
    pub provider: String,
    /// The API key, sent in the header `x-goog-api-key`. Google's own address requires a key.
    pub api_key: Option<SecretString>,
    /// Base URL without the API version. A URL that ends with a version (`/v1beta`) is used
    /// unchanged.
    #[debug("{:?}", redacted_address(base_url))]
    pub base_url: String,
    /// The API version: `v1beta`, `v1` or `v1alpha`. If empty, URLs contain no version.
    pub api_version: String,
    /// Whether answers are streamed (`:streamGenerateContent`). A request with
    /// [`Delivery::Whole`](switchboard_domain::Delivery::Whole) is never streamed. Set this field
    /// to `false` for servers that support only `:generateContent`.
    pub streaming: bool,
    /// Options of the mapping between requests and the Gemini API.
    pub options: GeminiOptions,
    /// Time-outs and retry policy of HTTP requests.
    pub transport: TransportConfig,
}

impl GeminiConfig {
    /// Creates the configuration for Google's own API.
    pub fn new(api_key: impl Into<SecretString>) -> Self {
        Self::for_compatible_server("gemini", GEMINI_BASE_URL).with_api_key(api_key)
    }

    /// Creates the configuration for a compatible server, without an API key.
    pub fn for_compatible_server(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
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

    /// Sets the API key. A blank key removes it.
    #[must_use]
    pub fn with_api_key(mut self, api_key: impl Into<SecretString>) -> Self {
        self.api_key = Some(api_key.into()).filter(|key| !is_blank(key));
        self
    }

    /// Returns whether the base URL has the host `generativelanguage.googleapis.com`, which
    /// requires an API key.
    pub fn is_google_host(&self) -> bool {
        self.is_base_url_on_host("generativelanguage.googleapis.com")
    }

    /// Returns the URL path of a model: `models/{name}`, or the name itself if it is a path
    /// (`tunedModels/…`).
    ///
    /// Fails with [`InvalidRequest`](switchboard_domain::ModelErrorKind::InvalidRequest) if a path
    /// segment is empty, `.` or `..`.
    pub(crate) fn model_path(&self, name: &str) -> Result<String, ModelError> {
        let is_wrong = |segment: &str| matches!(segment, "" | "." | "..");
        if name.split('/').any(is_wrong) {
            let message = format!("`{name}` is not a model name");
            return Err(invalid_request(&self.provider, "model", message));
        }
        let is_path = name.starts_with("models/") || name.starts_with("tunedModels/");
        let root = if is_path { "" } else { "models/" };
        Ok(format!("{root}{}", percent_encode(name, b'/')))
    }
}

impl ProviderConfig for GeminiConfig {
    type DefaultWire = GenerateContentApi;

    const MODELS_PATH: &'static str = MODELS_PATH;
    const ERROR_TABLE: &'static ErrorTable = &ERRORS;

    /// Creates the configuration from `GOOGLE_API_KEY` or `GEMINI_API_KEY`,
    /// `GOOGLE_GEMINI_BASE_URL` (base URL) and `GOOGLE_GENAI_API_VERSION` (API version).
    fn from_env_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let get = |name: &str| read_env_var(&lookup, name);
        let base_url = get(BASE_URL_VARIABLE).unwrap_or_else(|| GEMINI_BASE_URL.to_owned());
        let mut config = Self::for_compatible_server("gemini", base_url);
        config.api_key = API_KEY_VARIABLES
            .iter()
            .find_map(|name| get(name))
            .map(SecretString::from);
        if let Some(version) = get(API_VERSION_VARIABLE) {
            config.api_version = version;
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
        let last = base.rsplit('/').next().unwrap_or_default();
        let digit = last.strip_prefix('v').and_then(|it| it.bytes().next());
        let has_version = digit.is_some_and(|byte| byte.is_ascii_digit());
        match (has_version, self.api_version.trim_matches('/')) {
            (true, _) | (_, "") => format!("{base}/{path}"),
            (false, version) => format!("{base}/{version}/{path}"),
        }
    }

    fn headers(&self) -> Headers {
        match self.api_key.as_ref().filter(|key| !is_blank(key)) {
            Some(key) => Headers::new().with_secret("x-goog-api-key", key),
            None => Headers::new(),
        }
    }

    fn transport_config(&self) -> TransportConfig {
        self.transport.clone()
    }

    fn validate_config(&self) -> Result<(), ModelError> {
        self.check_base_url("it must begin with http:// or https://")?;
        if self.base_url.contains(['?', '#']) {
            let message = "the address contains a query: set the key as `api_key` instead";
            return Err(self.configuration_error(message));
        }
        let is_version = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'/';
        if !self.api_version.bytes().all(is_version) {
            let message = "the API version can contain only letters, digits and `/`, as in v1beta";
            return Err(self.configuration_error(message));
        }
        if let Some(fault) = self
            .options
            .server_tools
            .iter()
            .find_map(ServerTool::find_configuration_error)
        {
            return Err(self.configuration_error(fault));
        }
        if self.api_key.as_ref().is_none_or(is_blank) && self.is_google_host() {
            let [first, second] = API_KEY_VARIABLES;
            let message = format!("no API key for Gemini: set {second} or {first}");
            return Err(self.configuration_error(message));
        }
        Ok(())
    }

    fn parse_model_list(&self, body: &Value) -> Option<ModelPage> {
        parse_model_list_page(body)
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;
    use switchboard_domain::ModelErrorKind;

    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<GeminiConfig, ModelError> {
        GeminiConfig::from_env_lookup(|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        })
    }

    fn key(config: &GeminiConfig) -> &str {
        config
            .api_key
            .as_ref()
            .map_or("", |key| key.expose_secret())
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
        assert!(GeminiConfig::new(" ").validate_config().is_err());
    }

    #[test]
    fn another_server_needs_none_and_may_have_its_own_version() {
        let config = from(&[
            ("GOOGLE_GEMINI_BASE_URL", "http://localhost:4000/gemini/"),
            ("GOOGLE_GENAI_API_VERSION", "v1alpha"),
        ])
        .unwrap();
        assert!(config.api_key.is_none() && !config.is_google_host());
        assert_eq!(
            config.endpoint("models"),
            "http://localhost:4000/gemini/v1alpha/models"
        );
        assert!(
            !GeminiConfig::for_compatible_server(
                "x",
                "https://generativelanguage.googleapis.com.evil.example"
            )
            .is_google_host()
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
                GeminiConfig::for_compatible_server("x", base).endpoint("models"),
                expected
            );
        }
        let mut plain = GeminiConfig::for_compatible_server("x", "http://h/p");
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
            let error = GeminiConfig::for_compatible_server("x", address)
                .validate_config()
                .unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration, "{address}");
        }
        for address in [
            "https://user:hunter2@example.org",
            "https://example.org?key=hunter2",
            "user:hunter2@example.org",
        ] {
            let config = GeminiConfig::for_compatible_server("x", address);
            let error = config.validate_config().unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
            assert!(!format!("{config:?}").contains("hunter2"), "{config:?}");
        }
        let mut tool = GeminiConfig::new("k");
        let raw = serde_json::json!({"type": "raw", "declaration": {}});
        tool.options.server_tools = vec![serde_json::from_value(raw).unwrap()];
        assert!(
            tool.validate_config()
                .unwrap_err()
                .to_string()
                .contains("one field")
        );
        let mut odd = GeminiConfig::new("k");
        odd.api_version = "v1?x".into();
        assert!(odd.validate_config().is_err());
    }
}
