//! Prints the progress of an evaluation to standard error.

use switchboard_evals::report::RunResult;

use super::tables::printable_model_name;
use crate::terminal::{print_line, to_one_line};

/// Printer of the progress of an evaluation, with one line for each finished run.
#[derive(Debug)]
pub(crate) struct Progress {
    quiet: bool,
    done: usize,
    total: usize,
}

impl Progress {
    pub(crate) fn new(total: usize, quiet: bool) -> Self {
        let done = 0;
        Self { quiet, done, total }
    }

    pub(crate) fn show_run_result(&mut self, run: &RunResult) {
        self.done += 1;
        if self.quiet {
            return;
        }
        let name = to_one_line(&run.scenario, 60);
        let model = printable_model_name(&run.model);
        let end = if run.passed { "passed" } else { "failed" };
        let number = (run.repetition > 1).then(|| format!(", repetition {}", run.repetition));
        let number = number.unwrap_or_default();
        let (done, total) = (self.done, self.total);
        print_line(format_args!(
            "[{done}/{total}] {end}: {name} ({model}{number})"
        ));
    }
}
