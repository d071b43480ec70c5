//! The OpenAPI document, from the handlers themselves.

use serde_json::json;
use utoipa::openapi::{
    ContentBuilder, HttpMethod, Info, OpenApi, Ref, RefOr, ResponseBuilder,
    security::{
        ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
    },
    tag::TagBuilder,
};

/// Answers that every route may give, whatever it does.
const EVERYWHERE: [(&str, &str); 4] = [
    (
        "403",
        "The server is not called so, or the page that asks may not use it.",
    ),
    ("431", "The request's line and headers are too large."),
    ("500", "The server failed."),
    (
        "503",
        "Too many requests are open, or something that is needed is not there now.",
    ),
];
/// The same of those that want a token.
const GUARDED: [(&str, &str); 2] = [
    ("401", "No known access token was sent."),
    ("429", "Too many requests of yours are open."),
];

const TAGS: [(&str, &str); 6] = [
    ("chat", "Ask."),
    ("sessions", "Conversations that are kept."),
    ("runs", "What happens between a question and its answer."),
    ("offers", "What there is to choose from."),
    ("operation", "For those who watch over the server."),
    ("dialects", "The same in the words of others."),
];

/// Finishes the document that the routes make.
pub(crate) fn of(mut document: OpenApi) -> OpenApi {
    document.info = Info::new("Switchboard", env!("CARGO_PKG_VERSION"));
    document.info.description = Some(
        "Any language model, any tool. Errors are problem details (RFC 9457), but for those of the dialects, which have \
         their own form. docs/http.md is the guide."
            .to_owned(),
    );
    document.tags = Some(
        TAGS.iter()
            .map(|(name, text)| {
                TagBuilder::new()
                    .name(*name)
                    .description(Some(*text))
                    .build()
            })
            .collect(),
    );
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("One of `serve.tokens`, where some are configured."))
        .build();
    let key = ApiKeyValue::with_description("x-api-key", "The same, as Anthropic's SDKs send it.");
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    components.add_security_scheme("key", SecurityScheme::ApiKey(ApiKey::Header(key)));
    let security =
        || ["token", "key"].map(|name| SecurityRequirement::new(name, Vec::<String>::new()));
    document.security = Some(security().to_vec());
    for (path, item) in &mut document.paths.paths {
        let methods = [
            (HttpMethod::Get, &mut item.get),
            (HttpMethod::Post, &mut item.post),
            (HttpMethod::Patch, &mut item.patch),
            (HttpMethod::Delete, &mut item.delete),
        ];
        for operation in methods
            .into_iter()
            .filter_map(|(_, operation)| operation.as_mut())
        {
            let is_open = operation.security.is_some();
            let more = EVERYWHERE.iter();
            let more = more.chain(GUARDED.iter().filter(|_| !is_open));
            // Only these have a form of their own for errors.
            let is_dialect = path.starts_with("/v1/");
            for (status, text) in more {
                let responses = &mut operation.responses.responses;
                if !responses.contains_key(*status) {
                    responses.insert((*status).to_owned(), problem(text, is_dialect));
                }
            }
        }
    }
    document
}

/// Returns the document, a JSON object, with the path below which its routes are nested as its server.
pub(crate) fn nested(document: &str, prefix: &str) -> String {
    let servers = json!([{"url": prefix}]);
    match document.strip_prefix('{') {
        Some(fields) if !prefix.is_empty() => format!("{{\"servers\":{servers},{fields}"),
        _ => document.to_owned(),
    }
}

fn problem(description: &str, is_dialect: bool) -> RefOr<utoipa::openapi::Response> {
    let mut response = ResponseBuilder::new().description(description);
    if is_dialect {
        // Its form is the dialect's.
        response = response.content("application/json", ContentBuilder::new().build());
    } else {
        let schema = RefOr::Ref(Ref::from_schema_name("Problem"));
        let content = ContentBuilder::new().schema(Some(schema)).build();
        response = response.content("application/problem+json", content);
    }
    RefOr::T(response.build())
}
