//! Output of the command `eval`: report files, tables and missed thresholds.

use std::{fs, io::ErrorKind, path::Path};

use anyhow::Context as _;
use serde::Serialize;
use switchboard_evals::report::{
    ModelSummary, Report, comparison::ReportComparison, metric::Metric, page,
};

use super::args::EvalArgs;
use crate::{
    commands::print_table,
    config::environment::Environment,
    eval::{comparison_table, shipped_suites::SHIPPED, suites, tables},
    run_session::failure::{Code, Failure},
    terminal::{
        self,
        output::{self, ListFormat},
        to_one_line,
    },
};

impl EvalArgs {
    /// Writes the output files and prints the report and the unmet requirements, such as missed
    /// thresholds. Returns exit code 1 if a requirement is not met. With `--fail-if-worse`, a
    /// result that is worse than in the earlier report is an unmet requirement too.
    pub(crate) fn print_report(
        &self,
        report: &Report,
        earlier: Option<&Report>,
        environment: &Environment,
    ) -> Result<Code, Failure> {
        let comparison = earlier.map(|earlier| ReportComparison::compare_reports(earlier, report));
        let mut missed = report.list_unmet_requirements();
        if self.fail_if_worse {
            missed.extend(comparison.iter().flat_map(|it| self.list_regressions(it)));
        }
        let written = ReportOutput {
            report,
            summary: report.summarize_models(),
            missed: &missed,
            comparison: comparison.as_ref(),
        };
        let files = self.write_report_outputs(&written, earlier, environment);
        let shown = output::print_json_or_text(self.results.output, &written, || {
            let mut text = tables::format_report(report);
            if let Some(comparison) = &comparison {
                text.push_str(&comparison_table::format_comparison(comparison));
            }
            text
        });
        match shown {
            // The reader of standard output has exited. The evaluation still returns its exit code.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            shown => shown?,
        }
        files?;
        for what in &missed {
            terminal::print_line(format_args!(
                "{bad}missed:{bad:#} {}",
                to_one_line(what, 1_000),
                bad = terminal::BAD
            ));
        }
        Ok(Code::failed_if(!missed.is_empty()))
    }

    /// Lists the results that are worse than in the earlier report. A result that exists only in
    /// the earlier report counts as worse.
    fn list_regressions(&self, comparison: &ReportComparison) -> Vec<String> {
        if comparison.is_empty() {
            return vec![
                "nothing can be compared: the reports share no scenario of the same model; \
                 create the earlier report again"
                    .to_owned(),
            ];
        }
        let mut worse = comparison.list_regressions();
        let narrows = &self.run;
        let is_part =
            !(narrows.scenario.is_empty() && narrows.kind.is_empty()) || self.bfcl.limit.is_some();
        for it in &comparison.models {
            let mut metrics = it.metrics.iter();
            let lost = metrics.find(|it| {
                it.metric == Metric::Accuracy && it.earlier.is_some() && it.later.is_none()
            });
            if let Some(lost) = lost.filter(|_| it.has_common_scenarios()) {
                worse.push(format!(
                    "{}: accuracy was {} and is unknown now, because no calls were judged",
                    it.model,
                    lost.format_earlier_result()
                ));
            }
            // If `--scenario`, `--kind` or `--limit` is set, scenarios are missing on purpose and
            // do not count as worse.
            let gone = it.scenarios.iter().filter(|it| {
                !is_part && it.later.is_none() && it.earlier.is_some_and(|it| it.passed > 0)
            });
            worse.extend(gone.map(|gone| {
                format!(
                    "{}: `{}` passed {} before, and is missing now",
                    it.model,
                    gone.scenario,
                    gone.format_earlier_result()
                )
            }));
        }
        worse
    }

    /// Writes the report to the JSON and HTML files that the command line names.
    pub(crate) fn write_report_files(
        &self,
        report: &Report,
        earlier: Option<&Report>,
        environment: &Environment,
    ) -> Result<(), Failure> {
        let written = ReportOutput {
            report,
            summary: report.summarize_models(),
            missed: &report.list_unmet_requirements(),
            comparison: None,
        };
        self.write_report_outputs(&written, earlier, environment)
    }

    fn write_report_outputs(
        &self,
        written: &ReportOutput<'_>,
        earlier: Option<&Report>,
        environment: &Environment,
    ) -> Result<(), Failure> {
        if let Some(file) = &self.results.json {
            let mut text = serde_json::to_string_pretty(written)?;
            text.push('\n');
            write_output_file(file, &text, environment)?;
        }
        if let Some(file) = &self.results.html {
            let page = page::render_html(written.report, earlier)?;
            write_output_file(file, &page, environment)?;
        }
        Ok(())
    }
}

/// The JSON output of an evaluation: the report, its summary and the missed thresholds.
#[derive(Serialize)]
struct ReportOutput<'r> {
    #[serde(flatten)]
    report: &'r Report,
    summary: Vec<ModelSummary>,
    missed: &'r [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<&'r ReportComparison>,
}

fn write_output_file(file: &Path, text: &str, environment: &Environment) -> Result<(), Failure> {
    let path = environment.working_dir.join(file);
    let written = fs::write(path, text).with_context(|| format!("cannot write {}", file.display()));
    written.map_err(Failure::usage_error)
}

#[derive(Serialize)]
struct SuiteRow {
    name: &'static str,
    title: String,
    scenarios: usize,
}

pub(crate) fn list_suites(form: ListFormat) -> Result<Code, Failure> {
    let mut listed = Vec::new();
    for (name, text) in SHIPPED {
        let (suite, _) = suites::parse_suite(name, text, false).map_err(Failure::runtime_error)?;
        listed.push(SuiteRow {
            name,
            title: suite.title,
            scenarios: suite.scenarios.len(),
        });
    }
    print_table(form, &listed, "", |it| {
        let scenarios = format!("{} scenarios", it.scenarios);
        [it.name.to_owned(), scenarios, to_one_line(&it.title, 120)]
    })
}
