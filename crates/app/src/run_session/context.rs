//! Loads the configuration of a command and starts its MCP servers.

pub(crate) mod context_values;

use anyhow::anyhow;
use switchboard_domain::{redact::Redactor, similar_names::list_available_names};
use switchboard_mcp_client::{McpHost, ServerStatus};
use switchboard_orchestration::MonotonicClock;

use super::{
    arguments::GlobalArgs,
    failure::Failure,
    interrupts::Interrupts,
    recording::{RecordingArgs, RecordingMode},
    servers::{Servers, program_path},
};
use crate::{
    config::{self, Config, ConfigSources, environment::Environment},
    models::{ChosenModel, Providers},
    observe, terminal,
};

/// Inputs that a command gets from its process: environment variables, folders and interruptions.
pub(crate) struct Process<'i> {
    pub(crate) environment: Environment,
    pub(crate) interrupts: &'i Interrupts,
}

/// The loaded configuration of a command, with values derived from it. No server is started.
pub(crate) struct Context {
    pub(crate) environment: Environment,
    pub(crate) config: Config,
    pub(crate) providers: Providers,
    /// Whether the traffic of models and tools is recorded, replayed or neither.
    pub(crate) recording: RecordingMode,
    /// Clock that measures the age of approval requests in all agents of the process.
    pub(crate) monotonic_clock: MonotonicClock,
    /// Redactor for secrets that become known at run time: context values that HTTP clients send.
    /// Log lines and server output are redacted with it.
    pub(crate) live_secrets: Redactor,
}

impl Context {
    pub(crate) fn load_context(
        global: &GlobalArgs,
        environment: Environment,
    ) -> Result<Self, Failure> {
        Self::load_context_for_recording(global, &RecordingArgs::default(), environment)
    }

    /// Loads the configuration and opens the recording of `--replay`.
    pub(crate) fn load_context_with_replay(
        global: &GlobalArgs,
        recording: &RecordingArgs,
        environment: Environment,
    ) -> Result<Self, Failure> {
        let mut context = Self::load_context_for_recording(global, recording, environment)?;
        context.recording = recording.open_replay(&context.config, &context.environment)?;
        Ok(context)
    }

    /// Loads the configuration of a command that can replay a recording. For a replay, servers and
    /// providers are not read.
    pub(crate) fn load_context_for_recording(
        global: &GlobalArgs,
        recording: &RecordingArgs,
        environment: Environment,
    ) -> Result<Self, Failure> {
        let sources = ConfigSources {
            config: global.config.clone(),
            mcp_configs: global.mcp_config.clone(),
            is_replay: recording.is_replay(),
        };
        let config = config::load_config(&sources, &environment).map_err(Failure::usage_error)?;
        let live_secrets = Redactor::default();
        observe::start_observability(&config, &environment, &live_secrets)
            .map_err(Failure::usage_error)?;
        Ok(Self {
            providers: Providers::new(&config, &environment),
            environment,
            config,
            recording: RecordingMode::default(),
            monotonic_clock: MonotonicClock::new(),
            live_secrets,
        })
    }

    /// Returns the model that `flag` names, else the configured model, else the first available
    /// model. In a replay, the model is one of the recording.
    pub(crate) async fn choose_model(&self, flag: Option<&str>) -> Result<ChosenModel, Failure> {
        if let Some(chosen) = self
            .recording
            .choose_recorded_model(flag, self.config.model.as_deref())
        {
            return chosen;
        }
        self.providers
            .choose_model(flag.or(self.config.model.as_deref()))
            .await
            .map_err(Failure::usage_error)
    }

    /// Returns the MCP servers that the command starts. A replay starts no servers.
    pub(crate) fn servers_to_start(&self) -> Result<Servers, Failure> {
        if self.recording.is_replay() {
            return Ok(Servers::default());
        }
        let program = program_path()?;
        let mut servers = Servers::from_config(&self.config, &program, &self.environment);
        self.check_context_servers(&servers)?;
        // A server may print the context values that it receives, so its output is redacted.
        for server in &mut servers.configs {
            server.secrets.extend(self.config.context_secrets());
            server.redactor = self.live_secrets.clone();
        }
        Ok(servers)
    }

    /// Checks that the servers in `context_servers` exist, because a server with a misspelled name
    /// would get no context values. A configuration without servers is valid.
    fn check_context_servers(&self, servers: &Servers) -> Result<(), Failure> {
        let known: Vec<&str> = servers.configs.iter().map(|it| it.name.as_str()).collect();
        let mut named = self.config.context_servers.iter().flatten();
        match named.find(|name| !known.contains(&name.as_str())) {
            Some(unknown) if !known.is_empty() => Err(Failure::usage_error(anyhow!(
                "`context_servers` names `{unknown}`, which is not a configured server{}",
                list_available_names(unknown, &known)
            ))),
            _ => Ok(()),
        }
    }
}

/// Starts MCP servers in the background. Returns the host before the servers are ready.
pub(crate) fn start_servers(servers: Servers) -> Result<McpHost, Failure> {
    if let Some(error) = &servers.pin_error {
        terminal::print_warning(&error.to_string());
    }
    McpHost::start(servers.configs, servers.options).map_err(Failure::usage_error)
}

/// Closes the MCP servers. A second interruption by the user kills them.
pub(crate) async fn close_servers(host: &McpHost, interrupts: &Interrupts) {
    tokio::select! {
        biased;
        () = interrupts.wait_for_second_interruption() => host.kill_servers().await,
        () = host.close() => {}
    }
}

/// Removes all servers except `name`. Returns a usage error if `name` is not configured.
pub(crate) fn keep_only_named_server(servers: &mut Servers, name: &str) -> Result<(), Failure> {
    let known: Vec<&str> = servers.configs.iter().map(|it| it.name.as_str()).collect();
    if !known.contains(&name) {
        let hint = match known.as_slice() {
            [] => ": no servers are configured".to_owned(),
            known => list_available_names(name, known),
        };
        let error = anyhow!("unknown server `{name}`{hint}");
        return Err(Failure::usage_error(error));
    }
    servers.configs.retain(|config| config.name == name);
    Ok(())
}

/// Returns an error if a server does not accept calls after its start. The error message contains
/// the last output of the server.
pub(crate) fn check_server_ready(host: &McpHost, name: &str) -> Result<(), Failure> {
    let mut statuses = host.server_statuses().into_iter();
    let is_not_ready = |it: &ServerStatus| it.name == name && !it.state.takes_calls();
    let Some(status) = statuses.find(is_not_ready) else {
        return Ok(());
    };
    let state = status.state.as_str();
    let mut text = format!(
        "server `{name}` is not available ({state}, {})",
        status.transport
    );
    if let Some(reason) = &status.reason {
        text.push_str(": ");
        text.push_str(reason);
    }
    if !status.stderr_tail.is_empty() {
        text.push_str("\nlast lines of its stderr:\n  ");
        text.push_str(&status.stderr_tail.join("\n  "));
    }
    Err(Failure::runtime_error(anyhow!("{text}")))
}
