//! Reads the tools and the tool choice from the body of a request, and compares them with the
//! request.

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_domain::{ChatRequest, ToolChoice, ToolChoiceOutcome};

use crate::{
    Column,
    canonical::{Item, Side, Turn},
    wires::Sent,
};

/// A tool in the form in which the model gets it.
#[derive(Debug, Clone, PartialEq)]
struct Tool {
    name: String,
    description: String,
    schema: Value,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn tools(column: Column, body: &Value) -> Vec<Tool> {
    let declared = match column {
        Column::Gemini => &body["tools"][0]["functionDeclarations"],
        _ => &body["tools"],
    };
    let tool = |tool: &Value| {
        let (tool, schema) = match column {
            Column::Anthropic => (tool, "input_schema"),
            Column::Gemini => (tool, "parametersJsonSchema"),
            Column::Responses => {
                assert_eq!(tool["type"], "function");
                (tool, "parameters")
            }
            _ => {
                assert_eq!(tool["type"], "function");
                (&tool["function"], "parameters")
            }
        };
        Tool {
            name: text(&tool["name"]),
            description: text(&tool["description"]),
            schema: tool[schema].clone(),
        }
    };
    list(declared).iter().map(tool).collect()
}

/// Returns the tool choice of a body. A body without a tool choice means `Auto`.
fn choice(column: Column, body: &Value) -> ToolChoice {
    let choice = &body["tool_choice"];
    let names = |list: &[Value]| list.iter().map(|it| text(&it["name"])).collect();
    match column {
        Column::Anthropic => match choice["type"].as_str() {
            Some("none") => ToolChoice::None,
            Some("any") => ToolChoice::Required,
            Some("tool") => ToolChoice::Only(vec![text(&choice["name"])]),
            _ => ToolChoice::Auto,
        },
        Column::Chat | Column::Compatible | Column::Responses => match choice.as_str() {
            Some("none") => ToolChoice::None,
            Some("required") => ToolChoice::Required,
            Some(_) => ToolChoice::Auto,
            None => match (choice["type"].as_str(), column) {
                (None, _) => ToolChoice::Auto,
                (Some("function"), Column::Responses) => {
                    ToolChoice::Only(vec![text(&choice["name"])])
                }
                (Some("function"), _) => ToolChoice::Only(vec![text(&choice["function"]["name"])]),
                (Some(kind), column) => {
                    assert_eq!(kind, "allowed_tools");
                    let allowed = match column {
                        Column::Responses => choice,
                        _ => &choice["allowed_tools"],
                    };
                    assert_eq!(allowed["mode"], "required");
                    let functions = list(&allowed["tools"]).iter();
                    let functions = functions.map(|it| match column {
                        Column::Responses => it.clone(),
                        _ => it["function"].clone(),
                    });
                    ToolChoice::Only(names(&functions.collect::<Vec<_>>()))
                }
            },
        },
        Column::Gemini => {
            let calling = &body["toolConfig"]["functionCallingConfig"];
            let allowed = list(&calling["allowedFunctionNames"]).iter().map(text);
            let allowed: Vec<String> = allowed.collect();
            match calling["mode"].as_str() {
                Some("NONE") => ToolChoice::None,
                Some("ANY") if allowed.is_empty() => ToolChoice::Required,
                Some("ANY") => ToolChoice::Only(allowed),
                _ => ToolChoice::Auto,
            }
        }
        // Ollama has no tool choice. Instead, the format of the answer names the allowed tools.
        Column::Ollama => match body.get("format") {
            None => ToolChoice::Auto,
            Some(format) => {
                let forms = match format.get("anyOf") {
                    Some(several) => list(several).to_vec(),
                    None => vec![format.clone()],
                };
                let name = |form: &Value| text(&form["properties"]["name"]["enum"][0]);
                ToolChoice::Only(forms.iter().map(name).collect())
            }
        },
    }
}

/// Checks that the body has the tools and the tool choice of the request. If the wire has no tool
/// choice, checks that the body has the replacement for it.
pub(crate) fn check(
    column: Column,
    request: &ChatRequest,
    sent: &Sent,
) -> Result<(), TestCaseError> {
    let all: Vec<Tool> = request
        .tools
        .iter()
        .map(|tool| Tool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            schema: tool.input_schema.clone(),
        })
        .collect();
    let named: Vec<String> = match &request.tool_choice {
        ToolChoice::Only(names) => names.clone(),
        _ => all.iter().map(|tool| tool.name.clone()).collect(),
    };
    let (expected, asked) = match (&sent.outcome, column) {
        (ToolChoiceOutcome::Native, _) => (all, request.tool_choice.clone()),
        (ToolChoiceOutcome::Emulated { .. }, Column::Ollama) => {
            let asked = match &request.tool_choice {
                ToolChoice::None => ToolChoice::Auto,
                _ => ToolChoice::Only(named),
            };
            (Vec::new(), asked)
        }
        (ToolChoiceOutcome::Emulated { .. }, Column::Anthropic | Column::Compatible) => {
            let allowed = all.into_iter().filter(|tool| named.contains(&tool.name));
            (allowed.collect(), ToolChoice::Required)
        }
        (outcome, column) => {
            return Err(TestCaseError::fail(format!("{column:?}: {outcome:?}")));
        }
    };
    prop_assert_eq!(
        tools(column, &sent.body),
        expected,
        "{:?}: {}",
        column,
        sent.body
    );
    // A choice between all tools is equal to `Required`.
    let plain = |choice: ToolChoice| match choice {
        ToolChoice::Only(list) if list.len() > 1 && list.len() == request.tools.len() => {
            ToolChoice::Required
        }
        other => other,
    };
    prop_assert_eq!(
        plain(choice(column, &sent.body)),
        plain(asked),
        "{:?}: {}",
        column,
        sent.body
    );
    // Native schemas are compared with the order of their fields, because models read schemas from
    // the beginning.
    for tool in request
        .tools
        .iter()
        .filter(|_| sent.outcome == ToolChoiceOutcome::Native)
    {
        let schema = tool.input_schema.to_string();
        prop_assert!(sent.bytes.contains(&schema), "{:?}: {}", column, sent.bytes);
    }
    Ok(())
}

/// Removes the instructions that describe the tools, on a wire on which the answer's format
/// replaces the tool choice. They come after the instructions of the conversation.
pub(crate) fn without_instructions(found: &mut Vec<Turn>, expected: &mut Vec<Turn>) {
    let begins = |turns: &[Turn]| match turns.first() {
        Some(turn) if turn.side == Side::Instructions => match turn.items.first() {
            Some(Item::Text { text, .. }) => text.clone(),
            _ => String::new(),
        },
        _ => String::new(),
    };
    let (said, asked) = (begins(found), begins(expected));
    if said != asked {
        assert!(said.starts_with(&asked) && said.contains("Tools"), "{said}");
        for turns in [&mut *found, &mut *expected] {
            if !begins(turns).is_empty() {
                turns.remove(0);
            }
        }
    }
}

#[test]
fn the_readers_distinguish_tool_choices() {
    let request = |choice: ToolChoice| {
        let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
        let tool = |name| switchboard_domain::ToolDefinition::new(name, "x", schema.clone());
        ChatRequest::new([switchboard_domain::Message::user("Hello?")])
            .with_tools(["a", "b", "c"].map(tool))
            .with_tool_choice(choice)
    };
    let only = |names: &[&str]| ToolChoice::Only(names.iter().map(|it| (*it).to_owned()).collect());
    for column in crate::COLUMNS {
        let mut seen = Vec::new();
        for asked in [
            ToolChoice::Auto,
            ToolChoice::None,
            ToolChoice::Required,
            only(&["b"]),
            only(&["a", "c"]),
        ] {
            let sent = column.send(&request(asked)).unwrap();
            let found = (choice(column, &sent.body), tools(column, &sent.body).len());
            assert!(!seen.contains(&found), "{column:?}: {found:?}");
            seen.push(found);
        }
    }
}
