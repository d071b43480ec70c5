//! `strategy`, `recipe`, `fallback_models`, `limits`, `approvals`, `guards` and other settings of
//! runs.

use std::{collections::BTreeMap, fmt, time::Duration};

use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;
use switchboard_orchestration::{
    Limits,
    policy::approval::{Approvals, Rule, Rules},
    policy::guard::Guard,
    policy::history::HistoryPolicy,
    strategy::{NAMES, Strategy},
    tools::arguments::ContextTemplate,
    tools::results::ResultLimit,
    tools::search::SearchPolicy,
};

use super::{document::Fields, error::Problem};

/// The keys that this module reads.
pub(super) const KEYS: [&str; 12] = [
    "strategy",
    "recipe",
    "fallback_models",
    "limits",
    "approvals",
    "guards",
    "results",
    "history",
    "tool_search",
    "cache_results",
    "context",
    "context_servers",
];

/// Settings of runs. `None` is not configured.
#[derive(Clone, Default)]
pub(crate) struct RunConfig {
    pub(crate) strategy: Option<Strategy>,
    /// The recipe's name or file.
    pub(crate) recipe: Option<String>,
    /// Models that are used when the previous one fails.
    pub(crate) fallback_models: Option<Vec<String>>,
    pub(crate) limits: Option<LimitsConfig>,
    pub(crate) approvals: Option<ApprovalsConfig>,
    /// Conditions on results that stop later calls.
    pub(crate) guards: Option<Vec<Guard>>,
    /// Maximum size of a result in the prompt.
    pub(crate) results: Option<ResultLimit>,
    pub(crate) history: Option<HistoryPolicy>,
    /// Tool search.
    pub(crate) search: Option<SearchPolicy>,
    /// How long results of read-only tools are cached. Zero disables the cache.
    pub(crate) cache_results: Option<Duration>,
    /// Arguments that the host fills in and the model does not see, by name.
    pub(crate) context: Option<BTreeMap<String, ContextTemplate>>,
    /// The servers that receive context values. `None` is all servers.
    pub(crate) context_servers: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LimitsConfig {
    tool_calls: Option<u32>,
    calls_per_response: Option<u32>,
    calls_per_minute: Option<u32>,
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
    total_tokens: Option<u32>,
    answer_bytes: Option<u32>,
    cost_usd: Option<f64>,
    wall_time: Option<Duration>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ApprovalsConfig {
    /// One list of rules for each file.
    layers: Vec<Rules>,
    expire_after: Option<Duration>,
    remember_for: Option<Duration>,
}

/// Combines the values of two files.
fn both<T>(base: Option<T>, over: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (base, over) {
        (Some(base), Some(over)) => Some(join(base, over)),
        (base, over) => over.or(base),
    }
}

impl LimitsConfig {
    /// Merges `over` limit by limit.
    fn merged_with(self, over: Self) -> Self {
        Self {
            tool_calls: over.tool_calls.or(self.tool_calls),
            calls_per_response: over.calls_per_response.or(self.calls_per_response),
            calls_per_minute: over.calls_per_minute.or(self.calls_per_minute),
            input_tokens: over.input_tokens.or(self.input_tokens),
            output_tokens: over.output_tokens.or(self.output_tokens),
            total_tokens: over.total_tokens.or(self.total_tokens),
            answer_bytes: over.answer_bytes.or(self.answer_bytes),
            cost_usd: over.cost_usd.or(self.cost_usd),
            wall_time: over.wall_time.or(self.wall_time),
        }
    }

    pub(crate) fn apply(&self, limits: &mut Limits) {
        limits.max_tool_calls = self.tool_calls;
        if self.calls_per_response.is_some() {
            limits.max_calls_per_response = self.calls_per_response;
        }
        limits.max_calls_per_minute = self.calls_per_minute;
        limits.max_input_tokens = self.input_tokens.map(u64::from);
        limits.max_output_tokens = self.output_tokens.map(u64::from);
        limits.max_total_tokens = self.total_tokens.map(u64::from);
        if let Some(bytes) = self.answer_bytes {
            limits.max_answer_bytes = Some(bytes.into());
        }
        limits.max_cost_usd = self.cost_usd;
        limits.max_wall_time = self.wall_time;
    }
}

impl ApprovalsConfig {
    /// Merges `over`. The rules of each file stay separate: no file allows a call that another file
    /// denies or asks about.
    fn merged_with(self, over: Self) -> Self {
        Self {
            layers: [self.layers, over.layers].concat(),
            expire_after: over.expire_after.or(self.expire_after),
            remember_for: over.remember_for.or(self.remember_for),
        }
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.layers.iter().flat_map(|rules| &rules.0)
    }

    pub(crate) fn apply(&self, approvals: &mut Approvals) {
        approvals.layers.clone_from(&self.layers);
        approvals.expire_after = self.expire_after;
        approvals.remember_for = self.remember_for;
    }
}

impl RunConfig {
    /// Returns the context values that may be secrets.
    pub(crate) fn context_secrets(&self) -> Vec<SecretString> {
        let values = self.context.iter().flatten();
        let texts = values.flat_map(|(_, value)| value.literals());
        let texts = texts.filter(|text| text.len() >= MIN_SECRET_LENGTH);
        texts.map(SecretString::from).collect()
    }

    /// Merges `over`, key by key.
    #[must_use]
    pub(super) fn merged_with(self, over: Self) -> Self {
        Self {
            strategy: over.strategy.or(self.strategy),
            recipe: over.recipe.or(self.recipe),
            fallback_models: over.fallback_models.or(self.fallback_models),
            limits: both(self.limits, over.limits, LimitsConfig::merged_with),
            approvals: both(self.approvals, over.approvals, ApprovalsConfig::merged_with),
            guards: both(self.guards, over.guards, |base, over| [base, over].concat()),
            results: over.results.or(self.results),
            history: over.history.or(self.history),
            search: over.search.or(self.search),
            cache_results: over.cache_results.or(self.cache_results),
            context: over.context.or(self.context),
            context_servers: over.context_servers.or(self.context_servers),
        }
    }
}

impl fmt::Debug for RunConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunConfig")
            .field("strategy", &self.strategy)
            .field("recipe", &self.recipe)
            .field("fallback_models", &self.fallback_models)
            .field("limits", &self.limits)
            .field("approvals", &self.approvals)
            .field("guards", &self.guards)
            .field("context", &self.context.as_ref().map(BTreeMap::len))
            .finish_non_exhaustive()
    }
}

/// Minimum length of a secret. Shorter values, such as a port, are common in output.
const MIN_SECRET_LENGTH: usize = 8;

pub(super) fn read(fields: &Fields<'_>) -> Result<RunConfig, Problem> {
    Ok(RunConfig {
        strategy: match fields.get("strategy") {
            None => None,
            Some(Value::String(name)) => {
                Some(name.parse().map_err(|_| {
                    Problem::wrong("strategy", format!("one of {}", NAMES.join(", ")))
                })?)
            }
            Some(value) => Some(typed("strategy", value)?),
        },
        recipe: fields.text("recipe")?,
        fallback_models: fields.names("fallback_models")?,
        limits: fields.get("limits").map(limits).transpose()?,
        approvals: fields.get("approvals").map(approvals).transpose()?,
        guards: whole(fields, "guards")?,
        results: whole(fields, "results")?,
        history: whole(fields, "history")?,
        search: whole(fields, "tool_search")?,
        cache_results: fields.read("cache_results", "a number of seconds, or false", |value| {
            match value {
                Value::Bool(false) => Some(Duration::ZERO),
                value => Duration::try_from_secs_f64(value.as_f64()?).ok(),
            }
        })?,
        context_servers: fields.names("context_servers")?,
        context: fields.get("context").map(context).transpose()?,
    })
}

fn context(value: &Value) -> Result<BTreeMap<String, ContextTemplate>, Problem> {
    let values = value.as_object();
    let values = values.ok_or_else(|| Problem::wrong("context", "a map of arguments"))?;
    let mut context = BTreeMap::new();
    for (name, value) in values {
        let template = ContextTemplate::parse(value).map_err(|error| {
            Problem::wrong(format!("context.{name}"), format!("a value: {error}"))
        })?;
        context.insert(name.clone(), template);
    }
    Ok(context)
}

fn limits(value: &Value) -> Result<LimitsConfig, Problem> {
    const KEYS: [&str; 9] = [
        "max_tool_calls",
        "max_calls_per_response",
        "max_calls_per_minute",
        "max_input_tokens",
        "max_output_tokens",
        "max_total_tokens",
        "max_answer_bytes",
        "max_cost_usd",
        "max_wall_time",
    ];
    let fields = Fields::of(value, "limits", &KEYS)?;
    Ok(LimitsConfig {
        tool_calls: fields.count("max_tool_calls")?,
        calls_per_response: fields.count("max_calls_per_response")?,
        calls_per_minute: fields.count("max_calls_per_minute")?,
        input_tokens: fields.count("max_input_tokens")?,
        output_tokens: fields.count("max_output_tokens")?,
        total_tokens: fields.count("max_total_tokens")?,
        answer_bytes: fields.count("max_answer_bytes")?,
        cost_usd: fields.number("max_cost_usd")?,
        wall_time: fields.seconds("max_wall_time")?,
    })
}

fn approvals(value: &Value) -> Result<ApprovalsConfig, Problem> {
    const KEYS: [&str; 3] = ["rules", "expire_after", "remember_for"];
    let fields = Fields::of(value, "approvals", &KEYS)?;
    Ok(ApprovalsConfig {
        layers: match fields.get("rules") {
            None => Vec::new(),
            Some(value) => vec![typed("approvals.rules", value)?],
        },
        expire_after: fields.seconds("expire_after")?,
        remember_for: fields.seconds("remember_for")?,
    })
}

fn whole<T: DeserializeOwned>(fields: &Fields<'_>, key: &str) -> Result<Option<T>, Problem> {
    let value = fields.get(key);
    value.map(|value| typed(key, value)).transpose()
}

/// Parses a setting with its own type, whose errors name the key.
fn typed<T: DeserializeOwned>(path: &str, value: &Value) -> Result<T, Problem> {
    T::deserialize(value).map_err(|error| {
        Problem::wrong(
            path,
            format!("as described in docs/configuration.md: {error}"),
        )
    })
}
