//! Requests to the OAuth token endpoint (OAuth 2.1, section 3.2).

pub(crate) mod jwt;

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::{Url, header::HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::auth::{
    error::AuthError,
    oauth_http_client::{JsonResponse, OAuthHttpClient, bad_response, encode_form},
    store::{StoredTokens, unix_seconds_now},
};
use crate::config::login::ClientAuth;
use crate::primitives::error::shorten;

const TOKEN: &str = "token";

/// Credentials with which an OAuth client authenticates itself at the token endpoint.
pub(super) struct OAuthClientCredentials<'a> {
    pub(super) id: &'a str,
    pub(super) secret: Option<&'a SecretString>,
    pub(super) private_key: Option<&'a SecretString>,
    pub(super) method: ClientAuth,
    /// Issuer of the authorization server, which is the audience of a `private_key_jwt` assertion.
    pub(super) issuer: &'a str,
}

/// Requests tokens at the token endpoint. `parameters` are the form parameters of the grant. This
/// function adds the authentication of the client. Returns an error if the server rejects the
/// request or sends no valid token.
pub(super) async fn request_tokens(
    fetch: &OAuthHttpClient,
    endpoint: &Url,
    client: &OAuthClientCredentials<'_>,
    parameters: &[(&str, &str)],
) -> Result<StoredTokens, AuthError> {
    let answer = post_with_client_auth(fetch, endpoint, client, parameters).await?;
    if !answer.status.is_success() {
        return Err(parse_oauth_error(TOKEN, endpoint, &answer));
    }
    parse_tokens(endpoint, &answer.json)
}

/// Revokes an access or refresh token (RFC 7009).
pub(super) async fn revoke_token(
    fetch: &OAuthHttpClient,
    endpoint: &Url,
    client: &OAuthClientCredentials<'_>,
    (token, hint): (&SecretString, &str),
) -> Result<(), AuthError> {
    let parameters = [("token", token.expose_secret()), ("token_type_hint", hint)];
    let answer = post_with_client_auth(fetch, endpoint, client, &parameters).await?;
    if answer.status.is_success() {
        Ok(())
    } else {
        Err(parse_oauth_error("revocation", endpoint, &answer))
    }
}

async fn post_with_client_auth(
    fetch: &OAuthHttpClient,
    endpoint: &Url,
    client: &OAuthClientCredentials<'_>,
    parameters: &[(&str, &str)],
) -> Result<JsonResponse, AuthError> {
    let mut parameters = parameters.to_vec();
    let missing = |what: &str| AuthError::Configuration {
        reason: format!("`{}` needs a {what}", client.method.name()),
    };
    let mut authorization = None;
    let assertion;
    match client.method {
        ClientAuth::None => parameters.push(("client_id", client.id)),
        ClientAuth::ClientSecretPost => {
            let secret = client.secret.ok_or_else(|| missing("client_secret"))?;
            parameters.push(("client_id", client.id));
            parameters.push(("client_secret", secret.expose_secret()));
        }
        ClientAuth::ClientSecretBasic => {
            let secret = client.secret.ok_or_else(|| missing("client_secret"))?;
            authorization = Some(basic_auth_header(client.id, secret)?);
        }
        ClientAuth::PrivateKeyJwt => {
            let key = client.private_key.ok_or_else(|| missing("private_key"))?;
            assertion = jwt::client_assertion(key, client.id, client.issuer)?;
            parameters.push(("client_id", client.id));
            parameters.push(("client_assertion_type", jwt::ASSERTION_TYPE));
            parameters.push(("client_assertion", assertion.expose_secret()));
        }
    }
    let form = encode_form(&parameters);
    let body = ("application/x-www-form-urlencoded", form);
    let answer = fetch.send_post("token endpoint", endpoint, body, authorization);
    answer.await
}

/// Returns a Basic `Authorization` header for a client. OAuth requires that client id and secret
/// are form-encoded before the base64 encoding (RFC 6749, section 2.3.1).
fn basic_auth_header(id: &str, secret: &SecretString) -> Result<HeaderValue, AuthError> {
    let encoded = |text: &str| {
        encode_form(&[("", text)])
            .trim_start_matches('=')
            .to_owned()
    };
    let pair = format!("{}:{}", encoded(id), encoded(secret.expose_secret()));
    let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)));
    let mut value = value.map_err(|_| AuthError::Configuration {
        reason: "`client_secret` cannot be sent".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn parse_tokens(endpoint: &Url, json: &Value) -> Result<StoredTokens, AuthError> {
    let text = |key: &str| json.get(key).and_then(Value::as_str);
    let Some(access) = text("access_token").filter(|token| is_header_safe_token(token)) else {
        let reason = "`access_token` is missing or invalid";
        return Err(bad_response(TOKEN, endpoint, reason));
    };
    if let Some(kind) = text("token_type").filter(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        let reason = format!("tokens of type `{}` are not supported", shorten(kind));
        return Err(bad_response(TOKEN, endpoint, reason));
    }
    // Some servers send `expires_in` as text instead of a number.
    let lifetime = match json.get("expires_in") {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is in range, and fractions of a second do not matter"
    )]
    let lifetime = lifetime
        .filter(|seconds| seconds.is_finite())
        .map(|seconds| seconds.clamp(0.0, 1e12) as u64);
    Ok(StoredTokens {
        access: access.into(),
        refresh: text("refresh_token")
            .filter(|token| !token.is_empty())
            .map(Into::into),
        expires_at: lifetime.map(|lifetime| unix_seconds_now().saturating_add(lifetime)),
    })
}

/// Returns whether a token is visible ASCII, so that an HTTP header can contain it.
fn is_header_safe_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Converts an error response of an OAuth endpoint to [`AuthError::Refused`] (RFC 6749, section
/// 5.2), or to [`AuthError::Failed`] if its body contains no `error`.
pub(super) fn parse_oauth_error(
    what: &'static str,
    endpoint: &Url,
    answer: &JsonResponse,
) -> AuthError {
    let text = |key: &str| answer.json.get(key).and_then(Value::as_str).map(shorten);
    match text("error") {
        Some(error) => AuthError::Refused {
            what,
            error,
            description: text("error_description"),
        },
        None => bad_response(what, endpoint, format!("HTTP {}", answer.status)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_answers_are_rejected() {
        let endpoint = Url::parse("https://h/token").unwrap();
        let read = |json: Value| parse_tokens(&endpoint, &json);
        let full = read(json!({
            "access_token": "a.b-c", "token_type": "bearer", "expires_in": "60",
            "refresh_token": "r",
        }))
        .unwrap();
        assert_eq!(full.access.expose_secret(), "a.b-c");
        let left = full.expires_at.unwrap() - unix_seconds_now();
        assert!((58..=60).contains(&left), "{left}");
        assert!(!full.needs_renewal());

        let ended =
            read(json!({"access_token": "a", "expires_in": -5, "refresh_token": ""})).unwrap();
        assert!(ended.needs_renewal());
        assert!(ended.refresh.is_none());
        let endless = read(json!({"access_token": "a", "expires_in": null})).unwrap();
        assert_eq!(endless.expires_at, None);

        for json in [
            json!(null),
            json!({}),
            json!({"access_token": ""}),
            json!({"access_token": "a\r\nX: y"}),
            json!({"access_token": 5}),
            json!({"access_token": "secret-token", "token_type": "DPoP"}),
        ] {
            let error = read(json.clone()).err().unwrap().to_string();
            assert!(!error.contains("secret-token"), "{error}");
        }
    }

    #[test]
    fn both_parts_of_basic_are_encoded() {
        let value = basic_auth_header("https://c/a", &"p:ä+ %".into()).unwrap();
        let encoded = value.to_str().unwrap().strip_prefix("Basic ").unwrap();
        let pair = STANDARD.decode(encoded).unwrap();
        assert_eq!(
            String::from_utf8(pair).unwrap(),
            "https%3A%2F%2Fc%2Fa:p%3A%C3%A4%2B+%25"
        );
        assert!(value.is_sensitive());
    }
}
