//! The POST request of streamable HTTP.
//!
//! rmcp's own drops the body of an answer that it cannot parse. Here such a body is repaired, or becomes an
//! error for the request that it answers. Everything else is as in rmcp.

use std::{collections::HashMap, error::Error, fmt, sync::Arc};

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

/// Maximum size in bytes of what an error repeats of an answer.
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
    /// Sends the message and reads the answer, or the beginning of a stream.
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
            self.answer(response).await
        } else {
            self.failure(response).await
        }
    }

    /// Reads the answer to a message that the server took.
    async fn answer(&self, response: Response) -> Result<StreamableHttpPostResponse, HttpError> {
        // Some servers answer what needs no answer with an empty 200.
        let request = match &self.message {
            JsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        };
        if request.is_none() && response.content_length() == Some(0) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session_id = header(&response, SESSION_ID);
        if is_of_type(&response, EVENT_STREAM) {
            let stream = events(response, request.cloned(), self.max_event);
            return Ok(StreamableHttpPostResponse::Sse(stream, session_id));
        }
        if !is_of_type(&response, JSON) {
            let content_type = header(&response, CONTENT_TYPE.as_str());
            return Err(HttpError::UnexpectedContentType(content_type));
        }
        let body = match (body(response, MAX_JSON).await, request) {
            (Err(HttpError::ResponseBodyTooLarge { max_size }), Some(id)) => {
                return Ok(StreamableHttpPostResponse::Json(
                    ServerJsonRpcMessage::error(too_large(max_size), Some(id.clone())),
                    session_id,
                ));
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
        match recover(&body, &error) {
            Recovered::Message(message) => {
                Ok(StreamableHttpPostResponse::Json(*message, session_id))
            }
            Recovered::Request(_) | Recovered::Nothing => {
                let body = String::from_utf8_lossy(&body[..body.len().min(MAX_EXCERPT)]);
                let text = format!("its answer is not a JSON-RPC message: {error}: {body}");
                Err(HttpError::UnexpectedServerResponse(text.into()))
            }
        }
    }

    /// Reads why a message was not taken.
    async fn failure(&self, response: Response) -> Result<StreamableHttpPostResponse, HttpError> {
        let status = response.status();
        let is_json = is_of_type(&response, JSON);
        let is_busy = status == StatusCode::TOO_MANY_REQUESTS;
        let failed = (is_busy || status.is_server_error()).then(|| {
            let retry_after = header(&response, RETRY_AFTER.as_str());
            HttpStatusError::new(status.as_u16(), retry_after)
        });
        let failed = match failed {
            Some(failed) if is_busy || !is_json => return Err(failed.into()),
            failed => failed,
        };
        let session_id = header(&response, SESSION_ID);
        let body = match body(response, MAX_ERROR).await {
            Ok(body) => String::from_utf8_lossy(&body).into_owned(),
            Err(error @ HttpError::ResponseBodyTooLarge { .. }) => {
                return Err(failed.map_or(error, HttpError::from));
            }
            Err(_) => "<failed to read the response body>".to_owned(),
        };
        let error = serde_json::from_str::<ServerJsonRpcMessage>(&body).ok();
        let error = error.filter(|message| matches!(message, JsonRpcMessage::Error(_)));
        let is_unauthorized = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        // What is in front of a server of the older era turns the probe away without its id.
        if let JsonRpcMessage::Request(request) = &self.message
            && let ClientRequest::DiscoverRequest(_) = request.request
            && self.session_id.is_none()
            && status.is_client_error()
            && !is_unauthorized
        {
            let error = match error {
                Some(JsonRpcMessage::Error(error)) => error.error,
                _ => ErrorData::invalid_request(
                    format!("server/discover rejected with HTTP {status}: {body}"),
                    None,
                ),
            };
            let message = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        if let Some(error) = error.filter(|_| is_json && !is_unauthorized) {
            return Ok(StreamableHttpPostResponse::Json(error, session_id));
        }
        Err(match failed {
            Some(failed) => failed.into(),
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

/// Reads the events of an answer. An event that is too large becomes an error for the request.
fn events(
    response: Response,
    request: Option<RequestId>,
    max_event: usize,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut size = EventSize::default();
    let chunks = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(StreamFailure::Connection)?;
        if size.add(&chunk) > max_event {
            return Err(StreamFailure::TooLarge);
        }
        Ok(chunk)
    });
    // Behind an error nothing is read.
    let chunks = chunks.scan(false, |failed, chunk| {
        let next = (!*failed).then_some(chunk);
        *failed |= matches!(next, Some(Err(_)));
        std::future::ready(next)
    });
    let events = SseStream::from_bytes_stream(chunks).map(move |event| match (event, &request) {
        (Err(SseError::Body(error)), Some(id)) if is_too_large(error.as_ref()) => {
            let message = ServerJsonRpcMessage::error(too_large(max_event), Some(id.clone()));
            let data =
                serde_json::to_string(&message).map_err(|error| SseError::Body(error.into()))?;
            Ok(Sse::default().data(data))
        }
        (event, _) => event,
    });
    recovered(events.boxed())
}

/// Why a stream ended early.
#[derive(Debug)]
enum StreamFailure {
    Connection(reqwest::Error),
    TooLarge,
}

impl fmt::Display for StreamFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => error.fmt(formatter),
            Self::TooLarge => formatter.write_str("an event is too large"),
        }
    }
}

impl Error for StreamFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Connection(error) => error.source(),
            Self::TooLarge => None,
        }
    }
}

fn is_too_large(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(StreamFailure::TooLarge))
}

/// The size in bytes of the event that is being received. Comments do not count.
#[derive(Default)]
struct EventSize {
    /// Complete lines.
    lines: usize,
    line: usize,
    is_comment: bool,
    after_return: bool,
}

impl EventSize {
    /// Returns the largest size that the event, or one that ended in the chunk, has reached.
    fn add(&mut self, chunk: &[u8]) -> usize {
        let mut largest = 0;
        for &byte in chunk {
            let is_rest_of_line_end = std::mem::take(&mut self.after_return) && byte == b'\n';
            if is_rest_of_line_end {
                continue;
            }
            if matches!(byte, b'\r' | b'\n') {
                self.after_return = byte == b'\r';
                if self.line == 0 {
                    self.lines = 0;
                } else if !self.is_comment {
                    self.lines += self.line + 1;
                }
                self.line = 0;
            } else {
                if self.line == 0 {
                    self.is_comment = byte == b':';
                }
                self.line += 1;
            }
            largest = largest.max(self.lines + self.line);
        }
        largest
    }
}

fn too_large(max: usize) -> ErrorData {
    invalid_answer(&format!("is larger than {max} bytes"))
}

/// Returns the error for a server that asks who the client is.
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

fn is_of_type(response: &Response, content_type: &str) -> bool {
    let value = response.headers().get(CONTENT_TYPE);
    value.is_some_and(|value| value.as_bytes().starts_with(content_type.as_bytes()))
}

/// Reads the whole body, with at most `max_size` bytes.
async fn body(mut response: Response, max_size: usize) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if chunk.len() > max_size - body.len() {
            return Err(HttpError::ResponseBodyTooLarge { max_size });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest size reached, however the text comes in pieces.
    fn size(text: &str) -> usize {
        let whole = EventSize::default().add(text.as_bytes());
        let mut size = EventSize::default();
        let pieces = text.as_bytes().chunks(1).map(|piece| size.add(piece));
        assert_eq!(pieces.max().unwrap_or(0), whole, "{text:?}");
        whole
    }

    #[test]
    fn an_event_is_as_large_as_its_lines_without_comments() {
        for (text, expected) in [
            ("", 0),
            ("data: x", 7),
            ("data: x\n", 8),
            ("data: x\r\n", 8),
            ("data: x\rdata: y\n", 16),
            ("data: x\r\ndata: y", 15),
            ("data: x\n\ndata: yy", 8),
            ("data: x\r\n\r\ndata: yy", 8),
            (": 1\n: 2\n: 3\n: 4\ndata", 4),
            (":a long comment\n", 15),
        ] {
            assert_eq!(size(text), expected, "{text:?}");
        }
    }
}
