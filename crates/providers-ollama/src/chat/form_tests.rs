use super::*;

fn tool(name: &str, schema: Value) -> ToolDefinition {
    ToolDefinition::new(name, format!("Does {name}."), schema)
}

#[test]
fn one_tool_gives_one_object_schema() {
    let only = tool(
        "get_weather",
        json!({"type": "object", "properties": {"city": {"type": "string"}}}),
    );
    let emulated = Emulated {
        tools: vec![&only],
        answer: None,
    };
    assert_eq!(
        emulated.schema(&mut Vec::new()),
        json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "enum": ["get_weather"]},
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
            },
            "required": ["name", "parameters"],
            "additionalProperties": false,
        })
    );
    assert_eq!(emulated.form().tools, ["get_weather"]);
}

#[test]
fn the_name_sorts_before_the_fields_that_depend_on_it() {
    let mut names = [PARAMETERS, NAME];
    names.sort_unstable();
    assert_eq!(names, [NAME, PARAMETERS]);
}

#[test]
fn several_tools_and_an_answer_give_alternatives() {
    let tools = [tool("a", json!({"type": "object"})), tool("b", json!(true))];
    let answer = json!({"type": "array", "items": {"type": "integer"}});
    let emulated = Emulated {
        tools: tools.iter().collect(),
        answer: Some(&answer),
    };
    let schema = emulated.schema(&mut Vec::new());
    let arms = schema["anyOf"].as_array().unwrap();
    assert_eq!(arms.len(), 3);
    assert_eq!(arms[0]["properties"]["name"]["enum"], json!(["a"]));
    // An input is an object even if its schema does not say so.
    assert_eq!(
        arms[1]["properties"]["parameters"],
        json!({"type": "object", "properties": {}})
    );
    assert_eq!(arms[2]["properties"], json!({"response": answer}));
    assert!(schema.get("$defs").is_none());
    assert!(emulated.form().may_answer);
}

#[test]
fn references_are_adjusted_to_the_moved_definitions() {
    let list = json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "item": {"$ref": "#/$defs/item"}},
        "$defs": {"item": {"enum": [{"$ref": "#/not/a/reference"}]}},
    });
    let tools = [tool("a", json!({"type": "object"})), tool("b", list)];
    // Two definitions have the same name.
    let answer = json!({
        "type": "object",
        "properties": {"first": {"$ref": "#/definitions/item"}},
        "definitions": {"item": {
            "type": "object",
            "properties": {"more": {"$ref": "#/definitions/item"}},
        }},
    });
    let emulated = Emulated {
        tools: tools.iter().collect(),
        answer: Some(&answer),
    };
    let schema = emulated.schema(&mut Vec::new());
    let definitions = schema["$defs"].as_object().unwrap();
    let mut names: Vec<_> = definitions.keys().map(String::as_str).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    for name in ["tool1_item", "response_item"] {
        assert!(names.contains(&name), "{names:?}");
    }
    // Every reference has a definition, and every definition a reference.
    let text = schema.to_string();
    for reference in text.split("\"$ref\":\"").skip(1) {
        let (pointer, _) = reference.split_once('"').unwrap();
        if pointer == "#/not/a/reference" {
            continue;
        }
        let found = schema.pointer(pointer.trim_start_matches('#'));
        assert!(found.is_some(), "{pointer} in {schema:#}");
        names.retain(|name| !pointer.ends_with(name));
    }
    assert_eq!(names, [""; 0]);
    assert!(text.contains("#/not/a/reference"), "a value is not touched");
}

#[test]
fn the_instructions_describe_what_the_grammar_cannot_express() {
    let only = tool("get_weather", json!({"type": "object"}));
    let mut emulated = Emulated {
        tools: vec![&only],
        answer: None,
    };
    let told = emulated.instructions();
    assert!(told.contains("Does get_weather."), "{told}");
    assert!(told.contains(r#""parameters""#), "{told}");
    assert!(!told.contains("response"), "{told}");
    let answer = json!({"type": "object", "properties": {"degrees": {"type": "number"}}});
    emulated.answer = Some(&answer);
    let told = emulated.instructions();
    assert!(told.contains("degrees"), "{told}");
    assert!(told.contains(r#"{"response""#), "{told}");
}
