//! Resources and prompts of servers.

use serde_json::{Value, json};

use crate::{
    library::{over_http, over_stdio},
    support::{Place, program},
};

/// Returns a working folder with the library and a server that has only tools.
fn place(library: &Value) -> Place {
    let config = json!({"mcp_servers": {
        "library": library,
        "crm": {"command": program(), "args": ["mcp-server", "customer-service"]},
    }});
    Place::new().with_file("switchboard.json", &config.to_string())
}

async fn places() -> [Place; 2] {
    [place(&over_stdio("Lends.")), place(&over_http().await)]
}

#[tokio::test]
async fn resources_are_listed_as_text_and_json() {
    for place in places().await {
        // A server without resources is not an error in the list of all servers.
        for args in [
            &["resources", "list"][..],
            &["resources", "list", "library"],
        ] {
            let done = place.run(args).await;
            assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done}");
            insta::assert_snapshot!("resources", done.stdout);
        }
        let listed = place.run(["resources", "list", "-o", "json"]).await.json();
        let expected = json!([
            {"server": "library", "uri": "f:///notes", "name": "notes", "title": "Notes",
             "description": "What was noted\u{1b}[31m", "media_type": "text/plain"},
            {"server": "library", "uri": "f:///logo", "name": "logo", "size": 6},
        ]);
        assert_eq!(listed, expected);

        let done = place.run(["resources", "templates"]).await;
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done}");
        assert_eq!(
            done.stdout,
            "library  db://{table}/{id}  -  rows: One row\n"
        );
        let args = ["resources", "templates", "library", "-o", "json"];
        let listed = place.run(args).await.json();
        assert_eq!(listed[0]["uri_template"], "db://{table}/{id}");
    }
}

#[tokio::test]
async fn a_resource_is_read_as_text_bytes_and_json() {
    for place in places().await {
        for (uri, expected) in [
            ("f:///notes", "first\nsecond\n"),
            // Bytes are written unchanged to a pipe.
            ("f:///logo", "GIF89a"),
            ("db://users/7", "Ada\n"),
        ] {
            let done = place.run(["resources", "read", "library", uri]).await;
            assert_eq!(done.code, 0, "{done}");
            assert_eq!(done.stdout, expected);
        }
        let args = ["resources", "read", "library", "f:///logo", "-o", "json"];
        assert_eq!(
            place.run(args).await.json(),
            json!([{"uri": "f:///logo", "media_type": "image/gif", "blob": "R0lGODlh"}])
        );
    }
}

#[tokio::test]
async fn prompts_are_listed_and_rendered() {
    for place in places().await {
        let done = place.run(["prompts", "list"]).await;
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done}");
        assert_eq!(
            done.stdout,
            "library  greet(name, tone?)  Greets somebody\nlibrary  farewell()\n"
        );
        let listed = place
            .run(["prompts", "list", "library", "-o", "json"])
            .await;
        let expected = json!({
            "server": "library", "name": "greet", "description": "Greets somebody",
            "arguments": [
                {"name": "name", "description": "Who is greeted", "required": true},
                {"name": "tone", "required": false},
            ],
        });
        assert_eq!(listed.json()[0], expected);

        let get = ["prompts", "get", "library", "greet", "name=Ada=Bob"];
        assert_eq!(place.run(get).await.stdout, "Greet Ada=Bob.\n");
        let warm = place.run(get.into_iter().chain(["tone=warm"])).await;
        assert_eq!(
            warm.stdout,
            "[user]\nGreet Ada=Bob.\n[assistant]\nMy dear,\n"
        );
        let data = place.run(get.into_iter().chain(["-o", "json"])).await;
        let expected = json!({
            "description": "A greeting",
            "messages": [{"role": "user", "content": {"type": "text", "text": "Greet Ada=Bob."}}],
        });
        assert_eq!(data.json(), expected);
    }
}

#[tokio::test]
async fn errors_name_the_item_and_a_remedy() {
    let mut all = Vec::new();
    for place in places().await {
        let mut text = Vec::new();
        for args in [
            &["resources", "list", "libary"][..],
            &["resources", "list", "crm"],
            &["resources", "read", "library", "f:///note"],
            &["resources", "read", "library", "db://user/7"],
            &["resources", "read", "library", "nothing:at-all"],
            &["prompts", "list", "crm"],
            &["prompts", "get", "library", "gret"],
            &["prompts", "get", "library", "greet"],
            &["prompts", "get", "library", "greet", "nam=Ada"],
            &["prompts", "get", "library", "greet", "Ada"],
            &[
                "prompts",
                "get",
                "library",
                "greet",
                "name=Ada",
                "tone=rude",
            ],
        ] {
            let done = place.run(args).await;
            assert_eq!(done.stdout, "", "{done}");
            text.push(format!(
                "# {}\nexit code {}\n{}",
                args.join(" "),
                done.code,
                done.stderr
            ));
        }
        all.push(text.join("\n"));
    }
    assert_eq!(all[0], all[1]);
    insta::assert_snapshot!("errors_of_resources_and_prompts", all[0]);
}

#[tokio::test]
async fn a_missing_server_is_a_warning_in_a_list_and_an_error_by_name() {
    let config = json!({"mcp_servers": {
        "library": over_stdio("Lends."),
        "gone": {"command": "no-such-program-anywhere"},
    }});
    let place = Place::new().with_file("switchboard.json", &config.to_string());
    let done = place.run(["prompts", "list"]).await.exits(0);
    assert!(done.stdout.contains("greet(name, tone?)"), "{done}");
    done.stderr_contains("warning: server `gone` is not available");
    let done = place.run(["prompts", "list", "gone"]).await.exits(1);
    assert!(done.stderr.contains("no-such-program-anywhere"), "{done}");
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_everything_gives_prompts_and_resources() {
    let peers = std::env::var("SWITCHBOARD_PEERS").expect("SWITCHBOARD_PEERS names the folder");
    let script = std::path::Path::new(&peers)
        .join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let config =
        json!({"mcpServers": {"everything": {"command": "node", "args": [script, "stdio"]}}});
    let place = Place::new().with_file("switchboard.json", &config.to_string());
    let prompts = place
        .run(["prompts", "list", "everything", "-o", "json"])
        .await
        .json();
    let prompts = prompts.as_array().unwrap();
    let simple = prompts
        .iter()
        .find(|prompt| prompt["arguments"] == json!([]));
    let simple = simple.unwrap()["name"].as_str().unwrap();
    let done = place.run(["prompts", "get", "everything", simple]).await;
    assert!(done.code == 0 && !done.stdout.trim().is_empty(), "{done}");

    let resources = place.run(["resources", "list", "-o", "json"]).await.json();
    let uri = resources[0]["uri"].as_str().unwrap();
    let done = place.run(["resources", "read", "everything", uri]).await;
    assert!(done.code == 0 && !done.stdout.trim().is_empty(), "{done}");
    let templates = place
        .run(["resources", "templates", "-o", "json"])
        .await
        .json();
    assert!(templates[0]["uri_template"].as_str().unwrap().contains('{'));
}
