//! Golden requests: every fixture, every provider, one snapshot each.
//!
//! | snapshot | holds |
//! |---|---|
//! | `golden__domain__<fixture>` | the request as the domain has it, and as it is stored |
//! | `golden__request__<kind>__<fixture>` | the body that is sent; `cargo xtask oracle` asks the official SDKs about it |
//! | `golden__notes__<kind>` | what became of the tool choice, and every warning |
//!
//! Another provider is one entry of [`PROVIDERS`].

mod stored;

use std::{
    collections::BTreeSet,
    error::Error,
    fmt::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{
    ChatRequest, ModelError, ModelErrorKind, ModelId, ReasoningEffort, Role, ToolChoice,
    ToolChoiceOutcome, Warning, WarningKind,
};
use switchboard_providers_anthropic::{MessagesOptions, messages};
use switchboard_providers_common::schema::ToolSchemas;
use switchboard_providers_gemini::{GeminiOptions, generate};
use switchboard_providers_ollama::ThinkForm;
use switchboard_providers_openai::{
    Profile, chat,
    responses::{self, ResponsesOptions},
};
use switchboard_testkit::fixtures::{self, Fixture};

/// One column of the comparison.
struct Provider {
    /// The wire, as `cargo xtask oracle` calls it. What it does not know it does not judge.
    kind: &'static str,
    /// The model, where it is not the kind's first one: fixtures are `<fixture>_on_<model>` then.
    variant: Option<&'static str>,
    /// The fixtures whose mapping depends on it; `None` is all.
    only: Option<&'static [&'static str]>,
    /// Fixtures that are about other wires, such as fields that only they have.
    except: &'static [&'static str],
    map: fn(&ChatRequest) -> Result<Mapped, ModelError>,
}

/// What a provider makes of a request.
struct Mapped {
    /// The bytes that are sent.
    body: String,
    outcome: ToolChoiceOutcome,
    warnings: Vec<Warning>,
}

/// Where the newest models refuse what earlier ones took.
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

/// The version of Anthropic's API that the official SDK speaks, and its types describe.
const NEWEST_VERSION: &str = "2026-10-21";

/// What the caller adds to the body goes out as it is; `metadata` is no field of every wire.
const FIELDS_OF_OTHERS: &[&str] = &["extra_fields"];

const PROVIDERS: &[Provider] = &[
    Provider {
        kind: "anthropic",
        variant: None,
        only: None,
        except: &[],
        map: |request| anthropic(request, &fixtures::anthropic_model(), NEWEST_VERSION),
    },
    Provider {
        kind: "anthropic",
        variant: Some("claude-sonnet-5-5"),
        only: Some(REFUSABLE),
        except: &[],
        map: |request| {
            let model = ModelId::new("anthropic", "claude-sonnet-5-5");
            anthropic(request, &model, NEWEST_VERSION)
        },
    },
    Provider {
        // What is asked for by default. The official SDK no longer knows its `temperature`, so it is
        // no judge of it.
        kind: "anthropic-2023-06-01",
        variant: None,
        only: Some(&["system_and_options"]),
        except: &[],
        map: |request| anthropic(request, &fixtures::anthropic_model(), "2023-06-01"),
    },
    Provider {
        kind: "openai-chat",
        variant: None,
        only: None,
        except: &[],
        map: |request| openai(request, &fixtures::openai_model(), &Profile::openai()),
    },
    Provider {
        kind: "openai-chat",
        variant: Some("gpt-6-luna"),
        only: Some(REFUSABLE),
        except: &[],
        map: |request| {
            let model = ModelId::new("openai", "gpt-6-luna");
            openai(request, &model, &Profile::openai())
        },
    },
    Provider {
        // Fields that OpenAI does not have, so its SDK is no judge of them.
        kind: "openai-compatible",
        variant: None,
        only: Some(&[
            "system_and_options",
            "reasoning_effort",
            "tool_choice_only_one",
            "tool_choice_only_two",
            "images_and_documents",
            "results_of_every_kind",
            "reasoning_of_deepseek",
            "reasoning_of_others",
            "long_names_and_foreign_ids",
        ]),
        except: &[],
        map: |request| openai(request, &fixtures::compatible_model(), &Profile::deepseek()),
    },
    Provider {
        kind: "openai-responses",
        variant: None,
        only: None,
        except: &[],
        map: |request| openai_responses(request, &fixtures::openai_model()),
    },
    Provider {
        kind: "openai-responses",
        variant: Some("gpt-6-luna"),
        only: Some(REFUSABLE),
        except: &[],
        map: |request| openai_responses(request, &ModelId::new("openai", "gpt-6-luna")),
    },
    Provider {
        kind: "gemini",
        variant: None,
        only: None,
        except: FIELDS_OF_OTHERS,
        map: |request| gemini(request, &ModelId::new("gemini", "gemini-2.5-flash")),
    },
    Provider {
        kind: "gemini",
        variant: Some("gemini-3.8-flash"),
        only: Some(REFUSABLE),
        except: &[],
        map: |request| gemini(request, &ModelId::new("gemini", "gemini-3.8-flash")),
    },
    Provider {
        kind: "ollama",
        variant: None,
        only: None,
        except: FIELDS_OF_OTHERS,
        map: |request| ollama(request, &ModelId::new("ollama", "qwen3:8b")),
    },
];

fn anthropic(request: &ChatRequest, model: &ModelId, version: &str) -> Result<Mapped, ModelError> {
    let capabilities = switchboard_providers_anthropic::capabilities(&model.name);
    let options = MessagesOptions {
        api_version: version.to_owned(),
        ..MessagesOptions::default()
    };
    let wire = messages::to_wire(
        request,
        model,
        &capabilities,
        &options,
        &ToolSchemas::default(),
    )?;
    mapped(model, &wire.body, wire.tool_choice, wire.warnings)
}

fn openai(request: &ChatRequest, model: &ModelId, profile: &Profile) -> Result<Mapped, ModelError> {
    let capabilities = switchboard_providers_openai::capabilities(&model.name, profile);
    let wire = chat::to_wire(
        request,
        model,
        &capabilities,
        profile,
        &ToolSchemas::default(),
    )?;
    mapped(model, &wire.body, wire.tool_choice, wire.warnings)
}

fn openai_responses(request: &ChatRequest, model: &ModelId) -> Result<Mapped, ModelError> {
    let profile = Profile::openai();
    let capabilities = switchboard_providers_openai::capabilities(&model.name, &profile);
    let options = ResponsesOptions::default();
    let wire = responses::to_wire(
        request,
        model,
        &capabilities,
        &profile,
        &options,
        &ToolSchemas::default(),
    )?;
    mapped(model, &wire.body, wire.tool_choice, wire.warnings)
}

fn gemini(request: &ChatRequest, model: &ModelId) -> Result<Mapped, ModelError> {
    let capabilities = switchboard_providers_gemini::capabilities(&model.name);
    let options = GeminiOptions::default();
    let wire = generate::to_wire(
        request,
        model,
        &capabilities,
        &options,
        &ToolSchemas::default(),
    )?;
    mapped(model, &wire.body, wire.tool_choice, wire.warnings)
}

fn ollama(request: &ChatRequest, model: &ModelId) -> Result<Mapped, ModelError> {
    let capabilities = switchboard_providers_ollama::capabilities(&model.name, false);
    let think = ThinkForm::default();
    let wire = switchboard_providers_ollama::chat::to_wire(
        request,
        model,
        &capabilities,
        think,
        &ToolSchemas::default(),
    )?;
    mapped(model, &wire.body, wire.tool_choice, wire.warnings)
}

fn mapped(
    model: &ModelId,
    body: &impl Serialize,
    outcome: ToolChoiceOutcome,
    warnings: Vec<Warning>,
) -> Result<Mapped, ModelError> {
    let body = serde_json::to_string(body).map_err(|error| {
        let kind = ModelErrorKind::Protocol;
        ModelError::new(&*model.provider, kind, error.to_string())
    })?;
    Ok(Mapped {
        body,
        outcome,
        warnings,
    })
}

impl Provider {
    fn covers(&self, fixture: &str) -> bool {
        let asked = self.only.is_none_or(|only| only.contains(&fixture));
        asked && !self.except.contains(&fixture)
    }

    /// The fixture's name in snapshots.
    fn name_of(&self, fixture: &str) -> String {
        match self.variant {
            None => fixture.to_owned(),
            Some(model) => format!("{fixture}_on_{model}"),
        }
    }
}

/// Compares all of them before it fails, so that one run shows everything that changed.
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
    let fixtures = fixtures::all();
    let mut snapshots = Snapshots::default();
    for Fixture {
        name,
        about,
        request,
    } in &fixtures
    {
        snapshots.json(&format!("domain__{name}"), about, request);
    }
    let kinds: BTreeSet<&str> = PROVIDERS.iter().map(|provider| provider.kind).collect();
    for kind in kinds {
        let mut notes = String::new();
        for provider in PROVIDERS.iter().filter(|provider| provider.kind == kind) {
            let covered = fixtures.iter().filter(|it| provider.covers(it.name));
            for fixture in covered {
                let name = provider.name_of(fixture.name);
                let result = (provider.map)(&fixture.request);
                note(&mut notes, &name, &result).unwrap();
                if let Ok(Mapped { body, .. }) = result {
                    let body: Value = serde_json::from_str(&body).unwrap();
                    let name = format!("request__{kind}__{name}");
                    snapshots.json(&name, fixture.about, &body);
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
    result: &Result<Mapped, ModelError>,
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
    let fixtures = fixtures::all();
    let mut columns = BTreeSet::new();
    for provider in PROVIDERS {
        assert!(columns.insert((provider.kind, provider.variant)));
        for name in provider.only.unwrap_or_default() {
            assert!(
                fixtures.iter().any(|it| it.name == *name),
                "there is no fixture {name}"
            );
        }
    }
}

/// Thirty conversations at least are seen on every wire.
#[test]
fn every_wire_has_enough_conversations() {
    let fixtures = fixtures::all();
    assert_eq!(fixtures.len(), 39);
    let main = PROVIDERS
        .iter()
        .filter(|it| it.variant.is_none() && it.only.is_none());
    let mut wires = BTreeSet::new();
    for provider in main {
        wires.insert(provider.kind);
        let covered = fixtures.iter().filter(|it| provider.covers(it.name));
        let mapped = covered.filter(|it| (provider.map)(&it.request).is_ok());
        assert!(mapped.count() >= 37, "{}", provider.kind);
    }
    let expected = [
        "anthropic",
        "gemini",
        "ollama",
        "openai-chat",
        "openai-responses",
    ];
    assert!(wires.iter().eq(expected.iter()), "{wires:?}");
}

/// Prompt caches need the same bytes again.
#[test]
fn the_same_request_makes_the_same_bytes() {
    for provider in PROVIDERS {
        for fixture in fixtures::all() {
            let first = (provider.map)(&fixture.request);
            let second = (provider.map)(&fixture.request.clone());
            let (Ok(first), Ok(second)) = (first, second) else {
                continue;
            };
            let name = provider.name_of(fixture.name);
            assert_eq!(first.body, second.body, "{} {name}", provider.kind);
        }
    }
}

/// Prompt caches also need a longer history to begin as the shorter one did.
#[test]
fn a_step_only_adds_to_the_conversation() {
    let fixtures = fixtures::all();
    let fixture = fixtures
        .iter()
        .find(|it| it.name == "several_turns")
        .unwrap();
    let steps = 1..=fixture.request.messages.len();
    let is_asked = |end: &usize| {
        let last = fixture.request.messages[end - 1].role;
        matches!(last, Role::User | Role::Tool)
    };
    for provider in PROVIDERS {
        let mut before: Vec<Value> = Vec::new();
        for end in steps.clone().filter(is_asked) {
            let mut request = fixture.request.clone();
            request.messages.truncate(end);
            let mapped = (provider.map)(&request).unwrap();
            let body: Value = serde_json::from_str(&mapped.body).unwrap();
            // The name of the list differs from wire to wire.
            let lists = ["messages", "input", "contents"];
            let messages = lists.iter().find_map(|name| body[name].as_array()).unwrap();
            assert!(
                messages.len() > before.len() && messages.starts_with(&before),
                "{}, {end} messages: {messages:#?}",
                provider.kind
            );
            before.clone_from(messages);
        }
    }
}

/// Whatever is asked for beside the conversation, it is done, or the request says what is not. A
/// choice that is not done as asked is told twice: as the outcome and as a warning.
#[test]
fn every_choice_and_effort_is_mapped_and_a_relaxed_one_is_told() {
    let mut relaxed = 0;
    for provider in PROVIDERS {
        for fixture in fixtures::all() {
            for request in with_every_choice_and_effort(&fixture.request) {
                let asked = (&request.tool_choice, request.reasoning);
                let name = provider.name_of(fixture.name);
                let mapped = match (provider.map)(&request) {
                    Ok(mapped) => mapped,
                    // Told at once, and nothing is sent.
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
