//! Starts the MCP servers of an evaluation and writes the files that they read.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use secrecy::SecretString;
use serde_json::{Map, Value, json};
use switchboard_evals::suite::Suite;
use switchboard_mcp_client::{McpHost, ToolPins, config::ServerConfig};
use switchboard_mcp_servers::catalogue;
use switchboard_orchestration::tools::arguments::ContextInjection;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{
    suite_files::{FILES, replace_in_json_strings},
    suite_origin::SuiteOrigin,
};
use switchboard_domain::similar_names::list_available_names;

use crate::{
    config,
    run_session::{
        context::{self, Context, context_values},
        failure::Failure,
        servers::{Servers, program_path, status::describe_unavailable_server},
    },
    storage::private_file::create_private_folder,
};

/// Settings of the MCP servers of a suite, which are started once or for each conversation.
#[derive(Debug)]
pub(crate) struct SuiteServerSettings {
    /// Servers that the suite declares. `None` uses the servers of the configuration.
    declared: Option<Map<String, Value>>,
    files: BTreeMap<String, String>,
    pub(crate) origin: SuiteOrigin,
}

/// Started MCP servers and their temporary files. Dropping the value deletes the files.
#[derive(Debug)]
pub(crate) struct StartedServers {
    pub(crate) host: Arc<McpHost>,
    files: Option<SuiteFolder>,
    /// Background tasks of the evaluation. Dropping this value adds a task that closes its servers.
    /// `None` for servers that several conversations share.
    pub(super) closing: Option<Closing>,
}

/// Tasks that close the servers of finished conversations in the background.
pub(crate) type Closing = Arc<Mutex<JoinSet<()>>>;

impl StartedServers {
    /// Creates a tool host without MCP servers and files: for a replay, and for a suite in which no
    /// scenario uses shared servers.
    pub(crate) fn start_without_servers() -> Result<Self, Failure> {
        Ok(Self {
            host: Arc::new(context::start_servers(Servers::default())?),
            files: None,
            closing: None,
        })
    }

    /// Returns the path of the temporary folder with the suite's files. `None` without files.
    pub(super) fn suite_folder(&self) -> Option<String> {
        let files = self.files.as_ref()?;
        Some(files.path.to_string_lossy().into_owned())
    }

    /// Returns the reason why a server does not accept tool calls. Returns `None` if it accepts
    /// them or if there is no such server.
    pub(crate) fn unavailable_reason(&self, server: &str) -> Option<String> {
        let mut statuses = self.host.server_statuses().into_iter();
        let status = statuses.find(|it| it.name == server && !it.state.takes_calls())?;
        Some(describe_unavailable_server(&status))
    }
}

impl Drop for StartedServers {
    fn drop(&mut self) {
        if let Some(closing) = &self.closing {
            let (host, files) = (Arc::clone(&self.host), self.files.take());
            let mut closing = closing.lock().unwrap_or_else(PoisonError::into_inner);
            closing.spawn(async move {
                host.close().await;
                drop(files);
            });
        }
    }
}

impl SuiteServerSettings {
    pub(crate) fn from_suite(suite: &Suite, origin: SuiteOrigin) -> Self {
        Self {
            declared: suite.mcp_servers.clone(),
            files: suite.files.clone(),
            origin,
        }
    }

    /// Checks that every server that a scenario names is declared or configured. Starts no server.
    pub(crate) fn check_servers(&self, suite: &Suite, context: &Context) -> Result<(), Failure> {
        let configs = self.read_server_configs(context, Path::new("."))?.configs;
        let known: Vec<&str> = configs.iter().map(|it| it.name.as_str()).collect();
        let lists = suite.scenarios.iter().map(|scenario| {
            let place = self.origin.scenario_path(&scenario.name, "servers");
            (place, &scenario.servers)
        });
        let lists = lists.chain([("servers".to_owned(), &suite.servers)]);
        let named = lists.flat_map(|(place, names)| {
            let names = names.iter().flatten().enumerate();
            names.map(move |(at, name)| (format!("{place}[{at}]"), name))
        });
        for (place, name) in named {
            if !known.contains(&name.as_str()) {
                let reason = format!(
                    "unknown server `{name}`{}. Add servers of a suite under its `mcp_servers`",
                    list_available_names(name, &known)
                );
                return Err(Failure::usage_error(
                    self.origin.field_error(&place, reason),
                ));
            }
        }
        Ok(())
    }

    /// Returns the secrets in the settings of the suite's servers: environment, headers and
    /// expanded variables. Skips servers with errors, which [`Self::check_servers`] reports.
    pub(crate) fn server_secrets(&self, context: &Context) -> Vec<SecretString> {
        let entries = self.declared.iter().flatten();
        let read = entries
            .map(|(name, entry)| read_server_config(name, entry, ".", "switchboard", context));
        let servers = read.flatten().flatten();
        servers
            .flat_map(|server| server.values_to_redact())
            .collect()
    }

    /// Returns the values of the tool arguments that the host fills in for the suite's servers.
    pub(crate) fn context_injection(&self, context: &Context) -> Result<ContextInjection, Failure> {
        let servers = self.read_server_configs(context, Path::new("."))?.configs;
        Ok(context_values::build_context_injection(
            &context.config,
            &servers,
        ))
    }

    /// Writes the suite's files and then starts the MCP servers in the background.
    pub(crate) fn start_servers(&self, context: &Context) -> Result<StartedServers, Failure> {
        let made = (!self.files.is_empty()).then(|| SuiteFolder::create_with_files(&self.files));
        let folder = made.transpose().map_err(|error| {
            Failure::runtime_error(error).add_context("the suite's files cannot be written")
        })?;
        let place = folder.as_ref().map_or(Path::new("."), |it| &it.path);
        let servers = self.read_server_configs(context, place)?;
        Ok(StartedServers {
            host: Arc::new(context::start_servers(servers)?),
            files: folder,
            closing: None,
        })
    }

    fn read_server_configs(&self, context: &Context, files: &Path) -> Result<Servers, Failure> {
        let mut servers = context.servers_to_start()?;
        let Some(declared) = &self.declared else {
            return Ok(servers);
        };
        let program = program_path()?.to_string_lossy().into_owned();
        let files = files.to_string_lossy();
        servers.configs.clear();
        for (name, entry) in declared {
            let read = read_server_config(name, entry, &files, &program, context);
            let read =
                read.map_err(|it| Failure::usage_error(self.origin.field_error(&it.0, it.1)))?;
            servers.configs.extend(read);
        }
        for server in &mut servers.configs {
            // Scenarios depend on their servers, so a server that does not start is an error.
            server.required = true;
            // A server may print the context values that it receives, so its output is redacted.
            server.secrets.extend(context.config.context_secrets());
        }
        servers.bundled = false;
        // The stored tool definitions belong to the configured servers, so tools of the suite's
        // servers are not compared with them.
        servers.options.tool_pins = ToolPins::default();
        servers.options.tool_pin_store = None;
        servers.pin_error = None;
        Ok(servers)
    }
}

/// Reads the settings of a server in a suite. Returns `None` for a disabled server. An error
/// contains the path in the suite and the reason.
fn read_server_config(
    name: &str,
    entry: &Value,
    files: &str,
    program: &str,
    context: &Context,
) -> Result<Option<ServerConfig>, (String, String)> {
    let mut entry = entry.clone();
    replace_in_json_strings(&mut entry, FILES, files);
    let path = format!("mcp_servers.{name}");
    if let Value::Object(fields) = &mut entry {
        expand_bundled_server(fields, program)
            .map_err(|(field, reason)| (path.clone() + field, reason))?;
    }
    let mut servers = json!({ name: entry });
    match config::parse_servers(&mut servers, &context.environment) {
        Ok(servers) => Ok(servers.into_iter().next()),
        Err(problem) => Err((path, problem.to_string())),
    }
}

/// Replaces the field `bundled: NAME` of a server by the command that runs this bundled server. An
/// error contains the field and the reason.
fn expand_bundled_server(
    fields: &mut Map<String, Value>,
    program: &str,
) -> Result<(), (&'static str, String)> {
    let Some(bundled) = fields.shift_remove("bundled") else {
        return Ok(());
    };
    let known: Vec<&str> = catalogue().iter().map(|it| it.name).collect();
    let Some(name) = bundled.as_str().filter(|name| known.contains(name)) else {
        let known = known.join(", ");
        let reason = format!("unknown bundled server {bundled}. Available: {known}");
        return Err((".bundled", reason));
    };
    if fields.contains_key("command") || fields.contains_key("url") {
        let reason = "a bundled server must not have `command` or `url`";
        return Err(("", reason.to_owned()));
    }
    let mut args = vec![json!("mcp-server"), json!(name)];
    match fields.shift_remove("args") {
        None => {}
        Some(Value::Array(more)) => args.extend(more),
        Some(_) => return Err((".args", "must be a list of texts".to_owned())),
    }
    fields.insert("command".to_owned(), json!(program));
    fields.insert("args".to_owned(), Value::Array(args));
    Ok(())
}

/// A temporary folder with the files of a suite. Dropping the value deletes the folder.
#[derive(Debug)]
struct SuiteFolder {
    path: PathBuf,
}

impl SuiteFolder {
    fn create_with_files(files: &BTreeMap<String, String>) -> std::io::Result<Self> {
        let name = format!("switchboard-eval-{}", Uuid::new_v4());
        let folder = Self {
            path: std::env::temp_dir().join(name),
        };
        create_private_folder(&folder.path)?;
        for (name, text) in files {
            let path = folder.path.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, text)?;
        }
        Ok(folder)
    }
}

impl Drop for SuiteFolder {
    fn drop(&mut self) {
        // An error is ignored: the operating system deletes temporary folders later.
        let _ = fs::remove_dir_all(&self.path);
    }
}
