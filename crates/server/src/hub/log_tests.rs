use jiff::Timestamp;
use proptest::prelude::*;

use super::*;

fn event(seq: u64, text: &str) -> Logged {
    let event = RunEvent {
        run_id: "r".into(),
        seq,
        time: Timestamp::UNIX_EPOCH,
        kind: RunEventKind::TextDelta {
            text: text.to_owned(),
        },
    };
    Logged::from(PersistedEvent {
        json: serde_json::to_string(&event).unwrap().into(),
        event: Arc::new(event),
    })
}

fn numbers(found: Found) -> Vec<u64> {
    match found {
        Found::Events(events) => events.iter().map(|event| event.seq).collect(),
        Found::Older | Found::Nothing(_) => Vec::new(),
    }
}

#[test]
fn a_type_is_read_where_it_stands() {
    let logged = event(1, "\"type\":\"other\"");
    assert_eq!(type_of(&logged.json()), "text_delta");
    let read = Logged::from(StoredEvent {
        seq: 1,
        json: logged.json(),
    });
    assert_eq!(read.event(), logged.event());
    let strange = Logged::from(StoredEvent {
        seq: 1,
        json: "{\"type\":\"of_tomorrow\"}".into(),
    });
    assert_eq!(type_of(&strange.json()), "of_tomorrow");
    assert_eq!(strange.event(), None);
}

#[test]
fn what_is_not_stored_reads_as_what_is() {
    let kept = event(1, "a \"word\"");
    let loose = Logged::loose(kept.event().unwrap());
    assert_eq!((loose.seq, loose.json()), (1, kept.json()));
    assert_eq!(loose.event(), kept.event());
}

#[test]
fn a_log_that_goes_on_begins_behind_what_is_stored() {
    let log = RunLog::new(7, 1 << 20);
    assert!(matches!(log.after(7), Found::Nothing(Standing::Running)));
    assert!(matches!(log.after(3), Found::Older));
    log.push(event(8, "x"));
    assert_eq!(numbers(log.after(7)), [8]);
    assert!(matches!(log.after(3), Found::Older));
    assert_eq!(log.last(), 8);
}

#[test]
fn any_number_may_be_asked_for() {
    let log = RunLog::new(0, 1 << 20);
    log.push(event(1, "x"));
    assert!(matches!(log.after(u64::MAX), Found::Nothing(_)));
}

#[test]
fn what_comes_ends_the_waiting() {
    let log = RunLog::new(0, 1 << 20);
    log.stands(Standing::Asking(Vec::new()));
    log.push(event(1, "x"));
    assert!(matches!(log.standing(), Standing::Running));
    log.stands(Standing::Left);
    log.push(event(2, "x"));
    assert!(log.standing().is_final());
}

proptest! {
    /// However little is kept, a reader that gets what it asks for gets it without a gap, and memory is bounded.
    #[test]
    fn what_is_in_memory_is_whole(
        lengths in prop::collection::vec(0_usize..4_000, 1..200),
        most in 1_000_usize..50_000,
        after in 0_u64..200,
    ) {
        let log = RunLog::new(0, most);
        for (seq, length) in (1..).zip(&lengths) {
            log.push(event(seq, &"x".repeat(*length)));
        }
        let state = log.state();
        let kept: usize = state.events.iter().map(weight).sum();
        prop_assert_eq!(kept, state.bytes);
        prop_assert!(kept <= most || state.events.len() == 1);
        let first = state.events.front().unwrap().seq;
        drop(state);
        let last = lengths.len() as u64;
        match log.after(after) {
            Found::Nothing(_) => prop_assert!(after >= last),
            Found::Older => prop_assert!(after + 1 < first),
            found @ Found::Events(_) => {
                let numbers = numbers(found);
                let end = last.min(after + AT_ONCE as u64);
                prop_assert_eq!(numbers, (after + 1..=end).collect::<Vec<_>>());
            }
        }
    }
}
