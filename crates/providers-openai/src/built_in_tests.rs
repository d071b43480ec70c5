use serde_json::json;
use switchboard_domain::{
    ChatRequest, Message, ModelCapabilities, ModelError, ModelErrorKind, ModelId, ToolChoice,
    ToolChoiceOutcome, ToolDefinition, Warning, WarningKind,
};

use super::*;
use crate::{
    Profile, chat,
    responses::{self, ResponsesOptions},
};

struct Mapped {
    body: Value,
    outcome: ToolChoiceOutcome,
    warnings: Vec<Warning>,
}

impl Mapped {
    /// The names or types of the tools that are sent.
    fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map(Vec::as_slice);
        tools
            .unwrap_or_default()
            .iter()
            .map(|tool| {
                let named = ["name", "server_label", "type"].map(|it| tool[it].as_str());
                named.into_iter().flatten().next().unwrap_or_default()
            })
            .collect()
    }
}

fn responses_by(
    request: &ChatRequest,
    capabilities: &ModelCapabilities,
    profile: &Profile,
) -> Result<Mapped, ModelError> {
    let (model, options) = (ModelId::new("openai", "m"), ResponsesOptions::default());
    let wire = responses::to_wire(request, &model, capabilities, profile, &options)?;
    Ok(Mapped {
        body: serde_json::to_value(&wire.body).unwrap(),
        outcome: wire.tool_choice,
        warnings: wire.warnings,
    })
}

fn responses(request: &ChatRequest) -> Mapped {
    let unknown = ModelCapabilities::default();
    responses_by(request, &unknown, &Profile::openai()).unwrap()
}

fn chat(request: &ChatRequest, profile: &Profile) -> Mapped {
    let (model, unknown) = (ModelId::new("p", "m"), ModelCapabilities::default());
    let wire = chat::to_wire(request, &model, &unknown, profile).unwrap();
    Mapped {
        body: serde_json::to_value(&wire.body).unwrap(),
        outcome: wire.tool_choice,
        warnings: wire.warnings,
    }
}

/// A question with tools of the wire's own, of these functions and this choice.
fn question(own: &Value, functions: &[&str], choice: ToolChoice) -> ChatRequest {
    let functions = functions.iter().map(|name| {
        let schema = json!({"type": "object", "properties": {}});
        ToolDefinition::new(*name, "", schema)
    });
    let mut extra = JsonObject::new();
    extra.insert("tools".to_owned(), own.clone());
    ChatRequest {
        extra,
        ..ChatRequest::new([Message::user("hi")])
            .with_tools(functions.collect::<Vec<_>>())
            .with_tool_choice(choice)
    }
}

fn only(names: &[&str]) -> ToolChoice {
    ToolChoice::Only(names.iter().map(|&name| name.to_owned()).collect())
}

fn search_and_code() -> Value {
    let container = json!({"type": "auto"});
    json!([{"type": "web_search"}, {"type": "code_interpreter", "container": container}])
}

#[test]
fn a_choice_among_built_in_tools_alone_goes_out() {
    let allowed =
        |tools: Value| json!({"type": "allowed_tools", "mode": "required", "tools": tools});
    let cases = [
        (ToolChoice::Auto, json!("auto")),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Required, json!("required")),
        (
            only(&["code_interpreter"]),
            json!({"type": "code_interpreter"}),
        ),
        // The wire has no choice of it alone.
        (
            only(&["web_search"]),
            allowed(json!([{"type": "web_search"}])),
        ),
        (only(&["web_search", "code_interpreter"]), json!("required")),
    ];
    for (choice, expected) in cases {
        let mapped = responses(&question(&search_and_code(), &[], choice.clone()));
        assert_eq!(mapped.body["tool_choice"], expected, "{choice:?}");
        assert_eq!(mapped.outcome, ToolChoiceOutcome::Native, "{choice:?}");
        assert_eq!(mapped.tools(), ["web_search", "code_interpreter"]);
        assert!(mapped.warnings.is_empty(), "{:?}", mapped.warnings);
    }
    // As declared, to the letter.
    let mapped = responses(&question(&search_and_code(), &[], ToolChoice::Auto));
    assert_eq!(mapped.body["tools"], search_and_code());
}

#[test]
fn functions_and_built_in_tools_are_chosen_among_alike() {
    let own = json!([
        {"type": "web_search"},
        {"type": "mcp", "server_label": "wiki", "server_url": "https://example.org"},
        {"type": "custom", "name": "sql"},
    ]);
    let tool = |choice| {
        let mapped = responses(&question(&own, &["f", "g"], choice));
        assert_eq!(mapped.outcome, ToolChoiceOutcome::Native);
        assert_eq!(mapped.tools(), ["f", "g", "web_search", "wiki", "sql"]);
        mapped.body["tool_choice"].clone()
    };
    let f = json!({"type": "function", "name": "f"});
    let g = json!({"type": "function", "name": "g"});
    let wiki = json!({"type": "mcp", "server_label": "wiki"});
    let sql = json!({"type": "custom", "name": "sql"});
    assert_eq!(tool(only(&["f"])), f);
    assert_eq!(tool(only(&["wiki"])), wiki);
    assert_eq!(tool(only(&["sql"])), sql);
    assert_eq!(
        tool(only(&["sql", "f", "web_search", "wiki"]))["tools"],
        json!([sql, f, {"type": "web_search"}, wiki])
    );
    // All functions, and none of the others: `required` would allow those as well.
    assert_eq!(tool(only(&["f", "g"]))["tools"], json!([f, g]));
    assert_eq!(
        tool(only(&["f", "g", "web_search", "wiki", "sql"])),
        json!("required")
    );
    assert_eq!(tool(ToolChoice::None), json!("none"));
}

#[test]
fn where_the_wire_cannot_say_it_only_the_allowed_are_sent() {
    let request = question(&search_and_code(), &["f", "g"], only(&["web_search", "f"]));
    let unknown = ModelCapabilities::default();
    let mapped = responses_by(&request, &unknown, &Profile::xai()).unwrap();
    assert_eq!(mapped.body["tool_choice"], "required");
    assert_eq!(mapped.tools(), ["f", "web_search"]);
    assert!(matches!(mapped.outcome, ToolChoiceOutcome::Emulated { .. }));

    let refusing = ModelCapabilities {
        forced_tool_choice: Some(false),
        ..unknown
    };
    let mapped = responses_by(&request, &refusing, &Profile::openai()).unwrap();
    assert_eq!(mapped.body["tool_choice"], "auto");
    assert_eq!(mapped.tools(), ["f", "web_search"]);
    assert!(matches!(mapped.outcome, ToolChoiceOutcome::Relaxed { .. }));
    assert_eq!(mapped.warnings[0].kind, WarningKind::ToolChoiceRelaxed);
}

#[test]
fn a_choice_of_what_is_not_declared_is_an_error() {
    let error = |own: &Value, choice| {
        let unknown = ModelCapabilities::default();
        let request = question(own, &[], choice);
        responses_by(&request, &unknown, &Profile::openai())
            .err()
            .map(|error| (error.kind.clone(), error.message().to_owned()))
    };
    let field = Some("tool_choice".to_owned());
    let (kind, message) = error(&search_and_code(), only(&["file_search"])).unwrap();
    assert_eq!(
        kind,
        ModelErrorKind::InvalidRequest {
            field: field.clone()
        }
    );
    assert!(message.contains("`file_search`"), "{message}");
    let (kind, _) = error(&json!([]), ToolChoice::Required).unwrap();
    assert_eq!(kind, ModelErrorKind::InvalidRequest { field });
    assert_eq!(error(&json!([]), ToolChoice::None), None);
}

#[test]
fn built_in_tools_stay_with_a_model_that_has_no_functions() {
    let no_functions = ModelCapabilities {
        tools: Some(false),
        ..ModelCapabilities::default()
    };
    let openai = Profile::openai();
    let request = question(&search_and_code(), &["f"], ToolChoice::None);
    let mapped = responses_by(&request, &no_functions, &openai).unwrap();
    assert_eq!(mapped.tools(), ["web_search", "code_interpreter"]);
    assert_eq!(mapped.body["tool_choice"], "none");
    let request = question(&search_and_code(), &[], ToolChoice::Required);
    let mapped = responses_by(&request, &no_functions, &openai).unwrap();
    assert_eq!(mapped.body["tool_choice"], "required");
    let request = question(&search_and_code(), &["f"], ToolChoice::Auto);
    let error = responses_by(&request, &no_functions, &openai)
        .err()
        .unwrap();
    assert!(matches!(error.kind, ModelErrorKind::Unsupported { .. }));
}

#[test]
fn what_the_caller_says_itself_is_sent_and_told() {
    let mut request = question(&search_and_code(), &[], ToolChoice::Required);
    request
        .extra
        .insert("tool_choice".to_owned(), json!("auto"));
    let mapped = responses(&request);
    assert_eq!(mapped.body["tool_choice"], "auto");
    assert!(matches!(mapped.outcome, ToolChoiceOutcome::Relaxed { .. }));
    assert_eq!(mapped.warnings[0].kind, WarningKind::ToolChoiceRelaxed);
    request.tool_choice = ToolChoice::Auto;
    assert_eq!(responses(&request).outcome, ToolChoiceOutcome::Native);
    // A function under the name of one of ours takes its place.
    let own = json!([{"type": "function", "name": "f", "parameters": {}, "strict": true}]);
    let mapped = responses(&question(&own, &["f", "g"], only(&["f"])));
    assert_eq!(mapped.tools(), ["g", "f"]);
    assert_eq!(mapped.body["tools"][1], own[0]);
    assert_eq!(
        mapped.body["tool_choice"],
        json!({"type": "function", "name": "f"})
    );
    // What is no list at all is for the API to judge.
    let odd = responses(&question(&json!("all"), &["f"], ToolChoice::Auto));
    assert_eq!(odd.body["tools"], "all");
    let odd = responses(&question(&json!([3]), &["f"], ToolChoice::Auto));
    assert_eq!(odd.body["tools"][1], 3);
}

#[test]
fn chat_completions_has_them_in_its_own_form() {
    let own = json!([
        {"type": "custom", "custom": {"name": "sql"}},
        {"type": "browser_search"},
    ]);
    let (openai, groq) = (Profile::openai(), Profile::named("groq").unwrap());
    let mapped = chat(&question(&own, &["f"], only(&["sql"])), &openai);
    let sql = json!({"type": "custom", "custom": {"name": "sql"}});
    assert_eq!(mapped.body["tool_choice"], sql);
    assert_eq!(mapped.body["tools"].as_array().unwrap().len(), 3);
    let mapped = chat(&question(&own, &["f"], only(&["sql", "f"])), &openai);
    let f = json!({"type": "function", "function": {"name": "f"}});
    assert_eq!(
        mapped.body["tool_choice"]["allowed_tools"]["tools"],
        json!([sql, f])
    );
    let mapped = chat(&question(&own, &[], only(&["browser_search"])), &groq);
    assert_eq!(mapped.body["tool_choice"], "required");
    assert_eq!(mapped.body["tools"], json!([{"type": "browser_search"}]));
    assert!(matches!(mapped.outcome, ToolChoiceOutcome::Emulated { .. }));
    let mapped = chat(&question(&own, &[], ToolChoice::None), &groq);
    assert_eq!(mapped.body["tool_choice"], "none");
}
