//! `models`: which models can be named, and what is known of them.

use clap::Args;
use serde::Serialize;
use switchboard_domain::{ModelCapabilities, ModelId};

use super::{Code, Failure, Global, ListOutput, context::Context, output, table::table};
use crate::{
    environment::Environment,
    model::{Provider, Readiness},
    terminal::{Screen, one_line, say_warning},
};

/// Shows the models.
#[derive(Debug, Args)]
pub(super) struct ModelsArgs {
    /// Ask every provider that can be asked which models it serves
    #[arg(long)]
    served: bool,
    /// Only those of this provider
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The form of the list
    #[arg(short, long, value_enum, default_value_t)]
    output: ListOutput,
}

#[derive(Debug, Serialize)]
struct Row {
    model: ModelId,
    /// It can be asked with what is configured.
    ready: bool,
    /// The variable to set if not.
    missing_key: Option<String>,
    capabilities: ModelCapabilities,
}

pub(super) async fn run(
    args: ModelsArgs,
    global: &Global,
    environment: Environment,
) -> Result<Code, Failure> {
    let context = Context::load(global, environment)?;
    let providers = &context.providers;
    let wanted: Vec<&Provider> = match &args.provider {
        None => providers.iter().collect(),
        Some(name) => vec![providers.find_provider(name).map_err(Failure::usage)?],
    };
    let screen = Screen::new(true);
    let mut rows = Vec::new();
    for provider in wanted {
        let readiness = providers.readiness(provider);
        let mut models = providers.known_models(provider);
        if args.served && !matches!(readiness, Readiness::KeyMissing(_)) {
            screen.wait_for(&format!("asking {}", provider.name));
            match providers.served_models(provider).await {
                Some(Ok(served)) => models = served,
                Some(Err(error)) => {
                    screen.hold_still();
                    say_warning(&error.to_string());
                }
                None => {}
            }
        }
        rows.extend(models.into_iter().map(|(name, capabilities)| Row {
            model: ModelId::new(&provider.name, name),
            ready: !matches!(readiness, Readiness::KeyMissing(_)),
            missing_key: match &readiness {
                Readiness::KeyMissing(variable) => Some(variable.clone()),
                _ => None,
            },
            capabilities,
        }));
    }
    screen.hold_still();
    match args.output {
        ListOutput::Json => output::pretty(&rows),
        ListOutput::Text => {
            let rows: Vec<[String; 4]> = rows.iter().map(shown).collect();
            output::lines(&table(&rows))
        }
    }
    .map_err(Failure::run)?;
    Ok(Code::Success)
}

fn shown(row: &Row) -> [String; 4] {
    let state = match &row.missing_key {
        None => "ready".to_owned(),
        Some(variable) => format!("needs {variable}"),
    };
    let window = row
        .capabilities
        .context_window
        .map_or_else(String::new, |tokens| format!("{} k tokens", tokens / 1000));
    [
        one_line(&row.model.to_string(), 100),
        state,
        window,
        abilities(&row.capabilities),
    ]
}

/// What it is known to do.
fn abilities(capabilities: &ModelCapabilities) -> String {
    let all = [
        ("tools", capabilities.tools),
        ("parallel tools", capabilities.parallel_tools),
        ("forced tools", capabilities.forced_tool_choice),
        ("structured output", capabilities.structured_output),
        ("reasoning", capabilities.reasoning),
        ("images", capabilities.images),
        ("documents", capabilities.documents),
        ("audio", capabilities.audio),
    ];
    let known: Vec<&str> = all
        .into_iter()
        .filter(|(_, has)| *has == Some(true))
        .map(|(name, _)| name)
        .collect();
    known.join(", ")
}
