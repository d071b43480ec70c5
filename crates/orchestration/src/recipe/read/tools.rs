//! From the tools of a document to [`ToolRules`].

use serde_json::{Map, Value};

use super::{
    super::{
        RecipeError, ToolPolicy, ToolRules,
        fields::{Fields, Key},
    },
    policy,
};

const TOOLS: [Key; 6] = [
    ("enabled", &[]),
    (
        "allow",
        &[
            "whitelist",
            "white_list",
            "allowlist",
            "allowed_tools",
            "allowed",
        ],
    ),
    (
        "exclude",
        &["blacklist", "denylist", "exclude_tools", "excluded"],
    ),
    ("descriptions", &["description_overrides", "overrides"]),
    ("tools", &["list"]),
    ("policy", &["tool_policy"]),
];
const TOOL: [Key; 3] = [("name", &["tool"]), ("description", &[]), ("enabled", &[])];

pub(super) fn tools(
    fields: &Fields<'_>,
    policy_of_tools: &mut ToolPolicy,
) -> Result<ToolRules, RecipeError> {
    let mut rules = ToolRules::default();
    let place = fields.path("tools");
    match fields.get("tools") {
        None => {}
        Some(Value::Bool(enabled)) => rules.enabled = *enabled,
        Some(list @ Value::Array(_)) => listed(list, &place, &mut rules)?,
        Some(map) => {
            let inner = Fields::of(map, &place, &TOOLS)?;
            rules.enabled = inner.flag("enabled")?.unwrap_or(true);
            if let Some(list) = inner.get("allow") {
                listed(list, &inner.path("allow"), &mut rules)?;
            }
            if let Some(list) = inner.get("tools") {
                listed(list, &inner.path("tools"), &mut rules)?;
            }
            rules
                .exclude
                .extend(inner.names("exclude")?.unwrap_or_default());
            if let Some(descriptions) = inner.get("descriptions") {
                described(descriptions, &inner.path("descriptions"), &mut rules)?;
            }
            policy(&inner, policy_of_tools)?;
        }
    }
    Ok(rules)
}

/// A list of tools: names, or maps of a name and a description.
fn listed(list: &Value, place: &str, rules: &mut ToolRules) -> Result<(), RecipeError> {
    let wrong = || RecipeError::wrong(place, "a list of names, or of maps with `name`");
    let one = [list.clone()];
    let items = match list {
        Value::Array(items) => items.as_slice(),
        Value::String(_) => &one,
        _ => return Err(wrong()),
    };
    let allow = rules.allow.get_or_insert_default();
    for (index, item) in items.iter().enumerate() {
        match item {
            Value::String(name) if !name.trim().is_empty() => allow.push(name.trim().to_owned()),
            Value::Object(_) => {
                let fields = Fields::of(item, &format!("{place}[{index}]"), &TOOL)?;
                let name = fields.required_text("name")?;
                if fields.flag("enabled")? == Some(false) {
                    rules.exclude.push(name);
                    continue;
                }
                if let Some(text) = fields.text("description")? {
                    rules.descriptions.push((name.clone(), text));
                }
                allow.push(name);
            }
            _ => return Err(wrong()),
        }
    }
    Ok(())
}

fn described(value: &Value, place: &str, rules: &mut ToolRules) -> Result<(), RecipeError> {
    let wrong = || RecipeError::wrong(place, "a map of tools and their descriptions");
    let map: &Map<String, Value> = value.as_object().ok_or_else(wrong)?;
    for (name, text) in map {
        let text = text.as_str().map(str::trim).ok_or_else(wrong)?;
        rules.descriptions.push((name.clone(), text.to_owned()));
    }
    Ok(())
}
