//! Request types of Responses, which borrow texts, media and schemas from the domain request.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use switchboard_domain::JsonObject;
use switchboard_providers_common::{BodyFields, JoinedText, body_fields::none_if_empty};

use crate::{
    chat::wire::ResponseFormat,
    tools::{provider_tools::DeclaredTools, schema::SentSchema},
    wire::{call_arguments::CallArguments, media::MediaUrl},
};

/// Request body of the Responses API.
#[derive(Debug)]
pub struct Body<'a> {
    pub model: &'a str,
    pub input: Vec<Item<'a>>,
    pub tools: DeclaredTools<'a>,
    pub tool_choice: Option<Value>,
    /// Whether an answer may have several tool calls.
    pub parallel_tool_calls: Option<bool>,
    pub text: Option<TextOptions<'a>>,
    /// The output format in the field of Chat Completions, for servers without `text.format`.
    pub response_format: Option<ResponseFormat<'a>>,
    /// Reasoning effort, and length of the reasoning summary.
    pub reasoning: Option<Reasoning>,
    /// Maximum number of output tokens, including reasoning. At least 16.
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature, from 0.0 to 2.0.
    pub temperature: Option<f64>,
    /// Nucleus sampling limit, from 0.0 to 1.0.
    pub top_p: Option<f64>,
    /// Names of data that the answer contains only on request, such as web search results.
    pub include: Vec<&'static str>,
    /// Whether the provider stores the answer.
    pub store: bool,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Additional fields of the caller. `include`, `text` and `reasoning` are merged with the
    /// fields above. A list `tools` is already part of `tools` above, and `stream` is ignored,
    /// because it decides how the answer is read. All other fields override the fields above.
    pub extra: &'a JsonObject,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = BodyFields::new(serializer, self.extra)?;
        fields.put_field("model", Some(self.model))?;
        fields.put_field("input", Some(&self.input))?;
        fields.put_merged_list("tools", self.tools.non_empty_tools())?;
        fields.put_field("tool_choice", self.tool_choice.as_ref())?;
        fields.put_field("parallel_tool_calls", self.parallel_tool_calls)?;
        fields.put_merged_field("text", self.text.as_ref())?;
        fields.put_field("response_format", self.response_format.as_ref())?;
        fields.put_merged_field("reasoning", self.reasoning.as_ref())?;
        fields.put_field("max_output_tokens", self.max_output_tokens)?;
        fields.put_field("temperature", self.temperature)?;
        fields.put_field("top_p", self.top_p)?;
        fields.put_merged_field("include", none_if_empty(&self.include))?;
        fields.put_field("store", Some(self.store))?;
        fields.end_body(self.stream)
    }
}

/// One input item of the conversation.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Item<'a> {
    /// A message without a `type`: only its role and content.
    Message {
        role: Role,
        content: Content<'a>,
        /// Phase of an assistant message: `commentary` or `final_answer`.
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    /// An item with the field `type`, built from a message part or a tool result.
    Output(TypedItem<'a>),
    /// An item of an earlier answer, sent back unchanged.
    Unchanged(Cow<'a, JsonObject>),
}

/// An input item with a `type`: an assistant message, a function call or a result.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TypedItem<'a> {
    /// A message of the assistant, with a type and optionally an id.
    Message {
        /// Id of the message, if the requested model created the message.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        /// Role of the message: `assistant`.
        role: Role,
        /// Status of the message: `completed` or `incomplete`. The types of OpenAI's SDK require
        /// the status in a message with an id.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a str>,
        /// Phase of the message: `commentary` or `final_answer`. According to OpenAI's SDK, answers
        /// get worse if earlier messages lack their phase.
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
        content: Vec<OutputContent<'a>>,
    },
    FunctionCall {
        /// Id of the item that contains the call. It differs from `call_id`, the id of the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        /// Id of the tool call, which the call's result repeats.
        call_id: Cow<'a, str>,
        /// Name of the called function.
        name: Cow<'a, str>,
        arguments: CallArguments<'a>,
        /// Status of the call: `completed` or `incomplete`.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a str>,
        /// Caller of the function, if the model did not call it directly. Sent as the API returned
        /// it.
        #[serde(skip_serializing_if = "Option::is_none")]
        caller: Option<&'a Value>,
        /// Namespace that the called function belongs to, sent back as the API returned it.
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
    },
    /// An item with the result of one tool call.
    FunctionCallOutput {
        /// Id of the tool call that the result answers.
        call_id: Cow<'a, str>,
        /// Result of the call. A failure is part of the text: the API has no field for it.
        output: Content<'a>,
        /// Field `caller` of the call, which the API also requires in the result.
        #[serde(skip_serializing_if = "Option::is_none")]
        caller: Option<&'a Value>,
    },
}

/// Field `role` of an input message: its author, or one of two roles for instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The message has instructions, with the older role `system`.
    System,
    /// The message has instructions, with the newer role `developer`.
    Developer,
    User,
    Assistant,
}

/// Content of a message or of a tool result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Content<'a> {
    Text(JoinedText<'a>),
    Parts(Vec<InputPart<'a>>),
}

/// One part of a user message or of a tool result.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InputPart<'a> {
    InputText {
        text: JoinedText<'a>,
    },
    InputImage {
        /// Resolution at which the model sees the image, such as `auto`. The types of OpenAI's SDK
        /// require this field.
        detail: &'static str,
        /// Address of the image, or its data as a `data:` URL.
        image_url: MediaUrl<'a>,
    },
    /// A document, as data or as an address.
    InputFile {
        /// File name of the document. The API requires it with document data.
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<Cow<'a, str>>,
        /// Document data as a `data:` URL.
        #[serde(skip_serializing_if = "Option::is_none")]
        file_data: Option<MediaUrl<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_url: Option<&'a str>,
    },
}

/// One part of an assistant message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputContent<'a> {
    OutputText {
        text: JoinedText<'a>,
        annotations: &'a [Value],
    },
    Refusal {
        refusal: &'a str,
    },
}

/// The request field `text`, with the output format.
#[derive(Debug, Serialize)]
pub struct TextOptions<'a> {
    pub format: JsonSchema<'a>,
}

impl<'a> TextOptions<'a> {
    /// Creates the output format for an answer with a schema.
    pub(crate) fn new(name: &'a str, sent: SentSchema<'a>) -> Self {
        Self {
            format: JsonSchema {
                name,
                schema: sent.schema,
                strict: sent.strict,
            },
        }
    }
}

/// Output format that requires JSON which matches a schema.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "json_schema")]
pub struct JsonSchema<'a> {
    /// Name of the schema, which matches `[A-Za-z0-9_-]{1,64}`.
    pub name: &'a str,
    pub schema: Cow<'a, Value>,
    /// Whether the API enforces the schema. If `true`, the schema may use only the subset of JSON
    /// Schema that the API can enforce.
    pub strict: bool,
}

/// Reasoning effort and summary of a request.
#[derive(Debug, Serialize)]
pub struct Reasoning {
    /// Reasoning effort: `none`, `low`, `medium` or `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<&'static str>,
    /// Reasoning summary: `auto`, `concise` or `detailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<&'static str>,
}
