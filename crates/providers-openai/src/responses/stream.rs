//! Converts the events of a stream to domain events.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{
    FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelId, ToolChoiceOutcome, Usage,
    Warning,
};
use switchboard_providers_common::{
    AnswerEvents, ToolMapping, ToolUseIds, WireDecoder, emit_usage, interrupted_error,
    protocol_error,
    provider::{is_error, value_to_text},
};

use super::{
    output_items::{Content, ItemAddress, OutputItems},
    wire::{Event, Response},
};
use crate::error::ERRORS;

/// State machine that converts the events of a stream into domain events.
#[derive(Debug)]
pub struct ResponsesDecoder {
    provider: Arc<str>,
    /// Maximum number of output tokens, for a server that reports a truncated answer as
    /// `completed`. An answer that reaches this number counts as truncated. `None` for other
    /// servers.
    unreported_limit: Option<u64>,
    done: bool,
    items: OutputItems,
}

impl ResponsesDecoder {
    /// Creates a decoder for one answer of `model`. The request mapping returns the other arguments
    /// in [`WireRequest`](super::WireRequest): the outcome of the tool choice, the warnings, and
    /// the tool-use ids of the conversation, which the answer must not reuse.
    pub fn new(
        model: ModelId,
        tool_choice: ToolChoiceOutcome,
        warnings: Vec<Warning>,
        ids: ToolUseIds,
    ) -> Self {
        Self {
            provider: model.provider.clone(),
            unreported_limit: None,
            done: false,
            items: OutputItems::new(model, ids, AnswerEvents::new(tool_choice, warnings)),
        }
    }

    /// Sets the maximum number of output tokens, for a server that reports a truncated answer as
    /// `completed`. An answer with at least this number of tokens finishes with
    /// `FinishReason::Length`.
    #[must_use]
    pub fn with_unreported_token_limit(mut self, limit: Option<u32>) -> Self {
        self.unreported_limit = limit.map(u64::from);
        self
    }

    /// Sets the changes that the request mapping made to tool names and schemas. The decoder
    /// reverses them in the answer.
    #[must_use]
    pub fn with_tool_mapping(mut self, tool_mapping: ToolMapping) -> Self {
        self.items.set_tool_mapping(tool_mapping);
        self
    }

    /// Converts a response body that is not streamed. Its JSON is the object that the last event of
    /// a stream has in `response`.
    pub(crate) fn read_body(mut self, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
        let body = body.trim();
        let value: Value = serde_json::from_str(body).unwrap_or_default();
        let answer = value.as_object().filter(|it| {
            let is_failed = it.get("error").is_some_and(is_error);
            let is_answer = it.contains_key("output") || it.contains_key("status");
            is_answer && !is_failed
        });
        if answer.is_none() {
            if let Some(error) = ERRORS.find_api_error(&value) {
                return Err(ERRORS.in_band_error(&self.provider, error));
            }
            let problem = "the body does not contain an answer";
            return Err(protocol_error(&self.provider, problem, body));
        }
        let response: Response = serde_json::from_value(value).unwrap_or_default();
        if let Some(status @ ("queued" | "in_progress")) = response.status.as_deref() {
            let message = format!("the answer is not complete: its status is `{status}`");
            let kind = ModelErrorKind::Protocol;
            return Err(ModelError::new(&*self.provider, kind, message));
        }
        let mut events = Vec::new();
        self.start_answer(Some(&response), &mut events);
        self.finish_answer("completed", response, &mut events)?;
        Ok(events)
    }

    fn start_answer(&mut self, response: Option<&Response>, events: &mut Vec<ModelEvent>) {
        let id = response.and_then(|response| response.id.clone());
        let model = response.and_then(|response| response.model.clone());
        self.items.answer.emit_start(id, model, events);
    }

    fn read_event(
        &mut self,
        name: &str,
        event: Event,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if let Some(status) = name.strip_prefix("response.")
            && matches!(status, "completed" | "incomplete" | "failed" | "cancelled")
        {
            let response = event.response.unwrap_or_default();
            self.start_answer(Some(&response), events);
            return self.finish_answer(status, response, events);
        }
        if let Some(response) = &event.response {
            self.start_answer(Some(response), events);
            return Ok(());
        }
        // Events that no case below matches are ignored: they report progress of server tools or
        // repeat content.
        let Some((kind, step)) = name
            .strip_prefix("response.")
            .and_then(|name| name.rsplit_once('.'))
        else {
            return Ok(());
        };
        let content = match kind {
            "output_item" => None,
            "output_text" => Some(Content::Text(event.content_index)),
            "refusal" => Some(Content::Refusal(event.content_index)),
            "reasoning_summary_text" => {
                Some(Content::Summary(event.summary_index.unwrap_or_default()))
            }
            "reasoning_text" => Some(Content::Reasoning(event.content_index.unwrap_or_default())),
            "function_call_arguments" => Some(Content::Arguments),
            _ => return Ok(()),
        };
        self.start_answer(None, events);
        let (address, items) = (ItemAddress::from_stream_event(&event), &mut self.items);
        match (content, step) {
            (Some(content), "delta") => {
                let delta = event.delta.as_deref().unwrap_or_default();
                items.add_content(address, content, delta, events);
            }
            (Some(content), "done") => {
                let arguments = value_to_text(event.arguments.as_ref());
                let whole = event.text.as_deref().or(event.refusal.as_deref());
                items.add_whole_content(address, content, whole.unwrap_or(&arguments), events);
            }
            (None, "added") => {
                if let Some(item) = &event.item {
                    items.ensure_item_started(address, item, events);
                }
            }
            (None, "done") => {
                if let Some(item) = &event.item {
                    items.complete_item(address, item, events);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the last event of an answer and emits the remaining events. `event_status` is the
    /// event's name without `response.`, such as `completed`.
    fn finish_answer(
        &mut self,
        event_status: &str,
        response: Response,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let status = match response.status.as_deref() {
            Some(status @ ("incomplete" | "failed" | "cancelled")) => status,
            _ => event_status,
        };
        let usage = response.usage.map(Usage::from).unwrap_or_default();
        emit_usage(usage, events);
        let output = usage.output_tokens.zip(self.unreported_limit);
        let at_limit = output.is_some_and(|(tokens, limit)| tokens >= limit);
        if status == "failed" {
            let error = response.error.as_ref().filter(|error| is_error(error));
            let error = error
                .map(|error| ERRORS.read_error_object(error))
                .unwrap_or_default();
            return Err(ERRORS.in_band_error(&self.provider, error));
        }
        if status == "cancelled" {
            let message = "the provider cancelled the answer";
            return Err(interrupted_error(&self.provider, message));
        }
        // A body that is not streamed, and some streams, have the items only in the last event.
        if self.items.is_empty() {
            for (index, item) in (0..).zip(&response.output) {
                let address = ItemAddress {
                    id: item.get("id").and_then(Value::as_str),
                    index: Some(index),
                };
                self.items.complete_item(address, item, events);
            }
        }
        self.done = true;
        let (reason, raw) = if status == "incomplete" {
            let details = response.incomplete_details.unwrap_or_default();
            let why = details.reason.filter(|reason| !reason.is_empty());
            let raw = why.unwrap_or_else(|| status.to_owned());
            (map_incomplete_reason(&raw), raw)
        } else if at_limit {
            (FinishReason::Length, status.to_owned())
        } else {
            (FinishReason::Stop, status.to_owned())
        };
        self.items
            .finish_items(at_limit || status == "incomplete", events);
        self.items
            .answer_summary()
            .emit_finish(reason, Some(raw), events);
        Ok(())
    }
}

impl WireDecoder for ResponsesDecoder {
    fn decode_frame(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        // Some servers end a Responses stream with `[DONE]`, as on Chat Completions.
        if data == "[DONE]" {
            return self.finish_decoding(events);
        }
        let unreadable = || protocol_error(&self.provider, "an event is not a JSON object", data);
        // Only an object is parsed as an event: serde would read the elements of an array as the
        // fields in order.
        if !data.starts_with('{') {
            let body: Value = serde_json::from_str(data).unwrap_or_default();
            let error = ERRORS.find_api_error(&body);
            let in_band = |error| ERRORS.in_band_error(&self.provider, error);
            return Err(error.map_or_else(unreadable, in_band));
        }
        let event: Event =
            serde_json::from_str(data).map_err(|fault| unreadable().with_source(fault))?;
        let kind = event.r#type.clone().filter(|kind| !kind.is_empty());
        // If an event has no `type`, the name of the SSE frame is its type. Some proxies send
        // errors with neither.
        let kind = kind.unwrap_or_else(|| name.to_owned());
        if kind == "error" || !kind.starts_with("response.") {
            let body: Value = serde_json::from_str(data).unwrap_or_default();
            let error = body.get("error").filter(|error| is_error(error));
            let error = match error {
                Some(error) => Some(ERRORS.read_error_object(error)),
                None if kind == "error" => Some(ERRORS.find_api_error(&body).unwrap_or_default()),
                None => None,
            };
            if let Some(error) = error {
                return Err(ERRORS.in_band_error(&self.provider, error));
            }
        }
        self.read_event(&kind, event, events)
    }

    fn finish_decoding(&mut self, _events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        let message = "the stream ended without `response.completed`";
        Err(interrupted_error(&self.provider, message))
    }

    fn emit_buffered_output(&mut self, events: &mut Vec<ModelEvent>) {
        self.items.emit_buffered_text(events);
    }
}

/// Maps the API's reason why an answer is incomplete to a finish reason.
fn map_incomplete_reason(reason: &str) -> FinishReason {
    match reason {
        // OpenAI sends `max_output_tokens`. The other two values come from proxies to other APIs.
        "max_output_tokens" | "max_tokens" | "length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
