use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
    routing::post,
};
use tokio::net::TcpListener;

use super::*;

/// The number of requests to `/arrive` that had the secret header.
#[derive(Clone, Default)]
struct Arrived(Arc<AtomicUsize>);

impl Arrived {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Starts a server. `/arrive` counts requests; `/away/STATUS` redirects to the address in the
/// header `x-to`.
async fn serve() -> (SocketAddr, Arrived) {
    async fn arrive(State(arrived): State<Arrived>, headers: HeaderMap, body: String) -> Response {
        assert_eq!(headers["x-secret"], "s");
        assert_eq!(body, "message");
        arrived.0.fetch_add(1, Ordering::SeqCst);
        "arrived".into_response()
    }

    async fn away(Path(status): Path<u16>, headers: HeaderMap) -> Response {
        let status = StatusCode::from_u16(status).unwrap();
        (status, [(header::LOCATION, headers["x-to"].clone())]).into_response()
    }

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let arrived = Arrived::default();
    let app = Router::new()
        .route("/arrive", post(arrive))
        .route("/away/{status}", post(away))
        .with_state(arrived.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, arrived)
}

/// Posts a message and returns the status of the last answer.
async fn post_to(url: &str, to: &str) -> u16 {
    let client = build_client(url, Duration::from_secs(5)).unwrap();
    let request = client.post(url).header("x-secret", "s").header("x-to", to);
    let response = request.body("message").send().await.unwrap();
    response.status().as_u16()
}

#[tokio::test]
async fn only_redirects_that_keep_the_message_are_followed() {
    let (address, arrived) = serve().await;
    for (status, follows) in [
        (301, false),
        (302, false),
        (303, false),
        (307, true),
        (308, true),
    ] {
        let before = arrived.count();
        let last = post_to(&format!("http://{address}/away/{status}"), "/arrive").await;
        assert_eq!(last, if follows { 200 } else { status });
        assert_eq!(arrived.count() - before, usize::from(follows), "{status}");
    }
}

#[tokio::test]
async fn no_redirect_to_another_origin_is_followed() {
    let (address, arrived) = serve().await;
    let (other, other_arrived) = serve().await;
    let port = address.port();
    let from = format!("http://{address}/away/307");
    for to in [
        // Another port, another name of the same machine, and another scheme.
        format!("http://{other}/arrive"),
        format!("http://localhost:{port}/arrive"),
        format!("https://{address}/arrive"),
        format!("//{other}/arrive"),
    ] {
        assert_eq!(post_to(&from, &to).await, 307, "{to}");
    }
    assert_eq!((arrived.count(), other_arrived.count()), (0, 0));
    let same = format!("http://127.0.0.1:{port}/arrive");
    assert_eq!(post_to(&from, &same).await, 200);
    assert_eq!(arrived.count(), 1);
}
