//! Redaction of a request's secrets in errors and logs.

use std::{error::Error, iter};

use http::HeaderMap;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use switchboard_domain::{ModelError, ModelErrorKind, redact::Redactor};

/// Creates a redactor for the secrets of a request: its secret headers, and the password and the
/// secret query parameters of its URL. In a URL without a password, the user name is secret.
pub(super) fn build_redactor(url: &Url, headers: &HeaderMap) -> Redactor {
    // In a header value such as `Bearer …` or `Basic …`, only the part after the space is secret.
    let secrets = headers
        .values()
        .filter(|value| value.is_sensitive())
        .filter_map(|value| value.to_str().ok()?.rsplit(' ').next());
    let parameters = url
        .query_pairs()
        .filter(|(name, _)| Redactor::is_secret_parameter(name))
        .map(|(_, value)| value.into_owned());
    let login = url.password().unwrap_or(url.username());
    Redactor::default()
        .with_secrets(secrets)
        .with_secrets(parameters)
        .with_secrets([login])
        .with_secrets([percent_decode_str(login).decode_utf8_lossy()])
}

/// Redacts a request's secrets in the texts of an error: message, request id, name of a field or
/// feature, and causes.
pub(super) fn redact_error(redactor: &Redactor, mut error: ModelError) -> ModelError {
    let clean = |text: &str| redactor.redact_known(text).into_owned();
    if let ModelErrorKind::InvalidRequest { field: Some(text) }
    | ModelErrorKind::Unsupported { feature: text } = &mut error.kind
    {
        *text = clean(text);
    }
    let message = clean(error.message());
    let request_id = error.request_id().map(clean);
    let error = error.with_message(message).with_request_id(request_id);
    let causes: Vec<String> = error_chain(&error)
        .skip(1)
        .map(ToString::to_string)
        .collect();
    let all = format!("{error:?} {causes:?}");
    if causes.is_empty() || clean(&all) == all {
        return error;
    }
    // The causes of an error cannot be changed, so their redacted text replaces them.
    error.with_source(clean(&causes.join(": ")))
}

fn error_chain(error: &ModelError) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    iter::successors(Some(first), |&cause| cause.source())
}

/// Returns an address without user, password, query and fragment.
pub(super) fn strip_address_secrets(address: &str) -> String {
    if let Ok(mut url) = Url::parse(address) {
        let is_clean = url
            .set_username("")
            .and_then(|()| url.set_password(None))
            .is_ok()
            || !url.has_authority();
        url.set_query(None);
        url.set_fragment(None);
        if is_clean && url.has_host() {
            return url.into();
        }
    }
    // The part before the last `@` of an invalid address is dropped: it may contain a password.
    let start = address.split(['?', '#']).next().unwrap_or_default();
    let end = start.rsplit('@').next().unwrap_or_default();
    end.to_owned()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use switchboard_domain::redact::REDACTED;

    use super::*;

    fn sensitive(value: &str) -> HeaderValue {
        let mut value = HeaderValue::try_from(value).unwrap();
        value.set_sensitive(true);
        value
    }

    #[test]
    fn an_address_is_displayed_without_secrets() {
        let table = [
            ("https://a.example/v1?key=hidden", "https://a.example/v1"),
            (
                "https://hidden:hidden@a.example:8/v1#hidden",
                "https://a.example:8/v1",
            ),
            ("http://hidden@a.example", "http://a.example/"),
            ("https://a.example/@me/v1", "https://a.example/@me/v1"),
            ("user:hidden@a.example/v1?hidden", "a.example/v1"),
            ("hidden@a.example:80:80", "a.example:80:80"),
            ("https://hidden:hidden@", ""),
            ("localhost:8000/v1?hidden", "localhost:8000/v1"),
            ("", ""),
        ];
        for (address, expected) in table {
            assert_eq!(strip_address_secrets(address), expected, "{address}");
        }
    }

    #[test]
    fn the_redactor_knows_every_secret_of_a_request() {
        let url = "https://me:pass-word-1@a.example/?api-version=2026-01-01&Key=query%2Dkey-1";
        let mut headers = HeaderMap::new();
        headers.insert("authorization", sensitive("Bearer token-123"));
        headers.insert("x-api-key", sensitive("token-123-longer"));
        headers.insert("x-short", sensitive("ollama"));
        headers.insert("x-open", HeaderValue::from_static("not-a-secret"));
        let redactor = build_redactor(&Url::parse(url).unwrap(), &headers);
        assert_eq!(
            redactor.redact_known(
                "token-123 token-123-longer Bearer token-123 query-key-1 pass-word-1"
            ),
            "[redacted] [redacted] Bearer [redacted] [redacted] [redacted]"
        );
        let harmless = "not-a-secret, 2026-01-01, pull it with ollama";
        assert_eq!(redactor.redact_known(harmless), harmless);
        let url = Url::parse("https://user%2Dkey-1@a.example").unwrap();
        let redactor = build_redactor(&url, &HeaderMap::new());
        assert_eq!(redactor.redact_known("no user-key-1"), "no [redacted]");
    }

    fn redactor() -> Redactor {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", sensitive("Bearer token-123"));
        build_redactor(&Url::parse("https://a.example").unwrap(), &headers)
    }

    #[test]
    fn an_error_has_no_secret_in_its_message_and_causes() {
        let field = |text: &str| ModelErrorKind::InvalidRequest {
            field: Some(text.to_owned()),
        };
        let table = [
            ModelError::new("acme", ModelErrorKind::Authentication, "no token-123"),
            ModelError::new("acme", field("token-123"), "no"),
            ModelError::new("acme", ModelErrorKind::Protocol, "no")
                .with_source("invalid type: string \"token-123\""),
            ModelError::new("acme", ModelErrorKind::Protocol, "no").with_source(
                ModelError::new("acme", ModelErrorKind::Protocol, "in").with_source("token-123"),
            ),
        ];
        for error in table {
            let error = error
                .with_status(200)
                .with_request_id(Some("req-1".to_owned()));
            let (shown, causes_before) = (error.to_string(), error_chain(&error).count());
            let clean = redact_error(&redactor(), error);
            let all: Vec<String> = error_chain(&clean).map(ToString::to_string).collect();
            assert!(
                !format!("{clean:?} {all:?}").contains("token-123"),
                "{clean:?}"
            );
            assert!(format!("{clean:?} {all:?}").contains(REDACTED), "{clean:?}");
            assert_eq!(clean.to_string(), shown.replace("token-123", REDACTED));
            assert_eq!(causes_before > 1, all.len() > 1);
        }
    }

    #[test]
    fn an_error_without_a_secret_keeps_its_causes() {
        let fault = serde_json::from_str::<u8>("x").unwrap_err();
        let error = ModelError::new("acme", ModelErrorKind::Protocol, "no").with_source(fault);
        let error = redact_error(&redactor(), error);
        let cause = error.source().unwrap();
        assert!(cause.is::<serde_json::Error>(), "{cause:?}");
    }
}
