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
fn the_page_loads_only_its_own_files_and_has_no_inline_script() {
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
fn frames_are_sandboxed_without_network_access() {
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
        let network = header(&response, "connection-allowlist");
        assert!(["()", "(response-origin)"].contains(&network), "{network}");
    }
}

#[test]
fn a_known_version_is_not_sent_again() {
    let first = get("app.css");
    let tag = first.headers()[header::ETAG].clone();
    for known in [
        tag.to_str().unwrap().to_owned(),
        format!("\"x\", W/{}", tag.to_str().unwrap()),
        "*".to_owned(),
    ] {
        let request = HeaderMap::from_iter([(header::IF_NONE_MATCH, known.parse().unwrap())]);
        let again = file("app.css", &request);
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

fn get_with_encoding(path: &str, accepted: &str) -> Response {
    let request = HeaderMap::from_iter([(header::ACCEPT_ENCODING, accepted.parse().unwrap())]);
    file(path, &request)
}

#[tokio::test]
async fn the_compressed_form_of_a_file_has_the_same_content() {
    for name in Files::iter() {
        let path = name.strip_suffix(".gz").unwrap_or(&name);
        let (plain, compressed) = (get(path), get_with_encoding(path, "br, gzip"));
        for form in [&plain, &compressed] {
            assert_eq!(header(form, "vary"), "accept-encoding", "{path}");
            assert_eq!(header(form, "content-type"), media_type(path));
            let known = HeaderMap::from_iter([(
                header::IF_NONE_MATCH,
                form.headers()[header::ETAG].clone(),
            )]);
            // Each form has its own tag.
            let is_known = file(path, &known).status() == StatusCode::NOT_MODIFIED;
            assert_eq!(
                is_known,
                header(form, "content-encoding").is_empty(),
                "{path}"
            );
        }
        assert_eq!(header(&plain, "content-encoding"), "", "{path}");
        let is_compressed = header(&compressed, "content-encoding") == "gzip";
        assert_eq!(is_compressed, name.ends_with(".gz"), "{path}");
        let (plain, compressed) = (body(plain).await, body(compressed).await);
        if is_compressed {
            let mut text = Vec::new();
            GzDecoder::new(&compressed[..])
                .read_to_end(&mut text)
                .unwrap();
            assert_eq!(text, plain, "{path}");
        } else {
            assert_eq!(compressed, plain, "{path}");
        }
    }
}

#[test]
fn gzip_is_sent_only_to_clients_that_accept_it() {
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
        let request = HeaderMap::from_iter([(header::ACCEPT_ENCODING, accepted.parse().unwrap())]);
        assert_eq!(accepts_gzip(&request), expected, "{accepted}");
    }
}

#[test]
fn only_files_of_the_page_are_served() {
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

#[test]
fn every_imported_script_exists() {
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

/// The routes can be nested below any path, so absolute paths would be wrong.
#[tokio::test]
async fn the_page_contains_no_absolute_paths() {
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
async fn a_path_without_a_final_slash_is_a_prefix_of_all_urls() {
    assert_eq!(last_segment("/"), None);
    assert_eq!(last_segment("/tools/"), None);
    assert_eq!(last_segment("/a/tools"), Some("tools"));
    let page = index_below("a\"&:b");
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
