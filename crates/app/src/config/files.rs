//! Finds, parses and merges configuration files.

use std::{
    io,
    path::{Path, PathBuf},
};

use secrecy::SecretString;
use serde_json::Value;
use switchboard_mcp_client::config::{ServerConfig, ServerTransport};

use super::environment::Environment;
use super::{
    Config, ConfigError,
    document::from_value,
    env_file,
    error::Problem,
    interpolate::{self, Scope},
};

/// Names of configuration files, in the working directory and in the user's configuration folder.
pub(crate) const CONFIG_FILE_NAMES: [&str; 4] = [
    "switchboard.yaml",
    "switchboard.yml",
    "switchboard.toml",
    "switchboard.json",
];

/// Sections whose entries may be skipped when nothing is started.
const OPTIONAL_SECTIONS: [&str; 2] = ["mcp_servers", "providers"];

/// Files to read in addition to the ones that are found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    /// A file that replaces the project's file. The user's file is still read.
    pub(crate) config: Option<PathBuf>,
    /// Files that list MCP servers, in any supported form.
    pub(crate) mcp_configs: Vec<PathBuf>,
    /// No server or provider is used: entries with unset variables are skipped.
    pub(crate) is_replay: bool,
}

/// Reads and merges all files.
pub(crate) fn load(sources: &Sources, environment: &Environment) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    let user = match &environment.config_dir {
        Some(folder) => find(folder)?,
        None => None,
    };
    let project = match &sources.config {
        Some(file) => Some(environment.working_dir.join(file)),
        None => find(&environment.working_dir)?,
    };
    let sections: &[&str] = if sources.is_replay {
        &OPTIONAL_SECTIONS
    } else {
        &[]
    };
    for file in [user, project].into_iter().flatten() {
        let value = read(&file)?;
        let over = from_value(&file, value, sections, environment)?;
        let merged = config.merged_with(over);
        config = merged.map_err(|problem| problem.in_file(&file))?;
    }
    for file in &sources.mcp_configs {
        let file = environment.working_dir.join(file);
        match load_servers(&file, environment) {
            Ok(servers) => config.add_servers_of(file, servers),
            Err(ConfigError::InFile {
                problem: Problem::UnsetVariable { .. },
                ..
            }) if sources.is_replay => {}
            Err(error) => return Err(error),
        }
    }
    if sources.is_replay {
        let servers = config.servers.iter_mut();
        servers.for_each(|it| it.retain(|server| !is_unusable(server)));
    }
    Ok(config)
}

/// Reads a file that lists MCP servers.
pub(crate) fn load_servers(
    file: &Path,
    environment: &Environment,
) -> Result<Vec<ServerConfig>, ConfigError> {
    let mut value = read(file)?;
    // Disabled servers and unrelated sections may contain unset variables.
    switchboard_mcp_client::config::select(&mut value);
    let used = fill(&mut value, file, &[], environment).map_err(|it| it.in_file(file))?;
    let mut servers = switchboard_mcp_client::config::from_document(&value)
        .map_err(|error| Problem::from(error).in_file(file))?;
    for server in &mut servers {
        server.secrets.extend(used.iter().cloned());
    }
    Ok(servers)
}

/// Expands the variables of a document. Servers in the form of other hosts are expanded one by one.
/// Entries of the sections `optional_sections` with unset variables are removed.
pub(super) fn fill(
    value: &mut Value,
    file: &Path,
    optional_sections: &[&str],
    environment: &Environment,
) -> Result<Vec<SecretString>, Problem> {
    let scope = Scope {
        environment,
        workspace: workspace_of(file, environment),
    };
    let mut used = Vec::new();
    let finish = |server: &mut Value| env_file::put_in(server, scope.workspace);
    let servers = interpolate::take_foreign(value, scope, &mut used, finish);
    used.extend(interpolate::fill_document(value, optional_sections, scope)?);
    interpolate::put_back(value, servers);
    Ok(used)
}

/// Returns the workspace folder of an editor's server file, otherwise the working directory.
fn workspace_of<'a>(file: &'a Path, environment: &'a Environment) -> &'a Path {
    let folder = file.parent();
    let is_of_editor = |folder: &&Path| folder.ends_with(".vscode") || folder.ends_with(".cursor");
    let workspace = folder.filter(is_of_editor).and_then(Path::parent);
    workspace.unwrap_or(&environment.working_dir)
}

fn is_unusable(server: &ServerConfig) -> bool {
    matches!(server.transport, ServerTransport::Unusable { .. })
}

/// Parses servers in the form of `mcp_servers:` from another kind of file.
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
    let files = CONFIG_FILE_NAMES.iter().map(|name| folder.join(name));
    // A broken link or a folder with this name is reported when it is read.
    let mut found = files.filter(|file| file.symlink_metadata().is_ok());
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => Err(ConfigError::Ambiguous { first, second }),
        (first, _) => Ok(first),
    }
}

fn read(file: &Path) -> Result<Value, ConfigError> {
    from_text(file, &text_of(file)?)
}

pub(crate) fn text_of(file: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(file).map_err(|source| ConfigError::Unreadable {
        file: file.to_owned(),
        source: plain(source),
    })
}

pub(crate) fn from_text(file: &Path, text: &str) -> Result<Value, ConfigError> {
    parse(file, text).map_err(|problem| problem.in_file(file))
}

/// Returns the error without "(os error 2)".
pub(crate) fn plain(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(error.kind(), "file not found"),
        io::ErrorKind::IsADirectory => io::Error::new(error.kind(), "it is a folder"),
        _ => error,
    }
}

fn parse(file: &Path, text: &str) -> Result<Value, Problem> {
    // Editors may write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let ending = file
        .extension()
        .map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        // A file with only comments is an empty configuration.
        Some("yaml" | "yml") => yaml(text),
        Some("toml") => toml(text),
        Some("json") => json(text),
        _ => Err(Problem::UnknownFormat),
    }
}

// The parsers' own messages show the invalid line, which may contain a key.

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

/// Parses JSON with comments and trailing commas.
fn json(text: &str) -> Result<Value, Problem> {
    let mut text = text.to_owned();
    let stripped = json_strip_comments::strip(&mut text);
    // The error of the values is more precise.
    let value = serde_json::from_str(&text).map_err(|error| error.to_string());
    let value = value.and_then(|value| stripped.map(|()| value).map_err(|it| it.to_string()));
    value.map_err(|message| Problem::Syntax {
        format: "JSON",
        message,
    })
}
