//! `servers login` and `servers logout`.

use crate::support::Place;

#[tokio::test]
async fn an_unknown_server_is_reported_with_a_suggestion() {
    let config = "mcp_servers: {crm: {url: 'http://127.0.0.1:1/mcp'}}\n";
    let place = Place::new().with_file("switchboard.yaml", config);
    let done = place.run(["servers", "login", "crn"]).await;
    assert_eq!(done.code, 2, "{done}");
    assert!(done.stderr.contains("did you mean `crm`?"), "{done}");
    let done = place.run(["servers", "logout", "crm"]).await;
    assert!(done.stdout.contains("crm: not logged in"), "{done}");
}
