//! The web page: embedded files, and the headers that isolate untrusted content.
//!
//! `/` is the page; its other files are below `/assets/`. All URLs in it are relative, so that the
//! routes can be nested below any path. Files are sent compressed to clients that accept gzip.
//! Third-party scripts are stored compressed (`vendor/x.js.gz`). The other form of a file is
//! created once. A debug build reads the files from the source folder for each request, so that
//! changes are visible without a build.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt::Write as _,
    io::Read as _,
    sync::{LazyLock, Mutex, PoisonError},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{OriginalUri, Path},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use flate2::{
    Compression,
    read::{GzDecoder, GzEncoder},
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
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     media-src data: blob:; font-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify";

/// The policy of a frame with a page of a model or a server: its scripts run in a separate origin
/// without access to this page or the network. WebRTC and link elements need [`reach`] in addition.
const FOREIGN_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; \
     style-src 'unsafe-inline'; img-src data: blob:; media-src data: blob:; font-src data:; form-action 'none'; \
     base-uri 'none'; frame-ancestors 'self'";

/// The policy of the frame that renders diagrams and charts: large libraries with input of a model.
const DRAWING_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; \
     img-src data: blob:; font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

/// The policy of all other files, if they are opened directly.
const FILE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

/// Returns the routes of the page. They need no token, because the page asks for it.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(index))
        .route("/assets/{*path}", get(asset))
}

/// Returns whether a path is a file of the page. These files are public, and sandboxed frames load
/// them with the origin `null`.
pub(crate) fn is_asset(path: &str) -> bool {
    path.starts_with("/assets/")
}

async fn index(OriginalUri(uri): OriginalUri, headers: HeaderMap) -> Response {
    match last_segment(uri.path()) {
        None => file("index.html", &headers),
        Some(segment) => index_without_slash(segment),
    }
}

/// Returns the last segment of a path that does not end with a slash. Relative addresses of a page
/// at such a path lead beside that segment, not below it.
fn last_segment(path: &str) -> Option<&str> {
    let (_, segment) = path.rsplit_once('/')?;
    (!segment.is_empty()).then_some(segment)
}

/// Returns the page for a path such as `/tools`, at which axum's `nest` has it: all its addresses
/// begin with that segment.
fn index_without_slash(segment: &str) -> Response {
    let Some((page, _)) = find("index.html") else {
        return (StatusCode::NOT_FOUND, "The page has no such file.\n").into_response();
    };
    let text = String::from_utf8_lossy(&page.data);
    // It is part of a path, which may contain quotes; without `./` a colon would end a scheme.
    let segment = segment.replace('&', "&amp;").replace('"', "%22");
    let text = text
        .replace("=\"assets/", &format!("=\"./{segment}/assets/"))
        .replace("=\"openapi.json", &format!("=\"./{segment}/openapi.json"));
    let mut headers = HeaderMap::new();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(media_type("index.html")),
    );
    for (name, value) in safety("index.html") {
        headers.insert(name, HeaderValue::from_static(value));
    }
    (headers, text).into_response()
}

async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    file(&path, &headers)
}

/// Returns the response with the file at this path below `web/`, or a 404.
fn file(path: &str, asked: &HeaderMap) -> Response {
    let Some((data, is_packed)) = find(path) else {
        return (StatusCode::NOT_FOUND, "The page has no such file.\n").into_response();
    };
    let hash = data.metadata.sha256_hash();
    let stored = match data.data {
        // The embedded file is not copied for a HEAD request.
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    };
    let wants_packed = takes_gzip(asked);
    let made = (wants_packed != is_packed)
        .then(|| made(path, hash, &stored, is_packed))
        .flatten();
    // A file that cannot be converted is sent as stored.
    let (body, is_packed) = match made {
        Some(made) => (made, wants_packed),
        None => (stored, is_packed),
    };
    let tag = tag(&hash, is_packed);
    let mut headers = HeaderMap::new();
    // Revalidated for each use, so that files of two versions are never mixed.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    for (name, value) in safety(path) {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Some(reach) = reach(path) {
        headers.insert(
            HeaderName::from_static("connection-allowlist"),
            HeaderValue::from_static(reach),
        );
    }
    if has(asked, &tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(media_type(path)),
    );
    if is_packed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    (headers, Body::from(body)).into_response()
}

/// Returns whether the client accepts gzip (RFC 9110 section 12.5.3). Without the header, it
/// receives uncompressed files.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let mut any = false;
    let accepted = asked.get_all(header::ACCEPT_ENCODING).iter();
    let accepted = accepted.filter_map(|value| value.to_str().ok());
    for one in accepted.flat_map(|value| value.split(',')) {
        let mut parts = one.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default();
        let is_wanted = parts.all(|part| {
            let weight = part.strip_prefix("q=").or(part.strip_prefix("Q="));
            weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0))
        });
        if coding.eq_ignore_ascii_case("gzip") {
            return is_wanted;
        }
        any |= coding == "*" && is_wanted;
    }
    any
}

/// Converted files by path, with the hash of the source.
type Made = HashMap<String, ([u8; 32], Option<Bytes>)>;

/// Returns the other form of a file: decompressed if it is stored compressed, otherwise compressed.
/// `None` if the result is not smaller or the file cannot be decompressed.
fn made(path: &str, hash: [u8; 32], stored: &Bytes, is_packed: bool) -> Option<Bytes> {
    // The number of entries is the number of files.
    static MADE: LazyLock<Mutex<Made>> = LazyLock::new(Mutex::default);
    let mut all = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, made)) = all.get(path)
        && *of == hash
    {
        return made.clone();
    }
    let mut made = Vec::new();
    let is_good = if is_packed {
        GzDecoder::new(&stored[..]).read_to_end(&mut made).is_ok()
    } else {
        let packing = GzEncoder::new(&stored[..], Compression::best()).read_to_end(&mut made);
        packing.is_ok() && made.len() < stored.len()
    };
    let made = is_good.then(|| Bytes::from(made));
    all.insert(path.to_owned(), (hash, made.clone()));
    made
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

/// Each form has its own entity tag, because its bytes differ.
fn tag(hash: &[u8], is_packed: bool) -> String {
    let mut tag = String::from("\"");
    for byte in hash.iter().take(16) {
        // Writing to a string cannot fail.
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push_str(if is_packed { "-gz\"" } else { "\"" });
    tag
}

/// Returns whether the browser has this version (RFC 9110 section 13.1.2, weak comparison).
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

/// Network access of a sandboxed frame (WICG Connection Allowlists), in browsers that support it.
/// It blocks what a content policy does not cover: WebRTC, preconnections and DNS prefetch, also in
/// nested frames. In other browsers the frames remove WebRTC and all `link` elements, and every
/// response disables DNS prefetch (`X-DNS-Prefetch-Control`).
fn reach(path: &str) -> Option<&'static str> {
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
