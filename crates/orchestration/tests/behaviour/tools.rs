//! Execution of tools.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use switchboard_domain::{
    Media, ModelCapabilities, ToolCallError, ToolContent, ToolOutput, ToolProgress, ToolRetry,
};
use switchboard_orchestration::{
    Agent, RunEventKind, RunOptions, ToolFailure,
    tools::arguments::{ContextInjection, ContextTemplate},
    tools::results::{CacheOptions, READ_TOOL, ResultCache, ResultLimit},
};
use tokio::sync::Notify;

use crate::support::{
    Answer, Scripted, Tools, agent_with, ask, calls, echo, echoing, failures, has, picked, reading,
    results, tool,
};

/// Returns a tool whose calls end only when `wanted` calls run at the same time.
fn together(name: &str, wanted: usize, running: Arc<AtomicUsize>, all: Arc<Notify>) -> Tools {
    Tools::new().with_async(tool(name), move |call| {
        let (running, all) = (running.clone(), all.clone());
        async move {
            let arrived = all.notified();
            if running.fetch_add(1, Ordering::SeqCst) + 1 == wanted {
                all.notify_waiters();
            } else {
                arrived.await;
            }
            echo(call)
        }
    })
}

#[tokio::test]
async fn eight_calls_run_concurrently_and_their_results_are_one_message_in_call_order() {
    let uses: Vec<_> = (0..8)
        .map(|n| {
            let id: &'static str = ["a", "b", "c", "d", "e", "f", "g", "h"][n];
            (id, "srv__meet", json!({ "n": n }))
        })
        .collect();
    let model = Scripted::new([calls(&uses), Answer::Says("ok")]);
    let tools = together("meet", 8, Arc::default(), Arc::default());
    let agent = Agent::new(model.clone()).with_tools(Arc::new(tools));
    ask(&agent, "go").await;
    let request = model.request(1);
    assert_eq!(request.messages.len(), 3, "question, calls, results");
    let expected: Vec<_> = (0..8)
        .map(|n| format!(r#"srv__meet {{"n":{n}}}"#))
        .collect();
    assert_eq!(results(&model, 1), expected);
}

#[tokio::test]
async fn a_sequential_tool_is_a_barrier() {
    let mut alone = tool("alone");
    alone.sequential = true;
    let running = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let doing = {
        let (running, seen) = (running.clone(), seen.clone());
        move |call: switchboard_domain::ToolCall| {
            let (running, seen) = (running.clone(), seen.clone());
            async move {
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                seen.lock().unwrap().push((call.name.clone(), now));
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
                echo(call)
            }
        }
    };
    let tools = Tools::new()
        .with_async(alone, doing.clone())
        .with_async(tool("free"), doing);
    let model = Scripted::calling(&[
        ("a", "srv__free", json!({"n": 1})),
        ("b", "srv__free", json!({"n": 2})),
        ("c", "srv__alone", json!({"n": 3})),
        ("d", "srv__free", json!({"n": 4})),
    ]);
    ask(&Agent::new(model).with_tools(Arc::new(tools)), "go").await;
    let seen = seen.lock().unwrap().clone();
    let names: Vec<_> = seen.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["srv__free", "srv__free", "srv__alone", "srv__free"]);
    assert_eq!(seen[2].1, 1, "it ran alone");
    assert_eq!(seen[3].1, 1, "later calls waited");
}

#[tokio::test]
async fn a_guard_stops_later_calls() {
    let guard = json!({"tool": "srv__check", "when": {"pointer": "/approved", "equals": false}});
    let options = RunOptions {
        guards: vec![serde_json::from_value(guard).unwrap()],
        ..RunOptions::default()
    };
    for approved in [false, true] {
        let model = Scripted::calling(&[
            ("a", "srv__check", json!({"n": 1})),
            ("b", "srv__pay", json!({"n": 2})),
        ]);
        let tools = Arc::new(
            Tools::new()
                .with(tool("check"), move |_| {
                    Ok(ToolOutput {
                        structured: Some(json!({"approved": approved})),
                        ..ToolOutput::text("checked")
                    })
                })
                .with(tool("pay"), echo),
        );
        let (_, report) = ask(&agent_with(&model, &tools, options.clone()), "go").await;
        assert_eq!(tools.called().len(), 1 + usize::from(approved));
        let failure = (!approved).then_some(ToolFailure::Skipped);
        assert_eq!(report.tool_calls[1].failure, failure);
    }
}

#[tokio::test(start_paused = true)]
async fn each_call_has_its_own_deadline() {
    let tools = Tools::new()
        .with_async(tool("hang"), |_| std::future::pending())
        .with(tool("quick"), echo);
    let model = Scripted::calling(&[
        ("a", "srv__hang", json!({"n": 1})),
        ("b", "srv__quick", json!({"n": 2})),
    ]);
    let options = RunOptions {
        tool_timeout: Some(Duration::from_secs(3)),
        ..RunOptions::default()
    };
    let (events, report) = ask(&agent_with(&model, &Arc::new(tools), options), "go").await;
    let call = &report.tool_calls[0];
    // A call that may have had an effect is not repeated.
    let expected = (Some(ToolFailure::Timeout), 1);
    assert_eq!((call.failure, call.attempts), expected);
    let ended: Vec<_> = picked(&events, |kind| match kind {
        RunEventKind::ToolFinished { id, .. } => Some(id.as_str()),
        _ => None,
    });
    assert_eq!(ended, ["b", "a"]);
}

#[tokio::test]
async fn progress_and_repeated_attempts_are_emitted_and_counted() {
    let tools = Tools::new().with(tool("slow"), |call| {
        call.progress.report_progress(ToolProgress {
            progress: 1.0,
            total: Some(2.0),
            message: Some("half".into()),
        });
        call.progress.report_retry(ToolRetry {
            attempt: 2,
            reason: "the connection was closed".into(),
        });
        echo(call)
    });
    let model = Scripted::new([
        calls(&[("a", "srv__slow", json!({"n": 1}))]),
        Answer::Says("ok"),
    ]);
    let (events, report) = ask(&Agent::new(model).with_tools(Arc::new(tools)), "go").await;
    assert_eq!(report.tool_calls[0].attempts, 2);
    let told = has(
        &events,
        |kind| matches!(kind, RunEventKind::ToolRetried { id, retry } if id == "a" && retry.attempt == 2),
    );
    assert!(told);
    assert!(has(
        &events,
        |kind| matches!(kind, RunEventKind::ToolProgressed { progress, .. } if progress.total == Some(2.0))
    ));
}

#[tokio::test]
async fn small_repairs_are_reported() {
    let model = Scripted::new([
        calls(&[("a", "srv__do", json!({"n": "42"}))]),
        Answer::RawCall("b", "srv__do", "```json\n{\"n\": 7,}\n```"),
        Answer::Says("ok"),
    ]);
    let tools = echoing(&["do"]);
    let (events, report) = ask(&Agent::new(model).with_tools(tools.clone()), "go").await;
    let ran: Vec<_> = tools
        .called
        .lock()
        .unwrap()
        .iter()
        .map(|(_, input)| input.clone())
        .collect();
    assert_eq!(ran, [json!({"n": 42}), json!({"n": 7})]);
    let repaired: Vec<_> = picked(&events, |kind| match kind {
        RunEventKind::ToolInputRepaired { id, repairs, input } => {
            assert!(!repairs.is_empty());
            Some((id.as_str(), (**input).clone()))
        }
        _ => None,
    });
    assert_eq!(repaired, [("a", json!({"n": 42})), ("b", json!({"n": 7}))]);
    assert_eq!(report.tool_calls[0].input, json!({"n": 42}).into());
}

#[tokio::test]
async fn injected_values_are_not_visible() {
    const SECRET: &str = "token-4711-secret";
    let mut definition = tool("state");
    definition.input_schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "databaseContext": {
                "type": "object",
                "properties": {
                    "conversationId": {"type": "string"},
                    "accessToken": {"type": "string"},
                },
                "required": ["conversationId", "accessToken"],
            },
        },
        "required": ["n", "databaseContext"],
    });
    let tools = Arc::new(Tools::new().with(definition, |call| {
        // The server returns its input.
        let output = echo(call)?;
        Ok(output)
    }));
    let model = Scripted::new([
        calls(&[("a", "srv__state", json!({"n": 1}))]),
        calls(&[(
            "b",
            "srv__state",
            json!({"n": 2, "databaseContext": {"accessToken": "mine"}}),
        )]),
        Answer::Says("ok"),
    ]);
    let values = json!({
        "conversationId": "c-1",
        "apiBaseUrl": "https://graph.invalid",
        "accessToken": SECRET,
    });
    let values = ContextTemplate::parse(&values).unwrap();
    let context = ContextInjection::new().with_template("databaseContext", values);
    let agent = Agent::new(model.clone())
        .with_tools(tools.clone())
        .with_context_injection(context);
    let (events, report) = ask(&agent, "go").await;
    for (_, input) in tools.called.lock().unwrap().iter() {
        let expected = json!({"conversationId": "c-1", "accessToken": SECRET});
        assert_eq!(
            input["databaseContext"], expected,
            "only the properties of the schema"
        );
    }
    assert_eq!(tools.called().len(), 2);
    let schema = &model.request(0).tools[0].input_schema;
    assert!(
        schema["properties"].get("databaseContext").is_none(),
        "{schema}"
    );
    assert_eq!(schema["required"], json!(["n"]));
    let told = serde_json::to_string(&events).unwrap() + &format!("{agent:?} {report:?}");
    assert!(!told.contains(SECRET), "{told}");
    let sent = format!("{:?}", model.requests.lock().unwrap());
    assert!(!sent.contains(SECRET), "{sent}");
}

#[tokio::test]
async fn a_long_result_is_cut_with_a_marker_and_can_be_read_in_pages() {
    let lines: Vec<_> = (0..4000)
        .map(|n| format!("line {n} of the report"))
        .collect();
    let lines = lines.join(
        "
",
    );
    let whole = lines.clone();
    let tools =
        Arc::new(Tools::new().with(tool("report"), move |_| Ok(ToolOutput::text(whole.clone()))));
    let options = RunOptions {
        results: ResultLimit {
            max_tokens: 1000,
            preview_tokens: 200,
        },
        ..RunOptions::default()
    };
    let model = Scripted::new([
        calls(&[("a", "srv__report", json!({"n": 1}))]),
        calls(&[(
            "b",
            READ_TOOL,
            json!({"result_id": "a", "search": "line 3999 "}),
        )]),
        Answer::Says("ok"),
    ]);
    let (_, report) = ask(&agent_with(&model, &tools, options), "go").await;
    let first = &results(&model, 1)[0];
    assert!(
        first.len() < 4000 && first.contains("line 0 ") && first.contains(READ_TOOL),
        "{first}"
    );
    assert!(
        model
            .request(0)
            .tools
            .iter()
            .all(|tool| tool.name != READ_TOOL)
    );
    assert_eq!(model.request(1).tools.last().unwrap().name, READ_TOOL);
    let second = &results(&model, 2)[0];
    assert!(second.contains("line 3999 of the report"), "{second}");
    assert_eq!(tools.called(), ["srv__report"], "reading on asks no server");
    assert_eq!(report.tool_calls.len(), 2);
}

#[tokio::test]
async fn images_are_sent_to_models_with_image_support() {
    let image = || ToolOutput {
        content: vec![ToolContent::Image(Media::from_base64("image/png", "AA=="))],
        ..ToolOutput::default()
    };
    for sees in [None, Some(true), Some(false)] {
        let capabilities = switchboard_domain::ModelCapabilities {
            images: sees,
            ..Default::default()
        };
        let model = Scripted::named(
            "m",
            capabilities,
            [
                calls(&[("a", "srv__shot", json!({"n": 1}))]),
                Answer::Says("ok"),
            ],
        );
        let tools = Tools::new().with(tool("shot"), move |_| Ok(image()));
        let (_, report) = ask(&Agent::new(model.clone()).with_tools(Arc::new(tools)), "go").await;
        let request = model.request(1);
        let content = &request.messages[2].tool_results().next().unwrap().content;
        let is_image = matches!(content[0], ToolContent::Image(_));
        assert_eq!(is_image, sees != Some(false));
        let recorded = &report.tool_calls[0].result.content[0];
        assert!(
            matches!(recorded, ToolContent::Image(_)),
            "people see it in any case"
        );
    }
}

#[tokio::test]
async fn results_of_read_only_tools_come_from_the_cache() {
    let tools = Arc::new(
        Tools::new()
            .with(reading("look"), echo)
            .with(tool("change"), echo),
    );
    let model = Scripted::new([
        calls(&[("a", "srv__look", json!({"n": 1}))]),
        calls(&[
            ("b", "srv__look", json!({"n": 1})),
            ("c", "srv__look", json!({"n": 2})),
        ]),
        calls(&[("d", "srv__change", json!({"n": 1}))]),
        calls(&[("e", "srv__change", json!({"n": 1}))]),
        Answer::Says("ok"),
    ]);
    let cache = Arc::new(ResultCache::new(CacheOptions::default()));
    let agent = Agent::new(model)
        .with_tools(tools.clone())
        .with_result_cache(cache);
    let (events, report) = ask(&agent, "go").await;
    let cached: Vec<_> = report.tool_calls.iter().map(|call| call.cached).collect();
    assert_eq!(cached, [false, true, false, false, false]);
    assert_eq!(report.tool_calls[1].attempts, 0);
    assert_eq!(tools.called().len(), 4);
    let started = has(
        &events,
        |kind| matches!(kind, RunEventKind::ToolStarted { id } if id == "b"),
    );
    assert!(!started, "what did not run did not start");
}

#[tokio::test]
async fn a_failed_result_and_a_failed_call_are_both_errors() {
    let tools = Tools::new()
        .with(tool("says_no"), |_| {
            Ok(ToolOutput {
                is_error: true,
                ..ToolOutput::text("no such customer")
            })
        })
        .with(tool("gone"), |_| {
            Err(ToolCallError::Unavailable {
                server: "srv".into(),
                reason: "it exited".into(),
            })
        });
    let model = Scripted::calling(&[
        ("a", "srv__says_no", json!({"n": 1})),
        ("b", "srv__gone", json!({"n": 1})),
    ]);
    let (_, report) = ask(&Agent::new(model.clone()).with_tools(Arc::new(tools)), "go").await;
    let failures = failures(&report);
    let expected = [Some(ToolFailure::ToolError), Some(ToolFailure::Unavailable)];
    assert_eq!(failures, expected);
    let request = model.request(1);
    assert!(
        request.messages[2]
            .tool_results()
            .all(|result| result.is_error)
    );
}

#[tokio::test]
async fn a_model_without_tool_search_gets_all_tools() {
    for (tool_search, shown) in [(None, 1), (Some(false), 60)] {
        let tools = (0..60).fold(Tools::new(), |tools, n| {
            tools.with(reading(&format!("look_{n}")), echo)
        });
        let capabilities = ModelCapabilities {
            tool_search,
            ..ModelCapabilities::default()
        };
        let model = Scripted::named("model", capabilities, [Answer::Says("ok")]);
        let agent = Agent::new(model.clone()).with_tools(Arc::new(tools));
        ask(&agent, "go").await;
        assert_eq!(model.request(0).tools.len(), shown);
    }
}
