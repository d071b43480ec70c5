//! Chunks and whole bodies such as nearly all are, read without copying anything.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, SeqAccess, Visitor},
};
use switchboard_providers_common::plain::{Nothing, Words};

use super::UsageReport;

/// A chunk, or a whole body, in which nothing is odd.
///
/// It has the fields of a [`Chunk`](super::Chunk), in their order, and ignores what that ignores. But it
/// forgives nothing and takes one answer at most: where reading it succeeds, reading a chunk comes to the
/// same and costs three times as much, and all else must be read as a chunk.
#[derive(Debug, Deserialize)]
pub(crate) struct PlainChunk<'a> {
    /// The id of the answer.
    #[serde(default, borrow)]
    pub(crate) id: Option<Words<'a>>,
    /// The model that answers.
    #[serde(default, borrow)]
    pub(crate) model: Option<Words<'a>>,
    #[serde(default, borrow)]
    choices: Choices<'a>,
    /// The tokens.
    #[serde(default)]
    pub(crate) usage: Option<UsageReport>,
    #[serde(default, rename = "error")]
    _error: Nothing,
    #[serde(default, borrow)]
    object: Option<Words<'a>>,
}

/// The one answer, if any.
#[derive(Debug, Default)]
struct Choices<'a>(Option<PlainChoice<'a>>);

/// The answer.
#[derive(Debug, Deserialize)]
pub(crate) struct PlainChoice<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default, borrow)]
    delta: Option<PlainDelta<'a>>,
    #[serde(default, borrow)]
    message: Option<PlainDelta<'a>>,
    /// Why it ended.
    #[serde(default, borrow)]
    pub(crate) finish_reason: Option<Words<'a>>,
}

/// What is new in the answer, or all of it.
#[derive(Debug, Deserialize)]
pub(crate) struct PlainDelta<'a> {
    /// Text.
    #[serde(default, borrow)]
    pub(crate) content: Option<Words<'a>>,
    /// The words with which the model declines.
    #[serde(default, borrow)]
    pub(crate) refusal: Option<Words<'a>>,
    /// Thinking (`DeepSeek`, vLLM).
    #[serde(default, borrow)]
    pub(crate) reasoning_content: Option<Words<'a>>,
    /// Thinking (Groq, OpenRouter, newer vLLM).
    #[serde(default, borrow)]
    pub(crate) reasoning: Option<Words<'a>>,
    #[serde(default, rename = "reasoning_details")]
    _reasoning_details: Nothing,
    #[serde(default, rename = "thinking_blocks")]
    _thinking_blocks: Nothing,
    /// Calls.
    #[serde(default, borrow)]
    pub(crate) tool_calls: Option<Vec<PlainCall<'a>>>,
    #[serde(default, rename = "function_call")]
    _function_call: Nothing,
}

/// A call, or more of one.
#[derive(Debug, Deserialize)]
pub(crate) struct PlainCall<'a> {
    /// Which call.
    #[serde(default)]
    pub(crate) index: Option<u64>,
    /// Its id.
    #[serde(default, borrow)]
    pub(crate) id: Option<Words<'a>>,
    /// The function.
    #[serde(borrow)]
    pub(crate) function: PlainFunction<'a>,
    #[serde(default, rename = "extra_content")]
    _extra_content: Nothing,
    #[serde(default, rename = "provider_specific_fields")]
    _provider_specific_fields: Nothing,
}

/// What is called, and with what.
#[derive(Debug, Deserialize)]
pub(crate) struct PlainFunction<'a> {
    /// The name.
    #[serde(default, borrow)]
    pub(crate) name: Option<Words<'a>>,
    /// The JSON text, or more of it.
    #[serde(default, borrow)]
    pub(crate) arguments: Option<Words<'a>>,
}

/// The one thing that a chunk brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Brought {
    /// Text.
    Text,
    /// Thinking, in the field of that name.
    Thought(&'static str),
    /// More of the arguments of the call of that number.
    Arguments(u64),
}

impl<'a> PlainChunk<'a> {
    /// The chunk, if `data` is one.
    pub(crate) fn read(data: &'a str) -> Option<Self> {
        // serde would read a list as the fields in order.
        if !data.starts_with('{') {
            return None;
        }
        let read: Self = serde_json::from_str(data).ok()?;
        let choice = read.choices.0.as_ref();
        let index = choice.and_then(|choice| choice.index);
        let is_error = read.object.as_deref() == Some("error");
        (index.is_none_or(|index| index == 0) && !is_error).then_some(read)
    }

    /// The answer, if there is one in it.
    pub(crate) fn choice(&self) -> Option<&PlainChoice<'a>> {
        self.choices.0.as_ref()
    }

    /// What it brings and the text of that, if there is nothing else in it that counts once an answer has
    /// begun.
    pub(crate) fn only(&self) -> Option<(Brought, &str)> {
        let choice = self.choice()?;
        let delta = choice.delta()?;
        let words = |text: &'_ Option<Words<'a>>| text.as_deref().is_some_and(|it| !it.is_empty());
        if self.usage.is_some() || words(&choice.finish_reason) || words(&delta.refusal) {
            return None;
        }
        // A blank beside it says nothing, and is the same blank in all that are like this one.
        let mut said = [
            (Brought::Text, &delta.content),
            (
                Brought::Thought("reasoning_content"),
                &delta.reasoning_content,
            ),
            (Brought::Thought("reasoning"), &delta.reasoning),
        ]
        .into_iter()
        .filter_map(|(what, text)| Some((what, text.as_deref()?)))
        .filter(|(_, text)| !text.is_empty());
        let calls = delta.tool_calls.as_deref().unwrap_or_default();
        match (said.next(), calls) {
            (Some(only), []) if said.next().is_none() => Some(only),
            (None, [call]) if call.id.is_none() && call.function.name.is_none() => {
                let arguments = call.function.arguments.as_deref()?;
                Some((Brought::Arguments(call.index?), arguments))
            }
            _ => None,
        }
    }
}

impl<'a> PlainChoice<'a> {
    /// What is new.
    pub(crate) fn delta(&self) -> Option<&PlainDelta<'a>> {
        self.delta.as_ref().or(self.message.as_ref())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AtMostOne;

        impl<'de> Visitor<'de> for AtMostOne {
            type Value = Choices<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of one answer at most")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Choices<'de>, A::Error> {
                let first = list.next_element()?;
                match list.next_element::<IgnoredAny>()? {
                    Some(_) => Err(de::Error::invalid_length(2, &self)),
                    None => Ok(Choices(first)),
                }
            }
        }

        deserializer.deserialize_seq(AtMostOne)
    }
}
