//! Authentication of HTTP clients with a token.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::options::AccessToken;

/// Axum middleware that rejects HTTP requests without the access token with status 401.
pub(crate) async fn authenticate(
    State(token): State<AccessToken>,
    request: Request,
    next: Next,
) -> Response {
    if extract_token(request.headers()).is_some_and(|sent| token.matches_token(sent)) {
        return next.run(request).await;
    }
    let text = "An access token is required: send it as `Authorization: Bearer TOKEN`\n";
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, challenge, text).into_response()
}

fn extract_token(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.as_bytes().split_at_checked(7)?;
        scheme
            .eq_ignore_ascii_case(b"bearer ")
            .then(|| token.trim_ascii())
    });
    bearer.or_else(|| headers.get("x-api-key").map(HeaderValue::as_bytes))
}
