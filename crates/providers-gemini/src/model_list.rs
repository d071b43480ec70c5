//! Parses the list of models that a server offers.

use serde_json::Value;
use switchboard_providers_common::provider::{ModelPage, ServedModel};

use crate::percent_encoding;

/// The path of the first page of the model list, relative to the API version.
pub(crate) const MODELS_PATH: &str = "models?pageSize=1000";

/// Parses a page of the model list (`GET {base}/{version}/models`). Returns `None` if the response
/// is not such a page. Omits models that do not generate content, such as embedding and video
/// models.
pub(crate) fn parse_model_list_page(body: &Value) -> Option<ModelPage> {
    let token = body.get("nextPageToken").and_then(Value::as_str);
    let models = match body.get("models") {
        Some(models) => models.as_array()?.iter().filter_map(parse_model).collect(),
        // An empty page of the model list has no field `models`.
        None if token.is_some() || body.as_object()?.is_empty() => Vec::new(),
        None => return None,
    };
    let token = token.filter(|token| !token.is_empty());
    let next = token.map(|it| {
        format!(
            "{MODELS_PATH}&pageToken={}",
            percent_encoding::percent_encode(it, b'-')
        )
    });
    Some(ModelPage { models, next })
}

fn parse_model(entry: &Value) -> Option<ServedModel> {
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
        title: entry
            .get("displayName")
            .and_then(Value::as_str)
            .map(str::to_owned),
        context_window: number("inputTokenLimit"),
        max_output_tokens: number("outputTokenLimit"),
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
        let ModelPage { models, next } = parse_model_list_page(&body).unwrap();
        let names: Vec<_> = models.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["gemini-3.8-flash", "tunedModels/mine"]);
        let flash = &models[0];
        assert_eq!(flash.title.as_deref(), Some("Gemini 3.8 Flash"));
        assert_eq!(flash.context_window, Some(1_048_576));
        assert_eq!(flash.max_output_tokens, Some(65_536));
        assert_eq!(models[1].context_window, None);
        assert_eq!(next.as_deref(), Some("models?pageSize=1000&pageToken=p2"));
    }

    #[test]
    fn an_empty_list_is_accepted_and_another_document_is_not() {
        assert_eq!(parse_model_list_page(&json!({})).unwrap().models, []);
        assert_eq!(
            parse_model_list_page(&json!({"nextPageToken": "x"}))
                .unwrap()
                .models,
            []
        );
        for odd in [
            json!({"hello": 1}),
            json!({"models": {}}),
            json!([]),
            json!("x"),
        ] {
            assert_eq!(parse_model_list_page(&odd), None, "{odd}");
        }
    }
}
