//! The number of transactions of a run.

use std::path::Path;

use serde_json::json;
use switchboard_testkit::fake::FakeModel;

use crate::{
    resumed::database,
    serving::{Serving, no_servers, place, says},
};

/// Counts the transactions in the write-ahead log of a SQLite database. Only the last frame of a
/// transaction contains the size of the file (<https://sqlite.org/fileformat2.html#walformat>).
fn commits(database: &Path) -> usize {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let log = std::fs::read(log).unwrap();
    let (header, frames) = log.split_at(32);
    let page = u32::from_be_bytes(header[8..12].try_into().unwrap());
    let salts = &header[16..24];
    let frames = frames.chunks_exact(24 + usize::try_from(page).unwrap());
    frames
        .filter(|frame| frame[8..16] == *salts && frame[4..8] != [0; 4])
        .count()
}

#[tokio::test]
async fn a_run_in_a_new_session_is_five_transactions_at_most() {
    let fake = FakeModel::start().await.unwrap();
    let mut config = no_servers();
    // The audit records of all runs of a second add another transaction.
    config["audit"] = json!(false);
    let place = place(&fake, &config);
    let server = Serving::start(&place, &[]).await;
    let database = database(place.path());
    for message in ["Hello?", "And again?"] {
        fake.answer(says("Hello."));
        let before = commits(&database);
        let report = server.post("/chat", &json!({"message": message})).await;
        assert_eq!(report.expect(200)["answer"], "Hello.");
        let commits = commits(&database) - before;
        // The session with its run, the start of the run, the model call, the text, and the end. The
        // model call and the text may share the next transaction.
        assert!((3..=5).contains(&commits), "{commits} transactions");
    }
}
