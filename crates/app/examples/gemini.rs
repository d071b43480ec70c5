//! Asks a Gemini model a question with one tool. Needs `GEMINI_API_KEY`.
mod weather_tool;

use switchboard_providers_gemini::GeminiModel;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    weather_tool::ask_about_weather(GeminiModel::from_env("gemini-3.8-flash")?).await
}
