use rmcp::model::{DiscoverRequest, DiscoverRequestParams};
use serde_json::{Value, json};

use super::*;
use crate::{
    config::log_level::LogLevel,
    transport::instrumented_transport::tests::{FakeTransport, received, result, send, transport},
};

const TIMEOUT: Duration = Duration::from_secs(5);

async fn probe(inner: FakeTransport) -> (DiscoveryProbe<FakeTransport>, LateDiscovery) {
    let late = LateDiscovery::default();
    let inner = InstrumentedTransport::new(inner, LogLevel::Info);
    let mut probe = DiscoveryProbe::new(inner, TIMEOUT, late.clone());
    let discover = DiscoverRequest::new(DiscoverRequestParams {});
    send(&mut probe, ClientRequest::DiscoverRequest(discover), 0).await;
    (probe, late)
}

fn discovery() -> Value {
    let result = json!({
        "supportedVersions": ["2026-07-28"], "capabilities": {},
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
    });
    json!({"id": 0, "result": result})
}

#[tokio::test]
async fn the_answer_to_discovery_is_passed_on() {
    let (mut probe, late) = probe(transport([discovery(), result(1)])).await;
    assert_eq!(
        received(&mut probe).await["result"]["supportedVersions"][0],
        "2026-07-28"
    );
    assert_eq!(received(&mut probe).await["id"], 1);
    assert!(!late.happened());
}

#[tokio::test(start_paused = true)]
async fn an_error_is_passed_on_immediately_and_ends_the_probe() {
    let error = json!({"error": {"code": -32601, "message": "Method not found"}});
    let (mut probe, _) = probe(transport([error, result(1)])).await;
    let begun = Instant::now();
    let answer = received(&mut probe).await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(0), &json!(-32601))
    );
    // The next answer is for the next request.
    assert_eq!(received(&mut probe).await["id"], 1);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn silence_becomes_an_error_after_the_time_limit_and_a_late_answer_is_recorded() {
    let (mut probe, late) = probe(transport([])).await;
    let begun = Instant::now();
    let answer = received(&mut probe).await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(0), &json!(-32601))
    );
    assert_eq!(begun.elapsed(), TIMEOUT);
    probe.transport.inner.incoming = [discovery(), result(1)].into();
    assert_eq!(received(&mut probe).await["id"], 1);
    assert!(late.happened());
}

#[tokio::test]
async fn an_unexpected_answer_becomes_an_error() {
    let (mut probe, late) = probe(transport([result(0), result(1)])).await;
    assert_eq!(received(&mut probe).await["error"]["code"], -32601);
    assert_eq!(received(&mut probe).await["id"], 1);
    assert!(!late.happened());
}
