//! The driver: executes the steps of a run with a model, a tool host and an approver.

pub mod checkpoint;
mod event_publisher;
mod model_calls;
pub mod questions;
mod run_driver;
mod run_stream;
mod tool_calls;

use std::sync::Arc;

use futures_util::FutureExt as _;
use jiff::Timestamp;
use switchboard_domain::{Approver, ChatModel, Message, ModelId, Principal, Role, ToolHost};
use tracing::Instrument as _;
use uuid::Uuid;

use self::checkpoint::CheckpointStore;
use crate::{
    MonotonicClock, Run, RunOptions, SharedDecisions,
    observe::trace::AgentTrace,
    policy::limits::{Pricing, SharedCallRates},
    questions::Questions,
    recipe::Recipe,
    strategy::{GatherFormat, Strategy, formatter::AnswerSchema},
    tools::arguments::{ContextInjection, InputValidators},
    tools::functions::ToolSet,
    tools::results::ResultCache,
};
pub use event_publisher::Clock;
pub use run_stream::{CancelHandle, RunStream};

/// A function that returns the price of a model, or `None` if the price is unknown.
pub type Prices = Arc<dyn Fn(&ModelId) -> Option<Pricing> + Send + Sync>;

/// A model with tools and settings, which starts runs. Clones share the settings.
#[derive(Clone, derive_more::Debug)]
#[debug("Agent {{ model: {}, options: {:?}, .. }}", self.first_model_id(), settings.options)]
pub struct Agent {
    settings: Arc<AgentSettings>,
}

/// The settings of an agent. Clones of an agent share them until one clone changes a setting.
#[derive(Clone, Default)]
struct AgentSettings {
    name: Option<Arc<str>>,
    /// The models in order of preference: the first is called, the others are fallbacks.
    models: Vec<Arc<dyn ChatModel>>,
    prices: Option<Prices>,
    tools: Option<Arc<dyn ToolHost>>,
    approver: Option<Arc<dyn Approver>>,
    decisions: Option<SharedDecisions>,
    call_rates: SharedCallRates,
    redefined: Arc<[String]>,
    checkpoints: Option<Arc<dyn CheckpointStore>>,
    questions: Option<Questions>,
    context: ContextInjection,
    cache: Option<Arc<ResultCache>>,
    recipe: Option<Arc<Recipe>>,
    instructions: Option<Arc<Message>>,
    principal: Principal,
    session: Option<String>,
    options: Arc<RunOptions>,
    /// Source of the event times; `None` uses the system clock.
    clock: Option<Clock>,
    monotonic_clock: MonotonicClock,
    validators: InputValidators,
}

impl AgentSettings {
    fn current_time(&self) -> Timestamp {
        self.clock
            .as_ref()
            .map_or_else(Timestamp::now, |clock| clock())
    }
}

impl Agent {
    /// Creates an agent without tools.
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        let settings = AgentSettings {
            models: vec![model],
            ..AgentSettings::default()
        };
        Self {
            settings: Arc::new(settings),
        }
    }

    /// Changes the settings of this agent. Its clones keep their settings.
    fn change_settings(mut self, change: impl FnOnce(&mut AgentSettings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// Sets the name of the agent in traces. The default is `switchboard`.
    #[must_use]
    pub fn with_name(self, name: impl Into<Arc<str>>) -> Self {
        self.change_settings(|settings| settings.name = Some(name.into()))
    }

    /// Adds a fallback model. The agent switches to it if the previous models fail before they emit
    /// output.
    #[must_use]
    pub fn with_fallback(self, model: Arc<dyn ChatModel>) -> Self {
        self.change_settings(|settings| settings.models.push(model))
    }

    /// Replaces each model of the agent by the model that `change` returns. For example, `change`
    /// wraps the model to record the traffic with the provider.
    #[must_use]
    pub fn with_wrapped_models(
        self,
        change: impl FnMut(Arc<dyn ChatModel>) -> Arc<dyn ChatModel>,
    ) -> Self {
        self.change_settings(|settings| {
            let models = std::mem::take(&mut settings.models).into_iter();
            settings.models = models.map(change).collect();
        })
    }

    /// Sets the function that returns the price of a model. A run with a cost limit does not call a
    /// model without a known price.
    #[must_use]
    pub fn with_model_prices(
        self,
        prices: impl Fn(&ModelId) -> Option<Pricing> + Send + Sync + 'static,
    ) -> Self {
        self.change_settings(|settings| settings.prices = Some(Arc::new(prices)))
    }

    /// Sets the store of approval decisions that several runs share. A person who has decided about
    /// a tool in one run is not asked again in another run.
    #[must_use]
    pub fn with_shared_decisions(self, decisions: SharedDecisions) -> Self {
        self.change_settings(|settings| settings.decisions = Some(decisions))
    }

    /// Sets the counter for limits of tool calls per minute. By default, the runs of this agent and
    /// of its clones share a counter in memory.
    #[must_use]
    pub fn with_shared_call_rates(self, rates: SharedCallRates) -> Self {
        self.change_settings(|settings| settings.call_rates = rates)
    }

    /// Sets the names of tools whose definition changed since a person last saw it. Approval checks
    /// do not trust the annotations of these tools, such as read-only.
    #[must_use]
    pub fn with_redefined_tools(self, names: impl IntoIterator<Item = String>) -> Self {
        self.change_settings(|settings| settings.redefined = names.into_iter().collect())
    }

    /// Sets the store that saves runs at checkpoints, so that another process can resume them.
    #[must_use]
    pub fn with_checkpoints(self, checkpoints: Arc<dyn CheckpointStore>) -> Self {
        self.change_settings(|settings| settings.checkpoints = Some(checkpoints))
    }

    /// Sets the registry that publishes questions of tool servers as events of the run. The tool
    /// host must use the same value as its [`Elicitor`](switchboard_domain::Elicitor).
    #[must_use]
    pub fn with_question_registry(self, questions: Questions) -> Self {
        self.change_settings(|settings| settings.questions = Some(questions))
    }

    /// Sets values that are added to tool inputs and hidden from the model. Placeholders in the
    /// values, such as `${session.id}`, are filled for each run.
    #[must_use]
    pub fn with_context_injection(self, context: ContextInjection) -> Self {
        self.change_settings(|settings| settings.context = context)
    }

    /// Returns the tool input values that are hidden from the model.
    pub fn context_injection(&self) -> &ContextInjection {
        &self.settings.context
    }

    /// Sets the cache for results of read-only tools.
    #[must_use]
    pub fn with_result_cache(self, cache: Arc<ResultCache>) -> Self {
        self.change_settings(|settings| settings.cache = Some(cache))
    }

    /// Applies the tools, instructions and examples of a recipe (agent settings from a file). Its
    /// model, limits, approvals and strategy are set with the run options instead.
    #[must_use]
    pub fn with_recipe(self, recipe: Arc<Recipe>) -> Self {
        self.change_settings(|settings| {
            if let Some(instructions) = recipe.system_prompt() {
                settings.instructions = Some(Arc::new(Message::system(instructions)));
            }
            settings.recipe = Some(recipe);
        })
    }

    /// Sets the principal (user and tenant) and the session id of the agent's runs.
    #[must_use]
    pub fn with_principal(self, principal: Principal, session: Option<String>) -> Self {
        self.change_settings(|settings| {
            settings.principal = principal;
            settings.session = session;
        })
    }

    /// Sets the tool host, which lists the tools and executes their calls.
    #[must_use]
    pub fn with_tools(self, tools: Arc<dyn ToolHost>) -> Self {
        self.change_settings(|settings| settings.tools = Some(tools))
    }

    /// Returns the tool host, which lists the tools and executes their calls.
    pub fn tool_host(&self) -> Option<&Arc<dyn ToolHost>> {
        self.settings.tools.as_ref()
    }

    /// Adds tools of the server `server`. Each call of these tools needs an approval, even if a
    /// rule or an earlier decision allows the tool. The values of [`Agent::with_context_injection`]
    /// are not added to the inputs of these tools.
    #[must_use]
    pub fn with_tools_requiring_approval(self, server: &str, tools: Arc<dyn ToolHost>) -> Self {
        self.change_settings(|settings| {
            settings.tools = Some(match settings.tools.take() {
                None => tools,
                Some(others) => Arc::new(
                    ToolSet::new()
                        .with_shared_host(others)
                        .with_shared_host(tools),
                ),
            });
            settings.context = settings.context.clone().with_excluded_server(server);
            let options = Arc::make_mut(&mut settings.options);
            options.approval.always_ask_servers.push(server.to_owned());
        })
    }

    /// Makes runs gather data with tools first and then write the answer in the format of this
    /// schema ([`Strategy::GatherFormat`]). Replaces another strategy that the run options set
    /// earlier.
    #[must_use]
    pub fn with_answer_schema(self, form: &AnswerSchema) -> Self {
        self.change_settings(|settings| {
            let gather = match &settings.options.strategy {
                Strategy::GatherFormat(gather) => gather.clone(),
                Strategy::Loop => GatherFormat::default(),
            };
            Arc::make_mut(&mut settings.options).strategy = Strategy::GatherFormat(GatherFormat {
                schema: Some(form.json_schema().clone()),
                ..gather
            });
        })
    }

    /// Sets the approver, which decides whether tool calls may run. Without an approver, calls that
    /// need an approval are not executed.
    #[must_use]
    pub fn with_approver(self, approver: Arc<dyn Approver>) -> Self {
        self.change_settings(|settings| settings.approver = Some(approver))
    }

    /// Sets the instructions. They become the first message, with the role `system`, of a
    /// conversation that has no system message at its start.
    #[must_use]
    pub fn with_instructions(self, text: impl Into<String>) -> Self {
        self.change_settings(|settings| {
            settings.instructions = Some(Arc::new(Message::system(text)));
        })
    }

    /// Sets the options that each run starts with.
    #[must_use]
    pub fn with_options(self, options: RunOptions) -> Self {
        self.change_settings(|settings| settings.options = Arc::new(options))
    }

    /// Returns the options that each run starts with.
    pub fn run_options(&self) -> &RunOptions {
        &self.settings.options
    }

    /// Sets the clock for the times of events. By default, it is the system clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        self.change_settings(|settings| settings.clock = Some(clock))
    }

    /// Sets the clock by which approval requests expire. The agents of a process share one clock. A
    /// request then keeps its expiry if one agent stores the run and another agent resumes it.
    #[must_use]
    pub fn with_monotonic_clock(self, clock: MonotonicClock) -> Self {
        self.change_settings(|settings| settings.monotonic_clock = clock)
    }

    /// Starts a run in which the model answers a question.
    pub fn ask(&self, question: impl Into<String>) -> RunStream {
        self.run(vec![Arc::new(Message::user(question))])
    }

    /// Starts a run that answers the last message of a conversation.
    pub fn run(&self, messages: Vec<Arc<Message>>) -> RunStream {
        let id = Uuid::now_v7().to_string();
        let (principal, session) = (&self.settings.principal, &self.settings.session);
        let run = self.create_run(id, messages, principal.clone(), session.clone());
        self.start_driver(run, false)
    }

    /// Creates a run that answers the last message of `messages`. If they do not start with a
    /// system message, the agent's instructions are added.
    pub(crate) fn create_run(
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
        Run::new(id, self.first_model_id(), messages, options).with_principal(principal, session)
    }

    /// Returns the current time of the agent's clock, or of the system clock without one.
    pub(crate) fn current_time(&self) -> Timestamp {
        self.settings.current_time()
    }

    /// Returns the id of the model that is called first.
    fn first_model_id(&self) -> ModelId {
        let first = self.settings.models.first();
        first.map_or_else(|| ModelId::new("none", "none"), |model| model.id().clone())
    }

    /// Resumes a stored run. Returns the stream of its further events.
    pub fn resume_run(&self, run: Run) -> RunStream {
        self.start_driver(run, true)
    }

    /// Executes a run that the caller created. Returns the stream of its events.
    pub fn drive_run(&self, run: Run) -> RunStream {
        self.start_driver(run, false)
    }

    fn start_driver(&self, run: Run, resumed: bool) -> RunStream {
        let settings = Arc::clone(&self.settings);
        let clock: Clock = Arc::new(move || settings.current_time());
        let (publisher, events) = event_publisher::EventPublisher::new(&run, clock);
        let trace = AgentTrace::open_span(
            self.settings.name.as_deref(),
            run.id(),
            run.model_id(),
            run.session_id(),
        );
        let (span, cancellation) = (trace.clone_span(), publisher.cancellation_token().clone());
        let driver = run_driver::RunDriver::new(Arc::clone(&self.settings), &run, publisher, trace);
        let driving = Box::new(driver).execute_run(Box::new(run), resumed);
        RunStream::new(events, cancellation, driving.instrument(span).boxed())
    }
}
