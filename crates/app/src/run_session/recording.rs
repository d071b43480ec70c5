//! Recording and replay of the traffic of models and tools: `--record` and `--replay`.

mod recording_file;

use std::{
    fs::File,
    io::{self, BufReader},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Context as _, anyhow};
use clap::Args;
use switchboard_domain::{ChatModel, ModelCapabilities, ModelId, ToolCatalog, ToolHost};
use switchboard_evals::recording::{Player, Recorder, RequestMatching};
use switchboard_mcp_client::McpHost;
use switchboard_orchestration::{Agent, tools::arguments::ContextInjection};

use super::{
    context::context_values,
    failure::{Code, Failure},
};
use crate::{
    config::{Config, environment::Environment},
    models::{ChosenModel, ModelChoiceReason},
    observe::build_redactor,
    terminal,
};
use recording_file::RecordingFile;

/// Command-line options for recording and replay.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Recordings")]
pub(crate) struct RecordingArgs {
    /// Record model and tool traffic to FILE, with secrets redacted
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Replay a recording (no model or server is contacted)
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// How requests are matched: by the exact request, or in recorded order if requests contain
    /// changing data such as dates
    #[arg(
        long = "match",
        value_name = "HOW",
        value_parser = ["exact", "order"],
        default_value = "exact",
        requires = "replay"
    )]
    matching: String,
}

/// Recording mode of a command: record, replay or off.
#[derive(Debug, Clone, Default)]
pub(crate) enum RecordingMode {
    #[default]
    Off,
    Recording(Recorder),
    Replay(Player),
}

impl RecordingArgs {
    /// Opens the recording that `--replay` names. Without this option, the recording is off.
    pub(crate) fn open_replay(
        &self,
        config: &Config,
        environment: &Environment,
    ) -> Result<RecordingMode, Failure> {
        let Some(file) = &self.replay else {
            return Ok(RecordingMode::Off);
        };
        let open = || -> anyhow::Result<Player> {
            let opened =
                File::open(environment.working_dir.join(file)).map_err(simplify_io_error)?;
            // On some systems, a folder can be opened like a file, and only reading it fails.
            if opened.metadata().is_ok_and(|it| it.is_dir()) {
                return Err(simplify_io_error(io::ErrorKind::IsADirectory.into()));
            }
            let redactor = build_redactor(config, environment);
            Ok(Player::read_redacted(BufReader::new(opened), redactor)?)
        };
        let player = open().with_context(|| format!("cannot replay {}", file.display()));
        let player = player.map_err(Failure::usage_error)?;
        let matching = match self.matching.as_str() {
            "order" => RequestMatching::Order,
            _ => RequestMatching::Exact,
        };
        let player = player.with_request_matching(matching);
        Ok(RecordingMode::Replay(player.with_hidden_arguments(
            context_values::configured_context_values(config),
        )))
    }

    /// Returns whether this command replays a recording.
    pub(crate) fn is_replay(&self) -> bool {
        self.replay.is_some()
    }

    /// Opens the recording that `--record` names. Returns `None` without this option. Callers open
    /// it as the last step before servers start, because the first response replaces an older
    /// recording in the file.
    pub(crate) fn open_recording(
        &self,
        config: &Config,
        environment: &Environment,
    ) -> Result<Option<RecordingMode>, Failure> {
        let Some(file) = &self.record else {
            return Ok(None);
        };
        let open = || -> anyhow::Result<Recorder> {
            let path = environment.working_dir.join(file);
            let output = RecordingFile::open_recording_file(&path, file.display().to_string())
                .map_err(simplify_io_error)?;
            Ok(Recorder::new(
                output,
                &program_name_and_version(),
                build_redactor(config, environment),
            )?)
        };
        let recorder = open().with_context(|| format!("cannot record to {}", file.display()));
        let recorder = recorder.map_err(Failure::usage_error)?;
        Ok(Some(RecordingMode::Recording(
            recorder.with_hidden_arguments(context_values::configured_context_values(config)),
        )))
    }
}

/// Replaces technical I/O errors by errors whose messages users understand.
fn simplify_io_error(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::NotFound => anyhow!("file or folder not found"),
        io::ErrorKind::IsADirectory => anyhow!("it is a folder: choose a file in it"),
        _ => error.into(),
    }
}

/// Returns the program's name and version, as recordings and reports store them.
pub(crate) fn program_name_and_version() -> String {
    format!("switchboard {}", env!("CARGO_PKG_VERSION"))
}

impl RecordingMode {
    pub(crate) fn is_replay(&self) -> bool {
        matches!(self, Self::Replay(_))
    }

    /// Returns the part of the recording that belongs to the conversation `name`.
    pub(crate) fn select_conversation(&self, name: &str) -> Self {
        match self {
            Self::Off => Self::Off,
            Self::Recording(recorder) => Self::Recording(recorder.with_conversation(name)),
            Self::Replay(player) => Self::Replay(player.select_conversation(name)),
        }
    }

    /// Returns a copy of this mode that omits the tool arguments in `hidden` from the recording.
    fn with_hidden_arguments(&self, hidden: &ContextInjection) -> Self {
        let hidden = hidden.clone();
        match self {
            Self::Off => Self::Off,
            Self::Recording(recorder) => {
                Self::Recording(recorder.clone().with_hidden_arguments(hidden))
            }
            Self::Replay(player) => Self::Replay(player.clone().with_hidden_arguments(hidden)),
        }
    }

    /// Returns the part of the recording that belongs to one run of the HTTP server. A replay finds
    /// the part by its requests and ignores `number`, because runs may start in another order.
    pub(crate) fn select_run_recording(&self, number: u64) -> Self {
        match self {
            Self::Replay(player) => Self::Replay(player.detect_conversation()),
            Self::Off | Self::Recording(_) => self.select_conversation(&format!("run {number}")),
        }
    }

    /// Wraps the models and tools of an agent, so that their traffic is recorded or replayed.
    pub(crate) fn wrap_agent(&self, agent: Agent, has_tools: bool) -> Agent {
        if matches!(self, Self::Off) {
            return agent;
        }
        let tools = agent.tool_host().filter(|_| has_tools).cloned();
        let agent = agent.with_wrapped_models(|model| self.wrap_model(model));
        // Context values that the client sent for this run are hidden from the recording.
        let hiding = self.with_hidden_arguments(agent.context_injection());
        match tools {
            Some(tools) => agent.with_tools(hiding.wrap_tools(tools)),
            None => agent,
        }
    }

    /// Returns the models of a replayed recording with their capabilities. `None` if not a replay.
    pub(crate) fn recorded_models(&self) -> Option<Vec<(ModelId, ModelCapabilities)>> {
        let Self::Replay(player) = self else {
            return None;
        };
        let models = player.recorded_models().into_iter();
        let models = models.filter_map(|id| {
            let capabilities = player.replay_model(&id)?.capabilities().clone();
            Some((id, capabilities))
        });
        Some(models.collect())
    }

    /// Returns a model that records the responses of `model`, or in a replay a model that returns
    /// the recorded responses. Returns `model` unchanged if the recording is off or has no response
    /// of this model.
    pub(crate) fn wrap_model(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        match self {
            Self::Off => model,
            Self::Recording(recorder) => recorder.record_model(model),
            Self::Replay(player) => player.replay_model(model.id()).unwrap_or(model),
        }
    }

    /// Returns a tool host that records the results of `host`, or in a replay a tool host that
    /// returns the recorded results. Returns `host` unchanged if the recording is off or has no
    /// tools.
    pub(crate) fn wrap_tools(&self, host: Arc<dyn ToolHost>) -> Arc<dyn ToolHost> {
        match self {
            Self::Off => host,
            Self::Recording(recorder) => recorder.record_tools(host),
            Self::Replay(player) => player.replay_tools().unwrap_or(host),
        }
    }

    /// Returns the tools of a host. In a replay, returns the tools in the recording instead.
    pub(crate) async fn list_tools(&self, host: &Arc<McpHost>) -> ToolCatalog {
        match self {
            Self::Replay(_) => self.wrap_tools(Arc::clone(host) as _).list_tools().await,
            Self::Off | Self::Recording(_) => host.list_tools().await,
        }
    }

    /// Returns whether a replay has no recorded response of the model. `false` without a replay.
    pub(crate) fn lacks_recorded_model(&self, name: &str) -> bool {
        matches!(self, Self::Replay(player) if find_recorded_model(player, name).is_none())
    }

    /// Returns the model of a replay: the model that `flag` names, else the configured model, else
    /// the first model of the recording. Returns `None` if nothing is replayed.
    pub(crate) fn choose_recorded_model(
        &self,
        flag: Option<&str>,
        configured: Option<&str>,
    ) -> Option<Result<ChosenModel, Failure>> {
        let Self::Replay(player) = self else {
            return None;
        };
        let found = match flag {
            Some(name) => find_recorded_model(player, name),
            None => configured
                .and_then(|name| find_recorded_model(player, name))
                .or_else(|| player.recorded_models().into_iter().next()),
        };
        let model = found.and_then(|id| player.replay_model(&id));
        let chosen = model.map(|model| ChosenModel {
            model,
            reason: ModelChoiceReason::Named,
        });
        Some(chosen.ok_or_else(|| Failure::usage_error(missing_model_error(player, flag))))
    }

    /// Flushes the recording and returns the result of the command. If the recording failed,
    /// returns its error instead of [`Code::Success`]. For any other result, prints the error as a
    /// warning.
    pub(crate) fn finish_recording(&self, result: Result<Code, Failure>) -> Result<Code, Failure> {
        let Self::Recording(recorder) = self else {
            return result;
        };
        match (recorder.finish_recording(), result) {
            (Ok(()), result) => result,
            // The error is converted to text, so that the caller does not recognize a broken pipe.
            // The program ignores a broken pipe of standard output, but a broken pipe of the
            // recording is a failure.
            (Err(error), Ok(Code::Success)) => Err(Failure::runtime_error(anyhow!("{error}"))),
            (Err(error), result) => {
                terminal::print_warning(&error.to_string());
                result
            }
        }
    }
}

/// Returns the recorded model that has this id (`PROVIDER/MODEL`), model name or provider.
fn find_recorded_model(player: &Player, name: &str) -> Option<ModelId> {
    let name = name.trim_end_matches('/');
    let mut models = player.recorded_models().into_iter();
    models.find(|id| id.to_string() == name || &*id.name == name || &*id.provider == name)
}

/// Returns the error for a model that the replayed recording does not contain.
fn missing_model_error(player: &Player, name: Option<&str>) -> anyhow::Error {
    let models = player.recorded_models();
    let models: Vec<String> = models.iter().map(ToString::to_string).collect();
    match (name, models.as_slice()) {
        (_, []) => {
            anyhow!("the recording contains no model responses: record it again with --record")
        }
        (name, models) => anyhow!(
            "the recording has no responses from {}. Available: {}. Choose one of these models \
             with --model, or record again",
            name.unwrap_or("this model"),
            models.join(", ")
        ),
    }
}
