//! Which models a server offers.

use serde_json::Value;

/// A model that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedModel {
    /// The server's name for it without `models/`, as
    /// [`GeminiClient::model`](crate::GeminiClient::model) takes it.
    pub name: String,
    /// Its name for people.
    pub display_name: Option<String>,
    /// Tokens of the prompt.
    pub context_window: Option<u64>,
    /// Tokens it can write at most.
    pub max_output_tokens: Option<u64>,
    /// Whether it thinks.
    pub thinking: Option<bool>,
}

/// One page of the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) models: Vec<ServedModel>,
    /// Where the next begins.
    pub(crate) next: Option<String>,
}

/// Reads the answer of `GET {base}/{version}/models`; `None` if it is none. Models that do not
/// generate content (embeddings, video) are left out.
pub(crate) fn page(body: &Value) -> Option<Page> {
    let next = body.get("nextPageToken").and_then(Value::as_str);
    let models = match body.get("models") {
        Some(models) => models.as_array()?.iter().filter_map(one).collect(),
        // A page may be empty, and then has no list.
        None if next.is_some() || body.as_object()?.is_empty() => Vec::new(),
        None => return None,
    };
    Some(Page {
        models,
        next: next.filter(|token| !token.is_empty()).map(str::to_owned),
    })
}

fn one(entry: &Value) -> Option<ServedModel> {
    let number = |name: &str| entry.get(name).and_then(Value::as_u64);
    let methods = entry.get("supportedGenerationMethods");
    let generates = methods.and_then(Value::as_array).is_none_or(|methods| {
        methods
            .iter()
            .any(|it| it == "generateContent" || it == "streamGenerateContent")
    });
    let name = entry.get("name")?.as_str().filter(|_| generates)?;
    let name = name.strip_prefix("models/").unwrap_or(name);
    Some(ServedModel {
        name: Some(name).filter(|name| !name.is_empty())?.to_owned(),
        display_name: entry
            .get("displayName")
            .and_then(Value::as_str)
            .map(str::to_owned),
        context_window: number("inputTokenLimit"),
        max_output_tokens: number("outputTokenLimit"),
        thinking: entry.get("thinking").and_then(Value::as_bool),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn models_that_generate_content_are_listed() {
        let body = json!({"models": [
            {"name": "models/gemini-3.8-flash", "displayName": "Gemini 3.8 Flash",
             "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536, "thinking": true,
             "supportedGenerationMethods": ["generateContent", "countTokens"]},
            {"name": "models/gemini-embedding-002", "supportedGenerationMethods": ["embedContent"]},
            {"name": "tunedModels/mine"}, {"name": "models/"}, {}, 3,
        ], "nextPageToken": "p2"});
        let Page { models, next } = page(&body).unwrap();
        let names: Vec<_> = models.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["gemini-3.8-flash", "tunedModels/mine"]);
        let flash = &models[0];
        assert_eq!(flash.display_name.as_deref(), Some("Gemini 3.8 Flash"));
        assert_eq!(flash.context_window, Some(1_048_576));
        assert_eq!(
            (flash.max_output_tokens, flash.thinking),
            (Some(65_536), Some(true))
        );
        assert_eq!(models[1].context_window, None);
        assert_eq!(next.as_deref(), Some("p2"));
    }

    #[test]
    fn an_empty_list_is_one_and_anything_else_is_none() {
        assert_eq!(page(&json!({})).unwrap().models, []);
        assert_eq!(page(&json!({"nextPageToken": "x"})).unwrap().models, []);
        for odd in [
            json!({"hello": 1}),
            json!({"models": {}}),
            json!([]),
            json!("x"),
        ] {
            assert_eq!(page(&odd), None, "{odd}");
        }
    }
}
