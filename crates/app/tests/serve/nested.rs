//! The routes below a path of another axum application.

use std::collections::HashSet;

use axum::Router;
use reqwest::Url;
use serde_json::json;
use switchboard_server::ServerOptions;

use crate::engine::Own;

const PREFIX: &str = "/tools/assistant";

/// Starts an application with the routes below [`PREFIX`].
async fn start(nest: fn(Router) -> Router) -> Own {
    let server = Own::start_with(ServerOptions::default(), Some(nest)).await;
    server.let_all();
    server
}

/// Returns the path with its query.
fn path_of(url: &Url) -> String {
    let query = url.query().map(|query| format!("?{query}"));
    format!("{}{}", url.path(), query.unwrap_or_default())
}

fn url(server: &Own, path: &str) -> Url {
    format!("{}{path}", server.http.base).parse().unwrap()
}

/// The path of the page, and the way of nesting.
type Way = (&'static str, fn(Router) -> Router);

const WAYS: [Way; 2] = [
    (PREFIX, |router| Router::new().nest(PREFIX, router)),
    // The root of the routes is also found with a slash behind the prefix.
    ("/tools/assistant/", |router| {
        Router::new().nest_service(PREFIX, router)
    }),
];

#[tokio::test]
async fn location_headers_contain_the_prefix() {
    for (_, nest) in WAYS {
        let server = start(nest).await;
        let made = server
            .http
            .post(&format!("{PREFIX}/sessions"), &json!({}))
            .await;
        let id = made.expect(201)["id"].as_str().unwrap().to_owned();
        assert_eq!(made.header("location"), format!("{PREFIX}/sessions/{id}"));
        let shown = server.http.get(made.header("location")).await;
        assert_eq!(shown.expect(200)["session"]["id"], id);
        let asked = json!({"message": "Work.", "background": true});
        let begun = server.http.post(&format!("{PREFIX}/chat"), &asked).await;
        let run = begun.expect(202)["run_id"].as_str().unwrap().to_owned();
        assert_eq!(begun.header("location"), format!("{PREFIX}/runs/{run}"));
        let shown = server.http.get(begun.header("location")).await;
        assert_eq!(shown.expect(200)["run"]["id"], run);
        // There are no routes outside the prefix.
        assert_eq!(server.http.get("/sessions").await.status, 404);
        server.http.end().await;
    }
}

#[tokio::test]
async fn the_openapi_document_contains_the_prefix() {
    for (_, nest) in WAYS {
        let server = start(nest).await;
        let path = format!("{PREFIX}/openapi.json");
        let document = server.http.get(&path).await.expect(200);
        // Relative to the host, without a slash at its end: paths begin with one.
        let base = document["servers"][0]["url"].as_str().unwrap();
        assert_eq!(base, PREFIX);
        assert!(document["paths"]["/healthz"].is_object());
        server
            .http
            .get(&format!("{base}/healthz"))
            .await
            .expect(200);
        server.http.end().await;
    }
}

/// Reads the attributes of a page that are addresses, and the imports of a script.
fn addresses(text: &str) -> Vec<&str> {
    let begins = ["src=\"", "href=\"", "from \"", "import \""];
    let found = begins.iter().flat_map(|begin| {
        let parts = text.split(begin).skip(1);
        parts.filter_map(|rest| rest.split('"').next())
    });
    found
        .filter(|address| !address.starts_with('#') && !address.contains("${"))
        .collect()
}

#[tokio::test]
async fn the_page_loads_all_files_below_the_prefix() {
    for (path, nest) in WAYS {
        let server = start(nest).await;
        let mut seen = HashSet::new();
        let mut next = vec![url(&server, path)];
        next.push(url(
            &server,
            &format!("{PREFIX}/assets/frames/drawing.html"),
        ));
        while let Some(url) = next.pop() {
            if !seen.insert(url.clone()) {
                continue;
            }
            assert!(url.path().starts_with(PREFIX), "{url}");
            let loaded = server.http.get(&path_of(&url)).await;
            assert_eq!(loaded.status, 200, "{url}");
            let kind = loaded.header("content-type");
            let is_ours = !url.path().contains("/vendor/");
            if is_ours && (kind.starts_with("text/html") || kind.starts_with("text/javascript")) {
                let more = addresses(&loaded.text).into_iter();
                next.extend(more.map(|address| url.join(address).unwrap()));
            }
        }
        // The page, its styles and pictures, and all of its scripts.
        let names = [
            "app.css",
            "icon.svg",
            "js/main.js",
            "js/api.js",
            "vendor/preact.js",
        ];
        for name in names.map(|name| format!("{PREFIX}/assets/{name}")) {
            assert!(
                seen.iter().any(|url| url.path() == name),
                "{name}: {seen:?}"
            );
        }
        assert!(seen.len() > 25, "{seen:?}");
        server.http.end().await;
    }
}
