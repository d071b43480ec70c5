//! Chunks such as nearly all are, read without copying anything.

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_providers_common::plain::{Nothing, Object, One, Words};

use super::usage::UsageReport;

/// A chunk in which nothing is odd: one candidate, which says or thinks something or calls functions.
///
/// It forgives nothing, and fields that the decoder looks at and that are not among these must not be there.
/// Where reading it succeeds, reading the chunk as a JSON value comes to the same and costs several times as much; all else must
/// be read so.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlainChunk<'a> {
    #[serde(borrow)]
    candidates: One<Object<Candidate<'a>>>,
    /// The tokens.
    #[serde(default)]
    usage_metadata: Option<Object<UsageReport>>,
    #[serde(default, borrow)]
    model_version: Option<Words<'a>>,
    #[serde(default, borrow)]
    response_id: Option<Words<'a>>,
    #[serde(default, rename = "promptFeedback")]
    _prompt_feedback: Nothing,
    #[serde(default, rename = "error")]
    _error: Nothing,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default, borrow)]
    content: Option<Object<Content<'a>>>,
    #[serde(default, borrow)]
    finish_reason: Option<Words<'a>>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(default, rename = "finishMessage")]
    _finish_message: Nothing,
    #[serde(default, rename = "continuationToken")]
    _continuation_token: Nothing,
    #[serde(default, rename = "groundingMetadata")]
    _grounding_metadata: Nothing,
    #[serde(default, rename = "urlContextMetadata")]
    _url_context_metadata: Nothing,
}

#[derive(Debug, Deserialize)]
struct Content<'a> {
    #[serde(default, borrow)]
    parts: Option<Vec<Object<PlainPart<'a>>>>,
}

/// A piece of the answer. Whatever else a piece holds is kept whole, so there must be nothing else.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PlainPart<'a> {
    /// Text, or thinking.
    #[serde(default, borrow)]
    pub(crate) text: Option<Words<'a>>,
    /// Whether it is thinking.
    #[serde(default)]
    pub(crate) thought: Option<bool>,
    /// What goes back with it.
    #[serde(default, borrow)]
    pub(crate) thought_signature: Option<Words<'a>>,
    /// A call.
    #[serde(default, borrow)]
    pub(crate) function_call: Option<Object<PlainCall<'a>>>,
}

/// A call, which comes whole.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlainCall<'a> {
    /// The function.
    #[serde(default, borrow)]
    pub(crate) name: Option<Words<'a>>,
    /// Its id.
    #[serde(default, borrow)]
    pub(crate) id: Option<Words<'a>>,
    /// What it is given.
    #[serde(default, borrow)]
    pub(crate) args: Option<&'a RawValue>,
}

impl<'a> PlainChunk<'a> {
    /// The chunk, if `data` is one.
    pub(crate) fn read(data: &'a str) -> Option<Self> {
        // serde would read a list as the fields in order.
        if !data.starts_with('{') {
            return None;
        }
        let chunk: Self = serde_json::from_str(data).ok()?;
        let index = chunk.candidate().index;
        index.is_none_or(|index| index == 0).then_some(chunk)
    }

    fn candidate(&self) -> &Candidate<'a> {
        &self.candidates.0.0
    }

    /// The id of the answer, if it has one.
    pub(crate) fn response_id(&self) -> Option<&str> {
        self.response_id.as_ref()?.said()
    }

    /// The model that answers, if it is said.
    pub(crate) fn model(&self) -> Option<&str> {
        self.model_version.as_ref()?.said()
    }

    /// The pieces of the answer.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &PlainPart<'a>> {
        let content = self.candidate().content.as_ref();
        let parts = content.and_then(|content| content.0.parts.as_ref());
        parts.into_iter().flatten().map(|part| &part.0)
    }

    /// Why the answer ended, if it did.
    pub(crate) fn finish_reason(&self) -> Option<&str> {
        self.candidate().finish_reason.as_ref()?.said()
    }

    /// The tokens so far.
    pub(crate) fn usage(&self) -> Option<UsageReport> {
        self.usage_metadata.as_ref().map(|usage| usage.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::parts::BESIDE_CONTENT, *};

    #[test]
    fn what_it_does_not_tell_of_is_not_read_by_it() {
        let chunk = |field: &str, place: &str| {
            let mut chunk =
                json!({"candidates": [{"content": {"parts": [{"text": "a"}]}, "index": 0}]});
            *chunk.pointer_mut(place).unwrap() = {
                let mut object = chunk.pointer(place).unwrap().clone();
                object[field] = json!({"says": ["something"]});
                object
            };
            chunk.to_string()
        };
        let candidate = "/candidates/0";
        let part = "/candidates/0/content/parts/0";
        let beside = BESIDE_CONTENT.map(|kind| (kind, candidate));
        for (field, place) in [
            ("error", ""),
            ("promptFeedback", ""),
            ("finishMessage", candidate),
            ("continuationToken", candidate),
            ("partMetadata", part),
            ("executableCode", part),
            ("functionCall", part),
        ]
        .into_iter()
        .chain(beside)
        {
            assert!(PlainChunk::read(&chunk(field, place)).is_none(), "{field}");
        }
        for (field, place) in [("createTime", ""), ("safetyRatings", candidate)] {
            assert!(PlainChunk::read(&chunk(field, place)).is_some(), "{field}");
        }
    }
}
