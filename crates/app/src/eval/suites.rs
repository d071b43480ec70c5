//! Finds, reads and checks suites.

use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, bail, ensure};
use switchboard_evals::{
    bfcl,
    suite::{Suite, SuiteError},
};

use super::{evaluator::parse_parameters, shipped_suites::SHIPPED, suite_origin::SuiteOrigin};
use switchboard_domain::similar_names::list_available_names;

use crate::config::{environment::Environment, remove_os_error_code};

/// File extensions that mark the argument of `eval` as a file and not as a suite name.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Name that error messages use for a suite from standard input.
const STANDARD_INPUT: &str = "standard input";

/// Reads a suite from a file, from standard input (`-`) or from the shipped suites.
pub(crate) fn find_suite(
    named: &str,
    environment: &Environment,
) -> anyhow::Result<(Suite, SuiteOrigin)> {
    if named == "-" {
        let text = io::read_to_string(io::stdin())
            .map_err(|it| unreadable_file_error(STANDARD_INPUT, it))?;
        return parse_suite(STANDARD_INPUT, &text, false);
    }
    if !is_file_name(named) {
        let known = SHIPPED.map(|(name, _)| name);
        return match SHIPPED.iter().find(|(name, _)| *name == named) {
            Some((name, text)) => parse_suite(name, text, false),
            None => bail!(
                "unknown suite `{named}`{}. For your own suite, give a file such as {named}.yaml",
                list_available_names(named, &known)
            ),
        };
    }
    let path = environment.working_dir.join(named);
    let text = read_suite_text(named, &path)?;
    match file_extension(&path).as_deref() {
        Some("json") => parse_suite(named, &text, true),
        Some("yaml" | "yml") => parse_suite(named, &text, false),
        _ => bail!(
            "{named}: unknown file extension: use .yaml, .yml or .json, or pass the suite as `-` \
             on standard input"
        ),
    }
}

/// Reads entries of the Berkeley Function Calling Leaderboard (BFCL) as a suite. By default, answer
/// files are in `possible_answer/` beside the question files.
pub(crate) fn read_bfcl_suite(
    questions: &[PathBuf],
    answers: &[PathBuf],
    environment: &Environment,
) -> anyhow::Result<(Suite, SuiteOrigin)> {
    ensure!(
        answers.len() <= questions.len(),
        "{} answer files for {} question files: give at most one --answers for each --bfcl",
        answers.len(),
        questions.len()
    );
    let mut all: Option<Suite> = None;
    for (at, file) in questions.iter().enumerate() {
        let suite = read_bfcl_file(file, answers.get(at), environment)?;
        match &mut all {
            None => all = Some(suite),
            Some(all) => {
                // Each title begins with the name of the benchmark and a colon. The joined title
                // contains the name only once.
                let title = suite.title.split_once(": ").map(|(_, rest)| rest);
                all.title = format!("{}, {}", all.title, title.unwrap_or(&suite.title));
                all.scenarios.extend(suite.scenarios);
            }
        }
    }
    let suite = all.ok_or_else(|| anyhow!("no question file is given"))?;
    // The joined suite is checked as well, because two files may contain the same entry.
    suite
        .validate_suite()
        .map_err(|error| anyhow!("the entries: {error}"))?;
    Ok((
        suite,
        SuiteOrigin::from_text("the entries", None, Vec::new()),
    ))
}

fn read_bfcl_file(
    questions: &Path,
    answers: Option<&PathBuf>,
    environment: &Environment,
) -> anyhow::Result<Suite> {
    let name = questions.display().to_string();
    let path = environment.working_dir.join(questions);
    let text = read_suite_text(&name, &path)?;
    let beside = || {
        let folder = path.parent()?.join("possible_answer");
        let file = folder.join(path.file_name()?);
        file.is_file().then_some(file)
    };
    let answers = answers.map(|file| environment.working_dir.join(file));
    let answers = answers.or_else(beside);
    let answers = answers.map(|path| read_suite_text(&path.display().to_string(), &path));
    let suite = bfcl::parse_bfcl_suite(&text, answers.transpose()?.as_deref());
    suite.map_err(|error| anyhow!("{name}: {error}"))
}

fn read_suite_text(file: &str, path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).map_err(|error| unreadable_file_error(file, error))
}

fn unreadable_file_error(file: &str, error: io::Error) -> anyhow::Error {
    anyhow!("{file}: {}", remove_os_error_code(error))
}

fn is_file_name(name: &str) -> bool {
    name.contains(['/', '\\'])
        || file_extension(Path::new(name))
            .is_some_and(|it| ENDINGS.contains(&it.as_str()) || it == "toml")
}

fn file_extension(path: &Path) -> Option<String> {
    let ending = path.extension()?;
    Some(ending.to_string_lossy().to_ascii_lowercase())
}

/// Parses and checks a suite. A suite in JSON may contain comments.
pub(crate) fn parse_suite(
    file: &str,
    text: &str,
    is_json: bool,
) -> anyhow::Result<(Suite, SuiteOrigin)> {
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
    let origin = SuiteOrigin::from_text(file, Some(&text), names.collect());
    match suite
        .validate_suite()
        .and_then(|()| check_run_parameters(&suite))
    {
        Ok(()) => Ok((suite, origin)),
        Err(SuiteError::Meaning { place, reason }) => Err(origin.field_error(&place, reason)),
        Err(error) => Err(anyhow!("{file}: {error}")),
    }
}

/// Checks that the `parameters` of every scenario are valid run parameters.
fn check_run_parameters(suite: &Suite) -> Result<(), SuiteError> {
    for (at, scenario) in suite.scenarios.iter().enumerate() {
        parse_parameters(&scenario.parameters).map_err(|reason| SuiteError::Meaning {
            place: format!("scenarios[{at}].parameters"),
            reason,
        })?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "suites_tests.rs"]
mod tests;
