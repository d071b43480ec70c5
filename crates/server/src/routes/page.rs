//! The web page: embedded files, and the headers that isolate untrusted content.
//!
//! `/` is the page; its other files are below `/assets/`. All URLs in it are relative, so that the
//! routes can be nested below any path. Third-party scripts are stored compressed
//! (`vendor/x.js.gz`), which every browser accepts. A debug build reads the files from the source
//! folder for each request, so that changes are visible without a build.

use std::{borrow::Cow, fmt::Write as _};

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
struct Files;

/// The policy of the page: its own scripts and styles, its own server, and markup only through the
/// sanitizer (Trusted Types). Images are data of the page; nothing is loaded from other hosts.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: blob:; media-src data: blob:; font-src 'self'; connect-src 'self'; \
     frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types dompurify";

/// The policy of a frame with a page of a model or a server: its scripts run in a separate origin
/// without access to this page or the network. [`network_access`] restricts WebRTC and link
/// elements.
const FOREIGN_POLICY: &str = "sandbox allow-scripts; default-src 'none'; \
     script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; \
     media-src data: blob:; font-src data:; form-action 'none'; base-uri 'none'; \
     frame-ancestors 'self'";

/// The policy of the frame that renders diagrams and charts: large libraries with input of a model.
const DRAWING_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'self'; \
     style-src 'unsafe-inline'; img-src data: blob:; font-src data:; form-action 'none'; \
     base-uri 'none'; frame-ancestors 'self'";

/// The policy of all other files, if they are opened directly.
const FILE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

/// Returns the routes of the page. They need no token, because the page asks for it.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(index))
        .route("/assets/{*path}", get(asset))
}

async fn index(OriginalUri(uri): OriginalUri, headers: HeaderMap) -> Response {
    match last_segment(uri.path()) {
        None => file("index.html", &headers),
        Some(segment) => index_below(segment),
    }
}

/// Returns the last segment of a path that does not end with a slash. Browsers resolve relative
/// URLs at such a path without this segment.
fn last_segment(path: &str) -> Option<&str> {
    let (_, segment) = path.rsplit_once('/')?;
    (!segment.is_empty()).then_some(segment)
}

/// Returns the page for a path such as `/tools`, for which axum's `nest` returns it too. All
/// relative URLs get the segment as a prefix.
fn index_below(segment: &str) -> Response {
    let Some((page, _)) = find("index.html") else {
        return not_found();
    };
    let text = String::from_utf8_lossy(&page.data);
    // It is part of a path, which may contain quotes; without `./` a colon would end a scheme.
    let segment = segment.replace('&', "&amp;").replace('"', "%22");
    let text = text
        .replace("=\"assets/", &format!("=\"./{segment}/assets/"))
        .replace("=\"openapi.json", &format!("=\"./{segment}/openapi.json"));
    let content_type = HeaderValue::from_static(media_type("index.html"));
    let content_type = [(header::CONTENT_TYPE, content_type)];
    (common_headers("index.html"), content_type, text).into_response()
}

async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    file(&path, &headers)
}

fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "The page has no such file.\n").into_response()
}

/// Returns the response with the file at this path below `web/`, or a 404.
fn file(path: &str, request: &HeaderMap) -> Response {
    let Some((file, is_compressed)) = find(path) else {
        return not_found();
    };
    let tag = entity_tag(&file.metadata.sha256_hash());
    let mut headers = common_headers(path);
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    if has_version(request, &tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(media_type(path)),
    );
    if is_compressed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let stored = match file.data {
        // The embedded file is not copied for a HEAD request.
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    };
    (headers, Body::from(stored)).into_response()
}

/// Returns the file, and whether it is stored compressed.
fn find(path: &str) -> Option<(rust_embed::EmbeddedFile, bool)> {
    // A debug build uses the file system, which has more paths than the embedded list.
    if path
        .split('/')
        .any(|part| part.is_empty() || part.starts_with('.'))
        || path.contains('\\')
    {
        return None;
    }
    Files::get(path)
        .map(|file| (file, false))
        .or_else(|| Files::get(&format!("{path}.gz")).map(|file| (file, true)))
}

fn entity_tag(hash: &[u8]) -> String {
    let mut tag = String::from("\"");
    for byte in hash.iter().take(16) {
        // Writing to a string cannot fail.
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

/// Returns whether the browser has this version. Proxies may weaken a tag (`W/"…"`).
fn has_version(request: &HeaderMap, tag: &str) -> bool {
    let mut known = request.get_all(header::IF_NONE_MATCH).iter();
    known.any(|value| value.to_str().is_ok_and(|known| known.contains(tag)))
}

/// Returns the headers for caching and isolation of a file.
fn common_headers(path: &str) -> HeaderMap {
    let policy = match path {
        "index.html" => PAGE_POLICY,
        "frames/foreign.html" => FOREIGN_POLICY,
        "frames/drawing.html" => DRAWING_POLICY,
        _ => FILE_POLICY,
    };
    let headers = [
        // Revalidated for each use, so that files of two versions are never mixed.
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
    let network = network_access(path)
        .map(|origins| (HeaderName::from_static("connection-allowlist"), origins));
    let headers = headers.into_iter().chain(network);
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    headers.collect()
}

/// Returns the network access of a sandboxed frame (WICG Connection Allowlists), for browsers that
/// support it. It blocks what a content policy does not cover: WebRTC, preconnections and DNS
/// prefetch, also in nested frames. In other browsers the frames remove WebRTC and all `link`
/// elements, and every response disables DNS prefetch (`X-DNS-Prefetch-Control`).
fn network_access(path: &str) -> Option<&'static str> {
    match path {
        "frames/foreign.html" => Some("()"),
        "frames/drawing.html" => Some("(response-origin)"),
        _ => None,
    }
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
