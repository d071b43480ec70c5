//! Asks a Claude model a question with one tool. Needs `ANTHROPIC_API_KEY`.
mod weather_tool;

use switchboard_providers_anthropic::AnthropicModel;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    weather_tool::ask_about_weather(AnthropicModel::from_env("claude-sonnet-5-5")?).await
}
