use anstream::adapter::strip_str;
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr as _;

use super::*;

/// Splits a text into its blocks.
fn blocks(mut text: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    while let Some(end) = find_second_block(text) {
        blocks.push(&text[..end]);
        text = &text[end..];
    }
    blocks.push(text);
    blocks
}

fn laid_out(text: &str, most: usize) -> String {
    let look = MarkdownStyles::new(true);
    let blocks = blocks(text).into_iter();
    let rows = blocks.flat_map(|block| render_block(block, most, look));
    let rows: Vec<String> = rows.map(|row| strip_str(&row).to_string()).collect();
    rows.join("\n")
}

#[test]
fn text_is_split_into_blocks_and_list_items() {
    let text = "One\ntwo\n\n```rust\n# no heading\n\n```\n| a | b |\n|---|---|\n| 1 | 2 \
                |\n\n- one\n\n  more\n  ```\n  - no item\n  ```\n- two\n  - below\n\n---\nEnd";
    let expected = [
        "One\ntwo\n\n",
        "```rust\n# no heading\n\n```\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
        "- one\n\n  more\n  ```\n  - no item\n  ```\n",
        "- two\n  - below\n\n",
        "---\n",
        "End",
    ];
    assert_eq!(blocks(text), expected);
}

#[test]
fn inline_marks_are_rendered() {
    let text = "# Title\n\nSome **bold**, *italic* and `code *as is*`, 2 * 3 * 4 and \
                snake_case_name.\nNext [line](https://x.y) <https://z.w>\n";
    insta::assert_snapshot!(laid_out(text, 60), @r"
    Title
    Some bold, italic and code *as is*, 2 * 3 * 4 and
    snake_case_name.
    Next line (https://x.y) https://z.w
    ");
}

#[test]
fn lists_quotes_tasks_and_rules_are_indented() {
    let text = "- one that is long enough to be broken\n  - below\n    1. deeper\n- [x] done\n- [ \
                ] open\n\n3. three\n4. four\n\n> quoted text that goes on\n> - item\n\n---\n";
    insta::assert_snapshot!(laid_out(text, 24), @r"
    • one that is long
      enough to be broken
      • below
        1. deeper
    • ☑ done
    • ☐ open
    3. three
    4. four
    │ quoted text that goes
    │ on
    │ • item
    ────────────────────────
    ");
}

#[test]
fn a_table_fits_its_screen_or_is_shown_cell_by_cell() {
    let text =
        "| Customer | Account value |\n|---|--:|\n| Ada **Lovelace** | 12 |\n| Grace | 7 \\| 8 |\n";
    insta::assert_snapshot!(laid_out(text, 40), @r"
    Customer     │ Account value
    ─────────────┼──────────────
    Ada Lovelace │ 12
    Grace        │ 7 | 8
    ");
    insta::assert_snapshot!(laid_out(text, 20), @r"
    Customer  │ Account
              │ value
    ──────────┼─────────
    Ada       │ 12
    Lovelace  │
    Grace     │ 7 | 8
    ");
    insta::assert_snapshot!(laid_out(text, 9), @r"
    Customer:
    Ada
    Lovelace
    Account
    value: 12

    Customer:
    Grace
    Account
    value: 7
    | 8
    ");
}

#[test]
fn code_keeps_spaces_and_breaks_at_the_row_end() {
    let text = "```rust\nfn main() {\n    let long = \"0123456789\";\n\n}\n```\n";
    insta::assert_snapshot!(laid_out(text, 20), @r#"
      fn main() {
          let long = "01
      23456789";

      }
    "#);
}

#[test]
fn styles_end_in_every_row() {
    let block = "**bold over the end** `code`";
    let coloured = render_block(block, 9, MarkdownStyles::new(true));
    assert!(coloured.len() > 2);
    assert!(coloured[0].ends_with("\u{1b}[0m"), "{coloured:?}");
    assert!(coloured.concat().contains("\u{1b}[36m"));
    let plain = render_block(block, 9, MarkdownStyles::new(false)).concat();
    assert!(
        !plain.contains("[36m") && plain.contains("\u{1b}[1m"),
        "{plain:?}"
    );
}

#[test]
fn escape_sequences_of_a_model_are_removed() {
    let shown = laid_out(
        "a\u{1b}[2Jb `c\u{9b}31m`\n```\n\u{1b}]0;title\u{7}x\n```\n",
        40,
    );
    assert_eq!(shown, "a[2Jb c31m\n  ]0;titlex");
}

/// Generates text with many characters that have a meaning in Markdown.
pub(crate) fn marked_text() -> impl Strategy<Value = String> {
    let mark = prop::sample::select(vec![
        "\n",
        "\n\n",
        "```",
        "~~~~\n",
        "- ",
        "\n- ",
        "\n  1. ",
        "| a | b |\n|--|--|\n| c ",
        "**",
        "_`",
        "# ",
        "> ",
        "[x](http://y)",
        "漢字 👩‍👩‍👧 e\u{301}",
        "---\n",
        "    ",
    ]);
    let piece = prop_oneof![
        8 => mark.prop_map(str::to_owned),
        1 => "[a-zA-Z0-9 .,*_`|<>\\-]{0,30}",
        1 => "\\PC{0,6}",
    ];
    // The terminal emulator of the tests does not show U+FFFD, so the text contains `?` in its
    // place.
    let pieces = proptest::collection::vec(piece, 0..24);
    pieces.prop_map(|pieces| pieces.concat().replace('\u{fffd}', "?"))
}

proptest! {
    #[test]
    fn no_row_is_wider_than_the_screen(text in marked_text(), most in 1_usize..60) {
        for block in blocks(&text) {
            for row in render_block(block, most, MarkdownStyles::new(true)) {
                let plain = strip_str(&row).to_string();
                let columns: usize = plain.chars().map(|c| c.to_string().width()).sum();
                prop_assert!(columns <= most, "{columns} > {most}: {plain:?}");
            }
        }
    }

    /// Nothing of the words is lost on a screen with room for them.
    #[test]
    fn every_word_is_shown(words in proptest::collection::vec("[a-z]{1,12}", 1..40), most in 14_usize..60) {
        let text = words.join(" ");
        let shown = laid_out(&text, most);
        let shown: Vec<&str> = shown.split_whitespace().collect();
        prop_assert_eq!(shown, words.iter().map(String::as_str).collect::<Vec<_>>());
    }
}
