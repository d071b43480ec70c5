//! Conversations that every provider must map, each with one topic.
//!
//! They are valid histories: every tool use has one result, in call order. A provider accepts them
//! if its adapter is correct. The golden tests map each one with every provider, and `cargo xtask
//! oracle` validates the results with the official SDKs.

mod choices;
mod conversations;
mod dialogues;
mod odd;
mod parts;
mod tools;

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, Document, Media, Message, ModelId, Part, ProviderState, Reasoning, Role,
    ToolInput, ToolUse,
};

pub use tools::{list_cities, screenshot, weather};

/// A request and its purpose.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixture {
    /// A unique `snake_case` name, which is part of the snapshot names.
    pub name: &'static str,
    /// The purpose, for a reader of the snapshots.
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

fn user(parts: impl IntoIterator<Item = Part>) -> Message {
    Message::new(Role::User, parts)
}

fn assistant(parts: impl IntoIterator<Item = Part>) -> Message {
    Message::new(Role::Assistant, parts)
}

fn call(id: &str, name: &str, input: &str) -> Part {
    Part::ToolUse(ToolUse::new(id, name, ToolInput::parse(input)))
}

/// Returns a call of `get_weather`.
fn weather_call(id: &str, city: &str) -> Part {
    call(id, "get_weather", &format!(r#"{{"city":"{city}"}}"#))
}

fn document(media: Media, title: Option<&str>) -> Part {
    let title = title.map(Into::into);
    Part::Document(Document { media, title })
}

/// Returns reasoning with the state of the model that created it.
fn thought(text: &str, creator: &ModelId, data: Value) -> Part {
    Part::Reasoning(Reasoning {
        text: text.into(),
        provider_state: Some(ProviderState::minted_by(creator, data)),
    })
}

/// Returns the Anthropic model of the golden tests, which also created Anthropic's state in the
/// fixtures.
///
/// It supports every option (forced tools, sampling), so that the tests cover the whole mapping.
pub fn anthropic_model() -> ModelId {
    ModelId::new("anthropic", "claude-haiku-4-5")
}

/// Returns the OpenAI model of the golden tests, which also created OpenAI's state in the fixtures.
///
/// It supports every option, like [`anthropic_model`].
pub fn openai_model() -> ModelId {
    ModelId::new("openai", "gpt-4.1")
}

/// Returns the model of a server with an extended form of OpenAI's Chat Completions.
pub fn compatible_model() -> ModelId {
    ModelId::new("deepseek", "deepseek-v4")
}

/// Returns a model that receives no requests. Its state is foreign to every provider.
pub fn foreign_model() -> ModelId {
    ModelId::new("gemini", "gemini-3.8-flash")
}

/// Returns every fixture.
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

    use super::*;

    #[test]
    fn names_are_unique_and_fit_into_file_names() {
        let fixtures = all();
        let names: BTreeSet<&str> = fixtures.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), fixtures.len());
        for Fixture { name, about, .. } in &fixtures {
            let snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            // A double underscore separates the parts of a snapshot's name.
            assert!(
                name.chars().all(snake) && !name.contains("__"),
                "{name} is not in snake_case"
            );
            assert!(!about.is_empty());
        }
    }

    /// Checks the invariant of every history that a run returns.
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
