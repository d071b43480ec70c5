//! Decodes arbitrary bytes as a streamed answer. [`streams::check`] lists the invariants.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

use switchboard_domain::ToolChoiceOutcome;
use switchboard_fuzz::streams::{self, Wire};
use switchboard_providers_common::{ToolMapping, decode_sse, schema::ToolSchemas};
use switchboard_providers_gemini::{
    GeminiOptions, SchemaLanguage, capabilities,
    generate::{GenerateDecoder, ToolUseIds, events_from_body, to_wire_request},
};

/// Tool mapping of a request whose schemas have the `OpenAPI` form.
static TOOL_MAPPING: LazyLock<ToolMapping> = LazyLock::new(|| {
    let model = streams::model("gemini");
    let options = GeminiOptions {
        schemas: SchemaLanguage::OpenApi,
        ..GeminiOptions::default()
    };
    let (request, capabilities) = (streams::request(), capabilities(&model.name));
    let wire = to_wire_request(
        &request,
        &model,
        &capabilities,
        &options,
        &ToolSchemas::default(),
    );
    wire.map(|wire| wire.tool_mapping).unwrap_or_default()
});

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
        ToolUseIds::default(),
    )
    .with_tool_mapping(TOOL_MAPPING.clone())
}

fuzz_target!(|input: &[u8]| streams::check(&WIRE, input));
