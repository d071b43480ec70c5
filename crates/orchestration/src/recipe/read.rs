//! Parsing of recipe documents.
//!
//! A document is normalized first: keys to `snake_case`, short forms to maps. Serde then checks the
//! keys and types.

use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value, json};
use switchboard_domain::{JsonObject, nearest::nearest};

use super::{
    Example, Reasoning, Recipe, RecipeError, RecipeLimits, ToolPolicy, ToolRules,
    messages::examples_from_messages,
};
use crate::strategy::{GatherFormat, Strategy};

const MAX_NAME_BYTES: usize = 64;

/// The key that identifies a recipe of another program.
const FOREIGN_KEY: &str = "unique_id";

/// Keys whose values keep their own keys: schemas, tool inputs, results and tool names.
const OPAQUE_KEYS: [&str; 5] = ["descriptions", "input", "result", "schema", "formatter"];

/// Parses a recipe in our form, or in the form of another program.
pub(super) fn recipe(value: &Value) -> Result<Recipe, RecipeError> {
    let Value::Object(mut document) = normalized(value) else {
        return Err(RecipeError::new("", "the recipe must be a map of keys"));
    };
    let mut ignored = Vec::new();
    if document.contains_key(FOREIGN_KEY) {
        (document, ignored) = converted(value)?;
    }
    expand_short_forms(&mut document)?;
    let document: Document =
        serde_path_to_error::deserialize(Value::Object(document)).map_err(|error| {
            RecipeError::new(error.path().to_string(), explain(&error.into_inner()))
        })?;
    let recipe = document.into_recipe()?;
    Ok(Recipe { ignored, ..recipe })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(deserialize_with = "name")]
    name: String,
    #[serde(default, deserialize_with = "optional_text")]
    title: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    description: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    model: Option<String>,
    #[serde(default, alias = "system_prompt", deserialize_with = "optional_text")]
    instructions: Option<String>,
    #[serde(default, alias = "mcp_tools")]
    tools: Tools,
    #[serde(default, alias = "tool_policy")]
    policy: ToolPolicy,
    #[serde(default)]
    examples: Vec<Example>,
    #[serde(default)]
    reasoning: Reasoning,
    strategy: Option<Strategy>,
    formatter: Option<JsonObject>,
    #[serde(default, deserialize_with = "super::policy::optional_amount")]
    temperature: Option<f64>,
    stream: Option<bool>,
    #[serde(default)]
    limits: RecipeLimits,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Tools {
    enabled: Option<bool>,
    #[serde(alias = "whitelist")]
    allow: Option<Vec<String>>,
    exclude: Vec<String>,
    #[serde(deserialize_with = "descriptions")]
    descriptions: Vec<(String, String)>,
    #[serde(rename = "tools")]
    listed: Option<Vec<Tool>>,
    #[serde(alias = "tool_policy")]
    policy: ToolPolicy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a name or a map with `name`")]
struct Tool {
    #[serde(deserialize_with = "text")]
    name: String,
    #[serde(default, deserialize_with = "optional_text")]
    description: Option<String>,
}

impl Document {
    fn into_recipe(self) -> Result<Recipe, RecipeError> {
        let (tools, policy_of_tools) = self.tools.into_rules();
        let mut policy = self.policy;
        if policy.is_empty() {
            policy = policy_of_tools;
        } else if !policy_of_tools.is_empty() {
            let message = "the policy is also set in `tools.policy`; remove one of them";
            return Err(RecipeError::new("policy", message));
        }
        Ok(Recipe {
            name: self.name,
            title: self.title,
            description: self.description,
            model: self.model,
            instructions: self.instructions,
            tools,
            policy,
            examples: self.examples,
            reasoning: self.reasoning,
            strategy: strategy(self.strategy, self.formatter)?,
            temperature: self.temperature,
            stream: self.stream,
            limits: self.limits,
            ignored: Vec::new(),
        })
    }
}

impl Tools {
    fn into_rules(self) -> (ToolRules, ToolPolicy) {
        let mut rules = ToolRules {
            enabled: self.enabled.unwrap_or(true),
            allow: self.allow,
            exclude: self.exclude,
            descriptions: Vec::new(),
        };
        for tool in self.listed.iter().flatten() {
            let description = tool.description.clone();
            let described = description.map(|text| (tool.name.clone(), text));
            rules.descriptions.extend(described);
        }
        if let Some(tools) = self.listed {
            let allow = rules.allow.get_or_insert_default();
            allow.extend(tools.into_iter().map(|tool| tool.name));
        }
        rules.descriptions.extend(self.descriptions);
        (rules, self.policy)
    }
}

/// Returns the strategy. A schema of the answer requires the strategy `gather-format`.
fn strategy(
    strategy: Option<Strategy>,
    formatter: Option<JsonObject>,
) -> Result<Option<Strategy>, RecipeError> {
    let Some(schema) = formatter else {
        return Ok(strategy);
    };
    let mut settings = match strategy {
        None => GatherFormat::default(),
        Some(Strategy::GatherFormat(settings)) => settings,
        Some(Strategy::Loop) => {
            let message = "a schema of the answer needs the strategy `gather-format`";
            return Err(RecipeError::new("formatter", message));
        }
    };
    if settings.schema.replace(Value::Object(schema)).is_some() {
        let message = "the schema is also set in `strategy`; remove one of them";
        return Err(RecipeError::new("formatter", message));
    }
    Ok(Some(Strategy::GatherFormat(settings)))
}

/// Converts a recipe of another program to our form and returns the keys that have no meaning here.
///
/// There, `name` is the title, and `strategy` contains the tools, their policy and rules for
/// answers.
fn converted(written: &Value) -> Result<(JsonObject, Vec<String>), RecipeError> {
    let mut recipe = Map::new();
    let mut ignored = Vec::new();
    let mut rules = Vec::new();
    let fields = |value: &Value| value.as_object().cloned().unwrap_or_default();
    for (key, value) in fields(written) {
        let value = normalized(&value);
        match snake_case(&key).as_str() {
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
            | "reasoning" | "formatter" | "temperature" | "stream" | "limits") => {
                recipe.insert(known.to_owned(), value);
            }
            _ => ignored.push(key),
        }
    }
    for (key, value) in written.get("strategy").map(fields).unwrap_or_default() {
        let value = normalized(&value);
        match snake_case(&key).as_str() {
            known @ ("tools" | "mcp_tools" | "policy" | "tool_policy") => {
                recipe.insert(known.to_owned(), value);
            }
            "response_rules" => {
                rules = Vec::<String>::deserialize(value).map_err(|error| {
                    RecipeError::new(format!("strategy.{key}"), error.to_string())
                })?;
            }
            _ => ignored.push(format!("strategy.{key}")),
        }
    }
    if !rules.is_empty() {
        let rules: Vec<String> = rules.iter().map(|rule| format!("- {rule}")).collect();
        let rules = format!("Rules for your answers:\n{}", rules.join("\n"));
        let prompt = recipe
            .shift_remove("instructions")
            .or_else(|| recipe.shift_remove("system_prompt"));
        let instructions = match prompt.as_ref().and_then(Value::as_str) {
            Some(prompt) => format!("{}\n\n{rules}", prompt.trim()),
            None => rules,
        };
        recipe.insert("instructions".to_owned(), instructions.into());
    }
    Ok((recipe, ignored))
}

/// Replaces short forms by the maps that [`Document`] expects.
fn expand_short_forms(document: &mut JsonObject) -> Result<(), RecipeError> {
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
                    *value = examples_from_messages(items)?;
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
            // Another map with `schema` is a schema with this unknown keyword.
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

/// Returns the value with `snake_case` keys and without properties that are null.
fn normalized(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let properties = map.iter().filter(|(_, value)| !value.is_null());
            let properties = properties.map(|(key, value)| {
                let key = snake_case(key);
                let is_opaque = OPAQUE_KEYS.contains(&key.as_str());
                let value = if is_opaque {
                    value.clone()
                } else {
                    normalized(value)
                };
                (key, value)
            });
            properties.collect()
        }
        Value::Array(items) => items.iter().map(normalized).collect(),
        other => other.clone(),
    }
}

/// Converts `camelCase` and `kebab-case` to `snake_case`.
fn snake_case(key: &str) -> String {
    let mut name = String::new();
    let mut is_word = false;
    for c in key.chars() {
        if c.is_ascii_uppercase() && is_word {
            name.push('_');
        }
        is_word = c.is_ascii_lowercase() || c.is_ascii_digit();
        name.push(if c == '-' {
            '_'
        } else {
            c.to_ascii_lowercase()
        });
    }
    name
}

/// Returns serde's message, or the most similar key or value if one is unknown.
fn explain(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let kind = match message.split('`').next() {
        Some("unknown field ") => "key",
        Some("unknown variant ") => "value",
        _ => return message,
    };
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().unwrap_or_default();
    match nearest(unknown, quoted) {
        Some(nearest) => format!("unknown {kind} `{unknown}` (did you mean `{nearest}`?)"),
        None => message,
    }
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = text(deserializer)?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() > MAX_NAME_BYTES || !name.chars().all(is_allowed) || name.starts_with('.') {
        return Err(de::Error::custom(
            "a name has at most 64 letters, digits, `-`, `_` and `.`, and does not start with `.`",
        ));
    }
    Ok(name)
}

/// Reads a text that is not blank.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.trim() {
        "" => Err(de::Error::custom("the text is empty")),
        text => Ok(text.to_owned()),
    }
}

fn optional_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    text(deserializer).map(Some)
}

fn descriptions<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, String)>, D::Error> {
    let fields = JsonObject::deserialize(deserializer)?.into_iter();
    let texts = fields.map(|(name, text)| match text {
        Value::String(text) => Ok((name, text.trim().to_owned())),
        _ => Err(de::Error::custom(format!(
            "the description of `{name}` must be a text"
        ))),
    });
    texts.collect()
}
