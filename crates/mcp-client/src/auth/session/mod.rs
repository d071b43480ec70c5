//! The access tokens of one MCP server: the session loads them from the store, renews them before
//! they expire, and replaces them after the server rejects them.

mod stored_logins;

use std::sync::{Arc, Mutex};

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use tokio::{sync::OnceCell, time::Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    auth::{
        challenge::{BearerChallenge, add_scope},
        error::AuthError,
        login::{LoginContext, redirect_listener::LOGIN},
        metadata::{DiscoveredAuthServer, discover_auth_server},
        oauth_http_client::{OAuthHttpClient, ssrf_guard::NetworkGuard},
        settings::AuthOptions,
        store::{GrantKey, StoredGrant, StoredTokens, unix_seconds_now},
    },
    config::{
        ServerConfig, ServerTransport,
        login::{AuthConfig, GrantType},
    },
    primitives::error::shorten,
    primitives::sync::lock_mutex,
};

/// HTTP response with which an MCP server rejects the access token of a request.
#[derive(Debug)]
pub(crate) enum TokenRejection {
    /// HTTP status 401: the request has no token, or its token is not valid.
    Unauthorized(BearerChallenge),
    /// HTTP status 403: the token does not have the scopes in the challenge.
    InsufficientScope(BearerChallenge),
}

/// Owner of a server's OAuth session. Dropping it cancels the logins that are in progress.
pub(crate) struct SessionHandle {
    session: Arc<Session>,
    _quit: DropGuard,
}

impl SessionHandle {
    /// Creates the OAuth session of a server. Returns `None` for servers without OAuth: child
    /// processes, servers with a configured `Authorization` header, and invalid settings.
    pub(crate) fn new(server: &ServerConfig, options: &AuthOptions) -> Option<Arc<Self>> {
        let session = Session::from_config(server, options).ok()?;
        Some(Arc::new(Self {
            _quit: session.quit.clone().drop_guard(),
            session: Arc::new(session),
        }))
    }

    pub(crate) fn as_session(&self) -> &Arc<Session> {
        &self.session
    }
}

/// OAuth state of one MCP server: its tokens and their renewal.
pub(crate) struct Session {
    name: String,
    url: Url,
    /// Configured URL, by which the token store finds the tokens of the server.
    address: String,
    config: AuthConfig,
    options: AuthOptions,
    fetch: OnceCell<OAuthHttpClient>,
    known: Mutex<TokenState>,
    /// Lock that is held while new tokens are requested. Other requests wait for the new tokens.
    renewal: tokio::sync::Mutex<()>,
    quit: CancellationToken,
}

#[derive(Default)]
struct TokenState {
    /// Login with the current tokens. `None` if the store has no login or is not loaded yet.
    current: Option<StoredLogin>,
    is_loaded: bool,
    /// New token that the server has not accepted yet, and its origin (renewal or login). If the
    /// server rejects this token too, the session does not obtain another one in the same way.
    /// Otherwise a server that rejects every token would cause an endless loop.
    unproven: Option<(SecretString, TokenOrigin)>,
    /// Time of the last failure with [`AuthError::NeedsLogin`], and the scopes in that error.
    /// Requests that waited for a new token at that time fail with the same error, without another
    /// attempt to log in.
    needs_person: Option<(Instant, Vec<String>)>,
    /// Whether a person declined a login. Further calls then do not start another login.
    declined: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenOrigin {
    Renewed,
    Login,
}

#[derive(Clone)]
pub(crate) struct StoredLogin {
    pub(in crate::auth) key: GrantKey,
    pub(in crate::auth) grant: StoredGrant,
}

impl StoredLogin {
    fn access_token(&self) -> Option<&SecretString> {
        self.grant.tokens.as_ref().map(|tokens| &tokens.access)
    }

    fn is_access_token_expired(&self) -> bool {
        let tokens = self.grant.tokens.as_ref();
        let end = tokens.and_then(|tokens| tokens.expires_at);
        end.is_some_and(|end| end <= unix_seconds_now())
    }

    fn needs_renewal(&self) -> bool {
        let tokens = self.grant.tokens.as_ref();
        tokens.is_some_and(StoredTokens::needs_renewal)
    }
}

impl Session {
    pub(crate) fn from_config(
        server: &ServerConfig,
        options: &AuthOptions,
    ) -> Result<Self, AuthError> {
        let name = server.name.clone();
        let ServerTransport::StreamableHttp { url, headers } = &server.transport else {
            return Err(AuthError::NotHttp { server: name });
        };
        let is_fixed = |(name, _): &(String, _)| name.eq_ignore_ascii_case("authorization");
        if headers.iter().any(is_fixed) {
            return Err(AuthError::StaticHeader { server: name });
        }
        let parsed = Url::parse(url).map_err(|error| AuthError::Configuration {
            reason: format!("the server URL is invalid: {error}"),
        })?;
        if server.authorization.lacks_issuer() {
            return Err(AuthError::Configuration {
                reason: "`client_secret` requires an `issuer`, the URL of its authorization server"
                    .to_owned(),
            });
        }
        Ok(Self {
            name,
            url: parsed,
            address: url.clone(),
            config: server.authorization.clone(),
            options: options.clone(),
            fetch: OnceCell::new(),
            known: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
            quit: CancellationToken::new(),
        })
    }

    pub(in crate::auth) async fn auth_http_client(&self) -> Result<&OAuthHttpClient, AuthError> {
        self.fetch
            .get_or_try_init(async || {
                // The user trusts the configured URLs, so OAuth requests may reach their networks.
                let configured = [&self.config.issuer, &self.config.metadata_url];
                let configured = configured.into_iter().flatten();
                let configured = configured.filter_map(|url| Url::parse(url).ok());
                let urls: Vec<Url> = configured.chain([self.url.clone()]).collect();
                OAuthHttpClient::new(NetworkGuard::from_configured_urls(&urls).await)
            })
            .await
    }

    /// Returns the login with the current tokens, if any. The first call loads the login from the
    /// token store.
    async fn current_login(&self) -> Option<StoredLogin> {
        {
            let known = lock_mutex(&self.known);
            if known.is_loaded {
                return known.current.clone();
            }
        }
        let stored = match self.load_usable_logins().await {
            Ok(stored) => stored.into_iter().next(),
            // If the tokens cannot be loaded, the request is sent without one: most servers need no
            // token, and the others reject the request.
            Err(error) => {
                tracing::warn!(server = self.name, %error, "failed to load tokens");
                return None;
            }
        };
        let mut known = lock_mutex(&self.known);
        if !known.is_loaded {
            known.is_loaded = true;
            known.current = stored;
        }
        known.current.clone()
    }

    /// Replaces the current login and returns its access token. `origin` is the request that issued
    /// the token (a renewal or a login), or `None` if the login was only loaded from the store.
    fn set_current_login(
        &self,
        current: StoredLogin,
        origin: Option<TokenOrigin>,
    ) -> Option<SecretString> {
        let token = current.access_token().cloned();
        let mut known = lock_mutex(&self.known);
        known.is_loaded = true;
        known.declined = false;
        let unproven = known.unproven.take();
        known.unproven = match origin {
            Some(origin) => token.clone().map(|token| (token, origin)),
            // The loaded token may be the one in `unproven`, if another request has just stored it.
            // Then it stays there until the server accepts it.
            None => unproven.filter(|(unproven, _)| is_same_token(Some(unproven), token.as_ref())),
        };
        known.current = Some(current);
        token
    }

    /// Returns the access token for the next request. First renews a token that expires within 30
    /// seconds. Returns `None` if no token is stored.
    pub(crate) async fn bearer_token(self: &Arc<Self>) -> Result<Option<SecretString>, AuthError> {
        let Some(current) = self.current_login().await else {
            return Ok(None);
        };
        if !current.needs_renewal() {
            return Ok(current.access_token().cloned());
        }
        let _lock = self.renewal.lock().await;
        let again = self.current_login().await.unwrap_or(current);
        if !again.needs_renewal() {
            return Ok(again.access_token().cloned());
        }
        match self.spawn_renewal(&again).await {
            Ok(Some(renewed)) => Ok(self.set_current_login(renewed, Some(TokenOrigin::Renewed))),
            // The token cannot be renewed, for example without a refresh token, so the old token is
            // sent. If the server rejects it, the session searches for a new token.
            Ok(None) => Ok(again.access_token().cloned()),
            // The renewal failed, but the old token is still valid.
            Err(error) if !again.is_access_token_expired() => {
                tracing::debug!(server = self.name, %error, "failed to renew the token");
                Ok(again.access_token().cloned())
            }
            Err(error) => Err(error),
        }
    }

    /// Records that the server accepted a token. If the server rejects the token later, the session
    /// first tries to renew it.
    pub(crate) fn record_accepted_token(&self, token: &SecretString) {
        let mut known = lock_mutex(&self.known);
        known
            .unproven
            .take_if(|(unproven, _)| is_same_token(Some(unproven), Some(token)));
    }

    /// Returns a new token after the server rejected the token `used`. Returns `None` if the server
    /// does not use OAuth.
    ///
    /// The search for a token continues if the request is cancelled: a person may be logging in,
    /// and the next request uses the new token.
    pub(crate) async fn replace_rejected_token(
        self: &Arc<Self>,
        used: Option<SecretString>,
        refusal: TokenRejection,
    ) -> Result<Option<SecretString>, AuthError> {
        let session = self.clone();
        let search = async move { session.obtain_new_token(used.as_ref(), &refusal).await };
        let search = tokio::spawn(self.quit.clone().run_until_cancelled_owned(search));
        match search.await {
            Ok(Some(found)) => found,
            Ok(None) | Err(_) => Err(self.needs_login_error(&[])),
        }
    }

    async fn obtain_new_token(
        self: &Arc<Self>,
        used: Option<&SecretString>,
        refusal: &TokenRejection,
    ) -> Result<Option<SecretString>, AuthError> {
        let begun = Instant::now();
        let _lock = self.renewal.lock().await;
        let stored = self.load_usable_logins().await?;
        // Another call or another process has already stored a newer token, which is used.
        if let Some(newer) = stored.first()
            && let Some(token) = newer.access_token()
            && !newer.needs_renewal()
            && !is_same_token(used, Some(token))
        {
            return Ok(self.set_current_login(newer.clone(), None));
        }
        match refusal {
            TokenRejection::Unauthorized(challenge) => {
                if let Some((found, scopes)) = &lock_mutex(&self.known).needs_person
                    && *found >= begun
                {
                    return Err(self.needs_login_error(scopes));
                }
                let new = self.handle_unauthorized(used, stored, challenge).await;
                if let Err(AuthError::NeedsLogin { scopes, .. }) = &new {
                    lock_mutex(&self.known).needs_person = Some((Instant::now(), scopes.clone()));
                }
                new
            }
            TokenRejection::InsufficientScope(challenge) => {
                let token = self.handle_insufficient_scope(stored, challenge);
                token.await.map(Some)
            }
        }
    }

    async fn handle_unauthorized(
        self: &Arc<Self>,
        used: Option<&SecretString>,
        stored: Vec<StoredLogin>,
        challenge: &BearerChallenge,
    ) -> Result<Option<SecretString>, AuthError> {
        let unproven = lock_mutex(&self.known).unproven.clone();
        let unproven = unproven.filter(|(token, _)| is_same_token(Some(token), used));
        let unproven = unproven.map(|(_, origin)| origin);
        let is_oauth = challenge.resource_metadata.is_some()
            || !stored.is_empty()
            || self.config.has_oauth_settings();
        let discovered = match self.discover_auth_server(challenge, &stored).await {
            Ok(discovered) if discovered.assumed && !is_oauth && self.options.on_url.is_none() => {
                return Ok(None);
            }
            Ok(discovered) => discovered,
            Err(error) if is_oauth || error.is_identity_mismatch() => return Err(error),
            Err(error) => {
                tracing::debug!(server = self.name, %error, "login discovery failed");
                return Ok(None);
            }
        };
        let before = self.find_login(stored, &discovered)?;
        if let Some(before) = before.as_ref().filter(|_| unproven.is_none())
            && let Some(renewed) = self.spawn_renewal(before).await?
        {
            return Ok(self.set_current_login(renewed, Some(TokenOrigin::Renewed)));
        }
        // The server rejects a token that a login has just issued, so another login would not help.
        if unproven == Some(TokenOrigin::Login) && before.is_some() {
            let issuer = shorten(&discovered.server.issuer);
            return Err(AuthError::Failed(format!(
                "the server rejected the new token from {issuer}"
            )));
        }
        self.login_during_call(&discovered, before.as_ref(), &challenge.scopes)
            .await
            .map(Some)
    }

    /// Logs in again with the scopes in the challenge and returns the new access token. Returns an
    /// error if the last login has already requested these scopes.
    async fn handle_insufficient_scope(
        &self,
        stored: Vec<StoredLogin>,
        challenge: &BearerChallenge,
    ) -> Result<SecretString, AuthError> {
        let needed = &challenge.scopes;
        if let Some(StoredLogin { grant, .. }) = stored.first()
            && needed.iter().all(|scope| grant.scopes.contains(scope))
        {
            let needed = shorten(&needed.join(" "));
            return Err(AuthError::Failed(format!(
                "the login does not grant the scopes `{needed}`, although they were requested"
            )));
        }
        let discovered = self.discover_auth_server(challenge, &stored).await?;
        let before = self.find_login(stored, &discovered)?;
        let login = self.login_during_call(&discovered, before.as_ref(), needed);
        login.await
    }

    pub(in crate::auth) async fn discover_auth_server(
        &self,
        challenge: &BearerChallenge,
        stored: &[StoredLogin],
    ) -> Result<DiscoveredAuthServer, AuthError> {
        let known = stored.iter().map(|current| current.key.issuer.clone());
        let known: Vec<String> = known.collect();
        let fetch = self.auth_http_client().await?;
        discover_auth_server(fetch, &self.url, &self.config, challenge, &known).await
    }

    /// Logs in during a call and returns the new access token. If a person has declined a browser
    /// login before, returns [`AuthError::NeedsLogin`] instead of starting another one.
    async fn login_during_call(
        &self,
        discovered: &DiscoveredAuthServer,
        before: Option<&StoredLogin>,
        challenged: &[String],
    ) -> Result<SecretString, AuthError> {
        let on_url = self.options.on_url.as_deref();
        let on_url = on_url.filter(|_| !lock_mutex(&self.known).declined);
        let login = self.login_and_store(discovered, before, challenged, on_url);
        let current = login.await;
        if let Err(AuthError::Refused { what: LOGIN, .. } | AuthError::TimedOut { .. }) = &current {
            lock_mutex(&self.known).declined = true;
        }
        let token = self.set_current_login(current?, Some(TokenOrigin::Login));
        token.ok_or_else(|| self.needs_login_error(challenged))
    }

    /// Logs in and stores the tokens. `on_url` receives the URL at which a person must log in. If
    /// it is `None` and a person is needed, returns [`AuthError::NeedsLogin`].
    pub(in crate::auth) async fn login_and_store(
        &self,
        discovered: &DiscoveredAuthServer,
        before: Option<&StoredLogin>,
        challenged: &[String],
        on_url: Option<&(dyn Fn(&str) + Send + Sync)>,
    ) -> Result<StoredLogin, AuthError> {
        let login = LoginContext {
            fetch: self.auth_http_client().await?,
            server: &self.address,
            config: &self.config,
            options: &self.options,
            discovered,
            before: before.map(|before| &before.grant),
            challenged,
        };
        let grant = match (self.config.grant, on_url) {
            (GrantType::ClientCredentials, _) => login.login_as_client().await?,
            (GrantType::AuthorizationCode, Some(on_url)) => login.login_in_browser(on_url).await?,
            (GrantType::AuthorizationCode, None) => {
                return Err(self.store_missing_scopes(before, challenged).await?);
            }
        };
        let key = login.grant_key();
        // The lock prevents a concurrent renewal from overwriting the new tokens.
        let _lock = self.options.store.lock_grant(&key).await?;
        self.options.store.save_grant(&key, &grant).await?;
        Ok(StoredLogin { key, grant })
    }

    /// Adds the scopes in `challenged` to the stored login `before`, if any, so that the next login
    /// requests them. Returns [`AuthError::NeedsLogin`].
    async fn store_missing_scopes(
        &self,
        before: Option<&StoredLogin>,
        challenged: &[String],
    ) -> Result<AuthError, AuthError> {
        if let Some(before) = before {
            let store = &self.options.store;
            let _lock = store.lock_grant(&before.key).await?;
            let stored = self.load_usable_logins().await?;
            if let Some(StoredLogin { key, mut grant }) =
                stored.into_iter().find(|stored| stored.key == before.key)
            {
                let known = grant.wanted_scopes.len();
                for scope in challenged {
                    if !grant.scopes.contains(scope) {
                        add_scope(&mut grant.wanted_scopes, scope);
                    }
                }
                if grant.wanted_scopes.len() > known {
                    store.save_grant(&key, &grant).await?;
                }
            }
        }
        Ok(self.needs_login_error(challenged))
    }

    fn needs_login_error(&self, scopes: &[String]) -> AuthError {
        AuthError::NeedsLogin {
            server: self.name.clone(),
            scopes: scopes.iter().map(|scope| shorten(scope)).collect(),
        }
    }
}

fn is_same_token(one: Option<&SecretString>, other: Option<&SecretString>) -> bool {
    one.map(ExposeSecret::expose_secret) == other.map(ExposeSecret::expose_secret)
}
