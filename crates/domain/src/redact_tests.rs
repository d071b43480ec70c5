use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Media;

#[test]
fn values_with_a_secret_name_are_redacted_at_every_depth() {
    let input = json!({
        "user": "ada",
        "api_key": "k-1",
        "headers": {"Authorization": ["Bearer x"], "Accept": "*/*"},
        "logins": [{"name": "a", "password": {"old": 1}}],
        "token": null,
        "max_tokens": 5,
    });
    assert_eq!(
        Redactor::default().redact_value(&input),
        json!({
            "user": "ada",
            "api_key": "[redacted]",
            "headers": {"Authorization": "[redacted]", "Accept": "*/*"},
            "logins": [{"name": "a", "password": "[redacted]"}],
            "token": null,
            "max_tokens": 5,
        })
    );
}

#[test]
fn known_secrets_are_redacted_in_texts_and_names() {
    let redactor =
        Redactor::default().with_secrets(["correct horse", "short", "correct horse battery"]);
    assert_eq!(
        redactor.redact_value(&json!({"a correct horse": "it is correct horse battery, short"})),
        json!({"a [redacted]": "it is [redacted], short"})
    );
    assert!(!format!("{redactor:?}").contains("horse"));
    // The new redactor also knows the earlier secrets.
    let more = redactor.with_secrets(["another secret"]);
    assert_eq!(
        more.redact_text("correct horse, another secret"),
        "[redacted], [redacted]"
    );
}

#[test]
fn a_member_name_stays_if_a_secret_looks_like_a_word() {
    let redactor = Redactor::default().with_secrets(["postgres"]);
    let mut value = json!({"postgres": "postgres"});
    let clean = json!({"postgres": "[redacted]"});
    assert_eq!(redactor.redact_value(&value), clean);
    redactor.redact_known_in_value(&mut value);
    assert_eq!(value, clean);
}

#[test]
fn large_input_is_cut_and_the_omitted_part_is_counted() {
    let redactor = Redactor::default().with_limits(RedactionLimits {
        text: 10,
        items: 2,
        total: 1_000,
    });
    assert_eq!(redactor.redact_text("0123456789"), "0123456789");
    assert_eq!(
        redactor.redact_text("0123456789abc"),
        "0123456789… [3 more bytes]"
    );
    // The text is cut only between characters.
    assert_eq!(
        redactor.redact_text("012345678é!"),
        "012345678… [3 more bytes]"
    );
    assert_eq!(
        redactor.redact_value(&json!([1, 2, 3, 4])),
        json!([1, 2, "[2 more]"])
    );
    assert_eq!(
        redactor.redact_value(&json!({"a": 1, "b": 2, "c": 3})),
        json!({"a": 1, "b": 2, "…": "[1 more]"})
    );
}

#[test]
fn a_secret_at_the_cut_does_not_show_its_beginning() {
    let redactor = Redactor::default()
        .with_secrets(["s3cr3t-s3cr3t-s3cr3t"])
        .with_limits(RedactionLimits {
            text: 12,
            items: 9,
            total: 1_000,
        });
    let shown = redactor.redact_text(&format!(
        "12345678{}{}",
        "s3cr3t-s3cr3t-s3cr3t",
        "x".repeat(10_000)
    ));
    assert!(!shown.contains("s3c"), "{shown}");
}

#[test]
fn the_total_size_of_a_value_is_limited() {
    let many: Vec<String> = (0..40).map(|n| format!("{n:0>900}")).collect();
    let shown = Redactor::default().redact_value(&json!(many)).to_string();
    assert!(shown.len() < 10_000, "{}", shown.len());
    assert!(shown.contains("more]"), "{shown}");
}

#[test]
fn deeply_nested_values_are_omitted() {
    let mut deep = json!("bottom");
    for _ in 0..1_000 {
        deep = json!([deep]);
    }
    let shown = Redactor::default().redact_value(&deep).to_string();
    assert!(shown.contains("too deep") && !shown.contains("bottom"));
}

#[test]
fn media_are_named_and_not_included() {
    let content = [
        ToolContent::text("password: abc"),
        ToolContent::Image(Media::from_base64("image/png", "QUJD")),
        ToolContent::Resource {
            uri: "file:///a".into(),
            media_type: None,
            text: None,
            blob: Some("QUJDRA==".into()),
        },
    ];
    assert_eq!(
        Redactor::default().redact_content(&content),
        json!([
            "password: [redacted]",
            "[image image/png]",
            "[resource file:///a, 8 bytes of base64]"
        ])
    );
}

proptest! {
    #[test]
    fn no_known_secret_survives_the_size_limits(
        before in ".{0,40}", after in ".{0,40}", limit in 0_usize..60,
    ) {
        let redactor = Redactor::default()
            .with_secrets(["pa55w0rd-of-the-house"])
            .with_limits(RedactionLimits { text: limit, items: 3, total: 100 });
        let text = format!("{before}pa55w0rd-of-the-house{after}");
        let shown = redactor.redact_text(&text);
        prop_assert!(!shown.contains("pa55w0rd"), "{}", shown);
        let in_value = redactor.redact_value(&json!({ text.clone(): [text] })).to_string();
        prop_assert!(!in_value.contains("pa55w0rd"), "{}", in_value);
    }
}

#[test]
fn known_secrets_are_redacted_in_every_part_of_a_tool_output() {
    let redactor = Redactor::default().with_named_secrets([
        ("token", "tok-\"1\""),
        ("url", "http://localhost:3001/"),
        ("pin", "12345678"),
    ]);
    let value = json!({"tok-\"1\"": ["at tok-\"1\"", 12_345_678, 3]});
    let clean = json!({"[redacted]": ["at [redacted]", "[redacted]", 3]});
    let resource = |text: &str| ToolContent::Resource {
        uri: text.to_owned(),
        media_type: None,
        text: Some(text.to_owned()),
        blob: None,
    };
    let link = |text: &str| ToolContent::ResourceLink {
        uri: text.to_owned(),
        name: text.to_owned(),
        media_type: None,
        description: Some(text.to_owned()),
    };
    let mut output = ToolOutput {
        content: vec![
            ToolContent::text(value.to_string()),
            ToolContent::Image(Media::from_url("image/png", "http://localhost:3001/a.png")),
            resource("tok-\"1\""),
            link("12345678"),
            ToolContent::Unknown {
                value: value.clone(),
            },
        ],
        structured: Some(value),
        is_error: false,
    };
    redactor.redact_known_in_output(&mut output);
    let expected = ToolOutput {
        content: vec![
            ToolContent::text(r#"{"[redacted]":["at [redacted]",[redacted],3]}"#),
            ToolContent::Image(Media::from_url("image/png", "[redacted]a.png")),
            resource("[redacted]"),
            link("[redacted]"),
            ToolContent::Unknown {
                value: clean.clone(),
            },
        ],
        structured: Some(clean),
        is_error: false,
    };
    assert_eq!(output, expected);
}

#[test]
fn added_secrets_are_shared_and_the_oldest_are_dropped() {
    let redactor = Redactor::default();
    let clone = redactor.clone().with_secrets(["of-the-server"]);
    assert_eq!(clone.redact_known("of-a-client"), "of-a-client");
    for secret in ["of-a-client", "of-a-client-too", "port"] {
        redactor.add_secret(secret);
    }
    assert_eq!(
        clone.redact_known("of-a-client of-a-client-too of-the-server port"),
        "[redacted] [redacted] [redacted] port"
    );
    assert_eq!((redactor.secret_count(), clone.secret_count()), (2, 3));
    for n in 0..Redactor::MAX_ADDED_SECRETS - 1 {
        redactor.add_secret(&format!("another-{n}"));
        // Adding a known secret again makes it the newest one, so it is not dropped.
        redactor.add_secret("of-a-client");
    }
    assert_eq!(
        clone.redact_known("of-a-client, of-a-client-too another-0"),
        "[redacted], [redacted]-too [redacted]"
    );
    assert_eq!(redactor.secret_count(), Redactor::MAX_ADDED_SECRETS);
    redactor.add_secret(&"x".repeat(Redactor::MAX_ADDED_BYTES));
    assert_eq!(redactor.secret_count(), 1);
}
