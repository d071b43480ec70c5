//! Discovery of the authorization server of an MCP server: metadata of RFC 9728, RFC 8414 and
//! `OpenID` Connect Discovery, in the order of MCP 2026-07-28, basic/authorization.

use std::fmt::Display;

use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

use crate::auth::{
    challenge::BearerChallenge,
    error::AuthError,
    oauth_http_client::{OAuthHttpClient, bad_response},
};
use crate::config::{login::AuthConfig, redaction::redact_url};
use crate::primitives::error::shorten;

const RESOURCE: &str = "protected-resource metadata";
const SERVER: &str = "authorization-server metadata";

/// Fields of the protected-resource metadata (RFC 9728, section 2) that the OAuth client uses.
#[derive(Debug, Default, Deserialize)]
struct ResourceMetadata {
    resource: Option<String>,
    authorization_servers: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
}

/// Fields of the authorization-server metadata (RFC 8414, section 2) that the OAuth client uses.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct AuthServerMetadata {
    #[serde(default)]
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    pub(super) registration_endpoint: Option<String>,
    pub(super) revocation_endpoint: Option<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
    pub(super) grant_types_supported: Option<Vec<String>>,
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(super) client_id_metadata_document_supported: Option<bool>,
    pub(super) authorization_response_iss_parameter_supported: Option<bool>,
}

/// Authorization server, resource identifier and scopes that were discovered for an MCP server.
#[derive(Debug, Clone)]
pub(super) struct DiscoveredAuthServer {
    /// Resource identifier for which tokens are requested (RFC 8707).
    pub(super) resource: String,
    /// OAuth scopes that the protected-resource metadata list in `scopes_supported`, if any.
    pub(super) scopes: Option<Vec<String>>,
    pub(super) server: AuthServerMetadata,
    /// Whether `server` contains the default endpoints of MCP 2025-03-26, because the authorization
    /// server has no metadata.
    pub(super) assumed: bool,
}

impl AuthServerMetadata {
    /// Parses an endpoint URL from the metadata. Returns an error if the URL is missing or violates
    /// a rule for OAuth requests, such as the required use of `https`.
    pub(super) fn parse_endpoint(
        &self,
        fetch: &OAuthHttpClient,
        what: &'static str,
        endpoint: Option<&str>,
    ) -> Result<Url, AuthError> {
        let Some(endpoint) = endpoint else {
            let issuer = shorten(&self.issuer);
            return Err(missing_metadata_error(format!("`{issuer}` has no {what}")));
        };
        fetch.guard.parse_url(what, endpoint)
    }

    pub(super) fn supports_pkce_s256(&self) -> bool {
        let methods = self.code_challenge_methods_supported.as_deref();
        methods.is_some_and(|methods| methods.iter().any(|method| method == "S256"))
    }

    pub(super) fn offers_offline_access(&self) -> bool {
        let scopes = self.scopes_supported.as_deref();
        scopes.is_some_and(|scopes| scopes.iter().any(|scope| scope == "offline_access"))
    }
}

/// Discovers the authorization server of the MCP server at `url`. If the protected-resource
/// metadata list several authorization servers, uses the configured `issuer`, or else an issuer in
/// `known` (the issuers of earlier logins), or else the first one.
pub(super) async fn discover_auth_server(
    fetch: &OAuthHttpClient,
    url: &Url,
    config: &AuthConfig,
    challenge: &BearerChallenge,
    known: &[String],
) -> Result<DiscoveredAuthServer, AuthError> {
    let mut discovered = DiscoveredAuthServer {
        resource: resource_identifier(url),
        scopes: None,
        server: AuthServerMetadata::default(),
        assumed: false,
    };
    if let Some(address) = &config.metadata_url {
        let address = fetch.guard.parse_url(SERVER, address)?;
        let found = fetch.get_json(SERVER, &address).await?;
        let found = found.ok_or_else(|| bad_response(SERVER, &address, "not found"))?;
        discovered.server = parse_metadata(SERVER, &address, found)?;
        if let Some(expected) = &config.issuer {
            check_issuer(expected, &discovered.server.issuer)?;
        }
        return Ok(discovered);
    }
    let origin = url.origin().ascii_serialization();
    let issuer = if let Some(found) = resource_metadata(fetch, url, challenge).await? {
        discovered.resource = validate_resource(url, found.resource)?;
        discovered.scopes = found.scopes_supported;
        let servers = found.authorization_servers.unwrap_or_default();
        choose_issuer(&servers, config, known)?.to_owned()
    } else {
        // No protected-resource metadata exist, so the MCP server is its own authorization server,
        // unless an `issuer` is configured. If the MCP server has no authorization-server metadata
        // either, the default endpoints of MCP 2025-03-26 (basic/authorization) are assumed.
        discovered.assumed = config.issuer.is_none();
        config.issuer.clone().unwrap_or_else(|| origin.clone())
    };
    if let Some(server) = fetch_server_metadata(fetch, &issuer).await? {
        discovered.server = server;
        discovered.assumed = false;
    } else if discovered.assumed {
        discovered.server = AuthServerMetadata {
            authorization_endpoint: Some(format!("{origin}/authorize")),
            token_endpoint: Some(format!("{origin}/token")),
            registration_endpoint: Some(format!("{origin}/register")),
            issuer: origin,
            ..AuthServerMetadata::default()
        };
    } else {
        let reason = format!("`{}` has no OAuth metadata", shorten(&issuer));
        return Err(missing_metadata_error(reason));
    }
    Ok(discovered)
}

async fn resource_metadata(
    fetch: &OAuthHttpClient,
    url: &Url,
    challenge: &BearerChallenge,
) -> Result<Option<ResourceMetadata>, AuthError> {
    let mut addresses = Vec::new();
    if let Some(named) = &challenge.resource_metadata {
        addresses.push(fetch.guard.parse_url(RESOURCE, named)?);
    } else {
        let path = url.path().trim_end_matches('/');
        addresses.push(well_known_url(url, "oauth-protected-resource", path));
        if !path.is_empty() {
            addresses.push(well_known_url(url, "oauth-protected-resource", ""));
        }
    }
    for address in &addresses {
        if let Some(found) = fetch.get_json(RESOURCE, address).await? {
            return parse_metadata(RESOURCE, address, found).map(Some);
        }
    }
    match (&challenge.resource_metadata, addresses.first()) {
        (Some(_), Some(named)) => Err(bad_response(RESOURCE, named, "not found")),
        _ => Ok(None),
    }
}

/// Fetches the metadata of the authorization server `issuer` from its well-known URLs. Returns
/// `None` if none of these URLs exists, and an error if the metadata contain another issuer.
async fn fetch_server_metadata(
    fetch: &OAuthHttpClient,
    issuer: &str,
) -> Result<Option<AuthServerMetadata>, AuthError> {
    let url = fetch.guard.parse_url("issuer", issuer)?;
    let path = url.path().trim_end_matches('/');
    let mut addresses = vec![
        well_known_url(&url, "oauth-authorization-server", path),
        well_known_url(&url, "openid-configuration", path),
    ];
    if !path.is_empty() {
        let mut appended = url.clone();
        appended.set_path(&format!("{path}/.well-known/openid-configuration"));
        appended.set_query(None);
        addresses.push(appended);
    }
    for address in addresses {
        if let Some(found) = fetch.get_json(SERVER, &address).await? {
            let found: AuthServerMetadata = parse_metadata(SERVER, &address, found)?;
            check_issuer(issuer, &found.issuer)?;
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn well_known_url(url: &Url, name: &str, path: &str) -> Url {
    let mut address = url.clone();
    address.set_path(&format!("/.well-known/{name}{path}"));
    address.set_query(None);
    address.set_fragment(None);
    address
}

fn parse_metadata<T: serde::de::DeserializeOwned>(
    what: &'static str,
    address: &Url,
    found: Value,
) -> Result<T, AuthError> {
    // The error message may quote the untrusted document, so the message is shortened.
    serde_json::from_value(found)
        .map_err(|error| bad_response(what, address, shorten(&error.to_string())))
}

fn missing_metadata_error(reason: impl Display) -> AuthError {
    AuthError::Failed(format!("login discovery failed: {reason}"))
}

/// Returns an error if two issuers differ. RFC 8414 requires comparison as unnormalized text.
fn check_issuer(expected: &str, found: &str) -> Result<(), AuthError> {
    if expected == found {
        return Ok(());
    }
    Err(AuthError::IssuerMismatch {
        what: SERVER,
        expected: shorten(expected),
        found: shorten(if found.is_empty() { "(none)" } else { found }),
    })
}

fn choose_issuer<'a>(
    servers: &'a [String],
    config: &'a AuthConfig,
    known: &[String],
) -> Result<&'a str, AuthError> {
    if let Some(expected) = &config.issuer {
        return match servers.iter().find(|server| *server == expected) {
            Some(server) => Ok(server),
            None if servers.is_empty() => Ok(expected),
            None => Err(AuthError::IssuerChanged {
                expected: shorten(expected),
                found: shorten(&servers.join(", ")),
            }),
        };
    }
    servers
        .iter()
        .find(|server| known.contains(server))
        .or(servers.first())
        .map(String::as_str)
        .ok_or_else(|| {
            missing_metadata_error("the resource metadata lists no authorization server")
        })
}

/// Returns the resource identifier `found` in the protected-resource metadata, or `url` if the
/// metadata contain none. Returns an error unless `found` is `url` or a parent path of `url`,
/// because the server could otherwise obtain tokens for another server.
fn validate_resource(url: &Url, found: Option<String>) -> Result<String, AuthError> {
    let Some(found) = found else {
        return Ok(resource_identifier(url));
    };
    let contains = |resource: &Url| {
        let begin = resource.path().trim_end_matches('/');
        let rest = url.path().strip_prefix(begin);
        resource.origin() == url.origin()
            && resource.fragment().is_none()
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match Url::parse(&found) {
        Ok(resource) if contains(&resource) => Ok(found),
        _ => Err(AuthError::ResourceMismatch {
            expected: resource_identifier(url),
            found: shorten(&found),
        }),
    }
}

/// Returns the server's URL without user info, query and fragment, as a resource identifier (RFC
/// 8707, section 2).
pub(super) fn resource_identifier(url: &Url) -> String {
    let text = redact_url(url.as_str());
    if url.path() == "/" {
        text.trim_end_matches('/').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn the_resource_must_contain_the_server() {
        let server = url("https://h.example/a/mcp?key=x");
        for resource in [
            "https://h.example/a/mcp",
            "https://H.example/a/",
            "https://h.example/a",
            "https://h.example",
            "https://h.example:443/",
        ] {
            let matched = validate_resource(&server, Some(resource.to_owned()));
            assert_eq!(matched.unwrap(), resource);
        }
        for resource in [
            "https://evil.example/a/mcp",
            "http://h.example/a/mcp",
            "https://h.example:8443/a/mcp",
            "https://h.example/a/mc",
            "https://h.example/b",
            "https://h.example/a/mcp/more",
            "https://h.example/a/mcp#f",
            "not a URL",
        ] {
            let error = validate_resource(&server, Some(resource.to_owned())).unwrap_err();
            assert!(
                matches!(error, AuthError::ResourceMismatch { .. }),
                "{resource}"
            );
        }
        let own = validate_resource(&server, None).unwrap();
        assert_eq!(own, "https://h.example/a/mcp");
        assert_eq!(
            resource_identifier(&url("HTTPS://U:p@H.example/#f")),
            "https://h.example"
        );
    }
}
