use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;

use crate::redact::{REDACTED, Redactor};

fn known(secret: &str) -> Redactor {
    Redactor::default().with_secrets([secret])
}

#[test]
fn known_secrets_are_found_in_the_spellings_of_other_programs() {
    let secret = "Zq9/+\"x\\y Sécr3t<&>";
    let known = known(secret);
    for (written, expected) in [
        // As Python's `quote(s, safe='')`, `quote(s)` and `quote_plus(s)` encode it.
        (
            "?q=Zq9%2F%2B%22x%5Cy%20S%C3%A9cr3t%3C%26%3E&n=1",
            "?q=[redacted]&n=1",
        ),
        ("Zq9/%2B%22x%5Cy%20S%C3%A9cr3t%3C%26%3E", "[redacted]"),
        ("Zq9%2F%2B%22x%5Cy+S%C3%A9cr3t%3C%26%3E", "[redacted]"),
        ("Zq9%2f%2b%22x%5cy%20S%c3%a9cr3t%3c%26%3e", "[redacted]"),
        // As Python's `json.dumps(s)` encodes it with and without `ensure_ascii`, and as Go encodes
        // it.
        (
            r#"{"k": "Zq9/+\"x\\y S\u00e9cr3t<&>"}"#,
            r#"{"k": "[redacted]"}"#,
        ),
        (
            r#"{"k": "Zq9/+\"x\\y S\u00E9cr3t<&>"}"#,
            r#"{"k": "[redacted]"}"#,
        ),
        (
            r#"{"k": "Zq9/+\"x\\y Sécr3t<&>"}"#,
            r#"{"k": "[redacted]"}"#,
        ),
        (
            r#"{"k": "Zq9/+\"x\\y Sécr3t\u003c\u0026\u003e"}"#,
            r#"{"k": "[redacted]"}"#,
        ),
        (
            r#"{"k": "Zq9\/+\"x\\y S\u00e9cr3t<&>"}"#,
            r#"{"k": "[redacted]"}"#,
        ),
        (
            r#""{\"k\": \"Zq9/+\\\"x\\\\y Sécr3t<&>\"}""#,
            r#""{\"k\": \"[redacted]\"}""#,
        ),
        // The last Base64 digit also depends on the text after the secret.
        ("WnE5LysieFx5IFPDqWNyM3Q8Jj4=", "[redacted]="),
        ("5a71392f2b22785c792053c3a9637233743c263e", "[redacted]"),
        ("5A71392F2B22785C792053C3A9637233743C263E", "[redacted]"),
        ("nothing of it: Zq9/", "nothing of it: Zq9/"),
    ] {
        let clean = known.redact_known(written);
        assert!(
            clean == expected || (expected.ends_with('=') && clean.contains("[redacted]")),
            "{written}: {clean}"
        );
    }
}

#[test]
fn white_space_around_a_secret_is_ignored() {
    let known = known(" trailing-newline-77\n");
    assert_eq!(known.redact_known("<trailing-newline-77>"), "<[redacted]>");
    assert_eq!(
        Redactor::default()
            .with_secrets(["  seven77 \n"])
            .secret_count(),
        0
    );
}

#[test]
fn overlapping_secrets_are_redacted_completely() {
    let known = Redactor::default().with_secrets(["abcd-fgh1", "gh1jklmno", "abcd-fgh"]);
    assert_eq!(known.redact_known("xabcd-fgh1jklmnoy"), "x[redacted]y");
    assert_eq!(
        known.redact_known("gh1jklmnoabcd-fgh"),
        "[redacted][redacted]"
    );
}

#[test]
fn a_secret_that_looks_like_a_word_is_redacted_as_a_whole_word() {
    let known = known("customer");
    for name in ["customer-service__get_customers", "customer_id", "Customer"] {
        assert_eq!(known.redact_known(name), name);
    }
    let url = "postgres://me:customer@host";
    assert_eq!(known.redact_known(url), "postgres://me:[redacted]@host");
    assert_eq!(known.redact_known("Y3VzdG9tZXI="), "[redacted]I=");
    assert_eq!(known.redact_known_in_name("customer"), "customer");
}

#[test]
fn the_beginning_of_a_secret_before_a_cut_is_redacted() {
    for (text, expected) in [
        ("wrong: token-12…", "wrong: [redacted]…"),
        (
            "wrong: toke… and token-1… (cut)",
            "wrong: [redacted]… and [redacted]… (cut)",
        ),
        ("a token…", "a [redacted]…"),
        ("a tok…", "a tok…"),
        (
            "token-1 is not cut, this is…",
            "token-1 is not cut, this is…",
        ),
        ("…token-12", "…token-12"),
    ] {
        assert_eq!(known("Bearer token-123").redact_known(text), expected);
    }
}

#[test]
fn a_header_value_is_found_without_its_scheme() {
    let known = known("Bearer tok-12345678");
    assert_eq!(known.redact_known("tok-12345678"), "[redacted]");
    assert_eq!(known.redact_known("Bearer tok-12345678"), "[redacted]");
}

#[test]
fn named_secrets_may_be_short_and_are_found_inside_words() {
    let known = Redactor::default().with_named_secrets([
        ("branch", "main"),
        ("authorization", "Bearer abc1"),
        ("session_key", "p1n4"),
        ("pin_key", "123"),
        ("schema", "customer"),
    ]);
    assert_eq!(
        known.redact_known("main: abc1 of 123, p1n4 my_customers"),
        "main: [redacted] of 123, [redacted] my_[redacted]s"
    );
}

fn whole_base64(bytes: &[u8]) -> String {
    // Encodes by way of a string of bits, unlike the code under test.
    let mut bits = String::new();
    for byte in bytes {
        let _ = write!(bits, "{byte:08b}");
    }
    while !bits.len().is_multiple_of(6) {
        bits.push('0');
    }
    let digits: Vec<char> = ('A'..='Z')
        .chain('a'..='z')
        .chain('0'..='9')
        .chain(['+', '/'])
        .collect();
    let sixes = bits.as_bytes().chunks(6);
    let sixes = sixes.map(|six| std::str::from_utf8(six).unwrap());
    sixes
        .map(|six| digits[usize::from_str_radix(six, 2).unwrap()])
        .collect()
}

proptest! {
    #[test]
    fn secrets_are_found_in_base64_at_every_offset(
        before in "[ -~]{0,9}", secret in "[!-~]{8,24}", after in "[ -~]{0,9}",
    ) {
        let whole = whole_base64(format!("{before}{secret}{after}").as_bytes());
        let known = known(&secret);
        for written in [whole.replace('+', "-").replace('/', "_"), whole] {
            let clean = known.redact_known(&written);
            // At most one Base64 digit on each side encodes bits of both the secret and the other
            // text.
            let outside = clean.len().saturating_sub(REDACTED.len());
            prop_assert!(clean.contains(REDACTED), "{} in {}", clean, written);
            prop_assert!(outside <= (before.len() + after.len()) * 4 / 3 + 4, "{} of {}",
                clean, written);
        }
    }

    #[test]
    fn secrets_are_found_in_json(secret in "\\PC{8,20}") {
        prop_assume!(secret.trim().len() >= 8);
        let known = known(&secret);
        let text = json!({"k": secret.trim()}).to_string();
        prop_assert_eq!(known.redact_known(&text), r#"{"k":"[redacted]"}"#);
    }
}
