//! Tools that a provider executes: configured, shown while they run, and sent back to
//! it when the answer continues.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel};

use crate::support::Place;

const CONFIG: &str = "
providers:
  anthropic:
    options:
      server_tools:
        - type: web_search
          max_uses: 3
";

fn place(fake: &FakeModel) -> Place {
    Place::new()
        .with_variable("ANTHROPIC_API_KEY", "sk-secret")
        .with_variable("ANTHROPIC_BASE_URL", &fake.base_url())
        .with_file("switchboard.yaml", CONFIG)
}

const MODEL: &str = "anthropic/claude-haiku-4-5";

fn blocks(events: &[Value]) -> Vec<(&str, &str)> {
    events
        .iter()
        .filter(|event| event["type"] == "provider_block")
        .map(|event| {
            (
                event["kind"].as_str().unwrap(),
                event["text"].as_str().unwrap_or_default(),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_provider_search_is_declared_and_its_results_are_shown() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::transcript("anthropic/web-search.sse").unwrap());
    let args = ["ask", "--no-tools", "-m", MODEL, "-o", "jsonl", "Rain?"];
    let done = place(&fake).run(args).await.exits(0);
    let sent = fake.request(0).await.json()["tools"].clone();
    assert_eq!(sent[0]["name"], "web_search");
    assert_eq!(sent[0]["max_uses"], 3);

    let events = done.lines();
    let received = blocks(&events);
    let kinds: Vec<&str> = received.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, ["server_tool_use", "web_search_tool_result"]);
    assert!(received[0].1.contains("weather Hamburg"), "{received:?}");
    assert!(received[1].1.contains("Weather in Hamburg"), "{received:?}");
    assert!(
        received[1].1.contains("https://example.org/hamburg"),
        "{received:?}"
    );
    // Encrypted content of the provider is not shown.
    assert!(!done.stdout.contains("EqgfCioIARgB"), "{done}");
}

#[tokio::test]
async fn provider_tools_appear_on_standard_error_only() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::transcript("anthropic/web-search.sse").unwrap());
    let done = place(&fake)
        .run(["ask", "--no-tools", "-m", MODEL, "Rain?"])
        .await;
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stderr.contains("◇ web_search_tool_result"), "{done}");
    assert!(done.stderr.contains("Weather in Hamburg"), "{done}");
    assert!(!done.stdout.contains('◇'), "{done}");
}

#[tokio::test]
async fn an_error_about_a_provider_tool_names_the_tool_the_model_and_a_remedy() {
    let tools = "
providers:
  anthropic: {options: {server_tools: [
    {type: web_search}, {type: raw, declaration: {type: web_fetch_20250910, name: web_fetch}}]}}
  openai-responses: {options: {server_tools: [{type: web_search}]}}
  gemini: {options: {server_tools: [{type: google_search}]}}
";
    for (model, message, tool) in [
        (
            MODEL,
            "tools.1: Input tag 'web_fetch_20250910' does not match any of the expected tags",
            "web_fetch",
        ),
        (
            "openai-responses/gpt-6.1-sol",
            "Hosted tool 'web_search_preview' is not supported with gpt-6.1-sol.",
            "web_search",
        ),
        (
            "gemini/gemini-3.8-flash",
            "Search Grounding is not supported.",
            "google_search",
        ),
        (MODEL, "max_tokens: must be at least 1", ""),
    ] {
        let fake = FakeModel::start().await.unwrap();
        fake.answer(Answer::json(400, &json!({"error": {"message": message}})));
        let place = place(&fake).with_file("switchboard.yaml", tools);
        let place = place
            .with_variable("OPENAI_API_KEY", "sk-secret")
            .with_variable("OPENAI_BASE_URL", &format!("{}/v1", fake.base_url()))
            .with_variable("GEMINI_API_KEY", "secret-2")
            .with_variable("GOOGLE_GEMINI_BASE_URL", &fake.base_url());
        let done = place.run(["ask", "--no-tools", "-m", model, "Rain?"]).await;
        let done = done.exits(1);
        done.stderr_contains(message);
        let advice = format!(
            "; if model `{model}` does not support the provider's tool `{tool}`, remove the tool \
             from `server_tools` or use another model"
        );
        assert_eq!(done.stderr.contains(&advice), !tool.is_empty(), "{done}");
        assert_eq!(done.stderr.contains("server_tools"), !tool.is_empty());
    }
}
