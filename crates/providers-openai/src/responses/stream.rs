//! Wire events → domain events.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{
    FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelId, ToolChoiceOutcome, Usage,
    Warning,
};
use switchboard_providers_common::{LocalIds, WireDecoder, http::classify::excerpt};

use super::{
    items::{Address, Items, Thought},
    wire::{Event, Response},
};
use crate::{
    error::{ApiError, is_error},
    reshaped::Reshaped,
};

/// The stream's state machine: wire events in, domain events out.
#[derive(Debug)]
pub struct ResponsesDecoder {
    provider: Arc<str>,
    tool_choice: ToolChoiceOutcome,
    warnings: Vec<Warning>,
    /// Tokens at which the answer was cut off, though the server does not say so.
    silent_limit: Option<u64>,
    started: bool,
    done: bool,
    items: Items,
}

impl ResponsesDecoder {
    /// A decoder for one answer of `model`, whose request came to `tool_choice` and `warnings`.
    /// `ids` knows which tool-use ids the conversation has used up.
    pub fn new(
        model: ModelId,
        tool_choice: ToolChoiceOutcome,
        warnings: Vec<Warning>,
        ids: LocalIds,
    ) -> Self {
        Self {
            provider: model.provider.clone(),
            tool_choice,
            warnings,
            silent_limit: None,
            started: false,
            done: false,
            items: Items::new(model, ids),
        }
    }

    /// The same for a server that says of an answer cut off at `limit` tokens that it is complete.
    #[must_use]
    pub fn with_silent_limit(mut self, limit: Option<u32>) -> Self {
        self.silent_limit = limit.map(u64::from);
        self
    }

    /// The same for a request whose answer has other names or another shape than was asked for, as its
    /// [`WireRequest::reshaped`](super::WireRequest::reshaped) says.
    #[must_use]
    pub fn reshaping(mut self, reshaped: Reshaped) -> Self {
        self.items.reshape(reshaped);
        self
    }

    /// A whole body is the answer that the last event of its stream holds.
    pub(crate) fn read_whole(
        mut self,
        body: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let body = body.trim();
        let value: Value = serde_json::from_str(body).unwrap_or_default();
        let answer = value.as_object().filter(|it| {
            let is_failed = it.get("error").is_some_and(is_error);
            let is_answer = it.contains_key("output") || it.contains_key("status");
            is_answer && !is_failed
        });
        if answer.is_none() {
            if let Some(error) = ApiError::from_body(&value) {
                return Err(error.in_band(&self.provider));
            }
            let message = format!("no answer in the body: {}", excerpt(body.as_bytes()));
            return Err(self.error(ModelErrorKind::Protocol, message));
        }
        let response: Response = serde_json::from_value(value).unwrap_or_default();
        if let Some(status @ ("queued" | "in_progress")) = response.status.as_deref() {
            let message = format!("the answer is not there yet: its status is `{status}`");
            return Err(self.error(ModelErrorKind::Protocol, message));
        }
        self.start(Some(&response), events);
        self.finish("completed", response, events)
    }

    fn start(&mut self, response: Option<&Response>, events: &mut Vec<ModelEvent>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        events.push(ModelEvent::Started {
            response_id: response.and_then(|response| said(&response.id)),
            model: response.and_then(|response| said(&response.model)),
            tool_choice: std::mem::take(&mut self.tool_choice),
        });
        let warnings = std::mem::take(&mut self.warnings).into_iter();
        events.extend(warnings.map(|warning| ModelEvent::Warning { warning }));
    }

    fn event(
        &mut self,
        name: &str,
        event: Event,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if let Some(word) = name.strip_prefix("response.")
            && matches!(word, "completed" | "incomplete" | "failed" | "cancelled")
        {
            let response = event.response.unwrap_or_default();
            self.start(Some(&response), events);
            return self.finish(word, response, events);
        }
        if let Some(response) = &event.response {
            self.start(Some(response), events);
            return Ok(());
        }
        let address = Address::of(&event);
        let place = event.content_index;
        let delta = event.delta.as_deref().unwrap_or_default();
        let text = event.text.as_deref().unwrap_or_default();
        let summary = Thought::Summary(event.summary_index.unwrap_or_default());
        let content = Thought::Content(place.unwrap_or_default());
        let refusal = event.refusal.as_deref().unwrap_or_default();
        let known = [
            "response.output_item.",
            "response.content_part.",
            "response.output_text.",
            "response.refusal.",
            "response.reasoning_",
            "response.function_call_arguments.",
        ];
        if known.iter().any(|begin| name.starts_with(begin)) {
            self.start(None, events);
        }
        let items = &mut self.items;
        match name {
            "response.output_item.added" => {
                if let Some(item) = &event.item {
                    items.added(address, item, events);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = &event.item {
                    items.done(address, item, events);
                }
            }
            "response.output_text.delta" => items.say(address, place, false, delta, events),
            "response.output_text.done" => items.said(address, place, false, text, events),
            "response.refusal.delta" => items.say(address, place, true, delta, events),
            "response.refusal.done" => items.said(address, place, true, refusal, events),
            "response.reasoning_summary_text.delta" => items.think(address, summary, delta, events),
            "response.reasoning_summary_text.done" => items.thought(address, summary, text, events),
            "response.reasoning_text.delta" => items.think(address, content, delta, events),
            "response.reasoning_text.done" => items.thought(address, content, text, events),
            "response.function_call_arguments.delta" => items.argue(address, delta, events),
            "response.function_call_arguments.done" => {
                if let Some(arguments) = &event.arguments {
                    items.argued(address, arguments, events);
                }
            }
            // The rest tells how far a built-in tool is, or says again what was said: an item is
            // taken over when it is complete.
            _ => {}
        }
        Ok(())
    }

    /// The answer is over, as `word` has it.
    fn finish(
        &mut self,
        word: &str,
        response: Response,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let status = match response.status.as_deref() {
            Some(status @ ("incomplete" | "failed" | "cancelled")) => status,
            _ => word,
        };
        let usage = response.usage.map(Usage::from).unwrap_or_default();
        if usage.is_known() {
            let usage = Box::new(usage);
            events.push(ModelEvent::Usage { usage });
        }
        let written = usage.output_tokens.zip(self.silent_limit);
        let at_limit = written.is_some_and(|(written, limit)| written >= limit);
        if status == "failed" {
            let error = response.error.as_ref().filter(|error| is_error(error));
            let error = error.map(ApiError::from_error).unwrap_or_default();
            return Err(error.in_band(&self.provider));
        }
        if status == "cancelled" {
            let message = "the answer was cancelled at the provider";
            return Err(self.error(ModelErrorKind::Interrupted, message));
        }
        // A stream whose items did not come one by one has them here, as a whole body does.
        if self.items.is_empty() {
            for (index, item) in (0..).zip(response.output.iter().flatten()) {
                let address = Address {
                    id: item.get("id").and_then(Value::as_str),
                    index: Some(index),
                };
                self.items.done(address, item, events);
            }
        }
        self.done = true;
        let (reason, raw) = if status == "incomplete" {
            let details = response.incomplete_details.unwrap_or_default();
            let why = details.reason.filter(|reason| !reason.is_empty());
            let raw = why.unwrap_or_else(|| status.to_owned());
            (incomplete(&raw), raw)
        } else if at_limit {
            (FinishReason::Length, status.to_owned())
        } else {
            (FinishReason::Stop, status.to_owned())
        };
        self.items
            .finish(at_limit || status == "incomplete", events);
        self.items.came().finish(reason, Some(raw), events);
        Ok(())
    }

    fn error(&self, kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError::new(&*self.provider, kind, message)
    }
}

impl WireDecoder for ResponsesDecoder {
    fn frame(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let read = self.read(name, data, events);
        read.inspect_err(|_| self.items.release(events))
    }

    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        self.items.release(events);
        let message = "the stream ended without `response.completed`";
        Err(self.error(ModelErrorKind::Interrupted, message))
    }
}

impl ResponsesDecoder {
    /// Reads a frame.
    fn read(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        // Not of this API, but some servers end every stream so.
        if data == "[DONE]" {
            return self.end(events);
        }
        let unreadable = || {
            let message = format!("an event is no JSON object: {}", excerpt(data.as_bytes()));
            self.error(ModelErrorKind::Protocol, message)
        };
        // serde would read a list as the fields in order.
        if !data.starts_with('{') {
            let body: Value = serde_json::from_str(data).unwrap_or_default();
            let error = ApiError::from_body(&body);
            return Err(error.map_or_else(unreadable, |error| error.in_band(&self.provider)));
        }
        let event: Event =
            serde_json::from_str(data).map_err(|fault| unreadable().with_source(fault))?;
        let kind = event.r#type.clone().filter(|kind| !kind.is_empty());
        // Without a type it is what the frame is called, or an error as other wires have it.
        let kind = kind.unwrap_or_else(|| name.to_owned());
        if kind == "error" || !kind.starts_with("response.") {
            let body: Value = serde_json::from_str(data).unwrap_or_default();
            let error = body.get("error").filter(|error| is_error(error));
            let error = match error {
                Some(error) => Some(ApiError::from_error(error)),
                None if kind == "error" => Some(ApiError::from_body(&body).unwrap_or_default()),
                None => None,
            };
            if let Some(error) = error {
                return Err(error.in_band(&self.provider));
            }
        }
        self.event(&kind, event, events)
    }
}

/// Why an answer is incomplete, in the server's word.
fn incomplete(word: &str) -> FinishReason {
    match word {
        // The second is that of servers that translate from other wires.
        "max_output_tokens" | "max_tokens" | "length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
