//! Prompts, completions, and pages of MCP Apps.

use std::collections::BTreeMap;

use serde_json::json;
use switchboard_domain::{Media, ToolContent};
use switchboard_mcp_client::{
    App, AppPage, CompletionRequest, CompletionTarget, FeatureError, Prompt, PromptArgument,
    PromptMessage, PromptRole,
};

use crate::features::stage::*;

#[tokio::test]
async fn prompts_are_listed_and_filled_in() {
    for stage in every().await {
        let listed = soon(stage.host.list_prompts("s")).await.unwrap();
        assert_eq!(listed.problems, [""; 0]);
        let argument = |name: &str, required: bool| PromptArgument {
            name: name.to_owned(),
            title: required.then(|| "Name".to_owned()),
            description: required.then(|| "Who is greeted".to_owned()),
            required,
        };
        assert_eq!(
            listed.items,
            [Prompt {
                name: "greet".to_owned(),
                title: Some("Greet".to_owned()),
                description: Some("Greets somebody".to_owned()),
                arguments: vec![argument("name", true), argument("tone", false)],
            }]
        );
        let arguments = BTreeMap::from([("name".to_owned(), "Ada".to_owned())]);
        let filled = soon(stage.host.render_prompt("s", "greet", &arguments)).await;
        let filled = filled.unwrap();
        assert_eq!(filled.description.as_deref(), Some("A greeting"));
        assert_eq!(filled.problems, [""; 0]);
        assert_eq!(
            filled.messages,
            [
                PromptMessage {
                    role: PromptRole::User,
                    content: ToolContent::text("Greet Ada"),
                },
                PromptMessage {
                    role: PromptRole::Assistant,
                    content: ToolContent::Image(Media::from_base64("image/png", "AA==")),
                },
            ]
        );
        let refused = soon(stage.host.render_prompt("s", "greet", &BTreeMap::new())).await;
        let expected = "server `s` refused `prompts/get`: `name` is missing (code -32602)";
        assert_eq!(refused.unwrap_err().to_string(), expected);
        soon(stage.host.close()).await;
    }
}

#[tokio::test]
async fn arguments_of_prompts_and_templates_are_completed() {
    for stage in every().await {
        let wanted = CompletionRequest {
            of: CompletionTarget::Prompt {
                name: "greet".to_owned(),
            },
            argument: "name".to_owned(),
            value: "A".to_owned(),
            known: BTreeMap::from([("tone".to_owned(), "warm".to_owned())]),
        };
        let of_prompt = soon(stage.host.complete_argument("s", wanted))
            .await
            .unwrap();
        assert_eq!(
            of_prompt.values,
            [
                r#"{"type":"ref/prompt","name":"greet"}"#,
                "name=A",
                r#"{"arguments":{"tone":"warm"}}"#,
            ]
        );
        assert_eq!((of_prompt.total, of_prompt.has_more), (Some(7), true));
        let wanted = CompletionRequest {
            of: CompletionTarget::ResourceTemplate {
                uri_template: "f:///{path}".to_owned(),
            },
            argument: "path".to_owned(),
            value: "no".to_owned(),
            known: BTreeMap::new(),
        };
        let of_template = soon(stage.host.complete_argument("s", wanted))
            .await
            .unwrap();
        assert_eq!(
            of_template.values,
            [
                r#"{"type":"ref/resource","uri":"f:///{path}"}"#,
                "path=no",
                "null",
            ]
        );
        soon(stage.host.close()).await;
    }
}

#[tokio::test]
async fn pages_of_tools_are_found_and_read() {
    for stage in every().await {
        let apps = soon(stage.host.list_apps("s")).await.unwrap();
        assert_eq!(apps.problems, [""; 0]);
        let report = App {
            tool: "report".to_owned(),
            uri: "ui://report".to_owned(),
            for_model: false,
            for_app: true,
        };
        assert_eq!(apps.items, [report]);
        let page = soon(stage.host.read_app("s", "ui://report")).await.unwrap();
        assert_eq!(
            page,
            AppPage {
                uri: "ui://report".to_owned(),
                html: "<p>report</p>".to_owned(),
                ui: object(json!({"csp": {"connectDomains": []}})),
            }
        );
        let error = soon(stage.host.read_app("s", "ui://plain"))
            .await
            .unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("has no content `ui://plain` of type text/html"),
            "{error}"
        );
        // The host rejects these URIs without a request to the server.
        for uri in ["f:///notes", "f:///none", "f:///private", "ui:report", ""] {
            let error = soon(stage.host.read_app("s", uri)).await.unwrap_err();
            assert!(matches!(error, FeatureError::NotAPage { .. }), "{error}");
        }
        soon(stage.host.close()).await;
    }
}
