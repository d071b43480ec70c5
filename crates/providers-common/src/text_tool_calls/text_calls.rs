//! Any model, with tool calls read from its text or tools told to it in words.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use switchboard_domain::{
    ChatModel, ChatRequest, ModelCapabilities, ModelError, ModelId, ModelStream,
};

use crate::{
    text_tool_calls::prompted::{PromptedTools, concerns_tools},
    text_tool_calls::{Recovery, RecoveryForms, recover},
};

/// A model whose tool calls may be text.
///
/// For servers that speak a vendor's wire with a model that does not: llama.cpp answers in
/// Anthropic's and OpenAI's forms, and a model without a tool template writes its calls as text in
/// all of them. The adapters of Chat Completions and Ollama do this by themselves, where their
/// configuration says so.
///
/// ```
/// use std::sync::Arc;
///
/// use switchboard_domain::ChatModel;
/// use switchboard_providers_common::{TextCalls, text_tool_calls::RecoveryForms};
///
/// fn with_text_calls(model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
///     Arc::new(TextCalls::of(model, RecoveryForms::ALL))
/// }
/// ```
#[derive(Clone)]
pub struct TextCalls {
    model: Arc<dyn ChatModel>,
    capabilities: ModelCapabilities,
    forms: RecoveryForms,
    by_prompt: bool,
}

impl TextCalls {
    /// The model, with calls in these forms read as tool uses. Only tools that a request offers are
    /// found; any other text stays as it is.
    pub fn of(model: Arc<dyn ChatModel>, forms: RecoveryForms) -> Self {
        Self {
            capabilities: model.capabilities().clone(),
            model,
            forms,
            by_prompt: false,
        }
    }

    /// The same, with tools told in words whatever the model can do: they are described in its
    /// instructions, and the calls and results of the conversation go to it as text. Where the model
    /// is known to hold to a schema, a call that must be made is held to one.
    #[must_use]
    pub fn telling_in_words(mut self) -> Self {
        self.by_prompt = true;
        self.capabilities.tools = Some(true);
        self
    }
}

#[async_trait]
impl ChatModel for TextCalls {
    fn id(&self) -> &ModelId {
        self.model.id()
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        if self.by_prompt && concerns_tools(request) {
            let constrained = self.capabilities.structured_output == Some(true);
            let prepared = PromptedTools { constrained }.prepare(request);
            let stream = self.model.stream(&prepared.request).await?;
            return Ok(recover(stream, prepared.recovery));
        }
        let stream = self.model.stream(request).await?;
        if self.forms.is_empty() {
            return Ok(stream);
        }
        Ok(recover(stream, Recovery::of(request, self.forms)))
    }
}

impl fmt::Debug for TextCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextCalls")
            .field("model", self.model.id())
            .field("forms", &self.forms)
            .field("by_prompt", &self.by_prompt)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "text_calls_tests.rs"]
mod tests;
