//! What models can do and cost, by their names: a small table of facts, compiled in.
//!
//! The table, `models.tsv`, is made by `cargo xtask catalogue` from the price list of litellm (MIT,
//! see `LICENSE-litellm`) and from `overlay.json`, which is ours and wins. It is text that is
//! searched where it lies: nothing is parsed or allocated but the entries that are asked for, and
//! who asks for none pays nothing.
//!
//! An unknown value is `None`, which does not mean "no": an adapter sends the request, and the
//! provider decides. Ollama and similar servers are not listed, because they describe their models
//! themselves.
//!
//! ```
//! use switchboard_providers_common::catalog;
//!
//! let entry = catalog::lookup("anthropic", "claude-sonnet-4-5-20250929").expect("is known");
//! assert_eq!(entry.name, "claude-sonnet-4-5");
//! assert_eq!(entry.capabilities.context_window, Some(200_000));
//! assert_eq!(entry.prices.output, Some(15.0));
//! assert!(catalog::lookup("anthropic", "a-model-of-next-year").is_none());
//! ```

mod names;
mod table;

use switchboard_domain::{ModelCapabilities, ModelId};

use table::Table;

/// Whose models are known. [`lookup`] takes a few more names, which lead to these.
pub const PROVIDERS: &[&str] = &[
    "anthropic",
    "deepseek",
    "gemini",
    "groq",
    "mistral",
    "openai",
    "xai",
];

const MODELS: Table<'static> = Table::new(include_str!("catalog/models.tsv"));

/// The entry of a model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelEntry {
    /// One of [`PROVIDERS`].
    pub provider: &'static str,
    /// The name in the catalog, which may lack the date of the requested name.
    pub name: &'static str,
    /// Capabilities and limits.
    pub capabilities: ModelCapabilities,
    /// What its provider asks for it.
    pub prices: Prices,
    /// OpenAI's Responses API serves it, and Chat Completions does not.
    pub responses_only: bool,
    /// The day (`YYYY-MM-DD`) from which its provider advises against it or stops serving it.
    pub deprecated_on: Option<&'static str>,
}

impl ModelEntry {
    /// Its provider and name.
    pub fn id(&self) -> ModelId {
        ModelId::new(self.provider, self.name)
    }
}

/// Prices of a model at its provider, in US dollars per million tokens. Zero is free; `None`
/// is not known.
///
/// The list prices of plain requests: batches are cheaper, priority is dearer, and with several
/// providers so is all of a request whose prompt is longer than 200,000 tokens or so. The source
/// knows no discounts of a customer's own.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Prices {
    /// Tokens of the prompt that no cache has.
    pub input: Option<f64>,
    /// Tokens written, reasoning included.
    pub output: Option<f64>,
    /// Tokens of the prompt that are read from a cache.
    pub cache_read: Option<f64>,
    /// Tokens of the prompt that are written to a cache, for its shortest lifetime. `None` with a
    /// price for reading: writing costs what input costs.
    pub cache_write: Option<f64>,
}

/// Returns the entry of a model. `None`: the model is unknown.
///
/// `provider` is one of [`PROVIDERS`], or:
/// - `azure`, whose models are OpenAI's (a deployment has to be called after its model to be
///   found);
/// - `litellm` and `openrouter`, with the vendor before a slash in `model`, as in
///   `anthropic/claude-sonnet-4.5`. The prices are those of the vendor.
///
/// `model` is the provider's name for it. If there is none of just that name: the model that was
/// tuned (`ft:BASE:…`), the name without its date, `-latest` or `-001`, and for a name without a
/// date the newest that differs only by one.
pub fn lookup(provider: &str, model: &str) -> Option<ModelEntry> {
    let (provider, model) = names::at_home(provider, model)?;
    let find = |name: &str| MODELS.find(provider, name);
    let model = model.as_ref();
    let row = find(model)
        .or_else(|| find(names::tuned(model)?))
        .or_else(|| find(names::unversioned(model)?))
        .or_else(|| newest(provider, model.strip_suffix("-latest").unwrap_or(model)))?;
    table::entry(row)
}

/// Every model of a provider, by name; none for what is not in [`PROVIDERS`]. Dated names that say
/// nothing new are not among them.
pub fn models(provider: &str) -> impl Iterator<Item = ModelEntry> {
    MODELS.of(provider, "").filter_map(table::entry)
}

/// The models of a provider that are worth naming where nothing else is known, best first: the
/// first is the default. Empty for providers without a choice of ours.
pub fn featured(provider: &str) -> Vec<ModelEntry> {
    let mut ranked: Vec<(u8, &str)> = MODELS
        .of(provider, "")
        .filter_map(|row| Some((table::rank(row)?, row)))
        .collect();
    ranked.sort_unstable();
    ranked
        .into_iter()
        .filter_map(|(_, row)| table::entry(row))
        .collect()
}

/// The source of the facts and its version, such as `litellm 1.109.1`.
pub fn source() -> &'static str {
    MODELS.source()
}

/// Joins what two sources know of one model, each field from the first that knows it.
pub fn either(first: &ModelCapabilities, second: &ModelCapabilities) -> ModelCapabilities {
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

/// The newest of the models that are called `base` but for a date or `-latest`, which comes last.
fn newest(provider: &str, base: &str) -> Option<&'static str> {
    MODELS
        .of(provider, base)
        .filter(|row| names::unversioned(table::name(row)) == Some(base))
        .last()
}
