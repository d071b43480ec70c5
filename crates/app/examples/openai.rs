//! Asks a model of OpenAI a question with one tool. Needs `OPENAI_API_KEY`.
mod weather_tool;

use switchboard_providers_openai::OpenAiResponsesModel;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    weather_tool::ask_about_weather(OpenAiResponsesModel::from_env("gpt-6.1-sol")?).await
}
