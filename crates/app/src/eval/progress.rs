//! Progress of an evaluation, on standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{io::IsTerminal as _, time::Duration};
use switchboard_evals::report::RunResult;

use super::tables::printable_model_name;
use crate::terminal::{one_line, print_line};

/// Interval at which the progress bar is redrawn.
const UPDATE_INTERVAL: Duration = Duration::from_millis(250);

/// Progress output: a bar at a terminal, otherwise one line for each finished run.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    shows_lines: bool,
    done: usize,
    failed: usize,
    total: usize,
}

impl Progress {
    pub(crate) fn new(total: usize, quiet: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = (is_terminal && !quiet).then(|| create_bar(total));
        Self {
            bar,
            shows_lines: !is_terminal && !quiet,
            done: 0,
            failed: 0,
            total,
        }
    }

    /// Shows the result of a finished run.
    pub(crate) fn show_run(&mut self, run: &RunResult) {
        self.done += 1;
        self.failed += usize::from(!run.passed);
        let name = one_line(&run.scenario, 60);
        let model = printable_model_name(&run.model);
        let end = if run.passed { "passed" } else { "failed" };
        if let Some(bar) = &self.bar {
            if !run.passed {
                bar.suspend(|| print_line(format_args!("failed: {name} ({model})")));
            }
            bar.set_position(self.done as u64);
            bar.set_message(format!("{} failed · {name}", self.failed));
        }
        if self.shows_lines {
            let number = (run.repetition > 1).then(|| format!(", repetition {}", run.repetition));
            print_line(format_args!(
                "[{}/{}] {end}: {name} ({model}{})",
                self.done,
                self.total,
                number.unwrap_or_default()
            ));
        }
    }

    /// Removes the progress bar from the terminal.
    pub(crate) fn remove_bar(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn create_bar(total: usize) -> ProgressBar {
    // The template has no colours, because `ProgressBar` would ignore `NO_COLOR`.
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
    let bar = bar.with_style(style.progress_chars("━╸ "));
    bar.enable_steady_tick(UPDATE_INTERVAL);
    bar
}
