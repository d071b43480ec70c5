//! Finds, parses and merges configuration files.

use std::{
    io,
    path::{Path, PathBuf},
};

use secrecy::SecretString;
use serde_json::Value;
use switchboard_mcp_client::config::ServerConfig;

use super::{
    Config, ConfigError,
    document_to_config::{config_from_value, remove_providers_and_servers},
    env_file,
    environment::Environment,
    error::Problem,
    variable_expansion::{self, VariableScope},
};

/// Names of configuration files, which are searched for in the working directory and in the user's
/// configuration folder.
pub(crate) const CONFIG_FILE_NAMES: [&str; 4] = [
    "switchboard.yaml",
    "switchboard.yml",
    "switchboard.toml",
    "switchboard.json",
];

/// Configuration files that command-line options select.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigSources {
    /// File to read instead of the project's configuration file. The user's file is still read.
    pub(crate) config: Option<PathBuf>,
    /// Additional files that list MCP servers, in any supported format.
    pub(crate) mcp_configs: Vec<PathBuf>,
    /// Whether a recording is replayed. If so, MCP servers and providers in the files are ignored,
    /// because a replay does not need them.
    pub(crate) is_replay: bool,
}

/// Reads all configuration files and merges them into one configuration.
pub(crate) fn load_config(
    sources: &ConfigSources,
    environment: &Environment,
) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    let user = match &environment.config_dir {
        Some(folder) => find_config_file(folder)?,
        None => None,
    };
    let project = match &sources.config {
        Some(file) => Some(environment.working_dir.join(file)),
        None => find_config_file(&environment.working_dir)?,
    };
    for file in [user, project].into_iter().flatten() {
        let mut value = read_document(&file)?;
        if sources.is_replay {
            remove_providers_and_servers(&mut value);
        }
        let over = config_from_value(&file, value, environment)?;
        let merged = config.merge_config(over);
        config = merged.map_err(|problem| problem.into_config_error(&file))?;
    }
    if !sources.is_replay {
        for file in &sources.mcp_configs {
            let file = environment.working_dir.join(file);
            let servers = load_servers(&file, environment)?;
            config.add_servers_from_file(file, servers);
        }
    }
    Ok(config)
}

/// Reads the MCP servers from a file of any supported format.
pub(crate) fn load_servers(
    file: &Path,
    environment: &Environment,
) -> Result<Vec<ServerConfig>, ConfigError> {
    let mut value = read_document(file)?;
    // Disabled servers and unrelated sections are removed before variables are expanded, because
    // unset variables in them must not cause errors.
    switchboard_mcp_client::config::drop_unused_parts(&mut value);
    let used = expand_document_variables(&mut value, file, environment)
        .map_err(|it| it.into_config_error(file))?;
    let mut servers = switchboard_mcp_client::config::parse_config_document(&value)
        .map_err(|error| Problem::from(error).into_config_error(file))?;
    for server in &mut servers {
        server.secrets.extend(used.iter().cloned());
    }
    Ok(servers)
}

/// Expands the variables in the parsed configuration file `file`. Returns the values of the used
/// environment variables, which may be secrets. An MCP server with an error in a list of another
/// MCP host, such as `mcpServers`, becomes unusable, and the function returns no error for it.
pub(super) fn expand_document_variables(
    value: &mut Value,
    file: &Path,
    environment: &Environment,
) -> Result<Vec<SecretString>, Problem> {
    let scope = VariableScope {
        environment,
        workspace: workspace_folder(file, environment),
    };
    let mut used = Vec::new();
    let finish = |server: &mut Value| env_file::add_env_file_variables(server, scope.workspace);
    let servers = variable_expansion::expand_mcp_json_servers(value, scope, &mut used, finish);
    used.extend(variable_expansion::expand_config_strings(value, scope)?);
    variable_expansion::insert_mcp_json_servers(value, servers);
    Ok(used)
}

/// Returns the workspace folder: the parent folder of `.vscode` or `.cursor` for a file in these
/// folders, and the working directory for other files.
fn workspace_folder<'a>(file: &'a Path, environment: &'a Environment) -> &'a Path {
    let folder = file.parent();
    let is_of_editor = |folder: &&Path| folder.ends_with(".vscode") || folder.ends_with(".cursor");
    let workspace = folder.filter(is_of_editor).and_then(Path::parent);
    workspace.unwrap_or(&environment.working_dir)
}

/// Parses MCP servers in the format of the configuration key `mcp_servers`. They come from a file
/// that is not a configuration file, such as the suite of an evaluation.
pub(crate) fn parse_servers(
    value: &mut Value,
    environment: &Environment,
) -> Result<Vec<ServerConfig>, Problem> {
    let scope = VariableScope::from_environment(environment);
    let mut used = Vec::new();
    variable_expansion::expand_strings(value, false, scope, &mut used)?;
    let mut servers = switchboard_mcp_client::config::parse_mcp_servers(value)?;
    for server in &mut servers {
        server.secrets.extend(used.iter().cloned());
    }
    Ok(servers)
}

fn find_config_file(folder: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let files = CONFIG_FILE_NAMES.iter().map(|name| folder.join(name));
    // A broken link or a folder with the name of a configuration file also counts, so that an
    // attempt to read it reports the problem.
    let mut found = files.filter(|file| file.symlink_metadata().is_ok());
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => Err(ConfigError::Ambiguous { first, second }),
        (first, _) => Ok(first),
    }
}

fn read_document(file: &Path) -> Result<Value, ConfigError> {
    parse_document(file, &read_text_file(file)?)
}

pub(crate) fn read_text_file(file: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(file).map_err(|source| ConfigError::Unreadable {
        file: file.to_owned(),
        source: remove_os_error_code(source),
    })
}

/// Replaces common I/O errors by errors without a suffix such as "(os error 2)" in the message.
pub(crate) fn remove_os_error_code(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(error.kind(), "file not found"),
        io::ErrorKind::IsADirectory => io::Error::new(error.kind(), "it is a folder, not a file"),
        _ => error,
    }
}

pub(crate) fn parse_document(file: &Path, text: &str) -> Result<Value, ConfigError> {
    // Some editors write a byte order mark at the start of the file, which parsers may reject.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let ending = file
        .extension()
        .map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let parsed = match ending.as_deref() {
        // A YAML file that contains only comments is valid and gives an empty configuration.
        Some("yaml" | "yml") => parse_yaml(text),
        Some("toml") => parse_toml(text),
        Some("json") => parse_json(text),
        _ => Err(Problem::UnknownFormat),
    };
    parsed.map_err(|problem| problem.into_config_error(file))
}

// Each parser below omits a part of the library's error message: the quoted line of the file, which
// may contain an API key.

fn parse_yaml(text: &str) -> Result<Value, Problem> {
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options::<Option<Value>>(text, options)
        .map(|value| value.unwrap_or_else(|| Value::Object(serde_json::Map::new())))
        .map_err(|error| Problem::Syntax {
            format: "YAML",
            message: error.to_string().trim_end().to_owned(),
        })
}

fn parse_toml(text: &str) -> Result<Value, Problem> {
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

/// Parses JSON. Comments and trailing commas are allowed.
fn parse_json(text: &str) -> Result<Value, Problem> {
    let mut text = text.to_owned();
    let stripped = json_strip_comments::strip(&mut text);
    // If both the removal of comments and `serde_json` fail, the error of `serde_json` is returned,
    // because it is more precise.
    let value = serde_json::from_str(&text).map_err(|error| error.to_string());
    let value = value.and_then(|value| stripped.map(|()| value).map_err(|it| it.to_string()));
    value.map_err(|message| Problem::Syntax {
        format: "JSON",
        message,
    })
}
