//! Ways to offer tools to a model: natively or in the prompt.

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
    /// The request to map.
    pub(crate) request: Cow<'a, ChatRequest>,
    /// Parser of tool calls in the answer's text.
    pub(crate) recovery: Recovery,
}

impl<'a> Offer<'a> {
    /// Offers tools natively. A call that the model writes in one of `forms` is also a tool use.
    pub(crate) fn native(request: &'a ChatRequest, forms: RecoveryForms) -> Self {
        Self {
            request: Cow::Borrowed(request),
            recovery: Recovery::of(request, forms),
        }
    }

    /// Offers tools in the prompt: the instructions describe them, and their calls and results are
    /// sent as text. If `format` has to constrain the answer to a call, only the history is
    /// converted: the mapping then describes the tools and creates the form.
    ///
    /// `own_stop` are the model's own stop texts, if known. A `stop` in a request replaces them
    /// (ollama#3629), and a model without them may never stop. The parser's stop text is therefore
    /// sent only together with them, or if the caller has already replaced them.
    ///
    /// Fails like the mapping if the tools or the tool choice are invalid.
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
        let (mut mapped, recovery) = (prepared.request, prepared.recovery);
        let stop = &mut mapped.sampling.stop;
        if request.sampling.stop.is_empty() && !stop.is_empty() {
            match own_stop {
                Some(own) => stop.extend(own.iter().cloned()),
                None => stop.clear(),
            }
        }
        Ok(Self {
            request: Cow::Owned(mapped),
            recovery,
        })
    }
}
