//! The POST request of streamable HTTP.
//!
//! rmcp drops the body of an answer that it cannot parse. Here such a body is repaired, or becomes
//! an error for the request that it answers. Everything else is as in rmcp.

use std::{
    collections::HashMap,
    error::Error,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::{StreamExt, stream::BoxStream};
use reqwest::{
    Client, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId,
        ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpError,
        StreamableHttpPostResponse,
    },
};
use sse_stream::{Sse, SseStream};

use crate::transport::invalid_message::{Recovered, invalid_answer, recover};

type HttpError = StreamableHttpError<reqwest::Error>;

const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION_ID: &str = "mcp-session-id";
/// Maximum size in bytes of a JSON answer.
const MAX_JSON: usize = 16 * 1024 * 1024;
/// Maximum size in bytes of the body of an error.
const MAX_ERROR: usize = 64 * 1024;
/// Maximum size in bytes of the excerpt of an answer in an error message.
const MAX_EXCERPT: usize = 256;

/// One message for a server.
pub(crate) struct Post {
    pub(crate) url: Arc<str>,
    pub(crate) message: ClientJsonRpcMessage,
    pub(crate) session_id: Option<Arc<str>>,
    pub(crate) token: Option<String>,
    pub(crate) headers: HashMap<HeaderName, HeaderValue>,
    /// Maximum size in bytes of one event of a stream.
    pub(crate) max_event: usize,
}

impl Post {
    /// Sends the message and reads the answer, or the start of a stream.
    pub(crate) async fn send(self, http: &Client) -> Result<StreamableHttpPostResponse, HttpError> {
        let mut request = http
            .post(self.url.as_ref())
            .header(ACCEPT, format!("{EVENT_STREAM}, {JSON}"));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(session_id) = &self.session_id {
            request = request.header(SESSION_ID, session_id.as_ref());
        }
        let response = request.json(&self.message).send().await?;
        let status = response.status();
        if let Some(error) = challenge(&response) {
            return Err(error);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && self.session_id.is_some() {
            return Err(HttpError::SessionExpired);
        }
        if status.is_success() {
            self.read_answer(response).await
        } else {
            self.read_error(response).await
        }
    }

    fn request_id(&self) -> Option<&RequestId> {
        match &self.message {
            JsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        }
    }

    /// Reads the answer to a message that the server accepted.
    async fn read_answer(
        &self,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let request = self.request_id();
        // Some servers answer notifications with an empty 200.
        if request.is_none() && response.content_length() == Some(0) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session_id = header(&response, SESSION_ID);
        if has_type(&response, EVENT_STREAM) {
            let stream = events(response, request.cloned(), self.max_event);
            return Ok(StreamableHttpPostResponse::Sse(stream, session_id));
        }
        if !has_type(&response, JSON) {
            let content_type = header(&response, CONTENT_TYPE.as_str());
            return Err(HttpError::UnexpectedContentType(content_type));
        }
        let body = match (read_body(response, MAX_JSON).await, request) {
            (Err(HttpError::ResponseBodyTooLarge { max_size }), Some(id)) => {
                let message = ServerJsonRpcMessage::error(too_large(max_size), Some(id.clone()));
                return Ok(StreamableHttpPostResponse::Json(message, session_id));
            }
            (body, _) => body?,
        };
        let error = match serde_json::from_slice(&body) {
            Ok(message) => return Ok(StreamableHttpPostResponse::Json(message, session_id)),
            Err(error) => error,
        };
        if request.is_none() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if let Recovered::Message(message) = recover(&body, &error) {
            return Ok(StreamableHttpPostResponse::Json(*message, session_id));
        }
        let excerpt = String::from_utf8_lossy(&body[..body.len().min(MAX_EXCERPT)]);
        let text = format!("its answer is not a JSON-RPC message: {error}: {excerpt}");
        Err(HttpError::UnexpectedServerResponse(text.into()))
    }

    /// Reads why the server rejected a message.
    async fn read_error(
        &self,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let status = response.status();
        let is_json = has_type(&response, JSON);
        let is_busy = status == StatusCode::TOO_MANY_REQUESTS;
        let status_error = (is_busy || status.is_server_error()).then(|| {
            let retry_after = header(&response, RETRY_AFTER.as_str());
            HttpStatusError::new(status.as_u16(), retry_after)
        });
        let status_error = match status_error {
            Some(error) if is_busy || !is_json => return Err(error.into()),
            status_error => status_error,
        };
        let session_id = header(&response, SESSION_ID);
        let body = match read_body(response, MAX_ERROR).await {
            Ok(body) => String::from_utf8_lossy(&body).into_owned(),
            Err(error @ HttpError::ResponseBodyTooLarge { .. }) => {
                return Err(status_error.map_or(error, HttpError::from));
            }
            Err(_) => "<failed to read the response body>".to_owned(),
        };
        let error = match serde_json::from_str(&body) {
            Ok(JsonRpcMessage::Error(error)) => Some(error),
            Ok::<ServerJsonRpcMessage, _>(_) | Err(_) => None,
        };
        let is_unauthorized = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        // A gateway of an older server rejects `server/discover` without its id.
        if let JsonRpcMessage::Request(request) = &self.message
            && let ClientRequest::DiscoverRequest(_) = request.request
            && self.session_id.is_none()
            && status.is_client_error()
            && !is_unauthorized
        {
            let error = error.map_or_else(
                || {
                    let text = format!("server/discover rejected with HTTP {status}: {body}");
                    ErrorData::invalid_request(text, None)
                },
                |error| error.error,
            );
            let message = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        if let Some(error) = error.filter(|_| is_json && !is_unauthorized) {
            let message = JsonRpcMessage::Error(error);
            return Ok(StreamableHttpPostResponse::Json(message, session_id));
        }
        Err(match status_error {
            Some(error) => error.into(),
            None => HttpError::UnexpectedServerResponse(format!("HTTP {status}: {body}").into()),
        })
    }
}

/// Replaces unparsable messages in a stream by what can be recovered of them.
pub(crate) fn recovered(
    stream: BoxStream<'static, Result<Sse, SseError>>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    stream
        .map(|event| {
            let mut event = event?;
            if matches!(event.event.as_deref(), None | Some("" | "message"))
                && let Some(data) = &event.data
                && let Err(error) = serde_json::from_str::<ServerJsonRpcMessage>(data)
                && let Recovered::Message(message) = recover(data.as_bytes(), &error)
                && let Ok(data) = serde_json::to_string(&message)
            {
                event.data = Some(data);
            }
            Ok(event)
        })
        .boxed()
}

/// Reads the events of an answer. A too large event becomes an error for the request and ends the
/// stream.
fn events(
    response: Response,
    request: Option<RequestId>,
    max_event: usize,
) -> BoxStream<'static, Result<Sse, SseError>> {
    // Bytes since the last event.
    let received = Arc::new(AtomicUsize::new(0));
    let counter = received.clone();
    let chunks = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        let bytes = counter.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
        // A chunk may contain several events, so one chunk more than the limit is allowed.
        if bytes - chunk.len() > max_event {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(chunk)
    });
    // No chunk is read after an error.
    let chunks = chunks.scan(false, |failed, chunk: io::Result<_>| {
        let next = (!*failed).then_some(chunk);
        *failed |= matches!(next, Some(Err(_)));
        std::future::ready(next)
    });
    let events = SseStream::from_bytes_stream(chunks).map(move |event| {
        received.store(0, Ordering::Relaxed);
        match (event, &request) {
            (Err(SseError::Body(error)), Some(id)) if is_too_large(error.as_ref()) => {
                let message = ServerJsonRpcMessage::error(too_large(max_event), Some(id.clone()));
                let data = serde_json::to_string(&message);
                let data = data.map_err(|error| SseError::Body(error.into()))?;
                Ok(Sse::default().data(data))
            }
            (event, _) => event,
        }
    });
    recovered(events.boxed())
}

fn is_too_large(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    let error: Option<&io::Error> = error.downcast_ref();
    error.is_some_and(|error| error.kind() == io::ErrorKind::FileTooLarge)
}

fn too_large(max: usize) -> ErrorData {
    invalid_answer(&format!("is larger than {max} bytes"))
}

/// Returns the error for a response that asks for authorization.
fn challenge(response: &Response) -> Option<HttpError> {
    let status = response.status();
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return None;
    }
    let Ok(challenge) = response.headers().get(WWW_AUTHENTICATE)?.to_str() else {
        let text = "invalid www-authenticate header value";
        return Some(HttpError::UnexpectedServerResponse(text.into()));
    };
    let challenge = challenge.to_owned();
    Some(if status == StatusCode::UNAUTHORIZED {
        HttpError::AuthRequired(AuthRequiredError::new(challenge))
    } else {
        HttpError::InsufficientScope(InsufficientScopeError::new(challenge, None))
    })
}

fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn has_type(response: &Response, content_type: &str) -> bool {
    let value = response.headers().get(CONTENT_TYPE);
    value.is_some_and(|value| value.as_bytes().starts_with(content_type.as_bytes()))
}

/// Reads a body of at most `max_size` bytes.
async fn read_body(mut response: Response, max_size: usize) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if chunk.len() > max_size - body.len() {
            return Err(HttpError::ResponseBodyTooLarge { max_size });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
