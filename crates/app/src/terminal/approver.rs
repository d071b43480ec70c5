//! Asks the person at the terminal.

use std::collections::HashSet;

use async_trait::async_trait;
use serde_json::Value;
use switchboard_domain::{ApprovalDecision, ApprovalRequest, ApprovalScope, Approver, ToolInput};
use tokio::sync::Mutex;

use super::{
    Screen,
    card::Card,
    prompt::{ask, is_somebody_there},
};

/// Asks on standard error and reads the answer from standard input. Where either is no terminal,
/// nobody is there.
#[derive(Debug)]
pub struct TerminalApprover {
    screen: Screen,
    /// Tools that were allowed for the whole run.
    allowed: Mutex<HashSet<String>>,
}

/// What a person typed.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Yes,
    Always,
    No(Option<String>),
    Unclear,
}

impl TerminalApprover {
    /// An approver that holds `screen` still while it asks.
    pub fn new(screen: Screen) -> Self {
        Self {
            screen,
            allowed: Mutex::default(),
        }
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        if !is_somebody_there() {
            return ApprovalDecision::NobodyThere;
        }
        // What the run told until now is shown first: its stream is read in the same task.
        tokio::task::yield_now().await;
        let _turn = self.screen.turn().await;
        let mut allowed = self.allowed.lock().await;
        let name = &request.tool_use.name;
        let allow = |scope| ApprovalDecision::Allow { input: None, scope };
        if allowed.contains(name) {
            return allow(ApprovalScope::Session);
        }
        self.screen.hold_still();
        super::say(self.card(request));
        loop {
            match reply().await {
                Some(Reply::Yes) => return allow(ApprovalScope::Once),
                Some(Reply::Always) => {
                    allowed.insert(name.clone());
                    return allow(ApprovalScope::Session);
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
                let input = match &request.tool_use.input {
                    ToolInput::Object(input) => Value::Object(input.clone()),
                    ToolInput::Malformed { raw, .. } => Value::String(raw.clone()),
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
    let question = "  run it? [y]es, [a]lways in this run, [n]o or no: REASON";
    let line = ask(question.to_owned()).await?;
    Some(understand(&line))
}

fn understand(line: &str) -> Reply {
    let line = line.trim();
    let (word, rest) = match line.split_once(|c: char| c == ':' || c.is_whitespace()) {
        Some((word, rest)) => (word, rest.trim_start_matches([':', ' ']).trim()),
        None => (line, ""),
    };
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => Reply::Yes,
        "a" | "always" if rest.is_empty() => Reply::Always,
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
            ("y\n", Reply::Yes),
            (" YES ", Reply::Yes),
            ("a", Reply::Always),
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
