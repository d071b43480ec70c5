//! The commands in `docs/coming-from.md`.

use std::process::Stdio;

use crate::support::{Place, program};

const PAGE: &str = include_str!("../../../../docs/coming-from.md");

#[tokio::test]
async fn every_command_of_the_page_runs_without_a_key() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let blocks = PAGE.split("```sh\n").skip(1);
    let scripts: Vec<_> = blocks.map(|it| it.split("```").next().unwrap()).collect();
    assert_eq!(scripts.len(), 5, "one for each system");
    for script in scripts {
        // A loopback address on which nothing listens, so that no test uses the network.
        let place = Place::new()
            .with_variable("SWITCHBOARD_BTE_URL", "http://127.0.0.1:1")
            .with_variable("SWITCHBOARD_NAME_RESOLVER_URL", "http://127.0.0.1:1");
        let script = script.replace(":8484", &format!(":{port}"));
        let folder = program().parent().unwrap().display().to_string();
        let script = format!(
            "set -eu; PATH='{folder}':$PATH; trap 'kill ${{!-}} 2>/dev/null || :' EXIT\n{script}"
        );
        let done = place.run_in_shell(&script, Stdio::null()).await;
        assert_eq!(done.code, 0, "{script}{done}");
        assert!(!done.stdout.is_empty(), "{script}{done}");
    }
}
