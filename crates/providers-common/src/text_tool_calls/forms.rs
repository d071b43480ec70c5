//! One parser per form. Each begins at the character with which the form begins and gives the calls,
//! or says why it is none.

use std::sync::Arc;

use super::{
    call::{Found, FoundCall, Strictness, call_of_json, with_escaped_controls},
    form::RecoveryForm,
    json::{self, Ending, Trouble},
    known::Known,
    python,
    reader::{Reader, Stop},
};

mod deepseek;
mod elements;
mod fenced;
mod mistral;

/// Reads a call in one form.
pub(crate) async fn read(
    form: RecoveryForm,
    reader: &mut Reader,
    known: &Known,
) -> Result<Found, Stop> {
    match form {
        RecoveryForm::ToolCallTag => elements::tool_call(reader, known).await,
        RecoveryForm::FunctionTag => elements::function(reader, known).await,
        RecoveryForm::MistralToken => mistral::read(reader, known).await,
        RecoveryForm::DeepSeek => deepseek::read(reader, known).await,
        RecoveryForm::Granite => {
            reader.literal("<|tool_call|>").await?;
            reader.blanks().await;
            marked_json(reader, known, &["<|/tool_call|>"]).await
        }
        RecoveryForm::FencedJson => fenced::read(reader, known).await,
        RecoveryForm::Pythonic => pythonic(reader, known).await,
        RecoveryForm::BareJson => bare(reader, known).await,
    }
}

/// A parser that is at work.
pub(crate) type Reading = std::pin::Pin<Box<dyn Future<Output = Judgement> + Send>>;

/// What a parser made of the text.
#[derive(Debug)]
pub(crate) struct Judgement {
    pub(crate) form: RecoveryForm,
    pub(crate) result: Result<Found, Stop>,
    /// Where it stopped.
    pub(crate) at: usize,
    /// The position behind the last character that it needed.
    pub(crate) seen: usize,
}

/// Starts a parser.
pub(crate) fn start(form: RecoveryForm, mut reader: Reader, known: Arc<Known>) -> Reading {
    Box::pin(async move {
        let result = read(form, &mut reader, &known).await;
        Judgement {
            form,
            result,
            at: reader.at(),
            seen: reader.seen(),
        }
    })
}

async fn pythonic(reader: &mut Reader, known: &Known) -> Result<Found, Stop> {
    if reader.need().await? == '<' {
        if !reader
            .optional(&["<|python_start|>", "<|tool_call_start|>"])
            .await
        {
            return Err(Stop::Syntax);
        }
        reader.blanks().await;
    }
    let list = python::calls(reader, known).await;
    let mut end = reader.at();
    match list.end {
        Ok(()) => {
            reader.blanks().await;
            if reader
                .closer(&["<|python_end|>", "<|tool_call_end|>"])
                .await
            {
                end = reader.at();
            }
        }
        Err(Stop::End) if !list.calls.is_empty() => {}
        Err(stop) => return Err(stop),
    }
    Ok(Found {
        calls: list.calls,
        end,
    })
}

async fn bare(reader: &mut Reader, known: &Known) -> Result<Found, Stop> {
    if reader.need().await? == '<' {
        reader.literal("<|python_tag|>").await?;
        reader.blanks().await;
        return marked_json(reader, known, &["<|eom_id|>", "<|eot_id|>"]).await;
    }
    let calls = match json::one(reader, known, Strictness::Unmarked).await {
        Ok(calls) => calls,
        Err(trouble) => cut_off(trouble)?,
    };
    let end = reader.at();
    Ok(Found { calls, end })
}

/// The calls of a text that ended, if there are any.
fn cut_off(trouble: Trouble) -> Result<Vec<FoundCall>, Stop> {
    if trouble.stop == Stop::End && !trouble.calls.is_empty() {
        Ok(trouble.calls)
    } else {
        Err(trouble.stop)
    }
}

/// Calls as JSON after the mark of a form, up to one of the marks that may close it.
async fn marked_json(reader: &mut Reader, known: &Known, closers: &[&str]) -> Result<Found, Stop> {
    let start = reader.at();
    let read = match json::calls(reader, known, Strictness::Marked).await {
        Ok(read) => read,
        Err(trouble) if trouble.stop == Stop::Syntax => {
            return faulty_json(reader, start, trouble, known, closers).await;
        }
        Err(trouble) => {
            let calls = cut_off(trouble)?;
            let end = reader.at();
            return Ok(Found { calls, end });
        }
    };
    let end = match read.ending {
        Ending::Text => reader.at(),
        Ending::Other if reader.closer(closers).await => reader.at(),
        Ending::Other | Ending::NoCall => read.end,
    };
    let calls = read.found;
    Ok(Found { calls, end })
}

/// What was to be JSON and is not. It may be a Python literal; otherwise a call whose tool is known by
/// now is told as broken, so that the model hears of it.
async fn faulty_json(
    reader: &mut Reader,
    start: usize,
    mut trouble: Trouble,
    known: &Known,
    closers: &[&str],
) -> Result<Found, Stop> {
    let has_open_call = trouble.has_open_call();
    if !has_open_call && !trouble.calls.is_empty() {
        let end = reader.at();
        let calls = trouble.calls;
        return Ok(Found { calls, end });
    }
    if !has_open_call && reader.peek().await != Some('\'') {
        return Err(Stop::Syntax);
    }
    let fault = reader.at();
    let is_closed = reader.until(closers).await.is_ok();
    let (body, rest) = (reader.since(start), reader.since(fault));
    if is_closed {
        reader.optional(closers).await;
    }
    let end = reader.at();
    if let Some(calls) = python_calls(&body, known) {
        return Ok(Found { calls, end });
    }
    let Some(open) = trouble.calls.pop() else {
        return Err(Stop::Syntax);
    };
    let call = FoundCall::broken(open.name, open.input + &rest);
    trouble.calls.push(call);
    let calls = trouble.calls;
    Ok(Found { calls, end })
}

/// The calls of a text that is a Python dictionary or a list of them.
fn python_calls(text: &str, known: &Known) -> Option<Vec<FoundCall>> {
    let value = python::literal_of(text)?;
    let values = match value {
        serde_json::Value::Array(values) => values,
        value => vec![value],
    };
    let calls: Result<Vec<_>, _> = values
        .iter()
        .map(|value| call_of_json(&value.to_string(), known, Strictness::Marked))
        .collect();
    calls.ok().filter(|calls| !calls.is_empty())
}

/// The input of a call whose tool is known: a JSON object.
async fn input_of(name: String, reader: &mut Reader, closers: &[&str]) -> FoundCall {
    let start = reader.at();
    match json::object(reader).await {
        Ok(range) => {
            let input = reader.text(range);
            FoundCall::whole(name, with_escaped_controls(&input).into_owned())
        }
        Err(Stop::End) => FoundCall::cut_off(name, reader.since(start)),
        Err(_) => {
            // What closes it comes next, or the text is at its end.
            let _ = reader.until(closers).await;
            let input = reader.since(start);
            match python::literal_of(&input) {
                Some(value) if value.is_object() => FoundCall::whole(name, value.to_string()),
                _ => FoundCall::broken(name, input),
            }
        }
    }
}
