//! Golden requests: one snapshot for each fixture and provider.
//!
//! | snapshot | holds |
//! |---|---|
//! | `golden__request__<kind>__<fixture>` | the body of the request, which `cargo xtask oracle` validates with the official SDKs |
//! | `golden__notes__<kind>` | the outcome of each tool choice, and every warning |
//!
//! A new provider needs one entry in [`providers`].

mod stored;
mod wires;

use std::{
    collections::BTreeSet,
    error::Error,
    fmt::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde::Serialize;
use switchboard_domain::{
    ChatRequest, ModelError, ModelErrorKind, ModelId, ReasoningEffort, ToolChoice,
    ToolChoiceOutcome, Warning, WarningKind,
};
use switchboard_providers_openai::Profile;
use switchboard_testkit::fixtures;

use crate::wires::{Sent, Target, Wire};

/// A provider with which every fixture is mapped.
struct Provider {
    /// Name of the wire in `cargo xtask oracle`, which validates only the wires that it knows.
    kind: &'static str,
    /// Name of the model if it is not the main model of this kind. The snapshot names contain it.
    variant: Option<&'static str>,
    /// The fixtures whose requests differ for this model. `None` means all fixtures.
    only: Option<&'static [&'static str]>,
    target: Target,
}

/// Fixtures with options that the newest models refuse.
const REFUSABLE: &[&str] = &[
    "system_and_options",
    "reasoning_effort",
    "structured_output",
    "structured_output_with_tools",
    "late_system_message",
    "tool_choice_none",
    "tool_choice_required",
    "tool_choice_only_one",
    "tool_choice_only_two",
    "one_call_of_one_tool",
    "reasoning_of_anthropic",
    "opaque_blocks",
];

/// Fixtures that depend on the profile of a compatible server.
const COMPATIBLE: &[&str] = &[
    "system_and_options",
    "reasoning_effort",
    "tool_choice_only_one",
    "tool_choice_only_two",
    "images_and_documents",
    "results_of_every_kind",
    "reasoning_of_deepseek",
    "reasoning_of_others",
    "long_names_and_foreign_ids",
];

fn providers() -> Vec<Provider> {
    let main = |wire: Wire, model: ModelId| Provider {
        kind: wire.name(),
        variant: None,
        only: None,
        target: Target::new(wire, model).with_newest_version(),
    };
    let newest = |wire: Wire, provider: &str, model: &'static str| Provider {
        variant: Some(model),
        only: Some(REFUSABLE),
        ..main(wire, ModelId::new(provider, model))
    };
    let deepseek = Target::compatible(fixtures::compatible_model(), Profile::deepseek());
    vec![
        main(Wire::Anthropic, Wire::Anthropic.model()),
        newest(Wire::Anthropic, "anthropic", "claude-sonnet-5-5"),
        // The default version of Anthropic's API. It is listed separately, because the official SDK
        // does not know its field `temperature` any more.
        Provider {
            kind: "anthropic-2023-06-01",
            variant: None,
            only: Some(&["system_and_options"]),
            target: Wire::Anthropic.target(),
        },
        main(Wire::Chat, fixtures::openai_model()),
        newest(Wire::Chat, "openai", "gpt-6-luna"),
        // The requests have fields that OpenAI does not know, so OpenAI's SDK does not validate
        // them.
        Provider {
            kind: "openai-compatible",
            variant: None,
            only: Some(COMPATIBLE),
            target: deepseek,
        },
        main(Wire::Responses, fixtures::openai_model()),
        newest(Wire::Responses, "openai", "gpt-6-luna"),
        main(Wire::Gemini, Wire::Gemini.model()),
        newest(Wire::Gemini, "gemini", "gemini-3.8-flash"),
        main(Wire::Ollama, Wire::Ollama.model()),
    ]
}

impl Provider {
    fn covers(&self, fixture: &str) -> bool {
        // The fixture adds a field `metadata`, which these wires do not have.
        let is_of_others = fixture == "extra_fields" && matches!(self.kind, "gemini" | "ollama");
        self.only.is_none_or(|only| only.contains(&fixture)) && !is_of_others
    }

    /// Returns the name of the fixture in snapshots.
    fn name_of(&self, fixture: &str) -> String {
        match self.variant {
            None => fixture.to_owned(),
            Some(model) => format!("{fixture}_on_{model}"),
        }
    }
}

/// Compares all snapshots before it fails, so that one run shows all differences.
#[derive(Default)]
struct Snapshots {
    expected: BTreeSet<String>,
    differing: Vec<String>,
}

impl Snapshots {
    fn json(&mut self, name: &str, about: &str, value: &impl Serialize) {
        self.compare(name, about, || insta::assert_json_snapshot!(name, value));
    }

    fn text(&mut self, name: &str, about: &str, text: &str) {
        self.compare(name, about, || insta::assert_snapshot!(name, text));
    }

    fn compare(&mut self, name: &str, about: &str, assert: impl FnOnce()) {
        self.expected.insert(format!("golden__{name}"));
        let mut settings = insta::Settings::clone_current();
        settings.set_description(about);
        settings.set_omit_expression(true);
        if catch_unwind(AssertUnwindSafe(|| settings.bind(assert))).is_err() {
            self.differing.push(name.to_owned());
        }
    }
}

#[test]
fn every_fixture_on_every_provider() {
    let fixtures = fixtures::all().unwrap();
    let providers = providers();
    let mut snapshots = Snapshots::default();
    let kinds: BTreeSet<&str> = providers.iter().map(|provider| provider.kind).collect();
    for kind in kinds {
        let mut notes = String::new();
        for provider in providers.iter().filter(|provider| provider.kind == kind) {
            let covered = fixtures.iter().filter(|it| provider.covers(&it.name));
            for fixture in covered {
                let name = provider.name_of(&fixture.name);
                let result = provider.target.send(&fixture.request);
                note(&mut notes, &name, &result).unwrap();
                if let Ok(Sent { body, .. }) = result {
                    let name = format!("request__{kind}__{name}");
                    snapshots.json(&name, &fixture.about, &body);
                }
            }
        }
        let about = "What became of each fixture's tool choice, and every warning.";
        snapshots.text(&format!("notes__{kind}"), about, &notes);
    }
    let Snapshots {
        expected,
        differing,
    } = &snapshots;
    assert!(differing.is_empty(), "these differ: {differing:#?}");
    let stored = stored::snapshots("golden__").unwrap();
    let stale: Vec<_> = stored.difference(expected).collect();
    assert!(stale.is_empty(), "no fixture has these: {stale:#?}");
    let missing: Vec<_> = expected.difference(&stored).collect();
    assert!(missing.is_empty(), "these are not stored: {missing:#?}");
}

fn note(
    notes: &mut String,
    name: &str,
    result: &Result<Sent, ModelError>,
) -> Result<(), Box<dyn Error>> {
    let mapped = match result {
        Ok(mapped) => mapped,
        Err(error) => {
            writeln!(notes, "{name}: refused\n  {error}")?;
            return Ok(());
        }
    };
    match &mapped.outcome {
        ToolChoiceOutcome::Native => writeln!(notes, "{name}: native")?,
        ToolChoiceOutcome::Emulated { how } => writeln!(notes, "{name}: emulated, {how}")?,
        ToolChoiceOutcome::Relaxed { why } => writeln!(notes, "{name}: relaxed, {why}")?,
    }
    for Warning { kind, message } in &mapped.warnings {
        let kind = serde_json::to_value(kind)?;
        let kind = kind.as_str().unwrap_or_default();
        writeln!(notes, "  {kind}: {message}")?;
    }
    Ok(())
}

#[test]
fn what_a_provider_says_it_covers_exists() {
    let fixtures = fixtures::all().unwrap();
    let mut columns = BTreeSet::new();
    for provider in providers() {
        assert!(columns.insert((provider.kind, provider.variant)));
        for name in provider.only.unwrap_or_default() {
            assert!(
                fixtures.iter().any(|it| it.name == *name),
                "there is no fixture {name}"
            );
        }
    }
}

/// Checks for all combinations of options that a request has the options, or a warning. A relaxed
/// tool choice is reported twice: as the outcome and as a warning.
#[test]
fn every_choice_and_effort_is_mapped_and_a_relaxed_one_is_told() {
    let mut relaxed = 0;
    for provider in providers() {
        for fixture in fixtures::all().unwrap() {
            for request in with_every_choice_and_effort(&fixture.request) {
                let asked = (&request.tool_choice, request.reasoning);
                let name = provider.name_of(&fixture.name);
                let mapped = match provider.target.send(&request) {
                    Ok(mapped) => mapped,
                    // The request is refused before it is sent.
                    Err(error) if matches!(error.kind, ModelErrorKind::Unsupported { .. }) => {
                        continue;
                    }
                    Err(error) => panic!("{} {name}, {asked:?}: {error}", provider.kind),
                };
                let told = mapped.warnings.iter();
                let told = told.filter(|it| it.kind == WarningKind::ToolChoiceRelaxed);
                let is_relaxed = matches!(mapped.outcome, ToolChoiceOutcome::Relaxed { .. });
                assert_eq!(
                    told.count(),
                    usize::from(is_relaxed),
                    "{} {name}, {asked:?}: {:?}",
                    provider.kind,
                    mapped.outcome
                );
                relaxed += usize::from(is_relaxed);
            }
        }
    }
    assert!(relaxed > 0, "some model refuses a forced choice");
}

fn with_every_choice_and_effort(request: &ChatRequest) -> Vec<ChatRequest> {
    let mut choices = vec![ToolChoice::Auto, ToolChoice::None];
    if let Some(tool) = request.tools.first() {
        choices.push(ToolChoice::Required);
        choices.push(ToolChoice::Only(vec![tool.name.clone()]));
    }
    let efforts = [
        None,
        Some(ReasoningEffort::None),
        Some(ReasoningEffort::Low),
        Some(ReasoningEffort::Medium),
        Some(ReasoningEffort::High),
    ];
    let pairs = choices
        .iter()
        .flat_map(|choice| efforts.map(|effort| (choice, effort)));
    pairs
        .map(|(choice, reasoning)| ChatRequest {
            tool_choice: choice.clone(),
            reasoning,
            ..request.clone()
        })
        .collect()
}
