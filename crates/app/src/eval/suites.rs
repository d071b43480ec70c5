//! Finds and reads suites.

use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, bail, ensure};
use switchboard_evals::{
    bfcl,
    suite::{Suite, SuiteError},
};

use super::{engine::parameters, origin::Origin, shipped::SHIPPED};
use crate::{
    config::{environment::Environment, plain},
    run_session::failure::available,
};

/// Extensions of suite files.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// The name of standard input in messages.
const STANDARD_INPUT: &str = "standard input";

/// Reads a file, a shipped suite, or standard input for `-`.
pub(crate) fn find(named: &str, environment: &Environment) -> anyhow::Result<(Suite, Origin)> {
    if named == "-" {
        let text = io::read_to_string(io::stdin()).map_err(|it| unreadable(STANDARD_INPUT, it))?;
        return parse(STANDARD_INPUT, &text, false);
    }
    if !is_file(named) {
        let known = SHIPPED.map(|(name, _)| name);
        return match SHIPPED.iter().find(|(name, _)| *name == named) {
            Some((name, text)) => parse(name, text, false),
            None => bail!(
                "unknown suite `{named}`{}. Your own suite is a file, such as {named}.yaml",
                available(named, &known)
            ),
        };
    }
    let path = environment.working_dir.join(named);
    let text = text_of(named, &path)?;
    match ending(&path).as_deref() {
        Some("json") => parse(named, &text, true),
        Some("yaml" | "yml") => parse(named, &text, false),
        _ => bail!(
            "{named}: has no known extension: name it .yaml, .yml or .json, or give it as `-` on \
             standard input"
        ),
    }
}

/// Reads BFCL entries. The default answers are in `possible_answer/` beside the questions.
pub(crate) fn find_bfcl(
    questions: &[PathBuf],
    answers: &[PathBuf],
    environment: &Environment,
) -> anyhow::Result<(Suite, Origin)> {
    ensure!(
        answers.len() <= questions.len(),
        "{} files of answers belong to {} of questions: each of --answers to one of --bfcl",
        answers.len(),
        questions.len()
    );
    let mut all: Option<Suite> = None;
    for (at, file) in questions.iter().enumerate() {
        let suite = entries(file, answers.get(at), environment)?;
        match &mut all {
            None => all = Some(suite),
            Some(all) => {
                // The part after the benchmark's name.
                let title = suite.title.split_once(": ").map(|(_, rest)| rest);
                all.title = format!("{}, {}", all.title, title.unwrap_or(&suite.title));
                all.scenarios.extend(suite.scenarios);
            }
        }
    }
    let suite = all.ok_or_else(|| anyhow!("no file of questions is named"))?;
    // The same entries in two files are an error.
    suite
        .check()
        .map_err(|error| anyhow!("the entries: {error}"))?;
    Ok((suite, Origin::of("the entries", None, Vec::new())))
}

fn entries(
    questions: &Path,
    answers: Option<&PathBuf>,
    environment: &Environment,
) -> anyhow::Result<Suite> {
    let name = questions.display().to_string();
    let path = environment.working_dir.join(questions);
    let text = text_of(&name, &path)?;
    let beside = || {
        let folder = path.parent()?.join("possible_answer");
        let file = folder.join(path.file_name()?);
        file.is_file().then_some(file)
    };
    let answers = answers.map(|file| environment.working_dir.join(file));
    let answers = answers.or_else(beside);
    let answers = answers.map(|path| text_of(&path.display().to_string(), &path));
    let suite = bfcl::read(&text, answers.transpose()?.as_deref());
    suite.map_err(|error| anyhow!("{name}: {error}"))
}

fn text_of(file: &str, path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).map_err(|error| unreadable(file, error))
}

fn unreadable(file: &str, error: io::Error) -> anyhow::Error {
    anyhow!("{file}: cannot be read: {}", plain(error))
}

fn is_file(name: &str) -> bool {
    name.contains(['/', '\\'])
        || ending(Path::new(name)).is_some_and(|it| ENDINGS.contains(&it.as_str()) || it == "toml")
}

fn ending(path: &Path) -> Option<String> {
    let ending = path.extension()?;
    Some(ending.to_string_lossy().to_ascii_lowercase())
}

/// Parses and checks a suite. Comments in JSON are allowed.
pub(crate) fn parse(file: &str, text: &str, is_json: bool) -> anyhow::Result<(Suite, Origin)> {
    let mut text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
    let suite = if is_json {
        let stripped = json_strip_comments::strip(&mut text).map_err(|error| error.to_string());
        stripped.and_then(|()| serde_json::from_str(&text).map_err(|error| error.to_string()))
    } else {
        let options = serde_saphyr::options! { with_snippet: false };
        let mut place = String::new();
        let read = serde_saphyr::with_deserializer_from_str_with_options(&text, options, |yaml| {
            serde_path_to_error::deserialize(yaml).map_err(|error| {
                place = format!("{}: ", error.path());
                error.into_inner()
            })
        });
        read.map_err(|error| format!("{place}{error}").trim_end().to_owned())
    };
    let suite: Suite = suite
        .map_err(|message| anyhow!("{file}: {message}; docs/evaluation.md describes all fields"))?;
    let names = suite.scenarios.iter().map(|it| it.name.clone());
    let origin = Origin::of(file, Some(&text), names.collect());
    match suite.check().and_then(|()| check_parameters(&suite)) {
        Ok(()) => Ok((suite, origin)),
        Err(SuiteError::Meaning { place, reason }) => Err(origin.error(&place, reason)),
        Err(error) => Err(anyhow!("{file}: {error}")),
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
