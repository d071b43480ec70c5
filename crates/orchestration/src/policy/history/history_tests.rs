use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use switchboard_domain::{
    Media, Message, ModelId, Part, ProviderState, Reasoning, Role, ToolContent, ToolInput,
    ToolResult, ToolUse,
};

use super::*;
use crate::{run::laws::assert_whole, tools::tokens::estimate_message};

fn words(tokens: usize) -> String {
    "word ".repeat(tokens)
}

fn policy(max_tokens: u64) -> HistoryPolicy {
    HistoryPolicy {
        max_tokens: Some(max_tokens),
        ..HistoryPolicy::default()
    }
}

fn thought(minter: &str) -> Part {
    Part::Reasoning(Reasoning {
        text: "hm".to_owned(),
        provider_state: Some(ProviderState::new_for_model(
            &ModelId::new(minter, "m"),
            json!({"signature": "s"}),
        )),
    })
}

/// Returns an assistant message with reasoning and tool calls.
fn calls(minter: &str, ids: &[String]) -> Message {
    let uses = ids
        .iter()
        .map(|id| Part::ToolUse(ToolUse::new(id, "look", ToolInput::parse_input("{}"))));
    Message::new(Role::Assistant, [thought(minter)].into_iter().chain(uses))
}

fn results(ids: &[String], tokens: usize) -> Message {
    Message::from_tool_results(
        ids.iter()
            .map(|id| ToolResult::text(id, "look", words(tokens))),
    )
}

fn ids(prefix: usize, n: usize) -> Vec<String> {
    (0..n).map(|i| format!("c{prefix}_{i}")).collect()
}

fn arcs(messages: impl IntoIterator<Item = Message>) -> Vec<Arc<Message>> {
    messages.into_iter().map(Arc::new).collect()
}

/// Returns one turn: a question, `rounds` tool calls with results of `tokens` tokens each, and an
/// answer.
fn turn(n: usize, rounds: usize, tokens: usize) -> Vec<Message> {
    let mut messages = vec![Message::user(format!("Question {n}?"))];
    for round in 0..rounds {
        let ids = ids(n * 100 + round, 1);
        messages.push(calls("anthropic", &ids));
        messages.push(results(&ids, tokens));
    }
    messages.push(Message::assistant(format!("Answer {n}.")));
    messages
}

#[test]
fn a_trim_makes_room_for_many_steps() {
    let mut messages = Vec::new();
    let mut history = HistoryTrimmer::default();
    let policy = policy(5_000);
    let (mut trims, mut last) = (0, Vec::<Arc<Message>>::new());
    for n in 0..200 {
        messages.extend(arcs(turn(n, 1, 60)));
        messages.push(Arc::new(Message::user("More?")));
        let fit = history.trim_to_token_limit(&policy, &messages, 200);
        assert!(fit.tokens <= 5_000 && !fit.is_over);
        let sent = history.messages_to_send(&messages);
        if let Some(trimmed) = fit.trimmed {
            trims += 1;
            assert!(trimmed.tokens_after <= 3_000, "{trimmed:?}");
            assert!(trimmed.tokens_before > 5_000);
        } else {
            // The earlier request is a prefix of the later one, so that prompt caches apply.
            assert!(last.iter().zip(&sent).all(|(a, b)| Arc::ptr_eq(a, b)));
            assert!(sent.len() > last.len());
        }
        last = sent;
    }
    // The interval between the two trim thresholds has room for 18 turns of about 110 tokens.
    assert!((5..=13).contains(&trims), "{trims}");
}

#[test]
fn a_long_current_turn_loses_the_ends_of_its_oldest_results_and_no_call() {
    let mut messages = arcs([Message::user("Compare all of them.")]);
    let mut history = HistoryTrimmer::default();
    let policy = policy(14_000);
    let (mut trims, mut tokens) = (0, 0);
    for n in 0..20 {
        let ids = ids(n, 2);
        messages.extend(arcs([calls("anthropic", &ids), results(&ids, 500)]));
        let fit = history.trim_to_token_limit(&policy, &messages, 0);
        assert!(!fit.is_over, "{n}: {fit:?}");
        let sent = history.messages_to_send(&messages);
        assert_eq!(sent.len(), messages.len());
        assert_whole(&sent);
        // The newest result is not shortened.
        assert!(Arc::ptr_eq(sent.last().unwrap(), messages.last().unwrap()));
        tokens = fit.tokens;
        if let Some(trimmed) = fit.trimmed {
            trims += 1;
            assert_eq!(trimmed.messages, 0);
        }
    }
    assert!((1..=4).contains(&trims), "{trims} {tokens}");
    let sent = history.messages_to_send(&messages);
    let oldest = sent[2].tool_results().next().unwrap().as_text();
    assert!(oldest.starts_with("word word"));
    assert!(oldest.contains("removed later"), "{oldest}");
    assert!(!oldest.contains("[… about 0"));
    assert_eq!(history.shortened.keys().next(), Some(&2));
}

#[test]
fn the_newest_results_are_cut_as_little_as_possible() {
    let ids = ids(0, 2);
    let messages = arcs([
        Message::user("?"),
        calls("anthropic", &ids),
        results(&ids, 5_000),
    ]);
    let mut history = HistoryTrimmer::default();
    let fit = history.trim_to_token_limit(&policy(4_000), &messages, 100);
    assert!(!fit.is_over);
    assert!((3_500..=4_000).contains(&fit.tokens), "{fit:?}");
}

#[test]
fn images_and_data_are_cut_like_text() {
    let mut seen = ToolResult::text("c", "look", words(50));
    seen = seen.with_content([ToolContent::Image(Media::from_base64("image/png", "AA=="))]);
    seen = seen.with_content([ToolContent::text(words(500))]);
    let mut data = ToolResult::text("d", "look", "");
    data.content = Arc::default();
    data.structured = Some(json!({"rows": vec!["abcdefgh"; 500]}).into());
    let message = Message::from_tool_results([seen, data]);
    let short = super::shorten::shorten_tool_results(&message, 100).unwrap();
    let texts: Vec<String> = short.tool_results().map(ToolResult::as_text).collect();
    assert!(texts[0].starts_with("word "));
    assert!(!texts[0].contains("[image"));
    assert!(texts[1].starts_with(r#"{"rows":["abcdefgh","#));
    for (result, text) in short.tool_results().zip(&texts) {
        assert!(result.structured.is_none());
        assert!(text.contains("removed later"), "{text}");
    }
    assert!(estimate_message(&short) < 400);
    assert_eq!(
        super::shorten::shorten_tool_results(&short, 100),
        None,
        "only once"
    );
}

#[test]
fn a_conversation_that_cannot_fit_is_reported() {
    let long = words(3_000);
    let messages = arcs([
        Message::system("Be brief."),
        Message::user(long.clone()),
        Message::assistant("No."),
        Message::user(long),
    ]);
    let mut history = HistoryTrimmer::default();
    let fit = history.trim_to_token_limit(&policy(2_000), &messages, 700);
    assert_eq!(fit.trimmed.map(|trimmed| trimmed.messages), Some(1));
    assert!(fit.is_over);
    // The excess is reported again, and no further message is trimmed.
    let again = history.trim_to_token_limit(&policy(2_000), &messages, 700);
    assert_eq!(again.trimmed, None);
    assert!(again.is_over);
}

#[test]
fn a_summary_replaces_omitted_messages() {
    let mut messages = Vec::new();
    for n in 0..6 {
        messages.extend(arcs(turn(n, 1, 200)));
    }
    messages.push(Arc::new(Message::user("And now?")));
    let mut history = HistoryTrimmer::default();
    let policy = policy(1_000);
    history.set_summary("Too early: nothing is left out.");
    assert!(history.messages_to_summarize(&messages).is_empty());
    history.trim_to_token_limit(&policy, &messages, 0);
    let source = history.messages_to_summarize(&messages);
    assert!(Arc::ptr_eq(&source[0], &messages[1]));
    let before = history.trim_to_token_limit(&policy, &messages, 0).tokens;
    history.set_summary("Five questions were answered.");
    let after = history.trim_to_token_limit(&policy, &messages, 0).tokens;
    assert!(after > before);
    assert!(history.messages_to_summarize(&messages).is_empty());
    let sent = history.messages_to_send(&messages);
    assert_eq!(sent[0].text(), "Question 0?");
    assert_eq!(sent[1].role, Role::User);
    assert!(sent[1].text().ends_with("Five questions were answered."));

    // The summary survives storage. The next summary covers it and the later messages.
    let stored = serde_json::to_string(&history).unwrap();
    let mut restored: HistoryTrimmer = serde_json::from_str(&stored).unwrap();
    assert_eq!(restored.messages_to_send(&messages), sent);
    assert_eq!(
        restored.trim_to_token_limit(&policy, &messages, 0).tokens,
        after
    );
    for n in 6..10 {
        messages.extend(arcs(turn(n, 1, 200)));
    }
    messages.push(Arc::new(Message::user("And now?")));
    restored.trim_to_token_limit(&policy, &messages, 0);
    let source = restored.messages_to_summarize(&messages);
    assert!(source[0].text().contains("Five questions"));
    assert!(source.len() > 2);
    restored.set_summary("x".repeat(100_000));
    assert!(
        restored.trim_to_token_limit(&policy, &messages, 0).tokens < 3_000,
        "a summary is no way around the limit"
    );
}

#[test]
fn a_summary_request_has_the_whole_text_and_no_tools() {
    let mut dropped = turn(1, 1, 3_000);
    dropped.push(Message::new(
        Role::User,
        [Part::Image(Media::from_base64("image/png", "AA=="))],
    ));
    let request = summary_request(&arcs(dropped));
    assert_eq!(request.len(), 2);
    let text = request[1].text();
    assert!(
        request
            .iter()
            .all(|message| message.tool_uses().count() == 0)
    );
    for said in [
        "Person: Question 1?",
        "Assistant calls look: {}",
        "look answers: word word",
        "Assistant: Answer 1.",
        "Person gives an image.",
    ] {
        assert!(text.contains(said), "{said} is not in {text}");
    }
    assert!(!text.contains("hm"), "thoughts are nobody's facts");
    assert!(estimate_message(&request[1]) < 600);
}

/// An event of a generated conversation.
#[derive(Debug, Clone)]
enum Happens {
    Asked(usize),
    AskedTwice,
    Instructed,
    Called { parallel: usize, tokens: usize },
    Paused(usize),
    Answered(usize),
}

fn any_history() -> impl Strategy<Value = Vec<Happens>> {
    let thing = prop_oneof![
        3 => (1_usize..120).prop_map(Happens::Asked),
        1 => Just(Happens::AskedTwice),
        1 => Just(Happens::Instructed),
        6 => (1_usize..4, 0_usize..300)
            .prop_map(|(parallel, tokens)| Happens::Called { parallel, tokens }),
        1 => (1_usize..50).prop_map(Happens::Paused),
        3 => (1_usize..120).prop_map(Happens::Answered),
    ];
    prop::collection::vec(thing, 1..60)
}

/// Returns the messages of an event. The model changes after 15 events.
fn told(n: usize, thing: &Happens) -> Vec<Message> {
    let minter = if n < 15 { "anthropic" } else { "openai" };
    match thing {
        Happens::Asked(tokens) => vec![Message::user(words(*tokens))],
        Happens::AskedTwice => vec![Message::user("One thing."), Message::user("Another.")],
        Happens::Instructed => vec![Message::system("By the way.")],
        Happens::Called { parallel, tokens } => {
            let ids = ids(n, *parallel);
            vec![calls(minter, &ids), results(&ids, *tokens)]
        }
        Happens::Paused(tokens) => vec![Message::new(
            Role::Assistant,
            [thought(minter), Part::text(words(*tokens))],
        )],
        Happens::Answered(tokens) => vec![Message::assistant(words(*tokens))],
    }
}

/// Returns the position of the original of each sent message. A shortened message is found by its
/// call ids.
fn origins(
    sent: &[Arc<Message>],
    messages: &[Arc<Message>],
    history: &HistoryTrimmer,
) -> Vec<usize> {
    let shortened: Vec<usize> = history.shortened.keys().copied().collect();
    let same = |message: &Arc<Message>, at: usize| {
        let by_calls = shortened.contains(&at)
            && message
                .tool_results()
                .map(|r| &r.tool_use_id)
                .eq(messages[at].tool_results().map(|r| &r.tool_use_id));
        Arc::ptr_eq(message, &messages[at]) || by_calls
    };
    sent.iter()
        .map(|message| {
            (0..messages.len())
                .find(|at| same(message, *at))
                .expect("nothing is made up")
        })
        .collect()
}

proptest! {
    /// At every step of any conversation, calls keep their results, the order and required messages
    /// stay, and only whole turns are omitted. The limit holds or the excess is reported. A
    /// restored history behaves like the original.
    #[test]
    fn the_laws_hold_at_every_step(
        things in any_history(),
        max in 50_u64..2_000,
        low in 0_u8..=120,
        overhead in 0_u64..200,
        pins in prop::collection::vec(0_usize..40, 0..3),
    ) {
        let policy = HistoryPolicy {
            low_water_percent: low,
            shortened_tokens: 40,
            ..policy(max)
        };
        let mut history = HistoryTrimmer::default();
        let mut stored = serde_json::to_string(&history).unwrap();
        for pin in &pins {
            history.pin_message(*pin);
        }
        let mut messages: Vec<Arc<Message>> = Vec::new();
        let mut before: Vec<usize> = Vec::new();
        for (n, thing) in things.iter().enumerate() {
            messages.extend(arcs(told(n, thing)));
            let fit = history.trim_to_token_limit(&policy, &messages, overhead);
            let sent = history.messages_to_send(&messages);
            assert_whole(&sent);

            let origins = origins(&sent, &messages, &history);
            prop_assert!(origins.is_sorted(), "order is kept");
            let tokens: u64 = sent.iter().map(|m| estimate_message(m)).sum();
            prop_assert_eq!(fit.tokens, tokens + overhead);
            prop_assert_eq!(fit.is_over, fit.tokens > max);

            // A turn begins with the last group of consecutive user messages before an answer.
            let spoken: Vec<usize> = (0..messages.len())
                .filter(|at| messages[*at].role != Role::System)
                .collect();
            let mut begins: Vec<usize> = Vec::new();
            for (i, at) in spoken.iter().enumerate() {
                let asks = |at: usize| messages[at].role == Role::User;
                if i == 0 || (asks(*at) && !asks(spoken[i - 1])) {
                    begins.push(*at);
                }
            }
            let current = begins.last().copied().unwrap_or(0);
            let first = (0..messages.len()).find(|at| messages[*at].role == Role::User);
            for (at, message) in messages.iter().enumerate() {
                let must_stay = message.role == Role::System
                    || Some(at) == first
                    || at >= current
                    || pins.contains(&at);
                prop_assert!(!must_stay || origins.contains(&at), "{at} is gone");
            }
            // The assistant and tool messages of one turn are either all sent or all omitted.
            for (i, start) in begins.iter().enumerate() {
                let end = begins.get(i + 1).copied().unwrap_or(messages.len());
                let theirs: Vec<bool> = (*start..end)
                    .filter(|at| matches!(messages[*at].role, Role::Assistant | Role::Tool))
                    .map(|at| origins.contains(&at))
                    .collect();
                prop_assert!(theirs.iter().all(|kept| *kept == theirs[0]), "half a turn");
            }
            // This trim shortens only results of the current turn. An earlier trim may have
            // shortened older results. Between trims, the sent messages do not change.
            let known = before.len().min(origins.len());
            if fit.trimmed.is_none() {
                prop_assert_eq!(&origins[..known], &before[..known]);
            }
            before = origins;

            if n > 0 {
                let mut restored: HistoryTrimmer = serde_json::from_str(&stored).unwrap();
                let again = restored.trim_to_token_limit(&policy, &messages, overhead);
                prop_assert_eq!(&again, &fit);
                prop_assert_eq!(restored.messages_to_send(&messages), sent);
            }
            stored = serde_json::to_string(&history).unwrap();
        }
    }
}
