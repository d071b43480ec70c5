//! Long answers of every wire: stored transcripts in which one frame is repeated.

use std::{error::Error, hint::black_box, iter::repeat_n};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use switchboard_domain::{ModelError, ModelId, ModelStream, ToolChoiceOutcome, Warning};
use switchboard_providers_anthropic::messages::{MessagesDecoder, ToolUseIds};
use switchboard_providers_common::{ByteStream, WireDecoder, decode_ndjson, decode_sse};
use switchboard_providers_gemini::generate::GenerateDecoder;
use switchboard_providers_ollama::chat::ChatDecoder as OllamaDecoder;
use switchboard_providers_openai::{chat::ChatDecoder, responses::ResponsesDecoder};
use switchboard_testkit::transcripts::{self, Form};

/// Size of the pieces in which a body arrives, as in one network packet.
const PACKET_BYTES: usize = 1_400;

/// Number of copies of the repeated frame.
const COPIES: usize = 400;

/// An answer and its decoder.
pub(crate) struct Answer {
    /// The name of a folder of the transcripts.
    pub(crate) wire: &'static str,
    /// The name of the transcript.
    pub(crate) about: &'static str,
    pieces: Vec<Bytes>,
    /// The JSON of each frame.
    payloads: Vec<String>,
    decode: fn(ByteStream) -> ModelStream,
}

impl Answer {
    /// Reads a transcript and repeats its last frame that contains `repeated`.
    fn read_transcript(
        wire: &'static str,
        about: &'static str,
        repeated: &str,
        decode: fn(ByteStream) -> ModelStream,
    ) -> Result<Self, Box<dyn Error>> {
        let (end, extension) = match wire {
            "ollama" => ("\n", "ndjson"),
            _ => ("\n\n", "sse"),
        };
        let transcript = transcripts::read(&format!("{wire}/{about}.{extension}"))?;
        let text = String::from_utf8(transcript.bytes)?;
        let frames: Vec<&str> = text.split_inclusive(end).collect();
        let place = frames.iter().rposition(|frame| frame.contains(repeated));
        let place = place.ok_or_else(|| format!("{wire}/{about} has no frame with {repeated}"))?;
        let copies = repeat_n(frames[place], COPIES - 1);
        let frames: Vec<&str> = [
            &frames[..place],
            &copies.collect::<Vec<_>>(),
            &frames[place..],
        ]
        .concat();
        let payloads = frames.iter().filter_map(|frame| match transcript.form {
            Form::Sse => Some(frame.split_once("data: ")?.1.trim_end()),
            Form::Ndjson | Form::Json => Some(frame.trim_end()),
        });
        let body = Bytes::from(frames.concat());
        let starts = (0..body.len()).step_by(PACKET_BYTES);
        let pieces = starts.map(|at| body.slice(at..body.len().min(at + PACKET_BYTES)));
        Ok(Self {
            wire,
            about,
            payloads: payloads
                .filter(|payload| payload.starts_with('{'))
                .map(str::to_owned)
                .collect(),
            pieces: pieces.collect(),
            decode,
        })
    }

    /// Returns the size of the body in bytes.
    pub(crate) fn size(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    pub(crate) fn payloads(&self) -> &[String] {
        &self.payloads
    }

    /// Fails unless there is about one event for each packet. Texts that arrive together are one
    /// event.
    pub(crate) fn check(&self) -> Result<(), Box<dyn Error>> {
        let (events, packets) = (self.read()?, self.pieces.len());
        if events < packets {
            let (wire, about) = (self.wire, self.about);
            return Err(format!("{wire}, {about}: {events} events of {packets} packets").into());
        }
        Ok(())
    }

    /// Decodes the body and returns the number of events.
    pub(crate) fn read(&self) -> Result<usize, ModelError> {
        let pieces: Vec<Result<Bytes, ModelError>> = self.pieces.iter().cloned().map(Ok).collect();
        let mut events = (self.decode)(Box::pin(stream::iter(pieces)));
        let mut count = 0;
        // All pieces are available.
        while let Some(Some(event)) = events.next().now_or_never() {
            black_box(event?);
            count += 1;
        }
        Ok(count)
    }
}

fn decoder<D>(new: fn(ModelId, ToolChoiceOutcome, Vec<Warning>, ToolUseIds) -> D) -> D {
    let model = ModelId::new("bench", "model");
    let ids = ToolUseIds::default();
    new(model, ToolChoiceOutcome::Native, Vec::new(), ids)
}

fn sse(body: ByteStream, decoder: impl WireDecoder + 'static) -> ModelStream {
    decode_sse("bench", body, decoder)
}

/// Returns a text and a tool call of every wire.
pub(crate) fn all() -> Result<Vec<Answer>, Box<dyn Error>> {
    let anthropic = |body| sse(body, decoder(MessagesDecoder::new));
    let chat = |body| sse(body, decoder(ChatDecoder::new));
    let responses = |body| sse(body, decoder(ResponsesDecoder::new));
    let gemini = |body| sse(body, decoder(GenerateDecoder::new));
    let ollama = |body| decode_ndjson("bench", body, decoder(OllamaDecoder::new));
    let call = "text-then-call";
    [
        Answer::read_transcript("anthropic", "text", "text_delta", anthropic),
        Answer::read_transcript("anthropic", call, "input_json_delta", anthropic),
        Answer::read_transcript("openai-chat", "text", r#""delta":{"content":"#, chat),
        Answer::read_transcript(
            "openai-chat",
            "two-calls",
            r#""function":{"arguments":"#,
            chat,
        ),
        Answer::read_transcript("openai-responses", "text", "output_text.delta", responses),
        Answer::read_transcript("openai-responses", call, "arguments.delta", responses),
        Answer::read_transcript("gemini", "text", r#""role":"model"},"index""#, gemini),
        Answer::read_transcript("ollama", "text", r#""done":false"#, ollama),
    ]
    .into_iter()
    .collect()
}
