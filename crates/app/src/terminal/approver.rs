//! Asks the person at the terminal for approval decisions.

use std::{sync::Arc, time::Duration};

use super::{
    Screen,
    card::Card,
    prompt::{LineReader, NoAnswer},
};
use async_trait::async_trait;
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, Approver, JsonObject, ToolHost,
};
use switchboard_orchestration::tools::arguments::{ContextInjection, Validators};

/// Maximum time to wait for earlier output of the run before a question is shown.
const DISPLAY_TIMEOUT: Duration = Duration::from_secs(1);

/// Approver that asks on standard error and reads from standard input. Both must be terminals.
pub(crate) struct TerminalApprover {
    screen: Screen,
    lines: Arc<dyn LineReader>,
    /// Tool definitions that validate edited input.
    tools: Arc<dyn ToolHost>,
    hidden: ContextInjection,
    /// `true` to leave approval requests open, so that the run is stored.
    later: bool,
}

/// Reply of the user to an approval request.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Yes(ApprovalScope),
    Edit(JsonObject),
    /// Opens the input in the editor.
    OpenEditor,
    No(Option<String>),
    Unclear,
}

impl TerminalApprover {
    /// Creates an approver that pauses `screen` during a question and validates edited input
    /// against the schema of the tool. `later` leaves every request open.
    pub(crate) fn new(
        screen: Screen,
        lines: Arc<dyn LineReader>,
        tools: Arc<dyn ToolHost>,
        hidden: ContextInjection,
        later: bool,
    ) -> Self {
        Self {
            screen,
            lines,
            tools,
            hidden,
            later,
        }
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        if self.later {
            return ApprovalDecision::Later;
        }
        if !self.lines.is_interactive() {
            return ApprovalDecision::NobodyThere;
        }
        // Waits until earlier events are printed. A stored run prints an event only after it is
        // saved.
        let shown = self.screen.question_shown(&request.tool_use.id);
        let _ = tokio::time::timeout(DISPLAY_TIMEOUT, shown).await;
        let _turn = self.screen.turn().await;
        self.screen.pause();
        super::print_line(self.card(request));
        if request.redefined {
            super::print_warning(
                "the definition of this tool has changed since it was last approved; `switchboard \
                 tools list` shows it",
            );
        }
        loop {
            let input = match self.reply().await {
                Ok(Reply::Yes(scope)) => {
                    return ApprovalDecision::Allow { input: None, scope };
                }
                Ok(Reply::No(reason)) => {
                    let scope = ApprovalScope::Once;
                    return ApprovalDecision::Deny { reason, scope };
                }
                Ok(Reply::Edit(input)) => Some(input),
                Ok(Reply::OpenEditor) if self.lines.can_edit() => self.edited(request).await,
                Ok(Reply::Unclear | Reply::OpenEditor) => None,
                // Ctrl-C also cancels the run, which drops this future.
                Err(NoAnswer::Interrupted) => std::future::pending().await,
                Err(NoAnswer::Ended) => return ApprovalDecision::NobodyThere,
            };
            if let Some(input) = input
                && self.is_valid(request, &input).await
            {
                return ApprovalDecision::Allow {
                    input: Some(input),
                    scope: ApprovalScope::Once,
                };
            }
        }
    }
}

impl TerminalApprover {
    fn card(&self, request: &ApprovalRequest) -> String {
        let known = self.screen.question(&request.tool_use.id);
        known.unwrap_or_else(|| {
            let (server, tool) = match &request.origin {
                Some(origin) => (Some(origin.server.as_str()), &origin.tool),
                None => (None, &request.tool_use.name),
            };
            Card::new(server, tool, &request.input_shown()).asked()
        })
    }

    /// Asks one question and returns the reply.
    async fn reply(&self) -> Result<Reply, NoAnswer> {
        let question = if self.lines.can_edit() {
            "  Run it? [y]es, [s]ession, [a]lways, [e]dit, [n]o (or no: REASON)"
        } else {
            "  Run it? [y]es, [s]ession, [a]lways, [n]o (or no: REASON), or the input to use as {…}"
        };
        let line = self.lines.ask(question.to_owned()).await?;
        Ok(understand(&line))
    }

    /// Lets the user edit the tool input until it is valid. Returns `None` if the user cancels.
    async fn edited(&self, request: &ApprovalRequest) -> Option<JsonObject> {
        let input = request.input_shown();
        let mut text = serde_json::to_string_pretty(&input).unwrap_or_default();
        loop {
            text = self.lines.edit("  input".to_owned(), text).await?;
            match serde_json::from_str(&text) {
                Ok(input) if self.is_valid(request, &input).await => return Some(input),
                Ok(_) => {}
                Err(error) => super::print_warning(&format!("not a JSON object: {error}")),
            }
        }
    }

    /// Validates an input against the schema of the tool and prints the error.
    async fn is_valid(&self, request: &ApprovalRequest, input: &JsonObject) -> bool {
        let catalog = self.tools.tools().await;
        let mut tools = catalog.tools.iter();
        let Some(tool) = tools.find(|tool| tool.name == request.tool_use.name) else {
            return true;
        };
        let tool = self.hidden.visible(tool);
        let checked = Validators::default().check(&tool, &input.clone().into());
        if let Err(faults) = &checked {
            super::print_warning(&format!("the input does not match the schema: {faults}"));
        }
        checked.is_ok()
    }
}

fn understand(line: &str) -> Reply {
    let line = line.trim();
    if line.starts_with('{') {
        return match serde_json::from_str(line) {
            Ok(input) => Reply::Edit(input),
            Err(error) => {
                super::print_warning(&format!("not a JSON object: {error}"));
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
        "e" | "edit" if rest.is_empty() => Reply::OpenEditor,
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
            ("e", Reply::OpenEditor),
            ("edit this", Reply::Unclear),
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
