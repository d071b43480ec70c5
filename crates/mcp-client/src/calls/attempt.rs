//! One attempt of a tool call: the request, the input that the server requests first, and the
//! result.

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetExtensions, ServerResult,
};
use switchboard_domain::ToolOutput;

use crate::{
    calls::{call::CallRequest, failure::RequestFailure, multi_round, tasks},
    server::{connection::Connection, state::Server},
    tools::convert,
    transport::instrumented_transport::ProgressListener,
};

/// Sends the call once and waits for its result or for the end of the connection. Dropping the
/// future cancels the call.
pub(crate) async fn attempt(
    server: &Server,
    connection: &Connection,
    call: &CallRequest,
) -> Result<ToolOutput, RequestFailure> {
    let params = CallToolRequestParams::new(call.tool_name().to_owned())
        .with_arguments(call.input.clone().into_object());
    let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    if call.progress.is_listening() {
        let listener = ProgressListener(call.progress.clone());
        request.extensions_mut().insert(listener);
    }
    request.extensions_mut().insert(call.context.clone());
    match multi_round::send(server, connection, request, &call.context).await? {
        ServerResult::CallToolResult(result) => Ok(convert::output(result)),
        ServerResult::CreateTaskResult(created) => {
            tokio::select! {
                biased;
                output = tasks::follow(server, connection, call, created) => output,
                reason = connection.ended() => Err(RequestFailure::Broken(reason)),
            }
        }
        other => Ok(convert::output_from_json(
            serde_json::to_value(other).unwrap_or_default(),
        )),
    }
}
