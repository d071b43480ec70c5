//! Rate limits of progress and questions.

use switchboard_domain::{Elicitation, ModelId};

use super::*;
use crate::{QuestionAction, RunOptions};

fn publisher() -> (EventPublisher, EventReader) {
    let run = Run::new(
        "run",
        ModelId::new("p", "m"),
        Vec::new(),
        RunOptions::default(),
    );
    let (publisher, reader) = EventPublisher::new(&run, Arc::new(|| Timestamp::UNIX_EPOCH));
    for id in ["a", "b"] {
        publisher.publish_events([RunEventKind::ToolStarted { id: id.into() }]);
    }
    (publisher, reader)
}

fn at(progress: u32) -> ToolProgress {
    ToolProgress {
        progress: f64::from(progress),
        total: None,
        message: None,
    }
}

fn finished(id: &str) -> RunEventKind {
    RunEventKind::ToolFinished {
        id: id.into(),
        is_error: false,
        failure: None,
        cached: false,
        attempts: 1,
        duration_ms: 0,
        content: Vec::new().into(),
        structured: None,
    }
}

fn asked(question: &str) -> RunEventKind {
    let question: Elicitation = serde_json::from_value(serde_json::json!({
        "server": "srv",
        "message": question,
        "form": "fields",
        "schema": {"type": "object", "properties": {}},
    }))
    .unwrap();
    RunEventKind::QuestionAsked {
        id: "q".into(),
        question: Box::new(question),
    }
}

/// Returns a description of each event that is available.
fn told(reader: &mut EventReader) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(event) = reader.next() {
        all.push(match event.kind {
            RunEventKind::ToolProgressed { id, progress } => format!("{id} {}", progress.progress),
            RunEventKind::ToolFinished { id, .. } => format!("{id} ends"),
            RunEventKind::QuestionAsked { .. } => "asked".to_owned(),
            RunEventKind::QuestionAnswered { .. } => "answered".to_owned(),
            _ => continue,
        });
    }
    all
}

#[tokio::test(start_paused = true)]
async fn progress_is_rate_limited_and_the_latest_is_always_emitted() {
    let (publisher, mut reader) = publisher();
    for n in 0..100_000 {
        publisher.publish_progress("a", at(n));
    }
    publisher.publish_progress("b", at(7));
    let mut expected: Vec<String> = (0..MAX_PER_PERIOD).map(|n| format!("a {n}")).collect();
    expected.push("b 7".into());
    assert_eq!(told(&mut reader), expected);
    tokio::time::advance(PERIOD).await;
    for n in 0..50 {
        publisher.publish_progress("a", at(n));
    }
    publisher.publish_events([finished("a")]);
    publisher.publish_progress("a", at(0));
    let second = told(&mut reader);
    assert_eq!(second[second.len() - 2..], ["a 49", "a ends"]);
    assert!(second.len() <= MAX_PER_PERIOD as usize + 2, "{second:?}");
}

#[test]
fn a_dropped_reader_releases_its_task_and_the_unread_events() {
    struct Task;
    impl std::task::Wake for Task {
        fn wake(self: Arc<Self>) {}
    }
    let (publisher, mut reader) = publisher();
    told(&mut reader);
    let task = Arc::new(Task);
    let waker = Waker::from(Arc::clone(&task));
    assert!(
        reader
            .poll_next(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop((waker, reader));
    assert_eq!(Arc::strong_count(&task), 1);
    publisher.publish_events([finished("a")]);
    assert!(publisher.lock_state().unread.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_queue_of_unread_events_is_limited() {
    let (publisher, mut reader) = publisher();
    for second in 0..1_000 {
        for n in 0..MAX_PER_PERIOD {
            publisher.publish_progress("a", at(second * MAX_PER_PERIOD + n));
            let is_asked = publisher.publish_question("b", asked("Which one?"));
            if is_asked {
                let action = QuestionAction::Cancel;
                let id = "q".into();
                assert!(
                    publisher.publish_question("b", RunEventKind::QuestionAnswered { id, action })
                );
            }
        }
        tokio::time::advance(PERIOD).await;
    }
    assert!(publisher.lock_state().unread.len() <= MAX_UNREAD + 2);
    let all = told(&mut reader);
    let count = |what: &str| all.iter().filter(|told| *told == what).count();
    assert!(count("asked") > 0);
    assert_eq!(count("asked"), count("answered"));
}

#[tokio::test(start_paused = true)]
async fn questions_above_the_rate_limit_are_refused() {
    let (publisher, mut reader) = publisher();
    let asks = |times: u32| {
        (0..times)
            .filter(|_| publisher.publish_question("a", asked("?")))
            .count()
    };
    assert_eq!(asks(1_000), MAX_PER_PERIOD as usize);
    assert!(publisher.publish_question("b", asked("?")), "another call");
    tokio::time::advance(PERIOD).await;
    assert_eq!(asks(3), 3);
    assert_eq!(told(&mut reader).len(), MAX_PER_PERIOD as usize + 4);
}
