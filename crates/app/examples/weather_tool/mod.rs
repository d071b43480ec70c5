//! The question and the tool of the examples for the providers.

use std::sync::Arc;

use anyhow::Context as _;
use switchboard_domain::ChatModel;
use switchboard_orchestration::{
    Agent,
    tools::functions::{Function, FunctionTools, schemars},
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[schemars(crate = "switchboard_orchestration::tools::functions::schemars")]
struct CityInput {
    city: String,
}

/// Asks `model` about the weather, with a Rust function as the tool, and prints the answer.
#[allow(clippy::print_stdout, reason = "a program that prints")]
pub(crate) async fn ask_about_weather(model: impl ChatModel + 'static) -> anyhow::Result<()> {
    let weather = Function::new(
        "weather",
        "Returns the current weather of a city.",
        |input: CityInput| async move { Ok::<_, String>(format!("It rains in {}.", input.city)) },
    );
    let tools = FunctionTools::new().with_function(weather.read_only());
    let agent = Agent::new(Arc::new(model)).with_tools(Arc::new(tools));
    let run = agent.ask("What is the weather in Oslo?").run_to_end().await;
    let report = run.build_report().context("the run has no report")?;
    if let Some(error) = report.error {
        anyhow::bail!(error.message);
    }
    println!("{}", report.answer);
    Ok(())
}
