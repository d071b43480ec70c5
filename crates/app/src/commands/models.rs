//! Command `models`: lists models and their capabilities.

use clap::Args;
use serde::Serialize;
use switchboard_domain::{ModelCapabilities, ModelId};
use switchboard_providers_common::catalog;

use super::print_table;
use crate::{
    models::{Provider, Readiness},
    run_session::{
        arguments::GlobalArgs,
        context::{Context, Process},
        failure::{Code, Failure},
    },
    terminal::{
        Screen,
        output::{self, ListFormat},
        print_warning, to_one_line,
    },
};

/// Command-line arguments of `switchboard models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// List every model of the catalogue
    #[arg(long, conflicts_with = "served")]
    all: bool,
    /// Query every available provider for its models
    #[arg(long)]
    served: bool,
    /// List the models of this provider only
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ListFormat,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Serialize)]
struct ModelRow {
    model: ModelId,
    /// Whether the model's provider can be used: it has the API key that it needs.
    ready: bool,
    /// Environment variable that must be set to an API key before the model can be used. `None` if
    /// no key is missing.
    missing_key: Option<String>,
    capabilities: ModelCapabilities,
    /// List prices of the model in US dollars per million tokens. `None` if they are unknown.
    prices: Option<catalog::Prices>,
    /// Date on which the provider retires the model (YYYY-MM-DD). `None` if no date is announced.
    deprecated_on: Option<&'static str>,
}

pub(crate) async fn execute(args: ModelsArgs, process: Process<'_>) -> Result<Code, Failure> {
    let interrupts = process.interrupts;
    let context = Context::load_context(&args.global, process.environment)?;
    let providers = &context.providers;
    let wanted: Vec<&Provider> = match &args.provider {
        None => providers.iter().collect(),
        Some(name) => {
            let found = providers.find_provider(name);
            vec![found.map_err(Failure::usage_error)?]
        }
    };
    let mut rows = Vec::new();
    for provider in wanted {
        let missing_key = match providers.check_readiness(provider) {
            Readiness::KeyMissing(variable) => Some(variable),
            Readiness::Key(_) | Readiness::NoKeyNeeded => None,
        };
        let mut models = if args.all {
            provider.catalogued_models()
        } else {
            provider.known_models()
        };
        if args.served && missing_key.is_none() {
            let screen = Screen::new(true);
            screen.show_progress(&format!("asking {}", provider.name));
            let served = tokio::select! {
                served = providers.request_served_models(provider) => served,
                () = interrupts.wait_for_first_interruption() => return Ok(Code::Interrupted),
            };
            drop(screen);
            match served {
                Some(Ok(served)) => models = served,
                Some(Err(error)) => print_warning(&error.to_string()),
                None => {}
            }
        }
        rows.extend(models.into_iter().map(|(name, capabilities)| {
            let entry = provider.find_catalogue_entry(&name);
            ModelRow {
                ready: missing_key.is_none(),
                missing_key: missing_key.clone(),
                capabilities,
                prices: entry.as_ref().map(|entry| entry.prices),
                deprecated_on: entry.and_then(|entry| entry.deprecated_on),
                model: ModelId::new(&*provider.name, name),
            }
        }));
    }
    print_table(args.output, &rows, "", format_model_row)?;
    if args.output == ListFormat::Text && rows.iter().any(|row| row.prices.is_some()) {
        let source = catalog::data_source();
        output::print_lines(&format!(
            "Prices: US dollars per million tokens, input / output, from {source}."
        ))?;
    }
    Ok(Code::Success)
}

fn format_model_row(row: &ModelRow) -> [String; 5] {
    let state = match &row.missing_key {
        None => "ready".to_owned(),
        Some(variable) => format!("needs {variable}"),
    };
    let window = row.capabilities.context_window;
    let window = window.map(|tokens| format!("{} k tokens", tokens / 1000));
    let prices = row.prices.as_ref();
    let price = prices.and_then(|it| Some(format!("{} / {}", it.input?, it.output?)));
    let mut abilities = format_capabilities(&row.capabilities);
    if let Some(day) = row.deprecated_on {
        abilities = format!("until {day}; {abilities}");
    }
    let model = to_one_line(&row.model.to_string(), 100);
    let (window, price) = (window.unwrap_or_default(), price.unwrap_or_default());
    [model, state, window, price, abilities]
}

/// Returns the capabilities that the model is known to have as text, such as `tools, images`.
fn format_capabilities(capabilities: &ModelCapabilities) -> String {
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
    let known = all.into_iter().filter(|(_, has)| *has == Some(true));
    known.map(|(name, _)| name).collect::<Vec<_>>().join(", ")
}
