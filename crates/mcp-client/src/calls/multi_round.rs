//! Requests with several rounds: before it answers, a server can request input (MCP 2026-07-28,
//! "Multi Round-Trip Requests"), or require that a person opens URLs (MCP 2025-11-25).

use std::{borrow::Cow, sync::Arc, time::Duration};

use rmcp::{
    model::{ClientRequest, ErrorData, ServerResult},
    service::ServiceError,
};
use tokio::time::sleep;

use crate::{
    calls::failure::RequestFailure,
    server::{connection::Connection, state::Server},
    server_requests::{
        responder::CollectedInput,
        url_elicitation::{VisitedUrls, parse_url_elicitations},
    },
    transport::call_context::{CallContext, RequestContext},
};

/// Maximum number of times that one request is sent if the server requests more input each time.
/// rmcp uses the same limit.
const MAX_ROUNDS: usize = 10;
/// Pause before a request is repeated if the server's result requests a repetition but no input.
const ROUND_INTERVAL: Duration = Duration::from_millis(100);

/// Sends a request and returns its result. If the server requests input first, collects the input
/// and repeats the request. Dropping the future cancels the request.
pub(crate) async fn send_with_input_rounds(
    server: &Server,
    connection: &Connection,
    request: &ClientRequest,
    call: &Arc<CallContext>,
) -> Result<ServerResult, RequestFailure> {
    let mut request = Cow::Borrowed(request);
    let context = RequestContext::from_call(call);
    let mut visited = VisitedUrls::default();
    for _ in 0..MAX_ROUNDS {
        let sent = connection.send_request(request.as_ref().clone(), call.request_meta());
        let error = match sent.await {
            Ok(result) => match collect_required_input(server, &result, &context).await {
                None => return Ok(result),
                Some(input) => {
                    add_input_responses(request.to_mut(), input?).await;
                    continue;
                }
            },
            Err(error) => error,
        };
        if let ServiceError::McpError(error) = &error
            && let Some(urls) = parse_url_elicitations(error)
        {
            let visit = server
                .responder
                .ask_to_open_urls(urls, &mut visited, &context);
            Box::pin(visit).await.map_err(|reason| {
                let message = format!("{} ({reason})", error.message);
                RequestFailure::Refused(ErrorData {
                    message: message.into(),
                    ..error.clone()
                })
            })?;
        } else {
            return Err(RequestFailure::from_service_error(server, connection, error).await);
        }
    }
    let reason = format!("the server requested input {MAX_ROUNDS} times, which is the limit");
    Err(RequestFailure::Protocol(reason))
}

/// Collects the input that the server requests in a result. Returns `None` for a final result,
/// which requests no input.
async fn collect_required_input(
    server: &Server,
    result: &ServerResult,
    context: &RequestContext,
) -> Option<Result<CollectedInput, RequestFailure>> {
    if let ServerResult::CallToolResult(_) | ServerResult::CreateTaskResult(_) = result {
        return None;
    }
    let result = serde_json::to_value(result).unwrap_or_default();
    // The future is boxed because it is large and rarely needed.
    let input = Box::pin(server.responder.collect_input(&result, context)).await?;
    Some(input.map_err(RequestFailure::Refused))
}

/// Adds the collected input and the opaque `requestState` of the server to a request, which is then
/// sent again. If the server requested no input, first waits for [`ROUND_INTERVAL`].
async fn add_input_responses(request: &mut ClientRequest, input: CollectedInput) {
    let CollectedInput { responses, state } = input;
    if responses.is_none() {
        sleep(ROUND_INTERVAL).await;
    }
    let (input_responses, request_state) = match request {
        ClientRequest::CallToolRequest(request) => {
            let params = &mut request.params;
            (&mut params.input_responses, &mut params.request_state)
        }
        ClientRequest::ReadResourceRequest(request) => {
            let params = &mut request.params;
            (&mut params.input_responses, &mut params.request_state)
        }
        ClientRequest::GetPromptRequest(request) => {
            let params = &mut request.params;
            (&mut params.input_responses, &mut params.request_state)
        }
        // In MCP, other requests have no fields for input, so they are repeated unchanged.
        _ => return,
    };
    *input_responses = responses;
    *request_state = state;
}
