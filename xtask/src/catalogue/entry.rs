//! The facts about one model, and their names in the source.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// Whose models are taken: those for whom there is a wire or a profile, and whose server does not
/// say all this itself, as Ollama does.
pub(super) const PROVIDERS: [&str; 7] = [
    "anthropic",
    "deepseek",
    "gemini",
    "groq",
    "mistral",
    "openai",
    "xai",
];

/// Tokens.
pub(super) const LIMITS: [&str; 2] = ["context_window", "max_output_tokens"];

/// Names of the prices, in US dollars per million tokens, and of the source's price per token.
pub(super) const PRICES: [(&str, &str); 4] = [
    ("input_price", "input_cost_per_token"),
    ("output_price", "output_cost_per_token"),
    ("cache_read_price", "cache_read_input_token_cost"),
    ("cache_write_price", "cache_creation_input_token_cost"),
];

/// Whether it can, as fields of the domain's `ModelCapabilities`; and the word in the data.
pub(super) const ABILITIES: [(&str, &str); 10] = [
    ("tools", "tools"),
    ("parallel_tools", "parallel"),
    ("forced_tool_choice", "forced"),
    ("structured_output", "schema"),
    ("sampling", "sampling"),
    ("reasoning", "reasoning"),
    ("images", "images"),
    ("documents", "documents"),
    ("audio", "audio"),
    // Not of `ModelCapabilities`: Chat Completions does not serve it.
    ("responses_only", "responses-only"),
];

/// The day from which its vendor advises against it.
pub(super) const DEPRECATED_ON: &str = "deprecated_on";

/// The fields that are known of a model. A field that is missing is not known, which is not "no".
pub(super) type Entry = BTreeMap<&'static str, Value>;

/// The one spelling of a field's name, if there is such a field.
pub(super) fn field(name: &str) -> Option<&'static str> {
    let priced = PRICES.iter().map(|(field, _)| field);
    let able = ABILITIES.iter().map(|(field, _)| field);
    let all = LIMITS.iter().chain(priced).chain(able);
    all.chain([&DEPRECATED_ON]).find(|it| **it == name).copied()
}

/// The entries of all models that can chat, by `provider/name`.
pub(super) fn of_source(models: &Value) -> Result<BTreeMap<String, Entry>> {
    let models = models.as_object().context("the source is not an object")?;
    // An entry with its provider as a prefix is more specific than one without it.
    let mut entries: BTreeMap<String, (bool, Entry)> = BTreeMap::new();
    for (key, model) in models {
        let provider = PROVIDERS
            .into_iter()
            .find(|provider| model["litellm_provider"] == *provider);
        let Some(provider) = provider.filter(|_| writes_text(model)) else {
            continue;
        };
        let own = key
            .strip_prefix(provider)
            .and_then(|rest| rest.strip_prefix('/'));
        let name = own.unwrap_or(key);
        ensure!(
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()),
            "`{key}` cannot be used as a name in the data"
        );
        let entry = of_model(model).with_context(|| format!("the source's `{key}`"))?;
        if entry.is_empty() {
            continue;
        }
        let place = entries
            .entry(format!("{provider}/{name}"))
            .or_insert_with(|| (false, Entry::new()));
        if own.is_some() || !place.0 {
            *place = (own.is_some(), entry);
        }
    }
    Ok(entries
        .into_iter()
        .map(|(name, (_, entry))| (name, entry))
        .collect())
}

/// Returns whether the model generates text. Embedding and music models do not.
fn writes_text(model: &Value) -> bool {
    let talks = model["mode"] == "chat" || model["mode"] == "responses";
    let outputs = model["supported_output_modalities"].as_array();
    talks && outputs.is_none_or(|outputs| outputs.iter().any(|it| it == "text"))
}

fn of_model(model: &Value) -> Result<Entry> {
    let mut entry = Entry::new();
    let mut set = |field, value: Option<Value>| {
        if let Some(value) = value {
            entry.insert(field, value);
        }
    };
    set("context_window", tokens(model, "max_input_tokens")?);
    set("max_output_tokens", tokens(model, "max_output_tokens")?);
    for (field, source) in PRICES {
        set(field, model.get(source).map(per_million).transpose()?);
    }
    let flag = |name: &str| model.get(name).filter(|value| value.is_boolean()).cloned();
    // The list is complete where there is one.
    let inputs = model["supported_modalities"].as_array();
    let takes = |kind: &str| inputs.map(|inputs| json!(inputs.iter().any(|it| it == kind)));
    for (field, value) in [
        ("tools", flag("supports_function_calling")),
        ("parallel_tools", flag("supports_parallel_function_calling")),
        (
            "forced_tool_choice",
            // `supports_tool_choice` covers any tool choice. Few models have
            // `supports_forced_tool_use`, which is specific to forced choices.
            flag("supports_forced_tool_use").or_else(|| flag("supports_tool_choice")),
        ),
        ("structured_output", flag("supports_response_schema")),
        ("sampling", flag("supports_sampling_params")),
        ("reasoning", flag("supports_reasoning")),
        ("images", flag("supports_vision").or_else(|| takes("image"))),
        ("documents", flag("supports_pdf_input")),
        (
            "audio",
            flag("supports_audio_input").or_else(|| takes("audio")),
        ),
    ] {
        set(field, value);
    }
    set(
        "responses_only",
        (model["mode"] == "responses").then(|| json!(true)),
    );
    set(DEPRECATED_ON, model.get("deprecation_date").cloned());
    Ok(entry)
}

fn tokens(model: &Value, name: &str) -> Result<Option<Value>> {
    let Some(value) = model.get(name) else {
        return Ok(None);
    };
    let tokens = value
        .as_u64()
        .with_context(|| format!("`{name}` is {value}"))?;
    Ok((tokens > 0).then(|| json!(tokens)))
}

/// From the price of one token, to a millionth of a dollar: the source's numbers are binary
/// fractions of short decimal ones.
fn per_million(price: &Value) -> Result<Value> {
    let price = price
        .as_f64()
        .with_context(|| format!("the price {price}"))?;
    Ok(json!((price * 1e12).round() / 1e6))
}
