//! Extractors for requests, which return a [`Problem`] for invalid input.

use axum::{
    body::{Body, Bytes, HttpBody as _},
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::{HeaderMap, header, request::Parts},
};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use switchboard_domain::{JsonObject, SharedObject, check_depth, check_document_depth};

use crate::{App, Problem, ProblemKind};

/// An extractor of a JSON request body. It rejects invalid requests with a [`Problem`].
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        if !has_json_content_type(&parts.headers) {
            return Err(Problem::new(
                ProblemKind::NotJson,
                "send the body as JSON with the header Content-Type: application/json",
            ));
        }
        let options = app.options();
        let read = read_body(body, options.max_body);
        let Ok(bytes) = tokio::time::timeout(options.body_time, read).await else {
            let detail = format!(
                "the body was not received within {} s: send the request again",
                options.body_time.as_secs_f64()
            );
            return Err(Problem::new(ProblemKind::TooSlow, detail));
        };
        parse_json(&bytes?).map(Self)
    }
}

/// An extractor of a JSON request body. A request without a body gives the default value.
pub(crate) struct OptionalJsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<App> for OptionalJsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let headers = request.headers();
        let length = headers.get(header::CONTENT_LENGTH);
        let is_empty = !headers.contains_key(header::TRANSFER_ENCODING)
            && length.is_none_or(|length| length == "0");
        if is_empty {
            return Ok(Self(T::default()));
        }
        let JsonBody(value) = JsonBody::from_request(request, app).await?;
        Ok(Self(value))
    }
}

fn has_json_content_type(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let (family, subtype) = kind.split_once('/').unwrap_or_default();
    let subtype = subtype.to_ascii_lowercase();
    family.eq_ignore_ascii_case("application") && (subtype == "json" || subtype.ends_with("+json"))
}

async fn read_body(body: Body, max_bytes: usize) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail = format!(
            "the body is larger than {max_bytes} bytes: send less, or increase `serve.max_body`"
        );
        Problem::new(ProblemKind::BodyTooLarge, detail)
    };
    // The header Content-Length reveals a too large body before any of it is read.
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(too_large());
    }
    match Limited::new(body, max_bytes).collect().await {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Problem::malformed_request("the body is incomplete")),
    }
}

fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    check_document_depth(bytes).map_err(|too_deep| {
        Problem::malformed_request(format!(
            "the body is {too_deep}: reduce the nesting of arrays and objects"
        ))
    })?;
    serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        Category::Data => Problem::new(
            ProblemKind::Invalid,
            format!("the body does not match the schema: {error}"),
        ),
        _ if bytes.is_empty() => Problem::malformed_request("the body is empty: send JSON"),
        _ => Problem::malformed_request(format!("the body is not valid JSON: {error}")),
    })
}

/// An extractor of the query parameters of a URL. It rejects invalid ones with a [`Problem`].
pub(crate) struct QueryParameters<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(value)| Self(value))
            .map_err(|error| {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                let reason = source.unwrap_or_else(|| error.to_string());
                Problem::malformed_request(format!("the query of the URL is invalid: {reason}"))
            })
    }
}

/// An extractor of the ids in the path of a URL. It rejects invalid ones with a [`Problem`].
pub(crate) struct PathParameters<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        // axum's extractor `Path` fails only if an id in the URL is not valid UTF-8.
        path.map(|Path(value)| Self(value))
            .map_err(|_| Problem::not_found("the id in the URL is not valid UTF-8"))
    }
}

/// Returns `object`, or an error with status 422 if its values are nested too deeply. `field` is
/// the field name in the error.
pub(crate) fn check_object_depth(field: &str, object: JsonObject) -> Result<JsonObject, Problem> {
    let object = SharedObject::from(object);
    match check_depth(object.as_value()) {
        Ok(()) => Ok(object.into_object()),
        Err(too_deep) => Err(Problem::invalid_field(
            field,
            format!("`{field}` is {too_deep}"),
        )),
    }
}

/// Rejects text that contains the character U+0000, which PostgreSQL cannot store. `field` is the
/// field name in the error.
pub(crate) fn reject_nul_character(field: &str, text: &str) -> Result<(), Problem> {
    if text.contains('\0') {
        let detail = format!("`{field}` contains the character U+0000, which cannot be stored");
        return Err(Problem::invalid_field(field, detail));
    }
    Ok(())
}

#[cfg(test)]
#[path = "extractors_tests.rs"]
mod tests;
