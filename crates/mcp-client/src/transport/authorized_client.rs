//! The HTTP client below rmcp that brings the token along, and gets another one where the server refuses
//! it.

use std::{collections::HashMap, io, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use reqwest::{
    Client, StatusCode,
    header::{HeaderName, HeaderValue},
};
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::{
        common::client_side_sse::BoxedSseResponse,
        streamable_http_client::{
            AuthRequiredError, InsufficientScopeError, StreamableHttpClient, StreamableHttpError,
            StreamableHttpPostResponse,
        },
    },
};
use secrecy::{ExposeSecret, SecretString};

use crate::auth::{
    challenge::Challenge,
    error::AuthError,
    session::{HeldSession, Refusal, Session},
};
use crate::transport::{
    http_post::{Post, recovered},
    server_stream::ServerStream,
};

type HttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// What rmcp takes where it is not told.
const MAX_EVENT: usize = 16 * 1024 * 1024;
/// How often a request is sent again with another token: once because it ended, once for more scopes,
/// and once more where both come in turns.
const MOST_RETRIES: usize = 3;

/// An HTTP client for one server. Without a session, it is the client alone.
#[derive(Clone)]
pub(crate) struct AuthorizedClient {
    http: Client,
    session: Option<Arc<HeldSession>>,
    stream: ServerStream,
}

impl AuthorizedClient {
    /// `stream` is told what is seen of the server's own stream.
    pub(crate) fn new(
        http: Client,
        session: Option<Arc<HeldSession>>,
        stream: ServerStream,
    ) -> Self {
        Self {
            http,
            session,
            stream,
        }
    }

    /// Sends what `send` makes of a token, with as many tokens as it takes.
    async fn with_token<T>(
        session: &Arc<Session>,
        send: impl Fn(Option<String>) -> BoxFuture<'static, Result<T, HttpError>> + Send + Sync,
    ) -> Result<T, HttpError> {
        let mut token = session.bearer().await.map_err(carried)?;
        for _ in 0..MOST_RETRIES {
            let answer = send(token.as_ref().map(plain)).await;
            let Some(refusal) = answer.as_ref().err().and_then(refusal) else {
                if let Some(token) = token.as_ref().filter(|_| took_the_token(&answer)) {
                    session.accepted(token);
                }
                return answer.map_err(|error| without(error, token.as_ref()));
            };
            if let (Refusal::InsufficientScope(_), Some(token)) = (&refusal, &token) {
                session.accepted(token);
            }
            match session.refused(token.clone(), refusal).await {
                Ok(Some(new)) => token = Some(new),
                Ok(None) => return answer.map_err(|error| without(error, token.as_ref())),
                Err(error) => return Err(carried(error)),
            }
        }
        let answer = send(token.as_ref().map(plain)).await;
        answer.map_err(|error| without(error, token.as_ref()))
    }
}

fn plain(token: &SecretString) -> String {
    token.expose_secret().to_owned()
}

/// An [`AuthError`] on its way through rmcp, which knows nothing of it: [`found_in`] takes it out again.
fn carried(error: AuthError) -> HttpError {
    HttpError::Io(io::Error::other(error))
}

/// The [`AuthError`] that an error of the transport carries.
pub(crate) fn found_in(error: &HttpError) -> Option<&AuthError> {
    match error {
        HttpError::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Some servers repeat in their errors what they were sent.
fn without(error: HttpError, token: Option<&SecretString>) -> HttpError {
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

/// Whether an answer, which refuses no token, shows that the server knows who asks. What is in front of
/// it may fail before it looks at the token.
fn took_the_token<T>(answer: &Result<T, HttpError>) -> bool {
    match answer {
        Ok(_) | Err(HttpError::SessionExpired) => true,
        Err(HttpError::UnexpectedServerResponse(text)) => text.starts_with("HTTP 4"),
        Err(_) => false,
    }
}

/// What of an error another token may mend.
fn refusal(error: &HttpError) -> Option<Refusal> {
    match error {
        HttpError::AuthRequired(AuthRequiredError {
            www_authenticate_header: challenge,
            ..
        }) => Some(Refusal::Unauthorized(Some(challenge.clone()))),
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
        // Without a challenge.
        HttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => {
            Some(Refusal::Unauthorized(None))
        }
        HttpError::Client(error) if error.status() == Some(StatusCode::UNAUTHORIZED) => {
            Some(Refusal::Unauthorized(None))
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
        let post = |http: Client, token, message, headers: Headers| {
            let post = Post {
                url: uri.clone(),
                message,
                session_id: session_id.clone(),
                token,
                headers,
                max_event,
            };
            async move { post.send(&http).await }
        };
        let answer = match &self.session {
            None => post(self.http.clone(), None, message, headers).await,
            Some(session) => {
                Self::with_token(session.session(), |token| {
                    post(self.http.clone(), token, message.clone(), headers.clone()).boxed()
                })
                .await
            }
        };
        if let Ok(
            StreamableHttpPostResponse::Json(_, Some(_))
            | StreamableHttpPostResponse::Sse(_, Some(_)),
        ) = &answer
        {
            self.stream.has_session();
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
            async move { http.delete_session(uri, session_id, token, headers).await }
        };
        match &self.session {
            Some(session) => {
                Self::with_token(session.session(), |token| delete(token).boxed()).await
            }
            None => delete(None).await,
        }
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
        };
        let answer = match &self.session {
            Some(session) => Self::with_token(session.session(), |token| get(token).boxed()).await,
            None => get(None).await,
        };
        self.stream.has_answer();
        answer.map(recovered)
    }
}
