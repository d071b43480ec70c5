//! Parsing of recipe documents.
//!
//! A document is normalized first: keys to `snake_case`, short forms to maps. Serde then checks the
//! keys and types.

use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value, json};
use switchboard_domain::{JsonObject, ReasoningEffort, nearest::nearest};

use super::{
    Example, ExampleCall, Reasoning, ReasoningStyle, Recipe, RecipeError, RecipeLimits, ToolPolicy,
    ToolRules, messages::examples_from_messages,
};
use crate::strategy::{GatherFormat, Strategy};

const MAX_NAME_BYTES: usize = 64;

/// The key that identifies a recipe of the other programs.
const FOREIGN_KEY: &str = "unique_id";

/// Keys whose values keep their own keys: schemas, tool inputs, results and tool names.
const OPAQUE_KEYS: [&str; 12] = [
    "descriptions",
    "description_overrides",
    "overrides",
    "input",
    "arguments",
    "args",
    "result",
    "output",
    "schema",
    "formatter",
    "formatter_schema",
    "response_schema",
];

/// Keys of lists of tools.
const TOOL_LISTS: [&str; 8] = [
    "allow",
    "whitelist",
    "white_list",
    "allowlist",
    "allowed_tools",
    "allowed",
    "tools",
    "list",
];

/// Parses a recipe in our form, or in the form of other programs.
pub(super) fn recipe(value: &Value) -> Result<Recipe, RecipeError> {
    let Value::Object(document) = normalized(value, "")? else {
        return Err(RecipeError::new("", "the recipe must be a map of keys"));
    };
    let (mut document, mut ignored) = if document.contains_key(FOREIGN_KEY) {
        converted(document)?
    } else {
        (document, Vec::new())
    };
    if !ignored.is_empty() {
        ignored = with_written_keys(value, ignored);
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
    #[serde(alias = "id", deserialize_with = "name")]
    name: String,
    #[serde(default, alias = "display_name", deserialize_with = "optional_text")]
    title: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    description: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    model: Option<String>,
    #[serde(
        default,
        alias = "system_prompt",
        alias = "prompt",
        alias = "system",
        deserialize_with = "optional_text"
    )]
    instructions: Option<String>,
    #[serde(default, alias = "mcp_tools")]
    tools: Tools,
    #[serde(default, alias = "tool_policy")]
    policy: ToolPolicy,
    #[serde(default, alias = "few_shot", alias = "few_shot_examples")]
    examples: Vec<ExampleDocument>,
    #[serde(default, alias = "reasoning_style")]
    reasoning: ReasoningDocument,
    strategy: Option<StrategyDocument>,
    #[serde(alias = "formatter_schema", alias = "response_schema")]
    formatter: Option<Formatter>,
    #[serde(default, deserialize_with = "super::policy::optional_amount")]
    temperature: Option<f64>,
    stream: Option<bool>,
    #[serde(default)]
    limits: RecipeLimits,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Tools {
    enabled: Option<bool>,
    #[serde(
        alias = "whitelist",
        alias = "white_list",
        alias = "allowlist",
        alias = "allowed_tools",
        alias = "allowed"
    )]
    allow: Option<Vec<Tool>>,
    #[serde(
        default,
        alias = "blacklist",
        alias = "denylist",
        alias = "exclude_tools",
        alias = "excluded"
    )]
    exclude: Names,
    #[serde(default, alias = "description_overrides", alias = "overrides")]
    descriptions: Map<String, Value>,
    #[serde(rename = "tools", alias = "list")]
    listed: Option<Vec<Tool>>,
    #[serde(default, alias = "tool_policy")]
    policy: ToolPolicy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a name or a map with `name`")]
struct Tool {
    #[serde(alias = "tool", deserialize_with = "text")]
    name: String,
    #[serde(default, deserialize_with = "optional_text")]
    description: Option<String>,
    enabled: Option<bool>,
}

/// One name or a list of names.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a name or a list of names")]
pub(super) enum Names {
    One(String),
    Many(Vec<String>),
}

impl Default for Names {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Names {
    pub(super) fn into_vec(self) -> Vec<String> {
        let names = match self {
            Self::One(name) => vec![name],
            Self::Many(names) => names,
        };
        names.iter().map(|name| name.trim().to_owned()).collect()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExampleDocument {
    #[serde(alias = "question", alias = "input", deserialize_with = "text")]
    user: String,
    #[serde(default, alias = "tool_calls")]
    calls: Vec<Vec<Call>>,
    #[serde(alias = "assistant", alias = "output", deserialize_with = "text")]
    answer: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    #[serde(alias = "name", deserialize_with = "text")]
    tool: String,
    #[serde(
        default,
        alias = "arguments",
        alias = "args",
        deserialize_with = "input"
    )]
    input: JsonObject,
    #[serde(alias = "output")]
    result: Value,
    #[serde(default, alias = "error")]
    is_error: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct ReasoningDocument {
    #[serde(default)]
    style: ReasoningStyle,
    effort: Option<ReasoningEffort>,
}

/// The name of a strategy and its settings.
#[derive(Deserialize)]
enum StrategyDocument {
    #[serde(rename = "loop")]
    Loop {},
    #[serde(rename = "gather_format")]
    GatherFormat(GatherFormatDocument),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GatherFormatDocument {
    #[serde(
        default,
        alias = "max_steps",
        deserialize_with = "super::policy::optional_count"
    )]
    max_thinking_steps: Option<u32>,
    #[serde(alias = "max_described_tools")]
    described_tools: Option<usize>,
    review: Option<bool>,
    schema: Option<JsonObject>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Formatter {
    schema: JsonObject,
}

impl Document {
    fn into_recipe(self) -> Result<Recipe, RecipeError> {
        let (tools, policy_of_tools) = self.tools.into_rules()?;
        let policy = match (self.policy.is_empty(), policy_of_tools.is_empty()) {
            (_, true) => self.policy,
            (true, false) => policy_of_tools,
            (false, false) => {
                let message = "the policy is also set in `tools.policy`; remove one of them";
                return Err(RecipeError::new("policy", message));
            }
        };
        Ok(Recipe {
            name: self.name,
            title: self.title,
            description: self.description,
            model: self.model,
            instructions: self.instructions,
            tools,
            policy,
            examples: self
                .examples
                .into_iter()
                .map(ExampleDocument::into_example)
                .collect(),
            reasoning: Reasoning {
                style: self.reasoning.style,
                effort: self.reasoning.effort,
            },
            strategy: strategy(self.strategy, self.formatter)?,
            temperature: self.temperature,
            stream: self.stream,
            limits: self.limits,
            ignored: Vec::new(),
        })
    }
}

impl Tools {
    fn into_rules(self) -> Result<(ToolRules, ToolPolicy), RecipeError> {
        let mut rules = ToolRules {
            enabled: self.enabled.unwrap_or(true),
            exclude: self.exclude.into_vec(),
            ..ToolRules::default()
        };
        if self.allow.is_some() || self.listed.is_some() {
            let allow = rules.allow.get_or_insert_default();
            let tools = self.allow.into_iter().chain(self.listed).flatten();
            for tool in tools {
                if tool.enabled == Some(false) {
                    rules.exclude.push(tool.name);
                    continue;
                }
                if let Some(text) = tool.description {
                    rules.descriptions.push((tool.name.clone(), text));
                }
                allow.push(tool.name);
            }
        }
        for (name, text) in self.descriptions {
            let Value::String(text) = text else {
                let path = format!("tools.descriptions.{name}");
                return Err(RecipeError::new(path, "the description must be a text"));
            };
            rules.descriptions.push((name, text.trim().to_owned()));
        }
        Ok((rules, self.policy))
    }
}

impl ExampleDocument {
    fn into_example(self) -> Example {
        let steps = self.calls.into_iter().map(|step| {
            let calls = step.into_iter().map(|call| ExampleCall {
                tool: call.tool,
                input: call.input,
                result: call.result,
                is_error: call.is_error,
            });
            calls.collect()
        });
        Example {
            user: self.user,
            calls: steps.collect(),
            answer: self.answer,
        }
    }
}

/// Returns the strategy. A schema of the answer requires the strategy `gather-format`.
fn strategy(
    document: Option<StrategyDocument>,
    formatter: Option<Formatter>,
) -> Result<Option<Strategy>, RecipeError> {
    let mut settings = match document {
        None if formatter.is_none() => return Ok(None),
        None => GatherFormat::default(),
        Some(StrategyDocument::Loop {}) if formatter.is_some() => {
            let message = "a schema of the answer needs the strategy `gather-format`";
            return Err(RecipeError::new("formatter", message));
        }
        Some(StrategyDocument::Loop {}) => return Ok(Some(Strategy::Loop)),
        Some(StrategyDocument::GatherFormat(document)) => {
            let default = GatherFormat::default();
            GatherFormat {
                max_thinking_steps: document
                    .max_thinking_steps
                    .unwrap_or(default.max_thinking_steps),
                described_tools: document.described_tools.unwrap_or(default.described_tools),
                review: document.review.unwrap_or(default.review),
                schema: document.schema.map(Value::Object),
            }
        }
    };
    if let Some(formatter) = formatter {
        if settings.schema.is_some() {
            let message = "the schema is also set in `strategy`; remove one of them";
            return Err(RecipeError::new("formatter", message));
        }
        settings.schema = Some(Value::Object(formatter.schema));
    }
    Ok(Some(Strategy::GatherFormat(settings)))
}

/// Converts a recipe of other programs to our form and returns the keys that have no meaning here.
///
/// There, `name` is the title, and `strategy` contains the tools, their policy and rules for
/// answers.
fn converted(
    mut document: Map<String, Value>,
) -> Result<(Map<String, Value>, Vec<String>), RecipeError> {
    let mut recipe = Map::new();
    let mut ignored = Vec::new();
    let name = document.shift_remove("name");
    recipe.extend(
        document
            .shift_remove(FOREIGN_KEY)
            .map(|id| ("name".to_owned(), id)),
    );
    if let Some(title) = name
        && !document.contains_key("title")
        && !document.contains_key("display_name")
    {
        recipe.insert("title".to_owned(), title);
    }
    let mut rules = Vec::new();
    let mut ignored_in_strategy = Vec::new();
    for (key, value) in document {
        match value {
            Value::Object(strategy) if key == "strategy" && !is_strategy(&strategy) => {
                for (key, value) in strategy {
                    match key.as_str() {
                        "tools" | "mcp_tools" | "policy" | "tool_policy" => {
                            recipe.insert(key, value);
                        }
                        "rules" | "response_rules" => {
                            let names = Names::deserialize(value).map_err(|error| {
                                RecipeError::new(format!("strategy.{key}"), error.to_string())
                            })?;
                            rules = names.into_vec();
                        }
                        _ => ignored_in_strategy.push(format!("strategy.{key}")),
                    }
                }
            }
            value if is_known_key(&key) => {
                recipe.insert(key, value);
            }
            _ => ignored.push(key),
        }
    }
    ignored.extend(ignored_in_strategy);
    if !rules.is_empty() {
        let rules: Vec<String> = rules.iter().map(|rule| format!("- {rule}")).collect();
        let rules = format!("Rules for your answers:\n{}", rules.join("\n"));
        let keys = ["instructions", "system_prompt", "prompt", "system"];
        let key = keys.into_iter().find(|key| recipe.contains_key(*key));
        let key = key.unwrap_or("instructions");
        let instructions = match recipe.get(key).and_then(Value::as_str) {
            Some(prompt) => format!("{}\n\n{rules}", prompt.trim()),
            None => rules,
        };
        recipe.insert(key.to_owned(), instructions.into());
    }
    Ok((recipe, ignored))
}

fn is_strategy(strategy: &Map<String, Value>) -> bool {
    strategy
        .keys()
        .any(|key| key == "loop" || key == "gather_format")
}

/// Returns whether [`Document`] has this key.
fn is_known_key(key: &str) -> bool {
    let probe = Map::from_iter([(key.to_owned(), Value::Null)]);
    match Document::deserialize(Value::Object(probe)) {
        Ok(_) => true,
        Err(error) => !error.to_string().starts_with("unknown field"),
    }
}

/// Returns the ignored keys as the document writes them.
fn with_written_keys(document: &Value, ignored: Vec<String>) -> Vec<String> {
    let written = |map: Option<&Value>, key: &str| {
        let mut keys = map
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys);
        keys.find(|written| snake_case(written) == key).cloned()
    };
    let ignored = ignored.into_iter().map(|path| match path.split_once('.') {
        Some((parent, key)) => {
            let key = written(document.get(parent), key).unwrap_or_else(|| key.to_owned());
            format!("{parent}.{key}")
        }
        None => written(Some(document), &path).unwrap_or(path),
    });
    ignored.collect()
}

/// Replaces short forms by the maps that [`Document`] expects.
fn expand_short_forms(document: &mut Map<String, Value>) -> Result<(), RecipeError> {
    for (key, value) in document.iter_mut() {
        let path = key.as_str();
        match key.as_str() {
            "tools" | "mcp_tools" => match value {
                Value::Bool(enabled) => *value = json!({"enabled": enabled}),
                Value::Array(list) => {
                    let mut list = std::mem::take(list);
                    list.iter_mut().for_each(expand_tool);
                    *value = json!({"tools": list});
                }
                Value::Object(tools) => {
                    let lists = tools.iter_mut();
                    for (_, list) in lists.filter(|(key, _)| TOOL_LISTS.contains(&key.as_str())) {
                        if list.is_string() {
                            *list = json!([list]);
                        }
                        let tools = list.as_array_mut().into_iter().flatten();
                        tools.for_each(expand_tool);
                    }
                }
                _ => {}
            },
            "examples" | "few_shot" | "few_shot_examples" => {
                let Value::Array(items) = value else {
                    continue;
                };
                if !items.is_empty() && items.iter().all(|item| item.get("role").is_some()) {
                    *value = examples_from_messages(items, path)?;
                    continue;
                }
                for example in items.iter_mut().filter_map(Value::as_object_mut) {
                    for key in ["calls", "tool_calls"] {
                        let steps = example.get_mut(key).and_then(Value::as_array_mut);
                        for step in steps.into_iter().flatten().filter(|step| !step.is_array()) {
                            *step = json!([step]);
                        }
                    }
                }
            }
            "reasoning" | "reasoning_style" if value.is_string() => {
                *value = json!({"style": value});
            }
            "strategy" => match value {
                Value::String(name) => *value = json!({snake_case(name): {}}),
                Value::Object(strategy) => {
                    for settings in strategy.values_mut().filter(|it| it.is_null()) {
                        *settings = json!({});
                    }
                }
                _ => {}
            },
            "formatter" | "formatter_schema" | "response_schema"
                if value.get("schema").is_none() || value.get("type").is_some() =>
            {
                *value = json!({"schema": value});
            }
            _ => {}
        }
    }
    Ok(())
}

fn expand_tool(tool: &mut Value) {
    if tool.is_string() {
        *tool = json!({"name": tool});
    }
}

/// Returns the value with `snake_case` keys and without properties that are null.
fn normalized(value: &Value, path: &str) -> Result<Value, RecipeError> {
    match value {
        Value::Object(map) => {
            let mut properties = Map::new();
            // The settings of a strategy may be null.
            let is_set = |value: &Value| !value.is_null() || path == "strategy";
            for (written, value) in map.iter().filter(|(_, value)| is_set(value)) {
                let key = snake_case(written);
                let path = match path {
                    "" => key.clone(),
                    path => format!("{path}.{key}"),
                };
                let value = if OPAQUE_KEYS.contains(&key.as_str()) {
                    value.clone()
                } else {
                    normalized(value, &path)?
                };
                if properties.insert(key, value).is_some() {
                    return Err(RecipeError::new(path, "the key is set twice"));
                }
            }
            Ok(Value::Object(properties))
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(index, item)| normalized(item, &format!("{path}[{index}]")));
            items.collect()
        }
        other => Ok(other.clone()),
    }
}

/// Converts `camelCase` and `kebab-case` to `snake_case`.
fn snake_case(key: &str) -> String {
    let mut name = String::with_capacity(key.len() + 4);
    let mut after_lowercase = false;
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            if after_lowercase {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
            after_lowercase = false;
        } else {
            name.push(if c == '-' { '_' } else { c });
            after_lowercase = c.is_ascii_lowercase() || c.is_ascii_digit();
        }
    }
    name
}

/// Returns serde's message, or the most similar key or value if one is unknown.
fn explain(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(unknown) = quoted.next() else {
        return message;
    };
    let kind = if message.starts_with("unknown field") {
        "key"
    } else if message.starts_with("unknown variant") {
        "value"
    } else {
        return message;
    };
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

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.trim() {
        "" => Err(de::Error::custom("the text is empty")),
        text => Ok(text.to_owned()),
    }
}

fn optional_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    text(deserializer).map(Some)
}

/// Reads arguments as a map, or as the JSON text of one.
fn input<'de, D: Deserializer<'de>>(deserializer: D) -> Result<JsonObject, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let object = match value {
        Value::Object(object) => Some(object),
        Value::String(text) => serde_json::from_str(&text).ok(),
        _ => None,
    };
    object.ok_or_else(|| de::Error::custom("expected a map of arguments"))
}

#[cfg(test)]
mod tests {
    use super::snake_case;

    #[test]
    fn keys_are_converted_to_snake_case() {
        for (written, name) in [
            ("mcpTools", "mcp_tools"),
            ("max_tools_per_run", "max_tools_per_run"),
            ("max-tools-per-run", "max_tools_per_run"),
            ("uniqueId", "unique_id"),
            ("ragTemplate2", "rag_template2"),
            ("ID", "id"),
        ] {
            assert_eq!(snake_case(written), name);
        }
    }
}
