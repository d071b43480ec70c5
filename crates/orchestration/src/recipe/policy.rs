//! What a recipe's tools may do, and what ends its runs.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::tools::{loose, loose_halves};
use crate::{
    Limits,
    policy::approval::{ApprovalPolicy, Approvals, Rule},
};

/// What the tools may do. `None` leaves it to the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ToolPolicy {
    /// Calls in one answer; those beyond it are not executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tools_per_response: Option<u32>,
    /// Calls within any sixty seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tools_per_minute: Option<u32>,
    /// Calls in the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tools_per_run: Option<u32>,
    /// Which calls a person has to agree to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<RequiresApproval>,
}

/// Which calls a person has to agree to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequiresApproval {
    /// None beyond those that the configuration wants.
    Never,
    /// Every call, also of tools that only read.
    Always,
    /// Calls of these tools, as [`matches()`](super::matches) has them.
    For(Vec<String>),
}

impl Serialize for RequiresApproval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Never => serializer.serialize_bool(false),
            Self::Always => serializer.serialize_bool(true),
            Self::For(patterns) => patterns.serialize(serializer),
        }
    }
}

impl ToolPolicy {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the calls that need a person's word to what is configured.
    ///
    /// A recipe can only make it stricter: its rules come after those that are there, which decide
    /// first, and where tools that change something are switched off they stay so.
    pub fn tighten(&self, approvals: &mut Approvals) {
        let mut rules = Vec::new();
        match &self.requires_approval {
            None | Some(RequiresApproval::Never) => {}
            Some(RequiresApproval::Always) => rules.push(Rule::ask()),
            Some(RequiresApproval::For(patterns)) if patterns.is_empty() => {}
            Some(RequiresApproval::For(patterns)) => {
                let names = patterns.iter().map(|pattern| loose(pattern));
                rules.push(names.fold(Rule::ask(), Rule::tool));
                // A name for the model may be shortened; server and own name are not.
                let halves = patterns.iter().filter_map(|pattern| loose_halves(pattern));
                rules.extend(halves.map(|(server, tool)| Rule::ask().server(server).tool(tool)));
            }
        }
        for mut rule in rules {
            if approvals.policy == ApprovalPolicy::None {
                rule.read_only = Some(true);
            }
            approvals.rules.push(rule);
        }
    }

    /// Sets the limits that it names.
    pub fn limit(&self, limits: &mut Limits) {
        set(
            &mut limits.max_calls_per_response,
            self.max_tools_per_response,
        );
        set(&mut limits.max_calls_per_minute, self.max_tools_per_minute);
        set(&mut limits.max_tool_calls, self.max_tools_per_run);
    }
}

/// What ends a run early. `None` leaves it to the configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct RecipeLimits {
    /// Calls of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Tokens of all prompts together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u64>,
    /// Tokens written, all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Both together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u64>,
    /// US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wall_time: Option<f64>,
}

impl RecipeLimits {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets the limits that it names.
    pub fn limit(&self, limits: &mut Limits) {
        if let Some(steps) = self.max_steps {
            limits.max_steps = steps;
        }
        set(&mut limits.max_input_tokens, self.max_input_tokens);
        set(&mut limits.max_output_tokens, self.max_output_tokens);
        set(&mut limits.max_total_tokens, self.max_total_tokens);
        set(&mut limits.max_cost_usd, self.max_cost_usd);
        let time = self
            .max_wall_time
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        set(&mut limits.max_wall_time, time);
    }
}

/// A recipe makes a limit lower and never higher.
fn set<T: PartialOrd + Copy>(limit: &mut Option<T>, wanted: Option<T>) {
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
    use crate::policy::approval::{Asker, Call, Decisions, Verdict};

    fn verdict(approvals: &Approvals, name: &str, read_only: bool) -> Verdict {
        let mut tool = ToolDefinition::new(name, "", json!({}));
        tool.annotations.read_only = Some(read_only);
        let asker = Asker {
            principal: &Principal::default(),
            session: "s",
        };
        let now = Timestamp::UNIX_EPOCH;
        approvals.verdict(&Call::of(&tool), &asker, &Decisions::default(), now)
    }

    fn wants(requires_approval: RequiresApproval) -> ToolPolicy {
        ToolPolicy {
            requires_approval: Some(requires_approval),
            ..ToolPolicy::default()
        }
    }

    const ASK: Verdict = Verdict::Ask { redefined: false };

    #[test]
    fn a_recipe_asks_for_more_approvals() {
        let mut approvals = Approvals::default();
        wants(RequiresApproval::For(vec![
            "file/save".into(),
            "rm_*".into(),
        ]))
        .tighten(&mut approvals);
        assert_eq!(verdict(&approvals, "file_save", false), ASK);
        assert_eq!(verdict(&approvals, "rm_all", true), ASK);
        assert_eq!(verdict(&approvals, "file_load", true), Verdict::Run);
        let mut approvals = Approvals::default();
        wants(RequiresApproval::Always).tighten(&mut approvals);
        assert_eq!(verdict(&approvals, "file_load", true), ASK);
    }

    #[test]
    fn a_recipe_never_loosens_what_is_configured() {
        for wanted in [
            RequiresApproval::Never,
            RequiresApproval::Always,
            RequiresApproval::For(vec!["*".into()]),
            RequiresApproval::For(vec![]),
        ] {
            let mut off = Approvals::from(ApprovalPolicy::None);
            wants(wanted.clone()).tighten(&mut off);
            let refused = verdict(&off, "file_save", false);
            assert!(
                matches!(refused, Verdict::Refuse { .. }),
                "{wanted:?}: {refused:?}"
            );
            let mut ask = Approvals::from(ApprovalPolicy::Ask);
            wants(wanted.clone()).tighten(&mut ask);
            assert_eq!(verdict(&ask, "file_save", false), ASK, "{wanted:?}");
            let mut denied = Approvals::default();
            denied.rules.push(Rule::deny("no").tool("file_save"));
            wants(wanted.clone()).tighten(&mut denied);
            let refused = verdict(&denied, "file_save", false);
            assert!(
                matches!(refused, Verdict::Refuse { .. }),
                "{wanted:?}: {refused:?}"
            );
        }
    }

    #[test]
    fn limits_that_are_named_are_set_and_others_stay() {
        let mut limits = Limits {
            max_tool_calls: Some(9),
            ..Limits::default()
        };
        let policy = ToolPolicy {
            max_tools_per_response: Some(3),
            ..ToolPolicy::default()
        };
        policy.limit(&mut limits);
        let named = RecipeLimits {
            max_steps: Some(4),
            max_wall_time: Some(1.5),
            ..RecipeLimits::default()
        };
        named.limit(&mut limits);
        assert_eq!(limits.max_calls_per_response, Some(3));
        assert_eq!((limits.max_tool_calls, limits.max_steps), (Some(9), 4));
        assert_eq!(limits.max_wall_time, Some(Duration::from_millis(1500)));
        assert_eq!(limits.max_total_tokens, None);
    }
}
