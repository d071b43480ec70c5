//! Prompts of the formatting phase.

use std::fmt::Write as _;

use serde_json::Value;
use switchboard_domain::Message;

use super::{FormatterMode, TOOL};

const RULES: &str = "\
# This phase: answer

Everything that could be gathered is in the conversation. Now write the answer to the user.

1. Use what the tools gave. Invent nothing; if something failed or is missing, say so in the answer.
2. Answer in the language of the user, and directly: no words about these rules, phases or tools unless \
the user asked about them.
";

const FORM: &str = "\
3. The answer is `conversation`, a list of items in reading order, never a string:
   - text: {\"type\": \"text\", \"content\": \"Markdown\"}
   - artifact: {\"type\": \"artifact\", \"artifactType\": \"…\", \"title\": \"…\", \"language\": \"…\", \
\"content\": \"…\"}
4. What stands on its own is an artifact: code (`code`, with its `language`), tables (`table`), diagrams \
(`mermaid`), charts (`chart`), documents (`text/markdown`), `html`, `svg`, `json`. Everything else is \
text. A short answer is one text item.
5. `thinking` is optional and is not shown as part of the answer.
";

const OWN_FORM: &str = "\
3. The answer is data in a form that is given as a JSON Schema. Fill it in from what was gathered; where \
the form allows it, leave out what is not known.
";

/// Returns the system prompt of the phase.
pub(super) fn system_prompt(
    mode: FormatterMode,
    instructions: Option<&str>,
    schema: Option<&Value>,
) -> String {
    let mut prompt = String::new();
    if let Some(instructions) = instructions.map(str::trim).filter(|it| !it.is_empty()) {
        prompt.push_str(instructions);
        prompt.push_str("\n\n");
    }
    prompt.push_str(RULES);
    prompt.push_str(if schema.is_some() { OWN_FORM } else { FORM });
    // Writing to a string cannot fail.
    let _ = if mode == FormatterMode::Native {
        writeln!(
            prompt,
            "\nWrite the JSON object alone: no words before or after it, no code fence."
        )
    } else {
        writeln!(
            prompt,
            "\nYou MUST use the tool `{TOOL}`, once, for the whole answer. Use only `{TOOL}`, and write \
             no words outside of it."
        )
    };
    prompt
}

/// Returns the last message of the request.
pub(super) fn ask(mode: FormatterMode) -> Message {
    if mode == FormatterMode::Native {
        Message::user("Write the answer to my question now, as the JSON object that was described.")
    } else {
        Message::user(format!(
            "Write the answer to my question now. Use only {TOOL}."
        ))
    }
}

/// Returns the message about a malformed response.
pub(super) fn fault(mode: FormatterMode, error: &str) -> String {
    if mode == FormatterMode::Native {
        format!(
            "Your answer could not be read: {error}. Write it again, as one JSON object in the form \
             that was described and nothing else."
        )
    } else {
        format!(
            "Your answer could not be read: {error}. Give the whole answer again, with one call of \
             `{TOOL}`."
        )
    }
}
