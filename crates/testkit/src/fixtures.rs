//! Conversations that every provider must map, each with one topic: `fixtures/<name>.json`.
//!
//! They are valid histories: every tool use has one result, in call order. A provider accepts them
//! if its adapter is correct. The golden tests map each one with every provider, and `cargo xtask
//! oracle` validates the results with the official SDKs.

use std::{fs, io, path::Path};

use serde::Deserialize;
use serde_json::json;
use switchboard_domain::{ChatRequest, ModelId, ToolAnnotations, ToolDefinition, ToolOrigin};

/// A request and its purpose.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Fixture {
    /// The name of the file without its extension. It is part of the snapshot names.
    #[serde(skip)]
    pub name: String,
    /// The purpose, for a reader of the snapshots.
    pub about: String,
    /// The request, in the stored form.
    pub request: ChatRequest,
}

/// Reads one fixture by its name.
///
/// Fails with the path in the message if the file is missing or is not a fixture.
pub fn read(name: &str) -> io::Result<Fixture> {
    read_file(&folder().join(format!("{name}.json")))
}

/// Reads every fixture, in the order of the names.
pub fn all() -> io::Result<Vec<Fixture>> {
    let files = fs::read_dir(folder())?;
    let mut fixtures = files
        .map(|file| read_file(&file?.path()))
        .collect::<io::Result<Vec<Fixture>>>()?;
    fixtures.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(fixtures)
}

fn read_file(path: &Path) -> io::Result<Fixture> {
    let name = path.display();
    let fail = |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
    let text = fs::read_to_string(path).map_err(fail)?;
    let mut fixture: Fixture = serde_json::from_str(&text).map_err(|error| fail(error.into()))?;
    let stem = path.file_stem().unwrap_or_default();
    fixture.name = stem.to_string_lossy().into_owned();
    Ok(fixture)
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
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

/// Returns a tool with a required and an optional parameter.
pub fn weather() -> ToolDefinition {
    ToolDefinition::new(
        "get_weather",
        "Current weather of a city.",
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Name of the city"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city"],
        }),
    )
}

/// Returns a tool without parameters and with all annotations of a server.
pub fn list_cities() -> ToolDefinition {
    ToolDefinition {
        title: Some("List cities".into()),
        output_schema: Some(json!({
            "type": "object",
            "properties": {"cities": {"type": "array", "items": {"type": "string"}}},
            "required": ["cities"],
        })),
        annotations: ToolAnnotations {
            read_only: Some(true),
            ..ToolAnnotations::default()
        },
        origin: Some(ToolOrigin {
            server: "atlas".into(),
            tool: "list/cities".into(),
        }),
        ..ToolDefinition::new(
            "list_cities",
            "Cities with weather data.",
            json!({"type": "object"}),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;
    use switchboard_domain::{Message, Role};

    use super::*;

    /// Checks the invariant of every history that a run returns.
    #[test]
    fn every_tool_use_is_answered_in_the_next_message_in_call_order() {
        for Fixture { name, request, .. } in all().unwrap() {
            let messages = &request.messages;
            for (at, message) in messages.iter().enumerate() {
                let asked: Vec<_> = message.tool_uses().map(|it| (&it.id, &it.name)).collect();
                let next = messages.get(at + 1);
                let results = next.into_iter().flat_map(|next| next.tool_results());
                let answered: Vec<_> = results.map(|it| (&it.tool_use_id, &it.name)).collect();
                assert_eq!(asked, answered, "{name}, message {at}");
                assert_eq!(
                    message.role == Role::Tool,
                    message.tool_results().next().is_some(),
                    "{name}, message {at}"
                );
            }
            let uses = messages.iter().flat_map(|message| message.tool_uses());
            let mut ids = BTreeSet::new();
            assert!(uses.into_iter().all(|it| ids.insert(&it.id)), "{name}");
            let last = messages.last().map(|it| it.role);
            assert!(
                matches!(last, Some(Role::User | Role::Tool | Role::System)),
                "{name} leaves the model something to answer"
            );
        }
    }

    /// The files are also the snapshots of the stored form of requests.
    #[test]
    fn every_fixture_is_stored_byte_by_byte_as_its_file() {
        for Fixture { name, request, .. } in all().unwrap() {
            let file = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
            let mut written: Value = serde_json::from_str(&file).unwrap();
            written["request"] = serde_json::to_value(&request).unwrap();
            let written = serde_json::to_string_pretty(&written).unwrap();
            assert_eq!(written + "\n", file, "{name}");
        }
    }

    #[test]
    fn every_kind_of_part_and_role_occurs() {
        let fixtures = all().unwrap();
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
