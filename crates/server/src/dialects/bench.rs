//! The dialects alone, for the benches of this crate.

use switchboard_orchestration::RunEvent;

use super::{
    ag_ui::AgUiStream,
    openai_chat::OpenAiChatStream,
    response::state::ResponseOptions,
    response::frames::SseFrames,
    anthropic_messages::AnthropicMessagesStream,
    encoder::{EventEncoder, SequencedEncoder},
    ai_sdk::AiSdkStream,
};
use crate::sse;

/// The words in which a run is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The events themselves, numbered.
    Native,
    /// The UI message stream of the Vercel AI SDK.
    Ui,
    /// OpenAI's Chat Completions.
    Chat,
    /// Anthropic's Messages.
    Messages,
    /// AG-UI.
    AgUi,
}

impl Dialect {
    /// Every dialect, and how it is called.
    pub const ALL: [(&str, Self); 5] = [
        ("native", Self::Native),
        ("ui", Self::Ui),
        ("chat", Self::Chat),
        ("messages", Self::Messages),
        ("ag-ui", Self::AgUi),
    ];

    /// Tells a run in one response, each event when it comes; gives the bytes of the frames.
    pub fn told(self, events: &[RunEvent]) -> usize {
        match self {
            Self::Native => {
                // The JSON of an event is made once, whoever reads it.
                let frames = events.iter().map(|event| {
                    let json = serde_json::to_string(event).unwrap_or_default();
                    sse::frame(Some(event.seq), Some("event"), &json).len()
                });
                frames.sum()
            }
            Self::Ui => told(AiSdkStream::new(None), events),
            Self::Chat => told(OpenAiChatStream::new(None, true, ResponseOptions::default()), events),
            Self::Messages => told(AnthropicMessagesStream::new(None, ResponseOptions::default()), events),
            Self::AgUi => told(AgUiStream::new("thread", "run", "thread"), events),
        }
    }
}

fn told(words: impl EventEncoder, events: &[RunEvent]) -> usize {
    let mut projection = SequencedEncoder::new(words);
    let mut out = SseFrames::new();
    let mut bytes = 0;
    for event in events {
        projection.event(event, &mut out);
        bytes += out.take().len();
    }
    bytes
}
