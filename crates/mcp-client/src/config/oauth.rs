//! `authorization:` as a map: the login of a server.

use secrecy::SecretString;
use serde_json::Value;
use switchboard_domain::nearest::nearest;

use crate::config::login::{AuthConfig, ClientAuth, GrantType};

use crate::config::{
    error::ConfigError,
    read::{self, join},
};

const KEYS: [&str; 11] = [
    "grant",
    "client_id",
    "client_secret",
    "private_key",
    "token_endpoint_auth_method",
    "client_metadata_url",
    "scopes",
    "issuer",
    "metadata_url",
    "account",
    "redirect_port",
];

const GRANTS: [(&str, GrantType); 2] = [
    ("authorization_code", GrantType::AuthorizationCode),
    ("client_credentials", GrantType::ClientCredentials),
];

/// Parses the map. Unknown keys are errors in every form, because the key is our own.
pub(super) fn authorization(value: &Value, path: &str) -> Result<AuthConfig, ConfigError> {
    let fields = read::object(value, path)?;
    if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(ConfigError::UnknownKey {
            path: join(path, unknown),
            nearest: nearest(unknown, KEYS).map(str::to_owned),
            known: KEYS.to_vec(),
        });
    }
    let get = |key: &str| {
        let value = fields.get(key).filter(|value| !value.is_null())?;
        Some((value, join(path, key)))
    };
    let text = |key: &str| {
        get(key)
            .map(|(value, path)| read::not_blank(read::string(value, &path)?, &path))
            .transpose()
    };
    let url = |key: &str| {
        get(key)
            .map(|(value, path)| read::url(value, &path))
            .transpose()
    };
    let config = AuthConfig {
        grant: choice(get("grant"), &GRANTS)?.unwrap_or_default(),
        client_id: text("client_id")?,
        client_secret: text("client_secret")?.map(SecretString::from),
        private_key: text("private_key")?.map(SecretString::from),
        auth_method: choice(get("token_endpoint_auth_method"), &ClientAuth::NAMES)?,
        client_metadata_url: get("client_metadata_url")
            .map(|(value, path)| document_url(value, &path))
            .transpose()?,
        scopes: get("scopes")
            .map(|(value, path)| scopes(value, &path))
            .transpose()?,
        issuer: url("issuer")?,
        metadata_url: url("metadata_url")?,
        account: text("account")?,
        redirect_port: get("redirect_port")
            .map(|(value, path)| port(value, &path))
            .transpose()?,
    };
    let needs_client = config.grant == GrantType::ClientCredentials
        || config.client_secret.is_some()
        || config.private_key.is_some();
    if needs_client && config.client_id.is_none() {
        return Err(ConfigError::MissingClient {
            path: path.to_owned(),
        });
    }
    if config.lacks_issuer() {
        return Err(ConfigError::MissingIssuer {
            path: path.to_owned(),
        });
    }
    Ok(config)
}

/// Parses a list, or a text with spaces as in OAuth.
fn scopes(value: &Value, path: &str) -> Result<Vec<String>, ConfigError> {
    match value {
        Value::String(text) => Ok(text.split_whitespace().map(str::to_owned).collect()),
        other => read::scalars(other, path),
    }
}

/// Parses the URL of a Client ID Metadata Document, which is `https` and has a path.
fn document_url(value: &Value, path: &str) -> Result<String, ConfigError> {
    let text = read::url(value, path)?;
    let rest = text.strip_prefix("https://");
    match rest.and_then(|rest| rest.split_once('/')) {
        Some((_, document)) if !document.is_empty() => Ok(text),
        _ => Err(ConfigError::InvalidUrl {
            path: path.to_owned(),
            reason: "it must start with `https://` and have a path".to_owned(),
        }),
    }
}

fn port(value: &Value, path: &str) -> Result<u16, ConfigError> {
    value
        .as_u64()
        .and_then(|port| u16::try_from(port).ok())
        .filter(|port| *port > 0)
        .ok_or_else(|| read::wrong_type(path, "a port, 1 to 65535", value))
}

fn choice<T: Copy>(
    given: Option<(&Value, String)>,
    names: &[(&'static str, T)],
) -> Result<Option<T>, ConfigError> {
    let Some((value, path)) = given else {
        return Ok(None);
    };
    let text = read::string(value, &path)?;
    let found = names.iter().find(|(name, _)| *name == text);
    match found {
        Some((_, value)) => Ok(Some(*value)),
        None => Err(ConfigError::UnknownChoice {
            path,
            value: text,
            choices: names.iter().map(|(name, _)| *name).collect(),
        }),
    }
}

#[cfg(test)]
#[path = "oauth_tests.rs"]
mod tests;
