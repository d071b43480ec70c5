//! From a parsed document to a [`Recipe`].

mod examples;
mod tools;

use serde_json::{Map, Value};
use switchboard_domain::ReasoningEffort;

use super::{
    Reasoning, ReasoningStyle, Recipe, RecipeError, RecipeLimits, RequiresApproval, ToolPolicy,
    fields::{Fields, Key, has},
};
use crate::strategy::{GatherFormat, Strategy};
use examples::examples;
use tools::tools;

const KEYS: [Key; 14] = [
    ("name", &["id"]),
    ("title", &["display_name"]),
    ("description", &[]),
    ("model", &[]),
    ("instructions", &["system_prompt", "prompt", "system"]),
    ("tools", &["mcp_tools"]),
    ("policy", &["tool_policy"]),
    ("examples", &["few_shot", "few_shot_examples"]),
    ("reasoning", &["reasoning_style"]),
    ("strategy", &[]),
    ("formatter", &["formatter_schema", "response_schema"]),
    ("temperature", &[]),
    ("stream", &[]),
    ("limits", &[]),
];

/// The key by which a recipe of the other form is known.
const FOREIGN: &str = "unique_id";

const POLICY: [Key; 4] = [
    (
        "max_tools_per_response",
        &["max_tool_calls_per_response", "max_calls_per_response"],
    ),
    (
        "max_tools_per_minute",
        &["max_tool_calls_per_minute", "max_calls_per_minute"],
    ),
    (
        "max_tools_per_run",
        &["max_tool_calls_per_run", "max_tool_calls"],
    ),
    ("requires_approval", &["require_approval"]),
];
const LIMITS: [Key; 6] = [
    ("max_steps", &[]),
    ("max_input_tokens", &[]),
    ("max_output_tokens", &[]),
    ("max_total_tokens", &["max_tokens"]),
    ("max_cost_usd", &["max_cost"]),
    ("max_wall_time", &["max_seconds"]),
];
const REASONING: [Key; 2] = [("style", &[]), ("effort", &[])];
const GATHER: [Key; 4] = [
    ("max_thinking_steps", &["max_steps"]),
    ("described_tools", &["max_described_tools"]),
    ("review", &[]),
    ("schema", &[]),
];
const FORMATTER: [Key; 1] = [("schema", &[])];

const STYLES: [(&str, ReasoningStyle); 3] = [
    ("none", ReasoningStyle::None),
    ("brief", ReasoningStyle::Brief),
    ("structured", ReasoningStyle::Structured),
];
const EFFORTS: [(&str, ReasoningEffort); 4] = [
    ("none", ReasoningEffort::None),
    ("low", ReasoningEffort::Low),
    ("medium", ReasoningEffort::Medium),
    ("high", ReasoningEffort::High),
];

pub(super) fn recipe(value: &Value) -> Result<Recipe, RecipeError> {
    let document = value
        .as_object()
        .ok_or_else(|| RecipeError::wrong("the recipe", "a map of keys"))?;
    if has(document, FOREIGN) {
        return foreign(value);
    }
    let fields = Fields::of(value, "", &KEYS)?;
    let name = name(&fields, "name")?;
    let mut recipe = of_fields(&fields, name)?;
    if let Some(strategy) = fields.get("strategy") {
        recipe.strategy = Some(strategy_of(strategy, &fields.path("strategy"))?);
    }
    add_schema(&mut recipe, &fields)?;
    Ok(recipe)
}

/// A recipe with `uniqueId`, as another program has it: `name` is for people there, `mcpTools` stands
/// inside of `strategy` beside rules for answers, and much else is about that program alone.
fn foreign(value: &Value) -> Result<Recipe, RecipeError> {
    let mut keys = KEYS.to_vec();
    keys.push((FOREIGN, &[]));
    let fields = Fields::lenient(value, "", &keys)?;
    let mut recipe = of_fields(&fields, name(&fields, FOREIGN)?)?;
    recipe.title = match recipe.title {
        Some(title) => Some(title),
        None => fields.text("name")?,
    };
    recipe.ignored = fields.unknown.iter().map(|&key| key.to_owned()).collect();
    match fields.get("strategy") {
        Some(Value::Object(strategy)) if !is_ours(strategy) => {
            let place = fields.path("strategy");
            let value = &Value::Object(strategy.clone());
            let inner = Fields::lenient(
                value,
                &place,
                &[
                    ("tools", &["mcp_tools"]),
                    ("policy", &["tool_policy"]),
                    ("rules", &["response_rules"]),
                ],
            )?;
            if inner.get("tools").is_some() {
                if fields.get("tools").is_some() {
                    return Err(RecipeError::Twice {
                        first: fields.path("tools"),
                        second: inner.path("tools"),
                    });
                }
                recipe.tools = tools(&inner, &mut recipe.policy)?;
            }
            policy(&inner, &mut recipe.policy)?;
            if let Some(rules) = inner.names("rules")? {
                let lines: Vec<String> = rules.iter().map(|rule| format!("- {rule}")).collect();
                let rules = format!("Rules for your answers:\n{}", lines.join("\n"));
                recipe.instructions = Some(match recipe.instructions {
                    Some(prompt) => format!("{prompt}\n\n{rules}"),
                    None => rules,
                });
            }
            let unknown = inner.unknown.iter().map(|key| format!("{place}.{key}"));
            recipe.ignored.extend(unknown);
        }
        Some(strategy) => {
            recipe.strategy = Some(strategy_of(strategy, &fields.path("strategy"))?);
        }
        None => {}
    }
    add_schema(&mut recipe, &fields)?;
    Ok(recipe)
}

/// What both forms have in common.
fn of_fields(fields: &Fields<'_>, name: String) -> Result<Recipe, RecipeError> {
    let mut policy_of_tools = ToolPolicy::default();
    let tools = tools(fields, &mut policy_of_tools)?;
    policy(fields, &mut policy_of_tools)?;
    Ok(Recipe {
        name,
        title: fields.text("title")?,
        description: fields.text("description")?,
        model: fields.text("model")?,
        instructions: fields.text("instructions")?,
        tools,
        policy: policy_of_tools,
        examples: examples(fields)?,
        reasoning: reasoning(fields)?,
        strategy: None,
        temperature: fields.number("temperature")?,
        stream: fields.flag("stream")?,
        limits: limits(fields)?,
        ignored: Vec::new(),
    })
}

fn name(fields: &Fields<'_>, key: &str) -> Result<String, RecipeError> {
    const LONGEST: usize = 64;
    let name = fields.required_text(key)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() > LONGEST || !name.chars().all(is_plain) || name.starts_with('.') {
        return Err(RecipeError::wrong(
            fields.path(key),
            "a name of letters, digits, `-`, `_` and `.`, at most 64 of them",
        ));
    }
    Ok(name)
}

/// Adds what is said under `policy` of these fields to what was said elsewhere.
fn policy(fields: &Fields<'_>, policy: &mut ToolPolicy) -> Result<(), RecipeError> {
    let Some(value) = fields.get("policy") else {
        return Ok(());
    };
    let place = fields.path("policy");
    if !policy.is_empty() {
        return Err(RecipeError::Conflict(format!(
            "`{place}` says what the tools may do, which was said elsewhere, too: keep one of them"
        )));
    }
    let fields = Fields::of(value, &place, &POLICY)?;
    *policy = ToolPolicy {
        max_tools_per_response: fields.count("max_tools_per_response")?,
        max_tools_per_minute: fields.count("max_tools_per_minute")?,
        max_tools_per_run: fields.count("max_tools_per_run")?,
        requires_approval: match fields.get("requires_approval") {
            None => None,
            Some(Value::Bool(false)) => Some(RequiresApproval::Never),
            Some(Value::Bool(true)) => Some(RequiresApproval::Always),
            // Else it would be a tool of that name, and nothing would be asked for.
            Some(Value::String(word)) if is_yes_or_no(word) => {
                return Err(RecipeError::wrong(
                    fields.path("requires_approval"),
                    "true, false or a list of tools",
                ));
            }
            Some(Value::String(_) | Value::Array(_)) => fields
                .names("requires_approval")?
                .map(RequiresApproval::For),
            Some(_) => {
                return Err(RecipeError::wrong(
                    fields.path("requires_approval"),
                    "true, false or a list of tools",
                ));
            }
        },
    };
    Ok(())
}

fn is_yes_or_no(word: &str) -> bool {
    [
        "always", "never", "all", "none", "yes", "no", "true", "false",
    ]
    .iter()
    .any(|known| word.trim().eq_ignore_ascii_case(known))
}

fn limits(fields: &Fields<'_>) -> Result<RecipeLimits, RecipeError> {
    let Some(value) = fields.get("limits") else {
        return Ok(RecipeLimits::default());
    };
    let fields = Fields::of(value, &fields.path("limits"), &LIMITS)?;
    Ok(RecipeLimits {
        max_steps: fields.count("max_steps")?,
        max_input_tokens: fields.big_count("max_input_tokens")?,
        max_output_tokens: fields.big_count("max_output_tokens")?,
        max_total_tokens: fields.big_count("max_total_tokens")?,
        max_cost_usd: fields.number("max_cost_usd")?,
        max_wall_time: fields.number("max_wall_time")?,
    })
}

fn reasoning(fields: &Fields<'_>) -> Result<Reasoning, RecipeError> {
    match fields.get("reasoning") {
        None => Ok(Reasoning::default()),
        Some(Value::String(_)) => Ok(Reasoning {
            style: fields.one_of("reasoning", &STYLES)?.unwrap_or_default(),
            effort: None,
        }),
        Some(map) => {
            let fields = Fields::of(map, &fields.path("reasoning"), &REASONING)?;
            Ok(Reasoning {
                style: fields.one_of("style", &STYLES)?.unwrap_or_default(),
                effort: fields.one_of("effort", &EFFORTS)?,
            })
        }
    }
}

/// The names of strategies, under any of the ways to write them.
fn strategy_name(written: &str) -> String {
    super::fields::snake(written).replace('_', "-")
}

fn is_ours(strategy: &Map<String, Value>) -> bool {
    strategy
        .keys()
        .any(|key| strategy_name(key).parse::<Strategy>().is_ok())
}

fn strategy_of(value: &Value, place: &str) -> Result<Strategy, RecipeError> {
    let unknown =
        |error: &dyn std::fmt::Display| RecipeError::Conflict(format!("`{place}`: {error}"));
    match value {
        Value::String(name) => strategy_name(name).parse().map_err(|error| unknown(&error)),
        Value::Object(map) => {
            let mut fields = map.iter();
            let (Some((name, settings)), None) = (fields.next(), fields.next()) else {
                return Err(RecipeError::wrong(place, "the name of one strategy"));
            };
            let place = format!("{place}.{name}");
            match strategy_name(name).parse() {
                Err(error) => Err(unknown(&error)),
                Ok(Strategy::GatherFormat(_)) if !settings.is_null() => {
                    gather_format(settings, &place).map(Strategy::GatherFormat)
                }
                Ok(strategy) => Ok(strategy),
            }
        }
        _ => Err(RecipeError::wrong(place, "the name of a strategy")),
    }
}

fn gather_format(value: &Value, place: &str) -> Result<GatherFormat, RecipeError> {
    let fields = Fields::of(value, place, &GATHER)?;
    let default = GatherFormat::default();
    let described = fields.read("described_tools", "a whole number", |value| {
        value
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
    })?;
    Ok(GatherFormat {
        max_thinking_steps: fields
            .count("max_thinking_steps")?
            .unwrap_or(default.max_thinking_steps),
        described_tools: described.unwrap_or(default.described_tools),
        review: fields.flag("review")?.unwrap_or(default.review),
        schema: fields.read("schema", "a JSON Schema", |value| {
            value.is_object().then(|| value.clone())
        })?,
    })
}

/// A form of the answer needs the strategy that writes one.
fn add_schema(recipe: &mut Recipe, fields: &Fields<'_>) -> Result<(), RecipeError> {
    let Some(value) = fields.get("formatter") else {
        return Ok(());
    };
    let place = fields.path("formatter");
    let map = value
        .as_object()
        .ok_or_else(|| RecipeError::wrong(&place, "a JSON Schema, or a map with `schema`"))?;
    let schema = if has(map, "schema") && !has(map, "type") {
        let inner = Fields::of(value, &place, &FORMATTER)?;
        inner.read("schema", "a JSON Schema", |value| {
            value.is_object().then(|| value.clone())
        })?
    } else {
        Some(value.clone())
    };
    let strategy = recipe
        .strategy
        .get_or_insert_with(|| Strategy::GatherFormat(GatherFormat::default()));
    match strategy {
        Strategy::GatherFormat(GatherFormat { schema: None, .. }) if schema.is_some() => {}
        Strategy::GatherFormat(GatherFormat {
            schema: Some(_), ..
        }) => {
            return Err(RecipeError::Twice {
                first: "strategy.gather-format.schema".to_owned(),
                second: place,
            });
        }
        Strategy::GatherFormat(_) => return Ok(()),
        Strategy::Loop => {
            return Err(RecipeError::Conflict(format!(
                "`{place}` needs the strategy `gather-format`: `loop` gives the answer as the model \
                 writes it"
            )));
        }
    }
    if let Strategy::GatherFormat(settings) = strategy {
        settings.schema = schema;
    }
    Ok(())
}
