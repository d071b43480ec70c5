use super::*;
use proptest::prelude::*;
use switchboard_domain::Media;

use crate::{tools::arguments::test_support::json_value, tools::results::FullResults};

fn small() -> ResultLimit {
    ResultLimit {
        max_tokens: 100,
        preview_tokens: 20,
    }
}

fn lines(count: usize) -> String {
    let lines: Vec<_> = (0..count).map(|n| format!("line {n} of many\n")).collect();
    lines.concat()
}

#[test]
fn a_short_result_is_unchanged() {
    let mut output = ToolOutput::text("short");
    output.structured = Some(json!({"a": 1}));
    assert_eq!(
        ResultLimit::default().limit_result("c", "t", output.clone()),
        (output, None)
    );
    let twenty_thousand = ToolOutput::text("word ".repeat(16_000));
    assert_eq!(
        ResultLimit::default()
            .limit_result("c", "t", twenty_thousand)
            .1,
        None
    );
}

#[test]
fn a_long_text_is_cut_after_a_line_with_a_marker() {
    let (output, kept) = small().limit_result("call_1", "list", ToolOutput::text(lines(100)));
    let shown: Vec<_> = output.content.iter().map(ToolContent::as_text).collect();
    assert_eq!(
        shown[0],
        "line 0 of many\nline 1 of many\nline 2 of many\nline 3 of many\nline 4 of many\n"
    );
    assert_eq!(
        shown[1],
        "[This result is cut here. It has about 445 tokens; this is its beginning. Continue with \
         read_tool_result {\"result_id\":\"call_1\",\"offset\":75}, or search the text with \
         {\"result_id\":\"call_1\",\"search\":\"…\"}.]"
    );
    let kept = kept.unwrap();
    assert_eq!(kept.full_text(), lines(100));
    assert!(kept.full_text()[75..].starts_with("line 5"));
}

#[test]
fn one_long_line_is_cut_at_a_word_or_a_character() {
    for text in ["word ".repeat(500), "é".repeat(2_000), "x".repeat(2_000)] {
        let (output, kept) = small().limit_result("c", "t", ToolOutput::text(text.clone()));
        let shown = output.content[0].as_text();
        assert!(text.starts_with(&shown) && !shown.is_empty());
        assert!(tokens::estimate_text(&shown) <= 20);
        assert_eq!(*kept.unwrap().full_text(), *text);
    }
}

#[test]
fn large_structured_content_is_replaced_by_the_id_of_the_result() {
    let rows: Vec<_> = (0..200).map(|n| json!({"id": n})).collect();
    let mut output = ToolOutput::text("200 rows");
    output.structured = Some(json!({"rows": rows}));
    let without_text = ToolOutput {
        content: Vec::new(),
        ..output.clone()
    };
    let (output, kept) = small().limit_result("c", "t", output);
    assert_eq!(output.content[0].as_text(), "200 rows");
    let note = output.content[1].as_text();
    assert!(
        note.starts_with("[This result is not shown in full"),
        "{note}"
    );
    let cut = Some(json!({"cut": true, "result_id": "c"}));
    assert_eq!(output.structured, cut);
    let kept = kept.unwrap();
    assert!(
        kept.full_text().starts_with("200 rows\n\n{\n") && kept.full_text().contains("\"id\": 199")
    );
    let (output, _) = small().limit_result("c", "t", without_text);
    let shown = output.content[0].as_text();
    assert!(shown.starts_with("{\n  \"rows\": [\n"), "{shown}");
    assert_eq!(output.structured, cut);
    // Structured content that repeats the text is stored once.
    let data = json!((0..200).collect::<Vec<_>>());
    let mut output = ToolOutput::text(data.to_string());
    output.structured = Some(data.clone());
    let (output, kept) = small().limit_result("c", "t", output);
    assert_eq!(*kept.unwrap().full_text(), *data.to_string());
    assert!(output.content[0].as_text().starts_with("[0,1,2,"));
}

#[test]
fn a_cut_result_has_the_beginning_of_its_text_and_fitting_images() {
    let image = || ToolContent::Image(Media::from_base64("image/png", "AA=="));
    let limit = ResultLimit {
        max_tokens: 2_000,
        preview_tokens: 20,
    };
    let output = ToolOutput {
        content: vec![
            ToolContent::text("first"),
            image(),
            ToolContent::Resource {
                uri: "file:///a".into(),
                media_type: None,
                text: Some(lines(1_000)),
                blob: None,
            },
            image(),
            ToolContent::text("last"),
        ],
        structured: None,
        is_error: true,
    };
    let (output, kept) = limit.limit_result("c", "t", output);
    let shown: Vec<_> = output.content.iter().map(ToolContent::as_text).collect();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[0].starts_with("first\nline 0"), "{}", shown[0]);
    assert_eq!(shown[1], "[image image/png]");
    assert!(
        shown[2].contains("Omitted non-text parts that were too large: 1."),
        "{}",
        shown[2]
    );
    assert!(output.is_error);
    let kept = kept.unwrap();
    assert!(kept.full_text().starts_with("first\nline 0") && kept.full_text().ends_with("\nlast"));
}

fn content() -> impl Strategy<Value = ToolContent> {
    prop_oneof![
        "[a-z \\n\"é漢{]{0,600}".prop_map(ToolContent::text),
        json_value().prop_map(|value| ToolContent::Unknown { value }),
        Just(ToolContent::Image(Media::from_base64("image/png", "AA=="))),
    ]
}

proptest! {
    #[test]
    fn a_cut_result_respects_the_limit_and_its_full_text_is_stored(
        content in prop::collection::vec(content(), 0..6),
        structured in prop::option::of(json_value()),
        max_tokens in 20_u64..400,
        preview_tokens in 0_u64..500,
    ) {
        let limit = ResultLimit { max_tokens, preview_tokens };
        let output = ToolOutput { content, structured, is_error: false };
        let whole: Vec<_> = output.content.iter().filter_map(content_text).collect();
        let whole = whole.join("\n");
        let (limited, kept) = limit.limit_result("c", "t", output.clone());
        let Some(kept) = kept else {
            prop_assert_eq!(limited, output);
            return Ok(());
        };
        let (marker, shown) = limited.content.split_last().unwrap();
        prop_assert!(tokens::estimate_content(shown) <= max_tokens + 6);
        prop_assert!(marker.as_text().contains("read_tool_result"));
        prop_assert!(kept.full_text().starts_with(&whole));
        // The marker contains the offset at which the rest begins.
        let marker = marker.as_text();
        if let Some((_, offset)) = marker.split_once("\"offset\":") {
            let digits = offset.find(|c: char| !c.is_ascii_digit()).unwrap();
            let mut offset: usize = offset[..digits].parse().unwrap();
            let shown: Vec<_> = shown.iter().filter_map(content_text).collect();
            let shown = shown.join("\n");
            let mut read = kept.full_text()[..offset].to_owned();
            prop_assert_eq!(read.trim_end_matches('\n'), shown.trim_end_matches('\n'));
            let mut all = FullResults::default();
            let length = kept.full_text().len();
            all.store_result(kept.clone(), 0);
            while offset < length {
                let input = json!({"result_id": "c", "offset": offset, "limit": 100});
                let page = all.execute_result_read(input.as_object().unwrap(), &ResultLimit::default());
                prop_assert!(!page.is_error);
                let page = page.content[0].as_text();
                let (text, words) = page.rsplit_once("\n[bytes ").unwrap();
                read.push_str(text);
                offset = words.split(' ').nth(2).unwrap().parse().unwrap();
            }
            prop_assert_eq!(read, kept.full_text());
        }
    }
}
