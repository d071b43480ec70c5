//! The web page: embedded files, and the headers that isolate untrusted content.
//!
//! `/` is the page; its other files are below `/assets/`. All URLs in it are relative, so that the
//! routes can be nested below any path. Third-party scripts are stored compressed
//! (`vendor/x.js.gz`), which every browser accepts. A debug build reads the files from the source
//! folder for each request, so that changes are visible without a build.

use std::borrow::Cow;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{OriginalUri, Path},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use rust_embed::RustEmbed;

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;

#[derive(RustEmbed)]
#[folder = "web/"]
struct EmbeddedWebFiles;

/// Content security policy of the page. It permits only the page's own scripts, styles and server,
/// images in `data:` URLs, and markup from the sanitizer (Trusted Types). Other hosts are blocked.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: blob:; media-src data: blob:; font-src 'self'; connect-src 'self'; \
     frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types dompurify";

/// Content security policy of a frame with HTML of a model or MCP server. Its scripts run in a
/// separate origin without access to this page or the network. [`common_headers`] restricts WebRTC
/// and link elements.
const FOREIGN_POLICY: &str = "sandbox allow-scripts; default-src 'none'; \
     script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; \
     media-src data: blob:; font-src data:; form-action 'none'; base-uri 'none'; \
     frame-ancestors 'self'";

/// Content security policy of the frame in which libraries draw a model's diagrams and charts.
const DRAWING_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'self'; \
     style-src 'unsafe-inline'; img-src data: blob:; font-src data:; form-action 'none'; \
     base-uri 'none'; frame-ancestors 'self'";

/// Content security policy of all other files, in case they are opened directly.
const FILE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

/// Returns the routes of the web page. They need no token, because the page asks the user for it.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(serve_index_page))
        .route("/assets/{*path}", get(serve_asset))
}

async fn serve_index_page(OriginalUri(uri): OriginalUri, headers: HeaderMap) -> Response {
    match last_segment(uri.path()) {
        None => file_response("index.html", &headers),
        Some(segment) => nested_index_page(segment),
    }
}

/// Returns the last segment of a path that does not end with a slash. Browsers resolve relative
/// URLs at such a path without this segment.
fn last_segment(path: &str) -> Option<&str> {
    let (_, segment) = path.rsplit_once('/')?;
    (!segment.is_empty()).then_some(segment)
}

/// Returns the page for a nested path without a final slash, such as `/tools`. Its relative URLs
/// get the last segment of the path as a prefix.
fn nested_index_page(segment: &str) -> Response {
    let Some((page, _)) = find_file("index.html") else {
        return file_not_found();
    };
    let text = String::from_utf8_lossy(&page.data);
    // Escapes `&` and quotes. With `./`, a colon in the segment does not end a URL scheme.
    let segment = segment.replace('&', "&amp;").replace('"', "%22");
    let text = text
        .replace("=\"assets/", &format!("=\"./{segment}/assets/"))
        .replace("=\"openapi.json", &format!("=\"./{segment}/openapi.json"));
    let content_type = HeaderValue::from_static(media_type("index.html"));
    let content_type = [(header::CONTENT_TYPE, content_type)];
    (common_headers("index.html"), content_type, text).into_response()
}

async fn serve_asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    file_response(&path, &headers)
}

fn file_not_found() -> Response {
    (StatusCode::NOT_FOUND, "File not found.\n").into_response()
}

/// Returns the response with the file at this path below `web/`, or a 404.
fn file_response(path: &str, request: &HeaderMap) -> Response {
    let Some((file, is_compressed)) = find_file(path) else {
        return file_not_found();
    };
    let tag = entity_tag(&file.metadata.sha256_hash());
    let mut headers = common_headers(path);
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    if has_current_version(request, &tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let content_type = HeaderValue::from_static(media_type(path));
    headers.insert(header::CONTENT_TYPE, content_type);
    if is_compressed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let stored = match file.data {
        // Embedded files are sent without a copy.
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    };
    (headers, Body::from(stored)).into_response()
}

/// Returns the file, and whether it is stored compressed.
fn find_file(path: &str) -> Option<(rust_embed::EmbeddedFile, bool)> {
    // A debug build reads from the file system, so paths to other folders are refused.
    let mut parts = path.split('/');
    if path.contains('\\') || parts.any(|part| part.is_empty() || part.starts_with('.')) {
        return None;
    }
    EmbeddedWebFiles::get(path)
        .map(|file| (file, false))
        .or_else(|| EmbeddedWebFiles::get(&format!("{path}.gz")).map(|file| (file, true)))
}

/// Returns the entity tag of a file: the first 16 bytes of its hash as hexadecimal text in quotes.
fn entity_tag(hash: &[u8]) -> String {
    let start = hash.first_chunk().copied().map_or(0, u128::from_be_bytes);
    format!("\"{start:032x}\"")
}

/// Returns whether the browser has the file version `tag`. Proxies may weaken a tag (`W/"…"`).
fn has_current_version(request: &HeaderMap, tag: &str) -> bool {
    let mut known = request.get_all(header::IF_NONE_MATCH).iter();
    known.any(|value| value.to_str().is_ok_and(|known| known.contains(tag)))
}

/// Returns the headers for caching and isolation of a file.
fn common_headers(path: &str) -> HeaderMap {
    // `network` is the network access of a sandboxed frame (WICG Connection Allowlists), for
    // browsers that support it. It blocks what a content policy does not cover: WebRTC,
    // preconnections and DNS prefetch, also in nested frames. In other browsers the frames remove
    // WebRTC and all `link` elements, and every response disables DNS prefetch
    // (`X-DNS-Prefetch-Control`).
    let (policy, network) = match path {
        "index.html" => (PAGE_POLICY, None),
        "frames/foreign.html" => (FOREIGN_POLICY, Some("()")),
        "frames/drawing.html" => (DRAWING_POLICY, Some("(response-origin)")),
        _ => (FILE_POLICY, None),
    };
    let headers = [
        // Browsers revalidate each file, so that they never mix files of two versions.
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), midi=(), \
             display-capture=()",
        ),
    ];
    let network = network.map(|origins| (HeaderName::from_static("connection-allowlist"), origins));
    let headers = headers.into_iter().chain(network);
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    headers.collect()
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
