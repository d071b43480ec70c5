//! `models`: lists models and their capabilities.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use switchboard_domain::{ModelCapabilities, ModelId};
use switchboard_providers_common::catalog;

use crate::{
    config::environment::Environment,
    models::{Provider, Readiness},
    terminal::{Screen, one_line, print_warning},
};
use crate::{
    run_session::{
        arguments::Global,
        context::Context,
        failure::{Code, Failure},
        interrupts::Interrupts,
    },
    terminal::{
        output::{self, ListOutput},
        table::table,
    },
};

/// Arguments of `models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// List every model of the catalogue
    #[arg(long, conflicts_with = "served")]
    all: bool,
    /// Ask every available provider for its models
    #[arg(long)]
    served: bool,
    /// List the models of this provider only
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ListOutput,
    #[command(flatten)]
    global: Global,
}

#[derive(Debug, Serialize)]
struct Row {
    model: ModelId,
    /// Whether the provider can be used.
    ready: bool,
    /// The variable of the missing key.
    missing_key: Option<String>,
    capabilities: ModelCapabilities,
    /// US dollars per million tokens, list prices.
    prices: Option<Prices>,
    /// The provider's end date as YYYY-MM-DD.
    deprecated_on: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Prices {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

pub(crate) async fn run(
    args: ModelsArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let context = Context::load(&args.global, environment)?;
    let providers = &context.providers;
    let wanted: Vec<&Provider> = match &args.provider {
        None => providers.iter().collect(),
        Some(name) => vec![providers.find_provider(name).map_err(Failure::usage)?],
    };
    let screen = Screen::new(true);
    let mut rows = Vec::new();
    for provider in wanted {
        let readiness = providers.readiness(provider);
        let mut models = if args.all {
            provider.catalogued_models()
        } else {
            provider.known_models()
        };
        if args.served && !matches!(readiness, Readiness::KeyMissing(_)) {
            screen.show_progress(&format!("asking {}", provider.name));
            let served = tokio::select! {
                served = providers.served_models(provider) => served,
                () = interrupts.first() => return Ok(Code::Interrupted),
            };
            match served {
                Some(Ok(served)) => models = served,
                Some(Err(error)) => {
                    screen.pause();
                    print_warning(&error.to_string());
                }
                None => {}
            }
        }
        rows.extend(models.into_iter().map(|(name, capabilities)| {
            let entry = provider.catalogued(&name);
            Row {
                ready: !matches!(readiness, Readiness::KeyMissing(_)),
                missing_key: match &readiness {
                    Readiness::KeyMissing(variable) => Some(variable.clone()),
                    _ => None,
                },
                capabilities,
                prices: entry.as_ref().map(|entry| Prices {
                    input: entry.prices.input,
                    output: entry.prices.output,
                    cache_read: entry.prices.cache_read,
                    cache_write: entry.prices.cache_write,
                }),
                deprecated_on: entry.as_ref().and_then(|entry| entry.deprecated_on),
                model: ModelId::new(&*provider.name, name),
            }
        }));
    }
    screen.pause();
    output::print(args.output, &rows, || {
        let mut text = table(&rows.iter().map(shown).collect::<Vec<_>>());
        if rows.iter().any(|row| row.prices.is_some()) {
            let source = catalog::source();
            let _ = writeln!(
                text,
                "Prices: US dollars per million tokens, input / output, by {source}."
            );
        }
        text
    })?;
    Ok(Code::Success)
}

fn shown(row: &Row) -> [String; 5] {
    let state = match &row.missing_key {
        None => "ready".to_owned(),
        Some(variable) => format!("needs {variable}"),
    };
    let window = row
        .capabilities
        .context_window
        .map_or_else(String::new, |tokens| format!("{} k tokens", tokens / 1000));
    let price = match &row.prices {
        Some(Prices {
            input: Some(input),
            output: Some(output),
            ..
        }) => format!("{input} / {output}"),
        _ => String::new(),
    };
    let mut abilities = abilities(&row.capabilities);
    if let Some(day) = row.deprecated_on {
        abilities = format!("until {day}; {abilities}");
    }
    [
        one_line(&row.model.to_string(), 100),
        state,
        window,
        price,
        abilities,
    ]
}

/// Formats the capabilities.
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
