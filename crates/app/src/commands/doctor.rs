//! Command `doctor`: checks the configuration, providers and MCP servers.

use std::{fmt::Write as _, time::Duration};

use clap::{Args, CommandFactory as _, FromArgMatches as _};
use futures_util::future::join_all;
use serde::Serialize;
use switchboard_domain::{
    ModelErrorKind,
    similar_names::{did_you_mean, find_nearest},
};
use switchboard_mcp_client::ServerStatus;
use switchboard_providers_ollama::is_missing_endpoint;

use super::{Cli, ignore_empty_variables};
use crate::{
    config::{CONFIG_FILE_NAMES, environment::Environment},
    models::{ModelChoiceReason, Provider, Readiness},
    run_session::{
        agent::AgentArgs,
        arguments::{self, GlobalArgs},
        context::{self, Context, Process},
        failure::{Code, Failure},
        interrupts::Interrupts,
        rule_name_check,
        servers::status::changed_tools_warning,
    },
    terminal::{
        BAD, DOUBTFUL, FAINT, GOOD, STRONG, Screen,
        output::{self, ListFormat},
        to_one_line,
    },
};

/// Time limit for the response of one provider to a connection check.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(10);

/// Valid environment variables that clap does not read for a command-line option.
const OTHER_VARIABLES: [&str; 5] = [
    "SWITCHBOARD_LOG",
    "SWITCHBOARD_LOG_FILE",
    "SWITCHBOARD_AUDIT",
    "SWITCHBOARD_TOKEN",
    arguments::APPROVE,
];

/// Command-line arguments of `switchboard doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Don't contact providers over the network
    #[arg(long)]
    no_network: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ListFormat,
    #[command(flatten)]
    global: GlobalArgs,
}

/// Result of one check of `switchboard doctor`.
#[derive(Debug, Serialize)]
struct Finding {
    about: &'static str,
    state: FindingState,
    what: String,
    /// Advice on how the user can solve the problem. `None` if the check found no problem or
    /// has no advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum FindingState {
    Good,
    /// The checked item, such as an API key, is missing. The user may have omitted it on purpose.
    Absent,
    /// The checked item works, but possibly not as the user intended.
    Doubtful,
    Bad,
}

impl Finding {
    fn new(about: &'static str, state: FindingState, what: impl Into<String>) -> Self {
        Self {
            about,
            state,
            what: what.into(),
            advice: None,
        }
    }

    fn good_finding(about: &'static str, what: String) -> Self {
        Self::new(about, FindingState::Good, what)
    }

    fn bad_finding(about: &'static str, what: String) -> Self {
        Self::new(about, FindingState::Bad, what)
    }

    fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

pub(crate) async fn execute(args: DoctorArgs, process: Process<'_>) -> Result<Code, Failure> {
    let mut findings = check_env_variables(&process.environment);
    let mut code = Code::Success;
    match Context::load_context(&args.global, process.environment) {
        Err(failure) => {
            code = failure.code;
            let finding = Finding::bad_finding("configuration", format!("{:#}", failure.error));
            findings.push(finding.with_advice("fix this first; other checks were skipped"));
        }
        Ok(context) => {
            findings.extend(list_config_files(&context));
            findings.extend(check_recipe_and_models(&context).await);
            let screen = Screen::new(true);
            screen.show_progress("checking providers and MCP servers");
            let check = |it| check_provider(&context, it, args.no_network, process.interrupts);
            let providers = context.providers.iter().map(check);
            let servers = check_servers(&context, process.interrupts);
            let (providers, servers) = tokio::join!(join_all(providers), servers);
            drop(screen);
            findings.extend(providers.into_iter().chain(servers));
        }
    }
    output::print_json_or_text(args.output, &findings, || format_findings(&findings))?;
    let is_bad = |finding: &Finding| finding.state == FindingState::Bad;
    if code == Code::Success && findings.iter().any(is_bad) {
        code = Code::Failed;
    }
    Ok(code)
}

/// Reports unknown `SWITCHBOARD_…` variables, because their names may be misspelled.
fn check_env_variables(environment: &Environment) -> Vec<Finding> {
    let mut known = OTHER_VARIABLES.map(str::to_owned).to_vec();
    let mut command = Cli::command();
    command.build();
    let mut commands = vec![&command];
    while let Some(command) = commands.pop() {
        let variables = command.get_arguments().filter_map(|it| it.get_env());
        known.extend(variables.map(|name| name.to_string_lossy().into_owned()));
        commands.extend(command.get_subcommands());
    }
    known.sort();
    known.dedup();
    let ours = environment
        .variable_names()
        .filter(|it| it.starts_with("SWITCHBOARD_"));
    let mut unknown: Vec<&str> = ours.filter(|it| !known.iter().any(|k| k == it)).collect();
    unknown.sort_unstable();
    let findings = unknown.into_iter().map(|name| {
        let near = did_you_mean(find_nearest(name, known.iter().map(String::as_str)));
        let what = format!("{name} is set but is not a known variable{near}");
        let finding = Finding::new("environment", FindingState::Doubtful, what);
        finding.with_advice(format!("known variables: {}", known.join(", ")))
    });
    findings.collect()
}

/// Reports the loaded files, and files with MCP servers at common places that are not loaded.
fn list_config_files(context: &Context) -> Vec<Finding> {
    const ABOUT: &str = "configuration";
    let files = context.config.files.iter();
    let mut findings: Vec<Finding> = files
        .map(|file| Finding::good_finding(ABOUT, file.display().to_string()))
        .collect();
    if findings.is_empty() {
        let finding = Finding::new(ABOUT, FindingState::Absent, "no configuration file");
        let place = context.environment.working_dir.join(CONFIG_FILE_NAMES[0]);
        findings.push(finding.with_advice(format!("optional; location: {}", place.display())));
    }
    for name in ["mcp.json", "config/mcp.json"] {
        let file = context.environment.working_dir.join(name);
        if file.is_file() && !context.config.files.contains(&file) {
            let what = format!("{name} is not loaded");
            let advice = format!("add `--mcp-config {name}` or set SWITCHBOARD_MCP_CONFIG={name}");
            let finding = Finding::new(ABOUT, FindingState::Doubtful, what);
            findings.push(finding.with_advice(advice));
        }
    }
    findings
}

/// Checks the recipe and the models that `switchboard ask` uses if the user gives no options.
async fn check_recipe_and_models(context: &Context) -> Vec<Finding> {
    let command = AgentArgs::augment_args(clap::Command::new("doctor"));
    let parsed = ignore_empty_variables(command).try_get_matches_from(["doctor"]);
    let parsed = parsed.and_then(|matches| AgentArgs::from_arg_matches(&matches));
    let plan = match parsed.map_err(Failure::usage_error) {
        Ok(args) => args.plan_agent(context).await,
        Err(failure) => Err(failure),
    };
    let plan = match plan {
        Ok(plan) => plan,
        Err(failure) => return vec![Finding::bad_finding("model", failure.error.to_string())],
    };
    let recipe = plan
        .recipe
        .map(|recipe| Finding::good_finding("recipe", recipe.name.clone()));
    let (why, state) = match &plan.chosen.reason {
        ModelChoiceReason::Named => ("configured", FindingState::Good),
        ModelChoiceReason::Key(variable) => (&*format!("{variable} is set"), FindingState::Good),
        ModelChoiceReason::Answers => ("a local model; no API key is set", FindingState::Good),
        ModelChoiceReason::NothingElse => (
            "a demo model, not a language model; no other model is configured",
            FindingState::Doubtful,
        ),
    };
    let model = format!("{} ({why})", plan.chosen.model.id());
    let model = Finding::new("model", state, model);
    let fallbacks = plan.fallbacks.iter();
    let fallbacks =
        fallbacks.map(|model| Finding::good_finding("model", format!("{} (fallback)", model.id())));
    recipe.into_iter().chain([model]).chain(fallbacks).collect()
}

async fn check_provider(
    context: &Context,
    provider: &Provider,
    no_network: bool,
    interrupts: &Interrupts,
) -> Finding {
    const ABOUT: &str = "provider";
    let name = &provider.name;
    let mut what = match context.providers.check_readiness(provider) {
        Readiness::KeyMissing(variable) => {
            let finding = Finding::new(ABOUT, FindingState::Absent, format!("{name}: no API key"));
            return finding.with_advice(format!("set {variable} to use it"));
        }
        Readiness::Key(variable) => format!("{name}: key from {variable}"),
        Readiness::NoKeyNeeded => format!("{name}: no key needed"),
    };
    if no_network || provider.runs_in_process() {
        return Finding::good_finding(ABOUT, what);
    }
    let served = tokio::select! {
        served = context.providers.request_served_models(provider) => served,
        () = interrupts.wait_for_first_interruption() => None,
        () = tokio::time::sleep(PROVIDER_TIMEOUT) => {
            let what = format!("{name} did not answer within {PROVIDER_TIMEOUT:?}");
            return Finding::bad_finding(ABOUT, what).with_advice("check its address");
        }
    };
    match served {
        Some(Ok(models)) => {
            let _ = write!(what, ", {} models available", models.len());
            Finding::good_finding(ABOUT, what)
        }
        None => Finding::good_finding(ABOUT, what),
        // A local Ollama server is optional, so the result is not an error if it does not run.
        Some(Err(error)) if provider.is_local() && error.kind == ModelErrorKind::Connection => {
            Finding::new(ABOUT, FindingState::Absent, format!("{name}: not running"))
        }
        // A server that is compatible with Ollama may have no list of models.
        Some(Err(error)) if provider.is_local() && is_missing_endpoint(&error) => {
            Finding::new(ABOUT, FindingState::Doubtful, format!("{name}: {error}"))
        }
        Some(Err(error)) => Finding::bad_finding(ABOUT, format!("{name}: {error}")),
    }
}

async fn check_servers(context: &Context, interrupts: &Interrupts) -> Vec<Finding> {
    let host = match context.servers_to_start().and_then(context::start_servers) {
        Ok(host) => host,
        Err(failure) => return vec![Finding::bad_finding("server", failure.error.to_string())],
    };
    tokio::select! {
        () = host.wait_for_startup() => {}
        () = interrupts.wait_for_first_interruption() => {}
    }
    let mut findings: Vec<Finding> = host.server_statuses().iter().map(check_server).collect();
    let unmatched = rule_name_check::find_unknown_names_in_rules(&context.config, &host).await;
    context::close_servers(&host, interrupts).await;
    if findings.is_empty() {
        let what = "no MCP server is configured";
        findings.push(Finding::new("server", FindingState::Absent, what));
    }
    let rules = unmatched
        .into_iter()
        .map(|what| Finding::bad_finding("rule", what));
    findings.extend(rules.map(|it| it.with_advice("correct the name or remove the rule")));
    findings
}

fn check_server(status: &ServerStatus) -> Finding {
    const ABOUT: &str = "server";
    let warning = status.warnings.first().cloned();
    if status.state.takes_calls() {
        let what = format!("{}: {} tools", status.name, status.tools);
        let changed = changed_tools_warning(&status.name, &status.changed_tools);
        return match changed.or(warning) {
            None => Finding::good_finding(ABOUT, what),
            Some(warning) => Finding::new(ABOUT, FindingState::Doubtful, what).with_advice(warning),
        };
    }
    let reason = status.reason.as_deref().unwrap_or("unknown reason");
    let what = format!("{}: {} ({reason})", status.name, status.state.as_str());
    Finding::bad_finding(ABOUT, what).with_advice(match (status.stderr_tail.last(), warning) {
        (Some(line), _) => format!("last line of its stderr: {line}"),
        (None, Some(warning)) => warning,
        (None, None) => format!("check its configuration ({})", status.transport),
    })
}

fn format_findings(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let (style, mark) = match finding.state {
            FindingState::Good => (GOOD, '✔'),
            FindingState::Absent => (FAINT, '–'),
            FindingState::Doubtful => (DOUBTFUL, '!'),
            FindingState::Bad => (BAD, '✘'),
        };
        let _ = writeln!(
            text,
            "{style}{mark}{style:#} {STRONG}{:<13}{STRONG:#} {}",
            finding.about,
            to_one_line(&finding.what, 400)
        );
        if let Some(advice) = &finding.advice {
            let advice = to_one_line(advice, 400);
            let _ = writeln!(text, "  {:<13} {FAINT}{advice}{FAINT:#}", "");
        }
    }
    text
}
