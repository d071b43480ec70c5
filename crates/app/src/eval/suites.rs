//! Finds and reads suites.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use switchboard_domain::nearest::{did_you_mean, nearest};
use switchboard_evals::{
    bfcl::{self, BfclError},
    suite::{Suite, SuiteError},
};

use super::{engine::parameters, origin::Origin, place::Places, shipped::SHIPPED};
use crate::config::environment::Environment;

/// Extensions of suite files.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// The name of standard input in messages.
const STANDARD_INPUT: &str = "standard input";

/// A suite cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SuitesError {
    #[error("{file}: cannot be read: {}", plain(error))]
    Unreadable {
        file: String,
        /// Not a source, because the message contains it in other words.
        error: io::Error,
    },
    /// Unknown extension.
    #[error(
        "{file}: has no known extension: name it .yaml, .yml or .json, or give it as `-` on \
         standard input"
    )]
    Ending { file: String },
    /// Invalid YAML or JSON, or unknown fields.
    #[error("{file}: {message}; docs/evaluation.md describes all fields")]
    Shape { file: String, message: String },
    /// A contradiction in the suite.
    #[error("{file}: {}{error}", line.map_or_else(String::new, |line| format!("line {line}: ")))]
    Meaning {
        file: String,
        line: Option<u64>,
        error: SuiteError,
    },
    /// Unknown suite.
    #[error(
        "unknown suite `{name}`{}. Available: {}. Your own suite is a file, such as {name}.yaml",
        did_you_mean(nearest.as_deref()),
        known.join(", ")
    )]
    NotFound {
        name: String,
        /// The most similar name.
        nearest: Option<String>,
        known: Vec<String>,
    },
    /// More answer files than question files.
    #[error(
        "{answers} files of answers belong to {questions} of questions: each of --answers to one \
         of --bfcl"
    )]
    Answers { answers: usize, questions: usize },
    /// Invalid BFCL entries.
    #[error("{file}: {source}")]
    Bfcl { file: String, source: BfclError },
}

/// Returns the error without "(os error 2)".
pub(crate) fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "file not found".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    }
}

/// A suite and its source.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) suite: Suite,
    pub(crate) origin: Origin,
}

impl Found {
    fn of(file: &str, text: &str, suite: Suite) -> Self {
        let names = suite.scenarios.iter().map(|it| it.name.clone());
        Self {
            origin: Origin::of(file, Some(text), names.collect()),
            suite,
        }
    }
}

/// Reads a file, a shipped suite, or standard input for `-`.
pub(crate) fn find(named: &str, environment: &Environment) -> Result<Found, SuitesError> {
    if named == "-" {
        let mut text = String::new();
        let read = io::stdin().read_to_string(&mut text);
        read.map_err(|error| SuitesError::Unreadable {
            file: STANDARD_INPUT.to_owned(),
            error,
        })?;
        let suite = yaml(STANDARD_INPUT, &text)?;
        return Ok(Found::of(STANDARD_INPUT, &text, suite));
    }
    if !is_file(named) {
        return match SHIPPED.iter().find(|(name, _)| *name == named) {
            Some((name, text)) => Ok(Found::of(name, text, shipped(name, text)?)),
            None => Err(not_found(named)),
        };
    }
    let path = environment.working_dir.join(named);
    let text = text_of(named, &path)?;
    let suite = match ending(&path).as_deref() {
        Some("json") => json(named, &text),
        Some("yaml" | "yml") => yaml(named, &text),
        _ => Err(SuitesError::Ending {
            file: named.to_owned(),
        }),
    }?;
    Ok(Found::of(named, &text, suite))
}

/// Reads a shipped suite.
pub(crate) fn shipped(name: &str, text: &str) -> Result<Suite, SuitesError> {
    yaml(name, text)
}

/// Reads BFCL entries. The default answers are in `possible_answer/` beside the questions.
pub(crate) fn find_bfcl(
    (first, more): (&Path, &[PathBuf]),
    answers: &[PathBuf],
    environment: &Environment,
) -> Result<Found, SuitesError> {
    if answers.len() > 1 + more.len() {
        return Err(SuitesError::Answers {
            answers: answers.len(),
            questions: 1 + more.len(),
        });
    }
    let mut answers = answers.iter().map(PathBuf::as_path);
    let mut suite = entries(first, answers.next(), environment)?;
    for file in more {
        let further = entries(file, answers.next(), environment)?;
        suite.title = format!("{}, {}", suite.title, categories(&further.title));
        suite.scenarios.extend(further.scenarios);
    }
    // The same entries in two files are an error.
    suite.check().map_err(|error| SuitesError::Meaning {
        file: "the entries".to_owned(),
        line: None,
        error,
    })?;
    let origin = Origin::of("the entries", None, Vec::new());
    Ok(Found { suite, origin })
}

fn entries(
    questions: &Path,
    answers: Option<&Path>,
    environment: &Environment,
) -> Result<Suite, SuitesError> {
    let name = questions.display().to_string();
    let path = environment.working_dir.join(questions);
    let text = text_of(&name, &path)?;
    let answers = match answers {
        Some(file) => Some(environment.working_dir.join(file)),
        None => beside(&path).filter(|path| path.is_file()),
    };
    let answers = answers.map(|path| text_of(&path.display().to_string(), &path));
    let suite = bfcl::read(&text, answers.transpose()?.as_deref());
    suite.map_err(|source| SuitesError::Bfcl { file: name, source })
}

/// Returns the part of a title after the benchmark's name.
fn categories(title: &str) -> &str {
    title.split_once(": ").map_or(title, |(_, rest)| rest)
}

fn beside(questions: &Path) -> Option<PathBuf> {
    let folder = questions.parent()?.join("possible_answer");
    Some(folder.join(questions.file_name()?))
}

fn text_of(file: &str, path: &Path) -> Result<String, SuitesError> {
    std::fs::read_to_string(path).map_err(|error| SuitesError::Unreadable {
        file: file.to_owned(),
        error,
    })
}

fn not_found(name: &str) -> SuitesError {
    let known = || SHIPPED.iter().map(|(name, _)| *name);
    SuitesError::NotFound {
        name: name.to_owned(),
        nearest: nearest(name, known()).map(str::to_owned),
        known: known().map(str::to_owned).collect(),
    }
}

fn is_file(name: &str) -> bool {
    name.contains(['/', '\\'])
        || ending(Path::new(name)).is_some_and(|it| ENDINGS.contains(&it.as_str()) || it == "toml")
}

fn ending(path: &Path) -> Option<String> {
    let ending = path.extension()?;
    Some(ending.to_string_lossy().to_ascii_lowercase())
}

fn yaml(file: &str, text: &str) -> Result<Suite, SuitesError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let options = serde_saphyr::options! { with_snippet: false };
    let mut place = String::new();
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
        serde_path_to_error::deserialize(yaml).map_err(|error| {
            place = format!("{}: ", error.path());
            error.into_inner()
        })
    });
    let suite = read.map_err(|error| SuitesError::Shape {
        file: file.to_owned(),
        message: format!("{place}{error}").trim_end().to_owned(),
    })?;
    checked(file, text, suite)
}

fn json(file: &str, text: &str) -> Result<Suite, SuitesError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let shape = |message: String| SuitesError::Shape {
        file: file.to_owned(),
        message,
    };
    let mut plain = text.to_owned();
    json_strip_comments::strip(&mut plain).map_err(|error| shape(error.to_string()))?;
    let suite = serde_json::from_str(&plain).map_err(|error| shape(error.to_string()))?;
    checked(file, &plain, suite)
}

fn checked(file: &str, text: &str, suite: Suite) -> Result<Suite, SuitesError> {
    match suite.check().and_then(|()| check_parameters(&suite)) {
        Ok(()) => Ok(suite),
        Err(error) => {
            let line = match &error {
                SuiteError::Meaning { place, .. } => {
                    Places::of(text).and_then(|places| places.line(place))
                }
                _ => None,
            };
            Err(SuitesError::Meaning {
                file: file.to_owned(),
                line,
                error,
            })
        }
    }
}

/// Checks the run parameters of all scenarios.
fn check_parameters(suite: &Suite) -> Result<(), SuiteError> {
    for (at, scenario) in suite.scenarios.iter().enumerate() {
        parameters(&scenario.parameters).map_err(|reason| SuiteError::Meaning {
            place: format!("scenarios[{at}].parameters"),
            reason,
        })?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "suites_tests.rs"]
mod tests;
