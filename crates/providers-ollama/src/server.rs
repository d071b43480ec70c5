//! Requests a server's version and its description of a model.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_domain::{ModelCapabilities, ModelError};
use switchboard_providers_common::{
    HttpTransport, RetryPolicy, TransportConfig,
    provider::{ModelPage, ProviderConfig as _, ServedModel},
};

use crate::{
    OllamaClient, OllamaModel, OllamaOptions,
    capabilities::{add_reported_capabilities, capabilities},
    error::is_missing_endpoint,
};

/// Time-out of each stage of a version request: to connect, to receive the first byte, and to
/// receive each further piece.
const VERSION_TIMEOUT: Duration = Duration::from_secs(1);

/// Requests the server's version (`GET /api/version`) without retries. Connecting may take one
/// second, and the answer may then take another second to begin.
pub async fn fetch_version(client: &OllamaClient) -> Result<String, ModelError> {
    let config = TransportConfig {
        connect_timeout: VERSION_TIMEOUT,
        first_byte_timeout: VERSION_TIMEOUT,
        idle_timeout: VERSION_TIMEOUT,
        retry: RetryPolicy::never_retry(),
        ..client.config().transport_config()
    };
    let transport = HttpTransport::new(client.config().provider(), &config)?;
    let read = |body: &Value| text_field(body, "version");
    client
        .get_json_with_transport(&transport, "api/version", "a version", read)
        .await
}

/// Returns whether the server answers a request for its version ([`fetch_version`]).
pub async fn is_reachable(client: &OllamaClient) -> bool {
    fetch_version(client).await.is_ok()
}

/// Requests the server's description of the model `name` (`POST /api/show`).
///
/// Fails with [`ModelErrorKind::NotFound`](switchboard_domain::ModelErrorKind::NotFound), and the
/// command that downloads the model, if the server does not have it.
pub async fn fetch_model_description(
    client: &OllamaClient,
    name: &str,
) -> Result<ModelDescription, ModelError> {
    let body = json!({ "model": name }).to_string();
    let read = |body: &Value| ModelDescription::from_response(name, body);
    client
        .post_json("api/show", body, "a description of a model", read)
        .await
}

/// Returns the model `name` with the capabilities and the stop sequences that the server reports.
/// If the server has no endpoint for model descriptions ([`is_missing_endpoint`]), the model has
/// the capabilities that are known without a request.
///
/// Fails as [`fetch_model_description`] does.
pub async fn described_model(client: &OllamaClient, name: &str) -> Result<OllamaModel, ModelError> {
    let shown = match fetch_model_description(client, name).await {
        Err(error) if is_missing_endpoint(&error) => return Ok(client.model(name)),
        shown => shown?,
    };
    let model = client.model(name).with_capabilities(shown.capabilities());
    Ok(model.with_options(OllamaOptions {
        own_stop: shown.stop,
    }))
}

/// A server's description of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelDescription {
    /// Name of the model in the request.
    pub name: String,
    /// Capabilities in the server's terms: `completion`, `tools`, `vision`, `thinking`, `audio`, …
    /// `None` if the server does not report them.
    pub abilities: Option<Vec<String>>,
    /// Context window in tokens: the model's `num_ctx` if set, else its trained context length. The
    /// server may have loaded the model with a smaller context window.
    pub context_window: Option<u64>,
    /// The model's default stop sequences, for requests without `stop`. `None` if one of them
    /// cannot be parsed.
    pub stop: Option<Vec<String>>,
    /// Whether the model runs in Ollama's cloud.
    pub is_remote: bool,
}

impl ModelDescription {
    /// Returns the capabilities of the model: those that are known without a request, and those
    /// that the server reported.
    pub fn capabilities(&self) -> ModelCapabilities {
        let known = capabilities(&self.name, self.is_remote);
        add_reported_capabilities(&known, self.abilities.as_deref(), self.context_window)
    }

    /// Reads a response of `POST /api/show`. Returns `None` if `body` is not a model description.
    fn from_response(name: &str, body: &Value) -> Option<Self> {
        let known = ["details", "model_info", "capabilities", "template"];
        if !known.iter().any(|field| body.get(field).is_some()) {
            return None;
        }
        let abilities = body.get("capabilities").and_then(Value::as_array);
        let num_ctx = model_parameter_values(body, "num_ctx").find_map(|value| value.parse().ok());
        let is_remote = ["remote_host", "remote_model"];
        Some(Self {
            name: name.to_owned(),
            abilities: abilities.map(|list| {
                let names = list.iter().filter_map(Value::as_str);
                names.map(str::to_owned).collect()
            }),
            context_window: num_ctx.or_else(|| find_context_length(body)),
            stop: model_parameter_values(body, "stop")
                .map(parse_stop_sequence)
                .collect(),
            is_remote: is_remote
                .iter()
                .any(|field| text_field(body, field).is_some()),
        })
    }
}

/// Reads the list of models (`GET /api/tags`). Returns `None` if `body` is not such a list. Entries
/// without a name are omitted.
pub(crate) fn parse_model_list_page(body: &Value) -> Option<ModelPage> {
    // Go serializes an empty list as `null`.
    let list = body.get("models")?.as_array().map(Vec::as_slice);
    let models = list.unwrap_or_default().iter().filter_map(|entry| {
        Some(ServedModel {
            // Before 2024, servers sent only `name`.
            name: text_field(entry, "model").or_else(|| text_field(entry, "name"))?,
            ..ServedModel::default()
        })
    });
    Some(ModelPage {
        models: models.collect(),
        next: None,
    })
}

/// Returns all values of the model parameter `name`. Parameters are lines of text: name, blanks,
/// and the value in Go syntax. A parameter with several values has one line per value.
fn model_parameter_values<'b>(body: &'b Value, name: &str) -> impl Iterator<Item = &'b str> {
    let lines = body.get("parameters").and_then(Value::as_str);
    lines.unwrap_or_default().lines().filter_map(move |line| {
        let (found, value) = line.trim().split_once(char::is_whitespace)?;
        (found == name).then(|| value.trim())
    })
}

/// Parses a stop sequence, which is quoted in Go syntax or, by old servers, not quoted. Go syntax
/// is that of JSON except for rare escapes. Returns `None` for such an escape.
fn parse_stop_sequence(value: &str) -> Option<String> {
    if value.starts_with('"') {
        serde_json::from_str(value).ok()
    } else {
        Some(value.to_owned())
    }
}

/// Returns the model's trained context length in tokens: the field `<architecture>.context_length`
/// of `model_info`. Returns `None` if the server does not report it.
fn find_context_length(body: &Value) -> Option<u64> {
    let info = body.get("model_info")?;
    let architecture = text_field(info, "general.architecture")?;
    info.get(format!("{architecture}.context_length"))?.as_u64()
}

fn text_field(entry: &Value, name: &str) -> Option<String> {
    let text = entry.get(name)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_old_and_new_servers_are_read() {
        let body = json!({"models": [
            {"name": "qwen3:8b", "model": "qwen3:8b", "size": 5_225_388_164_u64},
            {"name": "llama2:latest", "size": 1, "details": null},
            {"size": 3}, 4,
        ]});
        let page = parse_model_list_page(&body).unwrap();
        let names: Vec<_> = page.models.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["qwen3:8b", "llama2:latest"]);
        assert_eq!(
            parse_model_list_page(&json!({"models": null})),
            Some(ModelPage::default())
        );
        assert_eq!(parse_model_list_page(&json!({"data": []})), None);
    }

    #[test]
    fn the_capabilities_and_the_context_window_are_read() {
        let body = json!({
            "parameters": "stop    \"<|im_end|>\"\nnum_ctx                        16384",
            "details": {"family": "qwen3vl", "parameter_size": "8.8B"},
            "model_info": {"general.architecture": "qwen3vl", "qwen3vl.context_length": 262_144},
            "capabilities": ["completion", "vision", "tools", "thinking"],
        });
        let model = ModelDescription::from_response("qwen3-vl", &body).unwrap();
        let can = model.capabilities();
        assert_eq!(can.context_window, Some(16_384));
        assert_eq!(
            (can.tools, can.images, can.reasoning, can.audio),
            (Some(true), Some(true), Some(true), Some(false))
        );
        let mut without = body.clone();
        without["parameters"] = json!("stop x");
        let without = ModelDescription::from_response("x", &without).unwrap();
        assert_eq!(without.context_window, Some(262_144));
        assert_eq!(model.stop.as_deref(), Some(&["<|im_end|>".to_owned()][..]));
        let old =
            ModelDescription::from_response("x", &json!({"template": "{{ .Prompt }}"})).unwrap();
        assert_eq!(old.capabilities().tools, None);
        assert_eq!(old.capabilities().context_window, None);
        assert_eq!(
            ModelDescription::from_response("x", &json!({"object": "model"})),
            None
        );
        let remote = json!({"details": {}, "remote_host": "https://ollama.com:443"});
        let remote = ModelDescription::from_response("gpt-oss:120b", &remote).unwrap();
        assert_eq!(remote.capabilities().structured_output, Some(false));
    }

    #[test]
    fn stop_sequences_are_read_in_the_quoting_of_go() {
        let stop = |parameters: &str| {
            let body = json!({ "template": "", "parameters": parameters });
            ModelDescription::from_response("x", &body).unwrap().stop
        };
        let some = |texts: &[&str]| Some(texts.iter().map(|&it| it.to_owned()).collect());
        assert_eq!(stop(""), some(&[]));
        assert_eq!(
            stop(
                "stop                           \"[INST]\"\nstop   \"\\n\\\"end\\\"\"\nnum_ctx  \
                 2\nstopper 3"
            ),
            some(&["[INST]", "\n\"end\""])
        );
        // Servers before 2024 do not quote stop sequences.
        assert_eq!(stop("stop  User:"), some(&["User:"]));
        // If one stop sequence cannot be parsed, the list is unknown.
        assert_eq!(stop("stop \"a\"\nstop \"\\x00\""), None);
    }
}
