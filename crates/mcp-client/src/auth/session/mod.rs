//! The tokens of one server while it is used: taken from the store, renewed in time and once for all,
//! asked for anew where that is possible without a person.

mod stored;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::OnceCell;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::config::{ServerConfig, ServerTransport};

use crate::auth::{
    challenge::{Challenge, add_scope},
    error::{AuthError, foreign},
    fetch::{Fetch, guard::Guard},
    login::{Login, callback::LOGIN},
    metadata::{Discovered, discover},
    settings::{AuthConfig, AuthOptions, GrantType},
    store::{GrantKey, StoredGrant, StoredTokens, now},
};

/// What a server said instead of an answer.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// 401: it wants a token, or another one. With its challenge, if there is one.
    Unauthorized(Option<String>),
    /// 403: the token does not have the scopes that the challenge names.
    InsufficientScope(Challenge),
}

/// The session of a server as long as the server is there. Nobody is asked to log in after that.
pub(crate) struct HeldSession {
    session: Arc<Session>,
    _quit: DropGuard,
}

impl HeldSession {
    /// `None` for servers that are not logged in to: processes, and those with a header of their own.
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

/// The tokens of one server.
pub(crate) struct Session {
    name: String,
    url: Url,
    /// The address as it is configured, by which the store finds what belongs to it.
    address: String,
    config: AuthConfig,
    options: AuthOptions,
    fetch: OnceCell<Fetch>,
    known: Mutex<Known>,
    /// Held by whoever gets new tokens. The others wait, and use them.
    turn: tokio::sync::Mutex<()>,
    quit: CancellationToken,
}

#[derive(Default)]
struct Known {
    /// What is used, once the store was asked.
    current: Option<Current>,
    asked_store: bool,
    /// A token that is new and that the server has not taken yet, and how it came to be. Without this
    /// a server that takes none would be given a new one for every request.
    unproven: Option<(SecretString, Origin)>,
    /// How often new tokens were tried to get after a refusal.
    tries: u64,
    /// Whether that ended the last time with the need of a person, and for which scopes. Calls that
    /// were refused at the same time need not find it out one after the other.
    in_vain: Option<Vec<String>>,
    /// A person was sent to a page, and did not log in. Nobody is sent there for each call again.
    declined: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Renewed,
    Login,
}

#[derive(Clone)]
pub(crate) struct Current {
    key: GrantKey,
    grant: StoredGrant,
}

impl Current {
    fn token(&self) -> Option<&SecretString> {
        self.grant.tokens.as_ref().map(|tokens| &tokens.access)
    }

    fn has_ended(&self) -> bool {
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

    pub(crate) fn key(&self) -> &GrantKey {
        &self.key
    }

    pub(crate) fn grant(&self) -> &StoredGrant {
        &self.grant
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
            turn: tokio::sync::Mutex::default(),
            quit: CancellationToken::new(),
        })
    }

    pub(in crate::auth) async fn fetch(&self) -> Result<&Fetch, AuthError> {
        self.fetch
            .get_or_try_init(async || {
                // What a person has configured may be asked, wherever it is.
                let configured = [&self.config.issuer, &self.config.metadata_url];
                let configured = configured.into_iter().flatten();
                let configured = configured.filter_map(|url| Url::parse(url).ok());
                let urls: Vec<Url> = configured.chain([self.url.clone()]).collect();
                Fetch::new(Guard::of_configured(&urls).await)
            })
            .await
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is used now, from the store at first.
    async fn current(&self) -> Option<Current> {
        {
            let known = self.known();
            if known.asked_store {
                return known.current.clone();
            }
        }
        let stored = match self.stored().await {
            Ok(stored) => stored.into_iter().next(),
            // Most servers ask for no token, and are none the worse for it. One that does is told of
            // by the refusal.
            Err(error) => {
                tracing::warn!(server = self.name, %error, "tokens cannot be looked up");
                return None;
            }
        };
        let mut known = self.known();
        if !known.asked_store {
            known.asked_store = true;
            known.current = stored;
        }
        known.current.clone()
    }

    /// Uses this from now on. `origin`: how it came to be, if it did so just now and here.
    fn use_from_now(&self, current: Current, origin: Option<Origin>) -> Option<SecretString> {
        let token = current.token().cloned();
        let mut known = self.known();
        known.asked_store = true;
        known.declined = false;
        let unproven = known.unproven.take();
        known.unproven = match origin {
            Some(origin) => token.clone().map(|token| (token, origin)),
            // What another call has just got is as new as before.
            None => unproven.filter(|(unproven, _)| is_same(Some(unproven), token.as_ref())),
        };
        known.current = Some(current);
        token
    }

    /// The token for the next request, renewed if it is about to end; `None` if there is none, and the
    /// server is to say what it wants.
    pub(crate) async fn bearer(self: &Arc<Self>) -> Result<Option<SecretString>, AuthError> {
        let Some(current) = self.current().await else {
            return Ok(None);
        };
        if !current.is_stale() {
            return Ok(current.token().cloned());
        }
        let _turn = self.turn.lock().await;
        let again = self.current().await.unwrap_or(current);
        if !again.is_stale() {
            return Ok(again.token().cloned());
        }
        match self.renewed(&again).await {
            Ok(Some(renewed)) => Ok(self.use_from_now(renewed, Some(Origin::Renewed))),
            // What the server says leads to the rest.
            Ok(None) => Ok(again.token().cloned()),
            // It is good for a moment more, and there may be an answer the next time.
            Err(error) if !again.has_ended() => {
                tracing::debug!(server = self.name, %error, "the token is not renewed yet");
                Ok(again.token().cloned())
            }
            Err(error) => Err(error),
        }
    }

    /// The server took this token.
    pub(crate) fn accepted(&self, token: &SecretString) {
        let mut known = self.known();
        if let Some((unproven, _)) = &known.unproven
            && is_same(Some(unproven), Some(token))
        {
            known.unproven = None;
        }
    }

    /// What to send instead of `used`, which the server refused. `None`: this has nothing to do with
    /// OAuth.
    ///
    /// It goes on if the request is given up: a person may be about to log in, and the next request finds
    /// the token.
    pub(crate) async fn refused(
        self: &Arc<Self>,
        used: Option<SecretString>,
        refusal: Refusal,
    ) -> Result<Option<SecretString>, AuthError> {
        let session = self.clone();
        let search = async move { session.another(used.as_ref(), &refusal).await };
        let search = tokio::spawn(self.quit.clone().run_until_cancelled_owned(search));
        match search.await {
            Ok(Some(found)) => found,
            Ok(None) | Err(_) => Err(self.needs_login(&[])),
        }
    }

    async fn another(
        self: &Arc<Self>,
        used: Option<&SecretString>,
        refusal: &Refusal,
    ) -> Result<Option<SecretString>, AuthError> {
        let tries = self.known().tries;
        let _turn = self.turn.lock().await;
        let stored = self.stored().await?;
        // Somebody else has been quicker: another call, or another process.
        if let Some(newer) = stored.first()
            && let Some(token) = newer.token()
            && !newer.is_stale()
            && !is_same(used, Some(token))
        {
            return Ok(self.use_from_now(newer.clone(), None));
        }
        match refusal {
            Refusal::Unauthorized(challenge) => {
                if let Some(scopes) = self.failed_since(tries) {
                    return Err(self.needs_login(&scopes));
                }
                let challenge = challenge.as_deref().map(Challenge::read);
                let challenge = challenge.unwrap_or_default();
                let new = self.after_unauthorized(used, stored, &challenge).await;
                let mut known = self.known();
                known.tries += 1;
                known.in_vain = match &new {
                    Err(AuthError::NeedsLogin { scopes, .. }) => Some(scopes.clone()),
                    _ => None,
                };
                new
            }
            Refusal::InsufficientScope(challenge) => self
                .after_insufficient_scope(stored, challenge)
                .await
                .map(Some),
        }
    }

    /// Whether another call found out meanwhile that it takes a person, and for which scopes.
    fn failed_since(&self, tries: u64) -> Option<Vec<String>> {
        let known = self.known();
        known.in_vain.clone().filter(|_| known.tries != tries)
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
        let says_how =
            challenge.resource_metadata.is_some() || !stored.is_empty() || self.config.is_set();
        let discovered = match self.discover(challenge, &stored).await {
            Ok(discovered) if discovered.assumed && !says_how && self.options.on_url.is_none() => {
                return Ok(None);
            }
            Ok(discovered) => discovered,
            Err(error) if says_how || error.is_about_trust() => return Err(error),
            Err(error) => {
                tracing::debug!(server = self.name, %error, "no way to log in was found");
                return Ok(None);
            }
        };
        let before = self.before(stored, &discovered)?;
        if let Some(before) = before.as_ref().filter(|_| unproven.is_none())
            && let Some(renewed) = self.renewed(before).await?
        {
            return Ok(self.use_from_now(renewed, Some(Origin::Renewed)));
        }
        // One of another issuer is refused with good reason.
        if unproven == Some(Origin::Login) && before.is_some() {
            return Err(AuthError::StillRefused {
                issuer: foreign(discovered.server.issuer()),
            });
        }
        let current = self
            .login(&discovered, before.as_ref(), &challenge.scopes)
            .await?;
        Ok(self.use_from_now(current, Some(Origin::Login)))
    }

    /// More scopes are needed than the token has. Each is asked for once.
    async fn after_insufficient_scope(
        &self,
        stored: Vec<Current>,
        challenge: &Challenge,
    ) -> Result<SecretString, AuthError> {
        let needed = &challenge.scopes;
        let refused = || AuthError::InsufficientScope {
            scopes: needed.iter().map(|scope| foreign(scope)).collect(),
        };
        if let Some(Current { grant, .. }) = stored.first()
            && needed.iter().all(|scope| grant.scopes.contains(scope))
        {
            return Err(refused());
        }
        let discovered = self.discover(challenge, &stored).await?;
        let before = self.before(stored, &discovered)?;
        let current = self.login(&discovered, before.as_ref(), needed).await?;
        self.use_from_now(current, Some(Origin::Login))
            .ok_or_else(refused)
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

    /// Gets tokens without a refresh token, if that is possible here.
    async fn login(
        &self,
        discovered: &Discovered,
        before: Option<&Current>,
        challenged: &[String],
    ) -> Result<Current, AuthError> {
        let login = self.prepared(discovered, before, challenged).await?;
        let on_url = self.options.on_url.as_ref();
        let on_url = on_url.filter(|_| !self.known().declined);
        let grant = match (self.config.grant, on_url) {
            (GrantType::ClientCredentials, _) => login.as_client().await?,
            (GrantType::AuthorizationCode, Some(on_url)) => {
                let grant = login.in_browser(&**on_url).await;
                if let Err(AuthError::Refused { what: LOGIN, .. } | AuthError::TimedOut { .. }) =
                    &grant
                {
                    self.known().declined = true;
                }
                grant?
            }
            (GrantType::AuthorizationCode, None) => {
                return self.wait_for_login(before, challenged).await;
            }
        };
        self.keep(login.key(), grant).await
    }

    pub(in crate::auth) async fn prepared<'a>(
        &'a self,
        discovered: &'a Discovered,
        before: Option<&'a Current>,
        challenged: &'a [String],
    ) -> Result<Login<'a>, AuthError> {
        Ok(Login {
            fetch: self.fetch().await?,
            server: &self.address,
            config: &self.config,
            options: &self.options,
            discovered,
            before: before.map(|before| &before.grant),
            challenged,
        })
    }

    pub(in crate::auth) async fn keep(
        &self,
        key: GrantKey,
        grant: StoredGrant,
    ) -> Result<Current, AuthError> {
        // Whoever is just renewing what is replaced here must not replace it in turn.
        let _turn = self.options.store.lock(&key).await?;
        self.options.store.save(&key, &grant).await?;
        Ok(Current { key, grant })
    }

    /// Leaves a note for the next login which scopes were missing.
    async fn wait_for_login(
        &self,
        before: Option<&Current>,
        challenged: &[String],
    ) -> Result<Current, AuthError> {
        if let Some(before) = before {
            let store = &self.options.store;
            let _turn = store.lock(&before.key).await?;
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
        Err(self.needs_login(challenged))
    }

    fn needs_login(&self, scopes: &[String]) -> AuthError {
        AuthError::NeedsLogin {
            server: self.name.clone(),
            scopes: scopes.iter().map(|scope| foreign(scope)).collect(),
        }
    }

    pub(in crate::auth) fn config(&self) -> &AuthConfig {
        &self.config
    }
}

fn is_same(one: Option<&SecretString>, other: Option<&SecretString>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.expose_secret() == other.expose_secret(),
        (None, None) => true,
        _ => false,
    }
}
