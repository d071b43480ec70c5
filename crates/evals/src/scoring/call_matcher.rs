//! Compares a tool call with an expected call.

use serde_json::{Map, Value};
use switchboard_orchestration::ToolCallRecord;

use crate::suite::{ExpectedCall, MatchResult, Matcher};

/// An expected call of the scenario with its parsed matchers, for comparison with tool calls.
pub(crate) struct CallMatcher<'a> {
    call: &'a ExpectedCall,
    arguments: Vec<(&'a str, Matcher)>,
    /// Whether an additional argument that is null violates [`ExpectedCall::exactly`]. If `false`,
    /// such an argument counts as missing.
    counts_null: bool,
    alternatives: Vec<Self>,
}

impl<'a> CallMatcher<'a> {
    pub(super) fn new(call: &'a ExpectedCall) -> Self {
        // Validation of the suite rejects values that are not valid matchers. Without validation,
        // an invalid value becomes a matcher that accepts no argument.
        let parse =
            |value: &Value| Matcher::parse_matcher(value).unwrap_or(Matcher::OneOf(Vec::new()));
        let arguments = call.input.iter();
        Self {
            call,
            arguments: arguments
                .map(|(name, value)| (name.as_str(), parse(value)))
                .collect(),
            counts_null: false,
            alternatives: call.or.iter().map(Self::new).collect(),
        }
    }

    /// Creates a matcher for the rules of the Berkeley Function Calling Leaderboard: an additional
    /// argument violates `exactly` even if the argument is null.
    pub(super) fn for_bfcl_rules(call: &'a ExpectedCall) -> Self {
        Self {
            counts_null: true,
            ..Self::new(call)
        }
    }

    /// Returns whether a call uses the tool of the expected call or of one of its alternatives.
    pub(super) fn matches_any_tool(&self, call: &ToolCallRecord) -> bool {
        self.iter_alternatives().any(|it| it.matches_tool(call))
    }

    fn iter_alternatives(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.alternatives)
    }

    fn matches_tool(&self, call: &ToolCallRecord) -> bool {
        self.call.tool == call.tool
            && (self.call.server.is_none() || self.call.server == call.server)
    }

    /// Compares a call with the expected call and its alternatives, and returns the best result.
    /// Returns `No` if the call uses another tool.
    pub(super) fn match_call(&self, call: &ToolCallRecord, is_redacted: bool) -> MatchResult {
        let candidates = self.iter_alternatives().filter(|it| it.matches_tool(call));
        let results = candidates.map(|it| it.compare_arguments(call, is_redacted).0);
        results.max().unwrap_or(MatchResult::No)
    }

    /// Describes the first wrong argument of a call. If no argument is certainly wrong, describes
    /// the first redacted argument that may be wrong. Returns `None` if all arguments match.
    pub(super) fn describe_difference(
        &self,
        call: &ToolCallRecord,
        is_redacted: bool,
    ) -> Option<String> {
        let mut candidates = self.iter_alternatives();
        let matcher = candidates.find(|it| it.matches_tool(call)).unwrap_or(self);
        matcher.compare_arguments(call, is_redacted).1
    }

    /// Compares all arguments. Returns the worst result, and a description of the first argument
    /// with this result unless all arguments match.
    fn compare_arguments(
        &self,
        call: &ToolCallRecord,
        is_redacted: bool,
    ) -> (MatchResult, Option<String>) {
        let empty = Map::new();
        let null = call.input.is_null().then_some(&empty);
        let Some(input) = call.input.as_object().or(null) else {
            let reason = "the input is not an object".to_owned();
            return (MatchResult::No, Some(reason));
        };
        let mut worst = (MatchResult::Yes, None);
        for (name, matcher) in &self.arguments {
            let found = input.get(*name);
            let result = matcher.match_argument(found, is_redacted);
            if result < worst.0 {
                let expected = readable_argument(&self.call.input[*name]);
                let reason = match found {
                    Some(found) => format!("`{name}` is {found}, expected {expected}"),
                    None => format!("`{name}` is missing, expected {expected}"),
                };
                worst = (result, Some(reason));
            }
        }
        let mut additional = input.iter().filter(|(name, value)| {
            (self.counts_null || !value.is_null()) && !self.call.input.contains_key(*name)
        });
        if self.call.exactly
            && worst.0 > MatchResult::No
            && let Some((name, _)) = additional.next()
        {
            worst = (MatchResult::No, Some(format!("`{name}` is not expected")));
        }
        worst
    }
}

/// Describes an expected call as text, with its arguments and alternatives.
pub(crate) fn describe_expected_call(call: &ExpectedCall) -> String {
    let arguments = call.input.iter();
    let input: Map<String, Value> = arguments
        .map(|(name, expected)| (name.clone(), readable_argument(expected)))
        .collect();
    let mut text = format!("{} {}", call.expected_tool_name(), Value::Object(input));
    for alternative in &call.or {
        text.push_str(", or ");
        text.push_str(&describe_expected_call(alternative));
    }
    text
}

/// Returns a readable form of an expected argument, for messages. A `$bfcl` matcher with one
/// accepted value becomes this value, and one with several accepted values becomes `$one_of` with
/// these values. Every other argument is returned unchanged.
fn readable_argument(expected: &Value) -> Value {
    match expected.pointer("/$bfcl/allowed") {
        Some(Value::Array(allowed)) => match allowed.as_slice() {
            [one] => one.clone(),
            several => serde_json::json!({ "$one_of": several }),
        },
        _ => expected.clone(),
    }
}
