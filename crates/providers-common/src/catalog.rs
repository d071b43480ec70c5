//! Capabilities, limits and prices of models by name.
//!
//! `cargo xtask catalogue` generates the table `models.tsv` from the price list of litellm (MIT,
//! see `LICENSE-litellm`) and from our `overlay.json`, which takes precedence.
//!
//! A capability or limit that the data does not state is `None`, which does not mean "no": an
//! adapter then sends the request, and the provider decides. Ollama and similar servers are not
//! listed, because they describe their models themselves.
//!
//! ```
//! use switchboard_providers_common::catalog;
//!
//! let entry = catalog::find_model_entry("anthropic", "claude-sonnet-4-5-20250929")
//!     .expect("is known");
//! assert_eq!(entry.name, "claude-sonnet-4-5");
//! assert_eq!(entry.capabilities.context_window, Some(200_000));
//! assert_eq!(entry.prices.output, Some(15.0));
//! assert!(catalog::find_model_entry("anthropic", "a-model-of-next-year").is_none());
//! ```

mod model_names;
mod table;

use switchboard_domain::{ModelCapabilities, ModelId};

pub use self::table::data_source;

/// Names of the providers in the catalog. [`find_model_entry`] also accepts gateways, such as
/// `openrouter`.
pub const PROVIDERS: &[&str] = &[
    "anthropic",
    "deepseek",
    "gemini",
    "groq",
    "mistral",
    "openai",
    "xai",
];

/// A model of the catalog, with its capabilities and prices.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelEntry {
    /// Provider of the model, one of [`PROVIDERS`].
    pub provider: &'static str,
    /// Name of the model in the catalog. It may lack the date of the name that was passed to
    /// [`find_model_entry`]: the entry for `claude-sonnet-4-5-20250929` is named
    /// `claude-sonnet-4-5`.
    pub name: &'static str,
    /// Capabilities and limits of the model.
    pub capabilities: ModelCapabilities,
    /// List prices of the model at its provider, in US dollars per million tokens.
    pub prices: Prices,
    /// Whether the provider serves the model only with its Responses API, not with Chat
    /// Completions. Only OpenAI and xAI have such models.
    pub responses_only: bool,
    /// Day (`YYYY-MM-DD`) on which the provider deprecates the model or stops serving it. `None` if
    /// no such day is known.
    pub deprecated_on: Option<&'static str>,
}

impl ModelEntry {
    /// Returns the provider and the name of the model as one id.
    pub fn model_id(&self) -> ModelId {
        ModelId::new(self.provider, self.name)
    }
}

/// Prices of a model at its provider, in US dollars per million tokens. Zero means free, `None`
/// means unknown.
///
/// These are list prices of standard requests. Batches are cheaper and priority requests are more
/// expensive. Some providers charge more for requests with more than about 200,000 prompt tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Prices {
    /// Price in US dollars per million prompt tokens that are neither read from nor written to the
    /// provider's prompt cache.
    pub input: Option<f64>,
    /// Price in US dollars per million output tokens, including reasoning tokens.
    pub output: Option<f64>,
    /// Price in US dollars per million prompt tokens that are read from the provider's prompt
    /// cache.
    pub cache_read: Option<f64>,
    /// Price in US dollars per million prompt tokens that are written to the provider's prompt
    /// cache, for the shortest cache lifetime that the provider offers. If this price is `None` and
    /// `cache_read` is known, written tokens cost the `input` price.
    pub cache_write: Option<f64>,
}

/// Returns the catalog entry of a model. Returns `None` for an unknown model.
///
/// `provider` is one of [`PROVIDERS`], or:
/// - `azure`, for OpenAI's models. The Azure deployment must have the same name as the model.
/// - `litellm` and `openrouter`, with the vendor before a slash in `model`, such as
///   `anthropic/claude-sonnet-4.5`. The entry has the vendor's prices.
///
/// `model` is the name of the model at the provider. If it is not listed, the function looks for
/// the base of a fine-tuned model (`ft:BASE:…`), then for the name without its date, `-latest` or
/// `-001`, and then for the newest dated version.
pub fn find_model_entry(provider: &str, model: &str) -> Option<ModelEntry> {
    let (provider, model) = model_names::to_catalog_name(provider, model)?;
    let find = |name: &str| table::find_row(provider, name);
    let model = model.as_ref();
    let row = find(model)
        .or_else(|| find(model_names::strip_fine_tune_suffix(model)?))
        .or_else(|| find(model_names::strip_version(model)?))
        .or_else(|| {
            find_newest_version(provider, model.strip_suffix("-latest").unwrap_or(model))
        })?;
    table::parse_row(row)
}

/// Returns the models of a provider, sorted by name. The iterator is empty if `provider` is not in
/// [`PROVIDERS`]. A name with a date is listed only if its entry differs from the entry of the name
/// without the date.
pub fn list_models(provider: &str) -> impl Iterator<Item = ModelEntry> {
    table::find_rows_by_prefix(provider, "").filter_map(table::parse_row)
}

/// Returns the recommended models of a provider, best first; the first one is the default. Returns
/// an empty list for a provider without recommended models.
pub fn featured_models(provider: &str) -> Vec<ModelEntry> {
    let mut ranked: Vec<(u8, &str)> = table::find_rows_by_prefix(provider, "")
        .filter_map(|row| Some((table::featured_rank(row)?, row)))
        .collect();
    ranked.sort_unstable();
    ranked
        .into_iter()
        .filter_map(|(_, row)| table::parse_row(row))
        .collect()
}

/// Merges the capabilities that two sources report for one model. Where both sources report a
/// value, the first one takes precedence. `requires_approval` is `true` if either source sets it.
pub fn join_capabilities(
    first: &ModelCapabilities,
    second: &ModelCapabilities,
) -> ModelCapabilities {
    ModelCapabilities {
        context_window: first.context_window.or(second.context_window),
        max_output_tokens: first.max_output_tokens.or(second.max_output_tokens),
        tools: first.tools.or(second.tools),
        parallel_tools: first.parallel_tools.or(second.parallel_tools),
        forced_tool_choice: first.forced_tool_choice.or(second.forced_tool_choice),
        structured_output: first.structured_output.or(second.structured_output),
        sampling: first.sampling.or(second.sampling),
        reasoning: first.reasoning.or(second.reasoning),
        images: first.images.or(second.images),
        documents: first.documents.or(second.documents),
        audio: first.audio.or(second.audio),
        tool_search: first.tool_search.or(second.tool_search),
        requires_approval: first.requires_approval || second.requires_approval,
    }
}

/// Returns the table row of the newest version of the model `base`: the row named `BASE-latest` if
/// there is one, else the row with the latest date or highest number. Returns `None` if `base` has
/// no versions in the table.
fn find_newest_version(provider: &str, base: &str) -> Option<&'static str> {
    table::find_rows_by_prefix(provider, base)
        .filter(|row| model_names::strip_version(table::model_name(row)) == Some(base))
        .last()
}
