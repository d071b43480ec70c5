//! The checked address and headers of HTTP requests.

use http::{HeaderMap, HeaderValue, Method, header};
use reqwest::Url;
use switchboard_domain::{ModelError, ModelErrorKind, redact::Redactor};

use super::{HttpRequest, HttpTransport, connection_errors::root_cause, redact};

/// Checked address and headers of an HTTP request. Requests that differ only in their body share
/// one target.
pub(crate) struct RequestTarget {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// Expected media types of a successful answer. Empty if every media type is accepted.
    pub(super) expected: &'static [&'static str],
    /// Redactor of the secrets in the address and the headers.
    pub(super) redactor: Redactor,
}

impl RequestTarget {
    /// Checks the address and headers of `request`.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] if one of them cannot be sent.
    pub(crate) fn new(
        transport: &HttpTransport,
        request: &HttpRequest,
    ) -> Result<Self, ModelError> {
        let wrong = |message: String| {
            ModelError::new(transport.provider(), ModelErrorKind::Configuration, message)
        };
        request.headers.check_headers(transport.provider())?;
        let address = || redact::strip_address_secrets(&request.url);
        let url = Url::parse(&request.url)
            .map_err(|error| wrong(format!("`{}` is not a valid address: {error}", address())))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!(
                "`{}` is not a valid address: it must begin with http:// or https://",
                address()
            )));
        }
        let mut headers = request.headers.header_map().clone();
        if !request.expected.is_empty()
            && !headers.contains_key(header::ACCEPT)
            && let Ok(accept) = HeaderValue::try_from(request.expected.join(", "))
        {
            headers.insert(header::ACCEPT, accept);
        }
        // When reqwest builds a request, it moves user and password from the address into a header.
        // All attempts use the resulting address and headers, but the redactor needs the password.
        let built = transport.client.request(Method::GET, url.clone());
        let built = built.headers(headers);
        let mut built = built.build().map_err(|error| {
            wrong(format!("`{}`: {}", address(), root_cause(&error)))
                .with_source(error.without_url())
        })?;
        let headers = std::mem::take(built.headers_mut());
        Ok(Self {
            redactor: redact::build_redactor(&url, &headers),
            url: built.url().clone(),
            headers,
            expected: request.expected,
        })
    }
}
