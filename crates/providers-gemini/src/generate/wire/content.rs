//! Contents and their parts.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
use switchboard_domain::{JsonObject, ToolInput};

/// What one side says.
#[derive(Debug, Serialize)]
pub struct Content<'a> {
    /// `user` or `model`; absent in `systemInstruction`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// The pieces, at least one.
    pub parts: Vec<Part<'a>>,
}

impl Content<'_> {
    /// Whether it tells what tools did that the API runs itself.
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

/// One piece.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Part<'a> {
    /// As it came from the API.
    Native(Cow<'a, Value>),
    /// Made here.
    Said(Said<'a>),
}

impl<'a> Part<'a> {
    /// A piece without thought or signature.
    pub(crate) fn plain(data: Data<'a>) -> Self {
        Self::Said(Said {
            data,
            thought: false,
            thought_signature: None,
        })
    }

    /// Text.
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::plain(Data::Text(text.into()))
    }
}

/// Data, and what the model attached to it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said<'a> {
    /// Exactly one data field.
    #[serde(flatten)]
    pub data: Data<'a>,
    /// The model thought it and did not say it.
    #[serde(skip_serializing_if = "is_false")]
    pub thought: bool,
    /// The signature that came with this very piece.
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

/// The data field of a piece.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Data<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes.
    InlineData(Blob<'a>),
    /// Bytes elsewhere.
    FileData(FileData<'a>),
    /// The model calls a function.
    FunctionCall(FunctionCall<'a>),
    /// What the function gave.
    FunctionResponse(FunctionResponse<'a>),
}

/// Bytes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Blob<'a> {
    /// Their media type.
    pub mime_type: Cow<'a, str>,
    /// Base64.
    pub data: &'a str,
}

/// Bytes elsewhere.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileData<'a> {
    /// Their media type.
    pub mime_type: Cow<'a, str>,
    /// The address of an uploaded file, of a video, or any that the API may fetch.
    pub file_uri: &'a str,
}

/// The model calls a function.
#[derive(Debug, Serialize)]
pub struct FunctionCall<'a> {
    /// The API's id for it, if it gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    /// The function.
    pub name: Cow<'a, str>,
    /// Its input.
    pub args: Args<'a>,
}

/// A tool's input, always an object: one that was none is told as `{"malformed_input": …}`.
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

/// What a function gave.
#[derive(Debug, Serialize)]
pub struct FunctionResponse<'a> {
    /// The API's id of the call, if it gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    /// The function.
    pub name: Cow<'a, str>,
    /// Its result.
    pub response: Response<'a>,
    /// Media of the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ResultPart<'a>>,
}

/// A result, always an object. The API reads `output` and `error` as what their names say, and an
/// object with neither as output as a whole.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Response<'a> {
    /// An object that is the output.
    Whole(&'a JsonObject),
    /// Anything else.
    Output {
        /// The output.
        output: Outcome<'a>,
    },
    /// The function failed.
    Error {
        /// What went wrong.
        error: Outcome<'a>,
    },
}

/// What a function gave, in words or as data.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome<'a> {
    /// In words.
    Text(Cow<'a, str>),
    /// As data.
    Data(&'a Value),
}

/// A medium of a result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ResultPart<'a> {
    /// Bytes.
    InlineData(Blob<'a>),
    /// Bytes elsewhere.
    FileData(FileData<'a>),
}
