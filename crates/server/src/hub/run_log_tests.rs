use jiff::Timestamp;
use proptest::prelude::*;

use super::*;

fn event(seq: u64, text: &str) -> LoggedEvent {
    let event = RunEvent {
        run_id: "r".into(),
        seq,
        time: Timestamp::UNIX_EPOCH,
        kind: RunEventKind::TextDelta {
            text: text.to_owned(),
        },
    };
    LoggedEvent::from(PersistedEvent {
        json: serde_json::to_string(&event).unwrap().into(),
        event: Arc::new(event),
    })
}

fn numbers(result: LogReadResult) -> Vec<u64> {
    match result {
        LogReadResult::Events(events) => events.iter().map(|event| event.seq).collect(),
        LogReadResult::Older | LogReadResult::Nothing(_) => Vec::new(),
    }
}

#[test]
fn the_type_is_read_from_the_json() {
    let logged = event(1, "\"type\":\"other\"");
    assert_eq!(event_type(&logged.json), "text_delta");
    let read = LoggedEvent::from(StoredEvent {
        seq: 1,
        json: logged.json.clone(),
    });
    assert_eq!(read.parsed_event(), logged.parsed_event());
    let unknown = LoggedEvent::from(StoredEvent {
        seq: 1,
        json: "{\"type\":\"of_a_later_version\"}".into(),
    });
    assert_eq!(event_type(&unknown.json), "of_a_later_version");
    assert_eq!(unknown.parsed_event(), None);
}

#[test]
fn an_ephemeral_event_reads_like_a_stored_one() {
    let durable = event(1, "a \"word\"");
    let ephemeral = LoggedEvent::from(RunEvent::clone(&durable.parsed_event().unwrap()));
    assert_eq!((ephemeral.seq, &ephemeral.json), (1, &durable.json));
    assert_eq!(ephemeral.parsed_event(), durable.parsed_event());
}

#[test]
fn the_log_of_a_resumed_run_begins_after_the_stored_events() {
    let log = RunLog::new(7, 1 << 20);
    assert!(matches!(
        log.read_events_after(7),
        LogReadResult::Nothing(RunStatus::Running)
    ));
    assert!(matches!(log.read_events_after(3), LogReadResult::Older));
    log.push(event(8, "x"));
    assert_eq!(numbers(log.read_events_after(7)), [8]);
    assert!(matches!(log.read_events_after(3), LogReadResult::Older));
    assert_eq!(log.last_seq(), 8);
}

#[test]
fn any_position_can_be_read() {
    let log = RunLog::new(0, 1 << 20);
    log.push(event(1, "x"));
    assert!(matches!(
        log.read_events_after(u64::MAX),
        LogReadResult::Nothing(_)
    ));
}

#[test]
fn an_event_ends_the_wait_for_input() {
    let log = RunLog::new(0, 1 << 20);
    log.set_status(RunStatus::AwaitingInput(Vec::new()));
    log.push(event(1, "x"));
    assert!(matches!(log.run_status(), RunStatus::Running));
    log.set_status(RunStatus::Interrupted);
    log.push(event(2, "x"));
    assert!(log.run_status().is_final());
}

proptest! {
    /// Checks that memory is bounded, and that a read returns consecutive events or none.
    #[test]
    fn events_in_memory_have_no_gap(
        lengths in prop::collection::vec(0_usize..4_000, 1..200),
        max_bytes in 1_000_usize..50_000,
        after in 0_u64..200,
    ) {
        let log = RunLog::new(0, max_bytes);
        for (seq, length) in (1..).zip(&lengths) {
            log.push(event(seq, &"x".repeat(*length)));
        }
        let state = lock_mutex(&log.state);
        let bytes: usize = state.events.iter().map(LoggedEvent::memory_size).sum();
        prop_assert_eq!(bytes, state.bytes);
        prop_assert!(bytes <= max_bytes || state.events.len() == 1);
        let first = state.events.front().unwrap().seq;
        drop(state);
        let last = lengths.len() as u64;
        match log.read_events_after(after) {
            LogReadResult::Nothing(_) => prop_assert!(after >= last),
            LogReadResult::Older => prop_assert!(after + 1 < first),
            result @ LogReadResult::Events(_) => {
                let numbers = numbers(result);
                let end = last.min(after + MAX_EVENTS_PER_READ as u64);
                prop_assert_eq!(numbers, (after + 1..=end).collect::<Vec<_>>());
            }
        }
    }
}
