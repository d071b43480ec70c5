//! Every stored answer of this wire, cut at every byte.

use switchboard_domain::{ModelId, ToolChoiceOutcome};
use switchboard_providers_common::decode_sse;
use switchboard_providers_gemini::generate::{GenerateDecoder, LocalIds};
use switchboard_testkit::{
    replay::{Arrival, Body, Cutting, Delivery, break_off, play, replay},
    transcripts::{self, Form},
};

fn decode(body: Body) -> switchboard_domain::ModelStream {
    let model = ModelId::new("gemini", "gemini-3.8-flash");
    let (native, ids) = (ToolChoiceOutcome::Native, LocalIds::default());
    decode_sse(
        "gemini",
        body,
        GenerateDecoder::new(model, native, Vec::new(), ids),
    )
}

#[test]
fn case_07_events_do_not_depend_on_how_the_bytes_came_nor_on_the_ends_of_lines() {
    let all = transcripts::all().unwrap();
    let streams = all
        .iter()
        .filter(|it| it.wire == "gemini" && it.form == Form::Sse);
    let mut count = 0;
    for stored in streams {
        count += 1;
        let name = &stored.stem;
        let whole = replay(&stored.bytes, decode).unwrap_or_else(|error| panic!("{name}: {error}"));
        let text = std::str::from_utf8(&stored.bytes).unwrap();
        for end in ["\r\n", "\r"] {
            let delivery = Delivery {
                cutting: Cutting::Bytes,
                arrival: Arrival::Later,
            };
            let changed = text.replace('\n', end);
            let again = play(changed.as_bytes(), delivery, decode).unwrap();
            assert_eq!(again, whole, "{name} with {end:?}");
        }
    }
    assert!(count >= 14, "{count}");
}

#[test]
fn case_15_the_beginning_of_an_answer_is_never_taken_for_one() {
    for stored in transcripts::all().unwrap() {
        if stored.wire == "gemini" && stored.form == Form::Sse {
            let name = &stored.stem;
            break_off(&stored.bytes, decode).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
