use std::sync::Arc;

use serde_json::json;
use switchboard_domain::{Role, ToolDefinition, ToolOrigin};

use super::*;
use crate::strategy::GatherFormat;

fn read(value: &Value) -> Recipe {
    Recipe::from_value(value).unwrap()
}

fn error(value: &Value) -> String {
    Recipe::from_value(value).unwrap_err().to_string()
}

/// A recipe with every key.
fn complete_recipe() -> Value {
    json!({
        "name": "orders",
        "title": "Orders",
        "description": "About orders.",
        "model": "anthropic/claude",
        "instructions": "You help with orders.",
        "servers": ["shop"],
        "tools": {
            "enabled": true,
            "allow": ["shop__*"],
            "exclude": ["shop__drop"],
            "descriptions": {"find_order": "Finds an order."},
        },
        "policy": {
            "max_tools_per_response": 3,
            "max_tools_per_minute": 10,
            "max_tools_per_run": 20,
            "requires_approval": ["cancel_*"],
        },
        "examples": [{
            "user": "Where is order 1?",
            "calls": [
                [{"tool": "find_order", "input": {"id": 1}, "result": {"state": "sent"}}],
                [
                    {"tool": "track", "input": {}, "result": "In Lund."},
                    {"tool": "track", "input": {}, "result": "no", "is_error": true},
                ],
            ],
            "answer": "In Lund.",
        }],
        "reasoning": {"style": "structured", "effort": "low"},
        "strategy": {"gather-format": {
            "max_thinking_steps": 3, "described_tools": 15, "review": true, "schema": {"type": "object"},
        }},
        "temperature": 0.5,
        "stream": false,
        "limits": {"max_steps": 9, "max_total_tokens": 1000, "max_cost_usd": 0.5, "max_wall_time": 60},
    })
}

#[test]
fn servers_are_a_list_of_names() {
    let recipe = Recipe::from_value(&json!({"name": "a", "servers": ["graph", "bte"]})).unwrap();
    assert_eq!(recipe.servers, ["graph", "bte"]);
    let error = Recipe::from_value(&json!({"name": "a", "servers": [1]})).unwrap_err();
    assert_eq!(error.path, "servers[0]");
}

#[test]
fn a_recipe_is_serialized_in_the_form_of_its_file() {
    let recipe = read(&complete_recipe());
    assert_eq!(serde_json::to_value(&recipe).unwrap(), complete_recipe());
    let stored = serde_json::to_string(&recipe).unwrap();
    assert_eq!(serde_json::from_str::<Recipe>(&stored).unwrap(), recipe);
    let least = read(&json!({"name": "x"}));
    assert_eq!(
        serde_json::to_value(&least).unwrap(),
        json!({"name": "x", "tools": {"enabled": true}, "reasoning": {"style": "none"}})
    );
    assert_eq!(least.system_prompt(), None);
}

#[test]
fn keys_can_be_snake_case_camel_case_or_kebab_case() {
    let camel = read(&json!({
        "name": "r",
        "systemPrompt": "p",
        "mcpTools": {
            "enabled": true,
            "tools": [{"name": "a", "description": "b"}],
            "exclude": ["c"],
            "toolPolicy": {"maxToolsPerResponse": 3, "requiresApproval": false},
        },
        "reasoning": "brief",
        "strategy": {"gatherFormat": {"maxThinkingSteps": 5}},
    }));
    assert_eq!(camel.instructions.as_deref(), Some("p"));
    assert_eq!(camel.tools.allow, Some(vec!["a".into()]));
    assert_eq!(camel.tools.exclude, ["c"]);
    assert_eq!(camel.tools.descriptions, [("a".into(), "b".into())]);
    assert_eq!(camel.policy.max_tools_per_response, Some(3));
    let expected = Some(ApprovalRequirement::EveryCall(false));
    assert_eq!(camel.policy.requires_approval, expected);
    assert_eq!(camel.reasoning.style, ReasoningStyle::Brief);
    let expected = Some(Strategy::GatherFormat(GatherFormat::default()));
    assert_eq!(camel.strategy, expected);
}

/// The form of the best-practice document, with further keys of its program.
#[test]
fn a_recipe_of_another_program_is_converted() {
    let recipe = read(&json!({
        "uniqueId": "general-chat",
        "name": "General Chat (Human-Focused)",
        "displayName": "General Chat",
        "pipeline": [{"command": "rag/build", "params": {"maxMessages": 20}}],
        "strategy": {
            "conversationPattern": "collaborative",
            "responseRules": ["One answers.", "Cite the file."],
            "mcpTools": {
                "enabled": true,
                "whitelist": ["data/read", "data/list", "file/load"],
                "descriptions": {"data/read": "Read an entity."},
            },
            "toolPolicy": {"maxToolsPerMinute": 10, "requiresApproval": true},
        },
        "isPublic": true,
    }));
    assert_eq!(recipe.name, "general-chat");
    assert_eq!(recipe.title.as_deref(), Some("General Chat"));
    let allow = recipe.tools.allow.as_ref().unwrap();
    assert_eq!(allow.len(), 3);
    assert!(matches_tool(
        &allow[0],
        &ToolDefinition::new("data_read", "", json!({}))
    ));
    assert_eq!(recipe.policy.max_tools_per_minute, Some(10));
    let expected = Some(ApprovalRequirement::EveryCall(true));
    assert_eq!(recipe.policy.requires_approval, expected);
    let expected = Some("Rules for your answers:\n- One answers.\n- Cite the file.");
    assert_eq!(recipe.instructions.as_deref(), expected);
    assert_eq!(recipe.strategy, None);
    let expected = ["pipeline", "isPublic", "strategy.conversationPattern"];
    assert_eq!(recipe.ignored, expected);
}

#[test]
fn errors_name_the_path_and_the_most_similar_key() {
    for (value, expected) in [
        (json!([]), "the recipe must be a map"),
        (json!({}), "missing field `name`"),
        (
            json!({"name": "../x"}),
            "`name`: a name has at most 64 letters",
        ),
        (
            json!({"name": "r", "tools": {"whitelst": []}}),
            "(did you mean `whitelist`?)",
        ),
        (
            json!({"name": "r", "tools": {"allow": [3]}}),
            "`tools.allow[0]`: invalid type: integer `3`, expected a string",
        ),
        (
            json!({"name": "r", "tools": [3]}),
            "`tools.tools[0]`: invalid type: integer `3`, expected a name or a map with `name`",
        ),
        (
            json!({"name": "r", "mcpTools": {"tools": [{"nam": "x"}]}}),
            "`mcp_tools.tools[0].nam`: unknown key `nam` (did you mean `name`?)",
        ),
        (
            json!({"name": "r", "tools": [], "mcpTools": {}}),
            "duplicate field `tools`",
        ),
        (
            json!({"name": "r", "policy": {"max_tools_per_run": 1}, "tools": {"policy": {"max_tools_per_run": 1}}}),
            "the policy is also set in `tools.policy`",
        ),
        (
            json!({"name": "r", "policy": {"max_tools_per_run": -1}}),
            "`policy.max_tools_per_run`: invalid value: integer `-1`, expected u32",
        ),
        (
            json!({"name": "r", "policy": {"requires_approval": "Always"}}),
            "true, false or a list of tools",
        ),
        (
            json!({"name": "r", "reasoning": "deep"}),
            "`reasoning.style`: unknown variant `deep`, expected one of `none`, `brief`, `structured`",
        ),
        (
            json!({"name": "r", "strategy": "lop"}),
            "(did you mean `loop`?)",
        ),
        (
            json!({"name": "r", "strategy": "loop", "formatter": {"type": "object"}}),
            "needs the strategy `gather-format`",
        ),
        (
            json!({"name": "r", "temperature": -1}),
            "`temperature`: expected a number of at least 0",
        ),
        (
            json!({"name": "r", "examples": [{"user": "x"}]}),
            "`examples[0]`: missing field `answer`",
        ),
    ] {
        let error = error(&value);
        assert!(error.contains(expected), "{value}: {error}");
    }
}

#[test]
fn a_schema_of_the_answer_selects_its_strategy() {
    let schema = json!({"type": "object", "properties": {}});
    for formatter in [schema.clone(), json!({"schema": schema})] {
        let recipe = read(&json!({"name": "r", "formatter": formatter}));
        let Some(Strategy::GatherFormat(settings)) = recipe.strategy else {
            panic!("no strategy");
        };
        assert_eq!(settings.schema, Some(schema.clone()));
    }
    let twice = json!({"name": "r", "formatter": schema, "strategy": {"gather_format": {"schema": schema}}});
    assert!(error(&twice).contains("the schema is also set"));
}

#[test]
fn the_prompt_contains_instructions_reasoning_and_examples() {
    let recipe = read(&complete_recipe());
    insta::assert_snapshot!(recipe.system_prompt().unwrap());
    let brief = read(&json!({"name": "r", "reasoning": "brief"}))
        .system_prompt()
        .unwrap();
    assert!(
        brief.starts_with("# Thinking") && !brief.contains("# Examples"),
        "{brief}"
    );
}

fn shop_tools() -> Vec<Arc<ToolDefinition>> {
    ["find_order", "track"]
        .iter()
        .map(|name| {
            let mut tool = ToolDefinition::new(format!("shop__{name}"), "", json!({}));
            tool.origin = Some(ToolOrigin {
                server: "shop".into(),
                tool: (*name).to_owned(),
            });
            Arc::new(tool)
        })
        .collect()
}

fn examples_with(recipe: &Value, tools: &[Arc<ToolDefinition>]) -> (Vec<Message>, Vec<String>) {
    read(recipe).example_messages(tools, &InputValidators::default())
}

#[test]
fn examples_become_messages_with_a_result_for_every_tool_use() {
    let (messages, problems) = examples_with(&complete_recipe(), &shop_tools());
    assert!(problems.is_empty(), "{problems:?}");
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    assert_eq!(
        roles,
        [
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::Assistant,
            Role::Tool,
            Role::Assistant
        ]
    );
    for pair in messages.windows(2) {
        let uses: Vec<_> = pair[0]
            .tool_uses()
            .map(|it| (it.id.clone(), it.name.clone()))
            .collect();
        let results: Vec<_> = pair[1]
            .tool_results()
            .map(|it| (it.tool_use_id.clone(), it.name.clone()))
            .collect();
        assert_eq!(uses, results);
    }
    let expected = "shop__find_order";
    assert_eq!(messages[1].tool_uses().next().unwrap().name, expected);
    let data = messages[2].tool_results().next().unwrap();
    assert_eq!(data.structured, Some(json!({"state": "sent"}).into()));
    assert!(messages[4].tool_results().nth(1).unwrap().is_error);
    // Ids are unique.
    let mut ids: Vec<_> = messages
        .iter()
        .flat_map(switchboard_domain::Message::tool_uses)
        .map(|it| &it.id)
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[test]
fn an_example_that_does_not_match_the_tools_is_omitted_and_reported() {
    let (messages, problems) = examples_with(&complete_recipe(), &shop_tools()[..1]);
    assert_eq!(messages, []);
    let missing = "recipe example 1 was omitted: tool `track` is not available";
    assert_eq!(problems, [missing]);

    let mut tools = shop_tools();
    Arc::make_mut(&mut tools[0]).input_schema =
        json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let mut recipe = complete_recipe();
    let (messages, problems) = examples_with(&recipe, &tools);
    assert_eq!(messages, []);
    let start = "recipe example 1 was omitted: the input of tool `find_order` is \
                 invalid: /id: ";
    assert!(problems[0].starts_with(start), "{problems:?}");
    // The example of a failed call may show an invalid input.
    recipe["examples"][0]["calls"][0][0]["is_error"] = true.into();
    let (messages, problems) = examples_with(&recipe, &tools);
    assert_eq!((messages.len(), problems.len()), (6, 0));
}

#[test]
fn examples_can_be_openai_messages() {
    let call = |id: &str, name: &str| {
        json!({"id": id, "type": "function",
            "function": {"name": name, "arguments": "{\"limit\": 10}"}})
    };
    let recipe = read(&json!({"name": "r", "examples": [
        {"role": "user", "content": "Which rooms are there?"},
        {"role": "assistant", "content": null, "tool_calls": [call("1", "data/list"), call("2", "b")]},
        {"role": "tool", "tool_call_id": "2", "content": "second"},
        {"role": "tool", "tool_call_id": "1", "content": "first"},
        {"role": "assistant", "content": "Two."},
        {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": "You are welcome."},
    ]}));
    assert_eq!(recipe.examples.len(), 2);
    let step = &recipe.examples[0].calls[0];
    assert_eq!(
        (step[0].tool.as_str(), &step[0].result),
        ("data/list", &json!("first"))
    );
    assert_eq!(step[1].result, json!("second"));
    assert_eq!(step[0].input["limit"], 10);
    for wrong in [
        json!([{"role": "assistant", "content": "x"}]),
        json!([{"role": "user", "content": "x"}]),
        json!([{"role": "user", "content": "x"}, {"role": "user", "content": "x"}]),
        json!([{"role": "user", "content": "x"}, {"role": "tool", "content": "x"}]),
        json!([
            {"role": "user", "content": "x"},
            {"role": "assistant", "tool_calls": [call("1", "a")]},
            {"role": "assistant", "content": "x"},
        ]),
        json!([
            {"role": "user", "content": "x"},
            {"role": "assistant", "tool_calls": [call("1", "a")]},
            {"role": "tool", "tool_call_id": "9", "content": "x"},
        ]),
        json!([{"role": "system", "content": "x"}]),
    ] {
        let error = error(&json!({"name": "r", "examples": wrong}));
        assert!(error.contains("examples"), "{error}");
    }
}
