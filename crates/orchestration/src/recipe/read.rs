//! Parsing of recipe documents.
//!
//! A document is normalized first: keys become `snake_case`, and `tools: false` and other
//! abbreviations become maps. Serde then checks the keys and types.

use heck::ToSnakeCase as _;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value, json};
use switchboard_domain::{JsonObject, similar_names::find_nearest};

use super::{Recipe, RecipeError, openai_messages::examples_from_openai_messages};
use crate::strategy::{GatherFormat, Strategy};

const MAX_NAME_BYTES: usize = 64;

/// Key that marks a recipe of another program. The file contains it as `uniqueId`, which
/// [`normalize_recipe_document`] converts to `snake_case`.
const FOREIGN_KEY: &str = "unique_id";

/// Keys whose values [`normalize_recipe_document`] does not change, because they contain a schema,
/// a tool input, a tool result or tool names.
const OPAQUE_KEYS: [&str; 5] = ["descriptions", "input", "result", "schema", "formatter"];

/// Parses a recipe in the format of this program. A recipe with the key `uniqueId` is in the format
/// of another program and is converted first.
pub(super) fn parse_recipe(value: &Value) -> Result<Recipe, RecipeError> {
    let Value::Object(mut document) = normalize_recipe_document(value) else {
        return Err(RecipeError::new("", "the recipe must be a map"));
    };
    let mut ignored = Vec::new();
    if document.contains_key(FOREIGN_KEY) {
        (document, ignored) = convert_foreign_recipe(value)?;
    }
    expand_short_forms(&mut document)?;
    let formatter = document.shift_remove("formatter");
    let mut recipe: Recipe =
        serde_path_to_error::deserialize(Value::Object(document)).map_err(|error| {
            RecipeError::new(error.path().to_string(), explain_error(&error.into_inner()))
        })?;
    if recipe.name.is_empty() {
        return Err(RecipeError::new("", "missing field `name`"));
    }
    recipe.tools.merge_listed_tools();
    recipe.strategy = resolve_strategy(recipe.strategy, formatter)?;
    recipe.ignored = ignored;
    Ok(recipe)
}

/// Returns the strategy of a recipe. If the recipe has `formatter`, a JSON Schema for answers, the
/// strategy is `gather-format` with this schema. Returns an error if `formatter` is not an object
/// or contradicts `strategy`.
fn resolve_strategy(
    strategy: Option<Strategy>,
    formatter: Option<Value>,
) -> Result<Option<Strategy>, RecipeError> {
    let Some(schema) = formatter else {
        return Ok(strategy);
    };
    let error = |message| Err(RecipeError::new("formatter", message));
    if !schema.is_object() {
        return error("expected a JSON Schema");
    }
    let mut settings = match strategy {
        None => GatherFormat::default(),
        Some(Strategy::GatherFormat(settings)) => settings,
        Some(Strategy::Loop) => {
            return error("a schema of the answer needs the strategy `gather-format`");
        }
    };
    if settings.schema.replace(schema).is_some() {
        return error("the schema is also set in `strategy`; remove one of them");
    }
    Ok(Some(Strategy::GatherFormat(settings)))
}

/// Converts a recipe of another program to this program's format. Also returns the keys of the
/// recipe that this program does not support and ignores.
///
/// In the recipe of the other program, `uniqueId` is the name, `name` is the title, and `strategy`
/// contains the tools, their policy and rules for answers.
fn convert_foreign_recipe(written: &Value) -> Result<(JsonObject, Vec<String>), RecipeError> {
    let mut recipe = Map::new();
    let mut ignored = Vec::new();
    let fields = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let strategy = written.get("strategy").map(fields).unwrap_or_default();
    let strategy = strategy.into_iter().map(|field| ("strategy.", field));
    for (prefix, (key, value)) in fields(written)
        .into_iter()
        .map(|it| ("", it))
        .chain(strategy)
    {
        let value = normalize_recipe_document(&value);
        match key.to_snake_case().as_str() {
            FOREIGN_KEY => {
                recipe.insert("name".to_owned(), value);
            }
            "name" => {
                recipe.entry("title").or_insert(value);
            }
            "display_name" => {
                recipe.insert("title".to_owned(), value);
            }
            "strategy" => {}
            known @ ("title" | "description" | "model" | "instructions" | "system_prompt"
            | "tools" | "mcp_tools" | "policy" | "tool_policy" | "examples"
            | "reasoning" | "formatter" | "temperature" | "stream" | "limits"
            | "response_rules") => {
                recipe.insert(known.to_owned(), value);
            }
            _ => ignored.push(format!("{prefix}{key}")),
        }
    }
    if let Some(rules) = recipe.shift_remove("response_rules") {
        let rules = Vec::<String>::deserialize(rules)
            .map_err(|error| RecipeError::new("strategy.responseRules", error.to_string()))?;
        let rules: Vec<String> = rules.iter().map(|rule| format!("- {rule}")).collect();
        let rules = format!("Rules for your answers:\n{}", rules.join("\n"));
        let prompt = recipe
            .shift_remove("instructions")
            .or_else(|| recipe.shift_remove("system_prompt"));
        let instructions = match prompt.as_ref().and_then(Value::as_str) {
            Some(prompt) => format!("{prompt}\n\n{rules}"),
            None => rules,
        };
        recipe.insert("instructions".to_owned(), instructions.into());
    }
    Ok((recipe, ignored))
}

/// Replaces short forms in a recipe, such as `tools: false`, by the maps that [`Recipe`] expects.
fn expand_short_forms(document: &mut JsonObject) -> Result<(), RecipeError> {
    let tools = ["tools", "mcp_tools"]
        .iter()
        .find(|key| document.contains_key(**key));
    if let Some(Value::Object(tools)) = tools.and_then(|key| document.get_mut(*key))
        && let Some(policy) = tools
            .shift_remove("policy")
            .or_else(|| tools.shift_remove("tool_policy"))
        && (document.insert("policy".to_owned(), policy).is_some()
            || document.contains_key("tool_policy"))
    {
        let message = "the policy is also set in `tools.policy`; remove one of them";
        return Err(RecipeError::new("policy", message));
    }
    for (key, value) in document.iter_mut() {
        match key.as_str() {
            "tools" | "mcp_tools" => {
                if value.is_boolean() {
                    *value = json!({"enabled": value});
                } else if value.is_array() {
                    *value = json!({"tools": value});
                }
                let tools = value.get_mut("tools").and_then(Value::as_array_mut);
                for tool in tools.into_iter().flatten().filter(|tool| tool.is_string()) {
                    *tool = json!({"name": tool});
                }
            }
            "examples" => {
                let Value::Array(items) = value else {
                    continue;
                };
                if items.iter().any(|item| item.get("role").is_some()) {
                    *value = examples_from_openai_messages(items)?;
                    continue;
                }
                for example in items {
                    let steps = example.get_mut("calls").and_then(Value::as_array_mut);
                    for step in steps.into_iter().flatten().filter(|step| step.is_object()) {
                        *step = json!([step]);
                    }
                }
            }
            "reasoning" if value.is_string() => *value = json!({"style": value}),
            // A value with the key `type` is the schema itself. Another value can be a map that
            // contains the schema under the key `schema`.
            "formatter" if value.get("type").is_none() => {
                if let Some(schema) = value.get_mut("schema") {
                    *value = schema.take();
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns a copy of a recipe document with `snake_case` keys and trimmed texts. Properties that
/// are null or blank are removed.
fn normalize_recipe_document(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let properties = map.iter().map(|(key, value)| {
                let key = key.to_snake_case();
                let is_opaque = OPAQUE_KEYS.contains(&key.as_str());
                let value = if is_opaque {
                    value.clone()
                } else {
                    normalize_recipe_document(value)
                };
                (key, value)
            });
            let is_set = |value: &Value| !value.is_null() && value != "";
            properties.filter(|(_, value)| is_set(value)).collect()
        }
        Value::Array(items) => items.iter().map(normalize_recipe_document).collect(),
        Value::String(text) => text.trim().into(),
        other => other.clone(),
    }
}

/// Returns the error message of serde. For an unknown key or value, returns a message that suggests
/// the most similar known one, if there is one.
fn explain_error(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let kind = match message.split('`').next() {
        Some("unknown field ") => "key",
        Some("unknown variant ") => "value",
        _ => return message,
    };
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().unwrap_or_default();
    match find_nearest(unknown, quoted) {
        Some(nearest) => format!("unknown {kind} `{unknown}` (did you mean `{nearest}`?)"),
        None => message,
    }
}

pub(super) fn deserialize_recipe_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() > MAX_NAME_BYTES || !name.chars().all(is_allowed) || name.starts_with('.') {
        return Err(de::Error::custom(
            "a name has at most 64 letters, digits, `-`, `_` and `.`, and does not start with `.`",
        ));
    }
    Ok(name)
}

pub(super) fn deserialize_descriptions<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, String)>, D::Error> {
    let fields = JsonObject::deserialize(deserializer)?.into_iter();
    let texts = fields.map(|(name, text)| match text {
        Value::String(text) => Ok((name, text.trim().to_owned())),
        _ => Err(de::Error::custom(format!(
            "the description of `{name}` must be a string"
        ))),
    });
    texts.collect()
}
