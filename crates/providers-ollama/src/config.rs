//! Where the server is and who asks.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use switchboard_domain::{ModelError, ModelErrorKind};
use switchboard_providers_common::{TransportConfig, text_tool_calls::RecoveryForms};

use crate::address::{base_url, is_cloud};

/// The environment variable with the address.
pub const HOST_VARIABLE: &str = "OLLAMA_HOST";
/// The environment variable with the key for Ollama's cloud.
pub const API_KEY_VARIABLE: &str = "OLLAMA_API_KEY";
/// Default address of a server on this machine.
pub const LOCAL_BASE_URL: &str = "http://127.0.0.1:11434";

/// How to reach a server.
///
/// ```
/// use switchboard_providers_ollama::OllamaConfig;
///
/// assert_eq!(OllamaConfig::local().base_url, "http://127.0.0.1:11434");
/// assert_eq!(OllamaConfig::at("gpu:8080")?.base_url, "http://gpu:8080");
/// let cloud = OllamaConfig::at("ollama.com")?.with_api_key("secret");
/// assert!(!format!("{cloud:?}").contains("secret"));
/// # Ok::<(), switchboard_domain::ModelError>(())
/// ```
#[derive(Clone)]
pub struct OllamaConfig {
    /// The name of the entry, as in [`ModelId::provider`](switchboard_domain::ModelId::provider).
    pub provider: String,
    /// The base address of `/api/chat`, as [`OllamaConfig::at`] parses it: scheme, host and port,
    /// and optionally a path.
    pub base_url: String,
    /// The key, sent as `Authorization: Bearer`. A server of one's own needs none; the cloud does.
    pub api_key: Option<SecretString>,
    /// Time-outs, retries and the like. No proxy is used for this machine's own addresses.
    pub transport: TransportConfig,
    /// Forms of tool calls in text that are parsed as tool uses. The server parses the forms of its
    /// own templates and leaves other forms in the text.
    pub text_calls: RecoveryForms,
    /// Models that get tools in the prompt.
    pub tools_by_prompt: ToolsByPrompt,
}

/// Models that get tools in the prompt. Their instructions describe the tools, calls are parsed
/// from their text, and earlier calls and results are sent as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolsByPrompt {
    /// None: a request with tools for a model that has none is refused.
    #[default]
    Never,
    /// Models that do not support tools, by the server's description
    /// ([`OllamaClient::model_as_shown`](crate::OllamaClient::model_as_shown)) or by its refusal of
    /// the request.
    Auto,
    /// All.
    Always,
}

impl From<bool> for ToolsByPrompt {
    fn from(always: bool) -> Self {
        if always { Self::Always } else { Self::Never }
    }
}

impl fmt::Debug for OllamaConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OllamaConfig")
            .field("provider", &self.provider)
            .field("base_url", &self.shown())
            .field("api_key", &self.api_key)
            .field("transport", &self.transport)
            .field("text_calls", &self.text_calls)
            .field("tools_by_prompt", &self.tools_by_prompt)
            .finish()
    }
}

impl OllamaConfig {
    /// Returns the configuration for the server on this machine, at the default port, without a
    /// key. Calls in text are parsed in the forms that such servers leave there. Tools are not sent
    /// in the prompt.
    pub fn local() -> Self {
        Self {
            provider: "ollama".to_owned(),
            base_url: LOCAL_BASE_URL.to_owned(),
            api_key: None,
            transport: TransportConfig::default(),
            text_calls: RecoveryForms::LOCAL_SERVERS,
            tools_by_prompt: ToolsByPrompt::Never,
        }
    }

    /// Returns the configuration for the server at `host`, in any form of `OLLAMA_HOST`: `gpu`,
    /// `gpu:8080`, `https://gpu/ollama/`, `0.0.0.0` (this machine) or empty.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] if the address is invalid.
    pub fn at(host: &str) -> Result<Self, ModelError> {
        let local = Self::local();
        match base_url(host) {
            Ok(base_url) => Ok(Self { base_url, ..local }),
            Err(fault) => Err(local.wrong(fault.to_string()).with_source(fault)),
        }
    }

    /// Reads `OLLAMA_HOST` and `OLLAMA_API_KEY`, like the official SDK. An empty variable counts as
    /// unset.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] if the address is invalid, or if it is the
    /// cloud's and the key is missing.
    pub fn from_env() -> Result<Self, ModelError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// [`from_env`](Self::from_env) with another source of variables.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let mut config = Self::at(&lookup(HOST_VARIABLE).unwrap_or_default())?;
        if let Some(key) = lookup(API_KEY_VARIABLE) {
            config = config.with_api_key(key.trim());
        }
        config.check()?;
        Ok(config)
    }

    /// Sets the key. An empty key counts as unset.
    #[must_use]
    pub fn with_api_key(mut self, api_key: impl Into<SecretString>) -> Self {
        let api_key = api_key.into();
        self.api_key = (!api_key.expose_secret().trim().is_empty()).then_some(api_key);
        self
    }

    /// Whether the server is Ollama's own cloud.
    pub fn is_cloud(&self) -> bool {
        is_cloud(&self.base_url)
    }

    /// The address of an endpoint, such as `api/chat`.
    pub(crate) fn endpoint(&self, path: &str) -> String {
        format!("{}/{path}", self.base_url.trim_end_matches('/'))
    }

    /// The address without what may hold a secret.
    pub(crate) fn shown(&self) -> &str {
        let address = self.base_url.split('?').next().unwrap_or_default();
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
        base_url(&self.base_url)
            .map_err(|fault| self.wrong(fault.to_string()).with_source(fault))?;
        if self.key().is_none() && self.is_cloud() {
            let message = format!("no key for Ollama's cloud: set {API_KEY_VARIABLE}");
            return Err(self.wrong(message));
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

    fn from(variables: &[(&str, &str)]) -> Result<OllamaConfig, ModelError> {
        OllamaConfig::from_lookup(|name| {
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
        let mut config = OllamaConfig::local();
        config.base_url = "http://me:hunter2@gpu".to_owned();
        let error = config.check().unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn endpoints_are_appended_to_the_base_address() {
        let config = OllamaConfig::at("gpu/ollama/").unwrap();
        assert_eq!(
            config.endpoint("api/chat"),
            "http://gpu:11434/ollama/api/chat"
        );
    }
}
