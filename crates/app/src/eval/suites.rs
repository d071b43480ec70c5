//! Where suites are, and reading them.

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
use crate::environment::Environment;

/// The endings that a suite's file may have.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// What the standard input is called in messages.
const STANDARD_INPUT: &str = "standard input";

/// Why there is no suite.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SuitesError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {}", plain(error))]
    Unreadable {
        /// The file.
        file: String,
        /// Why. It is no cause of this: the message tells it, in other words.
        error: io::Error,
    },
    /// Its name does not say what it is.
    #[error(
        "{file}: has no known ending: name it .yaml, .yml or .json, or give it as `-` on standard input"
    )]
    Ending {
        /// The file.
        file: String,
    },
    /// It is neither YAML nor JSON, or its fields are not those of a suite.
    #[error("{file}: {message}; docs/evaluation.md describes all fields")]
    Shape {
        /// The file.
        file: String,
        /// What is wrong and where.
        message: String,
    },
    /// Something that cannot be meant.
    #[error("{file}: {}{error}", line.map_or_else(String::new, |line| format!("line {line}: ")))]
    Meaning {
        /// The file.
        file: String,
        /// The line, if it is known.
        line: Option<u64>,
        /// What is wrong.
        error: SuiteError,
    },
    /// There is none of this name.
    #[error(
        "there is no suite `{name}`{}; there are: {}. One of your own is a file, such as {name}.yaml",
        did_you_mean(nearest.as_deref()),
        known.join(", ")
    )]
    NotFound {
        /// The name.
        name: String,
        /// The known one most like it.
        nearest: Option<String>,
        /// All that there are.
        known: Vec<String>,
    },
    /// Answers to nothing.
    #[error(
        "{answers} files of answers belong to {questions} of questions: each of --answers to one of --bfcl"
    )]
    Answers {
        /// How many there are.
        answers: usize,
        /// How many files of questions.
        questions: usize,
    },
    /// Entries of the Berkeley Function Calling Leaderboard cannot be read.
    #[error("{file}: {source}")]
    Bfcl {
        /// The file.
        file: String,
        /// Why.
        source: BfclError,
    },
}

/// An error that a name leads to says so without "(os error 2)".
pub(crate) fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    }
}

/// A suite and where it comes from.
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

/// Reads a suite: a file, the name of one that ships, or `-` for standard input.
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

/// Reads a suite that ships.
pub(crate) fn shipped(name: &str, text: &str) -> Result<Suite, SuitesError> {
    yaml(name, text)
}

/// Reads entries of the Berkeley Function Calling Leaderboard. Answers that are not named are looked for where that
/// benchmark keeps them: in `possible_answer/` beside the questions.
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
    // The same entries in two files are a mistake.
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

/// What stands after the benchmark's name in a title.
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
    let read = serde_saphyr::from_str_with_options::<Suite>(text, options);
    let suite = read.map_err(|error| {
        let mut message = error.to_string().trim_end().to_owned();
        // The parser knows the line, and not always the field.
        let at = error.location().filter(|at| at.line() > 0);
        let unknown = message.strip_prefix("unknown field `");
        let unknown = unknown.and_then(|rest| rest.split_once('`'));
        let place = at.zip(Places::of(text)).and_then(|(at, places)| {
            let at = (at.line(), at.column());
            match unknown {
                Some((field, _)) => places.holding(field, at),
                None => places.at(at),
            }
        });
        if let Some(place) = place.filter(|place| !place.is_empty()) {
            message = format!("{place}: {message}");
        }
        SuitesError::Shape {
            file: file.to_owned(),
            message,
        }
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

/// That what a scenario sets of its run can be set.
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
