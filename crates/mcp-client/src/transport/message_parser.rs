//! Parsing of server messages.

use rmcp::model::{
    CallToolResult, ContentBlock, JsonRpcMessage, JsonRpcVersion2_0, MetaObject, RequestId,
    ResultType, ServerJsonRpcMessage, ServerResult,
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Answer to a tool call. Unknown fields are errors, because rmcp may parse an answer with such
/// fields as another kind of result.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCallResponse {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: RequestId,
    result: ToolResult,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ToolResult {
    result_type: Option<ResultType>,
    content: Vec<ContentBlock>,
    #[serde(default, deserialize_with = "deserialize_nullable")]
    structured_content: Option<Value>,
    is_error: Option<bool>,
    #[serde(rename = "_meta")]
    meta: Option<MetaObject>,
}

/// Deserializes a field that is present. `null` becomes `Some(Value::Null)` instead of `None`.
fn deserialize_nullable<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// Parses a message of a server.
///
/// Answers to tool calls are the most frequent messages. They are parsed directly, because rmcp
/// tries every kind of message and of result in turn, which takes about four times as long.
pub(crate) fn parse_message(text: &[u8]) -> serde_json::Result<ServerJsonRpcMessage> {
    // Only text that starts with `{` is parsed as an answer to a tool call. serde would also accept
    // an array, with its elements as the fields in order.
    let answer = serde_json::from_slice::<ToolCallResponse>(text).ok();
    let Some(ToolCallResponse { id, result, .. }) = answer.filter(|answer| {
        let kind = answer.result.result_type.as_ref();
        text.starts_with(b"{") && kind.is_none_or(ResultType::is_complete)
    }) else {
        return serde_json::from_slice(text);
    };
    let mut complete = CallToolResult::success(result.content);
    complete.result_type = result.result_type;
    complete.structured_content = result.structured_content;
    complete.is_error = result.is_error;
    complete.meta = result.meta;
    Ok(JsonRpcMessage::response(
        ServerResult::CallToolResult(complete),
        id,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_parsed_as_rmcp_parses_it() {
        let results = [
            r#"{"content": []}"#,
            r#"{"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]}"#,
            r#"{"content": [], "structuredContent": null, "isError": true}"#,
            r#"{"content": [], "structuredContent": {"a": [1.5]}, "_meta": {"b": 1}}"#,
            r#"{"content": [], "isError": null, "_meta": null, "resultType": null}"#,
            r#"{"resultType": "complete", "content": []}"#,
            r#"{"resultType": "task", "content": []}"#,
            r#"{"resultType": "input_required", "content": [], "inputRequests": {}}"#,
            r#"{"structuredContent": 1}"#,
            r#"{"isError": false}"#,
            r#"{"content": null}"#,
            r#"{"content": [], "content": []}"#,
            r#"{"tools": [], "isError": false}"#,
            r#"{"content": [], "tools": []}"#,
            r#"{"contents": [], "isError": false}"#,
            r#"{"content": [], "messages": []}"#,
            r#"{"content": [], "action": "accept"}"#,
            r"[null, [], null, null, null]",
            r#"{"content": {}, "action": "accept"}"#,
            r#"{"content": [{"type": "new"}]}"#,
            r#"{"content": [1]}"#,
            "{}",
            "[]",
        ];
        let mut messages: Vec<String> = results
            .iter()
            .flat_map(|result| {
                [
                    format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": {result}}}"#),
                    format!(r#"{{"result": {result}, "id": "a", "jsonrpc": "2.0"}}"#),
                    format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": {result}, "error": {{}}}}"#),
                    format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": {result}, "extra": 1}}"#),
                    format!(r#"{{"jsonrpc": "1.0", "id": 1, "result": {result}}}"#),
                    format!(r#"{{"jsonrpc": "2.0", "id": null, "result": {result}}}"#),
                    format!(r#"{{"jsonrpc": "2.0", "result": {result}}}"#),
                    format!(r#"["2.0", 1, {result}]"#),
                ]
            })
            .collect();
        messages.push(r#"{"jsonrpc": "2.0", "method": "notifications/progress"}"#.to_owned());
        let mut direct = 0;
        for message in messages {
            let ours = parse_message(message.as_bytes()).ok();
            let of_rmcp = serde_json::from_str::<ServerJsonRpcMessage>(&message).ok();
            // These messages have no `PartialEq`.
            assert_eq!(format!("{ours:?}"), format!("{of_rmcp:?}"), "{message}");
            direct += u32::from(serde_json::from_str::<ToolCallResponse>(&message).is_ok());
        }
        assert!(direct > 0);
    }
}
