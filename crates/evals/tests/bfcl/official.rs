//! The package of the benchmark: its data, and the verdicts of its checker.

use std::io::{Error, ErrorKind, Result, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, thread};

use serde_json::{Value, json};

use crate::answers::Entry;
use crate::scripted::Call;

/// Environment variables with the paths of a Python interpreter that has the package, and of the
/// program that calls the checker.
const PYTHON: &str = "SWITCHBOARD_BFCL_PYTHON";
const CHECKER: &str = "SWITCHBOARD_BFCL_CHECKER";

/// The installed package of the benchmark.
pub(crate) struct Package {
    python: PathBuf,
    checker: PathBuf,
    data: PathBuf,
}

/// The verdict of the benchmark's checker on an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    Wrong,
    /// The checker failed with an exception.
    Crash,
}

fn fault(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, what.into())
}

fn lines(text: &str) -> Result<Vec<Value>> {
    let values = text.lines().map(serde_json::from_str);
    Ok(values.collect::<serde_json::Result<_>>()?)
}

impl Package {
    pub(crate) fn found() -> Result<Self> {
        let path = |name: &str| {
            let path = env::var_os(name).map(PathBuf::from);
            path.ok_or_else(|| fault(format!("{name} is not set: `cargo xtask bfcl` sets it")))
        };
        let (python, checker) = (path(PYTHON)?, path(CHECKER)?);
        let asked = Command::new(&python)
            .args([
                "-c",
                "import bfcl_eval, os; print(os.path.dirname(bfcl_eval.__file__))",
            ])
            .output()?;
        let folder = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
        let data = Path::new(&folder).join("data");
        Ok(Self {
            python,
            checker,
            data,
        })
    }

    /// Returns the texts of the two files of a category. `irrelevance` has only the first.
    pub(crate) fn texts(&self, category: &str) -> Result<(String, Option<String>)> {
        let name = format!("BFCL_v4_{category}.json");
        let questions = fs::read_to_string(self.data.join(&name))?;
        let answers = self.data.join("possible_answer").join(&name);
        let answers = answers.exists().then(|| fs::read_to_string(answers));
        Ok((questions, answers.transpose()?))
    }

    /// Returns the entries of a category.
    pub(crate) fn entries(&self, category: &'static str) -> Result<Vec<Entry>> {
        let (questions, answers) = self.texts(category)?;
        let questions = lines(&questions)?;
        let answers = lines(answers.as_deref().unwrap_or_default())?;
        let entry = |question: &Value| {
            let id = question["id"].as_str().unwrap_or_default().to_owned();
            let answer = answers.iter().find(|it| it["id"] == *id);
            Entry {
                answer: answer.map_or(json!([]), |it| it["ground_truth"].clone()),
                function: question["function"].clone(),
                category,
                id,
            }
        };
        Ok(questions.iter().map(entry).collect())
    }

    /// Returns the verdicts of the checker on answers to entries.
    pub(crate) fn verdicts(&self, answers: &[(&Entry, &[Call])]) -> Result<Vec<Verdict>> {
        let mut child = Command::new(&self.python)
            .arg(&self.checker)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut input = child
            .stdin
            .take()
            .ok_or_else(|| fault("no standard input"))?;
        let mut text = Vec::new();
        for (entry, calls) in answers {
            let calls = calls.iter().map(|call| json!([call.function, call.text]));
            let case = json!({
                "category": entry.category, "function": entry.function, "answer": entry.answer,
                "calls": calls.collect::<Vec<_>>(),
            });
            serde_json::to_writer(&mut text, &case)?;
            text.push(b'\n');
        }
        // A separate thread writes, so that a full pipe cannot block both processes.
        let writer = thread::spawn(move || input.write_all(&text));
        let output = child.wait_with_output()?;
        let written = writer.join();
        let said = String::from_utf8_lossy(&output.stdout);
        let verdict = |word: &str| match word {
            "right" => Ok(Verdict::Right),
            "wrong" => Ok(Verdict::Wrong),
            "crash" => Ok(Verdict::Crash),
            other => Err(fault(format!("`{other}` is no verdict"))),
        };
        let verdicts: Vec<Verdict> = said.lines().map(verdict).collect::<Result<_>>()?;
        if !matches!(written, Ok(Ok(()))) || verdicts.len() != answers.len() {
            let (got, asked) = (verdicts.len(), answers.len());
            return Err(fault(format!(
                "the checker gave {got} verdicts on {asked} answers"
            )));
        }
        Ok(verdicts)
    }
}
