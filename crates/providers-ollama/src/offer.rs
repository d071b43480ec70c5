//! How tools are offered to a model: as such, or in words.

use std::borrow::Cow;

use switchboard_domain::{ChatRequest, ModelCapabilities, ModelError};
use switchboard_providers_common::{
    text_tool_calls::prompted::{PromptedTools, with_history_as_text},
    text_tool_calls::{Recovery, RecoveryForms},
};

use crate::chat::{checked, is_held};

/// A request as a model gets it.
#[derive(Debug)]
pub(crate) struct Offer<'a> {
    /// What is mapped.
    pub(crate) request: Cow<'a, ChatRequest>,
    /// What the answer's text is read with.
    pub(crate) recovery: Recovery,
}

impl<'a> Offer<'a> {
    /// Tools as the wire has them. A call that the model writes in one of `forms` is one all the same.
    pub(crate) fn native(request: &'a ChatRequest, forms: RecoveryForms) -> Self {
        Self {
            request: Cow::Borrowed(request),
            recovery: Recovery::of(request, forms),
        }
    }

    /// Tools in words: described in the instructions, their calls and results as text. Where an answer
    /// can be held to a call by `format`, and needs to be, only the history is text: the mapping tells
    /// of the tools and makes the form.
    ///
    /// `own_stop` are the texts at which the model stops by itself, if they are known. A `stop` in a
    /// request replaces them (ollama#3629), and a model without them may write on for ever: so one of
    /// ours goes only with them, or with those of a caller who has replaced them already.
    ///
    /// Fails as the mapping does when the tools or the choice among them make no sense.
    pub(crate) fn in_words(
        request: &ChatRequest,
        provider: &str,
        capabilities: &ModelCapabilities,
        own_stop: Option<&[String]>,
    ) -> Result<Self, ModelError> {
        checked(request, provider)?;
        if is_held(request, capabilities) {
            return Ok(Self {
                request: Cow::Owned(with_history_as_text(request)),
                recovery: Recovery::of(request, RecoveryForms::ALL),
            });
        }
        let prepared = PromptedTools { constrained: false }.prepare(request);
        let (mut told, recovery) = (prepared.request, prepared.recovery);
        let stop = &mut told.sampling.stop;
        if request.sampling.stop.is_empty() && !stop.is_empty() {
            match own_stop {
                Some(own) => stop.extend(own.iter().cloned()),
                None => stop.clear(),
            }
        }
        Ok(Self {
            request: Cow::Owned(told),
            recovery,
        })
    }
}
