use serde_json::json;
use switchboard_domain::{
    ChatRequest, Message, ModelCapabilities, ModelError, ModelErrorKind, ModelId, ToolChoice,
    ToolChoiceOutcome, ToolDefinition, Warning, WarningKind,
};
use switchboard_providers_common::schema::ToolSchemas;

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
    /// Returns the names or types of the sent tools.
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
    mapped_with(request, capabilities, profile, &ResponsesOptions::default())
}

fn mapped_with(
    request: &ChatRequest,
    capabilities: &ModelCapabilities,
    profile: &Profile,
    options: &ResponsesOptions,
) -> Result<Mapped, ModelError> {
    let (model, schemas) = (ModelId::new("openai", "m"), ToolSchemas::default());
    let wire =
        responses::to_wire_request(request, &model, capabilities, profile, options, &schemas)?;
    Ok(Mapped {
        body: serde_json::to_value(&wire.body).unwrap(),
        outcome: wire.tool_choice,
        warnings: wire.warnings,
    })
}

/// Maps a request to the Responses API, with `tools` as the server tools of the options.
fn configured(request: &ChatRequest, tools: &[ServerTool]) -> Result<Mapped, ModelError> {
    let unknown = ModelCapabilities::default();
    let options = ResponsesOptions {
        server_tools: tools.to_vec(),
        ..ResponsesOptions::default()
    };
    mapped_with(request, &unknown, &Profile::openai(), &options)
}

fn responses(request: &ChatRequest) -> Mapped {
    let unknown = ModelCapabilities::default();
    responses_by(request, &unknown, &Profile::openai()).unwrap()
}

fn chat(request: &ChatRequest, profile: &Profile) -> Mapped {
    let (model, unknown) = (ModelId::new("p", "m"), ModelCapabilities::default());
    let wire =
        chat::to_wire_request(request, &model, &unknown, profile, &ToolSchemas::default()).unwrap();
    Mapped {
        body: serde_json::to_value(&wire.body).unwrap(),
        outcome: wire.tool_choice,
        warnings: wire.warnings,
    }
}

/// Returns a request with the provider tools `own` in `extra`, and with functions.
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
fn a_choice_may_mix_functions_and_provider_tools() {
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
    // The choice names all functions. `required` would also allow the provider tools.
    assert_eq!(tool(only(&["f", "g"]))["tools"], json!([f, g]));
    assert_eq!(
        tool(only(&["f", "g", "web_search", "wiki", "sql"])),
        json!("required")
    );
    assert_eq!(tool(ToolChoice::None), json!("none"));
}

#[test]
fn a_name_selects_the_function_before_the_provider_tool() {
    let own = json!([{"type": "web_search"}]);
    let choice = || only(&["web_search", "f"]);
    let mapped = responses(&question(&own, &["web_search", "f"], choice()));
    let function = |name: &str| json!({"type": "function", "name": name});
    // `required` would also allow the web search of the provider.
    let expected = json!([function("web_search"), function("f")]);
    assert_eq!(mapped.body["tool_choice"]["tools"], expected);
    assert_eq!(mapped.outcome, ToolChoiceOutcome::Native);
    let request = question(&own, &["web_search", "f", "g"], choice());
    let unknown = ModelCapabilities::default();
    let mapped = responses_by(&request, &unknown, &Profile::xai()).unwrap();
    assert_eq!(mapped.tools(), ["web_search", "f"]);
    assert_eq!(mapped.body["tools"][0]["type"], "function");
}

#[test]
fn only_allowed_tools_are_sent_to_servers_without_allowed_tools() {
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
fn a_choice_of_an_undeclared_tool_is_an_error() {
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
fn provider_tools_are_sent_to_a_model_without_functions() {
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
fn fields_of_the_caller_override_tools_and_choice() {
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
    // A function in `extra` replaces the declared function of that name.
    let own = json!([{"type": "function", "name": "f", "parameters": {}, "strict": true}]);
    let mapped = responses(&question(&own, &["f", "g"], only(&["f"])));
    assert_eq!(mapped.tools(), ["g", "f"]);
    assert_eq!(mapped.body["tools"][1], own[0]);
    let expected = json!({"type": "function", "name": "f"});
    assert_eq!(mapped.body["tool_choice"], expected);
    // A field `tools` in `extra` that is not a list is sent unchanged.
    let odd = responses(&question(&json!("all"), &["f"], ToolChoice::Auto));
    assert_eq!(odd.body["tools"], "all");
    let odd = responses(&question(&json!([3]), &["f"], ToolChoice::Auto));
    assert_eq!(odd.body["tools"][1], 3);
}

#[test]
fn chat_completions_has_its_own_form_of_provider_tools() {
    let own = json!([
        {"type": "custom", "custom": {"name": "sql"}},
        {"type": "browser_search"},
    ]);
    let (openai, groq) = (Profile::openai(), Profile::from_name("groq").unwrap());
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

#[test]
fn a_choice_that_the_server_does_not_enforce_is_relaxed() {
    let request = question(&json!([]), &["f"], ToolChoice::Required);
    let mapped = chat(&request, &Profile::llamacpp());
    assert_eq!(mapped.body["tool_choice"], "required");
    assert!(matches!(mapped.outcome, ToolChoiceOutcome::Relaxed { .. }));
    assert_eq!(mapped.warnings[0].kind, WarningKind::ToolChoiceRelaxed);
}

fn plain(choice: ToolChoice) -> ChatRequest {
    ChatRequest::new([Message::user("hi")]).with_tool_choice(choice)
}

fn read(tool: Value) -> ServerTool {
    serde_json::from_value(tool).unwrap()
}

fn raw(declaration: Value) -> ServerTool {
    ServerTool::from_declaration(serde_json::from_value(declaration).unwrap())
}

fn mcp(label: &str, url: &str) -> ServerTool {
    raw(json!({"type": "mcp", "server_label": label, "server_url": url}))
}

#[test]
fn functions_are_sent_first_and_tools_of_the_request_last() {
    let old = json!({"type": "web_search_preview", "search_context_size": "low"});
    let wiki = json!({"type": "mcp", "server_label": "wiki", "server_url": "https://a.example"});
    let own = json!([old, wiki, {"type": "shell"}]);
    let tools = [
        ServerTool::web_search(),
        mcp("wiki", "https://b.example"),
        mcp("docs", "https://b.example"),
        raw(json!({"type": "code_interpreter", "container": {"type": "auto"}})),
    ];
    let mapped = configured(&question(&own, &["f"], ToolChoice::Auto), &tools).unwrap();
    assert_eq!(
        mapped.tools(),
        [
            "f",
            "docs",
            "code_interpreter",
            "web_search_preview",
            "wiki",
            "shell"
        ]
    );
    assert_eq!(
        (&mapped.body["tools"][3], &mapped.body["tools"][4]),
        (&old, &wiki)
    );
    assert!(mapped.warnings.is_empty(), "{:?}", mapped.warnings);
    // A request may have several tools of the type `namespace`.
    let group = |name: &str| {
        let tools = json!([{"type": "custom", "name": "t"}]);
        json!({"type": "namespace", "name": name, "description": "", "tools": tools})
    };
    let configured_group = read(json!({"type": "raw", "declaration": group("a")}));
    let request = question(&json!([group("b")]), &[], ToolChoice::Auto);
    let mapped = configured(&request, &[configured_group]).unwrap();
    assert_eq!(mapped.tools(), ["a", "b"]);
    // A field `tools` in `extra` that is not a list replaces all tools.
    let mapped = configured(&question(&json!("all"), &[], ToolChoice::Auto), &tools).unwrap();
    assert_eq!(mapped.body["tools"], "all");
    let expected = json!(["reasoning.encrypted_content"]);
    assert_eq!(mapped.body["include"], expected);
}

#[test]
fn a_tool_configured_twice_or_named_like_a_function_is_dropped_with_a_warning() {
    let tools = [
        raw(json!({"type": "code_interpreter", "container": {"type": "auto"}})),
        ServerTool::web_search(),
        read(json!({"type": "raw", "declaration": {"type": "web_search_2025_08_26"}})),
    ];
    let request = question(
        &json!([]),
        &["code_interpreter"],
        only(&["code_interpreter"]),
    );
    let mapped = configured(&request, &tools).unwrap();
    assert_eq!(mapped.tools(), ["code_interpreter", "web_search"]);
    let function = json!({"type": "function", "name": "code_interpreter"});
    assert_eq!(mapped.body["tool_choice"], function);
    let told: Vec<_> = mapped
        .warnings
        .iter()
        .map(|it| (it.kind, it.message.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (
                WarningKind::ToolUnavailable,
                "the provider's tool `code_interpreter` was not sent: a tool of that name is declared"
            ),
            (
                WarningKind::ToolUnavailable,
                "the provider's tool `web_search_2025_08_26` was not sent: it is configured twice"
            ),
        ]
    );
}

#[test]
fn results_are_requested_for_the_sent_tools_only() {
    let include = |own: Value, choice, profile: &Profile| {
        let unknown = ModelCapabilities::default();
        let mapped = responses_by(&question(&own, &[], choice), &unknown, profile).unwrap();
        mapped.body["include"].clone()
    };
    let openai = Profile::openai();
    let all = json!([{"type": "file_search", "vector_store_ids": ["v"]}, {"type": "web_search_2025_08_26"},
                     {"type": "web_search"}, {"type": "code_interpreter", "container": "c"}]);
    assert_eq!(
        include(all.clone(), ToolChoice::Auto, &openai),
        json!([
            "reasoning.encrypted_content",
            "file_search_call.results",
            "web_search_call.action.sources",
            "code_interpreter_call.outputs"
        ])
    );
    // A server without support for `allowed_tools` gets only the tools that the choice names.
    assert_eq!(
        include(all, only(&["web_search"]), &Profile::xai()),
        json!([
            "reasoning.encrypted_content",
            "web_search_call.action.sources"
        ])
    );
    let none = json!(["reasoning.encrypted_content"]);
    let others = json!([{"type": "web_search_preview"}, {"type": "shell"}, {"type": "custom", "name": "web_search"}]);
    assert_eq!(include(others, ToolChoice::Auto, &openai), none);
    // The model does not reason, and the caller's `extra` has the field `include`.
    let mut request = question(&search_and_code(), &[], ToolChoice::Auto);
    let own = json!([
        "message.output_text.logprobs",
        "code_interpreter_call.outputs"
    ]);
    request.extra.insert("include".to_owned(), own);
    let quiet = ModelCapabilities {
        reasoning: Some(false),
        ..ModelCapabilities::default()
    };
    let mapped = responses_by(&request, &quiet, &openai).unwrap();
    assert_eq!(
        mapped.body["include"],
        json!([
            "web_search_call.action.sources",
            "code_interpreter_call.outputs",
            "message.output_text.logprobs"
        ])
    );
}

#[test]
fn a_token_in_a_declaration_is_not_printed() {
    let secret = json!({"type": "mcp", "server_label": "w", "server_url": "https://e.org",
                        "authorization": "secret-1"});
    let options = ResponsesOptions {
        server_tools: vec![read(json!({"type": "raw", "declaration": secret}))],
        ..ResponsesOptions::default()
    };
    let (request, model) = (plain(ToolChoice::Auto), ModelId::new("openai", "m"));
    let (unknown, openai) = (ModelCapabilities::default(), Profile::openai());
    let schemas = ToolSchemas::default();
    let wire = responses::to_wire_request(&request, &model, &unknown, &openai, &options, &schemas)
        .unwrap();
    assert!(
        serde_json::to_string(&wire.body)
            .unwrap()
            .contains("secret-1")
    );
    for printed in [format!("{options:?}"), format!("{wire:?}")] {
        assert!(
            printed.contains("mcp") || printed.contains("Mcp"),
            "{printed}"
        );
        assert!(!printed.contains("secret-1"), "{printed}");
    }
}
