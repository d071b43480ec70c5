//! Shared checks for the tests of adapters over real HTTP.
//!
//! ```
//! # use switchboard_testkit::{fake::{FakeModel, Gate}, loopback};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let fake = FakeModel::start().await?;
//! let gate = Gate::new();
//! // The first two frames arrive; the rest does when the test opens the gate.
//! fake.answer(loopback::held_after("openai-chat/text.sse", 2, &gate)?);
//! assert_eq!(loopback::question().tools.len(), 2);
//! # Ok(())
//! # }
//! ```

use std::{error::Error, io};

use futures_util::{
    StreamExt as _,
    future::{Either, select},
};
use serde_json::json;
use switchboard_domain::{
    ChatModel, ChatRequest, ChatResponse, Message, ModelError, ToolDefinition,
};

use crate::{
    fake::{Answer, FakeModel, Gate},
    transcripts::{self, Form},
};

/// Returns a question for two tools without parameters: `get_weather` and `list_cities`, the names
/// in the stored transcripts.
pub fn question() -> ChatRequest {
    let tool = |name| {
        let schema = json!({"type": "object", "properties": {}});
        ToolDefinition::new(name, "", schema)
    };
    let words = "Weather in Hamburg, and which cities are there?";
    ChatRequest::new([Message::user(words)]).with_tools(["get_weather", "list_cities"].map(tool))
}

/// Returns a stored stream, by its path below `transcripts/`, that waits at the gate after the
/// given number of frames.
///
/// Fails like [`transcripts::read`], and with [`io::ErrorKind::InvalidData`] if the transcript is
/// not a stream.
pub fn held_after(path: &str, frames: usize, gate: &Gate) -> io::Result<Answer> {
    let transcript = transcripts::read(path)?;
    let no_stream = |what| io::Error::new(io::ErrorKind::InvalidData, format!("{path} {what}"));
    let end = match transcript.form {
        Form::Sse => "\n\n",
        Form::Ndjson => "\n",
        Form::Json => return Err(no_stream("is not a stream")),
    };
    let text = String::from_utf8(transcript.bytes).map_err(|_| no_stream("is not valid UTF-8"))?;
    let held: usize = text.split_inclusive(end).take(frames).map(str::len).sum();
    let (before, after) = text.split_at(held);
    let answer = Answer::new(200).header("content-type", transcript.form.media_type());
    let answer = answer.piece(before.to_owned()).gate(gate);
    Ok(answer.piece(after.to_owned()))
}

/// Returns the error of a question.
///
/// Returns the answer as `Err` if there is one.
pub async fn failure(
    model: &dyn ChatModel,
    request: &ChatRequest,
) -> Result<ModelError, Box<ChatResponse>> {
    match model.complete(request).await {
        Ok(answer) => Err(Box::new(answer)),
        Err(error) => Ok(error),
    }
}

/// Checks that a model closes its connection when its stream is dropped in the middle of an answer,
/// and when the request is dropped before the server has answered.
///
/// Sends two requests. `path` is a stored stream of the model's wire. `frames` is the number of
/// frames that contain at least one event. Blocks forever if the model keeps the connection. Fails
/// with an [`io::Error`] if the transcript cannot be scripted, and with a [`ModelError`] if the
/// stream fails before it is dropped.
pub async fn lets_go(
    fake: &FakeModel,
    model: &dyn ChatModel,
    path: &str,
    frames: usize,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let asked = fake.requests().len();
    let gate = Gate::new();
    fake.answer(held_after(path, frames, &gate)?);
    let question = question();
    let mut stream = model.stream(&question).await?;
    let first = stream.next().await;
    first.ok_or("the stream ended without an event")??;
    gate.reached().await;
    let request = fake.request(asked).await;
    if request.is_client_gone() {
        return Err("the connection was closed while the stream was in use".into());
    }
    drop(stream);
    request.client_gone().await;

    let never = Gate::new();
    fake.answer(Answer::transcript(path)?.held_by(&never));
    let arrived = Box::pin(fake.request(asked + 1));
    let request = match select(model.stream(&question), arrived).await {
        Either::Left(_) => return Err("the model answered before the server did".into()),
        // The request is dropped here.
        Either::Right((request, _)) => request,
    };
    request.client_gone().await;
    Ok(())
}
