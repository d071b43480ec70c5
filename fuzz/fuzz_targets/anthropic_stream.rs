//! Decodes arbitrary bytes as a streamed answer. [`streams::check`] lists the invariants.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

use switchboard_domain::ToolChoiceOutcome;
use switchboard_fuzz::streams::{self, Wire};
use switchboard_providers_anthropic::{
    MessagesOptions, capabilities,
    messages::{MessagesDecoder, ToolMapping, ToolUseIds, events_from_body, to_wire_request},
};
use switchboard_providers_common::decode_sse;
use switchboard_providers_common::schema::ToolSchemas;

/// Tool mapping of a strict request.
static TOOL_MAPPING: LazyLock<ToolMapping> = LazyLock::new(|| {
    let model = streams::model("anthropic");
    let options = MessagesOptions {
        strict_tools: true,
        ..MessagesOptions::default()
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
    stream: |body| decode_sse("anthropic", body, decoder()),
    whole: |body| events_from_body(decoder(), body),
};

fn decoder() -> MessagesDecoder {
    let native = ToolChoiceOutcome::Native;
    MessagesDecoder::new(
        streams::model("anthropic"),
        native,
        Vec::new(),
        ToolUseIds::default(),
    )
    .with_tool_mapping(TOOL_MAPPING.clone())
}

fuzz_target!(|input: &[u8]| streams::check(&WIRE, input));
