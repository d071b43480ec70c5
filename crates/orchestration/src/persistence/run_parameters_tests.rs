use std::sync::Arc;

use serde_json::json;
use switchboard_domain::{MAX_JSON_DEPTH, MockChatModel, ModelCapabilities, ModelId};

use super::*;
use crate::{ApprovalPolicy, policy::approval::ApprovalRule};

fn agent(options: RunOptions) -> Agent {
    let mut model = MockChatModel::new();
    model.expect_id().return_const(ModelId::new("p", "m"));
    let capabilities = ModelCapabilities::default();
    model.expect_capabilities().return_const(capabilities);
    Agent::new(Arc::new(model)).with_options(options)
}

#[test]
fn stored_parameters_are_read_again() {
    let mut options = RunOptions::default();
    options.approval.policy = ApprovalPolicy::Ask;
    options
        .approval
        .rules
        .push(ApprovalRule::deny_all_calls("no").with_tool("rm*"));
    options.limits.max_steps = 3;
    let begun = RunParameters {
        recipe: Some("short".into()),
        without_tools: true,
        parameters: Some(json!({"seed": 7})),
        ..RunParameters::from_agent(&agent(options.clone()))
    };
    let stored = begun.clone().into_stored_value().unwrap();
    let read = RunParameters::from_stored_value(Some(&stored)).unwrap();
    assert_eq!(read, begun);
    assert_eq!(read.run_options(), Some(options));
}

#[test]
fn parameters_of_another_version_are_read_if_possible() {
    let stored = json!({"recipe": "r", "later": 1, "options": {"limits": 7}});
    let read = RunParameters::from_stored_value(Some(&stored)).unwrap();
    assert_eq!(
        (read.recipe.as_deref(), read.run_options()),
        (Some("r"), None),
        "its options are none"
    );
    for stored in [None, Some(json!("x")), Some(json!({"recipe": 7}))] {
        assert_eq!(
            RunParameters::from_stored_value(stored.as_ref()),
            None,
            "{stored:?}"
        );
    }
}

#[test]
fn options_that_are_too_large_are_omitted() {
    let mut options = RunOptions::default();
    for n in 0..2_000 {
        let rule = ApprovalRule::deny_all_calls(format!("reason number {n}"))
            .with_tool(format!("tool_{n}"));
        options.approval.rules.push(rule);
    }
    let begun = RunParameters {
        without_tools: true,
        ..RunParameters::from_agent(&agent(options))
    };
    let expected = Some(json!({"without_tools": true}));
    assert_eq!(begun.into_stored_value(), expected);
    let deep = (0..MAX_JSON_DEPTH).fold(json!({}), |inner, _| json!([inner]));
    let begun = RunParameters {
        parameters: Some(deep),
        ..RunParameters::default()
    };
    assert_eq!(begun.into_stored_value(), None);
    let begun = RunParameters {
        recipe: Some("r".repeat(MAX_RUN_PARAMETERS_BYTES)),
        ..RunParameters::default()
    };
    assert_eq!(begun.into_stored_value(), None);
}
