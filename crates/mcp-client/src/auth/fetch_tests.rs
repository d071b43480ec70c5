use axum::{Router, http::header, response::IntoResponse, routing::any};
use serde_json::json;
use tokio::net::TcpListener;

use super::*;

/// The limit in bytes, as documented.
const LIMIT: usize = 262_144;

/// Starts a server whose answer is a JSON object of so many bytes, and returns its address.
async fn serve(bytes: usize) -> Url {
    let text = "x".repeat(bytes - r#"{"x":""}"#.len());
    let body = json!({"x": text}).to_string();
    assert_eq!(body.len(), bytes);
    let answer =
        move || async move { ([(header::CONTENT_TYPE, "application/json")], body).into_response() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().route("/", any(answer));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Url::parse(&format!("http://{address}/")).unwrap()
}

async fn fetch(url: &Url) -> Fetch {
    Fetch::new(Guard::of_configured(std::slice::from_ref(url)).await).unwrap()
}

#[tokio::test]
async fn an_answer_of_exactly_the_limit_is_read() {
    for bytes in [LIMIT - 1, LIMIT] {
        let url = serve(bytes).await;
        let fetch = fetch(&url).await;
        let document = fetch.get("metadata", &url).await.unwrap().unwrap();
        assert_eq!(document.to_string().len(), bytes);
        let body = Body::Json("{}".to_owned());
        let answer = fetch
            .post("token endpoint", &url, body, None)
            .await
            .unwrap();
        assert_eq!(answer.json, document);
    }
}

#[tokio::test]
async fn an_answer_with_one_byte_more_is_refused() {
    let url = serve(LIMIT + 1).await;
    let fetch = fetch(&url).await;
    let get = fetch.get("metadata", &url).await.err();
    let body = Body::Form(String::new());
    let post = fetch.post("metadata", &url, body, None).await.err();
    for error in [get.unwrap(), post.unwrap()] {
        let AuthError::BadAnswer { reason, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(reason, "more than 262144 bytes");
    }
}
