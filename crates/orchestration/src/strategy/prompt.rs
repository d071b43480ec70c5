//! The system prompt of the gathering phase, in which the model collects data with tools.

use std::{fmt::Write as _, sync::Arc};

use switchboard_domain::ToolDefinition;

use super::GatherFormat;
use crate::tools::shorten_text;

/// Maximum number of characters of a tool's description in the prompt. The tool definition has the
/// complete description.
const MAX_DESCRIPTION: usize = 300;

/// Text that a model writes in the gathering phase if it needs no data from tools.
pub(super) const NOTHING_TO_GATHER: &str = "Nothing to gather.";

const RULES: &str = "\
# This phase: gather

In this phase you ONLY gather the data for the answer. You write the answer in a later phase.

1. Decide which data is missing, and get it with the tools.
2. Do NOT answer the user in this phase.
3. If the user names tools, use exactly these tools.
4. With each call, write one sentence about its purpose. Take arguments from the conversation or \
from results, and never invent them. Look up missing ids first.
5. By default this phase ENDS after a tool call, and the answer is written from its result.
6. To continue after the calls of this response, write a line that starts with `NEED MORE DATA:` \
and the reason, for example `NEED MORE DATA: the account value needs the id of the customer`. Do \
this only if a later call needs the result of this one, if a tool failed or returned nothing and \
another way exists, or if the user named tools that you have not called yet.
7. Make independent calls in one response.
8. Never repeat a call with equal input. It returns the earlier result.
9. If no data is missing, call no tool and write only `Nothing to gather.`
";

/// Returns the system prompt of the gathering phase, in which the model calls tools and does not
/// answer yet.
///
/// It contains `instructions` of the recipe or the user, the rules of the phase, and descriptions
/// of up to [`GatherFormat::described_tools`] tools. For equal settings and instructions, it
/// changes only if the tools change, so that prompt caches apply.
pub fn system_prompt(
    settings: &GatherFormat,
    instructions: Option<&str>,
    tools: &[Arc<ToolDefinition>],
) -> String {
    let mut prompt = prepend_instructions(instructions, RULES);
    if tools.is_empty() {
        prompt.push_str("\nThere are no tools.\n");
        return prompt;
    }
    prompt.push_str("\n# Tools\n\n");
    for tool in tools.iter().take(settings.described_tools) {
        let description = shorten_text(&tool.description, MAX_DESCRIPTION);
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

/// Returns the instructions of the recipe or the user, followed by the rules of a phase.
pub(super) fn prepend_instructions(instructions: Option<&str>, rules: &str) -> String {
    match instructions.map(str::trim).filter(|it| !it.is_empty()) {
        Some(instructions) => format!("{instructions}\n\n{rules}"),
        None => rules.to_owned(),
    }
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
        let short = shorten_text(&long, MAX_DESCRIPTION);
        assert!(short.ends_with("word…") && short.chars().count() <= MAX_DESCRIPTION + 1);
        assert_eq!(
            shorten_text(&"é".repeat(400), MAX_DESCRIPTION)
                .chars()
                .count(),
            MAX_DESCRIPTION + 1
        );
        assert_eq!(shorten_text(" \n ", MAX_DESCRIPTION), "");
    }
}
