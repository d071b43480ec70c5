//! The checked address and headers of a request.

use http::{HeaderMap, HeaderValue, Method, header};
use reqwest::Url;
use switchboard_domain::{ModelError, ModelErrorKind, redact::Redactor};

use super::{HttpRequest, HttpTransport, failure, redact};

/// An address with its headers, and what errors about it need.
pub(super) struct Target {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) expected: &'static [&'static str],
    pub(super) redactor: Redactor,
    /// The address without secrets.
    pub(super) address: String,
}

impl Target {
    /// Checks the address and the headers of `request`.
    pub(super) fn of(transport: &HttpTransport, request: &HttpRequest) -> Result<Self, ModelError> {
        let wrong = |message: String| {
            ModelError::new(transport.provider(), ModelErrorKind::Configuration, message)
        };
        request.headers.check(transport.provider())?;
        let address = redact::display_address(&request.url);
        let url = Url::parse(&request.url)
            .map_err(|error| wrong(format!("`{address}` is not an address: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!(
                "`{address}` is not an address: it must begin with http:// or https://"
            )));
        }
        let mut headers = request.headers.map().clone();
        if !request.expected.is_empty()
            && !headers.contains_key(header::ACCEPT)
            && let Ok(accept) = HeaderValue::try_from(request.expected.join(", "))
        {
            headers.insert(header::ACCEPT, accept);
        }
        // reqwest's builder converts user and password of the address into a header.
        let built = transport.client.request(Method::GET, url).headers(headers);
        let mut built = built.build().map_err(|error| {
            wrong(format!("`{address}`: {}", failure::root_cause(&error)))
                .with_source(error.without_url())
        })?;
        let headers = std::mem::take(built.headers_mut());
        Ok(Self {
            redactor: redact::redactor_of(built.url(), &headers),
            url: built.url().clone(),
            headers,
            expected: request.expected,
            address,
        })
    }
}
