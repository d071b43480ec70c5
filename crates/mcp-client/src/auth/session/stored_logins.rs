//! The stored logins of one server, and the renewal of their tokens.

use std::sync::Arc;

use secrecy::ExposeSecret;

use crate::auth::session::{Session, StoredLogin, is_same_token};
use crate::auth::{
    error::AuthError,
    login::build_credentials,
    metadata::DiscoveredAuthServer,
    store::{Registration, unix_seconds_now},
    token,
};
use crate::primitives::error::shorten;

impl Session {
    /// Returns the stored login for the discovered authorization server and resource, if any.
    /// Returns an error if the configured client belongs to another authorization server.
    pub(in crate::auth) fn find_login(
        &self,
        stored: Vec<StoredLogin>,
        discovered: &DiscoveredAuthServer,
    ) -> Result<Option<StoredLogin>, AuthError> {
        let issuer = &discovered.server.issuer;
        let mut issuers = stored.iter().map(|current| &current.key.issuer);
        let others = issuers.find(|other| *other != issuer).cloned();
        let before = stored.into_iter().find(|current| {
            current.key.issuer == *issuer && current.key.resource == discovered.resource
        });
        // A configured client without a configured `issuer` belongs to the authorization server of
        // its first login. Its credentials must not be sent to another issuer.
        let configured = self.config.client_id.is_some() && self.config.issuer.is_none();
        match (before, others) {
            (None, Some(expected)) if configured => Err(AuthError::IssuerChanged {
                expected,
                found: shorten(issuer),
            }),
            (before, _) => Ok(before),
        }
    }

    /// Returns the stored logins that this session can use, the latest first. With a configured
    /// client id, these are the logins of that client. Without a configured client id, these are
    /// the logins of clients that were not configured.
    pub(in crate::auth) async fn load_usable_logins(&self) -> Result<Vec<StoredLogin>, AuthError> {
        let of_this_client = |current: &StoredLogin| match &self.config.client_id {
            Some(id) => current.grant.client.id == *id,
            None => current.grant.client.registration != Registration::Configured,
        };
        let mut stored = self.load_all_logins().await?;
        stored.retain(of_this_client);
        Ok(stored)
    }

    /// Returns all stored logins of this server and principal, even if another OAuth client
    /// obtained them.
    pub(in crate::auth) async fn load_all_logins(&self) -> Result<Vec<StoredLogin>, AuthError> {
        let principal = self.config.token_principal();
        let store = &self.options.store;
        let found = store.find_grants(&self.address, principal).await?;
        let current = |(key, grant)| StoredLogin { key, grant };
        Ok(found.into_iter().map(current).collect())
    }

    /// Revokes the refresh token, which also invalidates its access tokens. Without a refresh
    /// token, revokes the access token. Does nothing if the authorization server has no revocation
    /// endpoint.
    pub(in crate::auth) async fn revoke_tokens(
        &self,
        current: &StoredLogin,
    ) -> Result<(), AuthError> {
        let (Some(endpoint), Some(tokens)) =
            (&current.grant.revocation_endpoint, &current.grant.tokens)
        else {
            return Ok(());
        };
        let fetch = self.auth_http_client().await?;
        let endpoint = fetch.guard.parse_url("revocation endpoint", endpoint)?;
        let client = build_credentials(&current.grant.client, &self.config, &current.key.issuer);
        let token = match &tokens.refresh {
            Some(refresh) => (refresh, "refresh_token"),
            None => (&tokens.access, "access_token"),
        };
        token::revoke_token(fetch, &endpoint, &client, token).await
    }

    /// Renews the tokens of a login, or returns the tokens of a concurrent renewal. Returns `None`
    /// if only a new login can obtain tokens.
    ///
    /// The renewal continues if the request is cancelled: a refresh token works only once, and its
    /// replacement must not be lost.
    pub(crate) async fn spawn_renewal(
        self: &Arc<Self>,
        old: &StoredLogin,
    ) -> Result<Option<StoredLogin>, AuthError> {
        let (session, old) = (self.clone(), old.clone());
        let renewal = tokio::spawn(async move { session.renew_tokens(&old).await });
        renewal.await.unwrap_or_else(|_| Ok(None))
    }

    async fn renew_tokens(&self, old: &StoredLogin) -> Result<Option<StoredLogin>, AuthError> {
        let store = &self.options.store;
        let _lock = store.lock_grant(&old.key).await?;
        let stored = self.load_usable_logins().await?;
        let Some(mut current) = stored.into_iter().find(|stored| stored.key == old.key) else {
            return Ok(None);
        };
        if !is_same_token(current.access_token(), old.access_token()) {
            return Ok(Some(current));
        }
        let tokens = current.grant.tokens.as_ref();
        let Some(refresh) = tokens.and_then(|tokens| tokens.refresh.clone()) else {
            return Ok(None);
        };
        let fetch = self.auth_http_client().await?;
        let grant = &mut current.grant;
        let endpoint = fetch
            .guard
            .parse_url("token endpoint", &grant.token_endpoint)?;
        let parameters = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose_secret()),
            ("resource", &current.key.resource),
        ];
        let client = build_credentials(&grant.client, &self.config, &current.key.issuer);
        match token::request_tokens(fetch, &endpoint, &client, &parameters).await {
            Ok(mut tokens) => {
                // If the response contains no new refresh token, the old one stays valid (RFC 6749,
                // section 6).
                tokens.refresh = tokens.refresh.or(Some(refresh));
                grant.tokens = Some(tokens);
                grant.issued_at = unix_seconds_now();
                store.save_grant(&current.key, grant).await?;
                Ok(Some(current))
            }
            // `invalid_grant`: the refresh token was already used, was revoked, or has expired.
            Err(AuthError::Refused { error, .. }) if error == "invalid_grant" => {
                tracing::debug!(server = self.name, "the refresh token is no longer valid");
                grant.tokens = None;
                store.save_grant(&current.key, grant).await?;
                Ok(None)
            }
            // The authorization server has removed the client, so the stored login is useless.
            Err(AuthError::Refused { error, .. })
                if matches!(error.as_str(), "invalid_client" | "unauthorized_client") =>
            {
                tracing::debug!(
                    server = self.name,
                    error,
                    "the client is no longer registered"
                );
                store.remove_grant(&current.key).await?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
