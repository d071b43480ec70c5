use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use jiff::Timestamp;
use switchboard_domain::{
    CallRateCounter as _, CallRateLimits, Principal, ReachedCallRate, RunState, RunStore as _,
    SessionStore as _, SessionStoreError as Error, StoredEvent,
};

use super::{Place, id, me, ok, record, says, session};

const SESSIONS: usize = 5;

/// Number of rounds of each instance.
const ROUNDS: usize = 20;

/// The instance that executes each run, as far as this test knows.
#[derive(Default)]
struct Drivers(Mutex<HashMap<String, usize>>);

impl Drivers {
    fn begins(&self, run: &str, me: usize) {
        let before = self.0.lock().unwrap().insert(run.to_owned(), me);
        assert_eq!(before, None, "{run} is driven by {me} as well");
    }

    /// Must be called before the run is released, because another instance may acquire it
    /// immediately.
    fn ends(&self, run: &str, me: usize) {
        assert_eq!(self.0.lock().unwrap().remove(run), Some(me), "{run}");
    }
}

/// Checks several instances of one store that compete for the same runs.
pub(crate) async fn instances_share_runs(place: Place) {
    let first = place.open().await;
    for at in 0..SESSIONS {
        ok(first.create_session(&me(), &session(&format!("s{at}")))).await;
    }
    let drivers = Arc::new(Drivers::default());
    let workers: Vec<_> = (0..3)
        .map(|number| {
            let (place, drivers) = (place.clone(), Arc::clone(&drivers));
            tokio::spawn(async move { work(number, ROUNDS, &place, &drivers).await })
        })
        .collect();
    let mut begun = HashSet::new();
    let mut written: HashMap<String, Vec<StoredEvent>> = HashMap::new();
    let mut taken = 0;
    for worker in workers {
        let did = worker.await.unwrap();
        for run in did.begun {
            assert!(begun.insert(run.clone()), "{run}");
        }
        for (run, event) in did.written {
            written.entry(run).or_default().push(event);
        }
        taken += did.taken;
    }
    assert!(taken > 0 && begun.len() > SESSIONS);
    // Every acknowledged event is stored once and in order, without other events.
    for run in &begun {
        let stored = first.load_events(&me(), run, 0, 10_000).await.unwrap();
        let mut expected = written.remove(run).unwrap_or_default();
        expected.sort_by_key(|event| event.seq);
        assert_eq!(stored, expected, "{run}");
    }
    assert!(written.is_empty(), "{written:?}");
    for at in 0..SESSIONS {
        let session = id(&format!("s{at}"));
        let runs = ok(first.list_runs(&me(), Some(&session), 10_000)).await;
        let open = runs.iter().filter(|run| run.state != RunState::Finished);
        assert!(open.count() <= 1, "{runs:?}");
        let held = first.find_session(&me(), &session).await.unwrap().unwrap();
        assert_eq!(held.messages, runs.len() as u64);
    }
}

/// The acknowledged operations of one instance.
#[derive(Default)]
struct Did {
    begun: Vec<String>,
    taken: usize,
    written: Vec<(String, StoredEvent)>,
}

/// Begins and acquires runs whenever the store allows it. Sometimes drops its store in the middle
/// of a run, as a killed process does.
async fn work(number: usize, rounds: usize, place: &Place, drivers: &Drivers) -> Did {
    let mut did = Did::default();
    let mut store = place.open().await;
    for round in 0..rounds {
        let session = id(&format!("s{}", (round + number) % SESSIONS));
        let held = store.find_session(&me(), &session).await.unwrap().unwrap();
        let name = format!("r{number}-{round}");
        let new_run = record(&name, &session.0);
        let asked = says(&["go"]);
        let have = match store
            .begin_run(&me(), &new_run, held.messages, &asked)
            .await
        {
            Ok(begun) => {
                did.begun.push(begun.id.clone());
                Some(begun)
            }
            Err(Error::Busy { run, .. }) => match store.acquire_run(&me(), &run).await {
                Ok(taken) => {
                    did.taken += 1;
                    Some(taken)
                }
                Err(Error::Busy { .. } | Error::RunConflict { .. }) => None,
                Err(error) => panic!("{error:?}"),
            },
            // Another instance has begun and finished a run in the meantime.
            Err(Error::Conflict { .. }) => None,
            Err(error) => panic!("{error:?}"),
        };
        let Some(have) = have else {
            tokio::task::yield_now().await;
            continue;
        };
        let run = have.id;
        drivers.begins(&run, number);
        for seq in have.last_event + 1..=have.last_event + 3 {
            let event = StoredEvent {
                seq,
                json: format!("{{\"by\":{number}}}").into(),
            };
            ok(store.append_events(&run, std::slice::from_ref(&event))).await;
            did.written.push((run.clone(), event));
        }
        drivers.ends(&run, number);
        let messages = ok(store.find_session(&me(), &session))
            .await
            .unwrap()
            .messages;
        let state = match round % 4 {
            0 => RunState::Finished,
            1 => RunState::Waiting,
            2 => RunState::Interrupted,
            _ => {
                drop(store);
                store = place.open().await;
                continue;
            }
        };
        ok(store.release_run(&run, state, None, messages, &[])).await;
    }
    store.close().await;
    did
}

/// Checks that several processes count the calls of one user together, and the calls of another
/// user separately.
pub(crate) async fn instances_count_tool_calls_together(place: Place) {
    let limits = CallRateLimits {
        all_tools: Some(12),
        this_tool: Some(5),
    };
    let now = Timestamp::now().as_microsecond();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let place = place.clone();
            tokio::spawn(async move {
                let store = place.open().await;
                let mut counted = 0;
                for _ in 0..4 {
                    let reached = ok(store.count_call(&me(), "find", limits, now)).await;
                    counted += u32::from(reached.is_none());
                }
                store.close().await;
                counted
            })
        })
        .collect();
    let mut counted = 0;
    for worker in workers {
        counted += worker.await.unwrap();
    }
    assert_eq!(counted, 5);
    let store = place.open().await;
    let count =
        async |user: &Principal, tool, at| ok(store.count_call(user, tool, limits, at)).await;
    let this_tool = Some(ReachedCallRate::ThisTool(5));
    assert_eq!(count(&me(), "find", now).await, this_tool);
    // A call with an earlier time may be counted later.
    assert_eq!(count(&me(), "find", now - 1).await, this_tool);
    for other in ["a", "b", "c", "d", "e", "f", "g"] {
        assert_eq!(count(&me(), other, now).await, None);
    }
    let all_tools = Some(ReachedCallRate::AllTools(12));
    assert_eq!(count(&me(), "third", now).await, all_tools);
    let other = Principal {
        user: "another".to_owned(),
        ..me()
    };
    assert_eq!(count(&other, "find", now).await, None);
    let later = now + 60_000_000;
    assert_eq!(count(&me(), "find", later).await, None);
    store.close().await;
}
