//! Login to a server, use of the stored tokens in another process, and logout.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Json, Router,
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Redirect, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpListener,
};

use crate::support::{Done, Place};

/// The token that opens the server.
const TOKEN: &str = "at-secret-1";

type Fields = HashMap<String, String>;

/// The fields of a form or a query.
fn fields(text: &str) -> Fields {
    let url = reqwest::Url::parse(&format!("http://fields.invalid/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

/// An MCP server and its authorization server at one address. The person agrees to everything.
#[derive(Clone)]
struct Guarded {
    url: String,
    revoked: Arc<AtomicUsize>,
}

impl Guarded {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let guarded = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            revoked: Arc::default(),
        };
        let router = Router::new()
            .route("/mcp", post(mcp))
            .route(
                "/.well-known/oauth-protected-resource/mcp",
                get(async |State(it): State<Self>| {
                    Json(json!({"resource": format!("{}/mcp", it.url), "authorization_servers": [it.url]}))
                }),
            )
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route(
                "/revoke",
                post(async |State(it): State<Self>| {
                    it.revoked.fetch_add(1, Ordering::SeqCst);
                }),
            )
            .with_state(guarded.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        guarded
    }

    fn place(&self) -> Place {
        let servers = json!({"mcp_servers": {"crm": {"url": format!("{}/mcp", self.url)}}});
        Place::new().with_file("switchboard.json", &servers.to_string())
    }
}

async fn metadata(State(it): State<Guarded>) -> Json<Value> {
    let at = |path: &str| format!("{}{path}", it.url);
    Json(json!({
        "issuer": it.url,
        "authorization_endpoint": at("/authorize"),
        "token_endpoint": at("/token"),
        "registration_endpoint": at("/register"),
        "revocation_endpoint": at("/revoke"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
    }))
}

async fn register(Json(mut client): Json<Value>) -> (StatusCode, Json<Value>) {
    client["client_id"] = "client-1".into();
    (StatusCode::CREATED, Json(client))
}

async fn authorize(RawQuery(query): RawQuery) -> Redirect {
    let asked = fields(&query.unwrap());
    assert_eq!(asked["code_challenge_method"], "S256");
    // The state is of characters that need no escape.
    let (back, state) = (&asked["redirect_uri"], &asked["state"]);
    Redirect::to(&format!("{back}?code=code-1&state={state}"))
}

async fn token(body: String) -> Response {
    let asked = fields(&body);
    if asked["code"] != "code-1" || !asked.contains_key("code_verifier") {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let token = json!({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600});
    Json(token).into_response()
}

async fn mcp(
    State(it): State<Guarded>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Response {
    let authorization = headers.get(header::AUTHORIZATION);
    if authorization.is_none_or(|authorization| authorization != &format!("Bearer {TOKEN}")) {
        let challenge = format!(
            r#"Bearer resource_metadata="{}/.well-known/oauth-protected-resource/mcp""#,
            it.url
        );
        return (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, challenge)],
        )
            .into_response();
    }
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "open", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "it is open"}]}),
        other if other.starts_with("notifications/") => {
            return StatusCode::ACCEPTED.into_response();
        }
        other => {
            let error = json!({"code": -32601, "message": format!("no method {other}")});
            return Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
                .into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
}

async fn login(place: &Place) -> Done {
    let mut child = place.start(["servers", "login", "crm"]);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let url = loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if let Some(url) = line.trim().strip_prefix("http://") {
            break format!("http://{url}");
        }
    };
    // The browser follows the redirects.
    let browser = reqwest::Client::builder().no_proxy().build().unwrap();
    let page = browser.get(url).send().await.unwrap();
    assert_eq!(page.status(), 200);
    Done::from(child.wait_with_output().await.unwrap())
}

#[tokio::test]
async fn tokens_are_stored_and_deleted_on_request() {
    let guarded = Guarded::start().await;
    let place = guarded.place();
    let call = ["tools", "call", "crm", "open"];

    let before = place.run(call).await.exits(1);
    before.stderr_contains("switchboard servers login crm");

    let done = login(&place).await.exits(0);
    assert!(done.stdout.contains("crm: logged in at"), "{done}");
    assert!(!done.stdout.contains(TOKEN), "{done}");

    place.run(call).await.exits(0).stdout_contains("it is open");

    let out = place.run(["servers", "logout", "crm"]).await;
    assert_eq!((out.code, guarded.revoked.load(Ordering::SeqCst)), (0, 1));
    assert_eq!(place.run(call).await.code, 1);
    let again = place.run(["servers", "logout", "crm"]).await;
    assert!(again.stdout.contains("not logged in"), "{again}");
}

#[tokio::test]
async fn an_unknown_server_is_reported_with_a_suggestion() {
    let guarded = Guarded::start().await;
    let done = guarded.place().run(["servers", "login", "crn"]).await;
    assert_eq!(done.code, 2, "{done}");
    assert!(done.stderr.contains("did you mean `crm`?"), "{done}");
}
