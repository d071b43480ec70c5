//! Recordings of what models and tools say: `--record` and `--replay`.

mod reel;

use std::{
    fs::File,
    io::{self, BufReader, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use switchboard_domain::{ChatModel, ModelCapabilities, ModelId, ToolHost};
use switchboard_evals::recording::{Matching, Pace, Player, Recorder, Scrubber};
use switchboard_orchestration::{Agent, tools::arguments::ContextInjection};

use crate::{
    cli::{Code, Failure, agent::Plan, context::Context},
    injection,
    model::{Because, Chosen},
    observe::known_secrets,
    terminal,
};
use reel::Reel;

/// What is written down of runs, or what they are had again from.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Recordings")]
pub(crate) struct TapeArgs {
    /// Write all that models and tools say into this file, without secrets, so that it can be had again
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Have what this recording holds again: no model is asked and no server started
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// How fast recorded answers come
    #[arg(long, value_enum, default_value_t, requires = "replay")]
    pace: PaceArg,
    /// How recorded answers are found: for the same request, or in their order whatever is asked, where
    /// requests hold such things as a date
    #[arg(long = "match", value_enum, default_value_t, requires = "replay")]
    matching: MatchArg,
}

/// How fast recorded answers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum PaceArg {
    /// At once
    #[default]
    AtOnce,
    /// As they came then
    Recorded,
}

/// How recorded answers are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum MatchArg {
    /// The same request
    #[default]
    Exact,
    /// In their order
    Order,
}

/// What models and tools say is written down, or had again, or neither.
#[derive(Debug, Clone, Default)]
pub(crate) enum Tape {
    /// Neither.
    #[default]
    Off,
    /// Written down.
    Recording(Recorder),
    /// Had again.
    Replay(Player),
}

impl TapeArgs {
    /// The recording that is had again, if one is named.
    pub(crate) fn replay(&self, context: &Context) -> Result<Tape, Failure> {
        let Some(file) = &self.replay else {
            return Ok(Tape::Off);
        };
        let path = context.environment.working_dir.join(file);
        let told = |error: anyhow::Error| {
            Failure::usage(error).context(format!("{} cannot be had again", file.display()))
        };
        let opened = File::open(&path).map_err(|error| told(plainly(error)))?;
        // On some systems a folder can be opened, and then not be read.
        if opened.metadata().is_ok_and(|it| it.is_dir()) {
            let folder = io::ErrorKind::IsADirectory.into();
            return Err(told(plainly(folder)));
        }
        let player = Player::with_scrubber(BufReader::new(opened), scrubber(context));
        let player = player.map_err(|error| told(error.into()))?;
        let matching = match self.matching {
            MatchArg::Exact => Matching::Exact,
            MatchArg::Order => Matching::Order,
        };
        let pace = match self.pace {
            PaceArg::AtOnce => Pace::AtOnce,
            PaceArg::Recorded => Pace::Recorded,
        };
        let hidden = injection::configured(&context.config);
        let player = player.with_matching(matching).with_pace(pace);
        Ok(Tape::Replay(player.hiding(hidden)))
    }

    /// Whether a recording is had again: then no server is started, and no model asked.
    pub(crate) fn is_replay(&self) -> bool {
        self.replay.is_some()
    }

    /// The file of the recording that is made, and of the one that is had again.
    pub(crate) fn files(&self) -> [Option<&Path>; 2] {
        [self.record.as_deref(), self.replay.as_deref()]
    }

    /// Begins the recording that is named, if one is: what was planned is written down from now on. A recording that
    /// is there already is replaced only when nothing can be wrong any more, so this comes last before servers start.
    pub(crate) fn begin(&self, context: &mut Context, plan: &mut Plan) -> Result<(), Failure> {
        if let Some(tape) = self.record(context)? {
            plan.record(&tape);
            context.tape = tape;
        }
        Ok(())
    }

    /// The recording that is begun, if one is named. Its file is this run's alone from now on; what stands in it is
    /// replaced when there is something to write down.
    pub(crate) fn record(&self, context: &Context) -> Result<Option<Tape>, Failure> {
        let Some(file) = &self.record else {
            return Ok(None);
        };
        let path = context.environment.working_dir.join(file);
        let begun = begin(&path, file, scrubber(context)).map_err(|error| {
            Failure::usage(error).context(format!("nothing can be recorded in {}", file.display()))
        })?;
        let hidden = injection::configured(&context.config);
        Ok(Some(Tape::Recording(begun.hiding(hidden))))
    }
}

fn begin(path: &Path, name: &Path, scrubber: Scrubber) -> anyhow::Result<Recorder> {
    let reel = Reel::open(path).map_err(plainly)?;
    let told = Told {
        to: reel,
        name: name.display().to_string(),
        has_begun: false,
    };
    Ok(Recorder::new(told, &program(), scrubber)?)
}

/// Says at once that nothing more can be written: what is recorded may go on for days, and its end is not looked at.
struct Told<W> {
    to: W,
    name: String,
    /// Before that the command ends with what is wrong.
    has_begun: bool,
}

impl<W: Write> Write for Told<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes);
        match &written {
            Ok(_) => self.has_begun = true,
            Err(error) if self.has_begun && error.kind() != io::ErrorKind::Interrupted => {
                terminal::say_warning(&format!(
                    "nothing more is recorded in {}: {error}",
                    self.name
                ));
            }
            Err(_) => {}
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// An error that a name leads to, without "(os error 2)".
fn plainly(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::NotFound => anyhow!("there is no such file or folder"),
        io::ErrorKind::IsADirectory => anyhow!("it is a folder: name a file in it"),
        _ => error.into(),
    }
}

/// This program, as recordings and reports name it.
pub(crate) fn program() -> String {
    format!("switchboard {}", env!("CARGO_PKG_VERSION"))
}

/// Takes the secrets out that this process knows of, and what reads like one.
pub(crate) fn scrubber(context: &Context) -> Scrubber {
    let mut known = known_secrets(&context.config, &context.environment);
    let variables = context.providers.iter().filter_map(|it| it.key_variable());
    let keys = variables.filter_map(|variable| context.environment.get(variable));
    known.extend(keys.map(str::to_owned));
    Scrubber::new(known)
}

impl Tape {
    pub(crate) fn is_replay(&self) -> bool {
        matches!(self, Self::Replay(_))
    }

    /// The part of it that is one conversation's, where several go on at once.
    pub(crate) fn track(&self, name: &str) -> Self {
        match self {
            Self::Off => Self::Off,
            Self::Recording(recorder) => Self::Recording(recorder.track(name)),
            Self::Replay(player) => Self::Replay(player.track(name)),
        }
    }

    /// Returns this recording without the values of `hidden`.
    fn hiding(&self, hidden: &ContextInjection) -> Self {
        let hidden = hidden.clone();
        match self {
            Self::Off => Self::Off,
            Self::Recording(recorder) => Self::Recording(recorder.clone().hiding(hidden)),
            Self::Replay(player) => Self::Replay(player.clone().hiding(hidden)),
        }
    }

    /// The part of it that is one run's of a server, which is recorded under this number. Who has it again begins
    /// runs in another order: there it is found by what it asks.
    pub(crate) fn run(&self, number: u64) -> Self {
        match self {
            Self::Replay(player) => Self::Replay(player.conversation()),
            Self::Off | Self::Recording(_) => self.track(&format!("run {number}")),
        }
    }

    /// The same agent with what its models and its tools say written down, or had again.
    pub(crate) fn of(&self, agent: Agent, has_tools: bool) -> Agent {
        if matches!(self, Self::Off) {
            return agent;
        }
        let tools = agent.tools().filter(|_| has_tools).cloned();
        let agent = agent.with_each_model(|model| match self {
            Self::Replay(player) => player.model(model.id()).unwrap_or(model),
            Self::Off | Self::Recording(_) => self.recorded(model),
        });
        // Also without the values that the client sent for this run.
        let hiding = self.hiding(agent.context());
        match tools {
            Some(tools) => agent.with_tools(hiding.tools(tools)),
            None => agent,
        }
    }

    /// The models of a recording that is had again, with what they can; `None` if none is.
    pub(crate) fn models(&self) -> Option<Vec<(ModelId, ModelCapabilities)>> {
        let Self::Replay(player) = self else {
            return None;
        };
        let models = player.models().into_iter();
        let models = models.filter_map(|id| {
            let capabilities = player.model(&id)?.capabilities().clone();
            Some((id, capabilities))
        });
        Some(models.collect())
    }

    /// The same model, written down where something is.
    pub(crate) fn recorded(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        match self {
            Self::Recording(recorder) => recorder.model(model),
            Self::Off | Self::Replay(_) => model,
        }
    }

    /// The tools of a host, written down; or those that were recorded instead of them.
    pub(crate) fn tools(&self, host: Arc<dyn ToolHost>) -> Arc<dyn ToolHost> {
        match self {
            Self::Off => host,
            Self::Recording(recorder) => recorder.tools(host),
            Self::Replay(player) => player.tools().unwrap_or(host),
        }
    }

    /// Whether it is had again and has nothing of this model.
    pub(crate) fn lacks(&self, name: &str) -> bool {
        match self {
            Self::Replay(player) => named(player, name).is_none(),
            Self::Off | Self::Recording(_) => false,
        }
    }

    /// The model that answers from it: the one that `flag` names, else the configured one, else the first that
    /// was asked. `None` if nothing is had again.
    pub(crate) fn choose(
        &self,
        flag: Option<&str>,
        configured: Option<&str>,
    ) -> Option<Result<Chosen, Failure>> {
        let Self::Replay(player) = self else {
            return None;
        };
        let found = if let Some(name) = flag {
            named(player, name)
        } else {
            let configured = configured.and_then(|name| named(player, name));
            configured.or_else(|| player.models().into_iter().next())
        };
        let model = found.and_then(|id| player.model(&id));
        let chosen = model.map(|model| Chosen {
            model,
            because: Because::Named,
        });
        Some(chosen.ok_or_else(|| Failure::usage(nothing_of(player, flag))))
    }

    /// How the command ends: what was recorded must be on the disk.
    pub(crate) fn finish(&self, result: Result<Code, Failure>) -> Result<Code, Failure> {
        let Self::Recording(recorder) = self else {
            return result;
        };
        match (recorder.finish(), result) {
            (Ok(()), result) => result,
            // In words alone: a pipe that nobody reads is no fault where it is the answer's, and one here.
            (Err(error), Ok(Code::Success)) => Err(Failure::run(anyhow!("{error}"))),
            (Err(error), result) => {
                terminal::say_warning(&error.to_string());
                result
            }
        }
    }
}

/// Returns the model of a recording by `PROVIDER/MODEL`, its name or its provider.
fn named(player: &Player, name: &str) -> Option<ModelId> {
    let name = name.trim_end_matches('/');
    let mut models = player.models().into_iter();
    models.find(|id| id.to_string() == name || &*id.name == name || &*id.provider == name)
}

/// That a recording has no answer of a model, and what it has.
pub(crate) fn nothing_of(player: &Player, name: Option<&str>) -> anyhow::Error {
    let models: Vec<String> = player.models().iter().map(ToString::to_string).collect();
    match (name, models.as_slice()) {
        (_, []) => anyhow!("the recording has no answer of any model: make it anew with --record"),
        (name, models) => anyhow!(
            "the recording has no answer of {}; it has those of: {}. Name one of them with --model, or make the \
             recording anew",
            name.unwrap_or("this model"),
            models.join(", ")
        ),
    }
}
