//! `doctor`: checks the configuration, providers and servers.

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use clap::{Args, CommandFactory as _};
use serde::Serialize;
use switchboard_domain::{
    ModelErrorKind,
    nearest::{did_you_mean, nearest},
};

use super::Cli;
use crate::{
    config::{CONFIG_FILE_NAMES, environment::Environment},
    models::{ChoiceReason, Provider, Readiness},
    storage::recipes,
    terminal::{BAD, DOUBTFUL, FAINT, GOOD, STRONG, Screen, one_line},
};
use crate::{
    run_session::{
        arguments::{self, Global},
        context::{self, Context},
        failure::{Code, Failure},
        interrupts::Interrupts,
        server_status::changed_tools_warning,
        unmatched,
    },
    terminal::output::{self, ListOutput},
};

/// Time limit for the answer of a provider.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(10);

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Don't contact providers over the network
    #[arg(long)]
    no_network: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ListOutput,
    #[command(flatten)]
    global: Global,
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    about: &'static str,
    state: State,
    what: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Good,
    /// Missing, possibly on purpose.
    Absent,
    /// Working, but possibly not as intended.
    Doubtful,
    Bad,
}

impl Finding {
    fn new(about: &'static str, state: State, what: impl Into<String>) -> Self {
        Self {
            about,
            state,
            what: what.into(),
            advice: None,
        }
    }

    fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

pub(crate) async fn run(
    args: DoctorArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let mut findings = variables(&environment);
    let mut code = Code::Success;
    match Context::load(&args.global, environment) {
        Err(failure) => {
            code = failure.code;
            let what = format!("{:#}", failure.error);
            findings.push(
                Finding::new("configuration", State::Bad, what)
                    .with_advice("fix this first; other checks were skipped"),
            );
        }
        Ok(context) => {
            findings.extend(files(&context));
            let (recipe, of_recipe) = recipe(&context);
            findings.extend(recipe);
            findings.extend(model(&context, of_recipe.as_deref()).await);
            let screen = Screen::new(true);
            screen.show_progress("looking at providers and MCP servers");
            let (providers, servers) = futures_util::future::join(
                providers(&context, args.no_network, interrupts),
                servers(&context, interrupts),
            )
            .await;
            screen.pause();
            findings.extend(providers.into_iter().chain(servers));
        }
    }
    output::print(args.output, &findings, || shown(&findings))?;
    let bad = findings.iter().any(|finding| finding.state == State::Bad);
    Ok(if code == Code::Success && bad {
        Code::Failed
    } else {
        code
    })
}

async fn providers(context: &Context, no_network: bool, interrupts: &Interrupts) -> Vec<Finding> {
    let each = context.providers.iter().map(|provider| async move {
        let finding = tokio::select! {
            finding = look_at_provider(context, provider, no_network) => finding,
            () = interrupts.first() => None,
            () = tokio::time::sleep(PROVIDER_TIMEOUT) => None,
        };
        finding.unwrap_or_else(|| {
            let what = format!(
                "{} did not answer within {PROVIDER_TIMEOUT:?}",
                provider.name
            );
            Finding::new("provider", State::Bad, what).with_advice("check its address")
        })
    });
    futures_util::future::join_all(each).await
}

/// Finds variables with a similar name to ours, which may be typing errors.
fn variables(environment: &Environment) -> Vec<Finding> {
    // Variables without an option.
    let mut known: Vec<String> = [
        "SWITCHBOARD_LOG",
        "SWITCHBOARD_LOG_FILE",
        "SWITCHBOARD_AUDIT",
        "SWITCHBOARD_TOKEN",
        arguments::APPROVE,
    ]
    .map(str::to_owned)
    .to_vec();
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
    let mut unknown: Vec<&str> = environment
        .names()
        .filter(|name| name.starts_with("SWITCHBOARD_") && !known.iter().any(|k| k == name))
        .collect();
    unknown.sort_unstable();
    unknown
        .into_iter()
        .map(|name| {
            let near = nearest(name, known.iter().map(String::as_str));
            let what = format!("{name} is set but means nothing{}", did_you_mean(near));
            Finding::new("environment", State::Doubtful, what)
                .with_advice(format!("there are: {}", known.join(", ")))
        })
        .collect()
}

fn files(context: &Context) -> Vec<Finding> {
    let files = &context.config.files;
    if files.is_empty() {
        let places: Vec<String> = [
            Some(context.environment.working_dir.clone()),
            context.environment.config_dir.clone(),
        ]
        .into_iter()
        .flatten()
        .map(|folder: PathBuf| folder.join(CONFIG_FILE_NAMES[0]).display().to_string())
        .collect();
        return vec![
            Finding::new("configuration", State::Absent, "no configuration file")
                .with_advice(format!("none is needed; places: {}", places.join(", "))),
        ];
    }
    files
        .iter()
        .map(|file| Finding::new("configuration", State::Good, file.display().to_string()))
        .collect()
}

/// Checks the configured recipe. Returns its model too.
fn recipe(context: &Context) -> (Option<Finding>, Option<String>) {
    const ABOUT: &str = "recipe";
    let variable = context.environment.get("SWITCHBOARD_RECIPE");
    let Some(name) = variable.or(context.config.recipe.as_deref()) else {
        return (None, None);
    };
    match recipes::find(name, &context.environment) {
        Ok(found) => {
            let what = format!("{} ({})", found.recipe.name, found.source);
            let finding = Finding::new(ABOUT, State::Good, what);
            (Some(finding), found.recipe.model)
        }
        Err(error) => {
            let finding = Finding::new(ABOUT, State::Bad, error.to_string());
            (Some(finding), None)
        }
    }
}

/// Checks the model and the fallback models.
async fn model(context: &Context, of_recipe: Option<&str>) -> Vec<Finding> {
    let variable = context.environment.get("SWITCHBOARD_MODEL");
    let mut findings = vec![first_model(context, variable.or(of_recipe)).await];
    let configured = context.config.fallback_models.iter().flatten();
    let fallbacks: Vec<&str> = match context.environment.get("SWITCHBOARD_FALLBACK") {
        Some(names) => names.split(',').collect(),
        None => configured.map(String::as_str).collect(),
    };
    for name in fallbacks {
        findings.push(match context.choose_model(Some(name)).await {
            Ok(chosen) => {
                let what = format!("{} is a fallback", chosen.model.id());
                Finding::new("model", State::Good, what)
            }
            Err(failure) => Finding::new("model", State::Bad, failure.error.to_string()),
        });
    }
    findings
}

async fn first_model(context: &Context, named: Option<&str>) -> Finding {
    match context.choose_model(named).await {
        Err(failure) => Finding::new("model", State::Bad, failure.error.to_string()),
        Ok(chosen) => {
            let (why, state) = match &chosen.reason {
                ChoiceReason::Named => ("it is configured".to_owned(), State::Good),
                ChoiceReason::Key(variable) => (format!("{variable} is set"), State::Good),
                ChoiceReason::Answers => (
                    "no key is set, and it answers on this machine".to_owned(),
                    State::Good,
                ),
                ChoiceReason::NothingElse => (
                    "nothing else is configured; it is not a language model".to_owned(),
                    State::Doubtful,
                ),
            };
            let what = format!("{} is asked: {why}", chosen.model.id());
            Finding::new("model", state, what)
        }
    }
}

async fn look_at_provider(
    context: &Context,
    provider: &Provider,
    no_network: bool,
) -> Option<Finding> {
    const ABOUT: &str = "provider";
    let name = &provider.name;
    let readiness = context.providers.readiness(provider);
    let key = match &readiness {
        Readiness::KeyMissing(variable) => {
            let finding = Finding::new(ABOUT, State::Absent, format!("{name} has no key"));
            return Some(finding.with_advice(format!("set {variable} to use it")));
        }
        Readiness::Key(variable) => format!("key from {variable}"),
        Readiness::NoKeyNeeded => "no key needed".to_owned(),
    };
    if no_network || provider.is_offline() {
        return Some(Finding::new(ABOUT, State::Good, format!("{name}: {key}")));
    }
    Some(match context.providers.served_models(provider).await {
        Some(Ok(models)) => Finding::new(
            ABOUT,
            State::Good,
            format!("{name}: {key}, answers with {} models", models.len()),
        ),
        None => Finding::new(ABOUT, State::Good, format!("{name}: {key}")),
        // A local Ollama is optional.
        Some(Err(error)) if provider.is_local() && error.kind == ModelErrorKind::Connection => {
            Finding::new(ABOUT, State::Absent, format!("{name} does not run here"))
        }
        Some(Err(error)) => Finding::new(ABOUT, State::Bad, format!("{name}: {error}")),
    })
}

async fn servers(context: &Context, interrupts: &Interrupts) -> Vec<Finding> {
    const ABOUT: &str = "server";
    let host = match context.servers().and_then(context::start) {
        Ok(host) => host,
        Err(failure) => return vec![Finding::new(ABOUT, State::Bad, failure.error.to_string())],
    };
    tokio::select! {
        () = host.settled() => {}
        () = interrupts.first() => {}
    }
    let statuses = host.servers();
    let unmatched = unmatched::messages(&context.config, &host).await;
    context::close(&host, interrupts).await;
    let mut findings: Vec<Finding> = statuses
        .iter()
        .map(|status| {
            if status.state.takes_calls() {
                let what = format!("{}: {} tools", status.name, status.tools);
                let finding = Finding::new(ABOUT, State::Good, what);
                let changed = changed_tools_warning(&status.name, &status.changed_tools);
                return match changed.as_ref().or(status.warnings.first()) {
                    None => finding,
                    Some(warning) => Finding {
                        state: State::Doubtful,
                        ..finding.with_advice(warning)
                    },
                };
            }
            let reason = status.reason.as_deref().unwrap_or("no reason is known");
            let what = format!("{} is {}: {reason}", status.name, status.state.as_str());
            let finding = Finding::new(ABOUT, State::Bad, what);
            match status.stderr_tail.last() {
                Some(line) => finding.with_advice(format!("its last line: {line}")),
                None => finding.with_advice(match status.warnings.first() {
                    Some(warning) => warning.clone(),
                    None => format!("check its entry ({})", status.transport),
                }),
            }
        })
        .collect();
    if findings.is_empty() {
        findings.push(Finding::new(
            ABOUT,
            State::Absent,
            "no MCP server is configured",
        ));
    }
    let advice = "correct the name or remove the rule";
    let unmatched = unmatched.into_iter();
    findings
        .extend(unmatched.map(|what| Finding::new("rule", State::Bad, what).with_advice(advice)));
    findings
}

fn shown(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let (style, mark) = match finding.state {
            State::Good => (GOOD, '✔'),
            State::Absent => (FAINT, '–'),
            State::Doubtful => (DOUBTFUL, '!'),
            State::Bad => (BAD, '✘'),
        };
        let _ = writeln!(
            text,
            "{style}{mark}{style:#} {STRONG}{:<13}{STRONG:#} {}",
            finding.about,
            one_line(&finding.what, 400)
        );
        if let Some(advice) = &finding.advice {
            let advice = one_line(advice, 400);
            let _ = writeln!(text, "  {:<13} {FAINT}{advice}{FAINT:#}", "");
        }
    }
    text
}
