//! The content of requests and the cost of creating them, with long conversations, many tools and
//! recipes.

use std::sync::Arc;

use serde_json::json;
use switchboard_domain::{
    ApprovalDecision, ApprovalScope, Message, ModelErrorKind, Role, ToolChoice, ToolOutput, Usage,
};
use switchboard_orchestration::{
    Agent, ApprovalPolicy, ModelCallPurpose, Outcome, RunEvent, RunEventKind, RunOptions, RunPhase,
    ToolFailure,
    observe::audit::{
        AuditKind, AuditOptions, AuditTrail, AuditedModelCall, CostFunction, ModelCallResult,
    },
    observe::metrics::{Metrics, MetricsSnapshot},
    recipe::Recipe,
    strategy::{GatherFormat, Strategy},
    tools::search::SearchPolicy,
};

use crate::{
    durable_runs::one,
    gather_format::phases,
    support::{
        Answer, Person, Scripted, Shelf, Tools, agent_with, ask, assert_grammar, assert_whole,
        calls, echo, echoing, has, picked, played, results, tool,
    },
};

fn long_ago() -> Vec<Arc<Message>> {
    [
        Message::system("Be brief."),
        Message::user("We talk about customers."),
        Message::assistant("Customer 7 pays late. ".repeat(100)),
        Message::user("What about customer 7?"),
    ]
    .map(Arc::new)
    .to_vec()
}

fn summarising() -> RunOptions {
    let mut options = RunOptions::default();
    options.history.max_tokens = Some(400);
    options.history.summarise = true;
    options
}

#[tokio::test]
async fn omitted_messages_are_summarised_by_the_model() {
    let model = Scripted::new([
        Answer::Says("Customer 7 pays late."),
        one("a"),
        Answer::Says("ok"),
    ]);
    let agent = agent_with(&model, &echoing(&["do"]), summarising());
    let (events, run) = played(agent.run(long_ago())).await;
    assert_grammar(&events);
    assert_whole(run.messages());
    let report = run.build_report().unwrap();
    assert_eq!(
        (report.answer.as_str(), report.steps),
        ("ok", 2),
        "a summary does not count as a step"
    );
    assert_eq!(
        run.messages().len(),
        7,
        "nothing is lost of the history itself"
    );

    let wanted = model.request(0);
    assert!(wanted.tools.is_empty());
    assert!(
        wanted.messages[1]
            .text()
            .contains("Customer 7 pays late. Customer 7")
    );
    for n in [1, 2] {
        let texts: Vec<_> = model.request(n).messages.iter().map(|m| m.text()).collect();
        assert_eq!(texts[..2], ["Be brief.", "We talk about customers."]);
        assert!(texts[2].ends_with("Customer 7 pays late."), "{texts:?}");
        assert_eq!(texts[3], "What about customer 7?");
    }
    let trims = events.iter().filter_map(|event| match event.kind {
        RunEventKind::HistoryTrimmed {
            summarised,
            left_out,
            ..
        } => Some((summarised, left_out)),
        _ => None,
    });
    assert_eq!(trims.collect::<Vec<_>>(), [(true, 1)]);
    // The summary is not emitted as an answer.
    assert_eq!(crate::support::streamed(&events), "ok");
}

/// Returns the audited model calls and the metrics of the events.
fn recorded(events: &[RunEvent]) -> (Vec<AuditedModelCall>, MetricsSnapshot) {
    let cost: CostFunction = Arc::new(|_, usage| {
        let tokens = u32::try_from(usage.output_tokens?).ok()?;
        Some(f64::from(tokens))
    });
    let mut audit = AuditTrail::new(AuditOptions {
        cost: Some(cost.clone()),
        ..AuditOptions::default()
    });
    let mut metrics = Metrics::default().with_cost_function(cost);
    let mut calls = Vec::new();
    let mut recorded = Metrics::default();
    for event in events {
        metrics.count_event(event);
        for record in audit.create_records(event) {
            recorded.count_audit_record(&record);
            if let AuditKind::ModelCall(call) = record.kind {
                calls.push(call);
            }
        }
    }
    let counted = metrics.take_snapshot();
    let of_records = recorded.take_snapshot();
    assert_eq!(counted.models[0].requests, of_records.models[0].requests);
    assert_eq!(counted.models[0].tokens, of_records.models[0].tokens);
    (calls, counted)
}

#[tokio::test]
async fn the_usage_of_a_summary_is_emitted_recorded_and_counted() {
    let usage = |output| Usage {
        input_tokens: Some(10),
        output_tokens: Some(output),
        ..Usage::default()
    };
    let model = Scripted::new([
        Answer::Costs("Customer 7 pays late.", usage(3)),
        Answer::Costs("ok", usage(4)),
    ]);
    let agent = Agent::new(model).with_options(summarising());
    let (events, run) = played(agent.run(long_ago())).await;
    assert_grammar(&events);
    let told: Vec<_> = picked(&events, |kind| match kind {
        RunEventKind::HistorySummarised {
            step, usage, error, ..
        } => Some((*step, usage.output_tokens, error.clone())),
        _ => None,
    });
    assert_eq!(told, [(1, Some(3), None)]);
    assert_eq!(run.build_report().unwrap().usage.output_tokens, Some(7));

    let (calls, counted) = recorded(&events);
    let calls: Vec<_> = calls
        .iter()
        .map(|call| (call.purpose, call.step, call.end, call.cost_usd))
        .collect();
    assert_eq!(
        calls,
        [
            (
                ModelCallPurpose::Summary,
                1,
                ModelCallResult::Answered,
                Some(3.0)
            ),
            (
                ModelCallPurpose::Answer,
                1,
                ModelCallResult::Answered,
                Some(4.0)
            ),
        ]
    );
    let model = &counted.models[0];
    assert_eq!((model.requests.total, model.requests.successful), (2, 2));
    assert!((model.cost_usd - 7.0).abs() < f64::EPSILON);

    // One summary fails, and the run is cancelled during the other one.
    let model = Scripted::new([
        Answer::Fails(ModelErrorKind::Authentication, "no"),
        Answer::Says("ok"),
    ]);
    let agent = Agent::new(model).with_options(summarising());
    let (events, run) = played(agent.run(long_ago())).await;
    let report = run.build_report().unwrap();
    assert_eq!(report.outcome, Outcome::Completed);
    let warning = &report.warnings[0].message;
    assert!(warning.contains("could not be summarised"), "{warning}");
    let (calls, counted) = recorded(&events);
    assert_eq!(
        (calls[0].purpose, calls[0].end, calls[0].error.as_deref()),
        (
            ModelCallPurpose::Summary,
            ModelCallResult::Failed,
            Some("authentication")
        )
    );
    assert_eq!(counted.models[0].requests.failed, 1);

    let agent = Agent::new(Scripted::new([])).with_options(summarising());
    let mut stream = agent.run(long_ago());
    let handle = stream.cancel_handle();
    let mut events = Vec::new();
    while let Some(event) = futures_util::StreamExt::next(&mut stream).await {
        if matches!(event.kind, RunEventKind::HistoryTrimmed { .. }) {
            handle.cancel_run();
        }
        events.push(event);
    }
    let (calls, counted) = recorded(&events);
    let expected = (ModelCallPurpose::Summary, ModelCallResult::Cancelled);
    assert_eq!((calls[0].purpose, calls[0].end), expected);
    assert_eq!(counted.models[0].requests.cancelled, 1);
}

#[tokio::test]
async fn a_phase_starts_once() {
    let model = Scripted::new([
        Answer::Says("A summary."),
        Answer::Fails(ModelErrorKind::Authentication, "no"),
    ]);
    let other = Scripted::named(
        "other",
        switchboard_domain::ModelCapabilities::default(),
        [Answer::Says("Nothing to gather."), Answer::Says("ok")],
    );
    let agent = Agent::new(model)
        .with_fallback(other)
        .with_options(RunOptions {
            strategy: Strategy::GatherFormat(GatherFormat::default()),
            ..summarising()
        });
    let (events, _) = played(agent.run(long_ago())).await;
    assert_eq!(phases(&events), [RunPhase::Gathering, RunPhase::Formatting]);
}

fn many() -> Arc<Tools> {
    let mut tools = Tools::new();
    for (name, what) in [
        ("do", "Does it."),
        ("refund", "Pays the money of an order back."),
        ("weather", "Tells the weather of a city."),
        ("invoice", "Lists the invoices of a customer."),
    ] {
        let mut definition = tool(name);
        definition.description = what.into();
        tools = tools.with(definition, echo);
    }
    Arc::new(tools)
}

fn searching() -> RunOptions {
    RunOptions {
        search: SearchPolicy {
            above_tools: 2,
            max_results: 1,
            ..SearchPolicy::default()
        },
        ..RunOptions::default()
    }
}

fn offered(model: &Scripted, n: usize) -> Vec<String> {
    let tools = model.request(n).tools;
    tools.iter().map(|tool| tool.name.clone()).collect()
}

#[tokio::test]
async fn of_many_tools_the_model_gets_the_found_ones() {
    let model = Scripted::new([
        calls(&[("s", "search_tools", json!({"query": "pay an order back"}))]),
        calls(&[("r", "srv__refund", json!({"n": 1}))]),
        Answer::Says("ok"),
    ]);
    let tools = many();
    let (_, report) = ask(&agent_with(&model, &tools, searching()), "go").await;
    assert_eq!(offered(&model, 0), ["search_tools"]);
    assert!(results(&model, 1)[0].contains("srv__refund"));
    assert_eq!(offered(&model, 1), ["search_tools", "srv__refund"]);
    let expected = ["srv__refund"];
    assert_eq!(tools.called(), expected, "the search itself asks no host");
    assert!(report.tool_calls.iter().all(|call| !call.is_error));
}

#[tokio::test]
async fn a_call_of_an_unoffered_tool_runs_if_its_input_is_valid() {
    let model = Scripted::calling(&[
        ("a", "srv__weather", json!({"n": 1})),
        ("b", "srv__weather", json!({"city": "Bonn"})),
    ]);
    let tools = many();
    let (_, report) = ask(&agent_with(&model, &tools, searching()), "go").await;
    assert_eq!(tools.called(), ["srv__weather"]);
    let expected = Some(ToolFailure::InvalidInput);
    assert_eq!(report.tool_calls[1].failure, expected);
    assert_eq!(offered(&model, 1), ["search_tools", "srv__weather"]);
}

#[tokio::test]
async fn an_edited_input_is_validated_for_unoffered_tools_and_in_other_processes() {
    let searching_and_asking = || RunOptions {
        approval: ApprovalPolicy::Ask.into(),
        ..searching()
    };
    let weather = calls(&[("a", "srv__weather", json!({"n": 1}))]);
    let agent = agent_with(&Scripted::new([weather]), &many(), searching_and_asking())
        .with_approver(Person::who_says([ApprovalDecision::Later]))
        .with_checkpoints(Arc::new(Shelf::default()));
    let (_, run) = played(agent.ask("go")).await;
    let stored = serde_json::to_string(&run).unwrap();

    for (edit, fits) in [(json!({"n": 2}), true), (json!({"n": "two"}), false)] {
        let tools = many();
        let decision = ApprovalDecision::Allow {
            input: edit.as_object().cloned(),
            scope: ApprovalScope::Once,
        };
        let agent = agent_with(
            &Scripted::new([Answer::Says("ok")]),
            &tools,
            searching_and_asking(),
        )
        .with_approver(Person::who_says([decision]));
        let (_, run) = played(agent.resume_run(serde_json::from_str(&stored).unwrap())).await;
        assert_whole(run.messages());
        assert_eq!(tools.called().len(), usize::from(fits), "{edit}");
    }
}

#[tokio::test]
async fn a_forced_tool_is_offered_among_many() {
    let model = Scripted::new([
        calls(&[("a", "srv__invoice", json!({"n": 1}))]),
        Answer::Says("ok"),
    ]);
    let agent = agent_with(
        &model,
        &many(),
        RunOptions {
            tool_choice: ToolChoice::Only(vec!["srv__invoice".into()]),
            ..searching()
        },
    );
    ask(&agent, "go").await;
    assert_eq!(offered(&model, 0), ["search_tools", "srv__invoice"]);
    assert_eq!(model.request(1).tool_choice, ToolChoice::Auto);
}

fn recipe() -> Arc<Recipe> {
    let recipe = Recipe::from_value(&json!({
        "name": "orders",
        "instructions": "You help with orders.",
        "tools": {
            "allow": ["refund", "weather"],
            "descriptions": {"refund": "Pays back; ask before."},
        },
        "examples": [{
            "user": "Pay order 1 back.",
            "calls": [{"tool": "refund", "input": {"n": 1}, "result": "paid"}],
            "answer": "It is paid back.",
        }],
    }));
    Arc::new(recipe.unwrap())
}

#[tokio::test]
async fn a_recipe_provides_prompt_tools_descriptions_and_examples() {
    let model = Scripted::calling(&[
        ("a", "srv__refund", json!({"n": 2})),
        ("b", "srv__invoice", json!({"n": 2})),
    ]);
    let tools = many();
    let agent = Agent::new(model.clone())
        .with_tools(tools.clone())
        .with_recipe(recipe());
    let (_, report) = ask(&agent, "Pay order 2 back.").await;
    let expected = ["srv__refund"];
    assert_eq!(tools.called(), expected, "the list does not select tools");
    assert_eq!(report.tool_calls[1].failure, Some(ToolFailure::UnknownTool));
    let request = model.request(0);
    assert_eq!(offered(&model, 0), ["srv__refund", "srv__weather"]);
    assert_eq!(request.tools[0].description, "Pays back; ask before.");
    let said: Vec<_> = request
        .messages
        .iter()
        .map(|m| (m.role, m.text()))
        .collect();
    assert!(said[0].1.starts_with("You help with orders."));
    assert_eq!(said[1], (Role::User, "Pay order 1 back.".into()));
    assert_eq!(said[4], (Role::Assistant, "It is paid back.".into()));
    assert_eq!(said[5], (Role::User, "Pay order 2 back.".into()));
    assert_eq!(said.len(), 6);
}

#[tokio::test]
async fn an_omitted_example_is_a_warning_of_the_run() {
    let model = Scripted::new([Answer::Says("ok")]);
    let agent = Agent::new(model.clone())
        .with_tools(echoing(&["weather"]))
        .with_recipe(recipe());
    let (_, report) = ask(&agent, "Pay order 2 back.").await;
    let warnings: Vec<_> = report.warnings.iter().map(|it| &*it.message).collect();
    let omitted = "recipe example 1 was omitted: tool `refund` is not available";
    assert!(warnings.contains(&omitted), "{warnings:?}");
    assert_eq!(model.request(0).messages.len(), 2);
}

#[tokio::test]
async fn examples_are_added_once_and_never_omitted() {
    let long = Tools::new().with(tool("refund"), |_| {
        Ok(ToolOutput::text("word ".repeat(300)))
    });
    let broken = Scripted::new([Answer::Fails(ModelErrorKind::Authentication, "no")]);
    let ids = ["a", "b", "c", "d"];
    let model = Scripted::named(
        "other",
        switchboard_domain::ModelCapabilities::default(),
        ids.map(|id| calls(&[(id, "srv__refund", json!({"n": 1}))]))
            .into_iter()
            .chain([Answer::Says("ok")]),
    );
    let mut options = RunOptions::default();
    options.history.max_tokens = Some(900);
    let agent = Agent::new(broken)
        .with_fallback(model.clone())
        .with_tools(Arc::new(long))
        .with_recipe(recipe())
        .with_options(options);
    let earlier = [
        Message::user("Hello."),
        Message::assistant("word ".repeat(500)),
        Message::user("Pay order 2 back."),
    ];
    let (events, _) = played(agent.run(earlier.map(Arc::new).to_vec())).await;
    let trimmed = |kind: &RunEventKind| matches!(kind, RunEventKind::HistoryTrimmed { .. });
    assert!(has(&events, trimmed));
    for n in 0..model.asked() {
        let request = model.request(n);
        assert_whole(&request.messages);
        let texts: Vec<_> = request.messages.iter().map(|m| m.text()).collect();
        let count = |text: &str| texts.iter().filter(|told| *told == text).count();
        for kept in [
            "Pay order 1 back.",
            "It is paid back.",
            "Hello.",
            "Pay order 2 back.",
        ] {
            assert_eq!(count(kept), 1, "{kept} in {texts:?}");
        }
    }
}
