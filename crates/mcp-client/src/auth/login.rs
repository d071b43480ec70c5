//! OAuth login by a person in a browser, or by the client with its own credentials.

pub(crate) mod pkce;
pub(crate) mod redirect_listener;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::auth::{
    challenge::add_scope,
    error::AuthError,
    login::{
        pkce::{pkce_challenge, random_token},
        redirect_listener::{ExpectedRedirect, RedirectListener},
    },
    metadata::{AuthServerMetadata, DiscoveredAuthServer},
    oauth_http_client::{OAuthHttpClient, bad_response},
    settings::AuthOptions,
    store::{GrantKey, Registration, StoredClient, StoredGrant, StoredTokens, unix_seconds_now},
    token::{self, OAuthClientCredentials},
};
use crate::config::login::{AuthConfig, ClientAuth, GrantType};
use crate::primitives::error::shorten;

const AUTHORIZATION: &str = "authorization endpoint";
const TOKEN: &str = "token endpoint";
const REGISTRATION: &str = "registration endpoint";

/// Parameters of one OAuth login to an MCP server.
pub(super) struct LoginContext<'a> {
    pub(super) fetch: &'a OAuthHttpClient,
    /// Configured URL of the MCP server.
    pub(super) server: &'a str,
    pub(super) config: &'a AuthConfig,
    pub(super) options: &'a AuthOptions,
    pub(super) discovered: &'a DiscoveredAuthServer,
    /// Result of the previous login (client, tokens and scopes), if any.
    pub(super) before: Option<&'a StoredGrant>,
    /// Scopes that the MCP server requires in its `WWW-Authenticate` challenge.
    pub(super) challenged: &'a [String],
}

impl LoginContext<'_> {
    pub(super) fn grant_key(&self) -> GrantKey {
        GrantKey {
            issuer: self.discovered.server.issuer.clone(),
            resource: self.discovered.resource.clone(),
            principal: self.config.token_principal().to_owned(),
        }
    }

    /// Logs in a person through a browser and returns the issued tokens with the data for their
    /// renewal. Calls `on_url` with the URL of the authorization page.
    pub(super) async fn login_in_browser(
        &self,
        on_url: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<StoredGrant, AuthError> {
        let server = &self.discovered.server;
        // The login requires PKCE with `S256`, which the metadata of the authorization server must
        // list. A server without metadata (`assumed`) must support PKCE without listing it (MCP
        // 2025-03-26).
        if !self.discovered.assumed && !server.supports_pkce_s256() {
            let issuer = shorten(&server.issuer);
            let reason = "does not support PKCE with S256, which is required";
            return Err(AuthError::Failed(format!("`{issuer}` {reason}")));
        }
        let page = server.authorization_endpoint.as_deref();
        let mut page = server.parse_endpoint(self.fetch, AUTHORIZATION, page)?;
        let endpoint = self.token_endpoint()?;
        let callback = self.start_redirect_listener().await?;
        let client = self.find_or_register_client(&callback.redirect_uri).await?;

        let scopes = self.requested_scopes(true);
        let (verifier, state) = (random_token(), random_token());
        let redirect_uri = callback.redirect_uri.clone();
        {
            let mut query = page.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id)
                .append_pair("redirect_uri", &redirect_uri)
                .append_pair("state", &state)
                .append_pair("code_challenge", &pkce_challenge(&verifier))
                .append_pair("code_challenge_method", "S256")
                .append_pair("resource", &self.discovered.resource);
            if !scopes.is_empty() {
                query.append_pair("scope", &scopes.join(" "));
            }
            if scopes.iter().any(|scope| scope == "offline_access") {
                // An authorization server ignores `offline_access` without `prompt=consent` (OpenID
                // Connect Core, section 11).
                query.append_pair("prompt", "consent");
            }
        }
        on_url(page.as_str());
        let expected = ExpectedRedirect {
            state: &state,
            issuer: &server.issuer,
            sends_issuer: server.authorization_response_iss_parameter_supported == Some(true),
        };
        let code = callback
            .receive_authorization_code(&expected, self.options.login_timeout)
            .await?;
        let parameters = [
            ("grant_type", "authorization_code"),
            ("code", code.expose_secret()),
            ("redirect_uri", &redirect_uri),
            ("code_verifier", &verifier),
            ("resource", &self.discovered.resource),
        ];
        let credentials = build_credentials(&client, self.config, &server.issuer);
        let issued =
            token::request_tokens(self.fetch, &endpoint, &credentials, &parameters).await?;
        Ok(self.build_grant(client, &endpoint, issued, scopes))
    }

    /// Requests tokens with the client's own credentials (grant `client_credentials`).
    pub(super) async fn login_as_client(&self) -> Result<StoredGrant, AuthError> {
        let server = &self.discovered.server;
        let endpoint = self.token_endpoint()?;
        let Some(client) = self.configured_client() else {
            return Err(AuthError::Configuration {
                reason: "`grant: client_credentials` needs a `client_id`".to_owned(),
            });
        };
        let scopes = self.requested_scopes(false);
        let joined = scopes.join(" ");
        let mut parameters = vec![
            ("grant_type", "client_credentials"),
            ("resource", &self.discovered.resource),
        ];
        if !scopes.is_empty() {
            parameters.push(("scope", &joined));
        }
        let credentials = build_credentials(&client, self.config, &server.issuer);
        let issued =
            token::request_tokens(self.fetch, &endpoint, &credentials, &parameters).await?;
        Ok(self.build_grant(client, &endpoint, issued, scopes))
    }

    fn token_endpoint(&self) -> Result<Url, AuthError> {
        let server = &self.discovered.server;
        server.parse_endpoint(self.fetch, TOKEN, server.token_endpoint.as_deref())
    }

    /// Starts the redirect listener on the configured port. Without a configured port, uses the
    /// port of the redirect URI that an earlier login registered, or else any free port.
    async fn start_redirect_listener(&self) -> Result<RedirectListener, AuthError> {
        let registered = self
            .before
            .and_then(|before| before.client.redirect_uri.as_deref());
        match (self.config.redirect_port, registered) {
            (Some(port), _) => RedirectListener::listen_on_port(port).await,
            (None, Some(redirect_uri)) => RedirectListener::reuse_port(redirect_uri).await,
            (None, None) => RedirectListener::listen_on_port(0).await,
        }
    }

    /// Returns the scopes to request: the scopes of the previous login, of the configuration and of
    /// the `WWW-Authenticate` challenge. The scopes that the protected-resource metadata propose
    /// are used only if the previous login, the configuration and the challenge name no scopes.
    fn requested_scopes(&self, may_be_offline: bool) -> Vec<String> {
        let proposed = if self.challenged.is_empty() {
            self.discovered.scopes.as_deref().unwrap_or_default()
        } else {
            self.challenged
        };
        let mut scopes = Vec::new();
        let mut add = |more: &[String]| more.iter().for_each(|scope| add_scope(&mut scopes, scope));
        let before = self.before.map(|before| &before.scopes[..]);
        let before = before.unwrap_or_default();
        add(before);
        match &self.config.scopes {
            Some(configured) => add(configured),
            // Only the first login requests scopes that the server proposed. Later logins request
            // the scopes of the previous login.
            None if before.is_empty() => add(proposed),
            None => {}
        }
        if let Some(before) = self.before {
            add(&before.wanted_scopes);
        }
        add(self.challenged);
        // The scope `offline_access` requests a refresh token. It is only added to other scopes,
        // because alone it would replace the default scopes of the server.
        if may_be_offline && !scopes.is_empty() && self.discovered.server.offers_offline_access() {
            add_scope(&mut scopes, "offline_access");
        }
        scopes
    }

    fn build_grant(
        &self,
        client: StoredClient,
        endpoint: &Url,
        mut tokens: StoredTokens,
        requested: Vec<String>,
    ) -> StoredGrant {
        if self.config.grant == GrantType::ClientCredentials {
            // A `client_credentials` client needs no refresh token: it requests new tokens instead.
            tokens.refresh = None;
        }
        StoredGrant {
            server: self.server.to_owned(),
            client,
            token_endpoint: endpoint.to_string(),
            revocation_endpoint: self.discovered.server.revocation_endpoint.clone(),
            tokens: Some(tokens),
            scopes: requested,
            wanted_scopes: Vec::new(),
            issued_at: unix_seconds_now(),
        }
    }

    /// Returns the first available OAuth client in the order that MCP requires: configured client,
    /// Client ID Metadata Document, dynamically registered client.
    async fn find_or_register_client(&self, redirect_uri: &str) -> Result<StoredClient, AuthError> {
        if let Some(client) = self.configured_client() {
            return Ok(client);
        }
        let server = &self.discovered.server;
        let document = self.config.client_metadata_url.as_ref();
        let document = document.or(self.options.client_metadata_url.as_ref());
        if let (Some(true), Some(document)) =
            (server.client_id_metadata_document_supported, document)
        {
            return Ok(StoredClient {
                id: document.clone(),
                secret: None,
                auth_method: ClientAuth::None,
                redirect_uri: None,
                registration: Registration::Document,
            });
        }
        match self.before.map(|before| &before.client) {
            Some(client)
                if client.registration == Registration::Dynamic
                    && client.redirect_uri.as_deref() == Some(redirect_uri) =>
            {
                Ok(client.clone())
            }
            _ => self.register_client(redirect_uri).await,
        }
    }

    fn configured_client(&self) -> Option<StoredClient> {
        let id = self.config.client_id.clone()?;
        Some(StoredClient {
            id,
            secret: None,
            auth_method: self.config.auth_method.unwrap_or_else(|| {
                select_auth_method(
                    &self.discovered.server,
                    self.config.client_secret.is_some(),
                    self.config.private_key.is_some(),
                )
            }),
            redirect_uri: None,
            registration: Registration::Configured,
        })
    }

    /// Registers a new client with the authorization server (RFC 7591).
    async fn register_client(&self, redirect_uri: &str) -> Result<StoredClient, AuthError> {
        let server = &self.discovered.server;
        let Some(endpoint) = &server.registration_endpoint else {
            return Err(AuthError::Failed(format!(
                "`{}` accepts only registered clients: register a client, and set `client_id` (and \
                 `client_secret`) under `authorization` in the configuration",
                shorten(&server.issuer)
            )));
        };
        let endpoint = self.fetch.guard.parse_url(REGISTRATION, endpoint)?;
        let mut grant_types = vec!["authorization_code"];
        let supported = server.grant_types_supported.as_deref();
        if supported.is_none_or(|types| types.iter().any(|kind| kind == "refresh_token")) {
            grant_types.push("refresh_token");
        }
        let body = json!({
            "client_name": "Switchboard",
            "redirect_uris": [redirect_uri],
            "grant_types": grant_types,
            "response_types": ["code"],
            "token_endpoint_auth_method": preferred_auth_method(server).name(),
            // OpenID Connect registers a `web` client by default, which cannot use a loopback
            // redirect URI.
            "application_type": "native",
        });
        let body = ("application/json", body.to_string());
        let answer = self.fetch.send_post(REGISTRATION, &endpoint, body, None);
        let answer = answer.await?;
        if !answer.status.is_success() {
            return Err(token::parse_oauth_error("registration", &endpoint, &answer));
        }
        let text = |key: &str| answer.json.get(key).and_then(Value::as_str);
        let Some(id) = text("client_id").filter(|id| !id.is_empty()) else {
            let reason = "`client_id` is missing";
            return Err(bad_response(REGISTRATION, &endpoint, reason));
        };
        let secret = text("client_secret")
            .filter(|secret| !secret.is_empty())
            .map(SecretString::from);
        // The authentication method in the response is ignored if it needs a secret and the
        // response contains no secret.
        let given = answer.json.get("token_endpoint_auth_method");
        let given = given
            .and_then(|method| ClientAuth::deserialize(method).ok())
            .filter(|given| matches!(given, ClientAuth::None) || secret.is_some());
        Ok(StoredClient {
            id: id.to_owned(),
            auth_method: given
                .unwrap_or_else(|| select_auth_method(server, secret.is_some(), false)),
            secret,
            redirect_uri: Some(redirect_uri.to_owned()),
            registration: Registration::Dynamic,
        })
    }
}

fn supports_auth_method(server: &AuthServerMetadata, method: ClientAuth) -> Option<bool> {
    let methods = server.token_endpoint_auth_methods_supported.as_deref()?;
    Some(methods.iter().any(|known| known == method.name()))
}

/// Returns the authentication method to register. Prefers `none` (a public client), because a
/// program on a user's machine cannot keep a secret.
fn preferred_auth_method(server: &AuthServerMetadata) -> ClientAuth {
    [
        ClientAuth::None,
        ClientAuth::ClientSecretBasic,
        ClientAuth::ClientSecretPost,
    ]
    .into_iter()
    .find(|method| supports_auth_method(server, *method) != Some(false))
    .unwrap_or(ClientAuth::None)
}

/// Returns the authentication method for a client with a secret, a private key, or neither.
/// Prefers, in this order, `private_key_jwt`, `client_secret_basic`, `client_secret_post` and
/// `none`, if the client can use the method and the metadata list it. If the metadata list no
/// usable method, returns the first usable one (for a secret `client_secret_basic`, the default of
/// RFC 8414, section 2).
fn select_auth_method(server: &AuthServerMetadata, has_secret: bool, has_key: bool) -> ClientAuth {
    let mut able = Vec::new();
    if has_key {
        able.push(ClientAuth::PrivateKeyJwt);
    }
    if has_secret {
        able.extend([ClientAuth::ClientSecretBasic, ClientAuth::ClientSecretPost]);
    }
    let best = able.first().copied().unwrap_or(ClientAuth::None);
    able.push(ClientAuth::None);
    able.into_iter()
        .find(|method| supports_auth_method(server, *method) == Some(true))
        .unwrap_or(best)
}

/// Returns the credentials of a client. The token store does not contain the secret and the private
/// key of a configured client, so both come from the configuration.
pub(super) fn build_credentials<'a>(
    client: &'a StoredClient,
    config: &'a AuthConfig,
    issuer: &'a str,
) -> OAuthClientCredentials<'a> {
    let configured = client.registration == Registration::Configured;
    OAuthClientCredentials {
        id: &client.id,
        secret: if configured {
            config.client_secret.as_ref()
        } else {
            client.secret.as_ref()
        },
        private_key: config.private_key.as_ref().filter(|_| configured),
        method: client.auth_method,
        issuer,
    }
}
