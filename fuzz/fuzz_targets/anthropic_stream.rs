//! Any bytes as a streamed answer of this wire. The laws are those of [`streams::check`].
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_domain::ToolChoiceOutcome;
use switchboard_fuzz::streams::{self, Wire};
use switchboard_providers_anthropic::messages::{LocalIds, MessagesDecoder, events_from_body};
use switchboard_providers_common::decode_sse;

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
        LocalIds::default(),
    )
}

fuzz_target!(|input: &[u8]| streams::check(&WIRE, input));
