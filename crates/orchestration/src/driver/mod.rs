//! Drives a run with the ports.

mod drive;
mod model_calls;
mod publish;
pub mod questions;
mod stream;
mod tool_calls;

use std::{fmt, sync::Arc};

use futures_core::Stream;
use jiff::Timestamp;
use switchboard_domain::{Approver, ChatModel, Message, ModelId, Principal, Role, ToolHost};
use tracing::Instrument as _;
use uuid::Uuid;

use crate::{
    Run, RunEvent, RunOptions, SharedDecisions, SteadyClock,
    observe::trace::AgentTrace,
    persistence::checkpoint::Checkpoints,
    policy::limits::Pricing,
    questions::Questions,
    recipe::Recipe,
    strategy::{GatherFormat, Strategy, formatter::Form},
    tools::arguments::{ContextInjection, Validators},
    tools::functions::ToolSet,
    tools::per_definition::PerDefinition,
    tools::results::{OutputSchemas, ResultCache},
};
pub(crate) use publish::Publisher;
pub use stream::{CancelHandle, RunStream};

/// Tells the time for the events of a run.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Says what a model costs, if that is known.
pub type Prices = Arc<dyn Fn(&ModelId) -> Option<Pricing> + Send + Sync>;

/// A model with tools: everything that runs have in common. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    settings: Arc<Settings>,
}

/// What an agent is made of. Every run of it shares it.
#[derive(Clone)]
struct Settings {
    name: Option<Arc<str>>,
    /// The first is asked; the others stand in for those before them.
    models: Vec<Arc<dyn ChatModel>>,
    prices: Option<Prices>,
    tools: Option<Arc<dyn ToolHost>>,
    approver: Option<Arc<dyn Approver>>,
    decisions: Option<SharedDecisions>,
    redefined: Arc<[String]>,
    checkpoints: Option<Arc<dyn Checkpoints>>,
    questions: Option<Questions>,
    context: ContextInjection,
    cache: Option<Arc<ResultCache>>,
    recipe: Option<Arc<Recipe>>,
    instructions: Option<Arc<Message>>,
    principal: Principal,
    session: Option<String>,
    options: Arc<RunOptions>,
    clock: Clock,
    steady: SteadyClock,
    validators: Validators,
    /// The tokens of each tool definition.
    weights: Arc<PerDefinition<u64>>,
    outputs: OutputSchemas,
}

impl Agent {
    /// An agent that has no tools yet.
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        let settings = Settings {
            name: None,
            models: vec![model],
            prices: None,
            tools: None,
            approver: None,
            decisions: None,
            redefined: Arc::new([]),
            checkpoints: None,
            questions: None,
            context: ContextInjection::default(),
            cache: None,
            recipe: None,
            instructions: None,
            principal: Principal::default(),
            session: None,
            options: Arc::default(),
            clock: publish::system_clock(),
            steady: SteadyClock::new(),
            validators: Validators::default(),
            weights: Arc::default(),
            outputs: OutputSchemas::default(),
        };
        Self {
            settings: Arc::new(settings),
        }
    }

    /// Changes this agent, and none that it was cloned from.
    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// Names it, for traces.
    #[must_use]
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        self.with(|settings| settings.name = Some(name.into()))
    }

    /// Adds a model that goes on when those before it fail before they showed anything.
    #[must_use]
    pub fn with_fallback(self, model: Arc<dyn ChatModel>) -> Self {
        self.with(|settings| settings.models.push(model))
    }

    /// Puts something in the place of each of its models, such as what writes down what they say.
    #[must_use]
    pub fn with_each_model(
        self,
        change: impl FnMut(Arc<dyn ChatModel>) -> Arc<dyn ChatModel>,
    ) -> Self {
        self.with(|settings| {
            let models = std::mem::take(&mut settings.models).into_iter();
            settings.models = models.map(change).collect();
        })
    }

    /// Says what models cost, for limits of cost.
    #[must_use]
    pub fn with_prices(
        self,
        prices: impl Fn(&ModelId) -> Option<Pricing> + Send + Sync + 'static,
    ) -> Self {
        self.with(|settings| settings.prices = Some(Arc::new(prices)))
    }

    /// Shares what people decided before, so that they are not asked again.
    #[must_use]
    pub fn with_decisions(self, decisions: SharedDecisions) -> Self {
        self.with(|settings| settings.decisions = Some(decisions))
    }

    /// Names tools whose definition is not what it was when somebody last looked at it.
    #[must_use]
    pub fn with_redefined_tools(self, names: impl IntoIterator<Item = String>) -> Self {
        self.with(|settings| settings.redefined = names.into_iter().collect())
    }

    /// Stores runs while they go on.
    #[must_use]
    pub fn with_checkpoints(self, checkpoints: Arc<dyn Checkpoints>) -> Self {
        self.with(|settings| settings.checkpoints = Some(checkpoints))
    }

    /// Tells what servers ask of the person in the middle of its calls as events of its runs. The same value
    /// is to be the host's elicitor.
    #[must_use]
    pub fn with_questions(self, questions: Questions) -> Self {
        self.with(|settings| settings.questions = Some(questions))
    }

    /// Gives tools values that the model neither sees nor writes. Placeholders in them are filled for each run.
    #[must_use]
    pub fn with_context(self, context: ContextInjection) -> Self {
        self.with(|settings| settings.context = context)
    }

    /// What tools are given that the model neither sees nor writes.
    pub fn context(&self) -> &ContextInjection {
        &self.settings.context
    }

    /// Gives results of read-only tools again without calling them.
    #[must_use]
    pub fn with_cache(self, cache: Arc<ResultCache>) -> Self {
        self.with(|settings| settings.cache = Some(cache))
    }

    /// Follows a recipe in the tools it offers, in its instructions and with its examples. What else a
    /// recipe says (model, limits, approvals, strategy) is a matter of options.
    #[must_use]
    pub fn with_recipe(self, recipe: Arc<Recipe>) -> Self {
        self.with(|settings| {
            if let Some(instructions) = recipe.instructions() {
                settings.instructions = Some(Arc::new(Message::system(instructions)));
            }
            settings.recipe = Some(recipe);
        })
    }

    /// Works on behalf of somebody, in a session.
    #[must_use]
    pub fn on_behalf_of(self, principal: Principal, session: Option<String>) -> Self {
        self.with(|settings| {
            settings.principal = principal;
            settings.session = session;
        })
    }

    /// Gives it tools.
    #[must_use]
    pub fn with_tools(self, tools: Arc<dyn ToolHost>) -> Self {
        self.with(|settings| settings.tools = Some(tools))
    }

    /// What offers its tools, where it has some.
    pub fn tools(&self) -> Option<&Arc<dyn ToolHost>> {
        self.settings.tools.as_ref()
    }

    /// Gives it the tools of one more server, beside those it has. Whatever else is configured, each of their calls
    /// waits for somebody's word before it is made: what was answered before is no answer to it. The tools get
    /// nothing from the context.
    #[must_use]
    pub fn with_asked_tools(self, server: &str, tools: Arc<dyn ToolHost>) -> Self {
        self.with(|settings| {
            settings.tools = Some(match settings.tools.take() {
                None => tools,
                Some(others) => Arc::new(ToolSet::new().with_shared(others).with_shared(tools)),
            });
            settings.context = settings.context.clone().without_server(server);
            let options = Arc::make_mut(&mut settings.options);
            options.approval.asked_servers.push(server.to_owned());
        })
    }

    /// Has its runs gather first and answer in this form then, whatever form a recipe or the options have for it.
    #[must_use]
    pub fn with_answer_form(self, form: &Form) -> Self {
        self.with(|settings| {
            let gather = match &settings.options.strategy {
                Strategy::GatherFormat(gather) => gather.clone(),
                Strategy::Loop => GatherFormat::default(),
            };
            Arc::make_mut(&mut settings.options).strategy = Strategy::GatherFormat(GatherFormat {
                schema: Some(form.schema().clone()),
                ..gather
            });
        })
    }

    /// Gives it somebody to ask. Without, a call that needs approval is not executed.
    #[must_use]
    pub fn with_approver(self, approver: Arc<dyn Approver>) -> Self {
        self.with(|settings| settings.approver = Some(approver))
    }

    /// Puts instructions before every conversation that does not begin with some.
    #[must_use]
    pub fn with_instructions(self, text: impl Into<String>) -> Self {
        self.with(|settings| settings.instructions = Some(Arc::new(Message::system(text))))
    }

    /// Sets what its runs may do.
    #[must_use]
    pub fn with_options(self, options: RunOptions) -> Self {
        self.with(|settings| settings.options = Arc::new(options))
    }

    /// What its runs may do.
    pub fn options(&self) -> &RunOptions {
        &self.settings.options
    }

    /// Takes the time of its events from elsewhere than the system.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        self.with(|settings| settings.clock = clock)
    }

    /// Measures how long approval requests wait by this clock. Agents of one process share it, so that a run that
    /// one of them stores expires in another one as it would have.
    #[must_use]
    pub fn with_steady_clock(self, clock: SteadyClock) -> Self {
        self.with(|settings| settings.steady = clock)
    }

    /// Answers a question.
    pub fn ask(&self, question: impl Into<String>) -> RunStream {
        self.run(vec![Arc::new(Message::user(question))])
    }

    /// Answers the last message of a conversation.
    pub fn run(&self, messages: Vec<Arc<Message>>) -> RunStream {
        let id = Uuid::now_v7().to_string();
        let (principal, session) = (&self.settings.principal, &self.settings.session);
        let run = self.prepare(id, messages, principal.clone(), session.clone());
        self.start(run, false)
    }

    /// A run that answers the last message of a conversation, on somebody's behalf.
    pub(crate) fn prepare(
        &self,
        id: String,
        mut messages: Vec<Arc<Message>>,
        principal: Principal,
        session: Option<String>,
    ) -> Run {
        if let Some(instructions) = &self.settings.instructions {
            let has_some = messages
                .first()
                .is_some_and(|first| first.role == Role::System);
            if !has_some {
                messages.insert(0, Arc::clone(instructions));
            }
        }
        let options = Arc::clone(&self.settings.options);
        Run::new(id, self.first_model(), messages, options).with_principal(principal, session)
    }

    /// What time it is for its runs.
    pub(crate) fn now(&self) -> Timestamp {
        (self.settings.clock)()
    }

    /// The model that is asked first.
    fn first_model(&self) -> ModelId {
        match self.settings.models.first() {
            Some(model) => model.id().clone(),
            None => ModelId::new("none", "none"),
        }
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
        let (publisher, events) = publish::Publisher::new(&run, Arc::clone(&self.settings.clock));
        let traced = AgentTrace::begin(
            self.settings.name.as_deref(),
            run.id(),
            run.model(),
            run.session(),
        );
        let span = traced.span();
        let driver = drive::Driver::new(Arc::clone(&self.settings), &run, publisher, traced);
        let (driver, run) = (Box::new(driver), Box::new(run));
        // The box is there before the future: the compiler makes it in its place, where it else would move some
        // kilobytes.
        let room = Box::new_uninit();
        let whole = Box::write(room, driver.drive(run, resumed).instrument(span));
        RunStream::new(events, Box::into_pin(whole))
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("model", &self.first_model())
            .field("options", &self.settings.options)
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
