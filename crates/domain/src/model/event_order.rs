//! Checks of the order of events in a streamed answer.

use crate::{ModelEvent, PartStart, TooDeep};

/// A violation of the grammar of [`ModelEvent`], caused by a bug in an adapter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message explains the fields")]
#[non_exhaustive]
pub enum GrammarViolation {
    /// `Started` was emitted twice or after a part.
    #[error("`started` must be the first event and must occur only once")]
    LateStart,
    /// A part started with an index that is not greater than all earlier ones.
    #[error("part {index} started out of order")]
    IndexOutOfOrder { index: u32 },
    /// An event refers to a part that did not start or is already complete.
    #[error("`{event}` for part {index}, which is not open")]
    NotOpen { index: u32, event: &'static str },
    /// A delta does not match the kind of its part, such as text for a tool use.
    #[error("`{event}` does not match the kind of part {index}")]
    WrongKind { index: u32, event: &'static str },
    /// A provider state or a whole part nests JSON too deeply.
    #[error("part {index} contains data that is {too_deep}")]
    TooDeep { index: u32, too_deep: TooDeep },
    /// An event other than `Usage` and `Warning` was emitted after `Finished`.
    #[error("`{event}` after `finished`")]
    AfterFinish { event: &'static str },
    /// `Retrying` was emitted after visible output.
    #[error("`retrying` after visible output")]
    LateRetry,
    /// The stream ended without `Finished`.
    #[error("the stream ended without `finished`")]
    NoFinish,
}

/// Checker of the order of the events of one answer. It does not store their content.
/// [`ResponseAccumulator`](crate::ResponseAccumulator) makes the same checks and also assembles the
/// answer.
#[derive(Debug, Clone, Default)]
pub struct EventOrderChecker {
    started: bool,
    finished: bool,
    /// Whether visible output was emitted. After that, a `Retrying` event is a violation.
    has_shown: bool,
    parts: Vec<StartedPart>,
}

#[derive(Debug, Clone, Copy)]
struct StartedPart {
    index: u32,
    open: bool,
    kind: PartKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Text,
    Reasoning,
    ToolUse,
    Whole,
}

impl EventOrderChecker {
    /// Checks the next event. An invalid event does not change the state.
    pub fn check_event(&mut self, event: &ModelEvent) -> Result<(), GrammarViolation> {
        self.check_and_find_part(event).map(|_| ())
    }

    /// Returns whether [`ModelEvent::Finished`] was emitted.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Checks the next event and returns the position of its part in `parts`, or 0 for an event
    /// without a part.
    pub(crate) fn check_and_find_part(
        &mut self,
        event: &ModelEvent,
    ) -> Result<usize, GrammarViolation> {
        if self.finished {
            return match event {
                ModelEvent::Usage { .. } | ModelEvent::Warning { .. } => Ok(0),
                other => Err(GrammarViolation::AfterFinish {
                    event: event_name(other),
                }),
            };
        }
        let at = self.check_event_before_finish(event)?;
        self.has_shown |= event.shows_output();
        Ok(at)
    }

    fn check_event_before_finish(&mut self, event: &ModelEvent) -> Result<usize, GrammarViolation> {
        match event {
            ModelEvent::TextDelta { index, .. } => self.check_delta(*index, PartKind::Text, event),
            ModelEvent::ReasoningDelta { index, .. } => {
                self.check_delta(*index, PartKind::Reasoning, event)
            }
            ModelEvent::ToolInputDelta { index, .. } => {
                self.check_delta(*index, PartKind::ToolUse, event)
            }
            ModelEvent::Started { .. } => {
                if self.started || !self.parts.is_empty() {
                    return Err(GrammarViolation::LateStart);
                }
                self.started = true;
                Ok(0)
            }
            ModelEvent::PartStarted { index, part } => self.start_part(*index, part),
            ModelEvent::PartState { index, .. } => {
                let at = self.find_open_part(*index, event)?;
                if self.parts[at].kind == PartKind::Whole {
                    return Err(wrong_kind_error(*index, event));
                }
                Ok(at)
            }
            ModelEvent::PartFinished { index } => {
                let at = self.find_open_part(*index, event)?;
                self.parts[at].open = false;
                Ok(at)
            }
            ModelEvent::Usage { .. } | ModelEvent::Warning { .. } => Ok(0),
            ModelEvent::Retrying { .. } => {
                if self.has_shown {
                    return Err(GrammarViolation::LateRetry);
                }
                *self = Self::default();
                Ok(0)
            }
            ModelEvent::Finished { .. } => {
                self.finished = true;
                Ok(0)
            }
        }
    }

    fn start_part(&mut self, index: u32, part: &PartStart) -> Result<usize, GrammarViolation> {
        if self.parts.last().is_some_and(|last| last.index >= index) {
            return Err(GrammarViolation::IndexOutOfOrder { index });
        }
        let kind = match part {
            PartStart::Text => PartKind::Text,
            PartStart::Reasoning => PartKind::Reasoning,
            PartStart::ToolUse { .. } => PartKind::ToolUse,
            PartStart::Whole { .. } => PartKind::Whole,
        };
        self.parts.push(StartedPart {
            index,
            open: true,
            kind,
        });
        Ok(self.parts.len() - 1)
    }

    fn check_delta(
        &self,
        index: u32,
        kind: PartKind,
        event: &ModelEvent,
    ) -> Result<usize, GrammarViolation> {
        let at = self.find_open_part(index, event)?;
        if self.parts[at].kind == kind {
            Ok(at)
        } else {
            Err(wrong_kind_error(index, event))
        }
    }

    /// Returns the position in `parts` of the unfinished part with this index. Fails with
    /// [`GrammarViolation::NotOpen`] if this part did not start or is complete.
    fn find_open_part(&self, index: u32, event: &ModelEvent) -> Result<usize, GrammarViolation> {
        // The search starts at the end, because nearly all deltas belong to the last part.
        self.parts
            .iter()
            .rposition(|part| part.index == index && part.open)
            .ok_or_else(|| GrammarViolation::NotOpen {
                index,
                event: event_name(event),
            })
    }
}

fn wrong_kind_error(index: u32, event: &ModelEvent) -> GrammarViolation {
    GrammarViolation::WrongKind {
        index,
        event: event_name(event),
    }
}

fn event_name(event: &ModelEvent) -> &'static str {
    match event {
        ModelEvent::Started { .. } => "started",
        ModelEvent::PartStarted { .. } => "part_started",
        ModelEvent::TextDelta { .. } => "text_delta",
        ModelEvent::ReasoningDelta { .. } => "reasoning_delta",
        ModelEvent::ToolInputDelta { .. } => "tool_input_delta",
        ModelEvent::PartState { .. } => "part_state",
        ModelEvent::PartFinished { .. } => "part_finished",
        ModelEvent::Usage { .. } => "usage",
        ModelEvent::Warning { .. } => "warning",
        ModelEvent::Retrying { .. } => "retrying",
        ModelEvent::Finished { .. } => "finished",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FinishReason, Part};

    #[test]
    fn the_grammar_stores_no_content() {
        let mut grammar = EventOrderChecker::default();
        let events = [
            ModelEvent::PartStarted {
                index: 0,
                part: PartStart::Text,
            },
            ModelEvent::TextDelta {
                index: 0,
                text: "a long text".to_owned(),
            },
            ModelEvent::PartStarted {
                index: 1,
                part: PartStart::Whole {
                    part: Box::new(Part::text("another")),
                },
            },
            ModelEvent::Finished {
                reason: FinishReason::Stop,
                raw: Some("stop".to_owned()),
            },
        ];
        for event in &events {
            grammar.check_event(event).unwrap();
        }
        assert!(grammar.is_finished());
        let held = format!("{grammar:?}");
        assert!(
            !held.contains("a long text") && !held.contains("another"),
            "{held}"
        );
    }

    /// Streams copy one event per word several times.
    #[test]
    fn an_event_is_small() {
        assert!(size_of::<ModelEvent>() <= 80, "{}", size_of::<ModelEvent>());
    }
}
