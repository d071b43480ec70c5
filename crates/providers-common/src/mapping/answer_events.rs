//! The events that begin and end an answer of every provider.

use switchboard_domain::{
    FinishReason, ModelEvent, Part, PartStart, ProviderState, ToolChoiceOutcome, Usage, Warning,
    WarningKind,
};

/// Emitter of an answer's `Started` event and warnings. It also numbers the answer's parts.
#[derive(Debug)]
pub struct AnswerEvents {
    tool_choice: ToolChoiceOutcome,
    warnings: Vec<Warning>,
    has_started: bool,
    next_part: u32,
}

impl AnswerEvents {
    /// Creates the emitter for one answer. `tool_choice` states how the request's tool choice was
    /// applied, and `warnings` state what was changed or dropped in the request.
    pub fn new(tool_choice: ToolChoiceOutcome, warnings: Vec<Warning>) -> Self {
        Self {
            tool_choice,
            warnings,
            has_started: false,
            next_part: 0,
        }
    }

    /// Returns whether [`ModelEvent::Started`] was emitted.
    pub fn has_started(&self) -> bool {
        self.has_started
    }

    /// Emits [`ModelEvent::Started`] and then all warnings that were added before. Does nothing if
    /// `Started` was already emitted. An empty `response_id` or `model` becomes `None`.
    pub fn emit_start(
        &mut self,
        response_id: Option<String>,
        model: Option<String>,
        events: &mut Vec<ModelEvent>,
    ) {
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        let non_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
        events.push(ModelEvent::Started {
            response_id: non_empty(response_id),
            model: non_empty(model),
            tool_choice: std::mem::take(&mut self.tool_choice),
        });
        let warnings = std::mem::take(&mut self.warnings).into_iter();
        events.extend(warnings.map(|warning| ModelEvent::Warning { warning }));
    }

    /// Emits a warning. A warning before [`ModelEvent::Started`] is emitted after that event.
    pub fn warn(
        &mut self,
        kind: WarningKind,
        message: impl Into<String>,
        events: &mut Vec<ModelEvent>,
    ) {
        let warning = Warning::new(kind, message);
        if self.has_started {
            events.push(ModelEvent::Warning { warning });
        } else {
            self.warnings.push(warning);
        }
    }

    /// Emits the start of a part and returns the part's index.
    pub fn start_part(&mut self, part: PartStart, events: &mut Vec<ModelEvent>) -> u32 {
        let index = self.next_part;
        self.next_part = index.saturating_add(1);
        events.push(ModelEvent::PartStarted { index, part });
        index
    }

    /// Emits the start and the end of a part whose content arrived in one piece.
    pub fn emit_whole_part(&mut self, part: Part, events: &mut Vec<ModelEvent>) {
        let part = Box::new(part);
        let index = self.start_part(PartStart::Whole { part }, events);
        events.push(ModelEvent::PartFinished { index });
    }
}

/// Properties of an answer's content that decide its finish reason, such as whether it has tool
/// calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnswerSummary {
    /// Whether the model refused to answer.
    pub has_refusal: bool,
    /// Whether the answer contains a tool call with a name.
    pub has_calls: bool,
    /// Number of tool calls without a name, which cannot be executed.
    pub nameless_calls: usize,
}

impl AnswerSummary {
    /// Emits [`ModelEvent::Finished`], and before it a warning if there are tool calls without a
    /// name. `reason` is corrected if it contradicts the content: for example, `Stop` becomes
    /// `Refusal` for a refused answer. `raw` is the provider's own name of the reason.
    pub fn emit_finish(
        self,
        mut reason: FinishReason,
        raw: Option<String>,
        events: &mut Vec<ModelEvent>,
    ) {
        if self.has_refusal && reason == FinishReason::Stop {
            reason = FinishReason::Refusal;
        }
        if self.nameless_calls > 0 {
            let message = format!(
                "{} call(s) without a name were dropped",
                self.nameless_calls
            );
            let warning = Warning::new(WarningKind::UnknownWireValue, message);
            events.push(ModelEvent::Warning { warning });
            if !self.has_calls && matches!(reason, FinishReason::Stop | FinishReason::ToolUse) {
                reason = FinishReason::MalformedToolCall;
            }
        }
        let reason = reason.adjust_to_tool_uses(self.has_calls);
        events.push(ModelEvent::Finished { reason, raw });
    }
}

/// Emits the token usage of an answer. Emits nothing if no count is known.
pub fn emit_usage(usage: Usage, events: &mut Vec<ModelEvent>) {
    if usage.is_known() {
        let usage = Box::new(usage);
        events.push(ModelEvent::Usage { usage });
    }
}

/// Emits the provider state of the part with this index.
pub fn emit_part_state(index: u32, state: ProviderState, events: &mut Vec<ModelEvent>) {
    let state = Box::new(state);
    events.push(ModelEvent::PartState { index, state });
}
