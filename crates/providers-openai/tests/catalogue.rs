//! Tests that capabilities and requests agree with the catalog, for every model in the catalog.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, Document, Media, Message, ModelCapabilities, ModelError, ModelErrorKind, ModelId,
    Part, ReasoningEffort, ResponseFormat, Role, ToolChoice, ToolChoiceOutcome, ToolDefinition,
};
use switchboard_providers_common::catalog::{self, ModelEntry};
use switchboard_providers_common::schema::ToolSchemas;
use switchboard_providers_openai::{
    Profile, capabilities, chat,
    responses::{self, ResponsesOptions},
};

/// A model of the catalog, with the profile of its server and one API of that server.
struct Case {
    entry: ModelEntry,
    profile: Profile,
    over_responses: bool,
}

/// Request body, outcome of the tool choice, and number of warnings.
type Sent = (Value, ToolChoiceOutcome, usize);

impl Case {
    fn all() -> Vec<Self> {
        let profiles = Profile::NAMES
            .iter()
            .filter_map(|name| Profile::from_name(name));
        let with_models = profiles.flat_map(|profile| {
            let models = catalog::list_models(&profile.name);
            let models = models.map(|entry| (profile.clone(), entry));
            models.collect::<Vec<_>>()
        });
        with_models
            .flat_map(|(profile, entry)| {
                [false, true].map(|over_responses| Self {
                    entry: entry.clone(),
                    profile: profile.clone(),
                    over_responses,
                })
            })
            .collect()
    }

    fn name(&self) -> String {
        let wire = if self.over_responses {
            "responses"
        } else {
            "chat"
        };
        format!("{} ({wire})", self.entry.model_id())
    }

    fn send(&self, request: &ChatRequest) -> Result<Sent, ModelError> {
        let model = ModelId::new(self.profile.name.clone(), self.entry.name);
        let known = capabilities(self.entry.name, &self.profile);
        if self.over_responses {
            let options = ResponsesOptions::default();
            let wire = responses::to_wire_request(
                request,
                &model,
                &known,
                &self.profile,
                &options,
                &ToolSchemas::default(),
            )?;
            let body = serde_json::to_value(&wire.body).unwrap();
            return Ok((body, wire.tool_choice, wire.warnings.len()));
        }
        let wire = chat::to_wire_request(
            request,
            &model,
            &known,
            &self.profile,
            &ToolSchemas::default(),
        )?;
        let body = serde_json::to_value(&wire.body).unwrap();
        Ok((body, wire.tool_choice, wire.warnings.len()))
    }

    fn sent(&self, request: &ChatRequest) -> Sent {
        let sent = self.send(request);
        sent.unwrap_or_else(|error| panic!("{}: {error}", self.name()))
    }

    /// Returns the types of the parts of a user message with `part`, and the number of warnings.
    fn shown(&self, part: Part) -> (Vec<String>, usize) {
        let message = Message::new(Role::User, [Part::text("Look:"), part]);
        let (body, _, warnings) = self.sent(&ChatRequest::new([message]));
        let list = if self.over_responses {
            "input"
        } else {
            "messages"
        };
        let parts = body[list][0]["content"].as_array().cloned();
        let types = parts.unwrap_or_default().into_iter();
        let types = types.map(|it| it["type"].as_str().unwrap().to_owned());
        (types.collect(), warnings)
    }
}

fn question() -> ChatRequest {
    ChatRequest::new([Message::user("hi")])
}

fn with_tools(choice: ToolChoice) -> ChatRequest {
    let schema = json!({"type": "object", "properties": {}});
    question()
        .with_tools([ToolDefinition::new("f", "", schema)])
        .with_tool_choice(choice)
}

#[test]
fn the_catalogue_has_models_with_and_without_each_capability() {
    let cases = Case::all();
    assert!(cases.len() > 100, "{}", cases.len());
    // The tests below need models with and models without each capability.
    let told = |field: fn(&ModelCapabilities) -> Option<bool>, said: bool| {
        let mut known = cases.iter().map(|case| &case.entry.capabilities);
        known.any(|known| field(known) == Some(said))
    };
    for said in [true, false] {
        assert!(told(|it| it.forced_tool_choice, said), "forced: {said}");
        assert!(told(|it| it.parallel_tools, said), "parallel: {said}");
        assert!(told(|it| it.structured_output, said), "structured: {said}");
        assert!(told(|it| it.reasoning, said), "reasoning: {said}");
        assert!(told(|it| it.sampling, said), "sampling: {said}");
        assert!(told(|it| it.images, said), "images: {said}");
        assert!(told(|it| it.documents, said), "documents: {said}");
        assert!(told(|it| it.audio, said), "audio: {said}");
        assert!(told(|it| it.tools, said), "tools: {said}");
    }
    for provider in ["openai", "deepseek", "groq", "mistral", "xai"] {
        let mut cases = cases.iter();
        assert!(
            cases.any(|case| case.entry.provider == provider),
            "{provider}"
        );
    }
}

#[test]
fn capabilities_do_not_contradict_the_catalogue() {
    for case in Case::all() {
        let said = capabilities(case.entry.name, &case.profile);
        let joined = catalog::join_capabilities(&case.entry.capabilities, &said);
        assert_eq!(joined, said, "{}", case.name());
    }
    // A deployment may have the name of another model, so the name proves nothing.
    let nameless = ModelCapabilities::default();
    assert_eq!(capabilities("gpt-4o", &Profile::azure()), nameless);
}

#[test]
fn tools_and_choices_are_sent_unless_the_catalogue_excludes_them() {
    for case in Case::all() {
        let (name, known) = (case.name(), &case.entry.capabilities);
        let required = with_tools(ToolChoice::Required);
        if known.tools == Some(false) {
            let error = case.send(&required).unwrap_err();
            assert!(
                matches!(error.kind, ModelErrorKind::Unsupported { .. }),
                "{name}"
            );
            continue;
        }
        let (body, outcome, warnings) = case.sent(&required);
        if known.forced_tool_choice == Some(false) {
            assert_eq!(body["tool_choice"], "auto", "{name}");
            assert!(
                matches!(outcome, ToolChoiceOutcome::Relaxed { .. }),
                "{name}"
            );
            assert!(warnings > 0, "{name}");
        } else {
            assert_eq!(body["tool_choice"], "required", "{name}");
            assert!(
                !matches!(outcome, ToolChoiceOutcome::Relaxed { .. }),
                "{name}"
            );
        }
    }
}

#[test]
fn parallel_calls_are_sent_unless_the_catalogue_excludes_them() {
    for case in Case::all() {
        let (name, known) = (case.name(), &case.entry.capabilities);
        if known.tools == Some(false) {
            continue;
        }
        for wanted in [false, true] {
            let request = ChatRequest {
                parallel_tool_use: Some(wanted),
                ..with_tools(ToolChoice::Auto)
            };
            let plain = case.sent(&with_tools(ToolChoice::Auto)).2;
            let (body, _, warnings) = case.sent(&request);
            let field = body.get("parallel_tool_calls");
            match known.parallel_tools {
                Some(false) => {
                    assert_eq!(field, None, "{name}");
                    assert_eq!(warnings - plain, usize::from(wanted), "{name}");
                }
                Some(true) => assert_eq!(field, Some(&json!(wanted)), "{name}"),
                // The catalog has no value, so the rules of the model series apply.
                None => {
                    let said = capabilities(case.entry.name, &case.profile).parallel_tools;
                    assert_eq!(field.is_none(), said == Some(false), "{name}");
                }
            }
        }
    }
}

#[test]
fn answer_schemas_are_sent_unless_the_catalogue_excludes_them() {
    for case in Case::all() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let request = ChatRequest {
            response_format: ResponseFormat::JsonSchema {
                name: "n".into(),
                schema,
            },
            ..question()
        };
        let sent = case.send(&request);
        if case.entry.capabilities.structured_output == Some(false) {
            let error = sent.unwrap_err();
            assert!(
                matches!(error.kind, ModelErrorKind::Unsupported { .. }),
                "{}",
                case.name()
            );
        } else {
            let (body, ..) = sent.unwrap_or_else(|error| panic!("{}: {error}", case.name()));
            let field = if case.over_responses {
                "text"
            } else {
                "response_format"
            };
            assert!(body.get(field).is_some(), "{}", case.name());
        }
    }
}

#[test]
fn reasoning_and_sampling_are_sent_unless_the_catalogue_excludes_them() {
    for case in Case::all() {
        let (name, known) = (case.name(), &case.entry.capabilities);
        let mut request = question();
        request.reasoning = Some(ReasoningEffort::High);
        let (body, _, warnings) = case.sent(&request);
        let effort = if case.over_responses {
            body["reasoning"].get("effort")
        } else {
            body.get("reasoning_effort")
        };
        if known.reasoning == Some(false) {
            assert!(effort.is_none() && warnings > 0, "{name}");
        } else {
            assert_eq!(effort, Some(&json!("high")), "{name}");
        }
        let mut request = question();
        request.sampling.temperature = Some(0.2);
        let (body, _, warnings) = case.sent(&request);
        let is_sent = body.get("temperature").is_some();
        assert_eq!(is_sent, warnings == 0, "{name}");
        assert!(!(is_sent && known.sampling == Some(false)), "{name}");
        assert!(is_sent || known.sampling != Some(true), "{name}");
    }
}

#[test]
fn media_are_sent_unless_the_catalogue_excludes_them() {
    for case in Case::all() {
        let (name, known) = (case.name(), &case.entry.capabilities);
        let pdf = Media::from_base64("application/pdf", "AAAA");
        let document = Part::Document(Document {
            media: pdf,
            title: None,
        });
        let image = Part::Image(Media::from_base64("image/png", "AAAA"));
        let audio = Part::Audio(Media::from_base64("audio/wav", "AAAA"));
        // The Responses API does not accept audio.
        let hears = if case.over_responses {
            Some(false)
        } else {
            known.audio
        };
        for (what, part, can) in [
            ("image", image, known.images),
            ("file", document, known.documents),
            ("audio", audio, hears),
        ] {
            let said = capabilities(case.entry.name, &case.profile);
            let can = can.or(match what {
                "image" => said.images,
                "file" => said.documents,
                _ => said.audio,
            });
            let (types, warnings) = case.shown(part);
            let as_media = types.iter().any(|it| it.contains(what));
            assert_eq!(as_media, can != Some(false), "{name}: {what}");
            assert_eq!(warnings > 0, can == Some(false), "{name}: {what}");
        }
    }
}
