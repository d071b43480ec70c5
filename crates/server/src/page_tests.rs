use super::*;

fn get(path: &str) -> Response {
    file(path, &HeaderMap::new())
}

fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    response
        .headers()
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

#[test]
fn the_page_may_load_nothing_from_elsewhere_and_has_no_inline_script() {
    let page = get("index.html");
    assert_eq!(page.status(), StatusCode::OK);
    assert_eq!(header(&page, "content-type"), "text/html; charset=utf-8");
    let policy = header(&page, "content-security-policy");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(
        policy.contains("require-trusted-types-for 'script'"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(!policy.contains("http"), "{policy}");
    assert_eq!(header(&page, "x-content-type-options"), "nosniff");
}

#[test]
fn foreign_pages_have_an_origin_of_their_own_and_no_network() {
    for frame in ["frames/foreign.html", "frames/drawing.html"] {
        let response = get(frame);
        assert_eq!(response.status(), StatusCode::OK, "{frame}");
        let policy = header(&response, "content-security-policy");
        assert!(
            policy.starts_with("sandbox allow-scripts; default-src 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("allow-same-origin"), "{policy}");
        assert!(!policy.contains("connect-src"), "{policy}");
        let reach = header(&response, "connection-allowlist");
        assert!(["()", "(response-origin)"].contains(&reach), "{reach}");
    }
}

#[test]
fn what_a_browser_has_is_not_sent_again() {
    let first = get("app.css");
    let tag = first.headers()[header::ETAG].clone();
    for known in [
        tag.to_str().unwrap().to_owned(),
        format!("\"x\", W/{}", tag.to_str().unwrap()),
        "*".to_owned(),
    ] {
        let asked = HeaderMap::from_iter([(header::IF_NONE_MATCH, known.parse().unwrap())]);
        let again = file("app.css", &asked);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
        assert_eq!(again.headers()[header::ETAG], tag);
    }
    let other = HeaderMap::from_iter([(header::IF_NONE_MATCH, "\"x\"".parse().unwrap())]);
    assert_eq!(file("app.css", &other).status(), StatusCode::OK);
}

async fn body(response: Response) -> Bytes {
    axum::body::to_bytes(response.into_body(), usize::MAX)
        .await
        .unwrap()
}

fn as_asked(path: &str, accepted: &str) -> Response {
    let asked = HeaderMap::from_iter([(header::ACCEPT_ENCODING, accepted.parse().unwrap())]);
    file(path, &asked)
}

#[tokio::test]
async fn every_file_is_the_same_compressed_and_as_it_is() {
    let mut saved = 0;
    for name in Files::iter() {
        let path = name.strip_suffix(".gz").unwrap_or(&name);
        let (plain, packed) = (get(path), as_asked(path, "br, gzip"));
        for form in [&plain, &packed] {
            assert_eq!(header(form, "vary"), "accept-encoding", "{path}");
            assert_eq!(header(form, "content-type"), media_type(path));
            let known = HeaderMap::from_iter([(
                header::IF_NONE_MATCH,
                form.headers()[header::ETAG].clone(),
            )]);
            // What is known of the one form is not known of the other.
            let again = file(path, &known).status() == StatusCode::NOT_MODIFIED;
            assert_eq!(again, header(form, "content-encoding").is_empty(), "{path}");
        }
        assert_eq!(header(&plain, "content-encoding"), "", "{path}");
        let is_packed = header(&packed, "content-encoding") == "gzip";
        let (plain, packed) = (body(plain).await, body(packed).await);
        if is_packed {
            assert!(packed.len() < plain.len(), "{path}");
            saved += plain.len() - packed.len();
            let mut unpacked = Vec::new();
            GzDecoder::new(&packed[..])
                .read_to_end(&mut unpacked)
                .unwrap();
            assert_eq!(unpacked, plain, "{path}");
        } else {
            assert_eq!(packed, plain, "{path}");
        }
    }
    assert!(saved > 1_000_000, "{saved} bytes");
    // Third-party scripts, and our own.
    for path in ["vendor/preact.js", "js/main.js", "app.css", "index.html"] {
        let packed = as_asked(path, "gzip");
        assert_eq!(header(&packed, "content-encoding"), "gzip", "{path}");
        let (once, again) = (body(packed).await, body(as_asked(path, "gzip")).await);
        assert_eq!(
            once.as_ptr() == again.as_ptr(),
            !cfg!(debug_assertions) || path != "vendor/preact.js",
            "{path}"
        );
    }
}

#[test]
fn who_does_not_say_that_it_reads_gzip_is_not_sent_it() {
    for (accepted, expected) in [
        ("gzip", true),
        ("GZIP;q=0.5, br", true),
        ("br, *", true),
        ("*;q=0.1", true),
        ("", false),
        ("br", false),
        ("identity", false),
        ("gzip;q=0", false),
        ("gzip; q=0.000, *", false),
        ("*, gzip;q=0", false),
        ("*;q=0", false),
        ("gzip;q=x", false),
    ] {
        let asked = HeaderMap::from_iter([(header::ACCEPT_ENCODING, accepted.parse().unwrap())]);
        assert_eq!(takes_gzip(&asked), expected, "{accepted}");
    }
}

#[test]
fn there_is_nothing_beside_the_files_of_the_page() {
    for path in [
        "",
        "nothing.js",
        "../Cargo.toml",
        "js/../../Cargo.toml",
        "/etc/passwd",
        "js//main.js",
        "js",
        ".git",
        "..\\Cargo.toml",
    ] {
        assert_eq!(get(path).status(), StatusCode::NOT_FOUND, "{path}");
    }
}

/// Each script that the page names is there, so that no name is misspelt.
#[test]
fn every_import_leads_to_a_file() {
    let mut imports = 0;
    for name in Files::iter().filter(|name| name.starts_with("js/")) {
        let file = Files::get(&name).unwrap();
        let text = std::str::from_utf8(&file.data).unwrap();
        for line in text
            .lines()
            .filter(|line| line.starts_with("import") || line.starts_with("} from"))
        {
            let Some(path) = line.split('"').nth(1) else {
                continue;
            };
            let folder = name.rsplit_once('/').unwrap().0;
            let mut parts: Vec<&str> = folder.split('/').collect();
            for part in path.split('/') {
                match part {
                    "." => {}
                    ".." => drop(parts.pop()),
                    part => parts.push(part),
                }
            }
            assert!(find(&parts.join("/")).is_some(), "{name}: {path}");
            imports += 1;
        }
    }
    assert!(imports > 20, "{imports}");
}

/// The routes may be nested below any path: an address that begins with a slash leads past it.
#[tokio::test]
async fn no_address_in_the_page_begins_at_the_root() {
    for name in Files::iter().filter(|name| !name.starts_with("vendor/")) {
        let file = Files::get(&name).unwrap();
        let text = std::str::from_utf8(&file.data).unwrap();
        for begin in [
            "src=\"/",
            "href=\"/",
            "fetch(\"/",
            ".src = \"/",
            "url(/",
            "url(\"/",
        ] {
            assert!(!text.contains(begin), "{name}: {begin}");
        }
    }
}

#[tokio::test]
async fn a_page_without_a_slash_behind_it_names_its_segment() {
    assert_eq!(last_segment("/"), None);
    assert_eq!(last_segment("/tools/"), None);
    assert_eq!(last_segment("/a/tools"), Some("tools"));
    let page = index_without_slash("a\"&:b");
    let policy = header(&page, "content-security-policy").to_owned();
    assert_eq!(
        policy,
        header(&get("index.html"), "content-security-policy")
    );
    let text = String::from_utf8(body(page).await.to_vec()).unwrap();
    assert!(
        text.contains("src=\"./a%22&amp;:b/assets/js/main.js\""),
        "{text}"
    );
    assert!(!text.contains("=\"assets/"), "{text}");
}
