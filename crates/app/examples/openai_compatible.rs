//! Asks a model of an OpenAI-compatible server, such as vLLM or llama.cpp, a question with one
//! tool. The argument is the base URL of the server.
mod weather_tool;

use switchboard_providers_openai::{OpenAiChatModel, OpenAiConfig};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1);
    let url = url.unwrap_or("http://127.0.0.1:8000/v1".into());
    let server = OpenAiConfig::for_compatible_server("local", url);
    weather_tool::ask_about_weather(OpenAiChatModel::new(server, "qwen3")?).await
}
