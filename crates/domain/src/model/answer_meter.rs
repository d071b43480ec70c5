//! Counter for the size of a streamed answer. The caller compares the size with its limit.

use serde::Serialize;

use crate::{ModelEvent, PartStart};

/// Default maximum size of one answer in bytes.
pub const DEFAULT_MAX_ANSWER_BYTES: u64 = 16 << 20;

/// Minimum number of bytes that the counter adds for each event. Events without text are also
/// stored and sent, so an endless stream of them must reach the size limit too.
const MIN_EVENT_BYTES: u64 = 32;

/// A counter for the bytes of one answer: text, reasoning, tool inputs and provider data.
///
/// ```
/// use switchboard_domain::{AnswerSizeMeter, ModelEvent};
///
/// let mut meter = AnswerSizeMeter::default();
/// let text = "word ".repeat(100);
/// assert_eq!(meter.count_event(&ModelEvent::TextDelta { index: 0, text }), 500);
/// ```
#[derive(Debug, Clone, Default)]
pub struct AnswerSizeMeter {
    bytes: u64,
}

impl AnswerSizeMeter {
    /// Counts an event. Returns the size of the answer so far in bytes.
    pub fn count_event(&mut self, event: &ModelEvent) -> u64 {
        let bytes = match event {
            ModelEvent::TextDelta { text, .. } | ModelEvent::ReasoningDelta { text, .. } => {
                text.len() as u64
            }
            ModelEvent::ToolInputDelta { json, .. } => json.len() as u64,
            ModelEvent::PartStarted {
                part: PartStart::ToolUse { id, name },
                ..
            } => (id.len() + name.len()) as u64,
            ModelEvent::PartStarted {
                part: PartStart::Whole { part },
                ..
            } => serialized_size(part),
            ModelEvent::PartState { state, .. } => serialized_size(state),
            ModelEvent::Warning { warning } => warning.message.len() as u64,
            _ => 0,
        };
        self.bytes = self.bytes.saturating_add(bytes.max(MIN_EVENT_BYTES));
        self.bytes
    }
}

fn serialized_size(value: &impl Serialize) -> u64 {
    serde_json::to_vec(value).map_or(0, |json| json.len() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ModelId, Part, ProviderState, Warning, WarningKind};

    #[test]
    fn every_event_that_keeps_something_counts() {
        let long = "x".repeat(1000);
        let model = ModelId::new("test", "model");
        let state = ProviderState::new_for_model(&model, json!({"signature": long}));
        let events = [
            ModelEvent::TextDelta {
                index: 0,
                text: long.clone(),
            },
            ModelEvent::ReasoningDelta {
                index: 0,
                text: long.clone(),
            },
            ModelEvent::ToolInputDelta {
                index: 0,
                json: long.clone(),
            },
            ModelEvent::PartStarted {
                index: 0,
                part: PartStart::ToolUse {
                    id: "1".to_owned(),
                    name: long.clone(),
                },
            },
            ModelEvent::PartStarted {
                index: 0,
                part: PartStart::Whole {
                    part: Box::new(Part::text(&*long)),
                },
            },
            ModelEvent::PartState {
                index: 0,
                state: Box::new(state),
            },
            ModelEvent::Warning {
                warning: Warning::new(WarningKind::UnknownWireValue, &*long),
            },
        ];
        let mut meter = AnswerSizeMeter::default();
        let mut before = 0;
        for event in events {
            let now = meter.count_event(&event);
            assert!((1000..1200).contains(&(now - before)), "{event:?}: {now}");
            before = now;
        }
        // Also one that keeps nothing.
        assert_eq!(
            meter.count_event(&ModelEvent::PartFinished { index: 0 }),
            before + MIN_EVENT_BYTES
        );
    }
}
