//! Where configuration is found and how a file becomes a value.

use std::{
    io,
    path::{Path, PathBuf},
};

use secrecy::SecretString;
use serde_json::Value;
use switchboard_mcp_client::config::{ServerConfig, ServerTransport};

use super::{
    Config, ConfigError, env_file,
    error::Problem,
    from_value,
    interpolate::{self, Scope},
};
use crate::environment::Environment;

/// The names a configuration file may have, in the working directory and in the user's
/// configuration folder.
pub const CONFIG_FILE_NAMES: [&str; 4] = [
    "switchboard.yaml",
    "switchboard.yml",
    "switchboard.toml",
    "switchboard.json",
];

/// The parts of a file about what is started or asked, by name.
const LEFT_OUT: [&str; 2] = ["mcp_servers", "providers"];

/// Which files to read besides the ones that are found.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Read instead of the project's file. The user's own is still read.
    pub config: Option<PathBuf>,
    /// Files that list MCP servers, in any of the known forms.
    pub mcp_configs: Vec<PathBuf>,
    /// Nothing is started and nobody asked: servers and providers with variables that are not set are left out.
    pub nothing_starts: bool,
}

/// Reads and merges all files.
pub fn load(sources: &Sources, environment: &Environment) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    let user = match &environment.config_dir {
        Some(folder) => find(folder)?,
        None => None,
    };
    let project = match &sources.config {
        Some(file) => Some(environment.working_dir.join(file)),
        None => find(&environment.working_dir)?,
    };
    for file in [user, project].into_iter().flatten() {
        let value = read(&file)?;
        let sections = if sources.nothing_starts {
            LEFT_OUT.as_slice()
        } else {
            &[]
        };
        config = config.overlaid_by(from_value(&file, value, sections, environment)?);
    }
    for file in &sources.mcp_configs {
        let file = environment.working_dir.join(file);
        match load_servers(&file, environment) {
            Ok(servers) => config.add_servers_of(file, servers),
            Err(ConfigError::InFile {
                problem: Problem::UnsetVariable { .. },
                ..
            }) if sources.nothing_starts => {}
            Err(error) => return Err(error),
        }
    }
    if sources.nothing_starts {
        let servers = config.servers.iter_mut();
        servers.for_each(|it| it.retain(|server| !is_unusable(server)));
    }
    Ok(config)
}

/// Reads a file that lists MCP servers.
pub fn load_servers(
    file: &Path,
    environment: &Environment,
) -> Result<Vec<ServerConfig>, ConfigError> {
    let mut value = read(file)?;
    // What is switched off, and what is about other things, may hold variables that nobody set.
    switchboard_mcp_client::config::select(&mut value);
    let used = fill(&mut value, file, &[], environment).map_err(|it| it.in_file(file))?;
    let mut servers = switchboard_mcp_client::config::from_document(&value)
        .map_err(|error| Problem::from(error).in_file(file))?;
    for server in &mut servers {
        server.secrets.extend(used.iter().cloned());
    }
    Ok(servers)
}

/// Fills in a document: the servers in the form of other hosts each by itself, and then everything else. Entries of
/// the maps under the keys `left_out` that need a variable which is not set are taken out.
pub(super) fn fill(
    value: &mut Value,
    file: &Path,
    left_out: &[&str],
    environment: &Environment,
) -> Result<Vec<SecretString>, Problem> {
    let scope = Scope {
        environment,
        workspace: workspace_of(file, environment),
    };
    let mut used = Vec::new();
    let finish = |server: &mut Value| env_file::put_in(server, scope.workspace);
    let servers = interpolate::take_foreign(value, scope, &mut used, finish);
    // Apart from the rest: it holds placeholders that each run fills.
    let mut context = value.get_mut("context").map(Value::take);
    if let Some(context) = &mut context {
        used.extend(interpolate::fill_context(context, scope)?);
    }
    used.extend(interpolate::fill_but(value, left_out, scope)?);
    if let Some(context) = context {
        value["context"] = context;
    }
    interpolate::put_back(value, servers);
    Ok(used)
}

/// Returns the folder that an editor has opened whose file of servers this is, else the working directory.
fn workspace_of<'a>(file: &'a Path, environment: &'a Environment) -> &'a Path {
    let folder = file.parent();
    let is_of_editor = |folder: &&Path| folder.ends_with(".vscode") || folder.ends_with(".cursor");
    let workspace = folder.filter(is_of_editor).and_then(Path::parent);
    workspace.unwrap_or(&environment.working_dir)
}

fn is_unusable(server: &ServerConfig) -> bool {
    matches!(server.transport, ServerTransport::Unusable { .. })
}

/// Servers in the form of our own `mcp_servers:` that stand in another file than a configuration.
pub(crate) fn servers_of(
    value: &mut Value,
    environment: &Environment,
) -> Result<Vec<ServerConfig>, Problem> {
    let used = interpolate::fill(value, Scope::of(environment))?;
    let mut servers = switchboard_mcp_client::config::from_ours(value)?;
    for server in &mut servers {
        server.secrets.extend(used.iter().cloned());
    }
    Ok(servers)
}

fn find(folder: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let mut found: Option<PathBuf> = None;
    for file in CONFIG_FILE_NAMES.iter().map(|name| folder.join(name)) {
        // A link to nothing or a folder of that name is there, and is told when it is read.
        match std::fs::symlink_metadata(&file) {
            Ok(_) => match found {
                Some(first) => {
                    return Err(ConfigError::Ambiguous {
                        first,
                        second: file,
                    });
                }
                None => found = Some(file),
            },
            Err(error) if is_absent(&error) => {}
            Err(source) => return Err(ConfigError::Unreadable { file, source }),
        }
    }
    Ok(found)
}

fn read(file: &Path) -> Result<Value, ConfigError> {
    from_text(file, &text_of(file)?)
}

/// What stands in a file.
pub(crate) fn text_of(file: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(file).map_err(|source| ConfigError::Unreadable {
        file: file.to_owned(),
        source: plain(source),
    })
}

/// Parses what stands in a file, by the ending of its name.
pub(crate) fn from_text(file: &Path, text: &str) -> Result<Value, ConfigError> {
    parse(file, text).map_err(|problem| problem.in_file(file))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// An error that a name leads to says so without "(os error 2)".
pub(super) fn plain(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(error.kind(), "there is no such file"),
        io::ErrorKind::IsADirectory => io::Error::new(error.kind(), "it is a folder"),
        _ => error,
    }
}

fn parse(file: &Path, text: &str) -> Result<Value, Problem> {
    // A byte order mark is no part of any of these formats, but editors write it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let ending = file
        .extension()
        .map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        // A file with nothing but comments is an empty configuration.
        Some("yaml" | "yml") => yaml(text),
        Some("toml") => toml(text),
        Some("json") => json(text),
        _ => Err(Problem::UnknownFormat),
    }
}

// None of these shows the line that is wrong, as the parsers do: there may be a key in it.

fn yaml(text: &str) -> Result<Value, Problem> {
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options::<Option<Value>>(text, options)
        .map(|value| value.unwrap_or_else(|| Value::Object(serde_json::Map::new())))
        .map_err(|error| Problem::Syntax {
            format: "YAML",
            message: error.to_string().trim_end().to_owned(),
        })
}

fn toml(text: &str) -> Result<Value, Problem> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let place = before.map_or_else(String::new, |before| {
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
            format!(" at line {line} column {column}")
        });
        Problem::Syntax {
            format: "TOML",
            message: format!("{}{place}", error.message()),
        }
    })
}

/// With comments and commas at the end of a list, as editors write and allow them.
fn json(text: &str) -> Result<Value, Problem> {
    let mut text = text.to_owned();
    let stripped = json_strip_comments::strip(&mut text);
    let value = serde_json::from_str(&text);
    match (value, stripped) {
        (Ok(value), Ok(())) => Ok(value),
        (Err(error), _) => Err(Problem::Syntax {
            format: "JSON",
            message: error.to_string(),
        }),
        (Ok(_), Err(error)) => Err(Problem::Syntax {
            format: "JSON",
            message: error.to_string(),
        }),
    }
}
