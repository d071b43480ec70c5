//! Wire chunks → domain events.

use serde_json::{Map, Value, json};
use switchboard_domain::{
    FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelId, Opaque, Part, PartStart,
    ProviderState, ToolChoiceOutcome, Usage, Warning, WarningKind,
};
use switchboard_providers_common::{
    LocalIds, WireDecoder, http::classify::excerpt, provider::is_error,
};

use super::{
    finish::{CONTINUATION, finish_reason, is_said},
    names::Declared,
    native::{data_field, medium, readable, text_of},
    parts::{BESIDE_CONTENT, ID, PIECE, SIGNATURE},
    plain::{PlainChunk, PlainPart},
    usage::UsageReport,
};
use crate::{continuation::Continuation, error::ERRORS};

/// After so many chunks in a row that were not plain, a server is not expected to send any.
const MAX_ODD: u8 = 32;

/// The stream's state machine: chunks in, domain events out.
///
/// The wire has no closing event: `Finished` is said when the transport ends, if a `finishReason` or a
/// blocked prompt came before. Calls come whole. A text or thought that has a signature is a part of
/// its own, so that it goes back as it came; others that follow each other are one.
#[derive(Debug)]
pub struct GenerateDecoder {
    model: ModelId,
    tool_choice: ToolChoiceOutcome,
    warnings: Vec<Warning>,
    ids: LocalIds,
    declared: Declared,
    /// Asks for the rest of an answer that is continued; without it that is an answer at a limit.
    continuation: Option<Continuation>,
    /// The request that the chunks belong to, the newest token that came with it, and the one that
    /// it was made with.
    hop: u32,
    token: Option<String>,
    asked_with: Option<String>,
    /// What the requests before cost, and this one so far.
    spent: Usage,
    usage: UsageReport,
    started: bool,
    next_part: u32,
    /// The text or thought being said.
    open: Option<(u32, Kind)>,
    calls: usize,
    /// Calls without a name.
    nameless: usize,
    /// What stands beside the content, in the order of [`BESIDE_CONTENT`].
    beside: [Option<Value>; BESIDE_CONTENT.len()],
    finish: Option<String>,
    finish_message: Option<String>,
    blocked: Option<String>,
    /// Whether the end counts though no `finishReason` came: a whole body needs none.
    finish_optional: bool,
    done: bool,
    /// Whether an answer came, or the reason why there is none.
    answered: bool,
    other_answers: bool,
    /// Chunks in a row that were not plain.
    odd: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thought,
}

/// What a call is given.
#[derive(Debug)]
enum Input<'a> {
    /// A JSON value.
    Read(Value),
    /// The text of one.
    AsItStands(&'a str),
}

impl GenerateDecoder {
    /// A decoder for one answer of `model`, whose request came to `tool_choice` and `warnings`.
    /// `ids` knows which tool-use ids the conversation has used up.
    pub fn new(
        model: ModelId,
        tool_choice: ToolChoiceOutcome,
        warnings: Vec<Warning>,
        ids: LocalIds,
    ) -> Self {
        Self {
            model,
            tool_choice,
            warnings,
            ids,
            declared: Declared::default(),
            continuation: None,
            hop: 0,
            token: None,
            asked_with: None,
            spent: Usage::default(),
            usage: UsageReport::default(),
            started: false,
            next_part: 0,
            open: None,
            calls: 0,
            nameless: 0,
            beside: Default::default(),
            finish: None,
            finish_message: None,
            blocked: None,
            finish_optional: false,
            done: false,
            answered: false,
            other_answers: false,
            odd: 0,
        }
    }

    /// The same without the shorter way through plain chunks, which must come to the same.
    #[cfg(test)]
    fn the_long_way(mut self) -> Self {
        self.odd = MAX_ODD;
        self
    }

    /// The same for a request that declared these tools: their names and inputs are translated back.
    #[must_use]
    pub fn with_declared(mut self, declared: Declared) -> Self {
        self.declared = declared;
        self
    }

    /// The same with the rest of an answer to be had.
    pub(crate) fn with_continuation(mut self, continuation: Continuation) -> Self {
        self.continuation = Some(continuation);
        self
    }

    /// The same for an answer that comes whole, which needs no `finishReason`.
    pub(crate) fn for_whole_answer(mut self) -> Self {
        self.finish_optional = true;
        self
    }

    fn chunk(
        &mut self,
        mut chunk: Map<String, Value>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if let Some(error) = chunk.get("error").filter(|error| is_error(error)) {
            return Err(ERRORS.in_band(&self.model.provider, ERRORS.read(error)));
        }
        self.next_hop();
        let known = [
            "candidates",
            "promptFeedback",
            "usageMetadata",
            "responseId",
            "modelVersion",
        ];
        if !self.started && known.iter().any(|name| chunk.contains_key(*name)) {
            self.start(
                text_of(&chunk, "responseId"),
                text_of(&chunk, "modelVersion"),
                events,
            );
        }
        if let Some(Value::Array(candidates)) = chunk.remove("candidates") {
            for candidate in candidates {
                if let Value::Object(candidate) = candidate {
                    self.candidate(candidate, events);
                }
            }
        }
        let feedback = chunk.get("promptFeedback").and_then(Value::as_object);
        if let Some(feedback) = feedback
            && let Some(word) = text_of(feedback, "blockReason")
        {
            self.answered = true;
            self.blocked = Some(word);
            self.finish_message =
                text_of(feedback, "blockReasonMessage").or(self.finish_message.take());
        }
        if let Some(report) = chunk.get("usageMetadata").filter(|it| !it.is_null()) {
            self.report(UsageReport::of(report), events);
        }
        Ok(())
    }

    /// A chunk in which nothing is odd, as [`chunk`](GenerateDecoder::chunk) takes it.
    fn plain(&mut self, chunk: &PlainChunk<'_>, events: &mut Vec<ModelEvent>) {
        self.next_hop();
        if !self.started {
            let said = |text: Option<&str>| text.map(str::to_owned);
            self.start(said(chunk.response_id()), said(chunk.model()), events);
        }
        self.answered = true;
        for part in chunk.parts() {
            self.plain_part(part, events);
        }
        if let Some(word) = chunk.finish_reason() {
            self.ended(word);
        }
        if let Some(report) = chunk.usage() {
            self.report(report, events);
        }
    }

    /// Tells what the answer cost so far.
    fn report(&mut self, report: UsageReport, events: &mut Vec<ModelEvent>) {
        self.usage.update(report);
        let mut usage = self.spent;
        usage.add(self.usage.into());
        if usage.is_known() {
            let usage = Box::new(usage);
            events.push(ModelEvent::Usage { usage });
        }
    }

    /// Notices when the chunks of another request begin.
    fn next_hop(&mut self) {
        let hop = self
            .continuation
            .as_ref()
            .map_or(0, Continuation::further_requests);
        if hop != self.hop {
            self.hop = hop;
            self.token = None;
            self.spent.add(std::mem::take(&mut self.usage).into());
        }
    }

    fn start(
        &mut self,
        response_id: Option<String>,
        model: Option<String>,
        events: &mut Vec<ModelEvent>,
    ) {
        self.started = true;
        events.push(ModelEvent::Started {
            response_id,
            model,
            tool_choice: std::mem::take(&mut self.tool_choice),
        });
        let warnings = std::mem::take(&mut self.warnings);
        events.extend(
            warnings
                .into_iter()
                .map(|warning| ModelEvent::Warning { warning }),
        );
    }

    fn candidate(&mut self, mut candidate: Map<String, Value>, events: &mut Vec<ModelEvent>) {
        let index = candidate.get("index").and_then(Value::as_u64);
        if index.is_some_and(|index| index != 0) {
            self.other_answer(events);
            return;
        }
        self.answered = true;
        let parts = candidate
            .get_mut("content")
            .and_then(|content| content.get_mut("parts"))
            .map(Value::take);
        if let Some(Value::Array(parts)) = parts {
            for part in parts {
                if let Value::Object(part) = part {
                    self.part(part, events);
                }
            }
        }
        for (known, kind) in self.beside.iter_mut().zip(BESIDE_CONTENT) {
            let report = candidate.remove(kind);
            let report = report.filter(|it| it.as_object().is_some_and(|it| !it.is_empty()));
            // Each report holds what the earlier ones did.
            *known = report.or(known.take());
        }
        self.finish_message = text_of(&candidate, "finishMessage").or(self.finish_message.take());
        self.token = text_of(&candidate, "continuationToken").or(self.token.take());
        if let Some(word) = text_of(&candidate, "finishReason") {
            self.ended(&word);
        }
    }

    /// Takes the reason of the end. One that says more than "stop" is not replaced.
    fn ended(&mut self, word: &str) {
        if is_said(word)
            && self.finish.as_deref().is_none_or(|said| said == "STOP")
            && !self.asks_for_more(word)
        {
            self.finish = Some(word.to_owned());
        }
    }

    /// Whether the answer goes on: it was broken off at the API's limit, and the rest is asked for.
    fn asks_for_more(&mut self, word: &str) -> bool {
        let (Some(continuation), Some(token)) = (&self.continuation, &self.token) else {
            return false;
        };
        // The same token again would bring the same piece again.
        let is_new = self.asked_with.as_ref() != Some(token);
        let asked = word == CONTINUATION && is_new && continuation.request(token);
        if asked {
            self.asked_with = self.token.clone();
        }
        asked
    }

    /// A piece with nothing odd, as [`part`](GenerateDecoder::part) takes it.
    fn plain_part(&mut self, part: &PlainPart<'_>, events: &mut Vec<ModelEvent>) {
        let signature = part.thought_signature.as_ref().and_then(|it| it.said());
        if let Some(call) = &part.function_call {
            let call = &call.0;
            let name = call.name.as_deref().unwrap_or_default();
            let id = call.id.as_ref().and_then(|id| id.said());
            let input = call.args.map(|args| Input::AsItStands(args.get()));
            self.whole_call(name, id, signature, input, events);
            return;
        }
        let kind = if part.thought == Some(true) {
            Kind::Thought
        } else {
            Kind::Text
        };
        // A signature with nothing to sign stands where an empty text would.
        self.say(
            kind,
            part.text.as_deref().unwrap_or_default(),
            signature,
            events,
        );
    }

    fn part(&mut self, mut part: Map<String, Value>, events: &mut Vec<ModelEvent>) {
        let signature = text_of(&part, SIGNATURE);
        let is_thought = part.get("thought") == Some(&Value::Bool(true));
        let kind = if is_thought {
            Kind::Thought
        } else {
            Kind::Text
        };
        if let Some(Value::Object(call)) = part.get_mut("functionCall") {
            self.call(std::mem::take(call), signature.as_deref(), events);
            return;
        }
        if let Some(Value::String(text)) = part.get("text") {
            self.say(kind, text, signature.as_deref(), events);
            return;
        }
        let Some(name) = data_field(&part).map(str::to_owned) else {
            // A signature with nothing to sign stands where an empty text would.
            if signature.is_some() {
                self.say(kind, "", signature.as_deref(), events);
            }
            return;
        };
        self.close(events);
        let whole = match part.get("inlineData").and_then(Value::as_object) {
            // Media have no place for a signature.
            Some(blob) if signature.is_none() && !is_thought => medium(blob),
            _ => None,
        };
        let whole = whole.unwrap_or_else(|| {
            let text = readable(&name, part.get(&name));
            let state = Map::from_iter([(PIECE.to_owned(), Value::Object(part))]);
            self.opaque(name, text, Value::Object(state))
        });
        self.whole(whole, events);
    }

    fn call(
        &mut self,
        mut call: Map<String, Value>,
        signature: Option<&str>,
        events: &mut Vec<ModelEvent>,
    ) {
        let name = text_of(&call, "name").unwrap_or_default();
        let id = text_of(&call, ID);
        // Arguments in pieces are given only to who asks for them; without their end nothing is run.
        let in_pieces = call.contains_key("partialArgs")
            || call.get("willContinue") == Some(&Value::Bool(true));
        let input = call.remove("args").filter(|args| !args.is_null());
        let input = input.map(Input::Read);
        if in_pieces {
            self.begin_call(&name, id.as_deref(), signature, input, events);
        } else {
            self.whole_call(&name, id.as_deref(), signature, input, events);
        }
    }

    /// A call of which all is there.
    fn whole_call(
        &mut self,
        name: &str,
        id: Option<&str>,
        signature: Option<&str>,
        input: Option<Input<'_>>,
        events: &mut Vec<ModelEvent>,
    ) {
        match self.begin_call(name, id, signature, input, events) {
            Some(index) => events.push(ModelEvent::PartFinished { index }),
            None => self.nameless += 1,
        }
    }

    /// A call, which stays open; `None` if it has no name.
    fn begin_call(
        &mut self,
        name: &str,
        id: Option<&str>,
        signature: Option<&str>,
        input: Option<Input<'_>>,
        events: &mut Vec<ModelEvent>,
    ) -> Option<u32> {
        self.close(events);
        let name = Some(name.trim()).filter(|name| !name.is_empty())?;
        self.calls += 1;
        let name = self.declared.to_domain(name).to_owned();
        let wire_id = id.filter(|id| !id.trim().is_empty());
        let json = input.map(|input| self.input(&name, input));
        let index = self.next_index();
        events.push(ModelEvent::PartStarted {
            index,
            part: PartStart::ToolUse {
                id: self.ids.claim(wire_id),
                name,
            },
        });
        let mut state = Map::new();
        for (field, value) in [(ID, wire_id), (SIGNATURE, signature)] {
            if let Some(value) = value {
                state.insert(field.to_owned(), value.into());
            }
        }
        if !state.is_empty() {
            let state = self.minted(Value::Object(state));
            let state = Box::new(state);
            events.push(ModelEvent::PartState { index, state });
        }
        if let Some(json) = json {
            events.push(ModelEvent::ToolInputDelta { index, json });
        }
        Some(index)
    }

    /// What the tool of that name in the domain is given, as JSON text.
    fn input(&self, name: &str, input: Input<'_>) -> String {
        let args = match input {
            Input::Read(args) => args,
            Input::AsItStands(text) if !self.declared.reshapes() => return text.to_owned(),
            // It was read once: as text that is JSON.
            Input::AsItStands(text) => match serde_json::from_str(text) {
                Ok(args) => args,
                Err(_) => return text.to_owned(),
            },
        };
        self.declared.input(name, args).to_string()
    }

    fn say(
        &mut self,
        kind: Kind,
        text: &str,
        signature: Option<&str>,
        events: &mut Vec<ModelEvent>,
    ) {
        if text.is_empty() && signature.is_none() {
            return;
        }
        let index = match self.open {
            Some((index, known)) if known == kind && signature.is_none() => index,
            _ => self.begin(kind, signature, events),
        };
        if !text.is_empty() {
            let text = text.to_owned();
            events.push(match kind {
                Kind::Text => ModelEvent::TextDelta { index, text },
                Kind::Thought => ModelEvent::ReasoningDelta { index, text },
            });
        }
        // What is signed is signed as it is: nothing is added to it.
        if signature.is_some() {
            self.close(events);
        }
    }

    fn begin(&mut self, kind: Kind, signature: Option<&str>, events: &mut Vec<ModelEvent>) -> u32 {
        self.close(events);
        let index = self.next_index();
        let part = match kind {
            Kind::Text => PartStart::Text,
            Kind::Thought => PartStart::Reasoning,
        };
        events.push(ModelEvent::PartStarted { index, part });
        let data = match (kind, signature) {
            (_, Some(signature)) => Some(json!({ SIGNATURE: signature })),
            // A mark of whose thought it is: it goes back to nobody else.
            (Kind::Thought, None) => Some(json!({})),
            (Kind::Text, None) => None,
        };
        if let Some(data) = data {
            let state = self.minted(data);
            let state = Box::new(state);
            events.push(ModelEvent::PartState { index, state });
        }
        self.open = Some((index, kind));
        index
    }

    fn close(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some((index, _)) = self.open.take() {
            events.push(ModelEvent::PartFinished { index });
        }
    }

    fn whole(&mut self, part: Part, events: &mut Vec<ModelEvent>) {
        let index = self.next_index();
        let part = PartStart::Whole {
            part: Box::new(part),
        };
        events.push(ModelEvent::PartStarted { index, part });
        events.push(ModelEvent::PartFinished { index });
    }

    fn opaque(&self, kind: String, text: Option<String>, data: Value) -> Part {
        Part::Opaque(Opaque {
            kind,
            text,
            provider_state: self.minted(data),
        })
    }

    fn next_index(&mut self) -> u32 {
        let index = self.next_part;
        self.next_part = index.saturating_add(1);
        index
    }

    fn minted(&self, data: Value) -> ProviderState {
        ProviderState::minted_by(&self.model, data)
    }

    fn other_answer(&mut self, events: &mut Vec<ModelEvent>) {
        if !std::mem::replace(&mut self.other_answers, true) {
            let message = "the server sent several candidates; only the first is read";
            warn(WarningKind::UnknownWireValue, message, events);
        }
    }

    /// The wire is done.
    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let blocked = self.blocked.take().filter(|_| self.finish.is_none());
        let is_blocked = blocked.is_some();
        let raw = self.finish.take().or(blocked);
        if raw.is_none() && !self.finish_optional {
            let message = "the stream ended without a finishReason";
            return Err(self.error(ModelErrorKind::Interrupted, message));
        }
        if !self.answered {
            let message = "there is no answer in the body";
            return Err(self.error(ModelErrorKind::Protocol, message));
        }
        self.done = true;
        if !self.started {
            self.start(None, None, events);
        }
        self.close(events);
        for (report, kind) in std::mem::take(&mut self.beside)
            .into_iter()
            .zip(BESIDE_CONTENT)
        {
            if let Some(report) = report {
                let text = readable(kind, Some(&report));
                let part = self.opaque(kind.to_owned(), text, json!({ kind: report }));
                self.whole(part, events);
            }
        }
        let mut reason = if is_blocked {
            FinishReason::ContentFilter
        } else {
            finish_reason(raw.as_deref().unwrap_or("STOP"))
        };
        let said_why = self.finish_message.take();
        if let Some(message) = said_why
            && !matches!(reason, FinishReason::Stop | FinishReason::Length)
        {
            let message = format!("output was withheld: {message}");
            warn(WarningKind::PartDropped, message, events);
        }
        if self.nameless > 0 {
            let message = format!(
                "{} call(s) came without a name and were left out",
                self.nameless
            );
            warn(WarningKind::UnknownWireValue, message, events);
            if self.calls == 0 && reason == FinishReason::Stop {
                reason = FinishReason::MalformedToolCall;
            }
        }
        let reason = reason.given_tool_uses(self.calls > 0);
        events.push(ModelEvent::Finished { reason, raw });
        Ok(())
    }

    fn error(&self, kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError::new(&*self.model.provider, kind, message)
    }
}

impl WireDecoder for GenerateDecoder {
    fn frame(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        // Proxies to other wires close with a word of theirs.
        if self.done || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        if self.odd < MAX_ODD && name != "error" {
            if let Some(chunk) = PlainChunk::read(data) {
                self.odd = 0;
                self.plain(&chunk, events);
                return Ok(());
            }
            self.odd += 1;
        }
        let unreadable = || {
            let message = format!("a chunk is not a JSON object: {}", excerpt(data.as_bytes()));
            self.error(ModelErrorKind::Protocol, message)
        };
        let body: Value =
            serde_json::from_str(data).map_err(|fault| unreadable().with_source(fault))?;
        if name == "error" {
            let error = ERRORS.find(&body).unwrap_or_default();
            return Err(ERRORS.in_band(&self.model.provider, error));
        }
        match body {
            Value::Object(chunk) => self.chunk(chunk, events),
            // Errors come in a list, and so do whole answers that were not asked for as events.
            Value::Array(list) if list.iter().all(Value::is_object) => {
                list.into_iter().try_for_each(|chunk| match chunk {
                    Value::Object(chunk) => self.chunk(chunk, events),
                    _ => Ok(()),
                })
            }
            _ => Err(unreadable()),
        }
    }

    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        self.finish(events)
    }
}

fn warn(kind: WarningKind, message: impl Into<String>, events: &mut Vec<ModelEvent>) {
    let warning = Warning::new(kind, message);
    events.push(ModelEvent::Warning { warning });
}

#[cfg(test)]
#[path = "stream_laws_tests.rs"]
mod laws;
#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
