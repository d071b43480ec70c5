use super::*;
use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_domain::{JsonObject, Media, ProgressSink, ToolContent, ToolOrigin, ToolProgress};

/// An order.
#[derive(Deserialize, JsonSchema)]
struct Order {
    /// What is ordered.
    item: String,
    #[serde(default)]
    count: Option<u32>,
    #[serde(default)]
    kind: Kind,
}

#[derive(Deserialize, JsonSchema, Default, Debug)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    New,
    Again,
}

#[derive(Serialize)]
struct Receipt {
    text: String,
    items: u32,
}

fn order() -> Function {
    Function::new("order", "Orders.", |order: Order| async move {
        match order.count.unwrap_or(1) {
            0 => Err(format!("no {} at all?", order.item)),
            items => Ok(Receipt {
                text: format!("{items} × {} ({:?})", order.item, order.kind),
                items,
            }),
        }
    })
}

fn call(name: &str, input: Value) -> ToolCall {
    let Value::Object(input) = input else {
        panic!("not an object: {input}");
    };
    ToolCall {
        name: name.to_owned(),
        input: input.into(),
        ..ToolCall::default()
    }
}

async fn ask(tools: &FunctionTools, name: &str, input: Value) -> ToolOutput {
    tools.call_tool(call(name, input)).await.unwrap()
}

fn words(output: &ToolOutput) -> String {
    output.content.iter().map(ToolContent::as_text).collect()
}

#[tokio::test]
async fn the_definition_comes_from_the_types() {
    let tools = FunctionTools::new().with_function(
        order()
            .with_title("Order something")
            .idempotent()
            .destructive()
            .open_world()
            .sequential(),
    );
    let catalog = tools.list_tools().await;
    insta::assert_json_snapshot!(catalog.tools[0]);
    assert!(catalog.problems.is_empty());
    // Each list contains the same `Arc`, so that a compiled schema can be reused.
    assert!(Arc::ptr_eq(
        &catalog.tools[0],
        &tools.list_tools().await.tools[0]
    ));
    assert!(jsonschema::meta::is_valid(&catalog.tools[0].input_schema));
}

#[tokio::test]
async fn a_result_is_text_and_structured_content() {
    let tools = FunctionTools::new().with_function(order());
    let output = ask(
        &tools,
        "order",
        json!({"item": "tea", "count": 2, "kind": "again"}),
    )
    .await;
    let data = json!({"text": "2 × tea (Again)", "items": 2});
    assert_eq!(words(&output), data.to_string());
    assert_eq!(output.structured, Some(data));
    assert!(!output.is_error);
}

#[tokio::test]
async fn errors_and_invalid_input_are_error_results() {
    let tools = FunctionTools::new().with_function(order());
    let refused = ask(&tools, "order", json!({"item": "tea", "count": 0})).await;
    let expected = ("no tea at all?", true);
    assert_eq!((words(&refused).as_str(), refused.is_error), expected);
    let unreadable = ask(&tools, "order", json!({"count": 2})).await;
    assert_eq!(words(&unreadable), "invalid input: missing field `item`");
    assert!(unreadable.is_error && unreadable.structured.is_none());
}

#[tokio::test]
async fn results_of_any_type_and_functions_without_arguments_work() {
    let tools = FunctionTools::new()
        .with_handler("text", "", |(): ()| async {
            Ok::<_, String>("plain \"text\"")
        })
        .with_handler("nothing", "", |_: Value| async { Ok::<_, String>(()) })
        .with_handler("list", "", |_: JsonObject| async {
            Ok::<_, String>([1, 2])
        })
        .with_handler("not_json", "", |(): ()| async {
            Ok::<_, String>(HashMap::from([((1, 2), 3)]))
        });
    let expected = "plain \"text\"";
    assert_eq!(words(&ask(&tools, "text", json!({})).await), expected);
    let nothing = ask(&tools, "nothing", json!({"a": 1})).await;
    assert_eq!(
        (words(&nothing).as_str(), &nothing.structured),
        ("null", &None)
    );
    let list = ask(&tools, "list", json!({})).await;
    let expected = ("[1,2]", Some(json!([1, 2])));
    assert_eq!((words(&list).as_str(), list.structured), expected);
    let not_json = ask(&tools, "not_json", json!({})).await;
    assert!(not_json.is_error && words(&not_json).contains("cannot be serialized as JSON"));
    let schemas: Vec<_> = tools
        .list_tools()
        .await
        .tools
        .iter()
        .map(|tool| tool.input_schema.clone())
        .collect();
    assert_eq!(schemas[0], json!({"type": "object", "properties": {}}));
    assert_eq!(schemas[1], json!({"type": "object"}));
    assert_eq!(schemas[2]["type"], "object");
}

#[tokio::test]
async fn a_panic_is_an_error_result_without_its_message() {
    let tools = FunctionTools::new()
        .with_handler("at_once", "", |input: JsonObject| {
            assert!(!input.is_empty(), "secret words");
            async { Ok::<_, String>(()) }
        })
        .with_handler("later", "", |(): ()| async {
            tokio::task::yield_now().await;
            let nothing: Option<u8> = None;
            nothing.map(Ok::<_, String>).expect("secret words")
        });
    for name in ["at_once", "later"] {
        let output = ask(&tools, name, json!({})).await;
        assert!(output.is_error);
        assert_eq!(words(&output), "The tool panicked. Its effect is unknown.");
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_drops_the_function() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let seen = dropped.clone();
    let tools =
        FunctionTools::new()
            .with_server_name("local")
            .with_handler("hang", "", move |(): ()| {
                let guard = Dropped(seen.clone());
                async move {
                    let _guard = guard;
                    std::future::pending::<Result<(), String>>().await
                }
            });
    let after = Duration::from_secs(3);
    let late = ToolCall {
        deadline: Some(after),
        ..call("hang", json!({}))
    };
    let error = tools.call_tool(late).await.unwrap_err();
    assert!(
        matches!(&error, ToolCallError::Timeout { server, tool, after: limit }
            if server == "local" && tool == "hang" && *limit == after),
        "{error}"
    );
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_raw_function_gets_the_whole_call() {
    let definition = ToolDefinition::new("draw", "Draws.", json!({"type": "object"}));
    let tools = FunctionTools::new().with_function(Function::from_definition(
        definition,
        |call: ToolCall| async move {
            call.progress.report_progress(ToolProgress {
                progress: 1.0,
                total: None,
                message: call.idempotency_key,
            });
            if call.input.contains_key("fail") {
                return Err("no pencil");
            }
            Ok(ToolOutput {
                content: vec![ToolContent::Image(Media::from_base64("image/png", "AA=="))],
                ..ToolOutput::default()
            })
        },
    ));
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let listener = told.clone();
    let with_progress = ToolCall {
        idempotency_key: Some("key".into()),
        progress: ProgressSink::new(move |progress| {
            listener.lock().unwrap().push(progress.message);
        }),
        ..call("draw", json!({}))
    };
    let output = tools.call_tool(with_progress).await.unwrap();
    assert_eq!(words(&output), "[image image/png]");
    assert_eq!(*told.lock().unwrap(), [Some("key".to_owned())]);
    let failed = ask(&tools, "draw", json!({"fail": true})).await;
    let expected = ("no pencil", true);
    assert_eq!((words(&failed).as_str(), failed.is_error), expected);
}

#[tokio::test]
async fn a_function_that_cannot_be_offered_is_a_problem() {
    let nothing = |(): ()| async { Ok::<_, String>(()) };
    let tools = FunctionTools::new()
        .with_server_name("local")
        .with_handler("good", "", nothing)
        .with_handler("good", "another", nothing)
        .with_handler("not good", "", nothing)
        .with_handler("", "", nothing)
        .with_handler("text", "", |_: String| async { Ok::<_, String>(()) })
        .with_handler("list", "", |_: Vec<u8>| async { Ok::<_, String>(()) });
    let catalog = tools.list_tools().await;
    let names: Vec<_> = catalog
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, ["good"]);
    let problems: Vec<_> = catalog
        .problems
        .iter()
        .map(|problem| problem.message.as_str())
        .collect();
    assert_eq!(
        problems,
        [
            "the second function named `good` is ignored",
            "\"not good\" cannot be used as a tool: its name must have 1 to 64 letters, digits, \
             `_` and `-`",
            "\"\" cannot be used as a tool: its name must have 1 to 64 letters, digits, `_` and \
             `-`",
            "`text` cannot be used as a tool: the input must be an object, but the argument type \
             is string; use a struct",
            "`list` cannot be used as a tool: the input must be an object, but the argument type \
             is array; use a struct",
        ]
    );
    assert!(
        catalog
            .problems
            .iter()
            .all(|problem| problem.server == "local")
    );
    let error = tools.call_tool(call("text", json!({}))).await.unwrap_err();
    assert_eq!(error.to_string(), "unknown tool `text`. Available: good");
}

#[tokio::test]
async fn the_server_name_is_the_origin_of_all_functions() {
    let nothing = |(): ()| async { Ok::<_, String>(()) };
    let unnamed = FunctionTools::new()
        .with_handler("a", "", nothing)
        .list_tools()
        .await;
    assert_eq!(unnamed.tools[0].origin, None);
    let named = FunctionTools::new()
        .with_handler("a", "", nothing)
        .with_server_name("local")
        .with_handler("b", "", nothing);
    let origins: Vec<_> = named
        .list_tools()
        .await
        .tools
        .iter()
        .map(|tool| tool.origin.clone().unwrap())
        .collect();
    let expected = ["a", "b"].map(|tool| ToolOrigin {
        server: "local".to_owned(),
        tool: tool.to_owned(),
    });
    assert_eq!(origins, expected);
}
