//! Request types for messages and their parts.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use switchboard_domain::JsonObject;
use switchboard_providers_common::ToolUseInput;

/// A message of the conversation (`Content` in the API).
#[derive(Debug, Serialize)]
pub struct Content<'a> {
    /// Author of the message, `user` or `model`. Absent in `systemInstruction`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// Parts of the message, at least one.
    pub parts: Vec<Part<'a>>,
}

impl Content<'_> {
    /// Returns whether the message contains calls or results of server tools.
    pub(crate) fn has_server_side_tool_invocations(&self) -> bool {
        self.parts.iter().any(|part| {
            let Part::Native(piece) = part else {
                return false;
            };
            ["toolCall", "toolResponse"]
                .iter()
                .any(|field| piece.get(field).is_some())
        })
    }
}

/// A part of a message.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Part<'a> {
    /// A part of an earlier answer as the API sent it, in JSON, possibly without its signature.
    Native(Cow<'a, Value>),
    /// A part that is built from a part of a domain message.
    Said(PartWithMetadata<'a>),
}

impl<'a> Part<'a> {
    /// Creates a part that is not a thought and has no signature.
    pub(crate) fn from_data(data: PartData<'a>) -> Self {
        Self::Said(PartWithMetadata {
            data,
            thought: false,
            thought_signature: None,
        })
    }

    pub(crate) fn from_text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::from_data(PartData::Text(text.into()))
    }
}

/// The data of a part, with its thought flag and its signature.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartWithMetadata<'a> {
    #[serde(flatten)]
    pub data: PartData<'a>,
    /// Whether the data is a thought of the model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub thought: bool,
    /// Thought signature of this part, which the API returned with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<&'a str>,
}

/// The data field of a part: text, media, a call or a result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PartData<'a> {
    Text(Cow<'a, str>),
    InlineData(InlineData<'a>),
    FileData(FileData<'a>),
    /// A function call that the model made.
    FunctionCall(FunctionCall<'a>),
    /// The result of a function call.
    FunctionResponse(FunctionResponse<'a>),
}

/// Media that are sent as bytes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InlineData<'a> {
    pub mime_type: Cow<'a, str>,
    /// The bytes of the media as base64 text.
    pub data: &'a str,
}

/// Media that the API reads from a URL.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileData<'a> {
    pub mime_type: Cow<'a, str>,
    /// URL of a file uploaded to the API, of a video, or of any other file that the API may
    /// download.
    pub file_uri: &'a str,
}

/// A function call that the model made, as the request sends it back.
#[derive(Debug, Serialize)]
pub struct FunctionCall<'a> {
    /// Id of the call, if the API assigned one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    pub name: Cow<'a, str>,
    pub args: ToolUseInput<'a>,
}

/// The result of a function call, as the request sends it.
#[derive(Debug, Serialize)]
pub struct FunctionResponse<'a> {
    /// Id of the function call, if the API assigned one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    pub name: Cow<'a, str>,
    pub response: FunctionResponseContent<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<FunctionResponsePart<'a>>,
}

/// The content of a function result, always an object. If the object has neither `output` nor
/// `error`, the API takes the whole object as the output.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum FunctionResponseContent<'a> {
    /// An object without `output` and `error`, which the API takes as the output of the call.
    Whole(&'a JsonObject),
    Output {
        output: OutputOrError<'a>,
    },
    Error {
        error: OutputOrError<'a>,
    },
}

/// The value of `output` or `error` in a function result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum OutputOrError<'a> {
    Text(Cow<'a, str>),
    Data(&'a Value),
}

/// An image or another file within a function result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FunctionResponsePart<'a> {
    InlineData(InlineData<'a>),
    FileData(FileData<'a>),
}
