//! The system prompt of the gather phase.

use std::{fmt::Write as _, sync::Arc};

use switchboard_domain::ToolDefinition;

use super::GatherFormat;

/// Maximum number of characters of a tool's description in the prompt. The tool definition has the
/// complete description.
const MAX_DESCRIPTION: usize = 300;

/// The text of a model that needs no data.
pub(super) const NOTHING_TO_GATHER: &str = "Nothing to gather.";

const RULES: &str = "\
# This phase: gather

You now ONLY gather what is needed to answer the user. The answer itself is written in a later phase, \
by you, from what you gathered.

1. Decide which data is missing, and get it with the tools.
2. Do NOT answer the user in this phase.
3. Where the user names tools, use exactly those tools.
4. Beside a call, say in one sentence what you look for. Take arguments from the conversation or from \
results; never make one up. If you lack an id, look it up first.
5. After a tool call you STOP by default: once its result is there, the answer is written.
6. To go on gathering after this answer's calls, write a line that begins with `NEED MORE DATA:` and \
says why, for example `NEED MORE DATA: the account value needs the id of the customer found first`. \
Do so only for what is essential: a further call needs the result of this one, a tool gave nothing or \
failed and there is another way, or the user named tools that you have not called yet.
7. Calls that do not depend on each other belong into one answer.
8. Never repeat a call with the same input: you only get the same result again.
9. If nothing has to be gathered, call nothing and write only `Nothing to gather.`
";

/// Returns the system prompt of the gather phase: `instructions` of the recipe or the user, the
/// rules of the phase, and descriptions of up to [`GatherFormat::described_tools`] tools. The text
/// changes only with the tools, so that prompt caches apply.
pub fn system_prompt(
    settings: &GatherFormat,
    instructions: Option<&str>,
    tools: &[Arc<ToolDefinition>],
) -> String {
    let mut prompt = String::new();
    if let Some(instructions) = instructions.map(str::trim).filter(|it| !it.is_empty()) {
        prompt.push_str(instructions);
        prompt.push_str("\n\n");
    }
    prompt.push_str(RULES);
    if tools.is_empty() {
        prompt.push_str("\nThere are no tools.\n");
        return prompt;
    }
    prompt.push_str("\n# Tools\n\n");
    for tool in tools.iter().take(settings.described_tools) {
        let description = shortened(&tool.description);
        // Writing to a string cannot fail.
        let _ = match description.as_str() {
            "" => writeln!(prompt, "- `{}`", tool.name),
            description => writeln!(prompt, "- `{}`: {description}", tool.name),
        };
    }
    let more = tools.len().saturating_sub(settings.described_tools);
    if more > 0 {
        let _ = writeln!(prompt, "- and {more} more in the tools list");
    }
    prompt
}

/// Returns a description on one line, truncated at a word.
fn shortened(description: &str) -> String {
    let mut text = String::new();
    let mut length = 0;
    for word in description.split_whitespace() {
        length += word.chars().count() + 1;
        if length > MAX_DESCRIPTION + 1 {
            // A single word may exceed the limit.
            if text.is_empty() {
                text.extend(word.chars().take(MAX_DESCRIPTION));
            }
            text.push('…');
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tools(count: usize) -> Vec<Arc<ToolDefinition>> {
        (1..=count)
            .map(|n| {
                let name = format!("tool_{n}");
                let description = format!("Does\n thing   {n}.");
                Arc::new(ToolDefinition::new(name, description, json!({})))
            })
            .collect()
    }

    #[test]
    fn the_prompt_has_every_rule_of_the_phase() {
        let prompt = system_prompt(&GatherFormat::default(), Some("Be kind.\n"), &tools(2));
        insta::assert_snapshot!(prompt);
    }

    #[test]
    fn a_long_description_is_cut_at_a_word() {
        let long = "word ".repeat(100);
        let short = shortened(&long);
        assert!(short.ends_with("word…") && short.chars().count() <= MAX_DESCRIPTION + 1);
        assert_eq!(
            shortened(&"é".repeat(400)).chars().count(),
            MAX_DESCRIPTION + 1
        );
        assert_eq!(shortened(" \n "), "");
    }
}
