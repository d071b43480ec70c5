//! Formats tool calls for display at the terminal.

use std::{fmt::Write as _, time::Duration};

use serde_json::Value;
use switchboard_domain::ToolContent;

use super::{BAD, DOUBTFUL, FAINT, GOOD, STRONG, strip_control_characters, to_one_line};

/// Maximum length in characters of a tool input in one line. Longer inputs are cut.
const INPUT_WIDTH: usize = 120;
/// Maximum length in characters of a tool result in one line. Longer results are cut.
const RESULT_WIDTH: usize = 120;

/// Texts of one tool call for display at the terminal.
#[derive(Debug, Clone)]
pub(super) struct ToolCard {
    tool: String,
    input: String,
    /// Complete input of the call, which is shown when the user must approve the call.
    whole_input: String,
}

/// Way in which a tool call ended, shown by a mark before the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolCallEnding {
    Done(Duration),
    Failed(Duration),
    NotRun,
}

impl ToolCard {
    pub(super) fn new(server: Option<&str>, tool: &str, input: &Value) -> Self {
        let tool = to_one_line(tool, 80);
        Self {
            tool: match server {
                Some(server) => format!("{} · {tool}", to_one_line(server, 40)),
                None => tool,
            },
            input: to_one_line(&input.to_string(), INPUT_WIDTH),
            whole_input: format_whole_input(input),
        }
    }

    /// Formats a running call without colours, because the spinner line has no colours.
    pub(super) fn format_running_call(&self, progress: Option<&str>) -> String {
        let mut line = format!("{} {}", self.tool, self.input);
        if let Some(progress) = progress {
            let _ = write!(line, " – {}", to_one_line(progress, 60));
        }
        line
    }

    pub(super) fn format_approval_question(&self) -> String {
        format!(
            "{DOUBTFUL}?{DOUBTFUL:#} {STRONG}{}{STRONG:#} {}",
            self.tool, self.whole_input
        )
    }

    pub(super) fn format_ended_call(&self, end: ToolCallEnding, content: &[ToolContent]) -> String {
        let (style, mark, how) = match end {
            ToolCallEnding::Done(duration) => (GOOD, '✔', format_duration(duration)),
            ToolCallEnding::Failed(duration) => (
                BAD,
                '✘',
                format!("failed after {}", format_duration(duration)),
            ),
            ToolCallEnding::NotRun => (DOUBTFUL, '⊘', "not run".to_owned()),
        };
        let mut line = format!(
            "{style}{mark}{style:#} {STRONG}{}{STRONG:#} {} {FAINT}({how}){FAINT:#}",
            self.tool, self.input
        );
        let result = format_result(content);
        if !result.is_empty() {
            let _ = write!(line, "\n  {FAINT}{result}{FAINT:#}");
        }
        line
    }
}

/// Formats a tool call that the model provider ran itself, such as a web search.
pub(super) fn format_provider_tool_call(kind: &str, text: Option<&str>) -> String {
    let kind = to_one_line(kind, 80);
    let mut line = format!("{FAINT}◇{FAINT:#} {STRONG}{kind}{STRONG:#}");
    let text = to_one_line(text.unwrap_or_default(), RESULT_WIDTH);
    if !text.is_empty() {
        let _ = write!(line, "\n  {FAINT}{text}{FAINT:#}");
    }
    line
}

/// Formats the complete input of a tool call: on one line if it is short, otherwise indented.
fn format_whole_input(input: &Value) -> String {
    let short = input.to_string();
    let text = if short.chars().count() <= INPUT_WIDTH {
        short
    } else {
        serde_json::to_string_pretty(input).unwrap_or(short)
    };
    strip_control_characters(&text).into_owned()
}

pub(super) fn format_duration(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

fn format_result(content: &[ToolContent]) -> String {
    let mut line = String::new();
    for item in content {
        line.push(' ');
        line.push_str(&to_one_line(&item.as_text(), RESULT_WIDTH));
    }
    to_one_line(&line, RESULT_WIDTH)
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_card_says_who_what_how_long_and_what_came() {
        let card = ToolCard::new(Some("crm"), "find", &json!({"name": "Ada\u{1b}[2J"}));
        let done = card.format_ended_call(
            ToolCallEnding::Done(Duration::from_millis(12)),
            &[ToolContent::text("one\ntwo"), ToolContent::text("three")],
        );
        assert_eq!(
            strip_str(&done).to_string(),
            "✔ crm · find {\"name\":\"Ada\\u001b[2J\"} (12 ms)\n  one two three"
        );
        let failed =
            card.format_ended_call(ToolCallEnding::Failed(Duration::from_millis(1500)), &[]);
        assert!(
            strip_str(&failed)
                .to_string()
                .ends_with("(failed after 1.5 s)")
        );
        let long = json!({"text": "x".repeat(500), "end": "seen"});
        assert!(
            ToolCard::new(None, "t", &long)
                .format_approval_question()
                .contains("seen")
        );
        let denied =
            ToolCard::new(None, "rm", &json!({})).format_ended_call(ToolCallEnding::NotRun, &[]);
        assert_eq!(strip_str(&denied).to_string(), "⊘ rm {} (not run)");
    }

    #[test]
    fn what_the_provider_did_is_one_harmless_line_below_its_name() {
        let block = format_provider_tool_call("web_search\u{1b}[2J", Some("rust\nasync"));
        assert_eq!(
            strip_str(&block).to_string(),
            "◇ web_search[2J\n  rust async"
        );
        let bare = format_provider_tool_call("container", None);
        assert_eq!(strip_str(&bare).to_string(), "◇ container");
    }
}
