//! The tokens of one server during its use: loaded from the store, renewed in time, and requested
//! again if no person is needed.

mod stored;

use std::sync::{Arc, Mutex, MutexGuard};

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use tokio::{sync::OnceCell, time::Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    auth::{
        challenge::{Challenge, add_scope},
        error::AuthError,
        fetch::{Fetch, guard::Guard},
        login::{Login, callback::LOGIN},
        metadata::{Discovered, discover},
        settings::AuthOptions,
        store::{GrantKey, StoredGrant, StoredTokens, now},
    },
    config::{
        ServerConfig, ServerTransport,
        login::{AuthConfig, GrantType},
    },
    primitives::error::shortened,
    primitives::sync::lock,
};

/// Response in which a server rejects the access token of a request.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Status 401: the request needs a token, or another token.
    Unauthorized(Challenge),
    /// Status 403: the token lacks the scopes in the challenge.
    InsufficientScope(Challenge),
}

/// Handle of a session. Dropping it cancels pending logins.
pub(crate) struct SessionHandle {
    session: Arc<Session>,
    _quit: DropGuard,
}

impl SessionHandle {
    /// Creates the session of a server. Returns `None` for servers without OAuth: child processes,
    /// and servers with a configured `Authorization` header.
    pub(crate) fn new(server: &ServerConfig, options: &AuthOptions) -> Option<Arc<Self>> {
        let session = Session::of_server(server, options).ok()?;
        Some(Arc::new(Self {
            _quit: session.quit.clone().drop_guard(),
            session: Arc::new(session),
        }))
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

/// OAuth state of one MCP server: its tokens and their renewal.
pub(crate) struct Session {
    name: String,
    url: Url,
    /// Configured URL, which identifies the server in the token store.
    address: String,
    config: AuthConfig,
    options: AuthOptions,
    fetch: OnceCell<Fetch>,
    known: Mutex<Known>,
    /// Lock that is held while new tokens are requested. Other requests wait for these tokens.
    renewal: tokio::sync::Mutex<()>,
    quit: CancellationToken,
}

#[derive(Default)]
struct Known {
    /// Tokens in use. `None` until they are loaded from the store.
    current: Option<Current>,
    is_loaded: bool,
    /// New token that the server has not accepted yet, and its origin. Prevents endless token
    /// requests if a server rejects every token.
    unproven: Option<(SecretString, Origin)>,
    /// Time and scopes of the last attempt that ended with the need for a login. Requests that the
    /// server rejected at the same time do not repeat this attempt.
    needs_person: Option<(Instant, Vec<String>)>,
    /// Whether a person declined a login. Further calls do not start another login.
    declined: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Renewed,
    Login,
}

#[derive(Clone)]
pub(crate) struct Current {
    pub(in crate::auth) key: GrantKey,
    pub(in crate::auth) grant: StoredGrant,
}

impl Current {
    fn token(&self) -> Option<&SecretString> {
        self.grant.tokens.as_ref().map(|tokens| &tokens.access)
    }

    fn has_expired(&self) -> bool {
        let end = self
            .grant
            .tokens
            .as_ref()
            .and_then(|tokens| tokens.expires_at);
        end.is_some_and(|end| end <= now())
    }

    fn is_stale(&self) -> bool {
        let tokens = self.grant.tokens.as_ref();
        tokens.is_some_and(StoredTokens::is_stale)
    }
}

impl Session {
    pub(crate) fn of_server(
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
            reason: format!("its address cannot be read: {error}"),
        })?;
        if server.authorization.lacks_issuer() {
            return Err(AuthError::Configuration {
                reason:
                    "`client_secret` needs an `issuer`: the authorization server that it is for"
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

    pub(in crate::auth) async fn fetch(&self) -> Result<&Fetch, AuthError> {
        self.fetch
            .get_or_try_init(async || {
                // Configured URLs may be in any network.
                let configured = [&self.config.issuer, &self.config.metadata_url];
                let configured = configured.into_iter().flatten();
                let configured = configured.filter_map(|url| Url::parse(url).ok());
                let urls: Vec<Url> = configured.chain([self.url.clone()]).collect();
                Fetch::new(Guard::of_configured(&urls).await)
            })
            .await
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    /// Returns the current tokens. Loads them from the store on the first call.
    async fn current(&self) -> Option<Current> {
        {
            let known = self.known();
            if known.is_loaded {
                return known.current.clone();
            }
        }
        let stored = match self.stored().await {
            Ok(stored) => stored.into_iter().next(),
            // Most servers need no token. Servers that need one reject the request, which reports
            // the problem.
            Err(error) => {
                tracing::warn!(server = self.name, %error, "failed to load tokens");
                return None;
            }
        };
        let mut known = self.known();
        if !known.is_loaded {
            known.is_loaded = true;
            known.current = stored;
        }
        known.current.clone()
    }

    /// Replaces the current tokens. `origin` is set for tokens that were just issued.
    fn set_current(&self, current: Current, origin: Option<Origin>) -> Option<SecretString> {
        let token = current.token().cloned();
        let mut known = self.known();
        known.is_loaded = true;
        known.declined = false;
        let unproven = known.unproven.take();
        known.unproven = match origin {
            Some(origin) => token.clone().map(|token| (token, origin)),
            // A token that another request obtained stays unproven.
            None => unproven.filter(|(unproven, _)| is_same(Some(unproven), token.as_ref())),
        };
        known.current = Some(current);
        token
    }

    /// Returns the access token for the next request. Renews a token that expires soon. Returns
    /// `None` without a token: then the server sends a challenge.
    pub(crate) async fn bearer(self: &Arc<Self>) -> Result<Option<SecretString>, AuthError> {
        let Some(current) = self.current().await else {
            return Ok(None);
        };
        if !current.is_stale() {
            return Ok(current.token().cloned());
        }
        let _lock = self.renewal.lock().await;
        let again = self.current().await.unwrap_or(current);
        if !again.is_stale() {
            return Ok(again.token().cloned());
        }
        match self.renewed(&again).await {
            Ok(Some(renewed)) => Ok(self.set_current(renewed, Some(Origin::Renewed))),
            // The request is sent with the expired token, and the server answers with a challenge.
            Ok(None) => Ok(again.token().cloned()),
            // The old token is still valid, and the next renewal may succeed.
            Err(error) if !again.has_expired() => {
                tracing::debug!(server = self.name, %error, "failed to renew the token");
                Ok(again.token().cloned())
            }
            Err(error) => Err(error),
        }
    }

    /// Records that the server accepted this token.
    pub(crate) fn accepted(&self, token: &SecretString) {
        let mut known = self.known();
        if let Some((unproven, _)) = &known.unproven
            && is_same(Some(unproven), Some(token))
        {
            known.unproven = None;
        }
    }

    /// Returns a new token after the server rejected the token `used`. Returns `None` if the server
    /// does not use OAuth.
    ///
    /// The work continues if the request is cancelled: a person may be logging in, and the next
    /// request uses the new token.
    pub(crate) async fn refused(
        self: &Arc<Self>,
        used: Option<SecretString>,
        refusal: Refusal,
    ) -> Result<Option<SecretString>, AuthError> {
        let session = self.clone();
        let search = async move { session.replacement(used.as_ref(), &refusal).await };
        let search = tokio::spawn(self.quit.clone().run_until_cancelled_owned(search));
        match search.await {
            Ok(Some(found)) => found,
            Ok(None) | Err(_) => Err(self.needs_login(&[])),
        }
    }

    async fn replacement(
        self: &Arc<Self>,
        used: Option<&SecretString>,
        refusal: &Refusal,
    ) -> Result<Option<SecretString>, AuthError> {
        let begun = Instant::now();
        let _lock = self.renewal.lock().await;
        let stored = self.stored().await?;
        // Another call or another process has already obtained new tokens.
        if let Some(newer) = stored.first()
            && let Some(token) = newer.token()
            && !newer.is_stale()
            && !is_same(used, Some(token))
        {
            return Ok(self.set_current(newer.clone(), None));
        }
        match refusal {
            Refusal::Unauthorized(challenge) => {
                if let Some((found, scopes)) = &self.known().needs_person
                    && *found >= begun
                {
                    return Err(self.needs_login(scopes));
                }
                let new = self.after_unauthorized(used, stored, challenge).await;
                if let Err(AuthError::NeedsLogin { scopes, .. }) = &new {
                    self.known().needs_person = Some((Instant::now(), scopes.clone()));
                }
                new
            }
            Refusal::InsufficientScope(challenge) => self
                .after_insufficient_scope(stored, challenge)
                .await
                .map(Some),
        }
    }

    async fn after_unauthorized(
        self: &Arc<Self>,
        used: Option<&SecretString>,
        stored: Vec<Current>,
        challenge: &Challenge,
    ) -> Result<Option<SecretString>, AuthError> {
        let unproven = {
            let known = self.known();
            let unproven = known.unproven.as_ref();
            unproven
                .filter(|(token, _)| is_same(Some(token), used))
                .map(|(_, origin)| *origin)
        };
        let is_oauth =
            challenge.resource_metadata.is_some() || !stored.is_empty() || self.config.is_set();
        let discovered = match self.discover(challenge, &stored).await {
            Ok(discovered) if discovered.assumed && !is_oauth && self.options.on_url.is_none() => {
                return Ok(None);
            }
            Ok(discovered) => discovered,
            Err(error) if is_oauth || error.is_identity_mismatch() => return Err(error),
            Err(error) => {
                tracing::debug!(server = self.name, %error, "no login was discovered");
                return Ok(None);
            }
        };
        let before = self.before(stored, &discovered)?;
        if let Some(before) = before.as_ref().filter(|_| unproven.is_none())
            && let Some(renewed) = self.renewed(before).await?
        {
            return Ok(self.set_current(renewed, Some(Origin::Renewed)));
        }
        // This issuer already issued the rejected token, so another login would not help.
        if unproven == Some(Origin::Login) && before.is_some() {
            let issuer = shortened(&discovered.server.issuer);
            return Err(AuthError::Failed(format!(
                "it rejects the new token of {issuer}"
            )));
        }
        self.login_again(&discovered, before.as_ref(), &challenge.scopes)
            .await
            .map(Some)
    }

    /// Requests a token with the missing scopes. Each scope is requested only once.
    async fn after_insufficient_scope(
        &self,
        stored: Vec<Current>,
        challenge: &Challenge,
    ) -> Result<SecretString, AuthError> {
        let needed = &challenge.scopes;
        if let Some(Current { grant, .. }) = stored.first()
            && needed.iter().all(|scope| grant.scopes.contains(scope))
        {
            let needed = shortened(&needed.join(" "));
            return Err(AuthError::Failed(format!(
                "the login does not cover the scopes `{needed}`, which were requested before"
            )));
        }
        let discovered = self.discover(challenge, &stored).await?;
        let before = self.before(stored, &discovered)?;
        self.login_again(&discovered, before.as_ref(), needed).await
    }

    pub(in crate::auth) async fn discover(
        &self,
        challenge: &Challenge,
        stored: &[Current],
    ) -> Result<Discovered, AuthError> {
        let known: Vec<String> = stored
            .iter()
            .map(|current| current.key.issuer.clone())
            .collect();
        let fetch = self.fetch().await?;
        discover(fetch, &self.url, &self.config, challenge, &known).await
    }

    /// Starts a login during a call, unless a person declined one before.
    async fn login_again(
        &self,
        discovered: &Discovered,
        before: Option<&Current>,
        challenged: &[String],
    ) -> Result<SecretString, AuthError> {
        let on_url = self
            .options
            .on_url
            .as_deref()
            .filter(|_| !self.known().declined);
        let current = self.login(discovered, before, challenged, on_url).await;
        if let Err(AuthError::Refused { what: LOGIN, .. } | AuthError::TimedOut { .. }) = &current {
            self.known().declined = true;
        }
        let token = self.set_current(current?, Some(Origin::Login));
        token.ok_or_else(|| self.needs_login(challenged))
    }

    /// Logs in and stores the tokens. `on_url` receives the page on which a person must log in.
    pub(in crate::auth) async fn login(
        &self,
        discovered: &Discovered,
        before: Option<&Current>,
        challenged: &[String],
        on_url: Option<&(dyn Fn(&str) + Send + Sync)>,
    ) -> Result<Current, AuthError> {
        let login = Login {
            fetch: self.fetch().await?,
            server: &self.address,
            config: &self.config,
            options: &self.options,
            discovered,
            before: before.map(|before| &before.grant),
            challenged,
        };
        let grant = match (self.config.grant, on_url) {
            (GrantType::ClientCredentials, _) => login.as_client().await?,
            (GrantType::AuthorizationCode, Some(on_url)) => login.in_browser(on_url).await?,
            (GrantType::AuthorizationCode, None) => {
                return Err(self.require_login(before, challenged).await?);
            }
        };
        let key = login.key();
        // The lock prevents that a concurrent renewal overwrites the new tokens.
        let _lock = self.options.store.lock(&key).await?;
        self.options.store.save(&key, &grant).await?;
        Ok(Current { key, grant })
    }

    /// Stores the missing scopes for the next login. Returns the error that asks a person to log
    /// in.
    async fn require_login(
        &self,
        before: Option<&Current>,
        challenged: &[String],
    ) -> Result<AuthError, AuthError> {
        if let Some(before) = before {
            let store = &self.options.store;
            let _lock = store.lock(&before.key).await?;
            let stored = self.stored().await?;
            if let Some(Current { key, mut grant }) =
                stored.into_iter().find(|stored| stored.key == before.key)
            {
                let known = grant.wanted_scopes.len();
                for scope in challenged {
                    if !grant.scopes.contains(scope) {
                        add_scope(&mut grant.wanted_scopes, scope);
                    }
                }
                if grant.wanted_scopes.len() > known {
                    store.save(&key, &grant).await?;
                }
            }
        }
        Ok(self.needs_login(challenged))
    }

    fn needs_login(&self, scopes: &[String]) -> AuthError {
        AuthError::NeedsLogin {
            server: self.name.clone(),
            scopes: scopes.iter().map(|scope| shortened(scope)).collect(),
        }
    }
}

fn is_same(one: Option<&SecretString>, other: Option<&SecretString>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.expose_secret() == other.expose_secret(),
        (None, None) => true,
        _ => false,
    }
}
