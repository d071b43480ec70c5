//! Decodes every stored answer, cut at every byte.
//!
//! The snapshot `replay__events__<wire>__<stem>` has one event per line, the error if there is one,
//! and the response. A new wire needs one entry in [`WIRES`].

mod stored;
mod wires;

use std::{
    collections::BTreeSet,
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use switchboard_domain::{ChatResponse, ModelEvent, ModelId, Part, ResponseAccumulator, ToolInput};
use switchboard_testkit::{
    fixtures,
    replay::{Arrival, Cutting, Delivery, Failure, Replayed, break_off, play, replay},
    transcripts::{self, Form, Transcript},
};

use crate::wires::{Target, WIRES, Wire};

fn target(wire: Wire) -> Target {
    let model = match wire {
        Wire::Chat | Wire::Responses => fixtures::openai_model(),
        Wire::Gemini => ModelId::new("gemini", "gemini-3.8-flash"),
        Wire::Anthropic | Wire::Ollama => wire.model(),
    };
    Target::new(wire, model)
}

/// Returns the target that decodes a transcript.
fn target_of(transcript: &Transcript) -> Result<Target, String> {
    let Transcript { wire, stem, .. } = transcript;
    let found = WIRES.into_iter().find(|it| it.name() == wire);
    let unknown = || format!("nothing reads transcripts of {wire}, such as {stem}");
    found.map(target).ok_or_else(unknown)
}

/// A delivery that also cuts each line end of two bytes.
const BYTE_BY_BYTE: Delivery = Delivery {
    cutting: Cutting::Bytes,
    arrival: Arrival::Later,
};

/// The events of a whole answer, and its response or error.
type Whole = (Vec<ModelEvent>, Result<ChatResponse, Failure>);

/// Reads a whole body and assembles the response from its events.
fn read_whole(target: &Target, body: &[u8]) -> Result<Whole, Box<dyn Error>> {
    match target.decode_whole(std::str::from_utf8(body)?) {
        Ok(events) => {
            let mut answer = ResponseAccumulator::default();
            for event in &events {
                answer.push(event)?;
            }
            let response = answer.finish()?;
            Ok((events, Ok(response)))
        }
        Err(error) => Ok((Vec::new(), Err(Failure::from(&error)))),
    }
}

/// Decodes a transcript in every delivery and returns the text of its snapshot. `twin` is the same
/// answer in the other form.
fn check(transcript: &Transcript, twin: Option<&Transcript>) -> Result<String, Box<dyn Error>> {
    let target = target_of(transcript)?;
    let decode = |body| target.decode_plain(body);
    if transcript.form == Form::Json {
        let (events, outcome) = read_whole(&target, &transcript.bytes)?;
        return render(&events, &outcome);
    }
    let replayed = replay(&transcript.bytes, decode)?;
    let outcome = outcome(&replayed);
    break_off(&transcript.bytes, decode)?;
    // A proxy may change the line ends.
    let text = std::str::from_utf8(&transcript.bytes)?;
    for end in ["\r\n", "\r"] {
        let changed = text.replace('\n', end);
        if transcript.form == Form::Sse {
            let again = play(changed.as_bytes(), BYTE_BY_BYTE, decode)?;
            if again != replayed {
                return Err(format!("with {end:?} at the ends of lines it is {again:#?}").into());
            }
        }
    }
    if let Some(twin) = twin {
        let (_, whole) = read_whole(&target, &twin.bytes)?;
        let same = match (&whole, &outcome) {
            (Ok(whole), Ok(streamed)) => comparable(whole) == comparable(streamed),
            (Err(whole), Err(streamed)) => whole.kind == streamed.kind,
            _ => false,
        };
        if !same {
            let message = format!("whole it is {whole:#?}, streamed it is {outcome:#?}");
            return Err(message.into());
        }
    }
    let mut shown = render(&replayed.events, &outcome)?;
    if replayed.failure.is_some() {
        shown.push_str("\nuntil then: ");
        shown.push_str(&serde_json::to_string_pretty(&replayed.response)?);
    }
    Ok(shown)
}

/// Removes the text of malformed input, which differs between the forms: a stream has the beginning
/// of the input, and a whole body of Anthropic has `{}`.
fn comparable(response: &ChatResponse) -> ChatResponse {
    let mut response = response.clone();
    for part in &mut response.message.parts {
        if let Part::ToolUse(tool_use) = part
            && let ToolInput::Malformed { raw, .. } = &mut tool_use.input
        {
            raw.clear();
        }
    }
    response
}

fn outcome(replayed: &Replayed) -> Result<ChatResponse, Failure> {
    match &replayed.failure {
        None => Ok(replayed.response.clone()),
        Some(failure) => Err(failure.clone()),
    }
}

fn render(
    events: &[ModelEvent],
    outcome: &Result<ChatResponse, Failure>,
) -> Result<String, Box<dyn Error>> {
    let mut lines = events
        .iter()
        .map(serde_json::to_string)
        .collect::<Result<Vec<_>, _>>()?;
    lines.push(match outcome {
        Ok(response) => format!("answer: {}", serde_json::to_string_pretty(response)?),
        Err(Failure { kind, message }) => format!("error: {kind}: {message}"),
    });
    Ok(lines.join("\n"))
}

/// Returns each stored answer with the same answer in the other form, if there is one.
fn with_twins(transcripts: &[Transcript]) -> Vec<(&Transcript, Option<&Transcript>)> {
    let twin = |of: &Transcript, json: bool| {
        transcripts.iter().find(|it| {
            (it.form == Form::Json) == json && (&it.wire, &it.stem) == (&of.wire, &of.stem)
        })
    };
    let streams = transcripts.iter().filter(|it| it.form != Form::Json);
    let alone = transcripts
        .iter()
        .filter(|it| it.form == Form::Json && twin(it, false).is_none());
    streams
        .map(|it| (it, twin(it, true)))
        .chain(alone.map(|it| (it, None)))
        .collect()
}

#[test]
fn every_transcript_gives_the_same_response_for_every_delivery() {
    let transcripts = transcripts::all().unwrap();
    for wire in WIRES {
        let mut names = transcripts.iter().map(|it| it.wire.as_str());
        assert!(names.any(|name| name == wire.name()), "{wire:?} has none");
    }
    let pairs = with_twins(&transcripts);
    let threads = thread::available_parallelism().map_or(1, Into::into);
    let mut checked: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let mine = pairs.iter().skip(worker).step_by(threads);
                scope.spawn(move || {
                    mine.map(|(transcript, twin)| {
                        let name = format!("events__{}__{}", transcript.wire, transcript.stem);
                        let outcome = check(transcript, *twin);
                        (name, outcome.map_err(|error| error.to_string()))
                    })
                    .collect::<Vec<_>>()
                })
            })
            .collect();
        let results = workers.into_iter();
        results.flat_map(|worker| worker.join().unwrap()).collect()
    });
    checked.sort();
    let mut wrong = Vec::new();
    let mut expected = BTreeSet::new();
    for (name, outcome) in &checked {
        expected.insert(format!("replay__{name}"));
        let shown = match outcome {
            Ok(shown) => shown,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let mut settings = insta::Settings::clone_current();
        settings.set_omit_expression(true);
        let assert = || settings.bind(|| insta::assert_snapshot!(name.as_str(), shown));
        if catch_unwind(AssertUnwindSafe(assert)).is_err() {
            wrong.push(format!("{name}: not as stored"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let stored = stored::snapshots("replay__").unwrap();
    let stale: Vec<_> = stored.difference(&expected).collect();
    assert!(stale.is_empty(), "no transcript has these: {stale:#?}");
}
