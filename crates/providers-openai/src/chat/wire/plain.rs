//! The chunks that nearly all of a long answer is made of, read without copying anything.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, Visitor},
};

/// A chunk that holds one piece of text, of thinking or of a call's arguments, and nothing else that counts.
///
/// Reading it fails for every other chunk, and for one with a field that is not known to say nothing:
/// that is a [`Chunk`](super::Chunk), which forgives and costs three times as much.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlainChunk<'a> {
    #[serde(borrow)]
    choices: [PlainChoice<'a>; 1],
    #[serde(default, borrow)]
    object: Option<&'a str>,
    #[serde(default, rename = "usage")]
    _usage: Nothing,
    #[serde(default, rename = "id")]
    _id: IgnoredAny,
    #[serde(default, rename = "model")]
    _model: IgnoredAny,
    #[serde(default, rename = "created")]
    _created: IgnoredAny,
    #[serde(default, rename = "system_fingerprint")]
    _system_fingerprint: IgnoredAny,
    #[serde(default, rename = "service_tier")]
    _service_tier: IgnoredAny,
    #[serde(default, rename = "obfuscation")]
    _obfuscation: IgnoredAny,
    #[serde(default, rename = "provider")]
    _provider: IgnoredAny,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainChoice<'a> {
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: PlainDelta<'a>,
    #[serde(default, rename = "finish_reason")]
    _finish_reason: Nothing,
    #[serde(default, rename = "native_finish_reason")]
    _native_finish_reason: IgnoredAny,
    #[serde(default, rename = "logprobs")]
    _logprobs: IgnoredAny,
}

/// What is new in the answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlainDelta<'a> {
    /// Text.
    #[serde(default, borrow)]
    pub(crate) content: Option<Words<'a>>,
    /// Thinking (`DeepSeek`, vLLM).
    #[serde(default, borrow)]
    pub(crate) reasoning_content: Option<Words<'a>>,
    /// Thinking (Groq, OpenRouter, newer vLLM).
    #[serde(default, borrow)]
    pub(crate) reasoning: Option<Words<'a>>,
    /// More of the arguments of one call.
    #[serde(default, borrow)]
    pub(crate) tool_calls: Option<[PlainCall<'a>; 1]>,
    #[serde(default, rename = "role")]
    _role: IgnoredAny,
    #[serde(default, rename = "refusal")]
    _refusal: Nothing,
    #[serde(default, rename = "function_call")]
    _function_call: Nothing,
}

/// More of a call that was begun.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlainCall<'a> {
    /// Which call.
    pub(crate) index: u64,
    #[serde(borrow)]
    function: PlainFunction<'a>,
    #[serde(default, rename = "type")]
    _type: IgnoredAny,
    #[serde(default, rename = "id")]
    _id: Nothing,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainFunction<'a> {
    #[serde(borrow)]
    arguments: Words<'a>,
    #[serde(default, rename = "name")]
    _name: Nothing,
}

impl<'a> PlainChunk<'a> {
    /// The chunk, if `data` is one.
    pub(crate) fn read(data: &'a str) -> Option<PlainDelta<'a>> {
        let Self {
            object, choices, ..
        } = serde_json::from_str(data).ok()?;
        let [PlainChoice { index, delta, .. }] = choices;
        (index == 0 && object != Some("error")).then_some(delta)
    }
}

impl PlainCall<'_> {
    /// More of the JSON text.
    pub(crate) fn arguments(&self) -> &str {
        &self.function.arguments
    }
}

/// `null`, and nothing else.
#[derive(Debug, Default)]
struct Nothing;

impl<'de> Deserialize<'de> for Nothing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self)
    }
}

/// Text, borrowed if it stands in the chunk as it is. (serde borrows no `Option<Cow<str>>`.)
#[derive(Debug)]
pub(crate) struct Words<'a>(Cow<'a, str>);

impl std::ops::Deref for Words<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Words<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Words<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Words<'de>, E> {
                Ok(Words(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Words<'de>, E> {
                Ok(Words(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Text)
    }
}
