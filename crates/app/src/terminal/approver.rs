//! Asks the person at the terminal.

use super::{
    Screen,
    card::Card,
    prompt::{ask, is_somebody_there},
};
use async_trait::async_trait;
use serde_json::Value;
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, Approver, JsonObject, ToolInput,
};

/// Asks on standard error and reads the answer from standard input. Where either is no terminal,
/// nobody is there.
#[derive(Debug)]
pub struct TerminalApprover {
    screen: Screen,
    /// Nobody is asked now; the run is stored and somebody decides later.
    later: bool,
}

/// What a person typed.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Yes(ApprovalScope),
    Edit(JsonObject),
    No(Option<String>),
    Unclear,
}

impl TerminalApprover {
    /// An approver that holds `screen` still while it asks.
    pub fn new(screen: Screen) -> Self {
        Self {
            screen,
            later: false,
        }
    }

    /// Leaves every question open instead of asking it.
    #[must_use]
    pub fn who_decides_later(mut self) -> Self {
        self.later = true;
        self
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        if self.later {
            return ApprovalDecision::Later;
        }
        if !is_somebody_there() {
            return ApprovalDecision::NobodyThere;
        }
        // What the run told until now is shown first: its stream is read in the same task.
        tokio::task::yield_now().await;
        let _turn = self.screen.turn().await;
        self.screen.hold_still();
        super::say(self.card(request));
        if request.redefined {
            super::say_warning(
                "this tool is not what it was when it was last approved; `switchboard tools list` shows it",
            );
        }
        loop {
            match reply().await {
                Some(Reply::Yes(scope)) => {
                    return ApprovalDecision::Allow { input: None, scope };
                }
                Some(Reply::Edit(input)) => {
                    return ApprovalDecision::Allow {
                        input: Some(input),
                        scope: ApprovalScope::Once,
                    };
                }
                Some(Reply::No(reason)) => {
                    return ApprovalDecision::Deny {
                        reason,
                        scope: ApprovalScope::Once,
                    };
                }
                Some(Reply::Unclear) => {}
                None => return ApprovalDecision::NobodyThere,
            }
        }
    }
}

impl TerminalApprover {
    fn card(&self, request: &ApprovalRequest) -> String {
        self.screen
            .question(&request.tool_use.id)
            .unwrap_or_else(|| {
                let origin = request.origin.as_ref();
                let input = match (&request.input, &request.tool_use.input) {
                    (Some(input), _) | (None, ToolInput::Object(input)) => {
                        Value::Object(input.clone())
                    }
                    (None, ToolInput::Malformed { raw, .. }) => Value::String(raw.clone()),
                };
                Card::new(
                    origin.map(|origin| origin.server.as_str()),
                    origin.map_or(&request.tool_use.name, |origin| &origin.tool),
                    &input,
                )
                .asked()
            })
    }
}

/// One question and its reply; `None` if standard input ended.
async fn reply() -> Option<Reply> {
    let question = "  run it? [y]es, in this [s]ession, [a]lways, [n]o or no: REASON, or the input to use as {…}";
    let line = ask(question.to_owned()).await?;
    Some(understand(&line))
}

fn understand(line: &str) -> Reply {
    let line = line.trim();
    if line.starts_with('{') {
        return match serde_json::from_str(line) {
            Ok(input) => Reply::Edit(input),
            Err(error) => {
                super::say_warning(&format!("that is no JSON object: {error}"));
                Reply::Unclear
            }
        };
    }
    let (word, rest) = match line.split_once(|c: char| c == ':' || c.is_whitespace()) {
        Some((word, rest)) => (word, rest.trim_start_matches([':', ' ']).trim()),
        None => (line, ""),
    };
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => Reply::Yes(ApprovalScope::Once),
        "s" | "session" if rest.is_empty() => Reply::Yes(ApprovalScope::Session),
        "a" | "always" if rest.is_empty() => Reply::Yes(ApprovalScope::Always),
        "n" | "no" => Reply::No((!rest.is_empty()).then(|| rest.to_owned())),
        _ => Reply::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_understood_and_silence_is_no_yes() {
        for (line, reply) in [
            ("y\n", Reply::Yes(ApprovalScope::Once)),
            (" YES ", Reply::Yes(ApprovalScope::Once)),
            ("s", Reply::Yes(ApprovalScope::Session)),
            ("a", Reply::Yes(ApprovalScope::Always)),
            (
                r#"{"n": 1}"#,
                Reply::Edit(serde_json::from_str(r#"{"n": 1}"#).unwrap()),
            ),
            (r#"{"n": 1"#, Reply::Unclear),
            ("n", Reply::No(None)),
            (
                "no: wrong customer\n",
                Reply::No(Some("wrong customer".into())),
            ),
            ("n not now", Reply::No(Some("not now".into()))),
            ("", Reply::Unclear),
            ("yes but", Reply::Unclear),
            ("maybe", Reply::Unclear),
        ] {
            assert_eq!(understand(line), reply, "{line:?}");
        }
    }
}
