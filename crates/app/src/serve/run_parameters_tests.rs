use switchboard_orchestration::Limits;

use super::*;

#[test]
fn a_client_lessens_what_costs_and_what_may_do_harm() {
    let mut options = RunOptions {
        limits: Limits::with_max_steps(5),
        max_output_tokens: Some(100),
        ..RunOptions::default()
    };
    options.approval.policy = ApprovalPolicy::Ask;
    let settings = |steps, tokens, approve| Parameters {
        max_steps: Some(steps),
        max_output_tokens: Some(tokens),
        approve: Some(approve),
        ..Parameters::default()
    };
    let after = |settings: &Parameters| {
        let mut options = options.clone();
        apply_client_parameters(settings, &mut options);
        options
    };
    let more = after(&settings(50, 1_000, Approve::All));
    assert_eq!(more, options);
    let less = after(&settings(2, 10, Approve::None));
    assert_eq!(less.limits.max_steps, 2);
    assert_eq!(less.max_output_tokens, Some(10));
    assert_eq!(less.approval.policy, ApprovalPolicy::None);
    assert!(
        less.approval.policy_overrides_rules,
        "no rule of a file is above it"
    );
    // A parameter without a limit in the settings gets the value that the client sent.
    let mut open = RunOptions::default();
    apply_client_parameters(&settings(2, 10, Approve::Ask), &mut open);
    assert_eq!(open.max_output_tokens, Some(10));
    assert_eq!(open.approval.policy, ApprovalPolicy::Ask);
    assert!(!open.approval.policy_overrides_rules);
}

#[test]
fn a_client_chooses_the_strategy_of_its_run() {
    let parameters = r#"{"strategy": {"gather-format": {"formatter_mode": "auto"}}}"#;
    let parameters: Parameters = serde_json::from_str(parameters).unwrap();
    let mut options = RunOptions::default();
    apply_client_parameters(&parameters, &mut options);
    assert_eq!(Some(options.strategy), parameters.strategy);
}
