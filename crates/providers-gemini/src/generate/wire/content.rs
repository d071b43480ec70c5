//! Contents and their parts.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
use switchboard_domain::{JsonObject, ToolInput};

/// The message of one role.
#[derive(Debug, Serialize)]
pub struct Content<'a> {
    /// `user` or `model`; absent in `systemInstruction`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// The parts, at least one.
    pub parts: Vec<Part<'a>>,
}

impl Content<'_> {
    /// Whether it contains calls or results of server tools.
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

/// A part of a content.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Part<'a> {
    /// A part of an earlier answer, unchanged.
    Native(Cow<'a, Value>),
    /// A part created by the mapping.
    Said(Said<'a>),
}

impl<'a> Part<'a> {
    /// Creates a part without thought or signature.
    pub(crate) fn plain(data: Data<'a>) -> Self {
        Self::Said(Said {
            data,
            thought: false,
            thought_signature: None,
        })
    }

    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::plain(Data::Text(text.into()))
    }
}

/// Data with its thought mark and signature.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said<'a> {
    #[serde(flatten)]
    pub data: Data<'a>,
    /// Whether the data is a thought.
    #[serde(skip_serializing_if = "is_false")]
    pub thought: bool,
    /// The signature of this part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<&'a str>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

/// The data field of a part.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Data<'a> {
    Text(Cow<'a, str>),
    InlineData(Blob<'a>),
    FileData(FileData<'a>),
    /// A function call of the model.
    FunctionCall(FunctionCall<'a>),
    /// The result of a function.
    FunctionResponse(FunctionResponse<'a>),
}

/// Bytes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Blob<'a> {
    pub mime_type: Cow<'a, str>,
    /// Base64.
    pub data: &'a str,
}

/// Bytes at an address.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileData<'a> {
    pub mime_type: Cow<'a, str>,
    /// The address of an uploaded file, of a video, or any that the API may fetch.
    pub file_uri: &'a str,
}

/// A function call of the model.
#[derive(Debug, Serialize)]
pub struct FunctionCall<'a> {
    /// The API's id, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    pub name: Cow<'a, str>,
    pub args: Args<'a>,
}

/// A tool's input, always an object. Malformed input is sent as `{"malformed_input": …}`.
#[derive(Debug)]
pub struct Args<'a>(pub &'a ToolInput);

impl Serialize for Args<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ToolInput::Object(object) => object.serialize(serializer),
            ToolInput::Malformed { raw, .. } => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("malformed_input", raw)?;
                map.end()
            }
        }
    }
}

/// The result of a function.
#[derive(Debug, Serialize)]
pub struct FunctionResponse<'a> {
    /// The API's id of the call, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    pub name: Cow<'a, str>,
    pub response: Response<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ResultPart<'a>>,
}

/// A result, always an object. An object without `output` and `error` is the output itself.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Response<'a> {
    /// An object that is the output.
    Whole(&'a JsonObject),
    Output {
        output: Outcome<'a>,
    },
    Error {
        error: Outcome<'a>,
    },
}

/// The content of a result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome<'a> {
    Text(Cow<'a, str>),
    Data(&'a Value),
}

/// Media of a result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ResultPart<'a> {
    InlineData(Blob<'a>),
    FileData(FileData<'a>),
}
