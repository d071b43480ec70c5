//! Converts a plan of the demo model to model events.

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, FinishReason, ModelEvent, PartStart, ResponseFormat, ToolChoice,
    ToolChoiceOutcome, Warning, WarningKind,
};

use crate::{
    model::MODEL,
    response_formatter,
    step_planner::{Plan, PlannedCall},
};

/// Returns the model events of a plan, in the order that the trait `ChatModel` requires.
pub(crate) fn plan_to_events(request: &ChatRequest, plan: &Plan) -> Vec<ModelEvent> {
    let tool_choice = tool_choice_outcome(&request.tool_choice, plan);
    let mut warnings = collect_option_warnings(request);
    if let ToolChoiceOutcome::Relaxed { why } = &tool_choice {
        warnings.push(Warning::new(WarningKind::ToolChoiceRelaxed, why.clone()));
    }
    let mut events = vec![ModelEvent::Started {
        response_id: None,
        model: Some(MODEL.to_owned()),
        tool_choice,
    }];
    events.extend(
        warnings
            .into_iter()
            .map(|warning| ModelEvent::Warning { warning }),
    );
    let reason = if let Some(text) = plan.user_text() {
        add_text_events(text, request.max_output_tokens, &mut events)
    } else {
        let mut first = 0;
        if let Some(text) = response_formatter::text_before_tool_calls(request, plan) {
            add_text_events(&text, None, &mut events);
            first = 1;
        }
        for (index, call) in (first..).zip(plan.planned_calls()) {
            add_call_events(index, call, &mut events);
        }
        FinishReason::ToolUse
    };
    events.push(ModelEvent::Finished { reason, raw: None });
    events
}

/// Appends the events of a text, one delta per word. If the text has more than `max_words` words,
/// the rest is omitted and the returned finish reason is `Length`, otherwise `Stop`.
fn add_text_events(
    text: &str,
    max_words: Option<u32>,
    events: &mut Vec<ModelEvent>,
) -> FinishReason {
    let limit = max_words
        .and_then(|words| usize::try_from(words).ok())
        .unwrap_or(usize::MAX);
    let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
    events.push(ModelEvent::PartStarted {
        index: 0,
        part: PartStart::Text,
    });
    events.extend(words.iter().take(limit).map(|word| ModelEvent::TextDelta {
        index: 0,
        text: (*word).to_owned(),
    }));
    events.push(ModelEvent::PartFinished { index: 0 });
    if words.len() > limit {
        FinishReason::Length
    } else {
        FinishReason::Stop
    }
}

/// Appends the events of a tool call. The JSON text of the input is split into two deltas, because
/// other providers also send it in pieces.
fn add_call_events(index: u32, call: &PlannedCall, events: &mut Vec<ModelEvent>) {
    events.push(ModelEvent::PartStarted {
        index,
        part: PartStart::ToolUse {
            id: call.id.clone(),
            name: call.name.clone(),
        },
    });
    let json = Value::Object(call.input.clone()).to_string();
    let (head, tail) = json.split_at(json.floor_char_boundary(json.len() / 2));
    for piece in [head, tail].into_iter().filter(|piece| !piece.is_empty()) {
        events.push(ModelEvent::ToolInputDelta {
            index,
            json: piece.to_owned(),
        });
    }
    events.push(ModelEvent::PartFinished { index });
}

fn tool_choice_outcome(choice: &ToolChoice, plan: &Plan) -> ToolChoiceOutcome {
    let forced = matches!(choice, ToolChoice::Required | ToolChoice::Only(_));
    let why = match plan {
        Plan::Call(_) => return ToolChoiceOutcome::Native,
        Plan::Ask { .. } => "a required argument is missing",
        Plan::Answer { .. } => "the calls for this question have results",
        Plan::Decline { .. } => "no tool can be called",
    };
    if forced {
        ToolChoiceOutcome::Relaxed {
            why: why.to_owned(),
        }
    } else {
        ToolChoiceOutcome::Native
    }
}

/// Returns the warnings about ignored options: one if the request sets a JSON Schema for the
/// answer, and one if it sets stop sequences.
fn collect_option_warnings(request: &ChatRequest) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut dropped = |option: &str| {
        let message = format!("the demo model ignores {option}");
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    };
    if matches!(request.response_format, ResponseFormat::JsonSchema { .. }) {
        dropped("response_format");
    }
    if !request.sampling.stop.is_empty() {
        dropped("stop");
    }
    warnings
}
