//! Converts the parsed content of a configuration file to a [`Config`].

use std::path::Path;

use serde::Deserializer;
use serde_json::{Map, Value};
use switchboard_mcp_client::config::{ServerConfig, parse_config_document, parse_mcp_servers};

use super::{
    AuditLocation, Config, ConfigError, StoreLocation,
    environment::Environment,
    error::Problem,
    field_parsing::{check_is_map, deserialize_converted, deserialize_section},
    files, providers,
};

/// Configuration key for MCP servers in Switchboard's own format.
const OURS: &str = "mcp_servers";
/// Keys for MCP servers in the formats of other MCP hosts, such as VS Code.
const FOREIGN: [&str; 2] = ["mcpServers", "servers"];
/// Configuration sections that are maps. The same section of several files is merged key by key.
const MAPS: [&str; 5] = ["limits", "approvals", "sessions", "serve", BREAKER];
const BREAKER: &str = "circuit_breaker";
const PROVIDERS: &str = "providers";
/// Configuration sections for providers and MCP servers. They are parsed separately and not as
/// fields of [`Config`].
const SEPARATE_SECTIONS: [&str; 4] = [PROVIDERS, OURS, FOREIGN[0], FOREIGN[1]];

/// Expands the variables in the parsed content of the configuration file `file`, and converts the
/// content to a [`Config`].
pub(super) fn config_from_value(
    file: &Path,
    mut value: Value,
    environment: &Environment,
) -> Result<Config, ConfigError> {
    switchboard_mcp_client::config::prune_server_entries(&mut value);
    let used = files::expand_document_variables(&mut value, file, environment);
    let used = used.map_err(|error| error.into_config_error(file))?;
    let mut config = read_config(&value, file).map_err(|error| error.into_config_error(file))?;
    for server in config.servers.iter_mut().flatten() {
        server.secrets.extend(used.iter().cloned());
        let (name, file) = (server.name.clone(), file.to_owned());
        config.server_files.insert(name, file);
    }
    config.filled = used;
    Ok(config)
}

/// Removes the sections with providers and MCP servers from the content of a file.
pub(super) fn remove_providers_and_servers(document: &mut Value) {
    if let Value::Object(fields) = document {
        fields.retain(|key, _| !SEPARATE_SECTIONS.contains(&key.as_str()));
    }
}

pub(super) fn read_config(value: &Value, file: &Path) -> Result<Config, Problem> {
    check_is_map("the file", value)?;
    for path in MAPS {
        non_null_value(value, path).map_or(Ok(()), |value| check_is_map(path, value))?;
    }
    let mut settings = value.clone();
    remove_providers_and_servers(&mut settings);
    let mut config: Config = deserialize_section("", &settings).map_err(|mut problem| {
        if let Problem::UnknownKey { path, known } = &mut problem
            && !path.contains('.')
        {
            known.extend(SEPARATE_SECTIONS.map(str::to_owned));
        }
        problem
    })?;
    if config.otlp_endpoint.is_none() && config.otlp_headers.is_some() {
        return Err(Problem::wrong_value(
            "otlp_headers",
            "used together with otlp_endpoint",
        ));
    }
    if let Some(value) = non_null_value(value, PROVIDERS) {
        config.providers = providers::read_providers(value)?;
    }
    config.servers = read_servers(value)?;
    if let Value::Object(settings) = settings {
        config.settings = settings;
    }
    config.files = vec![file.to_owned()];
    make_paths_absolute(&mut config, file.parent().unwrap_or(Path::new("")));
    Ok(config)
}

/// Merges the settings `over` of a file into `base`, the settings of files with lower precedence.
/// The sections in [`MAPS`] are merged key by key, and lists of guards are joined. Other values of
/// `over` replace the values of `base`.
pub(super) fn merge_settings(base: &mut Map<String, Value>, over: Map<String, Value>) {
    if over.get("otlp_endpoint").is_some_and(|it| !it.is_null()) {
        // The `otlp_headers` of `base` may contain an API key, which a different collector must not
        // receive.
        base.shift_remove("otlp_headers");
    }
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (_, Value::Null) => {}
            (Some(Value::Object(base)), Value::Object(over)) if MAPS.contains(&key.as_str()) => {
                base.extend(over.into_iter().filter(|(_, value)| !value.is_null()));
            }
            (Some(Value::Array(base)), Value::Array(over)) if key == "guards" => base.extend(over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Returns the value of a key in the document. A `null` value counts as a missing key.
fn non_null_value<'a>(document: &'a Value, key: &str) -> Option<&'a Value> {
    document.get(key).filter(|value| !value.is_null())
}

fn read_servers(document: &Value) -> Result<Option<Vec<ServerConfig>>, Problem> {
    let keys = [OURS].into_iter().chain(FOREIGN);
    let mut keys = keys.filter(|key| non_null_value(document, key).is_some());
    let Some(first) = keys.next() else {
        return Ok(None);
    };
    if let Some(second) = keys.next() {
        return Err(Problem::ServersTwice { first, second });
    }
    let servers = match non_null_value(document, OURS) {
        Some(value) => parse_mcp_servers(value)?,
        None => parse_config_document(document)?,
    };
    Ok(Some(servers))
}

/// Makes the paths in a configuration absolute. A relative path in a configuration file is relative
/// to the folder of this file.
fn make_paths_absolute(config: &mut Config, folder: &Path) {
    let audit = match &mut config.audit {
        Some(AuditLocation::File(path)) => Some(path),
        _ => None,
    };
    let store = match &mut config.sessions.store {
        Some(StoreLocation::File(path)) => Some(path),
        _ => None,
    };
    for path in [audit, store, config.log_file.as_mut()]
        .into_iter()
        .flatten()
    {
        *path = folder.join(&path);
    }
}

pub(super) fn deserialize_audit<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<AuditLocation>, D::Error> {
    deserialize_converted(deserializer, "true, false or a file", |value| match value {
        Value::Bool(true) => Some(AuditLocation::Default),
        Value::Bool(false) => Some(AuditLocation::Off),
        Value::String(name) if !name.trim().is_empty() => Some(AuditLocation::File(name.into())),
        _ => None,
    })
}

#[cfg(test)]
#[path = "document_to_config_tests.rs"]
mod tests;
