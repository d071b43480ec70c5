//! The common part of all requests to one address.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{Arc, PoisonError, RwLock},
};

use http::{HeaderMap, HeaderValue, Method, header};
use reqwest::Url;
use switchboard_domain::{ModelError, ModelErrorKind, redact::Redactor};

use super::{HttpRequest, HttpTransport, failure, redact};

/// Maximum number of endpoints of a client. A client normally has a few per model.
const MAX_ENDPOINTS: usize = 256;

/// An address with its headers, checked once for any number of requests. Cloning it is cheap.
#[derive(Clone)]
pub struct Endpoint {
    pub(super) known: Arc<Known>,
}

pub(super) struct Known {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) expected: &'static [&'static str],
    pub(super) redactor: Redactor,
    /// The address without secrets.
    pub(super) address: String,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &self.known.address)
            // A sensitive `HeaderValue` prints as `Sensitive`.
            .field("headers", &self.known.headers)
            .field("expected", &self.known.expected)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Checks the address and the headers of `request`. Its body is ignored.
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
        // A default of the client would reallocate the headers of each request.
        if !headers.contains_key(header::USER_AGENT) {
            headers.insert(header::USER_AGENT, transport.shared.agent.clone());
        }
        // reqwest's builder converts user and password of the address into a header.
        let built = transport.client.request(Method::GET, url).headers(headers);
        let mut built = built.build().map_err(|error| {
            wrong(format!("`{address}`: {}", failure::root_cause(&error)))
                .with_source(error.without_url())
        })?;
        let headers = std::mem::take(built.headers_mut());
        let known = Known {
            redactor: redact::redactor_of(built.url(), &headers),
            url: built.url().clone(),
            headers,
            expected: request.expected,
            address,
        };
        Ok(Self {
            known: Arc::new(known),
        })
    }
}

/// The endpoints of a client by a key, such as the path and the form of the answer.
///
/// Each is created on first use. At 256 endpoints the collection is cleared.
///
/// ```
/// use switchboard_providers_common::{Endpoints, HttpRequest, HttpTransport, TransportConfig};
///
/// # fn main() -> Result<(), switchboard_domain::ModelError> {
/// let transport = HttpTransport::new("example", &TransportConfig::default())?;
/// let endpoints = Endpoints::default();
/// let make = || HttpRequest::new("https://models.example/v1/messages").of_json();
/// let endpoint = endpoints.get(&transport, &"messages", make)?;
/// // The endpoint is stored.
/// endpoints.get(&transport, &"messages", || unreachable!())?;
/// # let _ = endpoint;
/// # Ok(())
/// # }
/// ```
pub struct Endpoints<K> {
    known: RwLock<HashMap<K, Endpoint>>,
}

impl<K: Eq + Hash + Clone> Endpoints<K> {
    /// Returns the endpoint of a key, created from the request of `make` on first use.
    ///
    /// Fails as [`HttpTransport::endpoint`] does.
    pub fn get(
        &self,
        transport: &HttpTransport,
        key: &K,
        make: impl FnOnce() -> HttpRequest,
    ) -> Result<Endpoint, ModelError> {
        // The map is valid after every step under the lock, also after a panic.
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(endpoint) = known.get(key) {
            return Ok(endpoint.clone());
        }
        drop(known);
        let endpoint = transport.endpoint(&make())?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_ENDPOINTS {
            known.clear();
        }
        known.insert(key.clone(), endpoint.clone());
        Ok(endpoint)
    }
}

impl<K> Default for Endpoints<K> {
    fn default() -> Self {
        Self {
            known: RwLock::default(),
        }
    }
}

impl<K> fmt::Debug for Endpoints<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Endpoints")
            .field("known", &known.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransportConfig;

    #[test]
    fn the_number_of_endpoints_is_limited_and_failures_are_not_stored() {
        let transport = HttpTransport::new("acme", &TransportConfig::default()).unwrap();
        let endpoints = Endpoints::default();
        for n in 0..=MAX_ENDPOINTS {
            let make = || HttpRequest::new(format!("http://a.example/{n}"));
            let endpoint = endpoints.get(&transport, &n, make).unwrap();
            assert_eq!(endpoint.known.address, format!("http://a.example/{n}"));
            assert!(endpoints.known.read().unwrap().len() <= MAX_ENDPOINTS);
        }
        let wrong = endpoints.get(&transport, &1000, || HttpRequest::new("nowhere"));
        assert_eq!(wrong.unwrap_err().kind, ModelErrorKind::Configuration);
        let right = || HttpRequest::new("http://b.example");
        assert!(endpoints.get(&transport, &1000, right).is_ok());
    }

    #[test]
    fn an_endpoint_prints_no_secret() {
        let transport = HttpTransport::new("acme", &TransportConfig::default()).unwrap();
        let key = secrecy::SecretString::from("hidden-1");
        let request = HttpRequest::new("https://me:hidden-2@a.example/v1?key=hidden-3")
            .with_secret("x-api-key", &key);
        let endpoint = transport.endpoint(&request).unwrap();
        let debug = format!("{endpoint:?}");
        assert!(debug.contains("https://a.example/v1"), "{debug}");
        assert!(!debug.contains("hidden"), "{debug}");
    }
}
