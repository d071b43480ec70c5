//! The limit of concurrent runs of one user, with requests that arrive at the same time.

use futures_util::future::join_all;
use serde_json::json;
use switchboard_testkit::fake::{FakeModel, Gate};

use crate::serving::{Serving, no_servers, place, says};

#[tokio::test]
async fn concurrent_requests_fill_the_limit_exactly() {
    const MOST: usize = 4;
    const AT_ONCE: usize = 60;
    let mut config = no_servers();
    config["serve"] = json!({"max_runs_each": MOST});
    let gate = Gate::new();
    let fake = FakeModel::start().await.unwrap();
    for _ in 0..MOST {
        fake.answer(says("ok").held_by(&gate));
    }
    let server = Serving::start_owned(place(&fake, &config), &[]).await;
    let asked = json!({"message": "Hi", "background": true});
    let answers = join_all((0..AT_ONCE).map(|_| server.post("/chat", &asked))).await;
    let (taken, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|it| it.status == 202);
    assert_eq!(taken.len(), MOST);
    for answer in &refused {
        assert_eq!(answer.problem(429), "too-many");
    }
    let sessions = server.get("/sessions").await.expect(200);
    let sessions = sessions["sessions"].as_array().unwrap().len();
    assert_eq!(sessions, MOST, "nothing is left of those that were refused");
    // When the runs end, as many new runs as before can start.
    gate.open();
    for answer in &taken {
        let run = answer.json()["run_id"].as_str().unwrap().to_owned();
        server.follow_run(&run).await.rest().await;
    }
    for _ in 0..MOST {
        let gate = Gate::new();
        fake.answer(says("ok").held_by(&gate));
        server.begin(json!({"message": "Hi"})).await;
    }
    let refused = server.post("/chat", &asked).await;
    assert_eq!(refused.problem(429), "too-many");
}
