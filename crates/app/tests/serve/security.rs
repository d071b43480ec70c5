//! Tokens, hosts and origins.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    serving::{ANN, Answered, BOB, Serving, read},
    support::{Place, texts},
};

fn guarded() -> Place {
    let config = json!({
        "mcp_servers": {},
        "serve": {"tokens": [{"token": "${ANN_TOKEN}", "user": "ann"}, {"token": BOB, "user": "bob"}]},
    });
    Place::new()
        .with_variable("ANN_TOKEN", ANN)
        .with_file("switchboard.json", &config.to_string())
}

async fn with_headers(
    server: &Serving,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> Answered {
    let mut request = server.request(method, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    read(request.send().await.unwrap()).await
}

#[tokio::test]
async fn without_a_token_only_the_page_and_the_probes_respond() {
    let server = Serving::start_owned(guarded(), &[]).await;
    for open in ["/", "/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(server.get(open).await.status, 200, "{open}");
    }
    for closed in [
        "/sessions",
        "/audit",
        "/runs/x",
        "/mcp/tools",
        "/models",
        "/metrics",
        "/nowhere",
    ] {
        let answered = server.get(closed).await;
        assert_eq!(answered.problem(401), "no-access", "{closed}");
        assert!(
            answered.header("www-authenticate").starts_with("Bearer"),
            "{answered:?}"
        );
    }
    for wrong in ["", "wrong", &ANN[1..], &format!("{ANN}x")] {
        let headers = [("authorization", format!("Bearer {wrong}"))];
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let answered = with_headers(&server, Method::GET, "/sessions", &headers).await;
        assert_eq!(answered.problem(401), "no-access", "{wrong}");
        assert!(
            wrong.is_empty() || !answered.text.contains(wrong),
            "{answered:?}"
        );
    }
    let key = [("x-api-key", ANN)];
    assert_eq!(
        with_headers(&server, Method::GET, "/sessions", &key)
            .await
            .status,
        200
    );
    let refused = server.post("/chat", &json!({"message": "Hi"})).await;
    assert_eq!(refused.problem(401), "no-access");
}

#[tokio::test]
async fn users_see_only_their_own_sessions() {
    let server = Serving::start_owned(guarded(), &[]).await.with_token(ANN);
    let report = server
        .post("/chat", &json!({"message": "Hi"}))
        .await
        .expect(200);
    let session = report["session_id"].as_str().unwrap().to_owned();
    let run = report["run_id"].as_str().unwrap().to_owned();
    assert_eq!(server.get(&format!("/runs/{run}")).await.status, 200);
    let server = server.with_token(BOB);
    assert_eq!(
        server.get("/sessions").await.expect(200)["sessions"],
        json!([])
    );
    for hidden in [
        format!("/sessions/{session}"),
        format!("/sessions/{session}/events"),
        format!("/runs/{run}"),
        format!("/runs/{run}/events"),
    ] {
        let refused = server.get(&hidden).await;
        assert_eq!(refused.problem(404), "not-found", "{hidden}");
    }
    for (path, body) in [
        (format!("/runs/{run}/cancel"), json!({})),
        (format!("/runs/{run}/continue"), json!({})),
        (
            format!("/runs/{run}/approvals/a"),
            json!({"decision": "allow"}),
        ),
        (
            format!("/runs/{run}/questions/a"),
            json!({"action": "cancel"}),
        ),
        (
            "/chat".to_owned(),
            json!({"message": "Hi", "session_id": session}),
        ),
    ] {
        let refused = server.post(&path, &body).await;
        assert_eq!(refused.problem(404), "not-found", "{path}");
    }
    server.delete(&format!("/sessions/{session}")).await;
    let server = server.with_token(ANN);
    assert_eq!(
        server.get(&format!("/sessions/{session}")).await.status,
        200
    );
}

#[tokio::test]
async fn users_see_only_their_own_audit_records() {
    let server = Serving::start_owned(guarded(), &[]).await.with_token(ANN);
    let asked = json!({"message": "Hi"});
    let report = server.post("/chat", &asked).await.expect(200);
    let session = report["session_id"].as_str().unwrap();
    server.delete(&format!("/sessions/{session}")).await;
    let server = server.with_token(BOB);
    assert_eq!(
        server.get("/audit").await.expect(200),
        json!({"records": []})
    );
    let asked = json!({"model": "default", "messages": [{"role": "user", "content": "Hi"}]});
    server
        .post("/v1/chat/completions", &asked)
        .await
        .expect(200);
    let own = server.get("/audit").await.expect(200);
    let users = texts(&own["records"], "/principal/user");
    assert!(
        users.len() > 1 && users.iter().all(|user| *user == "bob"),
        "{own}"
    );
    let server = server.with_token(ANN);
    let all = server.get("/audit").await.expect(200);
    let newest_first = ["run", "model_call", "run"];
    assert_eq!(texts(&all["records"], "/kind"), newest_first, "{all}");
    assert_eq!(all["records"][0]["moment"], "finished");
    assert_eq!(all["records"][0]["run_id"], report["run_id"]);
    let first = server.get("/audit?limit=2").await.expect(200);
    let rest = format!("/audit?limit=1&before={}", first["next"].as_str().unwrap());
    let rest = server.get(&rest).await.expect(200);
    assert_eq!(rest, json!({"records": [all["records"][2]]}));
    assert_eq!(server.get("/audit?limit=0").await.problem(422), "invalid");
}

#[tokio::test]
async fn other_hosts_and_origins_are_refused() {
    let config = json!({
        "mcp_servers": {},
        "serve": {"hosts": ["box.example"], "origins": ["https://app.example"]},
    });
    let place = Place::new().with_file("switchboard.json", &config.to_string());
    let server = Serving::start(&place, &[]).await;
    let own = server.base.trim_start_matches("http://").to_owned();
    let port = own.rsplit_once(':').unwrap().1;
    for (host, status) in [
        (own.clone(), 200),
        (format!("localhost:{port}"), 200),
        ("[::1]".to_owned(), 200),
        ("BOX.example:80".to_owned(), 200),
        ("evil.example".to_owned(), 403),
        (format!("127.0.0.1.evil.example:{port}"), 403),
        ("localhost.evil.example".to_owned(), 403),
        ("192.168.1.1".to_owned(), 403),
        ("user@localhost".to_owned(), 400),
        ("local host".to_owned(), 400),
    ] {
        for path in ["/sessions", "/", "/healthz", "/nowhere"] {
            let answered = with_headers(&server, Method::GET, path, &[("host", &host)]).await;
            let expected = if path == "/nowhere" && status == 200 {
                404
            } else {
                status
            };
            assert_eq!(answered.status, expected, "{host} {path}: {answered:?}");
            if status == 403 {
                assert_eq!(answered.problem(403), "foreign-host");
            }
        }
    }
    for (origin, status) in [
        (server.base.as_str(), 200),
        ("https://app.example", 200),
        ("https://evil.example", 403),
        ("http://app.example", 403),
        ("null", 403),
        ("http://127.0.0.1:1", 403),
        (&format!("https://{own}"), 200),
    ] {
        let answered = with_headers(&server, Method::GET, "/sessions", &[("origin", origin)]).await;
        assert_eq!(answered.status, status, "{origin}: {answered:?}");
        let allowed = answered.header("access-control-allow-origin");
        assert_eq!(
            allowed,
            if origin == "https://app.example" {
                origin
            } else {
                ""
            }
        );
        assert_eq!(answered.header("access-control-allow-credentials"), "");
    }
    let ask = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "POST"),
        (
            "access-control-request-headers",
            "authorization,content-type",
        ),
    ];
    let answered = with_headers(&server, Method::OPTIONS, "/chat", &ask).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    assert_eq!(
        answered.header("access-control-allow-origin"),
        "https://app.example"
    );
    assert!(
        answered
            .header("access-control-allow-methods")
            .contains("POST"),
        "{answered:?}"
    );
    // Without configured origins there is no CORS at all.
    let server = Serving::start_owned(Place::new(), &["--no-tools"]).await;
    let answered = with_headers(&server, Method::OPTIONS, "/chat", &ask).await;
    assert_eq!(answered.header("access-control-allow-origin"), "");
    assert_eq!(answered.problem(403), "foreign-origin");
}

#[tokio::test]
async fn a_public_address_requires_tokens() {
    let place = Place::new();
    let done = place.run(["serve", "--bind", "0.0.0.0:0"]).await.exits(2);
    assert!(
        done.stderr.contains("serve.tokens") && done.stderr.contains("127.0.0.1"),
        "{done}"
    );
    for (serve, said) in [
        (json!({"tokens": ["short"]}), "serve.tokens[0]"),
        (json!({"tokens": []}), "serve.tokens"),
        (
            json!({"tokens": [{"token": ANN, "name": "x"}]}),
            "serve.tokens[0].name",
        ),
        (json!({"token": ANN}), "serve.token"),
        (json!({"bind": "here"}), "serve.bind"),
        (json!({"origins": ["app.example"]}), "serve.origins"),
        (
            json!({"origins": ["https://app.example/"]}),
            "serve.origins",
        ),
        (json!({"hosts": ["http://box"]}), "serve.hosts"),
    ] {
        let place =
            Place::new().with_file("switchboard.json", &json!({"serve": serve}).to_string());
        let done = place.run(["serve"]).await;
        assert_eq!(done.code, 2, "{serve}: {done}");
        assert!(
            done.stderr.contains(said) && !done.stderr.contains(ANN),
            "{said}: {done}"
        );
    }
}

#[tokio::test]
async fn tokens_appear_in_no_log_and_no_response() {
    let place = guarded().with_variable("SWITCHBOARD_LOG", "trace");
    let server = Serving::start(&place, &[]).await.with_token(ANN);
    let asked = server.get("/sessions?token=query-secret-0123").await;
    assert_eq!(asked.status, 200);
    server
        .post("/chat", &json!({"message": "Hi"}))
        .await
        .expect(200);
    let metrics = server.get("/metrics").await;
    assert!(!metrics.text.contains(ANN));
    server.terminate();
    let (_, said) = server.ended().await;
    assert!(said.contains("http request"), "{said}");
    for secret in [ANN, BOB, "query-secret-0123"] {
        assert!(!said.contains(secret), "{secret} is in the log");
    }
}

/// A plain form of another site cannot send JSON: other content types are refused.
#[tokio::test]
async fn forms_of_other_sites_are_refused() {
    let server = Serving::start_owned(Place::new(), &["--no-tools"]).await;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
    ] {
        let request = server
            .request(Method::POST, "/chat")
            .header("content-type", kind);
        let answered = read(
            request
                .body(json!({"message": "Hi"}).to_string())
                .send()
                .await
                .unwrap(),
        )
        .await;
        assert_eq!(answered.problem(415), "not-json", "{kind}");
    }
    assert_eq!(
        server.get("/sessions").await.expect(200)["sessions"],
        Value::Array(Vec::new())
    );
}

#[tokio::test]
async fn responses_disable_dns_prefetching() {
    let server = Serving::start_owned(Place::new(), &["--no-tools"]).await;
    for path in [
        "/",
        "/assets/frames/foreign.html",
        "/assets/frames/drawing.html",
        "/assets/js/main.js",
        "/mcp/apps/page?server=x&uri=ui://x",
        "/healthz",
        "/nothing",
    ] {
        let answered = server.get(path).await;
        assert_eq!(answered.header("x-dns-prefetch-control"), "off", "{path}");
    }
}
