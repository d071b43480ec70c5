//! Asks the person at the terminal whether tool calls may run.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{
    Screen,
    prompt::{LineReader, UnansweredReason},
    tool_card::ToolCard,
};
use async_trait::async_trait;
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, Approver, JsonObject, ToolHost,
};
use switchboard_orchestration::tools::arguments::{ContextInjection, InputValidators};

/// Maximum time that an approval question waits until earlier output of the run is printed.
const DISPLAY_TIMEOUT: Duration = Duration::from_secs(1);

/// An approval decision that the user made before the question, for example with `--allow`.
#[derive(Debug, Clone)]
pub(crate) struct PresetApprovalDecision {
    /// Fingerprint of the tool definition at the time of the decision. If the definition changes
    /// later, an approval does not count, and the user must decide again.
    pub(crate) fingerprint: Option<String>,
    pub(crate) decision: ApprovalDecision,
}

/// Approver that asks on standard error and reads from standard input. Both must be terminals.
pub(crate) struct TerminalApprover {
    /// Output on standard error, whose spinner is hidden while a question is shown.
    pub(crate) screen: Screen,
    pub(crate) lines: Arc<dyn LineReader>,
    /// Tool host whose input schemas validate a tool input that the user has edited.
    pub(crate) tools: Arc<dyn ToolHost>,
    pub(crate) hidden: ContextInjection,
    /// `true` if the run is stored instead of asking the user (`--approve later`).
    pub(crate) later: bool,
    /// Decisions that the user made before the question, by tool use id. Each is used once.
    pub(crate) preset: Mutex<HashMap<String, PresetApprovalDecision>>,
}

/// Reply of the user to an approval request.
#[derive(Debug, PartialEq, Eq)]
enum ApprovalReply {
    Yes(ApprovalScope),
    Edit,
    No(Option<String>),
    Unclear,
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        let preset = {
            let mut preset = self.preset.lock().unwrap_or_else(PoisonError::into_inner);
            preset.remove(&request.tool_use.id)
        };
        if let Some(preset) = preset {
            let is_allowed = matches!(preset.decision, ApprovalDecision::Allow { .. });
            if !is_allowed || preset.fingerprint == request.fingerprint {
                return preset.decision;
            }
            // The tool has changed after the user allowed the call, so the user must decide again.
            // Without a terminal, the decision is postponed.
            if !self.lines.is_interactive() {
                return ApprovalDecision::Later;
            }
        }
        if self.later {
            return ApprovalDecision::Later;
        }
        if !self.lines.is_interactive() {
            return ApprovalDecision::NobodyThere;
        }
        // Waits until earlier events of the run are printed. Events of a stored run are printed
        // only after they are saved.
        let shown = self.screen.wait_until_question_shown(&request.tool_use.id);
        let _ = tokio::time::timeout(DISPLAY_TIMEOUT, shown).await;
        let _turn = self.screen.wait_for_question_turn().await;
        self.screen.remove_spinner();
        super::print_line(self.format_approval_request(request));
        if request.redefined {
            super::print_warning(
                "the definition of this tool has changed since it was last approved; `switchboard \
                 tools list` shows it",
            );
        }
        loop {
            match self.ask_for_reply().await {
                Ok(ApprovalReply::Yes(scope)) => {
                    return ApprovalDecision::Allow { input: None, scope };
                }
                Ok(ApprovalReply::No(reason)) => {
                    let scope = ApprovalScope::Once;
                    return ApprovalDecision::Deny { reason, scope };
                }
                Ok(ApprovalReply::Edit) if self.lines.can_edit_text() => {
                    let input = self.edit_tool_input(request).await;
                    if input.is_some() {
                        let scope = ApprovalScope::Once;
                        return ApprovalDecision::Allow { input, scope };
                    }
                }
                Ok(ApprovalReply::Unclear | ApprovalReply::Edit) => {}
                // Ctrl-C also cancels the run, which drops this future, so no decision is returned.
                Err(UnansweredReason::Interrupted) => std::future::pending().await,
                Err(UnansweredReason::Ended) => return ApprovalDecision::NobodyThere,
            }
        }
    }
}

impl TerminalApprover {
    fn format_approval_request(&self, request: &ApprovalRequest) -> String {
        let known = self.screen.format_tool_call_question(&request.tool_use.id);
        known.unwrap_or_else(|| {
            let (server, tool) = match &request.origin {
                Some(origin) => (Some(origin.server.as_str()), &origin.tool),
                None => (None, &request.tool_use.name),
            };
            ToolCard::new(server, tool, &request.displayed_input()).format_approval_question()
        })
    }

    /// Asks the user whether the tool call may run, and returns the parsed reply.
    async fn ask_for_reply(&self) -> Result<ApprovalReply, UnansweredReason> {
        let question = if self.lines.can_edit_text() {
            "  Run it? [y]es, [s]ession, [a]lways, [e]dit, [n]o (or no: REASON)"
        } else {
            "  Run it? [y]es, [s]ession, [a]lways, [n]o (or no: REASON)"
        };
        let line = self.lines.prompt_for_line(question.to_owned()).await?;
        Ok(parse_reply(&line))
    }

    /// Lets the user edit the tool input until it is valid. Returns `None` if the user cancels.
    async fn edit_tool_input(&self, request: &ApprovalRequest) -> Option<JsonObject> {
        let input = request.displayed_input();
        let mut text = serde_json::to_string_pretty(&input).unwrap_or_default();
        loop {
            text = self.lines.edit_text("  input".to_owned(), text).await?;
            match serde_json::from_str(&text) {
                Ok(input) if self.is_valid_tool_input(request, &input).await => return Some(input),
                Ok(_) => {}
                Err(error) => super::print_warning(&format!("not a JSON object: {error}")),
            }
        }
    }

    /// Returns whether an input that the user has edited is valid by the schema of the tool. If
    /// not, prints the errors. Returns `true` if the tool is not known.
    async fn is_valid_tool_input(&self, request: &ApprovalRequest, input: &JsonObject) -> bool {
        let catalog = self.tools.list_tools().await;
        let mut tools = catalog.tools.iter();
        let Some(tool) = tools.find(|tool| tool.name == request.tool_use.name) else {
            return true;
        };
        let tool = self.hidden.hide_arguments(tool);
        let checked = InputValidators::default().validate_input(&tool, &input.clone().into());
        if let Err(faults) = &checked {
            super::print_warning(&format!("the input does not match the schema: {faults}"));
        }
        checked.is_ok()
    }
}

fn parse_reply(line: &str) -> ApprovalReply {
    let line = line.trim();
    let (word, rest) = match line.split_once(|c: char| c == ':' || c.is_whitespace()) {
        Some((word, rest)) => (word, rest.trim_start_matches([':', ' ']).trim()),
        None => (line, ""),
    };
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => ApprovalReply::Yes(ApprovalScope::Once),
        "s" | "session" if rest.is_empty() => ApprovalReply::Yes(ApprovalScope::Session),
        "a" | "always" if rest.is_empty() => ApprovalReply::Yes(ApprovalScope::Always),
        "e" | "edit" if rest.is_empty() => ApprovalReply::Edit,
        "n" | "no" => ApprovalReply::No((!rest.is_empty()).then(|| rest.to_owned())),
        _ => ApprovalReply::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_understood_and_silence_is_no_yes() {
        for (line, reply) in [
            ("y\n", ApprovalReply::Yes(ApprovalScope::Once)),
            (" YES ", ApprovalReply::Yes(ApprovalScope::Once)),
            ("s", ApprovalReply::Yes(ApprovalScope::Session)),
            ("a", ApprovalReply::Yes(ApprovalScope::Always)),
            (r#"{"n": 1}"#, ApprovalReply::Unclear),
            ("e", ApprovalReply::Edit),
            ("edit this", ApprovalReply::Unclear),
            ("n", ApprovalReply::No(None)),
            (
                "no: wrong customer\n",
                ApprovalReply::No(Some("wrong customer".into())),
            ),
            ("n not now", ApprovalReply::No(Some("not now".into()))),
            ("", ApprovalReply::Unclear),
            ("yes but", ApprovalReply::Unclear),
            ("maybe", ApprovalReply::Unclear),
        ] {
            assert_eq!(parse_reply(line), reply, "{line:?}");
        }
    }
}
