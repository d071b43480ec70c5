//! Log notifications of servers.

use serde_json::json;
use switchboard_mcp_client::{ClientHandlers, LogLevel, McpHost};

use crate::server_requests::support::*;

fn logged(host: &McpHost) -> Vec<(LogLevel, String)> {
    let logs = host.server_statuses().remove(0).logs;
    assert!(logs.iter().all(|line| line.logger.as_deref() == Some("db")));
    logs.into_iter()
        .map(|line| (line.level, line.text))
        .collect()
}

#[tokio::test]
async fn messages_are_kept_with_the_server_without_secrets_and_only_what_is_wanted() {
    let used = (LogLevel::Info, "key [redacted] used".to_owned());
    let full = (LogLevel::Error, r#"{"disk":"full"}"#.to_owned());
    let details = (LogLevel::Debug, "details".to_owned());
    for (level, word, expected) in [
        (
            LogLevel::Debug,
            "debug",
            vec![details, used.clone(), full.clone()],
        ),
        (LogLevel::default(), "info", vec![used, full.clone()]),
        (LogLevel::Error, "error", vec![full]),
    ] {
        with_each(every_variant().await, move |mut support| {
            let mut expected = expected.clone();
            async move {
                support.config.log_level = level;
                support.config.secrets = vec!["sk-secret-77".into()];
                let host = support.host(ClientHandlers::default()).await;
                assert_eq!(call(&host, "level").await.unwrap(), json!(word));
                assert_eq!(call(&host, "log").await.unwrap(), json!("logged"));
                // Messages are handled concurrently, so their order may vary.
                expected.sort();
                until(|| {
                    let mut now = logged(&host);
                    now.sort();
                    now == expected
                })
                .await;
                soon(host.close()).await;
            }
        })
        .await;
    }
}
