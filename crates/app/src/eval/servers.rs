//! Servers and files of an evaluation.

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
    files::{FILES, replace},
    origin::Origin,
};
use crate::{
    config,
    observe::hidden_of,
    run_session::{
        context::{self, Context},
        failure::{Failure, available},
        servers::{Servers, this_program},
        values,
    },
    storage::private_file::make_folder,
};

/// The servers of a suite, started once or for each conversation.
#[derive(Debug)]
pub(crate) struct ServerPlan {
    /// The servers of the suite. `None` uses the configured ones.
    declared: Option<Map<String, Value>>,
    files: BTreeMap<String, String>,
    origin: Arc<Origin>,
}

/// Started servers and their files. Dropping the value deletes the files.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) host: Arc<McpHost>,
    files: Option<Folder>,
    /// Receives the task that closes the servers when they belong to one conversation.
    closing: Option<Closing>,
}

/// Servers of finished conversations that are closing.
pub(crate) type Closing = Arc<Mutex<JoinSet<()>>>;

impl Started {
    /// Returns a host without servers.
    pub(crate) fn nothing() -> Result<Self, Failure> {
        Ok(Self {
            host: Arc::new(context::start(Servers::default())?),
            files: None,
            closing: None,
        })
    }

    /// Returns these servers, which close when the value is dropped.
    pub(super) fn closing_on_drop(mut self, closing: &Closing) -> Self {
        self.closing = Some(Arc::clone(closing));
        self
    }

    /// Returns the folder of the suite's files.
    pub(super) fn folder(&self) -> Option<String> {
        let files = self.files.as_ref()?;
        Some(files.path.to_string_lossy().into_owned())
    }

    /// Returns why a server takes no calls.
    pub(crate) fn missing(&self, server: &str) -> Option<String> {
        let mut statuses = self.host.servers().into_iter();
        let status = statuses.find(|it| it.name == server && !it.state.takes_calls())?;
        let (state, reason) = (status.state.as_str(), status.reason.unwrap_or_default());
        Some(format!("server `{server}` is {state}: {reason}"))
    }
}

impl Drop for Started {
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

impl ServerPlan {
    pub(crate) fn of(suite: &Suite, origin: Arc<Origin>) -> Self {
        Self {
            declared: suite.mcp_servers.clone(),
            files: suite.files.clone(),
            origin,
        }
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Checks that every server of a scenario exists, before one is started.
    pub(crate) fn check(&self, suite: &Suite, context: &Context) -> Result<(), Failure> {
        let configs = self.configs(context, Path::new("."))?.configs;
        let known: Vec<&str> = configs.iter().map(|it| it.name.as_str()).collect();
        let lists = suite.scenarios.iter().map(|scenario| {
            let place = self.origin.in_scenario(&scenario.name, "servers");
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
                    available(name, &known)
                );
                return Err(Failure::usage(self.origin.error(&place, reason)));
            }
        }
        Ok(())
    }

    /// Returns the secrets of the suite's servers: environment, headers and expanded variables. A
    /// server with errors has none; [`Self::check`] reports it.
    pub(crate) fn secrets(&self, context: &Context) -> Vec<SecretString> {
        let entries = self.declared.iter().flatten();
        let read =
            entries.map(|(name, entry)| read_server(name, entry, ".", "switchboard", context));
        let servers = read.flatten().flatten();
        servers
            .flat_map(|server| {
                hidden_of(&server)
                    .map(SecretString::from)
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    /// Returns the context values of the tools.
    pub(crate) fn injection(&self, context: &Context) -> Result<ContextInjection, Failure> {
        let servers = self.configs(context, Path::new("."))?.configs;
        Ok(values::injection(&context.config, &servers))
    }

    /// Starts the servers in the background.
    pub(crate) fn start(&self, context: &Context) -> Result<Started, Failure> {
        let made = (!self.files.is_empty()).then(|| Folder::with(&self.files));
        let folder = made
            .transpose()
            .map_err(|error| Failure::run(error).context("the suite's files cannot be written"))?;
        let place = folder.as_ref().map_or(Path::new("."), |it| &it.path);
        let servers = self.configs(context, place)?;
        Ok(Started {
            host: Arc::new(context::start(servers)?),
            files: folder,
            closing: None,
        })
    }

    fn configs(&self, context: &Context, files: &Path) -> Result<Servers, Failure> {
        let mut servers = context.servers()?;
        let Some(declared) = &self.declared else {
            return Ok(servers);
        };
        let program = this_program()?.to_string_lossy().into_owned();
        let files = files.to_string_lossy();
        servers.configs.clear();
        for (name, entry) in declared {
            let read = read_server(name, entry, &files, &program, context);
            let read = read.map_err(|it| Failure::usage(self.origin.error(&it.0, it.1)))?;
            servers.configs.extend(read);
        }
        for server in &mut servers.configs {
            // The scenarios need them.
            server.required = true;
            // A server may print them.
            server.secrets.extend(context.config.context_secrets());
        }
        servers.bundled = false;
        // Tool pins of configured servers do not apply.
        servers.options.tool_pins = ToolPins::default();
        servers.options.tool_pin_store = None;
        servers.pin_error = None;
        Ok(servers)
    }
}

/// Reads a server of a suite. A disabled server is `None`. An error has its path in the suite.
fn read_server(
    name: &str,
    entry: &Value,
    files: &str,
    program: &str,
    context: &Context,
) -> Result<Option<ServerConfig>, (String, String)> {
    let mut entry = entry.clone();
    replace(&mut entry, FILES, files);
    let path = format!("mcp_servers.{name}");
    if let Value::Object(fields) = &mut entry {
        expand_bundled(fields, program)
            .map_err(|(field, reason)| (path.clone() + field, reason))?;
    }
    let mut servers = json!({ name: entry });
    match config::servers_of(&mut servers, &context.environment) {
        Ok(servers) => Ok(servers.into_iter().next()),
        Err(problem) => Err((path, problem.to_string())),
    }
}

/// Replaces `bundled: NAME` by the command that runs the bundled server. An error has its field.
fn expand_bundled(
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
        let reason = "a bundled server has neither `command` nor `url`";
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

/// A temporary folder with the files of a suite.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn with(files: &BTreeMap<String, String>) -> std::io::Result<Self> {
        let name = format!("switchboard-eval-{}", Uuid::new_v4());
        let folder = Self {
            path: std::env::temp_dir().join(name),
        };
        make_folder(&folder.path)?;
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

impl Drop for Folder {
    fn drop(&mut self) {
        // The system cleans its folder of temporary files.
        let _ = fs::remove_dir_all(&self.path);
    }
}
