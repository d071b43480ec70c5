use proptest::prelude::*;
use serde_json::json;
use switchboard_domain::{ApprovalDecision, ApprovalScope, ToolOrigin};

use super::*;
use crate::tools::name_pattern::NamePattern;

fn tool(server: &str, own: &str) -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let mut tool = ToolDefinition::new(format!("{server}__{own}"), "Does it.", schema);
    tool.origin = Some(ToolOrigin {
        server: server.to_owned(),
        tool: own.to_owned(),
    });
    tool
}

fn says(read_only: Option<bool>, destructive: Option<bool>) -> ToolAnnotations {
    ToolAnnotations {
        read_only,
        destructive,
        ..ToolAnnotations::default()
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn person(user: &str) -> Principal {
    Principal {
        tenant: String::new(),
        user: user.to_owned(),
    }
}

fn allow(scope: ApprovalScope) -> ApprovalDecision {
    ApprovalDecision::Allow { input: None, scope }
}

fn deny(scope: ApprovalScope) -> ApprovalDecision {
    ApprovalDecision::Deny {
        reason: Some("too dear".to_owned()),
        scope,
    }
}

fn approvals(
    policy: ApprovalPolicy,
    rules: impl IntoIterator<Item = ApprovalRule>,
) -> ApprovalSettings {
    ApprovalSettings {
        rules: rules.into_iter().collect(),
        ..ApprovalSettings::from(policy)
    }
}

/// Returns the verdict on a call in session `s`.
fn verdict(
    approvals: &ApprovalSettings,
    call: &ToolCallToCheck<'_>,
    decisions: &RememberedDecisions,
) -> ApprovalVerdict {
    let requester = Requester {
        principal: &Principal::default(),
        session: "s",
    };
    approvals.verdict_for_call(call, &requester, decisions, at(0))
}

/// Returns the verdict on a call without remembered decisions.
fn fresh(approvals: &ApprovalSettings, call: &ToolCallToCheck<'_>) -> ApprovalVerdict {
    verdict(approvals, call, &RememberedDecisions::default())
}

/// Returns remembered decisions with this one for session `s`.
fn remembered(tool: &ToolDefinition, decision: &ApprovalDecision) -> RememberedDecisions {
    let requester = Requester {
        principal: &Principal::default(),
        session: "s",
    };
    let mut decisions = RememberedDecisions::default();
    assert!(decisions.remember_decision(&requester, tool, decision, None));
    decisions
}

fn of_tool(approvals: &ApprovalSettings, tool: &ToolDefinition) -> ApprovalVerdict {
    fresh(approvals, &ToolCallToCheck::from_tool(tool))
}

const ASK: ApprovalVerdict = ApprovalVerdict::Ask { redefined: false };

fn is_refused(verdict: &ApprovalVerdict) -> bool {
    matches!(verdict, ApprovalVerdict::Refuse { .. })
}

#[test]
fn the_strictest_layer_decides() {
    let mine: Rules = [
        ApprovalRule::allow_all_calls()
            .with_server("crm")
            .with_tool("get_*"),
        ApprovalRule::deny_all_calls("not mine").with_server("crm"),
        ApprovalRule::allow_all_calls(),
    ]
    .into_iter()
    .collect();
    let project: Rules = [
        ApprovalRule::deny_all_calls("production").with_tool("prod_*"),
        ApprovalRule::ask_for_all_calls().with_tool("send_*"),
    ]
    .into_iter()
    .collect();
    for layers in [
        vec![mine.clone(), project.clone()],
        vec![project.clone(), mine.clone()],
    ] {
        let approvals = ApprovalSettings {
            layers,
            // This rule applies only if no rule of a layer matches.
            rules: [ApprovalRule::ask_for_all_calls()].into_iter().collect(),
            ..ApprovalSettings::from(ApprovalPolicy::None)
        };
        let verdict = |server, own| of_tool(&approvals, &tool(server, own));
        assert_eq!(verdict("files", "save"), ApprovalVerdict::Run);
        assert_eq!(verdict("files", "send_mail"), ASK);
        assert!(is_refused(&verdict("files", "prod_drop")));
        // Rules of one layer keep their order: the first match counts.
        assert_eq!(verdict("crm", "get_customer"), ApprovalVerdict::Run);
        assert!(is_refused(&verdict("crm", "send_mail")));
    }
    let only_project = ApprovalSettings {
        layers: vec![project],
        rules: [ApprovalRule::ask_for_all_calls()].into_iter().collect(),
        ..ApprovalSettings::from(ApprovalPolicy::None)
    };
    assert_eq!(
        of_tool(&only_project, &tool("files", "save")),
        ASK,
        "what is behind the layers"
    );
    let stored = serde_json::to_value(&only_project).unwrap();
    assert_eq!(
        serde_json::from_value::<ApprovalSettings>(stored).unwrap(),
        only_project
    );
}

#[test]
fn a_rule_matches_the_own_name_and_the_name_for_the_model() {
    let call_of = |pattern: &str| {
        let approvals = approvals(
            ApprovalPolicy::Ask,
            [ApprovalRule::allow_all_calls().with_tool(pattern)],
        );
        of_tool(&approvals, &tool("git", "push"))
    };
    assert_eq!(call_of("push"), ApprovalVerdict::Run);
    assert_eq!(call_of("git__push"), ApprovalVerdict::Run);
    assert_eq!(call_of("git__*"), ApprovalVerdict::Run);
    assert_eq!(call_of("pus"), ASK);
}

#[test]
fn a_server_cannot_imitate_the_tool_of_another_server() {
    let mut spoof = tool("evil", "git__push");
    spoof.name = "evil__git__push_01234567".to_owned();
    let allowing = approvals(
        ApprovalPolicy::Ask,
        [ApprovalRule::allow_all_calls().with_tool("git__*")],
    );
    assert_eq!(of_tool(&allowing, &spoof), ASK);
    // A rule that denies matches every reading of the ambiguous name.
    let denying = approvals(
        ApprovalPolicy::All,
        [ApprovalRule::deny_all_calls("no").with_tool("git__*")],
    );
    assert!(is_refused(&of_tool(&denying, &spoof)));
}

#[test]
fn a_tool_without_a_server_matches_no_server_rule() {
    let function = ToolDefinition::new("roll_dice", "Rolls.", json!({}));
    let by_server = approvals(
        ApprovalPolicy::All,
        [ApprovalRule::deny_all_calls("no").with_server("*")],
    );
    assert_eq!(of_tool(&by_server, &function), ApprovalVerdict::Run);
    let by_name = approvals(
        ApprovalPolicy::All,
        [ApprovalRule::deny_all_calls("no").with_tool("roll_*")],
    );
    assert!(is_refused(&of_tool(&by_name, &function)));
}

#[test]
fn missing_annotations_have_cautious_defaults() {
    type Narrow = fn(&mut ApprovalRule);
    let read_only: Narrow = |rule| rule.read_only = Some(true);
    let destructive: Narrow = |rule| rule.destructive = Some(true);
    let idempotent: Narrow = |rule| rule.idempotent = Some(true);
    let closed: Narrow = |rule| rule.open_world = Some(false);
    let silent = ToolAnnotations::default();
    let reads = says(Some(true), None);
    // A read-only tool cannot be destructive, so these annotations contradict each other.
    let liar = says(Some(true), Some(true));
    let adds = says(Some(false), Some(false));
    let stays = ToolAnnotations {
        open_world: Some(false),
        ..silent
    };
    for (narrow, matching, others) in [
        (read_only, vec![reads], vec![silent, liar]),
        (destructive, vec![silent, liar], vec![reads, adds]),
        (idempotent, vec![reads], vec![silent]),
        (closed, vec![stays], vec![silent]),
    ] {
        let mut rule = ApprovalRule::ask_for_all_calls();
        narrow(&mut rule);
        let matches = |annotations: &ToolAnnotations| {
            let mut tool = tool("s", "t");
            tool.annotations = *annotations;
            rule.matches_call(&ToolCallToCheck::from_tool(&tool))
        };
        assert!(matching.iter().all(matches), "{rule:?}");
        assert!(!others.iter().any(matches), "{rule:?}");
    }
}

#[test]
fn a_decision_applies_to_its_person_session_and_time() {
    let approvals = ApprovalSettings::from(ApprovalPolicy::Ask);
    let (ann, bob) = (person("ann"), person("bob"));
    let requester = |principal, session| Requester { principal, session };
    let tool = tool("crm", "update");
    let mut decisions = RememberedDecisions::default();

    let once = allow(ApprovalScope::Once);
    assert!(!decisions.remember_decision(&requester(&ann, "one"), &tool, &once, None));
    for no_answer in [
        ApprovalDecision::NobodyThere,
        ApprovalDecision::Expired,
        ApprovalDecision::Later,
    ] {
        assert!(!decisions.remember_decision(&requester(&ann, "one"), &tool, &no_answer, None));
    }
    assert!(decisions.remembered_decisions().is_empty());

    let session = allow(ApprovalScope::Session);
    assert!(decisions.remember_decision(&requester(&ann, "one"), &tool, &session, None));
    let verdict = |decisions: &RememberedDecisions, principal, session, now| {
        approvals.verdict_for_call(
            &ToolCallToCheck::from_tool(&tool),
            &requester(principal, session),
            decisions,
            at(now),
        )
    };
    assert_eq!(verdict(&decisions, &ann, "one", 0), ApprovalVerdict::Run);
    assert_eq!(verdict(&decisions, &ann, "two", 0), ASK);
    assert_eq!(verdict(&decisions, &bob, "one", 0), ASK);
    assert_eq!(decisions.forget_session_decisions(&bob, "one"), 0);
    assert_eq!(decisions.forget_session_decisions(&ann, "one"), 1);
    assert_eq!(verdict(&decisions, &ann, "one", 0), ASK);

    let always = allow(ApprovalScope::Always);
    decisions.remember_decision(&requester(&ann, "one"), &tool, &always, Some(at(60)));
    assert_eq!(verdict(&decisions, &ann, "two", 59), ApprovalVerdict::Run);
    assert_eq!(verdict(&decisions, &ann, "two", 60), ASK);
    assert_eq!(decisions.remove_expired_decisions(at(59)), 0);
    assert_eq!(decisions.remove_expired_decisions(at(60)), 1);
}

#[test]
fn a_decision_does_not_apply_to_another_tool_of_the_same_name() {
    let mut tool = tool("crm", "update");
    let decisions = remembered(&tool, &allow(ApprovalScope::Always));
    tool.origin = None;
    let approvals = ApprovalSettings::from(ApprovalPolicy::Ask);
    assert_eq!(
        verdict(&approvals, &ToolCallToCheck::from_tool(&tool), &decisions),
        ASK
    );
}

#[test]
fn rules_are_deserialized_and_unknown_keys_are_errors() {
    let approvals: ApprovalSettings = serde_json::from_value(json!({
        "policy": "ask",
        "expire_after": 90,
        "rules": [
            {"server": "prod", "verdict": "deny", "reason": "not today"},
            {"tool": "get_*", "verdict": "allow"},
            {"tool": ["a", "b?"], "destructive": false, "verdict": "ask"},
        ],
    }))
    .unwrap();
    assert_eq!(approvals.expire_after, Some(Duration::from_secs(90)));
    let expected = ApprovalRule::deny_all_calls("not today").with_server("prod");
    assert_eq!(approvals.rules[0], expected);
    assert_eq!(approvals.rules[2].tool.len(), 2);
    let stored = serde_json::to_value(&approvals).unwrap();
    assert_eq!(stored["expire_after"], json!(90));
    assert_eq!(
        serde_json::from_value::<ApprovalSettings>(stored).unwrap(),
        approvals
    );
    for wrong in [
        json!({"tools": "x", "verdict": "deny"}),
        json!({"tool": "x"}),
        json!({"tool": "x", "verdict": "maybe"}),
    ] {
        assert!(
            serde_json::from_value::<ApprovalRule>(wrong.clone()).is_err(),
            "{wrong}"
        );
    }
    assert!(serde_json::from_value::<ApprovalSettings>(json!({"expire_after": -1})).is_err());
}

#[test]
fn the_fingerprint_equals_that_of_the_mcp_host() {
    // The digits are fixed, because stored decisions contain them and the MCP host computes them
    // too.
    let mut tool = tool("s", "read");
    tool.annotations.read_only = Some(true);
    let one = tool_fingerprint(&tool);
    let expected = "774d78d94bafff04bde600b092b54c3ef015da05e53e5fee7a75c5186e77dab7";
    assert_eq!(one, expected);
    tool.name = "another_alias".to_owned();
    assert_eq!(tool_fingerprint(&tool), one, "the alias does not count");
    tool.input_schema = json!({"properties": {"id": {"type": "string"}}, "type": "object"});
    assert_eq!(tool_fingerprint(&tool), one, "nor does the order of keys");
    tool.annotations.read_only = None;
    assert_ne!(tool_fingerprint(&tool), one);
}

fn any_rule() -> impl Strategy<Value = ApprovalRule> {
    let flag = || prop::option::of(any::<bool>());
    let name = prop::option::of(prop::sample::select(vec!["*", "a*", "s", "b"]));
    (
        name.clone(),
        name,
        flag(),
        flag(),
        flag(),
        prop::sample::select(vec![
            RuleVerdict::Allow,
            RuleVerdict::Ask,
            RuleVerdict::Deny,
        ]),
    )
        .prop_map(
            |(server, tool, read_only, destructive, redefined, verdict)| ApprovalRule {
                server: server.map(NamePattern::new),
                tool: tool.into_iter().map(NamePattern::new).collect(),
                read_only,
                destructive,
                redefined,
                verdict,
                ..ApprovalRule::ask_for_all_calls()
            },
        )
}

proptest! {
    /// The verdict follows the order in the module documentation.
    #[test]
    fn denials_apply_and_only_an_approval_of_this_definition_counts(
        rules in prop::collection::vec(any_rule(), 0..4),
        policy in prop::sample::select(vec![ApprovalPolicy::All, ApprovalPolicy::Ask, ApprovalPolicy::None]),
        read_only in prop::option::of(any::<bool>()),
        told in prop::option::of(any::<bool>()),
        changed in any::<bool>(),
    ) {
        let approvals = approvals(policy, rules);
        let mut tool = tool("s", "a1");
        tool.annotations.read_only = read_only;
        let decision = if told == Some(true) { allow } else { deny }(ApprovalScope::Always);
        let decisions = told.map(|_| remembered(&tool, &decision)).unwrap_or_default();
        if changed {
            tool.description.push('!');
        }
        let call = ToolCallToCheck::from_tool(&tool).with_redefined_tool(changed);
        // The annotations of a changed tool cannot permit anything.
        let calls = if changed { vec![call, call.without_annotations()] } else { vec![call] };
        let rules: Vec<_> = calls
            .iter()
            .map(|call| find_first_match(&approvals.rules, call).map(|rule| rule.verdict))
            .collect();
        let allowed = |at: usize| match rules[at] {
            Some(rule) => rule == RuleVerdict::Allow,
            None => policy.verdict_for_annotations(calls[at].annotations) == ApprovalVerdict::Run,
        };
        let refused = |at: usize| match rules[at] {
            Some(rule) => rule == RuleVerdict::Deny,
            None => is_refused(&policy.verdict_for_annotations(calls[at].annotations)),
        };
        let before = verdict(&approvals, &call, &decisions);
        match before {
            ApprovalVerdict::Run => {
                prop_assert!(!rules.contains(&Some(RuleVerdict::Deny)));
                prop_assert_ne!(told, Some(false));
                let by_yes = told == Some(true) && !changed;
                prop_assert!(by_yes || (0..calls.len()).all(allowed));
            }
            ApprovalVerdict::Ask { redefined } => {
                prop_assert!(!(0..calls.len()).all(allowed));
                prop_assert_eq!(redefined, changed);
                prop_assert!(told.is_none() || changed);
            }
            ApprovalVerdict::Refuse { .. } => {
                prop_assert!(told == Some(false) || (0..calls.len()).any(refused));
            }
        }
        // With `policy_overrides_rules`, a call that the policy refuses is refused. Other verdicts
        // stay.
        let insistent = ApprovalSettings { policy_overrides_rules: true, ..approvals.clone() };
        let now = verdict(&insistent, &call, &decisions);
        if calls.iter().any(|call| is_refused(&policy.verdict_for_annotations(call.annotations))) {
            prop_assert!(is_refused(&now), "{:?}", now);
        } else {
            prop_assert_eq!(now, before);
        }
    }
}

#[test]
fn a_server_can_require_a_new_approval_of_each_call() {
    let mut mine = tool("client", "t");
    let mut approvals = approvals(
        ApprovalPolicy::All,
        [ApprovalRule::allow_all_calls().with_server("client")],
    );
    assert_eq!(of_tool(&approvals, &mine), ApprovalVerdict::Run);
    approvals.always_ask_servers.push("client".to_owned());
    assert!(approvals.always_requires_approval(&mine));
    assert!(!approvals.always_requires_approval(&tool("other", "t")));
    for word in [allow(ApprovalScope::Always), deny(ApprovalScope::Session)] {
        // An earlier version may have stored such a decision.
        let decisions = remembered(&mine, &word);
        let verdict = verdict(&approvals, &ToolCallToCheck::from_tool(&mine), &decisions);
        assert_eq!(verdict, ASK, "{word:?}");
    }
    // The rule holds even for a read-only tool and for a policy that refuses the call.
    mine.annotations = says(Some(true), None);
    approvals.rules = Rules::default();
    assert_eq!(of_tool(&approvals, &mine), ASK);
    mine.annotations = says(None, None);
    approvals.policy = ApprovalPolicy::None;
    assert_eq!(of_tool(&approvals, &mine), ASK);
    let other = of_tool(&approvals, &tool("other", "t"));
    assert!(is_refused(&other));
    // A rule that denies still applies.
    approvals
        .rules
        .push(ApprovalRule::deny_all_calls("no").with_server("client"));
    assert!(is_refused(&of_tool(&approvals, &mine)));
}

#[test]
fn the_number_of_session_decisions_per_person_is_limited() {
    let (me, other) = (person("me"), person("other"));
    let tool = tool("s", "t");
    let mut decisions = RememberedDecisions::default();
    let mut remember = |principal: &Principal, session: &str, scope| {
        let requester = Requester { principal, session };
        assert!(decisions.remember_decision(&requester, &tool, &allow(scope), None));
    };
    remember(&other, "first", ApprovalScope::Session);
    remember(&me, "first", ApprovalScope::Always);
    for n in 0..super::decisions::MAX_SESSION_DECISIONS + 2 {
        remember(&me, &format!("s{n}"), ApprovalScope::Session);
    }
    let of = |principal: &Principal| -> Vec<Option<&str>> {
        let entries = decisions.remembered_decisions().iter();
        let theirs = entries.filter(|entry| entry.principal == *principal);
        theirs.map(|entry| entry.session.as_deref()).collect()
    };
    assert_eq!(of(&other), [Some("first")], "theirs stay");
    let mine = of(&me);
    assert_eq!(mine.len(), super::decisions::MAX_SESSION_DECISIONS + 1);
    assert_eq!(mine[..2], [None, Some("s2")], "the oldest went");
}

#[test]
fn a_call_that_requires_approval_runs_only_if_a_person_approved() {
    let writes = tool("s", "t");
    let mut reads = tool("s", "r");
    reads.annotations = says(Some(true), None);
    let reading = ToolCallToCheck::from_tool(&reads).with_required_approval(true);
    let writing = ToolCallToCheck::from_tool(&writes).with_required_approval(true);
    for mut approvals in [
        ApprovalSettings::default(),
        approvals(ApprovalPolicy::All, [ApprovalRule::allow_all_calls()]),
        approvals(
            ApprovalPolicy::None,
            [ApprovalRule::allow_all_calls().with_server("s")],
        ),
    ] {
        assert_eq!(of_tool(&approvals, &writes), ApprovalVerdict::Run);
        assert_eq!(fresh(&approvals, &writing), ASK);
        assert_eq!(fresh(&approvals, &reading), ApprovalVerdict::Run);
        let approved = remembered(&writes, &allow(ApprovalScope::Session));
        let expected = ApprovalVerdict::Run;
        assert_eq!(verdict(&approvals, &writing, &approved), expected);
        approvals.approved_in_advance = true;
        assert_eq!(fresh(&approvals, &writing), ApprovalVerdict::Run);
    }
    // The decision does not approve a call that a rule or the policy denies or asks about.
    for (policy, rule) in [
        (ApprovalPolicy::Ask, None),
        (ApprovalPolicy::None, None),
        (
            ApprovalPolicy::All,
            Some(ApprovalRule::deny_all_calls("no")),
        ),
    ] {
        let mut approvals = approvals(policy, rule);
        approvals.approved_in_advance = true;
        assert_ne!(fresh(&approvals, &writing), ApprovalVerdict::Run);
    }
}
