//! Checks that the body of a request contains the whole conversation.
//!
//! Conversations are generated ([`draft`]) and mapped by each adapter. Then they are read from the
//! body of the request by readers that know only the wire, not the adapter ([`read`]). The result
//! must equal the conversation in its best form on the wire ([`canonical`]), and the request must
//! have a warning about each loss. Without a warning, nothing is missing.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

mod canonical;
mod choice;
mod draft;
mod read;
mod results;
#[path = "../wires/mod.rs"]
mod wires;

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;
use switchboard_domain::{
    ChatRequest, ModelError, ModelId, Role, ToolChoice, ToolChoiceOutcome, WarningKind,
};
use switchboard_providers_openai::Profile;

use crate::{
    canonical::{Canonical, canonical},
    draft::Draft,
    wires::{Sent, Target, WIRES, Wire},
};

/// The receiver of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Anthropic,
    Chat,
    /// A compatible server of Chat Completions that accepts its own reasoning in a request.
    Compatible,
    Responses,
    Gemini,
    Ollama,
}

const COLUMNS: [Column; 6] = [
    Column::Anthropic,
    Column::Chat,
    Column::Compatible,
    Column::Responses,
    Column::Gemini,
    Column::Ollama,
];

impl Column {
    fn wire(self) -> Wire {
        match self {
            Self::Anthropic => Wire::Anthropic,
            Self::Chat | Self::Compatible => Wire::Chat,
            Self::Responses => Wire::Responses,
            Self::Gemini => Wire::Gemini,
            Self::Ollama => Wire::Ollama,
        }
    }

    fn model(self) -> ModelId {
        match self {
            Self::Compatible => ModelId::new("acme", "acme-1"),
            other => other.wire().model(),
        }
    }

    fn target(self) -> Target {
        match self {
            Self::Compatible => Target::compatible(self.model(), Profile::litellm()),
            other => other.wire().target(),
        }
    }

    fn send(self, request: &ChatRequest) -> Result<Sent, ModelError> {
        self.target().send(request)
    }

    /// Returns the list in a body that contains the conversation.
    fn messages(self, body: &Value) -> &[Value] {
        let name = match self {
            Self::Responses => "input",
            Self::Gemini => "contents",
            _ => "messages",
        };
        body[name].as_array().map_or(&[], Vec::as_slice)
    }
}

fn kinds(warnings: impl IntoIterator<Item = WarningKind>) -> BTreeSet<String> {
    let name = |kind| format!("{kind:?}");
    warnings.into_iter().map(name).collect()
}

/// Checks that the body contains the conversation, and that warnings report each loss.
fn check(column: Column, request: &ChatRequest) -> Result<(), TestCaseError> {
    let sent = column.send(request);
    let sent = sent.map_err(|error| TestCaseError::fail(format!("{column:?}: {error}")))?;
    let Canonical { mut turns, losses } = canonical(column, request);
    let mut found = read::conversation(column, &sent.body);
    if column == Column::Ollama && matches!(sent.outcome, ToolChoiceOutcome::Emulated { .. }) {
        choice::without_instructions(&mut found, &mut turns);
    }
    prop_assert_eq!(&found, &turns, "{:?}: {}", column, sent.body);
    let told = sent.warnings.iter().map(|warning| warning.kind);
    prop_assert_eq!(
        kinds(told),
        kinds(losses),
        "{:?}: {:?}\n{}",
        column,
        sent.warnings,
        sent.body
    );
    check_ids(column, request, &sent)?;
    choice::check(column, request, &sent)
}

/// Checks that an id that every wire allows is sent unchanged, independent of the model that
/// created it.
fn check_ids(column: Column, request: &ChatRequest, sent: &Sent) -> Result<(), TestCaseError> {
    let has_ids = !matches!(column, Column::Gemini | Column::Ollama);
    let calls = request.messages.iter().flat_map(|it| it.tool_uses());
    for call in calls.filter(|_| has_ids) {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let is_sent = sent.bytes.contains(&format!("\"{}\"", call.id));
        let is_lawful = call.id.len() <= 40 && call.id.bytes().all(legal);
        prop_assert!(is_sent || !is_lawful, "{column:?}: {}", sent.bytes);
    }
    Ok(())
}

/// Checks that equal requests have equal bytes, and that a longer conversation begins with the
/// bytes of the shorter one. Prompt caches need both.
fn check_beginning(column: Column, request: &ChatRequest) -> Result<(), TestCaseError> {
    let sent = column.send(request).unwrap();
    let again = column.send(&request.clone()).unwrap();
    prop_assert_eq!(&sent.bytes, &again.bytes);
    let whole = column.messages(&sent.body);
    for end in 1..request.messages.len() {
        // The model answered at this position, so there was a request that ended before it.
        let is_asked = request.messages[end].role == Role::Assistant
            && !canonical::is_empty(column, &request.messages[end])
            && matches!(request.messages[end - 1].role, Role::User | Role::Tool)
            && !canonical::is_empty(column, &request.messages[end - 1]);
        if !is_asked {
            continue;
        }
        let mut before = request.clone();
        before.messages.truncate(end);
        let before = column.send(&before).unwrap();
        let before = column.messages(&before.body);
        prop_assert!(
            whole.starts_with(before),
            "{:?}, {} messages: {:#?}\n{:#?}",
            column,
            end,
            before,
            whole
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(256)
    })]

    #[test]
    fn the_sent_request_contains_the_conversation(draft in draft::any_draft()) {
        for column in COLUMNS {
            check(column, &draft.for_column(column))?;
        }
    }

    #[test]
    fn a_longer_conversation_begins_as_the_shorter_one_did(draft in draft::any_draft()) {
        for column in COLUMNS {
            check_beginning(column, &draft.for_column(column))?;
        }
    }
}

#[test]
fn every_wire_is_a_column() {
    for wire in WIRES {
        assert!(
            COLUMNS.iter().any(|column| column.wire() == wire),
            "{wire:?}"
        );
    }
}

/// Checks that the generated conversations contain every kind of part. Otherwise, the checks above
/// would prove nothing.
#[test]
fn the_generated_conversations_contain_every_kind_of_part() {
    use proptest::{strategy::ValueTree as _, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let mut requests = Vec::new();
    for _ in 0..200 {
        let draft: Draft = draft::any_draft().new_tree(&mut runner).unwrap().current();
        requests.push(draft.for_column(Column::Gemini));
    }
    let has = |what: &str| {
        let stored = requests.iter().map(|it| serde_json::to_string(it).unwrap());
        let with = stored.filter(|stored| stored.contains(what)).count();
        assert!(with >= 10, "{what}: only {with}");
    };
    for what in [
        "\"image\"",
        "\"document\"",
        "\"reasoning\"",
        "\"tool_use\"",
        "thoughtSignature",
        "\"is_error\":true",
        "\"structured\":{",
        "\"structured\":[",
        "18446744073709551615",
        "-0.5",
        "\"input\":{\"object\":{}}",
        "\"text\":\"\"",
        "\u{1f30a}",
        "\"provider\":\"elsewhere\"",
        "\"required\"",
        "\"only\"",
    ] {
        has(what);
    }
    let parallel = requests.iter().flat_map(|request| &request.messages);
    let parallel = parallel.filter(|message| message.tool_uses().count() > 1);
    assert!(parallel.count() > 100);
    let choices: BTreeSet<String> = requests
        .iter()
        .map(|request| match &request.tool_choice {
            ToolChoice::Only(names) => format!("Only {}", names.len()),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(choices.len(), 5, "{choices:?}");
}
