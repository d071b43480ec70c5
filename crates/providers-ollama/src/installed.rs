//! Descriptions of models by the server.

use serde_json::Value;
use switchboard_domain::ModelCapabilities;

use crate::capabilities::{capabilities, from_words};

/// A model that a server has (`GET /api/tags`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModel {
    /// Its name with its tag, as [`OllamaClient::model`](crate::OllamaClient::model) takes it.
    pub name: String,
    /// Bytes on disk; a few hundred for a model that runs in the cloud.
    pub size: Option<u64>,
    /// Its architecture, such as `qwen3`.
    pub family: Option<String>,
    /// Its size in parameters, such as `8.2B`.
    pub parameter_size: Option<String>,
    /// Its quantization, such as `Q4_K_M`.
    pub quantization: Option<String>,
    /// Whether it runs elsewhere, in the cloud.
    pub remote: bool,
    /// Capabilities in the server's terms. Servers before 2026 report them in [`ShownModel`] only.
    pub abilities: Option<Vec<String>>,
}

impl InstalledModel {
    /// Returns the capabilities that the server reported.
    pub fn capabilities(&self) -> ModelCapabilities {
        let abilities = self.abilities.as_deref();
        from_words(&capabilities(&self.name, self.remote), abilities, None)
    }
}

/// A model in detail (`POST /api/show`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownModel {
    /// The name in the request.
    pub name: String,
    /// Capabilities in the server's terms: `completion`, `tools`, `vision`, `thinking`, `audio`, …
    pub abilities: Option<Vec<String>>,
    /// Tokens of prompt and answer together: the model's `num_ctx` if set, else its trained context
    /// length. The server may have loaded the model with fewer.
    pub context_window: Option<u64>,
    /// The texts at which its answers end if a request says none; `None` where they cannot be read.
    pub stop: Option<Vec<String>>,
    /// Its architecture, such as `qwen3`.
    pub family: Option<String>,
    /// Its size in parameters, such as `8.2B`.
    pub parameter_size: Option<String>,
    /// Its quantization, such as `Q4_K_M`.
    pub quantization: Option<String>,
    /// Whether it runs elsewhere, in the cloud.
    pub remote: bool,
}

impl ShownModel {
    /// Returns the capabilities that the server reported.
    pub fn capabilities(&self) -> ModelCapabilities {
        let abilities = self.abilities.as_deref();
        let known = capabilities(&self.name, self.remote);
        from_words(&known, abilities, self.context_window)
    }
}

/// Parses the response of `GET /api/tags`. Returns `None` if it is malformed. Entries without a
/// name are omitted.
pub(crate) fn installed(body: &Value) -> Option<Vec<InstalledModel>> {
    let list = body.get("models")?;
    // Go writes an empty list as `null`.
    let list = list.as_array().map(Vec::as_slice);
    Some(list.unwrap_or_default().iter().filter_map(one).collect())
}

fn one(entry: &Value) -> Option<InstalledModel> {
    Some(InstalledModel {
        // `name` alone before 2024.
        name: text(entry, "model").or_else(|| text(entry, "name"))?,
        size: entry.get("size").and_then(Value::as_u64),
        family: detail(entry, "family"),
        parameter_size: detail(entry, "parameter_size"),
        quantization: detail(entry, "quantization_level"),
        remote: is_remote(entry),
        abilities: abilities(entry),
    })
}

/// Reads the answer of `POST /api/show` about `name`; `None` if it is none.
pub(crate) fn shown(name: &str, body: &Value) -> Option<ShownModel> {
    let known = ["details", "model_info", "capabilities", "template"];
    if !known.iter().any(|field| body.get(field).is_some()) {
        return None;
    }
    Some(ShownModel {
        name: name.to_owned(),
        abilities: abilities(body),
        context_window: num_ctx(body).or_else(|| context_length(body)),
        stop: parameters(body, "stop").map(stop_text).collect(),
        family: detail(body, "family"),
        parameter_size: detail(body, "parameter_size"),
        quantization: detail(body, "quantization_level"),
        remote: is_remote(body),
    })
}

/// Returns the values of one parameter of the model. Parameters are lines of text: name, blanks,
/// and the value in Go syntax. A parameter with several values has one line per value.
fn parameters<'b>(body: &'b Value, name: &str) -> impl Iterator<Item = &'b str> {
    let lines = body.get("parameters").and_then(Value::as_str);
    lines.unwrap_or_default().lines().filter_map(move |line| {
        let (found, value) = line.trim().split_once(char::is_whitespace)?;
        (found == name).then(|| value.trim())
    })
}

fn num_ctx(body: &Value) -> Option<u64> {
    parameters(body, "num_ctx").find_map(|value| value.parse().ok())
}

/// Parses a Go string literal. Its escapes are those of JSON, except for rare ones.
fn stop_text(value: &str) -> Option<String> {
    if value.starts_with('"') {
        serde_json::from_str(value).ok()
    } else {
        Some(value.to_owned())
    }
}

/// `<architecture>.context_length` of the model file.
fn context_length(body: &Value) -> Option<u64> {
    let info = body.get("model_info")?.as_object()?;
    let architecture = info.get("general.architecture").and_then(Value::as_str);
    let own = architecture.and_then(|it| info.get(&format!("{it}.context_length")));
    let any = || {
        let found = info
            .iter()
            .find(|(key, _)| key.ends_with(".context_length"));
        found.map(|(_, value)| value)
    };
    own.or_else(any)?.as_u64()
}

fn text(entry: &Value, name: &str) -> Option<String> {
    let text = entry.get(name)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn detail(entry: &Value, name: &str) -> Option<String> {
    text(entry.get("details")?, name)
}

fn is_remote(entry: &Value) -> bool {
    text(entry, "remote_host").is_some() || text(entry, "remote_model").is_some()
}

fn abilities(entry: &Value) -> Option<Vec<String>> {
    let list = entry.get("capabilities")?.as_array()?;
    let words = list.iter().filter_map(Value::as_str);
    Some(words.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_lists_of_old_and_new_servers_are_read() {
        let body = json!({"models": [
            {"name": "qwen3:8b", "model": "qwen3:8b", "size": 5_225_388_164_u64, "digest": "500a",
             "details": {"family": "qwen3", "parameter_size": "8.2B", "quantization_level": "Q4_K_M"},
             "capabilities": ["completion", "tools", "thinking"]},
            {"name": "llama2:latest", "size": 1, "details": null},
            {"name": "gpt-oss:120b-cloud", "model": "gpt-oss:120b-cloud", "size": 384,
             "remote_model": "gpt-oss:120b", "remote_host": "https://ollama.com:443"},
            {"size": 3}, 4,
        ]});
        let models = installed(&body).unwrap();
        let names: Vec<_> = models.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["qwen3:8b", "llama2:latest", "gpt-oss:120b-cloud"]);
        assert_eq!(models[0].size, Some(5_225_388_164));
        assert_eq!(models[0].parameter_size.as_deref(), Some("8.2B"));
        assert_eq!(models[0].capabilities().tools, Some(true));
        assert_eq!(models[0].capabilities().images, Some(false));
        assert_eq!(models[1].capabilities().tools, None);
        assert!(models[2].remote);
        assert_eq!(models[2].capabilities().structured_output, Some(false));
        assert_eq!(installed(&json!({"models": null})), Some(Vec::new()));
        assert_eq!(installed(&json!({"data": []})), None);
    }

    #[test]
    fn the_capabilities_and_the_context_window_are_read() {
        let body = json!({
            "parameters": "stop    \"<|im_end|>\"\nnum_ctx                        16384",
            "details": {"family": "qwen3vl", "parameter_size": "8.8B"},
            "model_info": {"general.architecture": "qwen3vl", "qwen3vl.context_length": 262_144},
            "capabilities": ["completion", "vision", "tools", "thinking"],
        });
        let model = shown("qwen3-vl", &body).unwrap();
        let can = model.capabilities();
        assert_eq!(can.context_window, Some(16_384));
        assert_eq!(
            (can.tools, can.images, can.reasoning, can.audio),
            (Some(true), Some(true), Some(true), Some(false))
        );
        let mut without = body.clone();
        without["parameters"] = json!("stop x");
        assert_eq!(shown("x", &without).unwrap().context_window, Some(262_144));
        assert_eq!(model.stop.as_deref(), Some(&["<|im_end|>".to_owned()][..]));
        let old = shown("x", &json!({"template": "{{ .Prompt }}"})).unwrap();
        assert_eq!(old.capabilities().tools, None);
        assert_eq!(old.capabilities().context_window, None);
        assert_eq!(shown("x", &json!({"object": "model"})), None);
    }

    #[test]
    fn stop_sequences_are_read_in_the_quoting_of_go() {
        let stop = |parameters: &str| {
            let body = json!({ "template": "", "parameters": parameters });
            shown("x", &body).unwrap().stop
        };
        let some = |texts: &[&str]| Some(texts.iter().map(|&it| it.to_owned()).collect());
        assert_eq!(stop(""), some(&[]));
        assert_eq!(
            stop(
                "stop                           \"[INST]\"\nstop   \"\\n\\\"end\\\"\"\nnum_ctx  2\nstopper 3"
            ),
            some(&["[INST]", "\n\"end\""])
        );
        // As servers of before 2024 write them.
        assert_eq!(stop("stop  User:"), some(&["User:"]));
        // Not half of them: what is not known is not replaced.
        assert_eq!(stop("stop \"a\"\nstop \"\\x00\""), None);
    }
}
