//! What is sent. Texts, media and schemas are borrowed from the domain request and written straight
//! into the body: no message is copied to be sent.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use switchboard_domain::JsonObject;
use switchboard_providers_common::schema::Written;

use crate::{
    arguments::Arguments,
    built_in::{Declared, Form, NamedTool},
    chat::wire::ResponseFormat,
    fields::{Fields, some_if_any},
    media::DataUrl,
    schema::Sent,
    text::Text,
    tools,
};

/// The request body.
#[derive(Debug)]
pub struct Body<'a> {
    /// The model, in the server's words.
    pub model: &'a str,
    /// The conversation.
    pub input: Vec<Item<'a>>,
    /// The tools declared.
    pub tools: Declared<'a, FunctionTool<'a>>,
    /// Which of them may or must be called.
    pub tool_choice: Option<ToolChoice<'a>>,
    /// Whether several calls in one answer are welcome.
    pub parallel_tool_calls: Option<bool>,
    /// The form of the answer.
    pub text: Option<TextOptions<'a>>,
    /// The same under its name on Chat Completions, for servers that know it by no other.
    pub response_format: Option<ResponseFormat<'a>>,
    /// How much is thought, and what is shown of it.
    pub reasoning: Option<Reasoning>,
    /// Output limit in tokens, reasoning included; at least 16.
    pub max_output_tokens: Option<u32>,
    /// 0.0 to 2.0.
    pub temperature: Option<f64>,
    /// 0.0 to 1.0.
    pub top_p: Option<f64>,
    /// What the answer shall hold beside the usual.
    pub include: Vec<&'static str>,
    /// Whether the provider keeps the answer.
    pub store: bool,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Further fields of the caller. Those in a list of `tools` are among the tools above; `include` is
    /// appended, `text` and `reasoning` laid over ours; all others win over all of the above but `stream`, which decides how the answer is read.
    pub extra: &'a JsonObject,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Fields::new(serializer, self.extra)?;
        fields.put("model", Some(self.model))?;
        fields.put("input", Some(&self.input))?;
        fields.put_joined("tools", self.tools.some_if_any())?;
        fields.put("tool_choice", self.tool_choice.as_ref())?;
        fields.put("parallel_tool_calls", self.parallel_tool_calls)?;
        fields.merge("text", self.text.as_ref())?;
        fields.put("response_format", self.response_format.as_ref())?;
        fields.merge("reasoning", self.reasoning.as_ref())?;
        fields.put("max_output_tokens", self.max_output_tokens)?;
        fields.put("temperature", self.temperature)?;
        fields.put("top_p", self.top_p)?;
        fields.merge("include", some_if_any(&self.include))?;
        fields.put("store", Some(self.store))?;
        fields.end(self.stream)
    }
}

/// One item of the conversation.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Item<'a> {
    /// What somebody said, in the short form without a type.
    Message {
        /// Who.
        role: Role,
        /// What.
        content: Content<'a>,
        /// `commentary` or `final_answer`, of the model's own messages.
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    /// What the API has a type for.
    Output(Output<'a>),
    /// An item of the model as it came.
    AsItCame(Cow<'a, JsonObject>),
}

/// An item with a type.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output<'a> {
    /// A message of the model.
    Message {
        /// The id, of one that the model asked wrote itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        /// `assistant`.
        role: Role,
        /// `completed` or `incomplete`; the API's types want it beside an id.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a str>,
        /// `commentary` or `final_answer`; the SDK's types say that answers get worse without it.
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
        /// What was said.
        content: Vec<OutputContent<'a>>,
    },
    /// A call.
    FunctionCall {
        /// The id of the item, which is not that of the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        /// The id of the call.
        call_id: Cow<'a, str>,
        /// The function.
        name: Cow<'a, str>,
        /// What it was given.
        arguments: Arguments<'a>,
        /// `completed` or `incomplete`.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a str>,
        /// What made the call, if it was not the model itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        caller: Option<&'a Value>,
        /// The group of functions that the function is of.
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
    },
    /// The result of one call.
    FunctionCallOutput {
        /// The id of the call.
        call_id: Cow<'a, str>,
        /// The result. The wire has no mark for a failure.
        output: Content<'a>,
        /// The caller of the call, again.
        #[serde(skip_serializing_if = "Option::is_none")]
        caller: Option<&'a Value>,
    },
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The host, under the older name.
    System,
    /// The host, under the newer name.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// What is said or shown.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Content<'a> {
    /// Text alone, as a string.
    Text(Text<'a>),
    /// Text and media.
    Parts(Vec<InputPart<'a>>),
}

/// One part of a person's message or of a result.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InputPart<'a> {
    /// Text.
    InputText {
        /// The text.
        text: Text<'a>,
    },
    /// An image.
    InputImage {
        /// How closely it is looked at; the SDK's types require it.
        detail: &'static str,
        /// An address or a `data:` URL.
        image_url: DataUrl<'a>,
    },
    /// A document; one of data and address.
    InputFile {
        /// Its name; beside data there has to be one.
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<Cow<'a, str>>,
        /// A `data:` URL.
        #[serde(skip_serializing_if = "Option::is_none")]
        file_data: Option<DataUrl<'a>>,
        /// An address.
        #[serde(skip_serializing_if = "Option::is_none")]
        file_url: Option<&'a str>,
    },
}

/// One piece of a message of the model.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputContent<'a> {
    /// Text.
    OutputText {
        /// The text.
        text: Text<'a>,
        /// What it cites.
        annotations: &'a [Value],
    },
    /// The words with which the model declined.
    Refusal {
        /// The words.
        refusal: &'a str,
    },
}

/// A function declared.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "function")]
pub struct FunctionTool<'a> {
    /// `[A-Za-z0-9_-]{1,64}`.
    pub name: Cow<'a, str>,
    /// What it does.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: &'a str,
    /// JSON Schema of its arguments.
    pub parameters: Written,
    /// Whether calls are held to the schema. Unlike Chat Completions this API takes it for true when it
    /// is not said, and then refuses most schemas.
    pub strict: bool,
}

impl<'a> From<tools::Function<'a>> for FunctionTool<'a> {
    fn from(function: tools::Function<'a>) -> Self {
        Self {
            name: function.name,
            description: function.description,
            parameters: function.parameters,
            strict: function.strict,
        }
    }
}

/// Which tools may or must be called.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum ToolChoice<'a> {
    /// `none`, `auto` or `required`.
    Mode(&'static str),
    /// This one must be called.
    Named(NamedTool<'a>),
    /// One or more of these must be called.
    AllowedTools {
        /// `allowed_tools`.
        r#type: &'static str,
        /// `auto` or `required`.
        mode: &'static str,
        /// The tools.
        tools: Vec<NamedTool<'a>>,
    },
}

impl<'a> From<tools::Choice<'a>> for ToolChoice<'a> {
    fn from(choice: tools::Choice<'a>) -> Self {
        let named = |tool| NamedTool::new(tool, Form::Flat);
        match choice {
            tools::Choice::Mode(mode) => Self::Mode(mode),
            tools::Choice::One(tool) => Self::Named(named(tool)),
            tools::Choice::Allowed(tools) => Self::AllowedTools {
                r#type: "allowed_tools",
                mode: "required",
                tools: tools.into_iter().map(named).collect(),
            },
        }
    }
}

/// Options of the text.
#[derive(Debug, Serialize)]
pub struct TextOptions<'a> {
    /// Its form.
    pub format: JsonSchema<'a>,
}

impl<'a> TextOptions<'a> {
    /// The form of an answer to a schema.
    pub(crate) fn of(name: &'a str, sent: Sent<'a>) -> Self {
        Self {
            format: JsonSchema {
                name,
                schema: sent.schema,
                strict: sent.strict,
            },
        }
    }
}

/// JSON of a schema.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "json_schema")]
pub struct JsonSchema<'a> {
    /// `[A-Za-z0-9_-]{1,64}`.
    pub name: &'a str,
    /// The schema.
    pub schema: Cow<'a, Value>,
    /// Whether the answer is held to it; the API refuses `true` for a schema outside its subset.
    pub strict: bool,
}

/// How much is thought, and what is shown of it.
#[derive(Debug, Serialize)]
pub struct Reasoning {
    /// `none`, `low`, `medium`, `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<&'static str>,
    /// `auto`, `concise`, `detailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<&'static str>,
}
