//! Decodes arbitrary bytes as a streamed answer. [`streams::check`] lists the invariants.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

use switchboard_domain::ToolChoiceOutcome;
use switchboard_fuzz::streams::{self, Wire};
use switchboard_providers_common::decode_sse;
use switchboard_providers_gemini::{
    SchemaForm,
    generate::{GenerateDecoder, LocalIds, ToolMapping, events_from_body},
};

/// Tool mapping of a request.
static DECLARED: LazyLock<ToolMapping> =
    LazyLock::new(|| ToolMapping::of(&streams::request(), SchemaForm::OpenApi));

const WIRE: Wire = Wire {
    stream: |body| decode_sse("gemini", body, decoder()),
    whole: |body| events_from_body(decoder(), body),
};

fn decoder() -> GenerateDecoder {
    let native = ToolChoiceOutcome::Native;
    GenerateDecoder::new(
        streams::model("gemini"),
        native,
        Vec::new(),
        LocalIds::default(),
    )
    .with_tool_mapping(DECLARED.clone())
}

fuzz_target!(|input: &[u8]| streams::check(&WIRE, input));
