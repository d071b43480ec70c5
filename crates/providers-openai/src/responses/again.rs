//! A request whose reasoning was refused, made again without it.

use std::sync::Arc;

use switchboard_domain::{
    ChatRequest, Message, ModelError, ModelErrorKind, Part, Warning, WarningKind,
};

/// Whether the API refused reasoning of earlier answers, or an item that lacks its own.
///
/// Encrypted reasoning is tied to the organization and the deployment that it came from, so that a
/// conversation that goes on under another key meets "The encrypted content … could not be verified"
/// (`invalid_encrypted_content`; openai/codex#8145, BerriAI/litellm#22651).
pub(crate) fn refuses_reasoning(error: &ModelError) -> bool {
    let message = error.message().to_ascii_lowercase();
    matches!(error.kind, ModelErrorKind::InvalidRequest { .. })
        && (message.contains("encrypted content") || message.contains("without its required"))
}

/// The request without reasoning, and the warning that says so; `None` if there is none in it.
pub(crate) fn without_reasoning(request: &ChatRequest) -> Option<(ChatRequest, Warning)> {
    let is_reasoning = |part: &&Part| matches!(part, Part::Reasoning(_));
    let mut count = 0;
    let messages = request.messages.iter().map(|message| {
        let of_message = message.parts.iter().filter(is_reasoning).count();
        count += of_message;
        if of_message == 0 {
            return Arc::clone(message);
        }
        let rest = message.parts.iter().filter(|part| !is_reasoning(part));
        Arc::new(Message::new(message.role, rest.cloned()))
    });
    let request = ChatRequest {
        messages: messages.collect(),
        ..request.clone()
    };
    let message = format!(
        "{count} reasoning part(s) left out: the provider refused them, and was asked again"
    );
    (count > 0).then(|| (request, Warning::new(WarningKind::PartDropped, message)))
}
