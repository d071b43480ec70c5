//! The POST request of streamable HTTP, which sends one MCP message.
//!
//! rmcp drops the body of an answer that it cannot parse. This module repairs such a body, or
//! converts it to an error for the request. Otherwise it works like the HTTP client of rmcp.

use std::{
    collections::HashMap,
    future::ready,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::StreamExt;
use reqwest::{
    Client, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use rmcp::{
    model::{ClientJsonRpcMessage, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::{
        common::client_side_sse::BoxedSseResponse,
        streamable_http_client::{
            AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError,
            StreamableHttpError, StreamableHttpPostResponse,
        },
    },
};
use sse_stream::{Sse, SseStream};

use crate::transport::{
    invalid_message::{RecoveredMessage, invalid_answer_error, recover_message},
    message_parser::parse_message,
};

type HttpError = StreamableHttpError<reqwest::Error>;

const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION_ID: &str = "mcp-session-id";
/// Maximum size in bytes of a JSON response or of one event in a stream. Larger answers fail.
const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// Maximum size in bytes of the body of an error response. A larger body is ignored.
const MAX_ERROR: usize = 64 * 1024;
/// Maximum size in bytes of the part of a response that an error message contains.
const MAX_EXCERPT: usize = 256;

/// HTTP POST request with one MCP message for a server.
pub(crate) struct PostRequest {
    pub(crate) url: Arc<str>,
    pub(crate) message: ClientJsonRpcMessage,
    pub(crate) session_id: Option<Arc<str>>,
    pub(crate) token: Option<String>,
    pub(crate) headers: HashMap<HeaderName, HeaderValue>,
}

impl PostRequest {
    /// Sends the message. Returns the response, or the event stream that will contain it.
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
        let challenge = find_header(&response, WWW_AUTHENTICATE.as_str());
        match (status, challenge) {
            (StatusCode::UNAUTHORIZED, Some(challenge)) => {
                Err(HttpError::AuthRequired(AuthRequiredError::new(challenge)))
            }
            (StatusCode::FORBIDDEN, Some(challenge)) => {
                let error = InsufficientScopeError::new(challenge, None);
                Err(HttpError::InsufficientScope(error))
            }
            (StatusCode::ACCEPTED | StatusCode::NO_CONTENT, _) => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            (StatusCode::NOT_FOUND, _) if self.session_id.is_some() => {
                Err(HttpError::SessionExpired)
            }
            _ if status.is_success() => self.read_answer(response).await,
            _ => Self::read_error_body(response).await,
        }
    }

    /// Reads the response to a message that the server accepted (HTTP status 2xx).
    async fn read_answer(
        &self,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let request = match &self.message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        // Some servers answer notifications with status 200 and an empty body, instead of 202.
        if request.is_none() && response.content_length() == Some(0) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session_id = find_header(&response, SESSION_ID);
        if has_content_type(&response, EVENT_STREAM) {
            let stream = read_events(response, request);
            return Ok(StreamableHttpPostResponse::Sse(stream, session_id));
        }
        if !has_content_type(&response, JSON) {
            let content_type = find_header(&response, CONTENT_TYPE.as_str());
            return Err(HttpError::UnexpectedContentType(content_type));
        }
        let body = match read_body(response, MAX_ANSWER).await {
            Err(HttpError::ResponseBodyTooLarge { .. }) if request.is_some() => {
                let message = ServerJsonRpcMessage::error(too_large_error(), request);
                return Ok(StreamableHttpPostResponse::Json(message, session_id));
            }
            body => body?,
        };
        let error = match parse_message(&body) {
            Ok(message) => return Ok(StreamableHttpPostResponse::Json(message, session_id)),
            Err(_) if request.is_none() => return Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => error,
        };
        if let RecoveredMessage::Message(message) = recover_message(&body, &error) {
            return Ok(StreamableHttpPostResponse::Json(*message, session_id));
        }
        let excerpt = String::from_utf8_lossy(&body[..body.len().min(MAX_EXCERPT)]);
        let text = format!("the answer is not a JSON-RPC message: {error}: {excerpt}");
        Err(HttpError::UnexpectedServerResponse(text.into()))
    }

    /// Reads a response with an error status. Returns a JSON-RPC error in the body as the answer to
    /// the message. Without a JSON-RPC error, returns an error with the HTTP status.
    async fn read_error_body(response: Response) -> Result<StreamableHttpPostResponse, HttpError> {
        let status = response.status();
        let is_json = has_content_type(&response, JSON);
        let retry_after = find_header(&response, RETRY_AFTER.as_str());
        let status_error = HttpStatusError::new(status.as_u16(), retry_after);
        if status == StatusCode::TOO_MANY_REQUESTS || (status.is_server_error() && !is_json) {
            return Err(status_error.into());
        }
        let session_id = find_header(&response, SESSION_ID);
        let body = read_body(response, MAX_ERROR).await.unwrap_or_default();
        let is_unauthorized = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_json
            && !is_unauthorized
            && let Ok(error @ JsonRpcMessage::Error(_)) = serde_json::from_slice(&body)
        {
            return Ok(StreamableHttpPostResponse::Json(error, session_id));
        }
        if status.is_server_error() {
            return Err(status_error.into());
        }
        let text = format!("HTTP {status}: {}", String::from_utf8_lossy(&body));
        Err(HttpError::UnexpectedServerResponse(text.into()))
    }
}

/// Repairs unparsable messages in an event stream, or replaces them by errors for their requests.
pub(crate) fn repair_event_stream(stream: BoxedSseResponse) -> BoxedSseResponse {
    let recover_event = |event: Result<Sse, SseError>| {
        let mut event = event?;
        if matches!(event.event.as_deref(), None | Some("" | "message"))
            && let Some(data) = &event.data
            && let Err(error) = parse_message(data.as_bytes())
            && let RecoveredMessage::Message(message) = recover_message(data.as_bytes(), &error)
            && let Ok(data) = serde_json::to_string(&message)
        {
            event.data = Some(data);
        }
        Ok(event)
    };
    stream.map(recover_event).boxed()
}

/// Reads the events of a response stream. An event that is too large ends the stream, and an error
/// for the request replaces the event.
fn read_events(response: Response, request: Option<RequestId>) -> BoxedSseResponse {
    // Number of bytes since the last event. One chunk may contain several events, so an event can
    // exceed the limit by at most one chunk.
    let received = Arc::new(AtomicUsize::new(0));
    let counter = received.clone();
    let chunks = response.bytes_stream().take_while(move |chunk| {
        let size = chunk.as_ref().map_or(0, tokio_util::bytes::Bytes::len);
        ready(counter.fetch_add(size, Ordering::Relaxed) <= MAX_ANSWER)
    });
    let counter = received.clone();
    let events = SseStream::from_bytes_stream(chunks.map(|chunk| chunk.map_err(io::Error::other)));
    let events = events.inspect(move |_| counter.store(0, Ordering::Relaxed));
    let end = futures_util::stream::once(async move {
        let message = ServerJsonRpcMessage::error(too_large_error(), Some(request?));
        let is_too_large = received.load(Ordering::Relaxed) > MAX_ANSWER;
        let data = serde_json::to_string(&message).ok();
        Some(Ok(Sse::default().data(data.filter(|_| is_too_large)?)))
    });
    repair_event_stream(events.chain(end.filter_map(ready)).boxed())
}

fn too_large_error() -> ErrorData {
    invalid_answer_error(&format!("is larger than {MAX_ANSWER} bytes"))
}

fn find_header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn has_content_type(response: &Response, content_type: &str) -> bool {
    let value = response.headers().get(CONTENT_TYPE);
    value.is_some_and(|value| value.as_bytes().starts_with(content_type.as_bytes()))
}

/// Reads the body of a response. Returns an error if it has more than `max_size` bytes.
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
