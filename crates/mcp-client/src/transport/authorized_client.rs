//! The HTTP client below rmcp. It sends the OAuth token, and gets another one if the server rejects
//! it.

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

use crate::auth::{
    challenge::Challenge,
    error::AuthError,
    session::{Refusal, SessionHandle},
};
use crate::transport::{
    http_post::{Post, recovered},
    server_stream::ServerStream,
};

type HttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// The default of rmcp for the maximum size in bytes of an event.
const MAX_EVENT: usize = 16 * 1024 * 1024;
/// Maximum number of repetitions with another token: for an expired token, for more scopes, and for
/// both in turn.
const MAX_RETRIES: usize = 3;

/// Maximum number of concurrent requests to one server. The default of rmcp is 16.
const MAX_CONCURRENT_REQUESTS: usize = 256;
/// The first delay before a broken stream is resumed.
const RESUME_DELAY: Duration = Duration::from_millis(500);
/// Maximum number of attempts to resume a stream. By default rmcp does not stop, and the call
/// hangs.
const MAX_RESUMES: usize = 5;

pub(crate) type HttpTransport = WorkerTransport<StreamableHttpClientWorker<AuthorizedClient>>;

/// Creates a transport. It connects with its first message.
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

/// An HTTP client for one server. Without a session it sends no token.
#[derive(Clone)]
pub(crate) struct AuthorizedClient {
    http: Client,
    session: Option<Arc<SessionHandle>>,
    stream: ServerStream,
}

impl AuthorizedClient {
    /// Creates the client. `stream` records the state of the server's stream.
    pub(crate) fn new(
        http: Client,
        session: Option<Arc<SessionHandle>>,
        stream: ServerStream,
    ) -> Self {
        Self {
            http,
            session,
            stream,
        }
    }

    /// Calls `send` with a token, and again with another one if the server rejects the token.
    async fn with_token<T>(
        &self,
        send: impl Fn(Option<String>) -> BoxFuture<'static, Result<T, HttpError>> + Send + Sync,
    ) -> Result<T, HttpError> {
        let Some(session) = self.session.as_ref().map(|it| it.session()) else {
            return send(None).await;
        };
        let mut token = session.bearer().await.map_err(wrap_auth_error)?;
        for _ in 0..MAX_RETRIES {
            let answer = send(token.as_ref().map(plain)).await;
            let Some(refusal) = answer.as_ref().err().and_then(refusal) else {
                if let Some(token) = token.as_ref().filter(|_| accepts_token(&answer)) {
                    session.accepted(token);
                }
                return answer.map_err(|error| redact_token(error, token.as_ref()));
            };
            if let (Refusal::InsufficientScope(_), Some(token)) = (&refusal, &token) {
                session.accepted(token);
            }
            match session.refused(token.clone(), refusal).await {
                Ok(Some(new)) => token = Some(new),
                Ok(None) => return answer.map_err(|error| redact_token(error, token.as_ref())),
                Err(error) => return Err(wrap_auth_error(error)),
            }
        }
        let answer = send(token.as_ref().map(plain)).await;
        answer.map_err(|error| redact_token(error, token.as_ref()))
    }
}

fn plain(token: &SecretString) -> String {
    token.expose_secret().to_owned()
}

/// Wraps an [`AuthError`] for rmcp. [`auth_error`] unwraps it.
fn wrap_auth_error(error: AuthError) -> HttpError {
    HttpError::Io(io::Error::other(error))
}

/// Returns the [`AuthError`] in an error of the transport.
pub(crate) fn auth_error(error: &HttpError) -> Option<&AuthError> {
    match error {
        HttpError::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Redacts the token, because some servers repeat it in errors.
fn redact_token(error: HttpError, token: Option<&SecretString>) -> HttpError {
    match (error, token) {
        (HttpError::UnexpectedServerResponse(text), Some(token))
            if text.contains(token.expose_secret()) =>
        {
            let text = text.replace(token.expose_secret(), "[redacted]");
            HttpError::UnexpectedServerResponse(text.into())
        }
        (error, _) => error,
    }
}

/// Returns whether an answer shows that the server accepted the token. A gateway may fail before
/// the token is checked.
fn accepts_token<T>(answer: &Result<T, HttpError>) -> bool {
    match answer {
        Ok(_) | Err(HttpError::SessionExpired) => true,
        Err(HttpError::UnexpectedServerResponse(text)) => text.starts_with("HTTP 4"),
        Err(_) => false,
    }
}

/// Returns the refusal if another token may help.
fn refusal(error: &HttpError) -> Option<Refusal> {
    match error {
        HttpError::AuthRequired(AuthRequiredError {
            www_authenticate_header: challenge,
            ..
        }) => Some(Refusal::Unauthorized(Challenge::read(challenge))),
        HttpError::InsufficientScope(InsufficientScopeError {
            www_authenticate_header: challenge,
            ..
        }) => {
            let challenge = Challenge::read(challenge);
            let is_for_scopes = challenge
                .error
                .as_deref()
                .is_none_or(|error| error == "insufficient_scope");
            (is_for_scopes && !challenge.scopes.is_empty())
                .then_some(Refusal::InsufficientScope(challenge))
        }
        // A 401 without a challenge.
        HttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => {
            Some(Refusal::Unauthorized(Challenge::default()))
        }
        HttpError::Client(error) if error.status() == Some(StatusCode::UNAUTHORIZED) => {
            Some(Refusal::Unauthorized(Challenge::default()))
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
        self.post_message_with_max_sse_event_size(
            uri, message, session_id, None, headers, MAX_EVENT,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
        max_event: usize,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let post = |token| {
            let post = Post {
                url: uri.clone(),
                message: message.clone(),
                session_id: session_id.clone(),
                token,
                headers: headers.clone(),
                max_event,
            };
            let http = self.http.clone();
            async move { post.send(&http).await }.boxed()
        };
        let answer = self.with_token(post).await;
        if let Ok(
            StreamableHttpPostResponse::Json(_, Some(_))
            | StreamableHttpPostResponse::Sse(_, Some(_)),
        ) = &answer
        {
            self.stream.session_started();
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
        self.with_token(delete).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, HttpError> {
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            None,
            headers,
            MAX_EVENT,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: Headers,
        max_event: usize,
    ) -> Result<BoxedSseResponse, HttpError> {
        let get = |token| {
            let (http, uri, session_id) = (self.http.clone(), uri.clone(), session_id.clone());
            let (last, headers) = (last_event_id.clone(), headers.clone());
            async move {
                http.get_stream_with_max_sse_event_size(
                    uri, session_id, last, token, headers, max_event,
                )
                .await
            }
            .boxed()
        };
        let answer = self.with_token(get).await;
        self.stream.answered();
        answer.map(recovered)
    }
}
