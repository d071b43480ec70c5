//! Requests. Texts, media and schemas are borrowed from the domain request.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use switchboard_domain::JsonObject;
use switchboard_providers_common::{
    BodyFields, JoinedText, body_fields::non_empty, schema::ToolSchema,
};

use crate::{
    chat::wire::ResponseFormat,
    tools::{
        provider_tools::{DeclaredTools, NamedTool},
        schema::SentSchema,
    },
    wire::{arguments::Arguments, media::DataUrl},
};

/// The request body.
#[derive(Debug)]
pub struct Body<'a> {
    pub model: &'a str,
    pub input: Vec<Item<'a>>,
    pub tools: DeclaredTools<'a, FunctionTool<'a>>,
    pub tool_choice: Option<ToolChoice<'a>>,
    /// Whether an answer may have several calls.
    pub parallel_tool_calls: Option<bool>,
    pub text: Option<TextOptions<'a>>,
    /// The output format in the field of Chat Completions, for servers without `text.format`.
    pub response_format: Option<ResponseFormat<'a>>,
    /// The effort and the summary of the reasoning.
    pub reasoning: Option<Reasoning>,
    /// Maximum number of output tokens, with reasoning. At least 16.
    pub max_output_tokens: Option<u32>,
    /// 0.0 to 2.0.
    pub temperature: Option<f64>,
    /// 0.0 to 1.0.
    pub top_p: Option<f64>,
    /// Further data that the answer contains.
    pub include: Vec<&'static str>,
    /// Whether the provider stores the answer.
    pub store: bool,
    /// Whether to stream the answer.
    pub stream: bool,
    /// Further fields of the caller. `tools` already contains a list of `tools`. `include`, `text`
    /// and `reasoning` are merged. Other fields override the fields above except `stream`, which
    /// decides how the answer is read.
    pub extra: &'a JsonObject,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = BodyFields::new(serializer, self.extra)?;
        fields.put("model", Some(self.model))?;
        fields.put("input", Some(&self.input))?;
        fields.put_merged("tools", self.tools.non_empty())?;
        fields.put("tool_choice", self.tool_choice.as_ref())?;
        fields.put("parallel_tool_calls", self.parallel_tool_calls)?;
        fields.merge("text", self.text.as_ref())?;
        fields.put("response_format", self.response_format.as_ref())?;
        fields.merge("reasoning", self.reasoning.as_ref())?;
        fields.put("max_output_tokens", self.max_output_tokens)?;
        fields.put("temperature", self.temperature)?;
        fields.put("top_p", self.top_p)?;
        fields.merge("include", non_empty(&self.include))?;
        fields.put("store", Some(self.store))?;
        fields.end(self.stream)
    }
}

/// One item of the conversation.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Item<'a> {
    /// A message in the short form, without a type.
    Message {
        role: Role,
        content: Content<'a>,
        /// `commentary` or `final_answer`, of the model's own messages.
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    /// An item with a type.
    Output(Output<'a>),
    /// An item of the model, unchanged.
    Unchanged(Cow<'a, JsonObject>),
}

/// An item with a type.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output<'a> {
    /// A message of the model.
    Message {
        /// The id of a message that this model created.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        /// `assistant`.
        role: Role,
        /// `completed` or `incomplete`. The API's types require it with an id.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a str>,
        /// `commentary` or `final_answer`. Without it answers get worse, according to the SDK.
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
        content: Vec<OutputContent<'a>>,
    },
    FunctionCall {
        /// The id of the item, which differs from the id of the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        /// The id of the call.
        call_id: Cow<'a, str>,
        /// The name of the function.
        name: Cow<'a, str>,
        arguments: Arguments<'a>,
        /// `completed` or `incomplete`.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a str>,
        /// The caller, if the model itself did not make the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        caller: Option<&'a Value>,
        /// The group of the function.
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
    },
    /// The result of one call.
    FunctionCallOutput {
        /// The id of the call.
        call_id: Cow<'a, str>,
        /// The result. The API has no field for a failure.
        output: Content<'a>,
        /// The caller of the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        caller: Option<&'a Value>,
    },
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions, with the older role.
    System,
    /// Instructions, with the newer role.
    Developer,
    User,
    Assistant,
}

/// The content of a message or of a result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Content<'a> {
    Text(JoinedText<'a>),
    Parts(Vec<InputPart<'a>>),
}

/// One part of a user message or of a result.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InputPart<'a> {
    InputText {
        text: JoinedText<'a>,
    },
    InputImage {
        /// The resolution. The SDK's types require it.
        detail: &'static str,
        /// An address or a `data:` URL.
        image_url: DataUrl<'a>,
    },
    /// A document, as data or as an address.
    InputFile {
        /// The file name. Required with data.
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<Cow<'a, str>>,
        /// A `data:` URL.
        #[serde(skip_serializing_if = "Option::is_none")]
        file_data: Option<DataUrl<'a>>,
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

/// A declared function.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "function")]
pub struct FunctionTool<'a> {
    /// `[A-Za-z0-9_-]{1,64}`.
    pub name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: &'a str,
    /// The JSON Schema of the arguments.
    pub parameters: ToolSchema,
    /// Whether the API enforces the schema. Unlike in Chat Completions the default is `true`, with
    /// which the API refuses most schemas.
    pub strict: bool,
}

/// The tool choice.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum ToolChoice<'a> {
    /// `none`, `auto` or `required`.
    Mode(&'static str),
    /// A call of this tool.
    Named(NamedTool<'a>),
    /// One or more calls of these tools.
    AllowedTools {
        /// `allowed_tools`.
        r#type: &'static str,
        /// `auto` or `required`.
        mode: &'static str,
        tools: Vec<NamedTool<'a>>,
    },
}

/// The `text` field.
#[derive(Debug, Serialize)]
pub struct TextOptions<'a> {
    pub format: JsonSchema<'a>,
}

impl<'a> TextOptions<'a> {
    /// Creates the output format for a schema.
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

/// JSON that conforms to a schema.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "json_schema")]
pub struct JsonSchema<'a> {
    /// `[A-Za-z0-9_-]{1,64}`.
    pub name: &'a str,
    pub schema: Cow<'a, Value>,
    /// Whether the API enforces the schema. It refuses `true` for a schema outside its subset.
    pub strict: bool,
}

/// The effort and the summary of the reasoning.
#[derive(Debug, Serialize)]
pub struct Reasoning {
    /// `none`, `low`, `medium`, `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<&'static str>,
    /// `auto`, `concise`, `detailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<&'static str>,
}
