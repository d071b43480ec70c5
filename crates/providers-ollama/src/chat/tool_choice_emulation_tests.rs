use super::*;

fn tool(name: &str, schema: Value) -> ToolDefinition {
    ToolDefinition::new(name, format!("Does {name}."), schema)
}

#[test]
fn the_name_sorts_before_the_fields_that_depend_on_it() {
    let mut names = [PARAMETERS, NAME];
    names.sort_unstable();
    assert_eq!(names, [NAME, PARAMETERS]);
}

#[test]
fn references_are_adjusted_to_the_moved_definitions() {
    let list = json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "item": {"$ref": "#/$defs/item"}},
        "$defs": {"item": {"enum": [{"$ref": "#/not/a/reference"}]}},
    });
    let tools = [tool("a", json!({"type": "object"})), tool("b", list)];
    // This schema and the schema of a tool have a definition with the same name.
    let answer = json!({
        "type": "object",
        "properties": {"first": {"$ref": "#/definitions/item"}},
        "definitions": {"item": {
            "type": "object",
            "properties": {"more": {"$ref": "#/definitions/item"}},
        }},
    });
    let emulated = EmulatedToolChoice {
        tools: tools.iter().collect(),
        answer: Some(&answer),
    };
    let schema = emulated.build_format_schema(&mut Vec::new());
    let definitions = schema["$defs"].as_object().unwrap();
    let mut names: Vec<_> = definitions.keys().map(String::as_str).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    for name in ["tool1_item", "response_item"] {
        assert!(names.contains(&name), "{names:?}");
    }
    // Every reference has a definition, and every definition is referred to.
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
