//! The routes of the native API, as a custom client uses them.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    serving::{Serving, ids, kinds, read},
    support::{Place, texts},
};

#[tokio::test]
async fn a_question_is_answered_with_a_tool_and_stored() {
    let place = Place::new();
    let server = Serving::start(&place, &[]).await;
    // The example of the source system, with another model.
    let asked =
        json!({"message": "What is the account value of customer 42?", "model": "offline/planner"});
    let answered = server.post("/chat", &asked).await;
    let report = answered.expect(200);
    assert_eq!(report["outcome"], "completed", "{report}");
    assert_eq!(
        report["tool_calls"][0]["server"], "customer-service",
        "{report}"
    );
    assert!(!report["answer"].as_str().unwrap().is_empty(), "{report}");
    let (run, session) = (
        report["run_id"].as_str().unwrap(),
        report["session_id"].as_str().unwrap(),
    );
    assert_eq!(answered.header("x-switchboard-run-id"), run);
    assert_eq!(answered.header("x-switchboard-session-id"), session);

    let listed = server.get("/sessions?limit=5").await.expect(200);
    assert_eq!(listed["sessions"][0]["id"], session, "{listed}");
    assert_eq!(listed["unfinished_runs"], json!([]), "{listed}");
    assert_eq!(
        listed["sessions"][0]["title"],
        "What is the account value of customer 42?"
    );
    let shown = server.session(session).await;
    let roles = texts(&shown["messages"], "/role");
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"], "{shown}");
    assert_eq!(shown["runs"][0]["state"], "finished");
    assert_eq!(shown["runs"][0]["outcome"], "completed");

    let shown_run = server.run(run).await;
    assert_eq!(shown_run["report"], report);
    assert_eq!(shown_run["waiting"], json!([]));
    let events = server.follow_run(run).await.rest().await;
    let last = shown["last_event"].as_u64().unwrap();
    assert_eq!(ids(&events), (1..=last).collect::<Vec<_>>());
    assert_eq!(kinds(&events).first(), Some(&"run_started"));
    assert_eq!(kinds(&events).last(), Some(&"run_finished"));
    // A reconnecting browser learns that the stream has ended.
    let done = server
        .get(&format!("/runs/{run}/events?after={last}"))
        .await;
    assert_eq!((done.status, done.text.as_str()), (204, ""));

    // The next question contains the first one.
    let asked = json!({"message": "And of customer 7?", "session_id": session});
    let second = server.post("/chat", &asked).await.expect(200);
    assert_eq!(second["session_id"], session);
    let shown = server.session(session).await;
    assert!(shown["messages"].as_array().unwrap().len() > 4, "{shown}");
    assert_eq!(shown["runs"][0]["events_before"], last, "{shown}");
}

#[tokio::test]
async fn the_last_question_is_replaced_with_its_answer() {
    let place = Place::new();
    let server = Serving::start(&place, &[]).await;
    let first = json!({"message": "What is the account value of customer 42?"});
    let session = server.post("/chat", &first).await.expect(200)["session_id"].clone();
    let id = session.as_str().unwrap();
    let second = json!({"message": "And of customer 7?", "session_id": session});
    server.post("/chat", &second).await.expect(200);
    let replacing = json!({"message": "And of customer 9?", "session_id": session,
        "replace_last": true});
    server.post("/chat", &replacing).await.expect(200);
    let shown = server.session(id).await;
    let messages = shown["messages"].as_array().unwrap();
    let questions = messages.iter().filter(|message| message["role"] == "user");
    let questions: Vec<&Value> = questions.map(|it| &it["parts"][0]["text"]).collect();
    let expected = [&first["message"], &replacing["message"]];
    assert_eq!(questions, expected, "{shown}");

    let empty = server.post("/sessions", &json!({})).await.expect(201)["id"].clone();
    let missing = json!({"message": "Hi", "session_id": empty, "replace_last": true});
    let refused = server.post("/chat", &missing).await;
    assert_eq!(refused.problem(409), "conflict");
    let without = json!({"message": "Hi", "replace_last": true});
    server.post("/chat", &without).await.problem(422);
    let unknown = json!({"message": "Hi", "session_id": "nobody", "replace_last": true});
    let refused = server.post("/chat", &unknown).await;
    assert_eq!(refused.problem(404), "not-found");
}

#[tokio::test]
async fn models_recipes_and_tools_are_listed() {
    let place = Place::new().with_file("recipes.txt", "not a recipe");
    let server = Serving::start(&place, &[]).await;
    let tools = server.get("/mcp/tools").await.expect(200);
    let names = texts(&tools["tools"], "/tool");
    assert!(names.contains(&"create_support_ticket"), "{names:?}");
    assert_eq!(tools["tools"][0]["server"], "customer-service");
    assert!(tools["tools"][0]["input_schema"].is_object());
    let servers = server.get("/mcp/servers").await.expect(200);
    assert_eq!(servers["servers"][0]["name"], "customer-service");
    assert_eq!(servers["servers"][0]["state"], "ready");
    let models = server.get("/models").await.expect(200);
    assert_eq!(models["default"], "offline/planner");
    let mut listed = models["models"].as_array().unwrap().iter();
    let planner = listed
        .find(|model| model["id"] == "offline/planner")
        .unwrap();
    assert_eq!(planner["ready"], true, "{planner}");
    assert_eq!(planner["default"], true, "{planner}");
    let recipes = server.get("/recipes").await.expect(200);
    assert!(!recipes["recipes"].as_array().unwrap().is_empty());
    for probe in ["/healthz", "/readyz"] {
        server.get(probe).await.expect(200);
    }
    let page = server.get("/").await;
    assert_eq!(page.status, 200);
    let kind = page.header("content-type");
    assert!(kind.starts_with("text/html"), "{page:?}");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("script-src 'self'"), "{page:?}");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
}

#[tokio::test]
async fn sessions_are_created_renamed_and_deleted() {
    let server = Serving::start_owned(Place::new(), &["--no-tools"]).await;
    let made = server.post("/sessions", &json!({"title": "Plans"})).await;
    let session = made.expect(201);
    let path = format!("/sessions/{}", session["id"].as_str().unwrap());
    assert_eq!(made.header("location"), path);
    assert_eq!(session["title"], "Plans");
    assert_eq!(session["messages"], 0);
    let renamed = server
        .request(Method::PATCH, &path)
        .header("content-type", "application/json")
        .body(json!({"title": "Other plans"}).to_string())
        .send()
        .await;
    assert_eq!(read(renamed.unwrap()).await.status, 204);
    assert_eq!(
        server.get(&path).await.expect(200)["session"]["title"],
        "Other plans"
    );
    // Without a body as well.
    let bare = server.request(Method::POST, "/sessions").send().await;
    assert_eq!(read(bare.unwrap()).await.expect(201)["title"], "");
    assert_eq!(server.delete(&path).await.status, 204);
    assert_eq!(server.get(&path).await.problem(404), "not-found");
    assert_eq!(server.delete(&path).await.status, 204);
    let asked = json!({"message": "Hi", "session_id": session["id"]});
    assert_eq!(server.post("/chat", &asked).await.problem(404), "not-found");
}

#[tokio::test]
async fn requests_count_in_the_metrics() {
    let server = Serving::start_owned(Place::new(), &[]).await;
    let asked = json!({"message": "What is the account value of customer 42?"});
    server.post("/chat", &asked).await.expect(200);
    server.get("/sessions/none").await.problem(404);
    server.get("/nowhere").await.problem(404);
    let metrics = server.get("/metrics").await;
    let kind = metrics.header("content-type");
    assert!(
        kind.starts_with("application/openmetrics-text"),
        "{metrics:?}"
    );
    let text = &metrics.text;
    for line in [
        "switchboard_runs_active 0",
        "switchboard_http_response_seconds_count{method=\"POST\",route=\"/chat\",status=\"200\"} 1",
        "switchboard_http_response_seconds_count{method=\"GET\",route=\"/sessions/{id}\",status=\"404\"} 1",
        "switchboard_http_response_seconds_count{method=\"GET\",route=\"other\",status=\"404\"} 1",
        // The request that reads the metrics.
        "switchboard_http_requests_open 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    }
    assert!(text.contains("customer-service"), "{text}");
}

#[tokio::test]
async fn parameters_are_checked_and_reach_the_model() {
    let fake = switchboard_testkit::fake::FakeModel::start().await.unwrap();
    let place = crate::serving::place(&fake, &crate::serving::no_servers());
    let server = Serving::start(&place, &[]).await;
    for (field, parameters) in [
        ("parameters.temperature", json!({"temperature": 3})),
        ("parameters.top_p", json!({"top_p": -0.1})),
        ("parameters.max_steps", json!({"max_steps": 0})),
        ("parameters.stop", json!({"stop": [""]})),
        (
            "parameters.tool_choice",
            json!({"tool_choice": {"only": []}}),
        ),
        (
            "parameters.tool_choice",
            json!({"tool_choice": {"only": ["nothing"]}}),
        ),
        (
            "parameters.tool_choice",
            json!({"tool_choice": "required", "tools": false}),
        ),
    ] {
        let asked = json!({"message": "Hi", "parameters": parameters});
        let answered = server.post("/chat", &asked).await;
        assert_eq!(answered.problem(422), "invalid", "{parameters}");
        assert_eq!(answered.json()["field"], field, "{parameters}");
    }
    for (field, asked) in [
        ("message", json!({"message": "  "})),
        ("message", json!({"message": "nul\u{0}"})),
        ("model", json!({"message": "Hi", "model": "nobody/knows"})),
        ("model", json!({"message": "Hi", "model": "offline/other"})),
        ("model", json!({"message": "Hi", "model": ""})),
        ("recipe", json!({"message": "Hi", "recipe": "nothing"})),
        // Its servers are not running.
        ("recipe", json!({"message": "Hi", "recipe": "graph-chat"})),
        (
            "recipe",
            json!({"message": "Hi", "recipe": "switchboard.json"}),
        ),
        (
            "recipe",
            json!({"message": "Hi", "recipe": "../switchboard"}),
        ),
    ] {
        let answered = server.post("/chat", &asked).await;
        assert_eq!(answered.problem(422), "invalid", "{asked}");
        assert_eq!(answered.json()["field"], field, "{asked}: {answered:?}");
    }
    for asked in [
        json!({"message": 1}),
        json!({"question": "Hi"}),
        json!({"message": "Hi", "parameters": {"heat": 1}}),
        json!([]),
    ] {
        let refused = server.post("/chat", &asked).await;
        assert_eq!(refused.problem(422), "invalid", "{asked}");
    }
    assert_eq!(fake.requests().len(), 0);

    fake.otherwise(|_, _| {
        use switchboard_testkit::fake::{Answer, Say};
        Answer::openai_chat([Say::text("Hello.")])
    });
    // A bare name, as other programs send it, and a name with its provider.
    for named in [
        json!({"model": "gpt-4o-mini"}),
        json!({"provider": "openai", "model": "gpt-4o-mini"}),
        json!({"provider": "openai", "model": "openai/gpt-4o-mini"}),
        json!({}),
    ] {
        let mut asked = named.clone();
        asked["message"] = json!("Hi");
        asked["parameters"] = json!({
            "temperature": 0.5, "max_output_tokens": 77, "seed": 3, "stop": ["END"], "max_steps": 2
        });
        let report = server.post("/chat", &asked).await.expect(200);
        assert_eq!(report["model"], "openai/gpt-4o-mini", "{named}");
        assert_eq!(report["answer"], "Hello.");
    }
    let first = fake.request(0).await;
    let sent = first.json();
    assert_eq!(sent["model"], "gpt-4o-mini");
    assert_eq!(sent["temperature"], 0.5);
    assert_eq!(sent["seed"], 3);
    assert_eq!(sent["stop"], json!(["END"]));
    let max_tokens = sent["max_completion_tokens"].as_u64();
    let max_tokens = max_tokens.or(sent["max_tokens"].as_u64());
    assert_eq!(max_tokens, Some(77), "{sent}");
}
