//! Configuration of a server: its address, credentials and options.

use secrecy::SecretString;
use serde_json::Value;
use switchboard_domain::ModelError;
use switchboard_providers_common::{
    Headers, TransportConfig,
    provider::{
        ErrorTable, ModelPage, ProviderConfig, ServedModel, is_blank, read_env_var,
        redacted_address,
    },
};

use crate::{
    Profile, ServerTool, chat::ChatOptions, error::ERRORS, model::ChatCompletionsApi,
    responses::ResponsesOptions, server_profile::AuthHeader,
};

/// Base address of OpenAI's own API.
pub const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";
/// Name of the environment variable with the API key.
pub const API_KEY_VARIABLE: &str = "OPENAI_API_KEY";
/// Name of the environment variable with the base address of the API. Without this variable, the
/// address is [`OPENAI_BASE_URL`].
pub const BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";
/// Name of the environment variable with the OpenAI organization.
pub const ORGANIZATION_VARIABLE: &str = "OPENAI_ORG_ID";
/// Name of the environment variable with the OpenAI project.
pub const PROJECT_VARIABLE: &str = "OPENAI_PROJECT_ID";

/// Fields that contain the context window of a model, in tokens, in a server's list of models.
/// Sources, in this order: OpenRouter and Together, vLLM, Groq, Mistral.
const CONTEXT_WINDOW_FIELDS: [&str; 4] = [
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
];

/// Configuration of OpenAI's API or of a compatible server.
///
/// ```
/// use switchboard_providers_openai::{OpenAiConfig, Profile};
///
/// let openai = OpenAiConfig::new("sk-…");
/// let local = OpenAiConfig::for_compatible_server("local", "http://localhost:11434/v1");
/// assert_eq!(local.profile, Profile::generic());
/// assert!(!format!("{openai:?}").contains("sk-"));
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct OpenAiConfig {
    /// Name of the provider, as in [`ModelId::provider`](switchboard_domain::ModelId::provider).
    pub provider: String,
    /// API key, sent in the header that [`Profile::auth`] selects. OpenAI's own address requires a
    /// key.
    pub api_key: Option<SecretString>,
    /// Base address of the API, which ends with `/v1` on most servers. A trailing slash is
    /// accepted. A query, such as Azure's `?api-version=…`, is added to the address of every
    /// request.
    #[debug("{:?}", redacted_address(base_url))]
    pub base_url: String,
    /// Value of the header `OpenAI-Organization`, which selects one of several organizations of the
    /// API key. `None` omits the header.
    pub organization: Option<String>,
    /// Value of the header `OpenAI-Project`, which selects one of several projects of the API key.
    /// `None` omits the header.
    pub project: Option<String>,
    /// Profile of the server: the fields and features of OpenAI's APIs that the server supports.
    pub profile: Profile,
    /// Options of models on the Chat Completions API.
    pub chat: ChatOptions,
    /// Options of models on the Responses API.
    pub responses: ResponsesOptions,
    /// Time-outs and retry policy of requests.
    pub transport: TransportConfig,
}

impl OpenAiConfig {
    /// Creates the configuration of OpenAI's own API.
    pub fn new(api_key: impl Into<SecretString>) -> Self {
        Self {
            api_key: Some(api_key.into()),
            profile: Profile::openai(),
            ..Self::for_compatible_server("openai", OPENAI_BASE_URL)
        }
    }

    /// Creates the configuration of a compatible server, with [`Profile::generic`] and without an
    /// API key.
    pub fn for_compatible_server(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
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

    /// Sets the API key. A blank key is treated as no key.
    #[must_use]
    pub fn with_api_key(mut self, api_key: impl Into<SecretString>) -> Self {
        self.api_key = Some(api_key.into()).filter(|key| !is_blank(key));
        self
    }

    /// Sets the profile of the server.
    #[must_use]
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Returns whether the host of the base address is `api.openai.com` or a subdomain, such as the
    /// regional `eu.api.openai.com`.
    pub fn is_openai(&self) -> bool {
        self.is_base_url_on_host("api.openai.com")
    }

    /// Returns the API key unless it is blank.
    fn nonblank_api_key(&self) -> Option<&SecretString> {
        self.api_key.as_ref().filter(|key| !is_blank(key))
    }
}

impl ProviderConfig for OpenAiConfig {
    type DefaultWire = ChatCompletionsApi;

    const MODELS_PATH: &'static str = "models";
    const ERROR_TABLE: &'static ErrorTable = &ERRORS;

    /// Creates the configuration from the environment variables `OPENAI_API_KEY`,
    /// `OPENAI_BASE_URL`, `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID`. A server that is not OpenAI's
    /// gets [`Profile::generic`].
    ///
    /// Fails with `ModelErrorKind::Configuration` if the base address is invalid, or if OpenAI's
    /// own API has no key.
    fn from_env_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let get = |name: &str| read_env_var(&lookup, name);
        let base_url = get(BASE_URL_VARIABLE).unwrap_or_else(|| OPENAI_BASE_URL.to_owned());
        let mut config = Self {
            api_key: get(API_KEY_VARIABLE).map(SecretString::from),
            organization: get(ORGANIZATION_VARIABLE),
            project: get(PROJECT_VARIABLE),
            ..Self::for_compatible_server("openai", base_url)
        };
        if config.is_openai() {
            config.profile = Profile::openai();
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
        let (base, query) = match self.base_url.split_once('?') {
            Some((base, query)) => (base, format!("?{query}")),
            None => (self.base_url.as_str(), String::new()),
        };
        format!("{}/{path}{query}", base.trim_end_matches('/'))
    }

    fn headers(&self) -> Headers {
        let mut headers = Headers::new();
        if let Some(key) = self.nonblank_api_key() {
            headers = match self.profile.auth {
                AuthHeader::Bearer => headers.with_bearer(key),
                AuthHeader::ApiKey => headers.with_secret("api-key", key),
            };
        }
        if let Some(organization) = &self.organization {
            headers = headers.with_header("openai-organization", organization);
        }
        if let Some(project) = &self.project {
            headers = headers.with_header("openai-project", project);
        }
        headers
    }

    fn transport_config(&self) -> TransportConfig {
        self.transport.clone()
    }

    fn validate_config(&self) -> Result<(), ModelError> {
        self.check_base_url("it must begin with http:// or https:// and end with /v1")?;
        if self.nonblank_api_key().is_none() && self.is_openai() {
            let message = format!("no API key for OpenAI: set {API_KEY_VARIABLE}");
            return Err(self.configuration_error(message));
        }
        let mut tools = self.responses.server_tools.iter();
        match tools.find_map(ServerTool::find_configuration_error) {
            Some(message) => Err(self.configuration_error(message)),
            None => Ok(()),
        }
    }

    /// Parses a list of models: an object `{"data": [{id, …}]}` or, from Together, the array
    /// without this object. Skips entries without an `id`. Returns `None` if the body contains no
    /// such array.
    fn parse_model_list(&self, body: &Value) -> Option<ModelPage> {
        let list = body.get("data").unwrap_or(body).as_array()?;
        let models = list.iter().filter_map(|entry| {
            let name = entry.get("id")?.as_str().filter(|id| !id.is_empty())?;
            let number = |field: &&str| entry.get(field).and_then(Value::as_u64);
            Some(ServedModel {
                name: name.to_owned(),
                context_window: CONTEXT_WINDOW_FIELDS.iter().find_map(number),
                ..ServedModel::default()
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
    use secrecy::ExposeSecret as _;
    use switchboard_domain::ModelErrorKind;

    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<OpenAiConfig, ModelError> {
        OpenAiConfig::from_env_lookup(|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn openai_requires_a_key_and_the_error_names_the_variable() {
        for variables in [&[][..], &[("OPENAI_API_KEY", " ")]] {
            let error = from(variables).unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration);
            assert!(error.to_string().contains("OPENAI_API_KEY"), "{error}");
        }
        let config = from(&[("OPENAI_API_KEY", "sk-secret\n")]).unwrap();
        assert_eq!(config.api_key.unwrap().expose_secret(), "sk-secret");
        assert_eq!(config.profile, Profile::openai());
        let blank = OpenAiConfig::new("");
        assert!(blank.validate_config().is_err());
    }

    #[test]
    fn a_compatible_server_needs_no_key_and_is_generic() {
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
            !OpenAiConfig::for_compatible_server("x", "https://api.openai.com.evil.example/v1")
                .is_openai()
        );
    }

    #[test]
    fn an_endpoint_is_inserted_before_the_query_of_the_base_address() {
        for (base, expected) in [
            ("http://h/v1", "http://h/v1/models"),
            ("http://h/v1//", "http://h/v1/models"),
            (
                "http://h/d/?api-version=1",
                "http://h/d/models?api-version=1",
            ),
        ] {
            assert_eq!(
                OpenAiConfig::for_compatible_server("x", base).endpoint("models"),
                expected
            );
        }
    }

    #[test]
    fn debug_output_hides_the_key() {
        let mut config = OpenAiConfig::new("sk-secret");
        for base_url in ["http://h/v1?key=sk-secret", "http://me:sk-secret@h/v1"] {
            config.base_url = base_url.to_owned();
            assert!(!format!("{config:?}").contains("sk-secret"));
        }
    }
}
