//! The configuration of a command, and its MCP servers.

pub(crate) mod values;

use std::path::PathBuf;

use anyhow::anyhow;
use switchboard_domain::redact::Redactor;
use switchboard_mcp_client::{McpHost, ServerStatus};
use switchboard_orchestration::SteadyClock;

use super::{
    arguments::Global,
    failure::{Failure, available},
    interrupts::Interrupts,
};
use super::{
    recording::{RecordingArgs, RecordingMode},
    servers::Servers,
};
use crate::{
    config::{self, Config, Sources, environment::Environment},
    models::{Chosen, Providers},
    observe, terminal,
};

/// The configuration and values derived from it. Nothing is started yet.
pub(crate) struct Context {
    pub(crate) environment: Environment,
    pub(crate) config: Config,
    pub(crate) providers: Providers,
    /// Records or replays models and tools.
    pub(crate) recording: RecordingMode,
    /// Measures the age of approval requests, for all agents of the process.
    pub(crate) steady: SteadyClock,
    /// Secrets that clients send. They are redacted in logs and server output.
    pub(crate) live_secrets: Redactor,
}

impl Context {
    pub(crate) fn load(global: &Global, environment: Environment) -> Result<Self, Failure> {
        Self::load_for(global, &RecordingArgs::default(), environment)
    }

    /// Loads the configuration for a command that may replay a recording. A replay needs no
    /// variables of servers and providers.
    pub(crate) fn load_for(
        global: &Global,
        recording: &RecordingArgs,
        environment: Environment,
    ) -> Result<Self, Failure> {
        let sources = Sources {
            config: global.config.clone(),
            mcp_configs: global.mcp_config.clone(),
            is_replay: recording.is_replay(),
        };
        let config = config::load(&sources, &environment).map_err(Failure::usage)?;
        let live_secrets = Redactor::default();
        observe::start(&config, &environment, &live_secrets).map_err(Failure::usage)?;
        let providers = Providers::new(&config, &environment);
        Ok(Self {
            environment,
            config,
            providers,
            recording: RecordingMode::default(),
            steady: SteadyClock::new(),
            live_secrets,
        })
    }

    /// Returns the model `flag`, the configured one or the first available one. A replay uses a
    /// model of its recording.
    pub(crate) async fn choose_model(&self, flag: Option<&str>) -> Result<Chosen, Failure> {
        if let Some(chosen) = self.recording.choose(flag, self.config.model.as_deref()) {
            return chosen;
        }
        self.providers
            .choose(flag.or(self.config.model.as_deref()))
            .await
            .map_err(Failure::usage)
    }

    /// Returns the servers to start. A replay starts none.
    pub(crate) fn servers(&self) -> Result<Servers, Failure> {
        if self.recording.is_replay() {
            return Ok(Servers::none());
        }
        let program = this_program()?;
        let mut servers = Servers::of(&self.config, &program, &self.environment);
        self.check_context_servers(&servers)?;
        // A server may print the values that it receives.
        for server in &mut servers.configs {
            server.secrets.extend(self.config.context_secrets());
            server.redactor = self.live_secrets.clone();
        }
        Ok(servers)
    }
}

impl Context {
    /// Returns an error for an unknown server name, whose server would miss its context values. A
    /// configuration without servers is valid.
    fn check_context_servers(&self, servers: &Servers) -> Result<(), Failure> {
        let known: Vec<&str> = servers.configs.iter().map(|it| it.name.as_str()).collect();
        let mut named = self.config.context_servers.iter().flatten();
        match named.find(|name| !known.contains(&name.as_str())) {
            Some(unknown) if !known.is_empty() => Err(Failure::usage(anyhow!(
                "`context_servers` names `{unknown}`, which is not a configured server{}",
                available(unknown, &known)
            ))),
            _ => Ok(()),
        }
    }
}

/// Returns the path of this program.
pub(crate) fn this_program() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::run(error).context("this program cannot find itself"))?;
    // After an update the path is another file; the kernel still has the running one.
    let replaced = cfg!(target_os = "linux") && !program.exists();
    Ok(if replaced {
        "/proc/self/exe".into()
    } else {
        program
    })
}

/// Starts servers in the background.
pub(crate) fn start(servers: Servers) -> Result<McpHost, Failure> {
    if let Some(error) = &servers.pin_error {
        terminal::print_warning(&error.to_string());
    }
    McpHost::start(servers.configs, servers.options).map_err(Failure::usage)
}

/// Closes the servers. A second interruption kills them.
pub(crate) async fn close(host: &McpHost, interrupts: &Interrupts) {
    tokio::select! {
        biased;
        () = interrupts.second() => host.kill().await,
        () = host.close() => {}
    }
}

/// Removes all servers except one. Returns a usage error if it does not exist.
pub(crate) fn only(servers: &mut Servers, name: &str) -> Result<(), Failure> {
    let known: Vec<&str> = servers.configs.iter().map(|it| it.name.as_str()).collect();
    if known.is_empty() {
        let error = anyhow!("unknown server `{name}`: no server is configured");
        return Err(Failure::usage(error));
    }
    if !known.contains(&name) {
        let error = anyhow!("unknown server `{name}`{}", available(name, &known));
        return Err(Failure::usage(error));
    }
    servers.configs.retain(|config| config.name == name);
    Ok(())
}

/// Returns an error with the last output of a settled server if it takes no calls.
pub(crate) fn check_ready(host: &McpHost, name: &str) -> Result<(), Failure> {
    let mut statuses = host.servers().into_iter();
    match statuses.find(|status| status.name == name && !status.state.takes_calls()) {
        Some(status) => Err(Failure::run(not_ready(&status))),
        None => Ok(()),
    }
}

/// Describes why a server takes no calls, with its last output.
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
