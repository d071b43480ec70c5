use proptest::prelude::*;
use serde_json::json;
use switchboard_domain::Media;

use super::*;

#[test]
fn values_under_a_secret_s_name_are_hidden_at_every_depth() {
    let input = json!({
        "user": "ada",
        "api_key": "k-1",
        "headers": {"Authorization": ["Bearer x"], "Accept": "*/*"},
        "logins": [{"name": "a", "password": {"old": 1}}],
        "token": null,
        "max_tokens": 5,
    });
    assert_eq!(
        Redactor::default().value(&input),
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
fn known_secrets_are_hidden_in_texts_and_in_names() {
    let redactor =
        Redactor::default().with_secrets(["correct horse", "short", "correct horse battery"]);
    assert_eq!(
        redactor.value(&json!({"a correct horse": "it is correct horse battery, short"})),
        json!({"a [redacted]": "it is [redacted], short"})
    );
    assert!(!format!("{redactor:?}").contains("horse"));
    // Those known before stay known.
    let more = redactor.with_secrets(["another secret"]);
    assert_eq!(
        more.text("correct horse, another secret"),
        "[redacted], [redacted]"
    );
}

#[test]
fn what_is_too_large_is_cut_and_counted() {
    let redactor = Redactor::default().with_limits(SizeLimits {
        text: 10,
        items: 2,
        total: 1_000,
    });
    assert_eq!(redactor.text("0123456789"), "0123456789");
    assert_eq!(redactor.text("0123456789abc"), "0123456789… [3 bytes more]");
    // Never within a character.
    assert_eq!(redactor.text("012345678é!"), "012345678… [3 bytes more]");
    assert_eq!(
        redactor.value(&json!([1, 2, 3, 4])),
        json!([1, 2, "[2 more]"])
    );
    assert_eq!(
        redactor.value(&json!({"a": 1, "b": 2, "c": 3})),
        json!({"a": 1, "b": 2, "…": "[1 more]"})
    );
}

#[test]
fn a_secret_at_the_place_of_the_cut_does_not_show_its_beginning() {
    let redactor = Redactor::default()
        .with_secrets(["s3cr3t-s3cr3t-s3cr3t"])
        .with_limits(SizeLimits {
            text: 12,
            items: 9,
            total: 1_000,
        });
    let shown = redactor.text(&format!(
        "12345678{}{}",
        "s3cr3t-s3cr3t-s3cr3t",
        "x".repeat(10_000)
    ));
    assert!(!shown.contains("s3c"), "{shown}");
}

#[test]
fn all_texts_together_are_bounded() {
    let many: Vec<String> = (0..40).map(|n| format!("{n:0>900}")).collect();
    let shown = Redactor::default().value(&json!(many)).to_string();
    assert!(shown.len() < 10_000, "{}", shown.len());
    assert!(shown.contains("more]"), "{shown}");
}

#[test]
fn a_value_within_a_thousand_others_is_not_followed() {
    let mut deep = json!("bottom");
    for _ in 0..1_000 {
        deep = json!([deep]);
    }
    let shown = Redactor::default().value(&deep).to_string();
    assert!(shown.contains("too deep") && !shown.contains("bottom"));
}

#[test]
fn media_are_named_and_not_kept() {
    let content = [
        ToolContent::text("password: abc"),
        ToolContent::Image(Media::base64("image/png", "QUJD")),
        ToolContent::Resource {
            uri: "file:///a".into(),
            media_type: None,
            text: None,
            blob: Some("QUJDRA==".into()),
        },
    ];
    assert_eq!(
        Redactor::default().content(&content),
        json!([
            "password: [redacted]",
            "[image image/png]",
            "[resource file:///a, 8 bytes of base64]"
        ])
    );
}

proptest! {
    #[test]
    fn no_text_breaks_it_and_no_known_secret_survives(
        before in ".{0,40}", after in ".{0,40}", limit in 0_usize..60,
    ) {
        let redactor = Redactor::default()
            .with_secrets(["pa55w0rd-of-the-house"])
            .with_limits(SizeLimits { text: limit, items: 3, total: 100 });
        let text = format!("{before}pa55w0rd-of-the-house{after}");
        let shown = redactor.text(&text);
        prop_assert!(!shown.contains("pa55w0rd"), "{}", shown);
        let in_value = redactor.value(&json!({ text.clone(): [text] })).to_string();
        prop_assert!(!in_value.contains("pa55w0rd"), "{}", in_value);
    }
}
