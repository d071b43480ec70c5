//! What the test of every adapter over real HTTP needs beside its own configuration.
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

use std::io;

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

/// A question that two tools without parameters may answer: `get_weather` and `list_cities`, as the
/// stored transcripts call them.
pub fn question() -> ChatRequest {
    let tool = |name| {
        let schema = json!({"type": "object", "properties": {}});
        ToolDefinition::new(name, "", schema)
    };
    let words = "Weather in Hamburg, and which cities are there?";
    ChatRequest::new([Message::user(words)]).with_tools(["get_weather", "list_cities"].map(tool))
}

/// A stored stream, by its path below `transcripts/`, that waits at the gate after so many of its
/// frames.
///
/// Fails like [`transcripts::read`], and with [`io::ErrorKind::InvalidData`] for what is no stream.
pub fn held_after(path: &str, frames: usize, gate: &Gate) -> io::Result<Answer> {
    let transcript = transcripts::read(path)?;
    let no_stream = |what| io::Error::new(io::ErrorKind::InvalidData, format!("{path} {what}"));
    let end = match transcript.form {
        Form::Sse => "\n\n",
        Form::Ndjson => "\n",
        Form::Json => return Err(no_stream("is a whole body")),
    };
    let text = String::from_utf8(transcript.bytes).map_err(|_| no_stream("is no text"))?;
    let held: usize = text.split_inclusive(end).take(frames).map(str::len).sum();
    let (before, after) = text.split_at(held);
    let answer = Answer::new(200).header("content-type", transcript.form.media_type());
    Ok(answer
        .piece(before.to_owned())
        .gate(gate)
        .piece(after.to_owned()))
}

/// The error that a question ends with.
///
/// `Err` is the answer, if there is one.
pub async fn failure(
    model: &dyn ChatModel,
    request: &ChatRequest,
) -> Result<ModelError, Box<ChatResponse>> {
    match model.complete(request).await {
        Ok(answer) => Err(Box::new(answer)),
        Err(error) => Ok(error),
    }
}

/// What an adapter did not do when its work was dropped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LetGoError {
    /// The transcript cannot be scripted.
    #[error(transparent)]
    Script(#[from] io::Error),
    /// It failed before it was dropped.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It said nothing although the beginning of the answer was there.
    #[error("the stream ended before anything was said")]
    Silent,
    /// It let go of the server while its stream was wanted.
    #[error("the connection was given up while the stream was read")]
    TooEarly,
    /// It answered before the server did.
    #[error("it answered before the server said anything")]
    Answered,
}

/// Sees to it that a model lets go of the server when its stream is dropped in the middle of an
/// answer, and when the question is dropped before the server has said anything.
///
/// Asks twice. `path` is a stored stream of the model's wire, `frames` how many of its frames hold at
/// least one event. A model that does not let go makes this wait for ever.
pub async fn lets_go(
    fake: &FakeModel,
    model: &dyn ChatModel,
    path: &str,
    frames: usize,
) -> Result<(), LetGoError> {
    let asked = fake.requests().len();
    let gate = Gate::new();
    fake.answer(held_after(path, frames, &gate)?);
    let question = question();
    let mut stream = model.stream(&question).await?;
    stream.next().await.ok_or(LetGoError::Silent)??;
    gate.reached().await;
    let request = fake.request(asked).await;
    if request.is_client_gone() {
        return Err(LetGoError::TooEarly);
    }
    drop(stream);
    request.client_gone().await;

    let never = Gate::new();
    fake.answer(Answer::transcript(path)?.held_by(&never));
    let arrived = Box::pin(fake.request(asked + 1));
    let request = match select(model.stream(&question), arrived).await {
        Either::Left(_) => return Err(LetGoError::Answered),
        // The question is dropped here.
        Either::Right((request, _)) => request,
    };
    request.client_gone().await;
    Ok(())
}
