//! The HTTP client that rmcp uses for MCP servers. It sends the OAuth token, and requests a new
//! token if the server rejects it.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use reqwest::{
    Client, StatusCode,
    header::{HeaderName, HeaderValue},
};
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::{
        WorkerTransport,
        common::client_side_sse::{BoxedSseResponse, ExponentialBackoff},
        streamable_http_client::{
            AuthRequiredError, InsufficientScopeError, StreamableHttpClient,
            StreamableHttpClientTransportConfig, StreamableHttpClientWorker, StreamableHttpError,
            StreamableHttpPostResponse,
        },
    },
};
use secrecy::{ExposeSecret, SecretString};

use crate::{
    auth::{
        challenge::BearerChallenge,
        error::AuthError,
        session::{SessionHandle, TokenRejection},
    },
    transport::{
        http_post::{PostRequest, repair_event_stream},
        server_stream::ServerStream,
    },
};

type HttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// Maximum number of times that an HTTP request is repeated with another token. A token may have
/// expired (status 401) or lack a scope (status 403), and its replacement may fail for the other
/// reason.
const MAX_RETRIES: usize = 3;
/// Maximum number of concurrent requests to one server. The default of rmcp (16) is lower than the
/// default number of concurrent calls (64).
const MAX_CONCURRENT_REQUESTS: usize = 256;
/// Delay before the first attempt to resume an event stream that broke.
const RESUME_DELAY: Duration = Duration::from_millis(500);
/// Maximum number of attempts to resume an event stream that broke. By default rmcp never stops, so
/// the call would hang.
const MAX_RESUMES: usize = 5;

pub(crate) type HttpTransport = WorkerTransport<StreamableHttpClientWorker<AuthorizedClient>>;

/// Creates an HTTP transport to one server. It connects when the first message is sent.
pub(crate) fn http_transport(
    client: AuthorizedClient,
    url: &str,
    headers: Headers,
) -> HttpTransport {
    let mut resume = ExponentialBackoff::default();
    resume.base_duration = RESUME_DELAY;
    resume.max_times = Some(MAX_RESUMES);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(headers)
        .max_concurrent_requests(MAX_CONCURRENT_REQUESTS);
    config.retry_config = Arc::new(resume);
    WorkerTransport::spawn(StreamableHttpClientWorker::new(client, config))
}

/// HTTP client for one MCP server that adds the OAuth access token to each request.
#[derive(Clone)]
pub(crate) struct AuthorizedClient {
    pub(crate) http: Client,
    /// OAuth session that provides the access token. `None` sends no token.
    pub(crate) session: Option<Arc<SessionHandle>>,
    /// State of the HTTP GET event stream on which the server sends requests and notifications.
    pub(crate) stream: ServerStream,
}

impl AuthorizedClient {
    /// Calls `send` with the current access token. If the server rejects the token, calls `send`
    /// again with a new one, at most [`MAX_RETRIES`] times.
    async fn send_with_token<T>(
        &self,
        send: impl Fn(Option<String>) -> BoxFuture<'static, Result<T, HttpError>> + Send + Sync,
    ) -> Result<T, HttpError> {
        let Some(session) = self.session.as_ref().map(|it| it.as_session()) else {
            return send(None).await;
        };
        let mut token = session.bearer_token().await.map_err(wrap_auth_error)?;
        let mut retries = 0;
        loop {
            let answer = send(token.as_ref().map(|it| it.expose_secret().to_owned())).await;
            let refusal = answer.as_ref().err().and_then(find_token_refusal);
            if let Some(token) = &token
                && is_token_accepted(&answer, refusal.as_ref())
            {
                session.record_accepted_token(token);
            }
            if let Some(refusal) = refusal.filter(|_| retries < MAX_RETRIES) {
                let new = session.replace_rejected_token(token.clone(), refusal).await;
                if let Some(new) = new.map_err(wrap_auth_error)? {
                    token = Some(new);
                    retries += 1;
                    continue;
                }
            }
            return answer.map_err(|error| redact_token(error, token.as_ref()));
        }
    }
}

/// Wraps an [`AuthError`] in an error type of rmcp, which [`StreamableHttpClient`] requires.
fn wrap_auth_error(error: AuthError) -> HttpError {
    HttpError::Io(io::Error::other(error))
}

/// Returns the [`AuthError`] inside an error of rmcp's HTTP transport, if any.
pub(crate) fn find_auth_error(error: &HttpError) -> Option<&AuthError> {
    match error {
        HttpError::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Redacts the access token in an error, because some servers repeat the token in their error text.
fn redact_token(error: HttpError, token: Option<&SecretString>) -> HttpError {
    match (error, token) {
        (HttpError::UnexpectedServerResponse(text), Some(token)) => {
            let text = text.replace(token.expose_secret(), "[redacted]");
            HttpError::UnexpectedServerResponse(text.into())
        }
        (error, _) => error,
    }
}

/// Returns whether an answer proves that the server accepted the token. A server error (HTTP status
/// 5xx) does not prove it, because a gateway may fail before it checks the token.
fn is_token_accepted<T>(answer: &Result<T, HttpError>, refusal: Option<&TokenRejection>) -> bool {
    match (answer, refusal) {
        (_, Some(refusal)) => matches!(refusal, TokenRejection::InsufficientScope(_)),
        (Ok(_) | Err(HttpError::SessionExpired), None) => true,
        (Err(HttpError::UnexpectedServerResponse(text)), None) => text.starts_with("HTTP 4"),
        (Err(_), None) => false,
    }
}

/// Returns why the server rejected the token, if a request with another token may succeed. Returns
/// `None` for all other errors.
fn find_token_refusal(error: &HttpError) -> Option<TokenRejection> {
    match error {
        HttpError::AuthRequired(AuthRequiredError {
            www_authenticate_header,
            ..
        }) => Some(TokenRejection::Unauthorized(BearerChallenge::parse_header(
            www_authenticate_header,
        ))),
        HttpError::InsufficientScope(InsufficientScopeError {
            www_authenticate_header,
            ..
        }) => {
            let challenge = BearerChallenge::parse_header(www_authenticate_header);
            let error = challenge.error.as_deref().unwrap_or("insufficient_scope");
            (error == "insufficient_scope" && !challenge.scopes.is_empty())
                .then_some(TokenRejection::InsufficientScope(challenge))
        }
        // The response has status 401, but no `WWW-Authenticate` challenge.
        HttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => {
            Some(TokenRejection::Unauthorized(BearerChallenge::default()))
        }
        HttpError::Client(error) if error.status() == Some(StatusCode::UNAUTHORIZED) => {
            Some(TokenRejection::Unauthorized(BearerChallenge::default()))
        }
        _ => None,
    }
}

impl StreamableHttpClient for AuthorizedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let post = |token| {
            let post = PostRequest {
                url: uri.clone(),
                message: message.clone(),
                session_id: session_id.clone(),
                token,
                headers: headers.clone(),
            };
            let http = self.http.clone();
            async move { post.send(&http).await }.boxed()
        };
        let answer = self.send_with_token(post).await;
        if let Ok(
            StreamableHttpPostResponse::Json(_, Some(_))
            | StreamableHttpPostResponse::Sse(_, Some(_)),
        ) = &answer
        {
            self.stream.record_session_start();
        }
        answer
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        let delete = |token| {
            let (http, uri) = (self.http.clone(), uri.clone());
            let (session_id, headers) = (session_id.clone(), headers.clone());
            async move { http.delete_session(uri, session_id, token, headers).await }.boxed()
        };
        self.send_with_token(delete).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, HttpError> {
        let get = |token| {
            let (http, uri, session_id) = (self.http.clone(), uri.clone(), session_id.clone());
            let (last, headers) = (last_event_id.clone(), headers.clone());
            async move { http.get_stream(uri, session_id, last, token, headers).await }.boxed()
        };
        let answer = self.send_with_token(get).await;
        self.stream.record_answer();
        answer.map(repair_event_stream)
    }
}
