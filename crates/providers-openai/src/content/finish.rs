//! The last event of an answer.

use switchboard_domain::{FinishReason, ModelEvent, Warning, WarningKind};

/// The content of an answer, as far as the finish reason depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerSummary {
    pub(crate) has_refusal: bool,
    /// Whether there is a call with a name.
    pub(crate) has_calls: bool,
    pub(crate) nameless_calls: usize,
}

impl AnswerSummary {
    /// Emits [`ModelEvent::Finished`]. The server's `reason` is corrected to match the content.
    pub(crate) fn finish(
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
        let reason = reason.given_tool_uses(self.has_calls);
        events.push(ModelEvent::Finished { reason, raw });
    }
}
