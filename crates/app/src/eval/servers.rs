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
use switchboard_mcp_client::{McpHost, ToolPins};
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
        context::{self, Context, this_program, values},
        failure::{Failure, available},
        servers::Servers,
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
            host: Arc::new(context::start(Servers::none())?),
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
        let of_suite = suite.servers.iter().flatten();
        let of_scenarios = suite.scenarios.iter().flat_map(|scenario| {
            let place = self.origin.in_scenario(&scenario.name, "servers");
            let names = scenario.servers.iter().flatten().enumerate();
            names.map(move |(at, name)| (format!("{place}[{at}]"), name))
        });
        let of_suite = of_suite.enumerate();
        let of_suite = of_suite.map(|(at, name)| (format!("servers[{at}]"), name));
        let named = of_suite.chain(of_scenarios);
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
        let mut secrets = Vec::new();
        for (name, entry) in self.declared.iter().flatten() {
            let mut entry = entry.clone();
            replace(&mut entry, FILES, ".");
            if bundled(name, &mut entry, "switchboard").is_err() {
                continue;
            }
            let mut one = json!({ name: entry });
            let read = config::servers_of(&mut one, &context.environment);
            for server in read.iter().flatten() {
                secrets.extend(hidden_of(server).map(SecretString::from));
            }
        }
        secrets
    }

    /// Returns the context values of the tools.
    pub(crate) fn injection(&self, context: &Context) -> Result<ContextInjection, Failure> {
        let servers = self.configs(context, Path::new("."))?.configs;
        Ok(values::injection(&context.config, &servers))
    }

    /// Starts the servers in the background.
    pub(crate) fn start(&self, context: &Context) -> Result<Started, Failure> {
        let folder = if self.files.is_empty() {
            None
        } else {
            let made = Folder::with(&self.files);
            Some(made.map_err(|error| {
                Failure::run(error).context("the suite's files cannot be written")
            })?)
        };
        let place = folder
            .as_ref()
            .map_or(Path::new("."), |it| it.path.as_path());
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
        let mut value = Value::Object(declared.clone());
        replace(&mut value, FILES, &files.to_string_lossy());
        if let Value::Object(entries) = &mut value {
            for (name, entry) in entries.iter_mut() {
                bundled(name, entry, &program)
                    .map_err(|it| Failure::usage(self.origin.error(&it.place, it.reason)))?;
            }
        }
        let entries = value.clone();
        let read = config::servers_of(&mut value, &context.environment);
        servers.configs = read.map_err(|problem| {
            let place = invalid_server_path(&entries, context);
            Failure::usage(self.origin.error(&place, problem))
        })?;
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

/// Returns the path of the first server that cannot be parsed.
fn invalid_server_path(entries: &Value, context: &Context) -> String {
    let mut entries = entries.as_object().into_iter().flatten();
    let invalid = entries.find(|(name, entry)| {
        let mut one = json!({ *name: entry });
        config::servers_of(&mut one, &context.environment).is_err()
    });
    invalid.map_or_else(
        || "mcp_servers".to_owned(),
        |(name, _)| format!("mcp_servers.{name}"),
    )
}

/// An error at a path of a suite.
#[derive(Debug)]
struct PathError {
    place: String,
    reason: String,
}

/// Replaces `bundled: NAME` by the command that runs the bundled server.
fn bundled(server: &str, entry: &mut Value, program: &str) -> Result<(), PathError> {
    let Value::Object(fields) = entry else {
        return Ok(());
    };
    let Some(bundled) = fields.shift_remove("bundled") else {
        return Ok(());
    };
    let wrong = |field: &str, reason: String| {
        Err(PathError {
            place: format!("mcp_servers.{server}{field}"),
            reason,
        })
    };
    let known: Vec<&str> = catalogue().iter().map(|it| it.name).collect();
    let Some(name) = bundled.as_str().filter(|name| known.contains(name)) else {
        let known = known.join(", ");
        let reason = format!("unknown bundled server {bundled}. Available: {known}");
        return wrong(".bundled", reason);
    };
    if fields.contains_key("command") || fields.contains_key("url") {
        let reason = "a bundled server has neither `command` nor `url`".to_owned();
        return wrong("", reason);
    }
    let mut args = vec![json!("mcp-server"), json!(name)];
    match fields.shift_remove("args") {
        None => {}
        Some(Value::Array(more)) => args.extend(more),
        Some(_) => return wrong(".args", "must be a list of texts".to_owned()),
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
