//! The system prompt of a recipe.

use super::{ReasoningStyle, Recipe};

const BRIEF: &str = "\
# Thinking

Before you call a tool, say in one short sentence what you need it for. Before you answer, check that \
the answer is in what you know or in a result.";

const STRUCTURED: &str = "\
# Thinking

Before you answer, go through these questions:
1. Which information does the answer need?
2. Which of it is already in this conversation?
3. Which tool gives what is missing, and with which arguments? Arguments come from the conversation or \
from results; what you would have to guess, look up first or ask for.
4. Call the tool and wait for its result. Did it give what was missing? If it failed, is there another \
way?
5. Only then answer, and say what you could not find out.";

const EXAMPLES: &str = "\
# Examples

This conversation may begin with examples of how to work. They are no part of it: their people and \
their data are made up, so never use them in an answer.";

/// Implements [`Recipe::instructions`].
pub(super) fn instructions(recipe: &Recipe) -> Option<String> {
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
