use proptest::prelude::*;

use super::*;

fn blocks(text: &str) -> Vec<Block> {
    let mut splitter = Splitter::default();
    let mut blocks = splitter.push(text);
    blocks.extend(splitter.finish());
    blocks
}

fn shown(text: &str) -> Vec<(Kind, String)> {
    let blocks = blocks(text).into_iter();
    blocks.map(|it| (it.kind, it.raw)).collect()
}

#[test]
fn blank_lines_end_paragraphs_and_fences_hold_code() {
    let text = "One\ntwo\n\nThree\n```rust\nfn a() {}\n\n# no heading\n```\n| a | b \
                |\n|---|---|\n| 1 | 2 |\n\nEnd";
    let expected = [
        (Kind::Text, "One\ntwo\n\n"),
        (Kind::Text, "Three\n"),
        (Kind::Fence, "```rust\n"),
        (Kind::Code, "fn a() {}\n"),
        (Kind::Code, "\n"),
        (Kind::Code, "# no heading\n"),
        (Kind::Fence, "```\n"),
        (Kind::Text, "| a | b |\n|---|---|\n| 1 | 2 |\n\n"),
        (Kind::Text, "End"),
    ];
    let expected = expected.map(|(kind, raw)| (kind, raw.to_owned()));
    assert_eq!(shown(text), expected);
}

#[test]
fn an_item_contains_indented_lines() {
    let text = "- one\n\n  more of it\n  ```\n- no item\n\n  ```\n- two\n  - below\n\nAfter\n";
    let expected = [
        "- one\n\n  more of it\n  ```\n- no item\n\n  ```\n",
        "- two\n  - below\n\n",
        "After\n",
    ];
    let raws: Vec<String> = shown(text).into_iter().map(|(_, raw)| raw).collect();
    assert_eq!(raws, expected);
}

#[test]
fn a_fence_is_closed_by_its_kind_and_length() {
    let text = "````\n```\n~~~\n````\nout";
    let kinds: Vec<Kind> = shown(text).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(
        kinds,
        [Kind::Fence, Kind::Code, Kind::Code, Kind::Fence, Kind::Text]
    );
    assert_eq!(shown("```a``` is code in a line")[0].0, Kind::Text);
}

#[test]
fn long_blocks_are_split() {
    let text = "word ".repeat(20_000);
    let all = blocks(&text);
    assert!(all.len() > 5);
    assert!(all.iter().all(|block| block.raw.len() <= MAX_LINE_BYTES));
    assert!(all[1..].iter().all(|block| block.joined));
    let lines = "a line of text\n".repeat(10_000);
    assert!(
        blocks(&lines)
            .iter()
            .all(|it| it.raw.len() <= MAX_BLOCK_BYTES + 100)
    );
}

/// Text in which the marks of Markdown are more frequent than in life.
pub(crate) fn marked_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("```".to_owned()),
        Just("~~~~\n".to_owned()),
        Just("- ".to_owned()),
        Just("\n- ".to_owned()),
        Just("\n  1. ".to_owned()),
        Just("| a | b |\n|--|--|\n| c ".to_owned()),
        Just("**".to_owned()),
        Just("_`".to_owned()),
        Just("# ".to_owned()),
        Just("> ".to_owned()),
        Just("[x](http://y)".to_owned()),
        Just("漢字 👩‍👩‍👧 e\u{301}".to_owned()),
        Just("---\n".to_owned()),
        Just("    ".to_owned()),
        "[a-zA-Z0-9 .,*_`|<>\\-]{0,30}",
        "\\PC{0,6}",
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| {
        // The screen of the tests leaves this one out, as it stands for what is no UTF-8.
        pieces.concat().replace('\u{fffd}', "?")
    })
}

proptest! {
    #[test]
    fn blocks_do_not_depend_on_the_deltas(text in marked_text(), cuts in any::<[prop::sample::Index; 4]>()) {
        let whole = blocks(&text);
        let raw: String = whole.iter().map(|block| block.raw.as_str()).collect();
        prop_assert_eq!(&raw, &text);

        let mut splitter = Splitter::default();
        let mut pieces = Vec::new();
        for piece in pieces_of(&text, &cuts) {
            pieces.extend(splitter.push(piece));
            // What there would be if it ended here changes nothing.
            splitter.preview();
        }
        pieces.extend(splitter.finish());
        prop_assert_eq!(pieces, whole);
    }
}

/// The text in pieces, cut at characters.
pub(crate) fn pieces_of<'t>(text: &'t str, cuts: &[prop::sample::Index]) -> Vec<&'t str> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    places.retain(|&place| text.is_char_boundary(place));
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for place in places {
        pieces.push(&text[from..place]);
        from = place;
    }
    pieces.push(&text[from..]);
    pieces
}
