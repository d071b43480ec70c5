//! Prompts and messages for the model in the formatting phase.

use serde_json::Value;
use switchboard_domain::Message;

use super::{FormatterMode, TOOL};
use crate::strategy::prompt::prepend_instructions;

const RULES: &str = "\
# This phase: answer

The conversation contains all gathered data. Now write the answer to the user.

1. Use the results of the tools. Do not invent anything. If a call failed or data is missing, \
state it in the answer.
2. Answer directly, in the language of the user. Do not mention these rules, phases or tools \
unless the user asked about them.
";

const ANSWER_ITEM_RULES: &str = "\
3. The answer is `conversation`, a list of items in reading order, never a string:
   - text: {\"type\": \"text\", \"content\": \"Markdown\"}
   - artifact: {\"type\": \"artifact\", \"artifactType\": \"…\", \"title\": \"…\", \
\"language\": \"…\", \"content\": \"…\"}
4. Use artifacts for code (`code`, with its `language`), tables (`table`), diagrams (`mermaid`), \
charts (`chart`), documents (`text/markdown`), `html`, `svg` and `json`. Everything else is text. \
A short answer is one text item.
5. `thinking` is optional and is not shown as part of the answer.
";

const CUSTOM_SCHEMA_RULES: &str = "\
3. The answer is data for a JSON Schema. Fill it in from the gathered data. Omit unknown values \
where the schema allows it.
";

/// Returns the system prompt of the formatting phase.
pub(super) fn system_prompt(
    mode: FormatterMode,
    instructions: Option<&str>,
    schema: Option<&Value>,
) -> String {
    let mut prompt = prepend_instructions(instructions, RULES);
    prompt.push_str(schema.map_or(ANSWER_ITEM_RULES, |_| CUSTOM_SCHEMA_RULES));
    let request = match mode {
        FormatterMode::Native => {
            "\nWrite only the JSON object, without text before or after it and \
             without a code fence.\n"
                .to_owned()
        }
        _ => format!(
            "\nYou MUST call the tool `{TOOL}` once, with the whole answer. Use only `{TOOL}`, and \
             write no text outside of it.\n"
        ),
    };
    prompt + &request
}

/// Returns the user message that asks the model for the answer. It is the last message of a request
/// in the formatting phase.
pub(super) fn build_answer_request(mode: FormatterMode) -> Message {
    if mode == FormatterMode::Native {
        Message::user("Write the answer to my question now, as the JSON object that was described.")
    } else {
        Message::user(format!(
            "Write the answer to my question now. Use only {TOOL}."
        ))
    }
}

/// Returns the text for the model about its malformed response. `error` describes the fault.
pub(super) fn format_malformed_answer_text(mode: FormatterMode, error: &str) -> String {
    if mode == FormatterMode::Native {
        format!(
            "Your answer could not be read: {error}. Write it again, as one JSON object in the \
             form that was described and nothing else."
        )
    } else {
        format!(
            "Your answer could not be read: {error}. Give the whole answer again, with one call of \
             `{TOOL}`."
        )
    }
}
