//! Drives a run with the ports.

mod drive;
mod publish;
mod stream;

use std::{fmt, sync::Arc};

use futures_core::Stream;
use jiff::Timestamp;
use switchboard_domain::{Approver, ChatModel, Message, ToolHost};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Run, RunEvent, RunOptions};
pub use stream::{CancelHandle, RunStream};

/// Tells the time for the events of a run.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A model with tools: everything that runs have in common. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    model: Arc<dyn ChatModel>,
    tools: Option<Arc<dyn ToolHost>>,
    approver: Option<Arc<dyn Approver>>,
    instructions: Option<Arc<Message>>,
    options: RunOptions,
    clock: Clock,
}

impl Agent {
    /// An agent that has no tools yet.
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        Self {
            model,
            tools: None,
            approver: None,
            instructions: None,
            options: RunOptions::default(),
            clock: publish::system_clock(),
        }
    }

    /// Gives it tools.
    #[must_use]
    pub fn with_tools(mut self, tools: Arc<dyn ToolHost>) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Gives it somebody to ask. Without, a call that needs approval is not executed.
    #[must_use]
    pub fn with_approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Puts instructions before every conversation that does not begin with some.
    #[must_use]
    pub fn with_instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(Arc::new(Message::system(text)));
        self
    }

    /// Sets what its runs may do.
    #[must_use]
    pub fn with_options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }

    /// Takes the time of its events from elsewhere than the system.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Answers a question.
    pub fn ask(&self, question: impl Into<String>) -> RunStream {
        self.run(vec![Arc::new(Message::user(question))])
    }

    /// Answers the last message of a conversation.
    pub fn run(&self, mut messages: Vec<Arc<Message>>) -> RunStream {
        if let Some(instructions) = &self.instructions {
            let has_some = messages
                .first()
                .is_some_and(|first| first.role == switchboard_domain::Role::System);
            if !has_some {
                messages.insert(0, Arc::clone(instructions));
            }
        }
        let id = Uuid::now_v7().to_string();
        self.start(
            Run::new(id, self.model.id().clone(), messages, self.options.clone()),
            false,
        )
    }

    /// Goes on with a run that was stored.
    pub fn resume(&self, run: Run) -> RunStream {
        self.start(run, true)
    }

    /// Drives a run that was made by hand, with an id of the caller's choice.
    pub fn drive(&self, run: Run) -> RunStream {
        self.start(run, false)
    }

    fn start(&self, run: Run, resumed: bool) -> RunStream {
        let cancel = CancellationToken::new();
        let (publisher, events) = publish::Publisher::new(&run, Arc::clone(&self.clock));
        let driver = drive::Driver::new(self.clone(), publisher, cancel.clone());
        RunStream::new(events, cancel, Box::pin(driver.drive(run, resumed)))
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("model", &self.model.id())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn is_stream<S: Stream<Item = RunEvent> + Send>() {}
    is_stream::<RunStream>();
};

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
