//! The web page: files that are in the binary, and the headers that keep what they show from doing harm.
//!
//! `/` is the page; everything else that it loads is below `/assets/`. All addresses in it are relative, so that the routes can be
//! nested below any path. Files go out compressed to who reads gzip, which is every
//! browser, and as they are to others. Third-party scripts are stored compressed (`vendor/x.js.gz`); what has to be made of a
//! file for either is made once. In a debug build the files are read from the source folder at each request, so that a change is
//! seen without building anew.

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

/// What the page itself may do: its own scripts and styles, its own server, and no text that becomes markup except through the
/// sanitizer (Trusted Types), whatever a model or a tool writes. Images are data of the page; nothing is loaded from elsewhere.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     media-src data: blob:; font-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify";

/// A frame that shows a page by a model or a server: its scripts run, in an origin of their own, and reach neither this page nor
/// the network. WebRTC and links that look names up in advance are no matter of this policy: see [`reach`].
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

async fn index(OriginalUri(uri): OriginalUri, headers: HeaderMap) -> Response {
    match last_segment(uri.path()) {
        None => file("index.html", &headers),
        Some(segment) => index_without_slash(segment),
    }
}

/// Returns the last segment of a path that does not end with a slash. Relative addresses of a page at
/// such a path lead beside that segment, not below it.
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
    // It is a part of a path, which may hold quotes; and without `./` a colon would end a scheme.
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

/// The file of this path below `web/`, or a note that there is none.
fn file(path: &str, asked: &HeaderMap) -> Response {
    let Some((data, is_packed)) = find(path) else {
        return (StatusCode::NOT_FOUND, "The page has no such file.\n").into_response();
    };
    let hash = data.metadata.sha256_hash();
    let stored = match data.data {
        // It is in the program: nothing is copied for who only asks.
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    };
    let wants_packed = takes_gzip(asked);
    let made = (wants_packed != is_packed)
        .then(|| made(path, hash, &stored, is_packed))
        .flatten();
    // What cannot be made better goes out as it is stored.
    let (body, is_packed) = match made {
        Some(made) => (made, wants_packed),
        None => (stored, is_packed),
    };
    let tag = tag(&hash, is_packed);
    let mut headers = HeaderMap::new();
    // Asked for again each time, and answered with nothing if it is the same: a new version of the program is never mixed with an
    // old one.
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

/// Whether the client reads gzip (RFC 9110 section 12.5.3). One that says nothing of it gets what everybody can read.
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

/// What was made of files: by path, with the hash of what it was made of.
type Made = HashMap<String, ([u8; 32], Option<Bytes>)>;

/// The other form of a file: unpacked if it is stored packed, else packed. `None` if that is no better: it is not smaller, or
/// cannot be unpacked.
fn made(path: &str, hash: [u8; 32], stored: &Bytes, is_packed: bool) -> Option<Bytes> {
    // There are as many as there are files, and each is made once, or anew after it was changed.
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

/// The file, and whether it is stored compressed.
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

/// The form has a tag of its own: they are not the same bytes.
fn tag(hash: &[u8], is_packed: bool) -> String {
    let mut tag = String::from("\"");
    for byte in hash.iter().take(16) {
        // Writing to a string cannot fail.
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push_str(if is_packed { "-gz\"" } else { "\"" });
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

/// What a sandboxed frame may connect to (WICG Connection Allowlists), in browsers that know it: it stops what a content policy does
/// not name: WebRTC, and connections and lookups of names in advance, also in frames inside of it. For the others, the frames take
/// the names of WebRTC and all elements `link` away, and every response turns lookups in advance off (`X-DNS-Prefetch-Control`).
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
