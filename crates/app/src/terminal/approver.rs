//! Asks the person at the terminal.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    Screen,
    card::Card,
    prompt::{AsksForLines, NoAnswer, PlainLines},
};
use async_trait::async_trait;
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, Approver, JsonObject, ToolHost,
};
use switchboard_orchestration::tools::arguments::{ContextInjection, Validators};

/// How long a question waits until what was told before it is on the screen.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks on standard error and reads the answer from standard input. Where either is no terminal,
/// nobody is there.
pub struct TerminalApprover {
    screen: Screen,
    lines: Arc<dyn AsksForLines>,
    /// Says what an input that was changed must fit.
    tools: Option<(Arc<dyn ToolHost>, ContextInjection)>,
    /// Nobody is asked now; the run is stored and somebody decides later.
    later: bool,
}

/// What a person typed.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Yes(ApprovalScope),
    Edit(JsonObject),
    /// The input is to be changed in the editor.
    OpenEditor,
    No(Option<String>),
    Unclear,
}

impl TerminalApprover {
    /// An approver that holds `screen` still while it asks.
    pub fn new(screen: Screen) -> Self {
        Self {
            screen,
            lines: Arc::new(PlainLines),
            tools: None,
            later: false,
        }
    }

    /// Reads the answers in another way.
    #[must_use]
    pub fn reading(mut self, lines: Arc<dyn AsksForLines>) -> Self {
        self.lines = lines;
        self
    }

    /// Takes no changed input that does not fit its tool, as the model and the person see it.
    #[must_use]
    pub fn checking(mut self, tools: Arc<dyn ToolHost>, hidden: ContextInjection) -> Self {
        self.tools = Some((tools, hidden));
        self
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
        if !self.lines.is_somebody_there() {
            return ApprovalDecision::NobodyThere;
        }
        // What the run told until now is shown first. Where it is kept, that is on its way through the store.
        let told = self.screen.told_of_question(&request.tool_use.id);
        let _ = tokio::time::timeout(PATIENCE, told).await;
        let _turn = self.screen.turn().await;
        self.screen.hold_still();
        super::say(self.card(request));
        if request.redefined {
            super::say_warning(
                "this tool is not what it was when it was last approved; `switchboard tools list` shows it",
            );
        }
        loop {
            let reply = match self.reply().await {
                Ok(Reply::OpenEditor) if self.lines.can_edit() => {
                    match self.edited(request).await {
                        Some(input) => Ok(Reply::Edit(input)),
                        None => continue,
                    }
                }
                reply => reply,
            };
            match reply {
                Ok(Reply::Yes(scope)) => {
                    return ApprovalDecision::Allow { input: None, scope };
                }
                Ok(Reply::Edit(input)) => match self.check(request, &input).await {
                    Ok(()) => {
                        return ApprovalDecision::Allow {
                            input: Some(input),
                            scope: ApprovalScope::Once,
                        };
                    }
                    Err(faults) => super::say_warning(&format!("that does not fit: {faults}")),
                },
                Ok(Reply::No(reason)) => {
                    return ApprovalDecision::Deny {
                        reason,
                        scope: ApprovalScope::Once,
                    };
                }
                Ok(Reply::Unclear | Reply::OpenEditor) => {}
                // The run is being cancelled, which drops this question.
                Err(NoAnswer::Interrupted) => std::future::pending().await,
                Err(NoAnswer::Ended) => return ApprovalDecision::NobodyThere,
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
                Card::new(
                    origin.map(|origin| origin.server.as_str()),
                    origin.map_or(&request.tool_use.name, |origin| &origin.tool),
                    &request.input_shown(),
                )
                .asked()
            })
    }

    /// Asks one question and returns the reply.
    async fn reply(&self) -> Result<Reply, NoAnswer> {
        let question = if self.lines.can_edit() {
            "  run it? [y]es, in this [s]ession, [a]lways, [e]dit, [n]o or no: REASON"
        } else {
            "  run it? [y]es, in this [s]ession, [a]lways, [n]o or no: REASON, or the input to use as {…}"
        };
        let line = self.lines.ask(question.to_owned()).await?;
        Ok(understand(&line))
    }

    /// The input as somebody changed it, once it is one that the tool takes; `None` if they would rather not.
    async fn edited(&self, request: &ApprovalRequest) -> Option<JsonObject> {
        let input = request.input_shown();
        let mut text = serde_json::to_string_pretty(&input).unwrap_or_default();
        loop {
            text = self.lines.edit("  input".to_owned(), text).await?;
            match serde_json::from_str(&text) {
                Ok(input) => match self.check(request, &input).await {
                    Ok(()) => return Some(input),
                    Err(faults) => super::say_warning(&format!("that does not fit: {faults}")),
                },
                Err(error) => super::say_warning(&format!("that is no JSON object: {error}")),
            }
        }
    }

    /// What is wrong with an input for the tool that is asked about.
    async fn check(&self, request: &ApprovalRequest, input: &JsonObject) -> Result<(), String> {
        let Some((tools, hidden)) = &self.tools else {
            return Ok(());
        };
        let catalog = tools.tools().await;
        let mut tools = catalog.tools.iter();
        match tools.find(|tool| tool.name == request.tool_use.name) {
            Some(tool) => {
                let tool = hidden.visible(tool);
                Validators::default().check(&tool, &input.clone().into())
            }
            None => Ok(()),
        }
    }
}

impl fmt::Debug for TerminalApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalApprover")
            .field("later", &self.later)
            .finish_non_exhaustive()
    }
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
