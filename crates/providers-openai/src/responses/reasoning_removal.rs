//! Removes reasoning that the API refused, for a second attempt.

use std::sync::Arc;

use switchboard_domain::{
    ChatRequest, Message, ModelError, ModelErrorKind, Part, Warning, WarningKind,
};

/// Returns whether `error` shows that the API refused the reasoning of earlier answers, or refused
/// an item because its reasoning is missing.
///
/// Encrypted reasoning is bound to an organization and a deployment. With another key the API
/// answers "The encrypted content … could not be verified" (`invalid_encrypted_content`;
/// openai/codex#8145, BerriAI/litellm#22651).
pub(crate) fn is_reasoning_refusal(error: &ModelError) -> bool {
    let message = error.message().to_ascii_lowercase();
    matches!(error.kind, ModelErrorKind::InvalidRequest { .. })
        && (message.contains("encrypted content") || message.contains("without its required"))
}

/// Returns the request without the reasoning of earlier answers, and a warning. Returns `None` if
/// the request has no such reasoning.
pub(crate) fn remove_reasoning(request: &ChatRequest) -> Option<(ChatRequest, Warning)> {
    let is_reasoning = |part: &&Part| matches!(part, Part::Reasoning(_));
    let mut count = 0;
    let messages = request.messages.iter().map(|message| {
        let in_message = message.parts.iter().filter(is_reasoning).count();
        count += in_message;
        if in_message == 0 {
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
        "{count} reasoning part(s) were dropped: the provider refused them in the first attempt"
    );
    (count > 0).then(|| (request, Warning::new(WarningKind::PartDropped, message)))
}
