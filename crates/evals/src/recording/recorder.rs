//! Writes down what models and tools are asked and what they answer.

use std::{
    io::Write,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Instant,
};

use async_trait::async_trait;
use futures_core::Stream;
use serde_json::Value;
use switchboard_domain::{
    ChatModel, ChatRequest, JsonObject, Message, ModelCapabilities, ModelError, ModelEvent,
    ModelId, ModelStream, ToolCall, ToolCallError, ToolCatalog, ToolHost, ToolHostChanges,
    ToolOutput,
};
use switchboard_orchestration::tools::arguments::ContextInjection;

use super::{
    RecordingError, Scrubber,
    format::{self, Call, CallFault, Catalog, End, Exchange, Line, Outcome, VERSION, millis},
    numbers::Numbers,
};

/// Stands before models and tool hosts and writes down what passes. Clones write into the same recording.
///
/// Each answer is written when it is over, in one piece: a program that is killed leaves a recording of what
/// was over by then. Writing never fails a run; what went wrong is told by [`Recorder::finish`].
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    /// The conversation that is written down.
    track: Option<Arc<str>>,
    /// What tools are given that nobody else is to see.
    hidden: ContextInjection,
}

struct Shared {
    scrubber: Scrubber,
    file: Mutex<Writer>,
}

struct Writer {
    to: Box<dyn Write + Send>,
    /// Messages and tools that are written.
    numbers: Numbers,
    /// The catalog that was seen last, and that was written last, and how many were.
    seen: Option<ToolCatalog>,
    catalog: Option<Catalog>,
    catalogs: usize,
    /// How many calls began.
    calls: usize,
    fault: Option<RecordingError>,
}

impl Recorder {
    /// Begins a recording. `program` says who makes it, such as `switchboard 0.1.0`.
    pub fn new(
        to: impl Write + Send + 'static,
        program: &str,
        scrubber: Scrubber,
    ) -> Result<Self, RecordingError> {
        let mut writer = Writer {
            to: Box::new(to),
            numbers: Numbers::default(),
            seen: None,
            catalog: None,
            catalogs: 0,
            calls: 0,
            fault: None,
        };
        writer.line(&Line::Recording {
            version: VERSION,
            program: program.to_owned(),
        })?;
        Ok(Self {
            shared: Arc::new(Shared {
                scrubber,
                file: Mutex::new(writer),
            }),
            track: None,
            hidden: ContextInjection::new(),
        })
    }

    /// The same recording, without what the host gives to tools behind the model's back: neither inputs nor results
    /// have it.
    #[must_use]
    pub fn hiding(mut self, hidden: ContextInjection) -> Self {
        self.hidden = hidden;
        self
    }

    /// The same recording, for one of several conversations that go on at once: the
    /// [`track`](super::Player::track) of this name has its answers and results, and no other's.
    #[must_use]
    pub fn track(&self, name: &str) -> Self {
        Self {
            track: Some(self.shared.scrubber.title(name).into()),
            ..self.clone()
        }
    }

    /// The input of a call as the model wrote it.
    fn visible(&self, name: &str, input: JsonObject) -> JsonObject {
        let writer = self.writer();
        let mut tools = writer.seen.iter().flat_map(|seen| &seen.tools);
        match tools.find(|tool| tool.name == name) {
            Some(tool) => self.hidden.without(tool, input),
            None => self.hidden.without_any(input),
        }
    }

    /// The same model, written down. Whoever lets servers ask it in the middle of a tool's call gives them the model itself: what it
    /// says to them is a part of the tool's result, and written down it would be taken for an answer of the run
    /// ([`Matching::Order`](super::Matching::Order)).
    pub fn model(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        Arc::new(RecordedModel {
            recorder: self.clone(),
            model,
        })
    }

    /// The same tools, written down.
    pub fn tools(&self, host: Arc<dyn ToolHost>) -> Arc<dyn ToolHost> {
        Arc::new(RecordedTools {
            recorder: self.clone(),
            host,
        })
    }

    /// Whether all that passed until now is written. Fails with the first thing that went wrong; what came
    /// after it is missing in the recording.
    pub fn finish(&self) -> Result<(), RecordingError> {
        let mut writer = self.writer();
        if let Some(fault) = writer.fault.take() {
            return Err(fault);
        }
        writer.to.flush().map_err(|source| RecordingError::Io {
            writing: true,
            source,
        })
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.shared
            .file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, write: impl FnOnce(&mut Writer, &Scrubber) -> Result<(), RecordingError>) {
        let mut writer = self.writer();
        if writer.fault.is_none()
            && let Err(fault) = write(&mut writer, &self.shared.scrubber)
        {
            writer.fault = Some(fault);
        }
    }

    fn exchange(&self, heard: &mut Heard, end: Option<End>) {
        let mut events = std::mem::take(&mut heard.events);
        let marked = self.shared.scrubber.marked(&events);
        self.shared.scrubber.events(&mut events);
        let request = Arc::clone(&heard.request);
        self.write(|writer, scrubber| {
            let messages: Result<Vec<usize>, _> = request
                .messages
                .iter()
                .map(|message| writer.message(message, scrubber))
                .collect();
            let tools = serde_json::to_value(&request.tools).map_err(RecordingError::Unwritable)?;
            let tools = writer.tools(scrubber.tools(tools))?;
            let rest = format::without_history(&request).map_err(RecordingError::Unwritable)?;
            let events = events.into_iter().map(|(when, event)| {
                let event = serde_json::to_value(event).map_err(RecordingError::Unwritable)?;
                // Texts were looked at as a whole.
                Ok((when, scrubber.event(event)))
            });
            writer.line(&Line::Answer(Box::new(Exchange {
                track: self.track.clone(),
                catalogs: heard.catalogs,
                model: scrubber.model(&heard.model),
                capabilities: heard.capabilities.clone(),
                messages: messages?,
                tools,
                request: scrubber.request(rest),
                events: events.collect::<Result<_, RecordingError>>()?,
                marked,
                end: end.map(|end| match end {
                    End::Failed(mut fault) => {
                        fault.message = scrubber.text(&fault.message);
                        fault.provider = scrubber.title(&fault.provider);
                        // A gateway may say again in it what it was sent.
                        for text in [&mut fault.what, &mut fault.request_id] {
                            *text = text.as_deref().map(|text| scrubber.text(text));
                        }
                        End::Failed(fault)
                    }
                    End::Left => End::Left,
                }),
                took_ms: millis(heard.began.elapsed()),
            })))
        });
    }
}

impl Writer {
    fn line(&mut self, line: &Line) -> Result<(), RecordingError> {
        let mut text = serde_json::to_string(line).map_err(RecordingError::Unwritable)?;
        text.push('\n');
        let written = self
            .to
            .write_all(text.as_bytes())
            .and_then(|()| self.to.flush());
        written.map_err(|source| RecordingError::Io {
            writing: true,
            source,
        })
    }

    /// The number of a message, which is written if it is new.
    fn message(
        &mut self,
        message: &Arc<Message>,
        scrubber: &Scrubber,
    ) -> Result<usize, RecordingError> {
        if let Some(number) = self.numbers.of_message(message) {
            return Ok(number);
        }
        let value = format::message_value(message).map_err(RecordingError::Unwritable)?;
        let value = scrubber.message(value);
        let number = self.numbered(value, |number, message| Line::Message { number, message })?;
        self.numbers.keep_message(message, number);
        Ok(number)
    }

    fn tools(&mut self, tools: Value) -> Result<usize, RecordingError> {
        self.numbered(tools, |number, tools| Line::Tools { number, tools })
    }

    fn numbered(
        &mut self,
        value: Value,
        line: impl FnOnce(usize, Value) -> Line,
    ) -> Result<usize, RecordingError> {
        let text = value.to_string();
        if let Some(number) = self.numbers.of_text(&text) {
            return Ok(number);
        }
        let number = self.numbers.next();
        self.line(&line(number, value))?;
        self.numbers.keep_text(&text, number);
        Ok(number)
    }
}

struct RecordedModel {
    recorder: Recorder,
    model: Arc<dyn ChatModel>,
}

#[async_trait]
impl ChatModel for RecordedModel {
    fn id(&self) -> &ModelId {
        self.model.id()
    }

    fn capabilities(&self) -> &ModelCapabilities {
        self.model.capabilities()
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let heard = Heard {
            catalogs: self.recorder.writer().catalogs,
            model: self.model.id().clone(),
            capabilities: self.model.capabilities().clone(),
            request: Arc::new(request.clone()),
            began: Instant::now(),
            events: Vec::new(),
        };
        // Also tells of a request that was given up before the answer began.
        let mut recorded = Recorded {
            recorder: self.recorder.clone(),
            heard: Some(heard),
            stream: None,
        };
        match self.model.stream(request).await {
            Ok(stream) => {
                recorded.stream = Some(stream);
                Ok(Box::pin(recorded))
            }
            Err(error) => {
                recorded.end(Some(End::Failed(Box::new((&error).into()))));
                Err(error)
            }
        }
    }
}

/// What was said until now.
struct Heard {
    catalogs: usize,
    model: ModelId,
    capabilities: ModelCapabilities,
    request: Arc<ChatRequest>,
    began: Instant,
    events: Vec<(u64, ModelEvent)>,
}

/// An answer that is written down when it is over.
struct Recorded {
    recorder: Recorder,
    heard: Option<Heard>,
    stream: Option<ModelStream>,
}

impl Recorded {
    fn end(&mut self, end: Option<End>) {
        if let Some(mut heard) = self.heard.take() {
            self.recorder.exchange(&mut heard, end);
        }
    }
}

impl Stream for Recorded {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(stream) = &mut this.stream else {
            return Poll::Ready(None);
        };
        let next = std::task::ready!(stream.as_mut().poll_next(context));
        match &next {
            Some(Ok(event)) => {
                if let Some(heard) = &mut this.heard {
                    if let ModelEvent::Retrying { .. } = event {
                        // The failed attempt is no part of the answer, and a replay does not wait.
                        heard.events.clear();
                        return Poll::Ready(next);
                    }
                    heard
                        .events
                        .push((millis(heard.began.elapsed()), event.clone()));
                }
            }
            Some(Err(error)) => {
                let fault = Box::new(error.into());
                this.end(Some(End::Failed(fault)));
            }
            None => this.end(None),
        }
        Poll::Ready(next)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // An answer that says it is complete is: nobody has to read on until the stream ends.
        let events = self.heard.iter().flat_map(|heard| &heard.events);
        let is_over = events
            .rev()
            .any(|(_, event)| matches!(event, ModelEvent::Finished { .. }));
        self.end((!is_over).then_some(End::Left));
    }
}

struct RecordedTools {
    recorder: Recorder,
    host: Arc<dyn ToolHost>,
}

#[async_trait]
impl ToolHost for RecordedTools {
    async fn tools(&self) -> ToolCatalog {
        let found = self.host.tools().await;
        self.recorder.write(|writer, scrubber| {
            // It is asked for before each request, and looking for secrets takes time.
            if writer.seen.as_ref() == Some(&found) {
                return Ok(());
            }
            writer.seen = Some(found.clone());
            let tools = serde_json::to_value(&found.tools).map_err(RecordingError::Unwritable)?;
            let tools = serde_json::from_value(scrubber.tools(tools))
                .map_err(RecordingError::Unwritable)?;
            let problems =
                serde_json::to_value(&found.problems).map_err(RecordingError::Unwritable)?;
            let problems = serde_json::from_value(scrubber.problems(problems))
                .map_err(RecordingError::Unwritable)?;
            let catalog = Catalog { tools, problems };
            if writer.catalog.as_ref() == Some(&catalog) {
                return Ok(());
            }
            writer.line(&Line::Catalog(Box::new(catalog.clone())))?;
            writer.catalog = Some(catalog);
            writer.catalogs += 1;
            Ok(())
        });
        found
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let number = {
            let mut writer = self.recorder.writer();
            writer.calls += 1;
            writer.calls
        };
        let mut heard = HeardCall {
            recorder: self.recorder.clone(),
            number,
            name: call.name.clone(),
            input: Value::Object(
                self.recorder
                    .visible(&call.name, call.input.clone().into_object()),
            ),
            began: Instant::now(),
            is_told: false,
        };
        let answer = self.host.call(call).await;
        let hidden = &self.recorder.hidden;
        heard.tell(match &answer {
            Ok(output) => {
                let mut output = output.clone();
                hidden.redact_output(&mut output);
                Outcome::Output(output)
            }
            Err(error) => {
                let mut fault = CallFault::from(error);
                for text in fault.texts_mut() {
                    *text = hidden.redact_text(text).into_owned();
                }
                Outcome::Failed(fault)
            }
        });
        answer
    }

    fn changes(&self) -> ToolHostChanges {
        self.host.changes()
    }
}

/// A call under way.
struct HeardCall {
    recorder: Recorder,
    /// How many calls began until then.
    number: usize,
    name: String,
    input: Value,
    began: Instant,
    is_told: bool,
}

impl HeardCall {
    fn tell(&mut self, outcome: Outcome) {
        self.is_told = true;
        let took_ms = millis(self.began.elapsed());
        self.recorder.write(|writer, scrubber| {
            let Value::Object(input) = scrubber.value(std::mem::take(&mut self.input)) else {
                return Ok(());
            };
            let outcome = serde_json::to_value(outcome).map_err(RecordingError::Unwritable)?;
            let outcome = serde_json::from_value(scrubber.outcome(outcome))
                .map_err(RecordingError::Unwritable)?;
            let name = scrubber.name(&self.name);
            writer.line(&Line::Call(Box::new(Call {
                track: self.recorder.track.clone(),
                began: self.number,
                name,
                input,
                took_ms,
                outcome,
            })))
        });
    }
}

impl Drop for HeardCall {
    fn drop(&mut self) {
        if !self.is_told {
            self.tell(Outcome::Left);
        }
    }
}

/// Only what a person may see.
impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("scrubber", &self.shared.scrubber)
            .field("track", &self.track)
            .finish_non_exhaustive()
    }
}
