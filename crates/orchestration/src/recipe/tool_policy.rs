//! Restrictions of tool calls and limits of runs in a recipe.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, de};

use super::tools::{find_alias, split_tool_pattern, to_name_pattern_text};
use crate::{
    Limits,
    policy::approval::{ApprovalPolicy, ApprovalRule, ApprovalSettings},
};

/// Restrictions of tool calls in a recipe. A `None` field uses the configured value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolPolicy {
    /// Maximum number of tool calls in one model answer. Further calls are not executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tools_per_response: Option<u32>,
    /// Maximum number of tool calls within 60 seconds, in all runs of the user together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tools_per_minute: Option<u32>,
    /// Maximum number of tool calls in one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tools_per_run: Option<u32>,
    /// The tool calls that require approval because of the recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<ApprovalRequirement>,
}

/// The tool calls that a recipe requires approval of: all calls, none, or calls of some tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected true, false or a list of tools")]
pub enum ApprovalRequirement {
    /// `true` requires approval of every call, even of read-only tools. `false` adds no requirement
    /// to the configured ones.
    EveryCall(bool),
    /// The calls of tools that match a pattern; see [`matches_tool`](super::matches_tool).
    For(Vec<String>),
}

impl ToolPolicy {
    /// Returns whether the policy sets no restriction.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the approvals that the recipe requires to the configured approval rules.
    ///
    /// The configured rules precede the added rules and are not changed, so a recipe cannot allow a
    /// call that they deny. With the policy [`ApprovalPolicy::None`], the added rules match only
    /// read-only tools, so for other tools the recipe does not replace the denial of the policy.
    pub fn tighten_approvals(&self, approvals: &mut ApprovalSettings) {
        let mut rules = Vec::new();
        match &self.requires_approval {
            None | Some(ApprovalRequirement::EveryCall(false)) => {}
            Some(ApprovalRequirement::EveryCall(true)) => {
                rules.push(ApprovalRule::ask_for_all_calls());
            }
            Some(ApprovalRequirement::For(patterns)) if patterns.is_empty() => {}
            Some(ApprovalRequirement::For(patterns)) => {
                let aliases = patterns.iter().filter_map(|pattern| find_alias(pattern));
                let names = patterns.iter().map(String::as_str).chain(aliases);
                let names = names.map(to_name_pattern_text);
                rules.push(names.fold(ApprovalRule::ask_for_all_calls(), ApprovalRule::with_tool));
                // The name that the model sees may be shortened. A pattern such as `server__tool`
                // is therefore also compared with the server's name and the tool's name on it.
                let halves = patterns
                    .iter()
                    .filter_map(|pattern| split_tool_pattern(pattern));
                rules.extend(halves.map(|(server, tool)| {
                    ApprovalRule::ask_for_all_calls()
                        .with_server(server)
                        .with_tool(tool)
                }));
            }
        }
        for mut rule in rules {
            if approvals.policy == ApprovalPolicy::None {
                rule.read_only = Some(true);
            }
            approvals.rules.push(rule);
        }
    }

    /// Lowers the limits of tool calls in `limits` to the maximum numbers of the recipe. A limit
    /// that is already lower does not change.
    pub fn lower_tool_call_limits(&self, limits: &mut Limits) {
        lower_limit(
            &mut limits.max_calls_per_response,
            self.max_tools_per_response,
        );
        lower_limit(&mut limits.max_calls_per_minute, self.max_tools_per_minute);
        lower_limit(&mut limits.max_tool_calls, self.max_tools_per_run);
    }
}

/// Limits that a recipe sets for each run. A `None` field uses the configured limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RecipeLimits {
    /// Maximum number of model calls in a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Maximum number of input tokens in a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u64>,
    /// Maximum number of output tokens in a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Maximum number of input and output tokens of a run together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u64>,
    /// Maximum cost of a run in US dollars.
    #[serde(
        deserialize_with = "deserialize_non_negative_number",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_cost_usd: Option<f64>,
    /// Maximum duration of a run, serialized in seconds.
    #[serde(
        with = "crate::policy::duration_serde",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_wall_time: Option<Duration>,
}

impl RecipeLimits {
    /// Returns whether the recipe sets no limit.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Applies the limits of the recipe to `limits`. `max_steps` replaces the earlier value. Every
    /// other limit is only lowered: a higher value in the recipe has no effect.
    pub fn apply_limits(&self, limits: &mut Limits) {
        if let Some(steps) = self.max_steps {
            limits.max_steps = steps;
        }
        lower_limit(&mut limits.max_input_tokens, self.max_input_tokens);
        lower_limit(&mut limits.max_output_tokens, self.max_output_tokens);
        lower_limit(&mut limits.max_total_tokens, self.max_total_tokens);
        lower_limit(&mut limits.max_cost_usd, self.max_cost_usd);
        lower_limit(&mut limits.max_wall_time, self.max_wall_time);
    }
}

/// Deserializes a number of at least 0. A negative number is an error.
pub(super) fn deserialize_non_negative_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    let amount = f64::deserialize(deserializer)?;
    if amount >= 0.0 {
        Ok(Some(amount))
    } else {
        Err(de::Error::custom("expected a number of at least 0"))
    }
}

/// Lowers `limit` to `wanted`. A higher `wanted` or `None` has no effect.
fn lower_limit<T: PartialOrd + Copy>(limit: &mut Option<T>, wanted: Option<T>) {
    if let Some(wanted) = wanted
        && limit.is_none_or(|limit| wanted < limit)
    {
        *limit = Some(wanted);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use switchboard_domain::{Principal, ToolDefinition};

    use super::*;
    use crate::policy::approval::{
        ApprovalVerdict, RememberedDecisions, Requester, ToolCallToCheck,
    };

    fn verdict(approvals: &ApprovalSettings, name: &str, read_only: bool) -> ApprovalVerdict {
        let mut tool = ToolDefinition::new(name, "", json!({}));
        tool.annotations.read_only = Some(read_only);
        let requester = Requester {
            principal: &Principal::default(),
            session: "s",
        };
        let now = Timestamp::UNIX_EPOCH;
        approvals.verdict_for_call(
            &ToolCallToCheck::from_tool(&tool),
            &requester,
            &RememberedDecisions::default(),
            now,
        )
    }

    fn wants(requires_approval: ApprovalRequirement) -> ToolPolicy {
        ToolPolicy {
            requires_approval: Some(requires_approval),
            ..ToolPolicy::default()
        }
    }

    const ASK: ApprovalVerdict = ApprovalVerdict::Ask { redefined: false };

    #[test]
    fn a_recipe_requires_more_approvals() {
        let mut approvals = ApprovalSettings::default();
        wants(ApprovalRequirement::For(vec![
            "file/save".into(),
            "rm_*".into(),
            "compile-typescript".into(),
        ]))
        .tighten_approvals(&mut approvals);
        assert_eq!(verdict(&approvals, "file_save", false), ASK);
        assert_eq!(verdict(&approvals, "rm_all", true), ASK);
        assert_eq!(verdict(&approvals, "compile", false), ASK);
        assert_eq!(verdict(&approvals, "file_load", true), ApprovalVerdict::Run);
        let mut approvals = ApprovalSettings::default();
        wants(ApprovalRequirement::EveryCall(true)).tighten_approvals(&mut approvals);
        assert_eq!(verdict(&approvals, "file_load", true), ASK);
    }

    #[test]
    fn a_recipe_never_removes_a_restriction() {
        for wanted in [
            ApprovalRequirement::EveryCall(false),
            ApprovalRequirement::EveryCall(true),
            ApprovalRequirement::For(vec!["*".into()]),
            ApprovalRequirement::For(vec![]),
        ] {
            let mut off = ApprovalSettings::from(ApprovalPolicy::None);
            wants(wanted.clone()).tighten_approvals(&mut off);
            let refused = verdict(&off, "file_save", false);
            assert!(
                matches!(refused, ApprovalVerdict::Refuse { .. }),
                "{wanted:?}: {refused:?}"
            );
            let mut ask = ApprovalSettings::from(ApprovalPolicy::Ask);
            wants(wanted.clone()).tighten_approvals(&mut ask);
            assert_eq!(verdict(&ask, "file_save", false), ASK, "{wanted:?}");
            let mut denied = ApprovalSettings::default();
            denied
                .rules
                .push(ApprovalRule::deny_all_calls("no").with_tool("file_save"));
            wants(wanted.clone()).tighten_approvals(&mut denied);
            let refused = verdict(&denied, "file_save", false);
            assert!(
                matches!(refused, ApprovalVerdict::Refuse { .. }),
                "{wanted:?}: {refused:?}"
            );
        }
    }

    #[test]
    fn a_recipe_sets_its_limits_and_keeps_the_others() {
        let mut limits = Limits {
            max_tool_calls: Some(9),
            ..Limits::default()
        };
        let policy = ToolPolicy {
            max_tools_per_response: Some(3),
            ..ToolPolicy::default()
        };
        policy.lower_tool_call_limits(&mut limits);
        let named = RecipeLimits {
            max_steps: Some(4),
            max_wall_time: Some(Duration::from_millis(1500)),
            ..RecipeLimits::default()
        };
        named.apply_limits(&mut limits);
        assert_eq!(limits.max_calls_per_response, Some(3));
        assert_eq!((limits.max_tool_calls, limits.max_steps), (Some(9), 4));
        assert_eq!(limits.max_wall_time, Some(Duration::from_millis(1500)));
        assert_eq!(limits.max_total_tokens, None);
    }
}
