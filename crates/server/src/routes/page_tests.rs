use super::*;

fn get(path: &str) -> Response {
    file_response(path, &HeaderMap::new())
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
    ] {
        let request = HeaderMap::from_iter([(header::IF_NONE_MATCH, known.parse().unwrap())]);
        let again = file_response("app.css", &request);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
        assert_eq!(again.headers()[header::ETAG], tag);
    }
    let other = HeaderMap::from_iter([(header::IF_NONE_MATCH, "\"x\"".parse().unwrap())]);
    assert_eq!(file_response("app.css", &other).status(), StatusCode::OK);
}

async fn body(response: Response) -> Bytes {
    axum::body::to_bytes(response.into_body(), usize::MAX)
        .await
        .unwrap()
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

/// The routes can be nested below any path, so absolute paths would be wrong.
#[tokio::test]
async fn the_page_contains_no_absolute_paths() {
    for name in EmbeddedWebFiles::iter().filter(|name| !name.starts_with("vendor/")) {
        let file = EmbeddedWebFiles::get(&name).unwrap();
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
    let page = nested_index_page("a\"&:b");
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
