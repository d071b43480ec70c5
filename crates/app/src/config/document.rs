//! Converts a parsed file to a [`Config`].

use std::{path::Path, time::Duration};

use serde_json::{Map, Value};
use switchboard_domain::ReasoningEffort;
use switchboard_mcp_client::config::{from_document, from_ours};
use switchboard_orchestration::ApprovalPolicy;

use super::{Config, error::Problem, observe, providers, run, serve, sessions};
use switchboard_domain::nearest::nearest;

/// The keys of a document, without those of `run.rs`.
const KEYS: [&str; 22] = [
    "model",
    "instructions",
    "approve",
    "max_steps",
    "max_output_tokens",
    "temperature",
    "stream",
    "reasoning",
    "tool_timeout",
    "startup_wait",
    "audit",
    "audit_results",
    "log_file",
    "otlp_endpoint",
    "otlp_headers",
    "otlp_content",
    "sessions",
    "serve",
    "providers",
    OURS,
    "mcpServers",
    "servers",
];

const OURS: &str = "mcp_servers";
/// The keys under which other programs list servers.
const FOREIGN: [&str; 2] = ["mcpServers", "servers"];

pub(super) fn read(value: &Value, file: &Path) -> Result<Config, Problem> {
    let known: Vec<&str> = KEYS.into_iter().chain(run::KEYS).collect();
    let fields = Fields::of(value, "", &known)?;
    Ok(Config {
        files: vec![file.to_owned()],
        model: fields.text("model")?,
        instructions: fields.text("instructions")?,
        approve: fields.one_of("approve", &APPROVE)?,
        max_steps: fields.count("max_steps")?,
        max_output_tokens: fields.count("max_output_tokens")?,
        temperature: fields.number("temperature")?,
        stream: fields.flag("stream")?,
        reasoning: fields.one_of("reasoning", &REASONING)?,
        tool_timeout: fields.seconds("tool_timeout")?,
        startup_wait: fields.seconds("startup_wait")?,
        observe: observe::read(&fields, file)?,
        run: run::read(&fields)?,
        sessions: match fields.get("sessions") {
            Some(value) => sessions::read(value, file)?,
            None => sessions::SessionsConfig::default(),
        },
        serve: fields
            .get("serve")
            .map(serve::read)
            .transpose()?
            .unwrap_or_default(),
        providers: match fields.get("providers") {
            Some(value) => providers::read(value)?,
            None => Vec::new(),
        },
        servers: servers(value, &fields)?,
        ..Config::default()
    })
}

const APPROVE: [(&str, ApprovalPolicy); 3] = [
    ("all", ApprovalPolicy::All),
    ("ask", ApprovalPolicy::Ask),
    ("none", ApprovalPolicy::None),
];

const REASONING: [(&str, ReasoningEffort); 4] = [
    ("none", ReasoningEffort::None),
    ("low", ReasoningEffort::Low),
    ("medium", ReasoningEffort::Medium),
    ("high", ReasoningEffort::High),
];

fn servers(
    document: &Value,
    fields: &Fields<'_>,
) -> Result<Option<Vec<switchboard_mcp_client::config::ServerConfig>>, Problem> {
    let mut given = [OURS]
        .into_iter()
        .chain(FOREIGN)
        .filter(|key| fields.get(key).is_some());
    let Some(first) = given.next() else {
        return Ok(None);
    };
    if let Some(second) = given.next() {
        return Err(Problem::ServersTwice { first, second });
    }
    let servers = match fields.get(OURS) {
        Some(value) => from_ours(value)?,
        None => from_document(document)?,
    };
    Ok(Some(servers))
}

/// The fields of a map, with their path for errors. `null` counts as absent.
pub(super) struct Fields<'a> {
    fields: &'a Map<String, Value>,
    place: String,
}

impl<'a> Fields<'a> {
    /// Checks that `value` is a map whose keys are all `known`. `place` is empty for the document.
    pub(super) fn of(value: &'a Value, place: &str, known: &[&str]) -> Result<Self, Problem> {
        let Some(fields) = value.as_object() else {
            let what = if place.is_empty() { "the file" } else { place };
            return Err(Problem::wrong(what, "a map of keys"));
        };
        let this = Self {
            fields,
            place: place.to_owned(),
        };
        match fields.keys().find(|key| !known.contains(&key.as_str())) {
            Some(unknown) => Err(Problem::UnknownKey {
                path: this.path(unknown),
                nearest: nearest(unknown, known.iter().copied()).map(str::to_owned),
                known: known.iter().map(|&key| key.to_owned()).collect(),
            }),
            None => Ok(this),
        }
    }

    fn path(&self, key: &str) -> String {
        if self.place.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.place)
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    /// Reads a field with `take`. `take` returns `None` for an invalid value.
    pub(super) fn read<T>(
        &self,
        key: &str,
        expected: impl Into<String>,
        take: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match take(value) {
                Some(value) => Ok(Some(value)),
                None => Err(Problem::wrong(self.path(key), expected)),
            },
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, Problem> {
        self.read(key, "text, not empty", |value| {
            value
                .as_str()
                .filter(|text| !text.trim().is_empty())
                .map(str::to_owned)
        })
    }

    pub(super) fn count(&self, key: &str) -> Result<Option<u32>, Problem> {
        self.read(key, "a whole number from 1 on", |value| {
            value
                .as_u64()
                .and_then(|number| u32::try_from(number).ok())
                .filter(|&number| number > 0)
        })
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Problem> {
        self.read(key, "true or false", Value::as_bool)
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, Problem> {
        self.read(key, "a number from 0 on", |value| {
            value.as_f64().filter(|number| *number >= 0.0)
        })
    }

    pub(super) fn seconds(&self, key: &str) -> Result<Option<Duration>, Problem> {
        self.read(key, "a number of seconds above 0", |value| {
            value
                .as_f64()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .filter(|duration| !duration.is_zero())
        })
    }

    pub(super) fn names(&self, key: &str) -> Result<Option<Vec<String>>, Problem> {
        self.read(key, "a list of names", |value| {
            let items = value.as_array()?;
            items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect()
        })
    }

    pub(super) fn one_of<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, Problem> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let expected = format!("one of {}", words.join(", "));
        self.read(key, expected, |value| {
            let word = value.as_str()?;
            choices
                .iter()
                .find(|(choice, _)| *choice == word)
                .map(|(_, value)| *value)
        })
    }
}
