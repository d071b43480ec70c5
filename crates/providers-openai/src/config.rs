//! Where the server is, who asks, and how it differs.

use std::fmt;

use http::Uri;
use secrecy::{ExposeSecret, SecretString};
use switchboard_domain::{ModelError, ModelErrorKind};
use switchboard_providers_common::TransportConfig;

use crate::{Profile, ServerTool, chat::ChatOptions, responses::ResponsesOptions};

/// OpenAI's own address.
pub const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";
/// The environment variable with the key.
pub const API_KEY_VARIABLE: &str = "OPENAI_API_KEY";
/// The environment variable with another address.
pub const BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";
/// The environment variable with the organization.
pub const ORGANIZATION_VARIABLE: &str = "OPENAI_ORG_ID";
/// The environment variable with the project.
pub const PROJECT_VARIABLE: &str = "OPENAI_PROJECT_ID";

/// How to reach OpenAI or a server that speaks its wire.
///
/// ```
/// use switchboard_providers_openai::{OpenAiConfig, Profile};
///
/// let openai = OpenAiConfig::new("sk-…");
/// let ollama = OpenAiConfig::compatible("local", "http://localhost:11434/v1");
/// assert_eq!(ollama.profile, Profile::generic());
/// assert!(!format!("{openai:?}").contains("sk-"));
/// ```
#[derive(Clone)]
pub struct OpenAiConfig {
    /// The name of the entry, as in [`ModelId::provider`](switchboard_domain::ModelId::provider):
    /// `openai`, `litellm`, …
    pub provider: String,
    /// The key, sent as [`Profile::auth`] says. A server of one's own may need none.
    pub api_key: Option<SecretString>,
    /// The address up to and with `/v1`; a slash at its end does not matter. A query (Azure's
    /// `?api-version=…`) is kept.
    pub base_url: String,
    /// `OpenAI-Organization`, for keys of several organizations.
    pub organization: Option<String>,
    /// `OpenAI-Project`, for keys of several projects.
    pub project: Option<String>,
    /// How the server differs from others.
    pub profile: Profile,
    /// What its models are told beside each request over Chat Completions.
    pub chat: ChatOptions,
    /// The same over Responses.
    pub responses: ResponsesOptions,
    /// Time-outs, retries and the like.
    pub transport: TransportConfig,
}

impl fmt::Debug for OpenAiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiConfig")
            .field("provider", &self.provider)
            .field("api_key", &self.api_key)
            .field("base_url", &self.shown())
            .field("organization", &self.organization)
            .field("project", &self.project)
            .field("profile", &self.profile)
            .field("chat", &self.chat)
            .field("responses", &self.responses)
            .field("transport", &self.transport)
            .finish()
    }
}

impl OpenAiConfig {
    /// OpenAI itself.
    pub fn new(api_key: impl Into<SecretString>) -> Self {
        Self {
            api_key: Some(api_key.into()),
            profile: Profile::openai(),
            ..Self::compatible("openai", OPENAI_BASE_URL)
        }
    }

    /// Another server that speaks the wire, without a key and with the generic profile.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            api_key: None,
            base_url: base_url.into(),
            organization: None,
            project: None,
            profile: Profile::generic(),
            chat: ChatOptions::default(),
            responses: ResponsesOptions::default(),
            transport: TransportConfig::default(),
        }
    }

    /// Reads `OPENAI_API_KEY`, `OPENAI_BASE_URL`, `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID`, as the
    /// official SDK does. An empty variable counts as unset.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] when the key is missing for OpenAI's own
    /// address; a server at another address may need none, and has the generic profile.
    pub fn from_env() -> Result<Self, ModelError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// [`from_env`](Self::from_env) with another source of variables.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let get = |name: &str| {
            let value = lookup(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let base_url = get(BASE_URL_VARIABLE).unwrap_or_else(|| OPENAI_BASE_URL.to_owned());
        let mut config = Self {
            api_key: get(API_KEY_VARIABLE).map(SecretString::from),
            organization: get(ORGANIZATION_VARIABLE),
            project: get(PROJECT_VARIABLE),
            ..Self::compatible("openai", base_url)
        };
        if config.is_openai() {
            config.profile = Profile::openai();
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

    /// The same with another profile.
    #[must_use]
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// The same with other options of Chat Completions.
    #[must_use]
    pub fn with_chat(mut self, options: ChatOptions) -> Self {
        self.chat = options;
        self
    }

    /// The same with other options of Responses.
    #[must_use]
    pub fn with_responses(mut self, options: ResponsesOptions) -> Self {
        self.responses = options;
        self
    }

    /// Whether the address is OpenAI's own, a regional one included.
    pub fn is_openai(&self) -> bool {
        let uri = self.base_url.parse::<Uri>();
        uri.is_ok_and(|uri| {
            uri.host()
                .map(str::to_ascii_lowercase)
                .is_some_and(|host| host == "api.openai.com" || host.ends_with(".api.openai.com"))
        })
    }

    /// The address of an endpoint under the base.
    pub(crate) fn endpoint(&self, path: &str) -> String {
        let (base, query) = match self.base_url.split_once('?') {
            Some((base, query)) => (base, format!("?{query}")),
            None => (self.base_url.as_str(), String::new()),
        };
        format!("{}/{path}{query}", base.trim_end_matches('/'))
    }

    /// The address without what may hold a secret.
    fn shown(&self) -> &str {
        shown_address(&self.base_url)
    }

    /// The key, unless it is blank.
    pub(crate) fn key(&self) -> Option<&SecretString> {
        let key = self.api_key.as_ref();
        key.filter(|key| !key.expose_secret().trim().is_empty())
    }

    /// Whether a server can be asked with it.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        // Addresses are shown in messages and logs.
        if self.base_url.contains('@') {
            return Err(
                self.wrong("the address holds a user or password: give the key as `api_key`")
            );
        }
        let uri = self.base_url.parse::<Uri>();
        let is_address = uri.is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
        });
        if !is_address {
            return Err(self.wrong(format!(
                "`{}` is no address: write it with http:// or https://, up to and with /v1",
                self.shown()
            )));
        }
        if self.key().is_none() && self.is_openai() {
            return Err(self.wrong(format!("no key for OpenAI: set {API_KEY_VARIABLE}")));
        }
        let mut tools = self.responses.server_tools.iter();
        if let Some(fault) = tools.find_map(ServerTool::fault) {
            return Err(self.wrong(fault));
        }
        Ok(())
    }

    pub(crate) fn wrong(&self, message: impl Into<String>) -> ModelError {
        ModelError::new(&self.provider, ModelErrorKind::Configuration, message)
    }
}

/// An address without what may hold a secret.
pub(crate) fn shown_address(address: &str) -> &str {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    if address.contains('@') {
        "[hidden]"
    } else {
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<OpenAiConfig, ModelError> {
        OpenAiConfig::from_lookup(|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn openai_needs_a_key_and_the_error_names_the_variable() {
        for variables in [&[][..], &[("OPENAI_API_KEY", " ")]] {
            let error = from(variables).unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration);
            assert!(error.to_string().contains("OPENAI_API_KEY"), "{error}");
        }
        let config = from(&[("OPENAI_API_KEY", "sk-secret\n")]).unwrap();
        assert_eq!(config.api_key.unwrap().expose_secret(), "sk-secret");
        assert_eq!(config.profile, Profile::openai());
        let blank = OpenAiConfig::new("");
        assert!(blank.check().is_err());
    }

    #[test]
    fn another_server_needs_none_and_is_generic() {
        let config = from(&[("OPENAI_BASE_URL", "http://localhost:8000/v1/")]).unwrap();
        assert!(config.api_key.is_none());
        assert_eq!(config.profile, Profile::generic());
        assert_eq!(
            config.endpoint("chat/completions"),
            "http://localhost:8000/v1/chat/completions"
        );
        let regional = [
            ("OPENAI_BASE_URL", "https://EU.api.openai.com/v1"),
            ("OPENAI_API_KEY", "k"),
            ("OPENAI_ORG_ID", "org-1"),
            ("OPENAI_PROJECT_ID", "proj_1"),
        ];
        let config = from(&regional).unwrap();
        assert_eq!(config.profile, Profile::openai());
        assert_eq!(config.organization.as_deref(), Some("org-1"));
        assert_eq!(config.project.as_deref(), Some("proj_1"));
        assert!(
            !OpenAiConfig::compatible("x", "https://api.openai.com.evil.example/v1").is_openai()
        );
    }

    #[test]
    fn a_wrong_address_is_told_before_it_is_used() {
        for address in [
            "",
            "localhost:8000/v1",
            "ftp://example.org/v1",
            "/v1",
            "http://",
        ] {
            let error = OpenAiConfig::compatible("x", address).check().unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration, "{address}");
        }
        for address in [
            "https://user:hunter2@example.org/v1",
            "user:hunter2@example.org",
        ] {
            let error = OpenAiConfig::compatible("x", address).check().unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn endpoints_stand_under_the_base_and_before_its_query() {
        for (base, expected) in [
            ("http://h/v1", "http://h/v1/models"),
            ("http://h/v1//", "http://h/v1/models"),
            (
                "http://h/d/?api-version=1",
                "http://h/d/models?api-version=1",
            ),
        ] {
            assert_eq!(
                OpenAiConfig::compatible("x", base).endpoint("models"),
                expected
            );
        }
    }

    #[test]
    fn the_key_is_never_printed() {
        let mut config = OpenAiConfig::new("sk-secret");
        for base_url in ["http://h/v1?key=sk-secret", "http://me:sk-secret@h/v1"] {
            config.base_url = base_url.to_owned();
            assert!(!format!("{config:?}").contains("sk-secret"));
        }
    }
}
