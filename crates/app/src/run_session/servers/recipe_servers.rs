//! The bundled servers that a recipe needs.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use switchboard_domain::similar_names::list_available_names;
use switchboard_mcp_client::config::ServerConfig;
use switchboard_orchestration::recipe::Recipe;

use super::program_path;
use crate::{
    config::environment::Environment,
    run_session::{agent::AgentPlan, context::Context, failure::Failure},
    storage::private_file::create_private_folder,
};

/// Environment variable with the base URL of the TRAPI service of the server `bte`.
pub(crate) const BTE_URL: &str = "SWITCHBOARD_BTE_URL";
/// Environment variable with the base URL of the name resolver of the server `bte`.
pub(crate) const NAME_RESOLVER_URL: &str = "SWITCHBOARD_NAME_RESOLVER_URL";

/// Bundled servers that a recipe can start, because they need no further settings.
const STARTABLE: [&str; 3] = ["customer-service", "graph", "bte"];
/// File with the graphs of all conversations, in the folder of the user's data.
const GRAPH_FILE: &str = "graph.db";

impl Context {
    /// Adds the bundled servers that a recipe needs and that are not configured to the configured
    /// servers, so that they are started with them.
    pub(crate) fn add_recipe_servers(&mut self, recipe: Option<&Recipe>) -> Result<(), Failure> {
        let Some(recipe) = recipe.filter(|_| !self.recording.is_replay()) else {
            return Ok(());
        };
        let program = program_path()?;
        let missing: Vec<&str> = self.missing_servers(recipe).collect();
        let servers = missing
            .into_iter()
            .map(|name| bundled_server(name, &program, &self.environment));
        let servers: anyhow::Result<Vec<ServerConfig>> = servers.collect();
        let servers = servers.with_context(|| format!("recipe {}", recipe.name));
        let servers = servers.map_err(Failure::usage_error)?;
        if !servers.is_empty() {
            self.config.servers.get_or_insert_default().extend(servers);
        }
        Ok(())
    }

    /// Returns an error if a server that the recipe of the plan needs is not running, because the
    /// recipe was selected after the start.
    pub(crate) fn check_recipe_servers(&self, plan: &AgentPlan) -> anyhow::Result<()> {
        let Some(recipe) = plan.recipe.as_deref().filter(|_| !plan.no_tools) else {
            return Ok(());
        };
        match self.missing_servers(recipe).next() {
            Some(server) if !self.recording.is_replay() => bail!(
                "recipe {} needs the server `{server}`, which is not running. Start the program \
                 with `--recipe {}`, or configure the server",
                recipe.name,
                recipe.name
            ),
            _ => Ok(()),
        }
    }

    /// Returns the names of the servers that a recipe needs and that are not configured.
    fn missing_servers<'r>(&self, recipe: &'r Recipe) -> impl Iterator<Item = &'r str> {
        let is_configured = |name: &str| {
            let mut servers = self.config.servers.iter().flatten();
            servers.any(|server| server.name == name)
        };
        let names = recipe.servers.iter().map(String::as_str);
        names.filter(move |name| !is_configured(name))
    }
}

fn bundled_server(
    name: &str,
    program: &Path,
    environment: &Environment,
) -> anyhow::Result<ServerConfig> {
    if !STARTABLE.contains(&name) {
        bail!(
            "server `{name}` is not configured, and it is not a bundled server that a recipe can \
             start{}",
            list_available_names(name, &STARTABLE)
        );
    }
    let mut args = vec!["mcp-server".to_owned(), name.to_owned()];
    if name != "customer-service" {
        let folder = environment.data_dir.as_deref();
        let folder = folder.ok_or_else(|| anyhow!("there is no data folder for the graph"))?;
        create_private_folder(folder)
            .map_err(|error| anyhow!("cannot create the folder {}: {error}", folder.display()))?;
        let file = folder.join(GRAPH_FILE).to_string_lossy().into_owned();
        args.extend(["--data".to_owned(), file]);
    }
    if name == "bte" {
        args.extend(["--sample-if-offline", "--add-to-graph"].map(str::to_owned));
        // The environment of a server process does not contain these variables.
        for (option, variable) in [("--url", BTE_URL), ("--resolver-url", NAME_RESOLVER_URL)] {
            if let Some(value) = environment.get(variable) {
                args.extend([option.to_owned(), value.to_owned()]);
            }
        }
    }
    let mut server = ServerConfig::stdio(name, program.to_string_lossy(), args);
    // The recipe depends on its servers, so a server that does not start is an error.
    server.required = true;
    Ok(server)
}
