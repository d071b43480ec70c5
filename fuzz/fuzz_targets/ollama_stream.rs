//! Decodes arbitrary bytes as a streamed answer. [`streams::check`] lists the invariants.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_domain::ToolChoiceOutcome;
use switchboard_fuzz::streams::{self, Wire};
use switchboard_providers_common::decode_ndjson;
use switchboard_providers_ollama::chat::{ChatDecoder, ToolUseIds, events_from_body};

const WIRE: Wire = Wire {
    stream: |body| decode_ndjson("ollama", body, decoder()),
    whole: |body| events_from_body(decoder(), body),
};

fn decoder() -> ChatDecoder {
    let native = ToolChoiceOutcome::Native;
    ChatDecoder::new(
        streams::model("ollama"),
        native,
        Vec::new(),
        ToolUseIds::default(),
    )
}

fuzz_target!(|input: &[u8]| streams::check(&WIRE, input));
