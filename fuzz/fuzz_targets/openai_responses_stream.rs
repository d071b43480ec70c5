//! Decodes arbitrary bytes as a streamed answer. [`streams::check`] lists the invariants.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

use switchboard_domain::ToolChoiceOutcome;
use switchboard_fuzz::streams::{self, Wire};
use switchboard_providers_common::decode_sse;
use switchboard_providers_common::schema::ToolSchemas;
use switchboard_providers_openai::{
    Profile, ToolMapping, capabilities,
    responses::{
        ResponsesDecoder, ResponsesOptions, ToolUseIds, events_from_body, to_wire_request,
    },
};

/// Tool mapping of a strict request.
static TOOL_MAPPING: LazyLock<ToolMapping> = LazyLock::new(|| {
    let (model, request) = (streams::model("openai"), streams::request());
    let mut profile = Profile::openai();
    profile.strict_tools = true;
    let capabilities = capabilities(&model.name, &profile);
    let options = ResponsesOptions::default();
    let wire = to_wire_request(
        &request,
        &model,
        &capabilities,
        &profile,
        &options,
        &ToolSchemas::default(),
    );
    wire.map(|wire| wire.tool_mapping).unwrap_or_default()
});

const WIRE: Wire = Wire {
    stream: |body| decode_sse("openai", body, decoder()),
    whole: |body| events_from_body(decoder(), body),
};

fn decoder() -> ResponsesDecoder {
    let native = ToolChoiceOutcome::Native;
    ResponsesDecoder::new(
        streams::model("openai"),
        native,
        Vec::new(),
        ToolUseIds::default(),
    )
    .with_tool_mapping(TOOL_MAPPING.clone())
}

fuzz_target!(|input: &[u8]| streams::check(&WIRE, input));
