//! Construction of the system prompt of a recipe.

use super::{ReasoningStyle, Recipe};

const BRIEF: &str = "\
# Thinking

Before you call a tool, state its purpose in one short sentence. Before you answer, check that the \
answer follows from the conversation or from a result.";

const STRUCTURED: &str = "\
# Thinking

Before you answer, consider these questions:
1. Which information does the answer need?
2. Which of it is already in this conversation?
3. Which tool returns the missing information, and with which arguments? Take arguments from the \
conversation or from results. Look up or ask for values that you would have to guess.
4. Call the tool and wait for its result. Does it contain the missing information? If it failed, \
is there another way?
5. Then answer, and state which information you could not find.";

const EXAMPLES: &str = "\
# Examples

This conversation may start with examples. Their people and data are invented. Never use them in \
an answer.";

/// Builds the system prompt of a recipe. Returns `None` if the recipe has no instructions, no
/// reasoning style and no examples. See [`Recipe::system_prompt`].
pub(super) fn build_system_prompt(recipe: &Recipe) -> Option<String> {
    let thinking = match recipe.reasoning.style {
        ReasoningStyle::None => None,
        ReasoningStyle::Brief => Some(BRIEF),
        ReasoningStyle::Structured => Some(STRUCTURED),
    };
    let examples = (!recipe.examples.is_empty()).then_some(EXAMPLES);
    let parts: Vec<&str> = [recipe.instructions.as_deref(), thinking, examples]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}
