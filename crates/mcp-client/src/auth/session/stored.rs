//! The stored tokens of one server, and their renewal.

use std::sync::Arc;

use secrecy::ExposeSecret;

use crate::auth::session::{Current, Session, is_same};
use crate::auth::{
    error::AuthError,
    login::credentials,
    metadata::Discovered,
    store::{Registration, now},
    token,
};
use crate::primitives::error::shortened;

impl Session {
    /// Returns the stored login for the discovered authorization server, if any.
    pub(in crate::auth) fn before(
        &self,
        stored: Vec<Current>,
        discovered: &Discovered,
    ) -> Result<Option<Current>, AuthError> {
        let issuer = &discovered.server.issuer;
        let others = stored
            .iter()
            .find(|current| current.key.issuer != *issuer)
            .map(|current| current.key.issuer.clone());
        let before = stored.into_iter().find(|current| {
            current.key.issuer == *issuer && current.key.resource == discovered.resource
        });
        // A configured client belongs to one authorization server: to the configured issuer, or to
        // the first discovered one.
        let configured = self.config.client_id.is_some() && self.config.issuer.is_none();
        match (before, others) {
            (None, Some(expected)) if configured => Err(AuthError::IssuerChanged {
                expected,
                found: shortened(issuer),
            }),
            (before, _) => Ok(before),
        }
    }

    /// Returns the stored logins that the configured client can use, the latest first.
    pub(in crate::auth) async fn stored(&self) -> Result<Vec<Current>, AuthError> {
        let of_this_client = |current: &Current| match &self.config.client_id {
            Some(id) => current.grant.client.id == *id,
            None => current.grant.client.registration != Registration::Configured,
        };
        let mut stored = self.stored_by_any_client().await?;
        stored.retain(of_this_client);
        Ok(stored)
    }

    /// Returns all stored logins of this server and principal.
    pub(in crate::auth) async fn stored_by_any_client(&self) -> Result<Vec<Current>, AuthError> {
        let principal = self.config.principal();
        let found = self.options.store.find(&self.address, principal).await?;
        let current = |(key, grant)| Current { key, grant };
        Ok(found.into_iter().map(current).collect())
    }

    /// Revokes the refresh token, which also invalidates its access tokens. Revokes the access
    /// token if there is no refresh token.
    pub(in crate::auth) async fn revoke(&self, current: &Current) -> Result<(), AuthError> {
        let (Some(endpoint), Some(tokens)) =
            (&current.grant.revocation_endpoint, &current.grant.tokens)
        else {
            return Ok(());
        };
        let fetch = self.fetch().await?;
        let endpoint = fetch.guard.parse("revocation endpoint", endpoint)?;
        let client = credentials(&current.grant.client, &self.config, &current.key.issuer);
        let token = match &tokens.refresh {
            Some(refresh) => (refresh, "refresh_token"),
            None => (&tokens.access, "access_token"),
        };
        token::revoke(fetch, &endpoint, &client, token).await
    }

    /// Renews tokens, or returns the tokens of a concurrent renewal. Returns `None` if a login is
    /// needed.
    ///
    /// The renewal continues if the request is cancelled: a refresh token works only once, and its
    /// replacement must not be lost.
    pub(crate) async fn renewed(
        self: &Arc<Self>,
        old: &Current,
    ) -> Result<Option<Current>, AuthError> {
        let (session, old) = (self.clone(), old.clone());
        let renewal = tokio::spawn(async move { session.renew(&old).await });
        renewal.await.unwrap_or_else(|_| Ok(None))
    }

    async fn renew(&self, old: &Current) -> Result<Option<Current>, AuthError> {
        let store = &self.options.store;
        let _lock = store.lock(&old.key).await?;
        let stored = self.stored().await?;
        let Some(mut current) = stored.into_iter().find(|stored| stored.key == old.key) else {
            return Ok(None);
        };
        if !is_same(current.token(), old.token()) {
            return Ok(Some(current));
        }
        let tokens = current.grant.tokens.as_ref();
        let Some(refresh) = tokens.and_then(|tokens| tokens.refresh.clone()) else {
            return Ok(None);
        };
        let fetch = self.fetch().await?;
        let grant = &mut current.grant;
        let endpoint = fetch.guard.parse("token endpoint", &grant.token_endpoint)?;
        let parameters = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose_secret()),
            ("resource", &current.key.resource),
        ];
        let client = credentials(&grant.client, &self.config, &current.key.issuer);
        match token::request(fetch, &endpoint, &client, &parameters).await {
            Ok(mut tokens) => {
                // A refresh token stays valid if the response contains no new one (RFC 6749,
                // section 6).
                tokens.refresh = tokens.refresh.or(Some(refresh));
                grant.tokens = Some(tokens);
                grant.issued_at = now();
                store.save(&current.key, grant).await?;
                Ok(Some(current))
            }
            // `invalid_grant`: the refresh token was already used, was revoked, or has expired.
            Err(AuthError::Refused { error, .. }) if error == "invalid_grant" => {
                tracing::debug!(
                    server = self.name,
                    "the refresh token is not valid any more"
                );
                grant.tokens = None;
                store.save(&current.key, grant).await?;
                Ok(None)
            }
            // The authorization server does not know the client, so the stored login is useless.
            Err(AuthError::Refused { error, .. })
                if matches!(error.as_str(), "invalid_client" | "unauthorized_client") =>
            {
                tracing::debug!(
                    server = self.name,
                    error,
                    "the client is not registered any more"
                );
                store.remove(&current.key).await?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
