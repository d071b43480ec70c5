//! The web page: files that are in the binary, and the headers that keep what they show from doing harm.
//!
//! `/` is the page; everything else that it loads is below `/assets/`. Third-party scripts are stored compressed
//! (`vendor/x.js.gz`) and sent as they are. In a debug build the files are read from the source folder at each request, so that a
//! change is seen without building anew.

use std::{borrow::Cow, fmt::Write as _};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Path,
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

/// What the page itself may do: its own scripts and styles, its own server, and no text that becomes markup except through the
/// sanitizer (Trusted Types), whatever a model or a tool writes. Images are data of the page; nothing is loaded from elsewhere.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     media-src data: blob:; font-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify";

/// A frame that shows a page by a model or a server: its scripts run, in an origin of their own, and reach neither this page nor
/// the network, but for WebRTC, which no policy stops in Chromium.
const FOREIGN_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; \
     style-src 'unsafe-inline'; img-src data: blob:; media-src data: blob:; font-src data:; form-action 'none'; \
     base-uri 'none'; frame-ancestors 'self'";

/// The frame that makes images of diagrams and charts: large libraries that read what a model wrote.
const DRAWING_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; \
     img-src data: blob:; font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

/// Everything else, should somebody open it by itself.
const FILE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

/// The routes of the page. They are for everybody who reaches the server: the page asks for the token.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(index))
        .route("/assets/{*path}", get(asset))
}

/// Whether a path is one of the page's files. They hold nothing that is secret, and the page's own sandboxed frames load theirs
/// with the origin `null`, as anybody's would be.
pub(crate) fn is_asset(path: &str) -> bool {
    path.starts_with("/assets/")
}

async fn index(headers: HeaderMap) -> Response {
    file("index.html", &headers)
}

async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    file(&path, &headers)
}

/// The file of this path below `web/`, or a note that there is none.
fn file(path: &str, asked: &HeaderMap) -> Response {
    let Some((data, compressed)) = find(path) else {
        return (StatusCode::NOT_FOUND, "The page has no such file.\n").into_response();
    };
    let tag = tag(&data.metadata.sha256_hash());
    let mut headers = HeaderMap::new();
    // Asked for again each time, and answered with nothing if it is the same: a new version of the program is never mixed with an
    // old one.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    for (name, value) in safety(path) {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if has(asked, &tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(media_type(path)),
    );
    if compressed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let body = match data.data {
        // It is in the program: nothing is copied for who only asks.
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    };
    (headers, Body::from(body)).into_response()
}

/// The file, and whether it is compressed.
fn find(path: &str) -> Option<(rust_embed::EmbeddedFile, bool)> {
    // A debug build asks the file system, which knows more paths than the list of the files.
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

fn tag(hash: &[u8]) -> String {
    let mut tag = String::from("\"");
    for byte in hash.iter().take(16) {
        // Writing to a string cannot fail.
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

/// Whether the browser has this version (RFC 9110 section 13.1.2: compared weakly).
fn has(asked: &HeaderMap, tag: &str) -> bool {
    asked
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

fn safety(path: &str) -> [(HeaderName, &'static str); 5] {
    let policy = match path {
        "index.html" => PAGE_POLICY,
        "frames/foreign.html" => FOREIGN_POLICY,
        "frames/drawing.html" => DRAWING_POLICY,
        _ => FILE_POLICY,
    };
    [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), midi=(), display-capture=()",
        ),
    ]
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
