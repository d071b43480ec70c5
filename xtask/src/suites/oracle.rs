//! `cargo xtask oracle`: checks the stored request bodies with the official SDKs of the vendors.
//!
//! The request bodies are snapshots of the golden tests in `crates/testkit`. The Python program
//! `xtask/oracle/validate_request.py` validates them with the request types of the SDKs.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::packages::install_requirements;
use crate::{files, process};

/// The API formats whose request bodies are checked. `validate_request.py` uses the same names.
const WIRES: [&str; 5] = [
    "anthropic",
    "openai-chat",
    "openai-responses",
    "gemini",
    "ollama",
];

/// A request body from a snapshot.
#[derive(Debug)]
struct Golden {
    wire: &'static str,
    fixture: String,
    body: Value,
}

pub(crate) fn run() -> Result<()> {
    let golden = golden_requests(&process::root().join("crates"))?;
    if golden.is_empty() {
        bail!(
            "no golden request bodies found: expected files `…__request__<wire>__<fixture>.snap` \
             in a `snapshots` folder of a crate, where <wire> is one of {}",
            WIRES.join(", ")
        );
    }
    let folder = process::target_dir().join("oracle-venv");
    let python = install_requirements(&folder, &own_folder().join("requirements.txt"))?;
    let mut invalid = Vec::new();
    println!("| wire | requests | invalid |\n|---|---:|---:|");
    for wire in WIRES {
        let of_wire: Vec<&Golden> = golden.iter().filter(|one| one.wire == wire).collect();
        let problems = validate_bodies(&python, wire, &of_wire)?;
        println!("| {wire} | {} | {} |", of_wire.len(), problems.len());
        invalid.extend(problems);
    }
    for problem in &invalid {
        eprintln!("INVALID {problem}");
    }
    if !invalid.is_empty() {
        bail!(
            "{} of {} golden request bodies are invalid",
            invalid.len(),
            golden.len()
        );
    }
    Ok(())
}

fn golden_requests(folder: &Path) -> Result<Vec<Golden>> {
    let mut golden = Vec::new();
    for file in files::find_files_by_ending(folder, ".snap")? {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let Some((wire, fixture)) = wire_and_fixture(&stem) else {
            continue;
        };
        let text = fs::read_to_string(&file)?;
        let body = body_of(&text)
            .with_context(|| format!("{} does not contain a JSON snapshot", file.display()))?;
        let fixture = fixture.to_owned();
        golden.push(Golden {
            wire,
            fixture,
            body,
        });
    }
    Ok(golden)
}

/// Parses the name of a snapshot, `…__request__<wire>__<fixture>`. Returns `None` for other names.
fn wire_and_fixture(stem: &str) -> Option<(&'static str, &str)> {
    WIRES.iter().find_map(|wire| {
        let (before, fixture) = stem.split_once(&format!("request__{wire}__"))?;
        let is_marked = before.is_empty() || before.ends_with("__");
        (is_marked && !fixture.is_empty()).then_some((*wire, fixture))
    })
}

/// Returns the JSON value in a snapshot. It follows the header of insta, which is between two lines
/// `---`.
fn body_of(snapshot: &str) -> Result<Value> {
    let header = snapshot.strip_prefix("---\n").context("no header")?;
    let parts = header.split_once("\n---\n");
    let (_, body) = parts.context("the header has no end")?;
    Ok(serde_json::from_str(body)?)
}

/// Returns the problems of all request bodies of one API format. One Python process checks all of
/// them, because loading an SDK takes seconds.
fn validate_bodies(python: &Path, wire: &str, golden: &[&Golden]) -> Result<Vec<String>> {
    if golden.is_empty() {
        return Ok(Vec::new());
    }
    let mut child = process::command(python)
        .arg(own_folder().join("validate_request.py"))
        .args([wire, "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start the validator")?;
    let mut input = child.stdin.take().context("the validator has no input")?;
    let bodies: Vec<String> = golden.iter().map(|one| one.body.to_string()).collect();
    let bodies = bodies.join("\n");
    // Another thread writes the input. Otherwise both processes could wait forever: each for the
    // other to read from a full pipe.
    let writer = std::thread::spawn(move || input.write_all(bodies.as_bytes()));
    let output = child.wait_with_output()?;
    let written = writer.join();
    let verdicts = String::from_utf8(output.stdout)?;
    let verdicts: Vec<&str> = verdicts.lines().collect();
    // The validator exits with 1 both for an invalid body and for an internal error. After an
    // internal error, verdicts are missing.
    if verdicts.len() != golden.len() || !matches!(written, Ok(Ok(()))) {
        bail!(
            "the validator returned {} verdicts for {} {wire} requests and ended with {}",
            verdicts.len(),
            golden.len(),
            output.status
        );
    }
    let pairs = golden.iter().zip(verdicts);
    pairs
        .filter_map(|(one, verdict)| verdict_problem(one, verdict).transpose())
        .collect()
}

/// Returns the problem of a request body, or `None` if the verdict of the validator is `valid`.
fn verdict_problem(golden: &Golden, verdict: &str) -> Result<Option<String>> {
    let verdict: Value = serde_json::from_str(verdict).context("a verdict is not valid JSON")?;
    if verdict["valid"] == Value::Bool(true) {
        return Ok(None);
    }
    let errors = verdict["errors"].as_array().into_iter().flatten();
    let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
    let Golden { wire, fixture, .. } = golden;
    Ok(Some(format!(
        "{wire}, fixture {fixture}:\n  {}",
        errors.join("\n  ")
    )))
}

fn own_folder() -> PathBuf {
    process::root().join("xtask/oracle")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_snapshot_contains_wire_and_fixture() {
        for (stem, expected) in [
            (
                "golden__request__anthropic__two_tools",
                Some(("anthropic", "two_tools")),
            ),
            (
                "golden__request__openai-chat__a__b",
                Some(("openai-chat", "a__b")),
            ),
            (
                "golden__request__openai-responses__x",
                Some(("openai-responses", "x")),
            ),
            ("a__b__request__gemini__x", Some(("gemini", "x"))),
            ("request__ollama__x", Some(("ollama", "x"))),
            ("request__request__ollama__x", Some(("ollama", "x"))),
            ("golden__request__openai__x", None),
            ("golden__request__anthropic__", None),
            ("golden__request__anthropic", None),
            ("golden__my_request__anthropic__x", None),
            ("golden__response__anthropic__x", None),
        ] {
            assert_eq!(wire_and_fixture(stem), expected, "{stem}");
        }
    }

    #[test]
    fn the_body_follows_the_header_of_a_snapshot() {
        let body = body_of("---\nsource: a.rs\ninfo:\n  - 1\n---\n{\n  \"b\": 1\n}\n").unwrap();
        assert_eq!(body.to_string(), r#"{"b":1}"#);
        assert!(body_of("{}").is_err());
        assert!(body_of("---\nsource: a.rs\n---\nnot json\n").is_err());
    }

    #[test]
    fn an_invalid_body_is_named_with_its_fixture() {
        let golden = Golden {
            wire: "gemini",
            fixture: "two_tools".to_owned(),
            body: Value::Null,
        };
        let bad = r#"{"line":0,"valid":false,"errors":["$: no"]}"#;
        assert_eq!(
            verdict_problem(&golden, bad).unwrap().as_deref(),
            Some("gemini, fixture two_tools:\n  $: no")
        );
        assert_eq!(verdict_problem(&golden, r#"{"valid":true}"#).unwrap(), None);
    }
}
