//! Configuration sections `limits`, `approvals` and `circuit_breaker`, which apply to all runs.

use std::{
    collections::BTreeMap,
    num::{NonZero, NonZeroU32, NonZeroU64},
    time::Duration,
};

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;
use switchboard_mcp_client::CircuitOptions;
use switchboard_orchestration::{
    Limits,
    policy::approval::{ApprovalRule, ApprovalSettings, Rules},
    policy::limits::ToolLimits,
    tools::{arguments::ContextTemplate, name_pattern::NamePattern},
};

use super::field_parsing::{
    deserialize_converted, deserialize_non_negative_number, deserialize_seconds,
};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a map of limits")]
#[allow(clippy::struct_field_names, reason = "the keys have this prefix")]
pub(crate) struct LimitsConfig {
    max_tool_calls: Option<NonZeroU32>,
    max_calls_per_response: Option<NonZeroU32>,
    max_calls_per_minute: Option<NonZeroU32>,
    tools: BTreeMap<NamePattern, ToolLimits>,
    max_input_tokens: Option<NonZeroU64>,
    max_output_tokens: Option<NonZeroU64>,
    max_total_tokens: Option<NonZeroU64>,
    max_answer_bytes: Option<NonZeroU64>,
    #[serde(deserialize_with = "deserialize_non_negative_number")]
    max_cost_usd: Option<f64>,
    #[serde(deserialize_with = "deserialize_seconds")]
    max_wall_time: Option<Duration>,
}

impl LimitsConfig {
    /// Copies the configured limits to the limits of a run. A limit without a configured value is
    /// removed from `limits`. Exceptions are `max_calls_per_response` and `max_answer_bytes`, which
    /// then keep their values in `limits`.
    pub(crate) fn apply_to_run_limits(&self, limits: &mut Limits) {
        let responses = self.max_calls_per_response.map(NonZero::get);
        let answer_bytes = self.max_answer_bytes.map(NonZero::get);
        limits.max_tool_calls = self.max_tool_calls.map(NonZero::get);
        limits.max_calls_per_response = responses.or(limits.max_calls_per_response);
        limits.max_calls_per_minute = self.max_calls_per_minute.map(NonZero::get);
        limits.tools.clone_from(&self.tools);
        limits.max_input_tokens = self.max_input_tokens.map(NonZero::get);
        limits.max_output_tokens = self.max_output_tokens.map(NonZero::get);
        limits.max_total_tokens = self.max_total_tokens.map(NonZero::get);
        limits.max_answer_bytes = answer_bytes.or(limits.max_answer_bytes);
        limits.max_cost_usd = self.max_cost_usd;
        limits.max_wall_time = self.max_wall_time;
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a map of settings")]
pub(crate) struct ApprovalsConfig {
    /// Approval rules of all configuration files, as one list for each file.
    #[serde(rename = "rules", deserialize_with = "deserialize_approval_rules")]
    layers: Vec<Rules>,
    #[serde(deserialize_with = "deserialize_seconds")]
    expire_after: Option<Duration>,
    #[serde(deserialize_with = "deserialize_seconds")]
    remember_for: Option<Duration>,
}

impl ApprovalsConfig {
    /// Merges the approval settings `over` of a file with higher precedence. The rules of each file
    /// stay separate, so that no file can allow a call that another file denies.
    pub(super) fn merge_approvals(self, over: Self) -> Self {
        Self {
            layers: [self.layers, over.layers].concat(),
            expire_after: over.expire_after.or(self.expire_after),
            remember_for: over.remember_for.or(self.remember_for),
        }
    }

    pub(crate) fn approval_rules(&self) -> impl Iterator<Item = &ApprovalRule> {
        self.layers.iter().flatten()
    }

    pub(crate) fn apply_to_approval_settings(&self, approvals: &mut ApprovalSettings) {
        approvals.layers.clone_from(&self.layers);
        approvals.expire_after = self.expire_after;
        approvals.remember_for = self.remember_for;
    }
}

/// Limits of the circuit breakers of MCP servers and their tools. A limit is `None` if it is not
/// configured.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a map of settings")]
pub(crate) struct CircuitBreakerConfig {
    tool_failures: Option<u32>,
    server_failures: Option<u32>,
    #[serde(deserialize_with = "deserialize_seconds")]
    pause: Option<Duration>,
    #[serde(deserialize_with = "deserialize_seconds")]
    max_pause: Option<Duration>,
}

impl CircuitBreakerConfig {
    /// Returns the configured limits. Limits that are not configured have their defaults.
    pub(crate) fn circuit_options(&self) -> CircuitOptions {
        let default = CircuitOptions::default();
        CircuitOptions {
            tool_failures: self.tool_failures.unwrap_or(default.tool_failures),
            server_failures: self.server_failures.unwrap_or(default.server_failures),
            pause: self.pause.unwrap_or(default.pause),
            max_pause: self.max_pause.unwrap_or(default.max_pause),
        }
    }
}

fn deserialize_approval_rules<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Rules>, D::Error> {
    Ok(Option::deserialize(deserializer)?.into_iter().collect())
}

/// Deserializes the time for which results are cached: a number of seconds, or `false` for never.
pub(super) fn deserialize_cache_lifetime<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let expected = "a number of seconds, or false";
    deserialize_converted(deserializer, expected, |value| match value {
        Value::Bool(false) => Some(Duration::ZERO),
        value => Duration::try_from_secs_f64(value.as_f64()?).ok(),
    })
}

/// Deserializes the section `context`, which maps names of tool arguments to their values.
pub(super) fn deserialize_context_values<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, ContextTemplate>>, D::Error> {
    let Some(values) = Option::<BTreeMap<String, Value>>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let templates = values.into_iter().map(|(name, value)| {
        let template = ContextTemplate::parse(&value);
        let template = template.map_err(|it| D::Error::custom(format!("`{name}`: {it}")))?;
        Ok((name, template))
    });
    templates.collect::<Result<_, _>>().map(Some)
}
