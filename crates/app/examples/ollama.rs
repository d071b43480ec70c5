//! Asks a local Ollama model a question with one tool. Needs a running Ollama server with the model
//! `qwen3:8b`. `OLLAMA_HOST` is the address of another server.
mod weather_tool;

use switchboard_providers_ollama::OllamaModel;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    weather_tool::ask_about_weather(OllamaModel::from_env("qwen3:8b")?).await
}
