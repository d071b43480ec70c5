//! A wrapper that recovers tool calls from the text of any model.

use std::sync::Arc;

use async_trait::async_trait;
use switchboard_domain::{
    ChatModel, ChatRequest, ModelCapabilities, ModelError, ModelId, ModelStream,
};

use crate::{
    text_tool_calls::prompted::{PromptedTools, has_tools_or_calls},
    text_tool_calls::{CallRecoverySettings, TextCallFormats, recover_tool_calls},
};

/// A [`ChatModel`] that wraps another one and converts the tool calls that the wrapped model writes
/// as text into tool uses.
///
/// Needed for servers that run local models behind a vendor's API, such as llama.cpp. There, a
/// model without a tool template writes its calls as text. The adapters of Chat Completions and
/// Ollama have their own settings for this.
///
/// ```
/// use std::sync::Arc;
///
/// use switchboard_domain::ChatModel;
/// use switchboard_providers_common::{TextCallModel, text_tool_calls::TextCallFormats};
///
/// fn with_text_calls(model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
///     Arc::new(TextCallModel::wrap_model(model, TextCallFormats::ALL))
/// }
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("TextCallModel {{ model: {:?}, forms: {forms:?}, .. }}", model.id())]
pub struct TextCallModel {
    model: Arc<dyn ChatModel>,
    capabilities: ModelCapabilities,
    forms: TextCallFormats,
    by_prompt: bool,
}

impl TextCallModel {
    /// Wraps a model. A tool call that the model writes as text in one of the formats `forms`
    /// becomes a tool use if the tool choice allows the named tool. Other text stays unchanged.
    pub fn wrap_model(model: Arc<dyn ChatModel>, forms: TextCallFormats) -> Self {
        Self {
            capabilities: model.capabilities().clone(),
            model,
            forms,
            by_prompt: false,
        }
    }

    /// Describes tools in the prompt, even if the model supports tools. The calls and results of
    /// the conversation become text. If the model enforces schemas, a required call is enforced.
    #[must_use]
    pub fn with_prompted_tools(mut self) -> Self {
        self.by_prompt = true;
        self.capabilities.tools = Some(true);
        self
    }
}

#[async_trait]
impl ChatModel for TextCallModel {
    fn id(&self) -> &ModelId {
        self.model.id()
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        if self.by_prompt && has_tools_or_calls(request) {
            let constrained = self.capabilities.structured_output == Some(true);
            let prepared = PromptedTools { constrained }.prepare_request(request);
            let stream = self.model.stream(&prepared.request).await?;
            return Ok(recover_tool_calls(stream, prepared.recovery));
        }
        let stream = self.model.stream(request).await?;
        if self.forms.is_empty() {
            return Ok(stream);
        }
        let settings = CallRecoverySettings::for_request(request, self.forms);
        Ok(recover_tool_calls(stream, settings))
    }
}

#[cfg(test)]
#[path = "text_call_model_tests.rs"]
mod tests;
