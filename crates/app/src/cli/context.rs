//! What most commands begin with.

use switchboard_mcp_client::{HostOptions, McpHost};

use super::{Failure, Global};
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
    pub(super) fn choose_model(&self, flag: Option<&str>) -> Result<Chosen, Failure> {
        self.providers
            .choose(flag.or(self.config.model.as_deref()))
            .map_err(Failure::usage)
    }

    pub(super) fn servers(&self) -> Result<Servers, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::run(error).context("this program cannot find itself"))?;
        Ok(Servers::of(&self.config, &program))
    }
}

/// Starts servers. They come up in the background.
pub(super) fn start(servers: Servers) -> Result<McpHost, Failure> {
    McpHost::start(servers.configs, HostOptions::default()).map_err(Failure::usage)
}
