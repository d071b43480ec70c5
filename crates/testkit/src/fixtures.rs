//! Conversations that every provider has to map, each about one thing.
//!
//! They are lawful histories (every tool use has its one result, in call order) that a provider
//! accepts when its adapter does its work: the golden tests put each through every provider, and
//! `cargo xtask oracle` asks the official SDKs about what came out.

mod choices;
mod conversations;
mod dialogues;
mod odd;
mod parts;
mod tools;

use switchboard_domain::{ChatRequest, ModelId};

pub use tools::{list_cities, screenshot, weather};

/// A request and what it is there for.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixture {
    /// Unique, in `snake_case`: part of the name of its snapshots.
    pub name: &'static str,
    /// What a reader of its snapshots should look at.
    pub about: &'static str,
    /// The request.
    pub request: ChatRequest,
}

impl Fixture {
    fn new(name: &'static str, about: &'static str, request: ChatRequest) -> Self {
        Self {
            name,
            about,
            request,
        }
    }
}

/// The Anthropic model that the golden tests ask, and that minted Anthropic's state in the fixtures.
///
/// One that still takes everything (forced tools, sampling), so that the mapping itself is seen.
pub fn anthropic_model() -> ModelId {
    ModelId::new("anthropic", "claude-haiku-4-5")
}

/// The OpenAI model that the golden tests ask, and that minted OpenAI's state in the fixtures.
///
/// One that takes everything, like [`anthropic_model`].
pub fn openai_model() -> ModelId {
    ModelId::new("openai", "gpt-4.1")
}

/// The model of a server that speaks OpenAI's Chat Completions, and adds to it.
pub fn compatible_model() -> ModelId {
    ModelId::new("deepseek", "deepseek-v4")
}

/// A model that is never asked: what it minted is foreign to everyone.
pub fn foreign_model() -> ModelId {
    ModelId::new("gemini", "gemini-3.8-flash")
}

/// Every fixture.
pub fn all() -> Vec<Fixture> {
    [
        conversations::all(),
        choices::all(),
        tools::all(),
        parts::all(),
        odd::all(),
        dialogues::all(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use switchboard_domain::{Message, Role};

    use super::*;

    #[test]
    fn names_are_unique_and_fit_into_file_names() {
        let fixtures = all();
        let names: BTreeSet<&str> = fixtures.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), fixtures.len());
        for Fixture { name, about, .. } in &fixtures {
            let snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            // A double underscore divides the parts of a snapshot's name.
            assert!(
                name.chars().all(snake) && !name.contains("__"),
                "{name} is not in snake_case"
            );
            assert!(!about.is_empty());
        }
    }

    /// The invariant that every history handed out by a run has.
    #[test]
    fn every_tool_use_is_answered_in_the_next_message_in_call_order() {
        for Fixture { name, request, .. } in all() {
            let messages = &request.messages;
            for (at, message) in messages.iter().enumerate() {
                let asked: Vec<_> = message.tool_uses().map(|it| (&it.id, &it.name)).collect();
                let next = messages.get(at + 1);
                let results = next.into_iter().flat_map(|next| next.results());
                let answered: Vec<_> = results.map(|it| (&it.tool_use_id, &it.name)).collect();
                assert_eq!(asked, answered, "{name}, message {at}");
                assert_eq!(
                    message.role == Role::Tool,
                    message.results().next().is_some(),
                    "{name}, message {at}"
                );
            }
            let ids: Vec<&str> = messages
                .iter()
                .flat_map(|message| message.tool_uses())
                .map(|it| it.id.as_str())
                .collect();
            let unique: BTreeSet<&&str> = ids.iter().collect();
            assert_eq!(unique.len(), ids.len(), "{name}: ids are unique in a run");
            let last = messages.last().map(|it| it.role);
            assert!(
                matches!(last, Some(Role::User | Role::Tool | Role::System)),
                "{name} leaves the model something to answer"
            );
        }
    }

    #[test]
    fn every_fixture_survives_storage() {
        for Fixture { name, request, .. } in all() {
            let stored = serde_json::to_string(&request).unwrap();
            let again: ChatRequest = serde_json::from_str(&stored).unwrap();
            assert_eq!(again, request, "{name}");
        }
    }

    #[test]
    fn every_kind_of_part_and_role_occurs() {
        let fixtures = all();
        let messages: Vec<&Message> = fixtures
            .iter()
            .flat_map(|it| it.request.messages.iter().map(AsRef::as_ref))
            .collect();
        let kinds: BTreeSet<String> = messages
            .iter()
            .flat_map(|message| &message.parts)
            .map(|part| serde_json::to_value(part).unwrap()["type"].to_string())
            .collect();
        assert_eq!(kinds.len(), 8, "{kinds:?}");
        for role in [Role::System, Role::User, Role::Assistant, Role::Tool] {
            assert!(messages.iter().any(|it| it.role == role), "{role:?}");
        }
    }
}
