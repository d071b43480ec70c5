//! Measures the rate and the waiting time of appends of events:
//! `cargo run --release -p switchboard-sessions --example appends -- [PLACE] [WRITERS] [SECONDS]
//! [PAUSE]`.
//!
//! PLACE is a path or the URL of a PostgreSQL server; `-` is a temporary file. Each writer has one
//! run. It repeats an append of three events of 300 bytes, each followed by a pause of PAUSE
//! milliseconds (default 0).
#![allow(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "the person at the terminal is who it talks to, in round numbers"
)]

use std::{
    error::Error,
    time::{Duration, Instant},
};

use switchboard_domain::{
    Principal, RunRecord, RunState, RunStore as _, Session, SessionId, SessionStore as _,
    StoredEvent,
};
use switchboard_sessions::{Durability, Store, StoreOptions};
use uuid::Uuid;

type Failure = Box<dyn Error + Send + Sync>;

const EVENTS_OF_AN_APPEND: u64 = 3;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let folder = tempfile::tempdir()?;
    let place = arguments.next().filter(|place| place != "-");
    let writers: usize = arguments.next().map_or(Ok(500), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let pause: u64 = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let rhythm = Pace {
        time: Duration::from_secs(seconds),
        pause: Duration::from_millis(pause),
    };
    for durability in [Durability::PowerLoss, Durability::ProcessCrash] {
        let options = match &place {
            Some(place) => StoreOptions::at(place),
            None => StoreOptions::sqlite(folder.path().join("sessions.db")),
        };
        let is_file = options.path().is_some();
        let store = Store::open(options.durability(durability)).await?;
        measure(&store, writers, rhythm, durability).await?;
        store.close().await;
        if !is_file {
            // PostgreSQL has another setting.
            break;
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Pace {
    time: Duration,
    pause: Duration,
}

async fn measure(
    store: &Store,
    writers: usize,
    pace: Pace,
    durability: Durability,
) -> Result<(), Failure> {
    let mut tasks = Vec::new();
    for _ in 0..writers {
        let run = Uuid::now_v7().to_string();
        begin(store, &run).await?;
        tasks.push((store.clone(), run));
    }
    let start = Instant::now();
    let end = start + pace.time;
    let tasks: Vec<_> = tasks
        .into_iter()
        .map(|(store, run)| tokio::spawn(write(store, run, end, pace.pause)))
        .collect();
    let mut waits = Vec::new();
    for task in tasks {
        waits.extend(task.await??);
    }
    let took = start.elapsed().as_secs_f64();
    waits.sort_unstable();
    let at = |part: usize| {
        waits
            .get(waits.len() * part / 1000)
            .copied()
            .unwrap_or_default()
    };
    println!(
        "{writers} writers, {durability:?}: {:.0} appends/s ({:.0} events/s), wait p50 {:.1?}, \
         p99 {:.1?}, longest {:.1?}",
        waits.len() as f64 / took,
        (waits.len() as u64 * EVENTS_OF_AN_APPEND) as f64 / took,
        at(500),
        at(990),
        waits.last().copied().unwrap_or_default(),
    );
    Ok(())
}

async fn begin(store: &Store, run: &str) -> Result<(), Failure> {
    let owner = Principal::default();
    let session = Session {
        id: SessionId(run.to_owned()),
        title: String::new(),
        created_at: String::new(),
        messages: 0,
    };
    store.create(&owner, &session).await?;
    let record = RunRecord {
        id: run.to_owned(),
        session: session.id,
        state: RunState::Running,
        model: "offline/planner".to_owned(),
        created_at: String::new(),
        updated_at: String::new(),
        events_before: 0,
        last_event: 0,
        outcome: None,
        parameters: None,
    };
    store.begin(&owner, &record, 0, &[]).await?;
    Ok(())
}

async fn write(
    store: Store,
    run: String,
    end: Instant,
    pause: Duration,
) -> Result<Vec<Duration>, Failure> {
    let mut waits = Vec::new();
    let mut seq = 0;
    while Instant::now() < end {
        let events: Vec<StoredEvent> = (0..EVENTS_OF_AN_APPEND)
            .map(|_| {
                seq += 1;
                let json = format!("{{\"seq\":{seq},\"delta\":\"{}\"}}", "x".repeat(270));
                StoredEvent {
                    seq,
                    json: json.into(),
                }
            })
            .collect();
        let start = Instant::now();
        store.append_events(&run, &events).await?;
        waits.push(start.elapsed());
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
    Ok(waits)
}
