//! Completes the OpenAPI document that is generated from the route handlers.

use serde_json::json;
use utoipa::{
    PartialSchema as _,
    openapi::{
        ContentBuilder, Info, OpenApi, Ref, RefOr, ResponseBuilder,
        path::{Operation, ParameterIn},
        security::{
            ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
        },
        tag::TagBuilder,
    },
};

use crate::Problem;

const PROBLEM_JSON: &str = "application/problem+json";

/// Errors that every route may return, as pairs of HTTP status and description.
const ALWAYS: &[(&str, &str)] = &[
    (
        "403",
        "The host name is not accepted, or the origin of the page is not allowed.",
    ),
    ("431", "The request line and headers are too large."),
    ("500", "Internal server error."),
    (
        "503",
        "Too many requests or runs are active, or a required service is unavailable.",
    ),
];
/// Errors of routes that need an access token, as pairs of HTTP status and description.
const WITH_TOKEN: &[(&str, &str)] = &[
    ("401", "The access token is missing or unknown."),
    (
        "429",
        "Too many requests or runs of the principal are active.",
    ),
];
/// Errors of routes with an id in their path, as pairs of HTTP status and description.
const WITH_ID: &[(&str, &str)] = &[("404", "The run or session does not exist.")];
/// Errors of routes that read a query, a header or a body, as pairs of status and description.
const WITH_INPUT: &[(&str, &str)] = &[
    ("400", "The request is malformed."),
    ("422", "A value is invalid."),
];
/// Errors of routes that read a request body, as pairs of HTTP status and description.
const WITH_BODY: &[(&str, &str)] = &[
    ("408", "The body was not received in time."),
    ("413", "The body is too large."),
    ("415", "The content type is not JSON."),
];

const TAGS: [(&str, &str); 6] = [
    ("chat", "Questions and answers."),
    ("sessions", "Stored conversations."),
    ("runs", "Events, decisions and control of runs."),
    ("offers", "Available tools, servers, models and recipes."),
    ("operation", "Monitoring."),
    ("dialects", "The protocols of other clients."),
];

/// Completes the OpenAPI document with general information, security schemes and common errors.
pub(crate) fn complete_document(mut document: OpenApi) -> OpenApi {
    document.info = Info::new("Switchboard", env!("CARGO_PKG_VERSION"));
    document.info.description = Some(
        "Any language model, any tool. Errors are problem details (RFC 9457), except for dialects \
         with their own error format. See docs/http.md."
            .to_owned(),
    );
    let tags = TAGS.map(|(name, text)| {
        let tag = TagBuilder::new().name(name).description(Some(text));
        tag.build()
    });
    document.tags = Some(tags.to_vec());
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("One of `serve.tokens`, if any are configured."))
        .build();
    let key =
        ApiKeyValue::with_description("x-api-key", "The same token, as Anthropic's SDKs send it.");
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    components.add_security_scheme("key", SecurityScheme::ApiKey(ApiKey::Header(key)));
    let schemas = &mut components.schemas;
    schemas.insert("Problem".to_owned(), Problem::schema());
    let security = ["token", "key"].map(|name| SecurityRequirement::new(name, [""; 0]));
    document.security = Some(security.to_vec());
    for (path, item) in &mut document.paths.paths {
        let operations = [
            &mut item.get,
            &mut item.post,
            &mut item.patch,
            &mut item.delete,
        ];
        for operation in operations.into_iter().flatten() {
            add_problem_responses(path, operation);
        }
    }
    document
}

/// Adds common errors to an operation, and sets the content type of all its errors.
fn add_problem_responses(path: &str, operation: &mut Operation) {
    let mut problems = ALWAYS.to_vec();
    if operation.security.is_none() {
        problems.extend(WITH_TOKEN);
    }
    let responses = &mut operation.responses.responses;
    // Routes below `/v1/` return errors in the formats of OpenAI and Anthropic.
    let has_own_form = path.starts_with("/v1/");
    if !has_own_form {
        for (status, response) in &mut *responses {
            if status.starts_with(['4', '5'])
                && let RefOr::T(response) = response
                && let Some(content) = response.content.shift_remove("application/json")
            {
                let content_type = PROBLEM_JSON.to_owned();
                response.content.insert(content_type, content);
            }
        }
        let mut parameters = operation.parameters.iter().flatten();
        let has_input = parameters.any(|parameter| {
            matches!(parameter, RefOr::T(parameter) if parameter.parameter_in != ParameterIn::Path)
        });
        let has_body = operation.request_body.is_some();
        if path.contains('{') {
            problems.extend(WITH_ID);
        }
        if has_body || has_input {
            problems.extend(WITH_INPUT);
        }
        if has_body {
            problems.extend(WITH_BODY);
        }
    }
    for (status, description) in problems {
        responses
            .entry(status.to_owned())
            .or_insert_with(|| problem_response(description, has_own_form));
    }
}

fn problem_response(description: &str, has_own_form: bool) -> RefOr<utoipa::openapi::Response> {
    let mut response = ResponseBuilder::new().description(description);
    if has_own_form {
        response = response.content("application/json", ContentBuilder::new().build());
    } else {
        let schema = RefOr::Ref(Ref::from_schema_name("Problem"));
        let content = ContentBuilder::new().schema(Some(schema)).build();
        response = response.content(PROBLEM_JSON, content);
    }
    RefOr::T(response.build())
}

/// Adds the path `prefix` to the JSON text of the OpenAPI document as the server URL of all routes.
/// An empty prefix changes nothing.
pub(crate) fn add_server_prefix(document: &str, prefix: &str) -> String {
    let servers = json!([{"url": prefix}]);
    match document.strip_prefix('{') {
        Some(fields) if !prefix.is_empty() => format!("{{\"servers\":{servers},{fields}"),
        _ => document.to_owned(),
    }
}
