//! Common interface of all provider configurations.

use std::fmt;

use http::Uri;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use switchboard_domain::{ModelError, ModelErrorKind};

use super::{ErrorTable, ModelPage, WireProtocol};
use crate::{Headers, TransportConfig};

/// Configuration of one server: its address, credentials and options.
pub trait ProviderConfig: fmt::Debug + Clone + Send + Sync + 'static {
    /// Wire protocol of the models that [`HttpClient::model`](super::HttpClient::model) returns.
    type DefaultWire: WireProtocol<Config = Self>;

    /// Path of the list of models, relative to [`endpoint`](Self::endpoint).
    const MODELS_PATH: &'static str;

    /// Table that classifies the server's errors.
    const ERROR_TABLE: &'static ErrorTable;

    /// Creates the configuration from the environment variables that the official SDK reads.
    /// `lookup` returns the value of a variable.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] if [`validate_config`](Self::validate_config)
    /// fails.
    fn from_env_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError>;

    /// Calls [`from_env_lookup`](Self::from_env_lookup) with the environment of the process.
    fn from_env() -> Result<Self, ModelError> {
        Self::from_env_lookup(|name| std::env::var(name).ok())
    }

    /// Returns the provider's name, as in
    /// [`ModelId::provider`](switchboard_domain::ModelId::provider).
    fn provider(&self) -> &str;

    /// Returns the base address of the server.
    fn base_url(&self) -> &str;

    /// Returns the URL of `path` on the server, such as `https://api.openai.com/v1/models`.
    fn endpoint(&self, path: &str) -> String;

    /// Returns the headers of every request, credentials included.
    fn headers(&self) -> Headers;

    /// Returns the time-outs and the retry policy of requests to this server.
    fn transport_config(&self) -> TransportConfig;

    /// Fails with [`ModelErrorKind::Configuration`] if the configuration is invalid.
    fn validate_config(&self) -> Result<(), ModelError>;

    /// Reads one page of the list of models. Returns `None` if `body` is not such a page.
    fn parse_model_list(&self, body: &Value) -> Option<ModelPage>;

    /// Adds advice for the user to an error of this server. The default returns the error
    /// unchanged.
    fn add_error_advice(&self, error: ModelError) -> ModelError {
        error
    }

    /// Checks the base address. Fails with [`ModelErrorKind::Configuration`] if it is not an HTTP
    /// address or contains credentials, because messages and logs show addresses. `remedy` is
    /// advice for the user, which ends the message about an invalid address.
    fn check_base_url(&self, remedy: &str) -> Result<(), ModelError> {
        let address = self.base_url();
        if address.contains('@') {
            return Err(self.configuration_error(
                "the address contains a user name or a password: set the key as `api_key` instead",
            ));
        }
        let is_http = address.parse::<Uri>().is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
        });
        if is_http {
            return Ok(());
        }
        Err(self.configuration_error(format!(
            "`{}` is not a valid address: {remedy}",
            redacted_address(address)
        )))
    }

    /// Returns whether the base address is on `host` or on a subdomain of it.
    fn is_base_url_on_host(&self, host: &str) -> bool {
        let uri = self.base_url().parse::<Uri>().ok();
        let actual = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        let actual = actual.to_ascii_lowercase();
        actual
            .strip_suffix(host)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    /// Returns a [`ModelErrorKind::Configuration`] error of this provider.
    fn configuration_error(&self, message: impl Into<String>) -> ModelError {
        ModelError::new(self.provider(), ModelErrorKind::Configuration, message)
    }
}

/// Returns whether a secret is empty or white space.
pub fn is_blank(secret: &SecretString) -> bool {
    secret.expose_secret().trim().is_empty()
}

/// Returns the trimmed value of an environment variable. An empty variable counts as unset.
pub fn read_env_var(lookup: impl Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    let value = lookup(name)?.trim().to_owned();
    (!value.is_empty()).then_some(value)
}

/// Returns an address without its query and fragment. Returns `[hidden]` if the address contains a
/// user name or a password.
pub fn redacted_address(address: &str) -> &str {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    if address.contains('@') {
        "[hidden]"
    } else {
        address
    }
}
