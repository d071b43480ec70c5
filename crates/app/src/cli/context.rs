//! What most commands begin with.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use anyhow::anyhow;
use switchboard_domain::{
    nearest::{did_you_mean, nearest},
    redact::Redactor,
};
use switchboard_mcp_client::{McpHost, ServerStatus, UnreapedWatchdog};
use switchboard_orchestration::SteadyClock;

use super::{Code, Failure, Global, interrupt::Interrupts};
use crate::{
    config::{self, Config, Sources},
    environment::Environment,
    model::{Chosen, Providers},
    observe,
    servers::Servers,
    tape::{Tape, TapeArgs},
    terminal,
};

/// The configuration and what follows from it. Nothing is started yet.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) environment: Environment,
    pub(crate) config: Config,
    pub(crate) providers: Providers,
    /// What models and tools say is written down, or had again.
    pub(crate) tape: Tape,
    /// Measures how long approval requests wait, for all agents of the process.
    pub(crate) steady: SteadyClock,
    /// Secrets that clients send: neither log lines nor what servers write show them.
    pub(crate) live_secrets: Redactor,
}

impl Context {
    pub(crate) fn load(global: &Global, environment: Environment) -> Result<Self, Failure> {
        Self::load_for(global, &TapeArgs::default(), environment)
    }

    /// The same for a command that may have a recording again: that needs no variable of what it does not start.
    pub(crate) fn load_for(
        global: &Global,
        tape: &TapeArgs,
        environment: Environment,
    ) -> Result<Self, Failure> {
        let sources = Sources {
            config: global.config.clone(),
            mcp_configs: global.mcp_config.clone(),
            nothing_starts: tape.is_replay(),
        };
        let config = config::load(&sources, &environment).map_err(Failure::usage)?;
        let live_secrets = Redactor::default();
        observe::start(&config, &environment, &live_secrets);
        let providers = Providers::new(&config, &environment);
        Ok(Self {
            environment,
            config,
            providers,
            tape: Tape::default(),
            steady: SteadyClock::new(),
            live_secrets,
        })
    }

    /// The model that `flag` or the configuration names, or the first that can be asked. Of a recording that is
    /// had again, one that is in it.
    pub(crate) async fn choose_model(&self, flag: Option<&str>) -> Result<Chosen, Failure> {
        if let Some(chosen) = self.tape.choose(flag, self.config.model.as_deref()) {
            return chosen;
        }
        self.providers
            .choose(flag.or(self.config.model.as_deref()))
            .await
            .map_err(Failure::usage)
    }

    /// The servers to start; none where a recording answers for them.
    pub(crate) fn servers(&self) -> Result<Servers, Failure> {
        if self.tape.is_replay() {
            return Ok(Servers::none());
        }
        let program = this_program()?;
        let mut servers = Servers::of(&self.config, &program, &self.environment);
        self.check_context_servers(&servers)?;
        // A server may say what it was given, on its standard error too.
        for server in &mut servers.configs {
            server.secrets.extend(self.config.run.context_secrets());
            server.redactor = self.live_secrets.clone();
        }
        Ok(servers)
    }
}

impl Context {
    /// A name that is nobody's would keep what is injected from the server that is meant. Where a file
    /// says that there are no servers, nobody is meant.
    fn check_context_servers(&self, servers: &Servers) -> Result<(), Failure> {
        let known: Vec<&str> = servers.configs.iter().map(|it| it.name.as_str()).collect();
        let mut named = self.config.run.context_servers.iter().flatten();
        match named.find(|name| !known.contains(&name.as_str())) {
            Some(unknown) if !known.is_empty() => Err(Failure::usage(anyhow!(
                "`context_servers` names `{unknown}`, and there is no such server{}; there are: {}",
                did_you_mean(nearest(unknown, known.iter().copied())),
                known.join(", ")
            ))),
            _ => Ok(()),
        }
    }
}

/// This program, to be started once more.
pub(crate) fn this_program() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::run(error).context("this program cannot find itself"))?;
    // After an update the file is another one; the kernel still has this one.
    let replaced = cfg!(target_os = "linux") && !program.exists();
    Ok(if replaced {
        "/proc/self/exe".into()
    } else {
        program
    })
}

/// Starts servers. They come up in the background.
pub(crate) fn start(servers: Servers) -> Result<McpHost, Failure> {
    if let Some(error) = &servers.forgotten {
        terminal::say_warning(&error.to_string());
    }
    McpHost::start(servers.configs, servers.options).map_err(Failure::usage)
}

/// What closed hosts left of themselves, to be taken in when this program has nothing else to do.
static REMAINS: Mutex<Vec<UnreapedWatchdog>> = Mutex::new(Vec::new());

/// Takes in what the hosts left, which has mostly ended by now.
pub(super) fn reap() {
    let remains = std::mem::take(&mut *REMAINS.lock().unwrap_or_else(PoisonError::into_inner));
    remains.into_iter().for_each(UnreapedWatchdog::reap);
}

/// Closes the servers properly, as one of the last things that a command does; at once, if somebody interrupts a second time.
pub(crate) async fn close(host: &McpHost, interrupts: &Interrupts) {
    tokio::select! {
        biased;
        () = interrupts.second() => host.kill().await,
        remains = host.close_at_exit() => {
            let mut all = REMAINS.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(remains);
        }
    }
}

/// Leaves out all servers but one: the others need not run. It is wrong usage if there is none of the name.
pub(crate) fn only(servers: &mut Servers, name: &str) -> Result<(), Failure> {
    let known: Vec<String> = servers.configs.iter().map(|s| s.name.clone()).collect();
    servers.configs.retain(|config| config.name == name);
    if !servers.configs.is_empty() {
        return Ok(());
    }
    let error = if known.is_empty() {
        anyhow!("there is no server `{name}`: none is configured")
    } else {
        let near = nearest(name, known.iter().map(String::as_str));
        anyhow!(
            "there is no server `{name}`{}; there are: {}",
            did_you_mean(near),
            known.join(", ")
        )
    };
    Err(Failure::usage(error))
}

/// Waits for a server to be ready or failed. An error is that it takes no calls, with what it wrote last.
pub(crate) async fn ready(host: &McpHost, name: &str) -> Result<(), Failure> {
    host.settled().await;
    let mut statuses = host.servers().into_iter();
    match statuses.find(|status| status.name == name) {
        Some(status) if !status.state.takes_calls() => Err(Failure::run(not_ready(&status))),
        _ => Ok(()),
    }
}

/// Why a server takes no calls, with what it wrote last.
fn not_ready(status: &ServerStatus) -> anyhow::Error {
    let mut text = format!(
        "server `{}` is {} ({})",
        status.name,
        status.state.as_str(),
        status.transport
    );
    if let Some(reason) = &status.reason {
        text.push_str(": ");
        text.push_str(reason);
    }
    if !status.stderr_tail.is_empty() {
        text.push_str("\nits last words:");
        for line in &status.stderr_tail {
            text.push_str("\n  ");
            text.push_str(line);
        }
    }
    anyhow!("{text}")
}

/// Work that the first interruption ends.
pub(crate) async fn until_interrupted(
    work: impl Future<Output = Result<Code, Failure>>,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    tokio::select! {
        result = work => result,
        () = interrupts.first() => Ok(Code::Interrupted),
    }
}
