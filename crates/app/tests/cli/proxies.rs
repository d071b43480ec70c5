//! Models behind a proxy of the environment.

use switchboard_testkit::fake::{Answer, FakeModel, Say};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
};

use crate::support::{Done, Place};

/// Asks a model at an unresolvable host name, with these variables.
async fn asked(variables: &[(&str, &str)]) -> Done {
    let mut place = Place::new()
        .with_variable("OPENAI_API_KEY", "sk-secret")
        .with_variable("OPENAI_BASE_URL", "http://model.invalid/v1");
    for (name, value) in variables {
        place = place.with_variable(name, value);
    }
    let model = "openai/gpt-4o-mini";
    place.run(["ask", "--no-tools", "-m", model, "Hi"]).await
}

#[tokio::test]
async fn every_proxy_variable_is_used() {
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        let proxy = FakeModel::start().await.unwrap();
        proxy.answer(Answer::openai_chat([Say::text("By a detour.")]));
        let done = asked(&[(variable, &proxy.base_url())]).await;
        let said = (done.code, done.stdout.as_str());
        assert_eq!(said, (0, "By a detour.\n"), "{variable}: {done}");
    }
}

#[tokio::test]
async fn excepted_hosts_bypass_the_proxy() {
    let proxy = FakeModel::start().await.unwrap();
    proxy.answer(Answer::openai_chat([Say::text("By a detour.")]));
    let address = proxy.base_url();
    let done = asked(&[("HTTP_PROXY", &address), ("NO_PROXY", "model.invalid")]).await;
    assert_eq!(done.code, 1, "{done}");
    assert!(proxy.requests().is_empty(), "{done}");
}

#[tokio::test]
async fn a_tunnel_request_contains_the_proxy_credentials() {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let proxying = async {
        let (stream, _) = proxy.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut asked = String::new();
        while stream.read_line(&mut asked).await.unwrap() > 2 {}
        let refusal = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(refusal).await.unwrap();
        // A second request gets no response.
        drop(proxy);
        asked
    };
    let variables = [
        ("HTTPS_PROXY", address.as_str()),
        ("OPENAI_BASE_URL", "https://model.invalid/v1"),
    ];
    let asking = asked(&variables);
    let (asked, done) = tokio::join!(proxying, asking);
    assert!(asked.starts_with("CONNECT model.invalid:443 "), "{asked}");
    let agent = format!("user-agent: switchboard/{}\r\n", env!("CARGO_PKG_VERSION"));
    assert!(asked.to_ascii_lowercase().contains(&agent), "{asked}");
    assert!(!asked.contains("sk-secret"), "{asked}");
    assert_eq!(done.code, 1, "{done}");
}
