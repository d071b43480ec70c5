//! Which models a server offers.

use serde_json::Value;

/// A model that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedModel {
    /// The server's name for it, as [`OpenAiClient::model`](crate::OpenAiClient::model) takes it.
    pub name: String,
    /// Who made it, in the server's words.
    pub owner: Option<String>,
    /// Tokens of prompt and answer together. OpenAI itself does not say it.
    pub context_window: Option<u64>,
}

/// The names under which servers tell the context window: OpenRouter and Together, vLLM, Groq,
/// Mistral.
const CONTEXT_WINDOW: [&str; 4] = [
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
];

/// Reads the answer of `GET {base}/models`: `{"data": [{id, …}]}`, or the list alone (Together).
/// `None` if it is neither; entries without an id are left out.
pub(crate) fn served(body: &Value) -> Option<Vec<ServedModel>> {
    let list = body.get("data").unwrap_or(body).as_array()?;
    Some(list.iter().filter_map(one).collect())
}

fn one(entry: &Value) -> Option<ServedModel> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &&str| entry.get(name).and_then(Value::as_u64);
    Some(ServedModel {
        name: text("id").filter(|id| !id.is_empty())?,
        owner: text("owned_by").filter(|owner| !owner.is_empty()),
        context_window: CONTEXT_WINDOW.iter().find_map(number),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(body: &Value) -> Vec<String> {
        let served = served(body).unwrap();
        served.into_iter().map(|it| it.name).collect()
    }

    #[test]
    fn every_servers_list_is_read() {
        let openai = json!({"object": "list", "data": [
            {"id": "gpt-6-luna", "object": "model", "created": 1, "owned_by": "openai"},
            {"id": "", "object": "model"}, {"object": "model"}, 3,
        ]});
        assert_eq!(names(&openai), ["gpt-6-luna"]);
        assert_eq!(served(&openai).unwrap()[0].owner.as_deref(), Some("openai"));
        assert_eq!(names(&json!([{"id": "a"}, {"id": "b"}])), ["a", "b"]);
        for field in CONTEXT_WINDOW {
            let listed = served(&json!({"data": [{"id": "m", field: 4096}]})).unwrap();
            assert_eq!(listed[0].context_window, Some(4096), "{field}");
        }
    }

    #[test]
    fn what_is_no_list_is_none() {
        for odd in [json!({}), json!({"data": {}}), json!("x"), Value::Null] {
            assert_eq!(served(&odd), None, "{odd}");
        }
    }
}
