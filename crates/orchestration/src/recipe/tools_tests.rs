use serde_json::json;
use switchboard_domain::ToolOrigin;

use super::*;

fn tool(server: &str, name: &str) -> Arc<ToolDefinition> {
    let mut tool = ToolDefinition::new(
        format!("{server}__{name}"),
        format!("Own {name}."),
        json!({}),
    );
    tool.origin = Some(ToolOrigin {
        server: server.into(),
        tool: name.into(),
    });
    Arc::new(tool)
}

fn tools() -> Vec<Arc<ToolDefinition>> {
    vec![
        tool("crm", "find_customer"),
        tool("crm", "delete_customer"),
        tool("files", "file_load"),
    ]
}

fn recipe(tools: &serde_json::Value) -> Recipe {
    Recipe::from_value(&json!({"name": "r", "tools": tools})).unwrap()
}

fn selected(rules: &serde_json::Value) -> (Vec<String>, Vec<String>) {
    let selected = RecipeTools::new(&recipe(rules)).select_tools(&tools());
    let names = selected
        .tools
        .iter()
        .map(|tool| tool.name.clone())
        .collect();
    (names, selected.problems)
}

#[test]
fn the_allow_list_accepts_names_and_patterns() {
    for (rules, expected) in [
        (
            json!(true),
            &[
                "crm__find_customer",
                "crm__delete_customer",
                "files__file_load",
            ][..],
        ),
        (json!(false), &[]),
        (json!({"enabled": false, "allow": ["crm__*"]}), &[]),
        (json!({"allow": []}), &[]),
        (
            json!(["crm__*"]),
            &["crm__find_customer", "crm__delete_customer"],
        ),
        (json!({"whitelist": ["file/load"]}), &["files__file_load"]),
        (
            json!({"allow": ["*customer"], "exclude": ["delete_*"]}),
            &["crm__find_customer"],
        ),
        (json!({"exclude": ["crm__*"]}), &["files__file_load"]),
        (
            json!([{"name": "file_load", "description": "x"}]),
            &["files__file_load"],
        ),
    ] {
        let (names, problems) = selected(&rules);
        assert_eq!(names, expected, "{rules}");
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn unknown_tool_names_are_reported() {
    let (names, problems) = selected(&json!({
        "allow": ["find_costumer", "file_load", "mail__*"],
        "descriptions": {"find_costumer": "x"},
    }));
    assert_eq!(names, ["files__file_load"]);
    assert_eq!(
        problems,
        [
            "the recipe names the tool `find_costumer`, which does not exist (did you mean `find_customer`?)",
            "the recipe names the tool `mail__*`, which does not exist",
        ]
    );
}

#[test]
fn a_description_replaces_the_description_of_the_tool() {
    let recipe = recipe(&json!({"descriptions": {
        "*_customer": "About a customer.",
        "find_customer": "Finds one.",
    }}));
    let rules = RecipeTools::new(&recipe);
    let tools = tools();
    let first = rules.select_tools(&tools).tools;
    let described: Vec<_> = first.iter().map(|tool| tool.description.as_str()).collect();
    let expected = ["Finds one.", "About a customer.", "Own file_load."];
    assert_eq!(described, expected);
    // Tools without a new description are not copied.
    assert!(Arc::ptr_eq(&first[2], &tools[2]));
    let second = rules.select_tools(&tools).tools;
    assert!(first.iter().zip(&second).all(|(a, b)| Arc::ptr_eq(a, b)));
    // A changed tool gets a new description.
    let mut other = ToolDefinition::clone(&tools[0]);
    other.input_schema = json!({"type": "object"});
    let changed = rules.select_tools(&[Arc::new(other)]).tools;
    assert_eq!(changed[0].input_schema, json!({"type": "object"}));
    assert_eq!(changed[0].description, "Finds one.");
}

#[test]
fn tool_names_of_another_program_match() {
    for (name, own) in [
        ("compile-typescript", "compile"),
        ("test/run/suite", "test_run"),
    ] {
        for own in [own.to_owned(), name.replace('/', "_")] {
            assert!(matches_tool(name, &tool("code", &own)), "{name} {own}");
        }
        assert!(!matches_tool(name, &tool("code", "test_run_all")));
    }
}

#[test]
fn a_server_cannot_gain_access_by_the_name_of_another_tool() {
    let sly = tool("sly", "crm__find_customer");
    assert!(!matches_tool("crm__*", &sly));
    assert!(!matches_tool("crm__find_customer", &sly));
    assert!(matches_tool("sly__*", &sly) && matches_tool("*find_customer", &sly));
    let mut shortened = ToolDefinition::new("files__file_l_4c752f7d", "", json!({}));
    shortened.origin = Some(ToolOrigin {
        server: "files".into(),
        tool: "file.load".into(),
    });
    assert!(matches_tool("files__file_load", &shortened) && matches_tool("file-load", &shortened));
}
