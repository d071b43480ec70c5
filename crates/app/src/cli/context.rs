//! What most commands begin with.

use switchboard_mcp_client::McpHost;

use super::{Failure, Global, interrupt::Interrupts};
use crate::{
    config::{self, Config, Sources},
    environment::Environment,
    model::{Chosen, Providers},
    servers::Servers,
};

/// The configuration and what follows from it. Nothing is started yet.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) environment: Environment,
    pub(super) config: Config,
    pub(super) providers: Providers,
}

impl Context {
    pub(super) fn load(global: &Global, environment: Environment) -> Result<Self, Failure> {
        let sources = Sources {
            config: global.config.clone(),
            mcp_configs: global.mcp_config.clone(),
        };
        let config = config::load(&sources, &environment).map_err(Failure::usage)?;
        let providers = Providers::new(&config, &environment);
        Ok(Self {
            environment,
            config,
            providers,
        })
    }

    /// The model that `flag` or the configuration names, or the first that can be asked.
    pub(super) async fn choose_model(&self, flag: Option<&str>) -> Result<Chosen, Failure> {
        self.providers
            .choose(flag.or(self.config.model.as_deref()))
            .await
            .map_err(Failure::usage)
    }

    pub(super) fn servers(&self) -> Result<Servers, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::run(error).context("this program cannot find itself"))?;
        // After an update the file is another one; the kernel still has this one.
        let replaced = cfg!(target_os = "linux") && !program.exists();
        let program = if replaced {
            "/proc/self/exe".into()
        } else {
            program
        };
        Ok(Servers::of(&self.config, &program, &self.environment))
    }
}

/// Starts servers. They come up in the background.
pub(super) fn start(servers: Servers) -> Result<McpHost, Failure> {
    McpHost::start(servers.configs, servers.options).map_err(Failure::usage)
}

/// Closes the servers properly; at once, if somebody interrupts a second time.
pub(super) async fn close(host: &McpHost, interrupts: &Interrupts) {
    tokio::select! {
        biased;
        () = interrupts.second() => host.kill().await,
        () = host.close() => {}
    }
}
