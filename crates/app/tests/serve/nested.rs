//! The routes below a path of another axum application.

use std::{collections::HashSet, sync::Arc};

use axum::Router;
use reqwest::{Client, Url};
use serde_json::{Value, json};
use switchboard_server::ServerOptions;
use switchboard_sessions::Store;
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};

use crate::{
    engine::{Made, make},
    serving::{Answered, read},
};

const PREFIX: &str = "/tools/assistant";

/// Returns an application with the routes below [`PREFIX`].
struct Nested {
    base: Url,
    client: Client,
    task: JoinHandle<()>,
    store: Arc<Store>,
    /// Not read; the engine of the test writes to it.
    _news: mpsc::UnboundedReceiver<&'static str>,
    _folder: tempfile::TempDir,
}

impl Nested {
    async fn start(options: ServerOptions, nest: fn(Router) -> Router) -> Self {
        let Made {
            server,
            script,
            store,
            folder,
            news,
        } = make(options).await;
        script.let_all();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = nest(server.router(address).unwrap());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            base: format!("http://{address}").parse().unwrap(),
            client: Client::builder().no_proxy().build().unwrap(),
            task,
            store,
            _news: news,
            _folder: folder,
        }
    }

    fn url(&self, path: &str) -> Url {
        self.base.join(path).unwrap()
    }

    async fn get(&self, url: Url) -> Answered {
        read(self.client.get(url).send().await.unwrap()).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answered {
        let request = self.client.post(self.url(&format!("{PREFIX}{path}")));
        let request = request.header("content-type", "application/json");
        read(request.body(body.to_string()).send().await.unwrap()).await
    }

    async fn end(self) {
        self.task.abort();
        self.store.close().await;
    }
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
        let server = Nested::start(ServerOptions::default(), nest).await;
        let made = server.post("/sessions", &json!({})).await;
        let id = made.expect(201)["id"].as_str().unwrap().to_owned();
        assert_eq!(made.header("location"), format!("{PREFIX}/sessions/{id}"));
        let shown = server.get(server.url(made.header("location"))).await;
        assert_eq!(shown.expect(200)["session"]["id"], id);
        let asked = json!({"message": "Work.", "background": true});
        let begun = server.post("/chat", &asked).await;
        let run = begun.expect(202)["run_id"].as_str().unwrap().to_owned();
        assert_eq!(begun.header("location"), format!("{PREFIX}/runs/{run}"));
        let shown = server.get(server.url(begun.header("location"))).await;
        assert_eq!(shown.expect(200)["run"]["id"], run);
        // There are no routes outside the prefix.
        assert_eq!(server.get(server.url("/sessions")).await.status, 404);
        server.end().await;
    }
}

#[tokio::test]
async fn the_openapi_document_contains_the_prefix() {
    for (_, nest) in WAYS {
        let server = Nested::start(ServerOptions::default(), nest).await;
        let url = server.url(&format!("{PREFIX}/openapi.json"));
        let document = server.get(url.clone()).await.expect(200);
        // Relative to the host, without a slash at its end: paths begin with one.
        let base = document["servers"][0]["url"].as_str().unwrap();
        assert_eq!(base, PREFIX);
        assert!(document["paths"]["/healthz"].is_object());
        let health = url.join(&format!("{base}/healthz")).unwrap();
        server.get(health).await.expect(200);
        server.end().await;
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
        let server = Nested::start(ServerOptions::default(), nest).await;
        let mut seen = HashSet::new();
        let mut next = vec![server.url(path)];
        next.push(server.url(&format!("{PREFIX}/assets/frames/drawing.html")));
        while let Some(url) = next.pop() {
            if !seen.insert(url.clone()) {
                continue;
            }
            assert!(url.path().starts_with(PREFIX), "{url}");
            let loaded = server.get(url.clone()).await;
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
        server.end().await;
    }
}
